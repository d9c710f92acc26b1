"""`watchword agent` and the helper at a terminal, without one, and in a pipe; and -v, which shows requests and responses as curl does."""
import json
import os
import re
import signal
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.scripted import basic_server, bearer_server, response
from rig.terminal import Shell


@pytest.fixture
def desk(stage):
    desk = Desk(stage, stage.broker())
    yield desk
    assert desk.has_ended or desk.end() == 130


@pytest.fixture
def site(stage):
    return stage.server(basic_server("bob", "x"))


class Desk:
    def __init__(self, stage, broker, *options):
        self.broker, self.shell, self.has_ended = broker, Shell(broker), False
        self.client = stage.client(broker=broker, delivery=None)
        self.terminal = self.shell.at_terminal("agent", *options)
        self.terminal.expect("showing the questions of all programs")

    def ask(self, url):
        """Begins a fetch, and waits for its question."""
        self.terminal.shown = b""
        fetch = self.client.start("fetch/run", {"url": url})
        self.terminal.expect("User: ")
        return fetch

    def leave(self, fetch):
        self.terminal.type("\x04")
        assert self.client.wait(fetch)["result"]["status"] == 401

    def status(self):
        return json.loads(self.shell.run("status", "--json").stdout)

    def end(self):
        self.has_ended = True
        self.terminal.type("\x03")
        return self.terminal.end()


def test_the_login_of_a_program_that_cannot_ask(stage, desk):
    server, right = stage.protected()
    wrong = stage.secret(server)
    fetch = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.expect("requires a login")
    desk.terminal.answer({"User: ": "bob", "Password for bob: ": wrong})
    desk.terminal.expect("has refused the last answer (1 failed so far)")
    desk.terminal.answer({"User [bob]: ": "", "User [bob]: \r\nPassword for bob: ": right})
    result = desk.client.wait(fetch)["result"]
    assert result["status"] == 200 and result["auth"]["source"] == "agent"
    assert b"Request from a program (exe:/usr/bin/python3" in desk.terminal.shown, "the requesting program"
    assert wrong.encode() not in desk.terminal.shown and right.encode() not in desk.terminal.shown
    assert desk.status()["agents"] == [{"agentId": "a1", "name": "watchword agent", "priority": 0}]
    assert desk.end() == 130
    # The broker may notice the end of the connection later.
    eventually(lambda: desk.status()["agents"] == [], "the agent is still registered")


@pytest.mark.parametrize("options, notes", [([], 0), (["--keep", "session"], 0), (["--keep", "keyring"], 1)])
def test_keep_keyring_without_a_keyring_is_reported_at_the_start(stage, options, notes):
    desk = Desk(stage, stage.broker(), *options)
    assert desk.terminal.shown.count(b"logins are stored for the session only") == notes
    assert desk.terminal.shown.count(b"the keyring is unavailable: ") == notes
    assert desk.end() == 130


def test_a_cancelled_fetch_withdraws_its_question(desk, site):
    desk.client.cancel(desk.ask(site.url))
    desk.terminal.expect("The question was withdrawn")
    desk.leave(desk.ask(site.url + "/second"))


@pytest.mark.parametrize("typed, is_allowed", [("once\n", True), ("n\n", False), ("\n", False), ("what?\ns\n", True)])
def test_rule_g5_consent_for_a_sandbox_names_program_login_origin_and_realm(stage, desk, typed, is_allowed):
    server, password = stage.protected()
    desk.client.store(server, "bob", password)
    inside = stage.sandbox()
    inside.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    desk.terminal.expect(
        "flatpak:org.example.Maps", f"It wants to use the login from the session for http://127.0.0.1:{server.port} as bob.",
        'The server says: "Staff"', "Verified: no other program can use this name.", "Allow it? once/session/always/NO: ")
    for part in typed.splitlines(keepends=True):
        # Text typed before a question is not an answer to it.
        desk.terminal.expect("Allow it? ")
        desk.terminal.shown = b""
        desk.terminal.type(part)
    while (message := inside.read()).get("id") != 1:
        pass
    # After a refusal, no login is requested for the program.
    assert (message["result"]["status"], message["result"].get("noRespondent")) == ((200, None) if is_allowed else (401, "consentDenied"))


def test_the_questions_of_a_program_are_stopped_after_the_second_refusal(desk, site):
    desk.leave(desk.ask(site.url))
    assert b"Stop all" not in desk.terminal.shown
    second = desk.ask(site.url + "/second")
    desk.terminal.type("\x04")
    desk.terminal.answer({"? y/N: ": "y"})
    assert desk.client.wait(second)["error"]["data"]["kind"] == "challengeCancelled"
    third = desk.client.fetch(site.url + "/third")["result"]
    assert third["status"] == 401 and third["noRespondent"] == "stopped"
    [stopped] = desk.client.call("prompt/list")["result"]["stopped"]
    for words, code, shown in [
            (["list"], 0, stopped["subject"]), (["resume", "exe:/nowhere"], 1, ""), (["resume"], 64, ""),
            (["resume", stopped["subject"]], 0, "1 program resumed"), (["list"], 0, "No stopped programs.")]:
        done = desk.shell.run("prompts", *words)
        assert done.returncode == code and shown.encode() in done.stdout, done
    desk.client.cancel(desk.ask(site.url + "/fourth"))


def test_the_agent_exits_with_a_message_when_the_broker_exits(desk):
    desk.has_ended = True
    desk.broker.stop()
    assert desk.terminal.end() == 2
    assert b"the broker closed the connection" in desk.terminal.shown


def test_a_missing_terminal_and_a_refusal_of_the_broker_are_reported(shell):
    done = shell.run("agent")
    assert done.returncode == 1 and b"no terminal available" in done.stderr
    shell.environment["WATCHWORD_SOCKET"] = shell.broker.restricted
    terminal = shell.at_terminal("agent")
    assert terminal.end() == 1 and terminal.shown.count(b"\n") == 1 and b"restricted" in terminal.shown


def test_an_incomplete_password_does_not_answer_the_next_question(desk, site):
    """The question is withdrawn while the user types."""
    first = desk.ask(site.url)
    desk.terminal.answer({"User: ": "bob"})
    desk.terminal.expect("Password for bob: ")
    desk.terminal.type("half of it")
    desk.client.cancel(first)
    desk.terminal.expect("The question was withdrawn")
    second = desk.ask(site.url + "/second")
    desk.terminal.answer({"User: ": "amy"})
    desk.terminal.expect("Password for ")
    assert b"Password for amy: " in desk.terminal.shown, desk.terminal.shown
    desk.leave(second)


def test_wrong_then_right_at_a_terminal_without_echo(stage, shell):
    server, right = stage.protected(body=b"the page\n")
    wrong = stage.secret(server)
    terminal = shell.at_terminal("fetch", server.url)
    terminal.answer({"User: ": "bob", "Password for bob: ": wrong})
    terminal.expect("has refused the last answer (1 failed so far)")
    terminal.answer({"User [bob]: ": "", "User [bob]: \r\nPassword for bob: ": right})
    assert terminal.end() == 0
    assert b"the page" in terminal.shown
    assert b"Staff" in terminal.shown and b"Not encrypted, but the password stays on this machine unless a proxy is used." in terminal.shown
    assert wrong.encode() not in terminal.shown and right.encode() not in terminal.shown
    assert shell.run("fetch", server.url).stdout == b"the page\n"


def test_control_c_cancels_the_fetch_and_control_d_continues_without_a_login(shell, site):
    terminal = shell.at_terminal("fetch", site.url)
    terminal.answer({"User: ": "bob"})
    terminal.expect("Password for bob: ")
    terminal.type("\x03")
    assert terminal.end() == 130 and site.authorizations == [None]

    def left():
        status = json.loads(shell.run("status", "--json").stdout)
        return [status["challenges"]["pending"], status["fetches"]["running"]]

    eventually(lambda: left() == [0, 0], left)
    terminal = shell.at_terminal("fetch", site.url)
    terminal.expect("User: ")
    terminal.type("\x04")
    assert terminal.end() == 0 and b"please log in" in terminal.shown


def test_without_a_terminal_the_missing_login_is_reported_at_once(stage, shell, site):
    done = shell.run("fetch", site.url)
    assert done.returncode == 67
    assert done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert b"no terminal" in done.stderr and b"Staff" in done.stderr and b"-u" in done.stderr
    assert site.authorizations == [None]
    assert shell.run("fetch", "--json", site.url).returncode == 67
    assert shell.run("fetch", "-f", site.url).returncode == 67
    server = stage.server(lambda request: response(401, b"bearer only", "WWW-Authenticate: Bearer"))
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout) == (67, b"") and b"--oauth2-bearer" in done.stderr


def test_without_a_terminal_an_agent_is_asked(stage, shell):
    server, password = stage.protected()
    stage.agent(password_answer("bob", password))
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"welcome", b"")


@pytest.mark.parametrize("action, words", [("continue", b"no terminal"), ("default", b"no terminal"), ("cancel", b"was cancelled")])
def test_without_a_terminal_an_agent_may_have_no_answer(stage, shell, site, action, words):
    agent = stage.agent({"action": action})
    done = shell.run("fetch", site.url)
    assert done.returncode == 67 and done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert words in done.stderr and len(agent.asked) == 1


def remembered(shell):
    return [credential["user"] for credential in json.loads(shell.run("credentials", "list", "--json").stdout)["credentials"]]


@pytest.mark.parametrize("keep, code, users", [("none", 0, []), ("session", 0, ["bob"]), ("keyring", 120, ["bob"])])
def test_keep_at_a_terminal_and_with_u(stage, shell, keep, code, users):
    server, password = stage.protected()
    terminal = shell.at_terminal("fetch", "--keep", keep, server.url)
    terminal.expect("User: ")
    assert terminal.shown.count(b"The keyring cannot be used") == (keep == "keyring")
    terminal.type("bob\n")
    terminal.answer({"Password for bob: ": password})
    assert terminal.end() == code and b"welcome" in terminal.shown
    note = f"the login of bob for http://127.0.0.1:{server.port} was not stored in the keyring: it is unavailable: ".encode()
    assert terminal.shown.count(note) == (keep == "keyring")
    assert remembered(shell) == users
    shell.run("session", "clear")
    done = shell.run("fetch", "--keep", keep, "-u", f"bob:{password}", server.url)
    assert (done.returncode, done.stdout, done.stderr.count(note)) == (code, b"welcome", keep == "keyring")
    assert remembered(shell) == users


def test_a_token_is_never_stored_in_the_keyring(stage, shell):
    token = stage.secret()
    server = stage.server(bearer_server(token, body=b"welcome"))
    stage.allow(token, server)
    done = shell.run("fetch", "--keep", "keyring", "--oauth2-bearer", token, server.url)
    assert (done.returncode, done.stdout) == (120, b"welcome") and b"tokens are stored for the session only" in done.stderr


@pytest.mark.parametrize("first, words, code, body, notes", [
    # Only a login of the command itself is to be stored: here the second fetch uses the first one's.
    ("fetch -u bob:{password} {url}", "{url}", 0, b"welcome", 0),
    # The login is reported once; another failure has its own code.
    ("status", "-u bob:{password} {url}/a {url}/b", 120, b"welcomewelcome", 1),
    ("status", "-u bob:{password} {url}/a http://127.0.0.1:1/", 7, b"welcome", 1), ("lock", "-u bob:{password} {url}", 120, b"welcome", 1)])
def test_keep_keyring_without_a_keyring(stage, shell, first, words, code, body, notes):
    server, password = stage.protected()

    def run(line):
        return shell.run(*line.format(password=password, url=server.url).split())

    assert run(first).returncode == 0
    done = run(f"fetch --keep keyring {words}")
    assert (done.returncode, done.stdout, done.stderr.count(b"not stored")) == (code, body, notes)


def test_the_terminal_says_where_a_steered_login_goes(stage, shell, tls_server):
    proxy, plain = stage.server(ForwardProxy()), stage.server(basic_server("bob", "secret"))
    secure = tls_server("self-signed", basic_server("bob", "secret").handler)
    for arguments, safety, reason in [
            (["--proxy", proxy.url, plain.url], f"sent to a proxy that the program names: {proxy.url}", "Logins through a proxy"),
            (["--insecure", secure.url], "The server is not verified", "Logins for a server that is not verified")]:
        terminal = shell.at_terminal("fetch", *arguments)
        terminal.expect(safety, reason, "User: ")
        terminal.type("\x03")
        assert terminal.end() == 130


def test_a_locked_broker_stores_nothing_and_reports_it(stage, shell):
    server, password = stage.protected()
    shell.run("lock")
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect("Logins cannot be stored now")
    terminal.answer({"User: ": "bob", "Password for bob: ": password})
    assert terminal.end() == 0
    shell.run("unlock")
    assert remembered(shell) == []


def test_a_line_that_is_no_header_field_is_reported_and_not_quoted(stage, shell, tmp_path):
    server = stage.server(lambda request: response(200, b"there"))
    (tmp_path / "fields").write_text("X-One: 1\nsecret without a name\n")
    wrong = shell.run("fetch", "-H", f"@{tmp_path}/fields", server.url)
    # As with curl, the others are sent; the omitted one is reported, but not quoted.
    assert wrong.returncode == 0 and b"is not a header field" in wrong.stderr and b"secret" not in wrong.stderr
    assert server.requests[-1].header("X-One") == "1"


def test_the_helper_starts_a_broker_when_none_runs(tmp_path, stage):
    folder = tmp_path / "watchword"
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path), "PATH": os.environ["PATH"]}
    server = stage.server(lambda request: response(200, b"ok"))
    refused = subprocess.run([program("watchword"), "status"], env=environment, capture_output=True, timeout=30)
    assert refused.returncode == 2 and b"no broker listens" in refused.stderr
    running = [subprocess.Popen([program("watchword"), "fetch", server.url], env=environment, stdout=subprocess.PIPE) for _ in range(5)]
    try:
        assert [process.communicate(timeout=60)[0] for process in running] == [b"ok"] * 5
    finally:
        os.kill(int((folder / "broker.sock.lock").read_text()), signal.SIGTERM)


def lines(done, mark):
    """Returns what follows `mark` on each line, including empty texts."""
    return [line[1:].strip() for line in done.stderr.decode().splitlines() if line == mark.rstrip() or line.startswith(mark)]


def sent(request):
    return [f"{request.method} {request.target} {request.version}", *(f"{name}: {value}".strip() for name, value in request.headers), ""]


@pytest.mark.parametrize("words", [
    [], ["-H", "X-A: b", "-H", "X-C;", "-A", "report/1"], ["-H", "Accept:"], ["-H", "accept: text/csv"], ["--compressed"], ["-d", "a=b"],
    ["-r", "0-3"], ["-X", "DELETE"], ["-X", "POST"], ["-I"], ["-T", "/dev/null"], ["-L"]], ids=" ".join)
def test_the_requests_are_those_that_the_server_gets(stage, shell, words):
    def handle(request):
        if request.target == "/a?b=c" and "-L" in words:
            return response(302, b"", "Location: /there")
        return response(200, b"" if request.method == "HEAD" else b"ok", "X-B: c")

    server = stage.server(handle)
    done = shell.run("fetch", "-s", "-v", *words, server.url + "/a?b=c")
    assert done.returncode == 0
    received = [line for request in server.requests for line in sent(request)]
    assert lines(done, "> ") == received
    assert [line for line in lines(done, "< ") if line.startswith("HTTP/")] == ["HTTP/1.1 302 X"] * ("-L" in words) + ["HTTP/1.1 200 X"]
    assert "X-B: c" in lines(done, "< ")


def test_curl_shows_the_same(stage, shell):
    """The marks, the status lines and the response fields are those of curl."""
    server = stage.server(lambda request: response(404, b"none", "X-A: b"))
    ours = shell.run("fetch", "-s", "-v", server.url + "/x")
    theirs = subprocess.run(["curl", "-q", "-s", "-v", "--noproxy", "*", server.url + "/x"], capture_output=True)
    assert lines(ours, "< ") == lines(theirs, "< ")
    names = lambda done: {line.split(":")[0] for line in lines(done, "> ")}
    assert names(ours) == names(theirs)


def test_the_login_and_its_source(stage, shell):
    server, password = stage.protected()
    first = shell.run("fetch", "-s", "-v", "-u", f"bob:{password}", server.url)
    assert '* Logging in to the server with Basic as "bob" (from the command line)' in first.stderr.decode()
    assert '* The server accepted the login with Basic as "bob" (from the command line)' in first.stderr.decode()
    assert lines(first, "< ").count("HTTP/1.1 401 X") == 1
    second = shell.run("fetch", "-s", "-v", server.url)
    assert '* Logging in to the server with Basic as "bob" (from the session)' in second.stderr.decode()
    assert "Authorization: Basic [redacted]" in lines(second, "> ")
    third = shell.run("fetch", "-s", "-v", f"http://bob:{password}@127.0.0.1:{stage.server(basic_server('bob', password)).port}/")
    stage.allow(password, stage.servers[-1])
    assert "(from the URL)" in third.stderr.decode()
    for done in (first, second, third):
        assert password.encode() not in done.stderr and not re.search(rb"(?i)authorization: basic (?!\[redacted\])", done.stderr)


@pytest.mark.parametrize("option, words", [
    ("--netrc", [b"curl's -n, --netrc is refused", b"watchword credentials import", b"credentials.netrc"]), ("-c", [b"-c, --cookie-jar", b"-b name=value"]),
    ("--cacert", [b"--pinnedpubkey"]), ("--outptu", [b"Did you mean '--output'?"])])
def test_an_unsupported_option_is_refused_with_its_reason(shell, option, words):
    done = shell.run("fetch", option, "x", "http://127.0.0.1:1/")
    assert done.returncode == 2 and all(word in done.stderr for word in words), done.stderr


def test_rule_28_the_shell_helper_shows_the_reasons_with_v_only(shell, site):
    line, done = "* no login to the server with Basic: no agent answered", shell.run("fetch", "-v", site.url)
    assert done.returncode == 67 and line in done.stderr.decode().splitlines(), done.stderr
    assert b"no login to the server" not in shell.run("fetch", site.url).stderr
