"""The helper at a terminal, without one, and in a pipe."""
import json
import os
import signal
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.scripted import basic_server, response


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


def test_control_c_during_the_question_cancels_the_fetch(stage, shell):
    server = stage.server(basic_server("bob", "x"))
    terminal = shell.at_terminal("fetch", server.url)
    terminal.answer({"User: ": "bob"})
    terminal.expect("Password for bob: ")
    terminal.type("\x03")
    assert terminal.end() == 130
    assert server.authorizations == [None]

    def left():
        status = json.loads(shell.run("status", "--json").stdout)
        return [status["challenges"]["pending"], status["fetches"]["running"]]

    eventually(lambda: left() == [0, 0], left)


def test_control_d_continues_without_logging_in(stage, shell):
    server = stage.server(basic_server("bob", "x"))
    terminal = shell.at_terminal("fetch", server.url)
    terminal.expect("User: ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert b"please log in" in terminal.shown


def test_an_unanswered_question_fails_the_test_and_ends(stage, shell):
    """A time limit of the rig: a failing test must not run forever."""
    terminal = shell.at_terminal("fetch", stage.server(basic_server("bob", "x")).url)
    terminal.expect("User: ")
    with pytest.raises(AssertionError, match="has not ended"):
        terminal.end(seconds=1)
    with pytest.raises(ProcessLookupError):
        os.kill(terminal.child, 0)


def test_a_missing_terminal_is_reported_at_once(stage, shell):
    server = stage.server(basic_server("bob", "x"))
    done = shell.run("fetch", server.url)
    assert done.returncode == 67
    assert done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert b"no terminal" in done.stderr and b"Staff" in done.stderr and b"-u" in done.stderr
    assert server.authorizations == [None]
    assert shell.run("fetch", "--json", server.url).returncode == 67
    assert shell.run("fetch", "-f", server.url).returncode == 67


def test_without_a_terminal_an_agent_is_asked(stage, shell):
    server, password = stage.protected()
    stage.agent(password_answer("bob", password))
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"welcome", b"")


@pytest.mark.parametrize("action, words", [("continue", b"no terminal"), ("default", b"no terminal"), ("cancel", b"was cancelled")])
def test_without_a_terminal_an_agent_may_have_no_answer(stage, shell, action, words):
    server = stage.server(basic_server("bob", "x"))
    agent = stage.agent({"action": action})
    done = shell.run("fetch", server.url)
    assert done.returncode == 67 and done.stdout == b"" and done.stderr.count(b"\n") == 1
    assert words in done.stderr and len(agent.asked) == 1


def test_without_a_terminal_a_missing_token_is_reported(stage, shell):
    server = stage.server(lambda request: response(401, b"bearer only", "WWW-Authenticate: Bearer"))
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout) == (67, b"") and b"--oauth2-bearer" in done.stderr


def test_other_responses_pass_without_a_terminal(stage, shell):
    server = stage.server(lambda request: response(401, b"no challenge"))
    done = shell.run("fetch", server.url)
    assert (done.returncode, done.stdout) == (0, b"no challenge")


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

    def handle(request):
        is_right = request.header("Authorization") == f"Bearer {token}"
        return response(200, b"welcome") if is_right else response(401, b"", "WWW-Authenticate: Bearer")

    server = stage.server(handle)
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


def test_user_option_and_url_credentials(stage, shell):
    server, password = stage.protected()
    for arguments in [["-u", f"bob:{password}"], [f"-ubob:{password}"], [f"--user=bob:{password}"]]:
        assert shell.run("fetch", *arguments, server.url).stdout == b"welcome"
    assert shell.run("fetch", server.url.replace("//", f"//bob:{password}@")).stdout == b"welcome"
    wrong = shell.run("fetch", "-u", "carol:wrong", server.url)
    assert wrong.returncode == 67 and b"refused the credential" in wrong.stderr


def test_a_header_field_from_a_file(stage, shell, tmp_path):
    server = stage.server(lambda request: response(200, b"there"))
    (tmp_path / "fields").write_text("X-One: 1\r\n\nX-Two:  two words\n")
    done = shell.run("fetch", "-H", f"@{tmp_path}/fields", "-H", "@-", server.url, server.url, input=b"X-Three: 3")
    assert done.stdout == b"therethere", done
    assert all([request.header(name) for name in ("X-One", "X-Two", "X-Three")] == ["1", "two words", "3"] for request in server.requests)
    (tmp_path / "fields").write_text("X-One: 1\nsecret without a name\n")
    wrong = shell.run("fetch", "-H", f"@{tmp_path}/fields", server.url)
    # As with curl, the others are sent; the omitted one is reported, but not quoted.
    assert wrong.returncode == 0 and b"is not a header field" in wrong.stderr and b"secret" not in wrong.stderr
    assert server.requests[-1].header("X-One") == "1"
    assert shell.run("fetch", "-H", "@/nonexistent", server.url).returncode == 26


def test_output_options(stage, shell, tmp_path):
    def handle(request):
        return response(200, b"" if request.method == "HEAD" else b"body of " + request.method.encode() + b" " + request.body, "X-A: b")

    server = stage.server(handle)
    file = tmp_path / "out"
    assert shell.run("fetch", "-o", str(file), server.url).stdout == b""
    assert file.read_bytes() == b"body of GET " and list(tmp_path.glob("out.*")) == []
    included = shell.run("fetch", "-i", server.url).stdout
    assert included.startswith(b"HTTP/1.1 200 X\r\n") and b"X-A: b\r\n" in included and included.endswith(b"\r\n\r\nbody of GET ")
    assert shell.run("fetch", "-I", server.url).stdout.endswith(b"X-A: b\r\n\r\n")
    assert shell.run("fetch", "-X", "DELETE", server.url).stdout == b"body of DELETE "
    assert shell.run("fetch", "-d", "a=b", "-d", "c", server.url).stdout == b"body of POST a=b&c"
    assert server.requests[-1].header("Content-Type") == "application/x-www-form-urlencoded"
    assert shell.run("fetch", "-H", "X-Mine: 1", "-H", "X-Two:2", server.url).returncode == 0
    assert server.requests[-1].header("X-Mine") == "1" and server.requests[-1].header("X-Two") == "2"
    result = json.loads(shell.run("fetch", "--json", server.url).stdout)
    assert result["status"] == 200 and result["body"]["value"] == "body of GET "
    assert b"< HTTP/1.1 200 X" in shell.run("fetch", "-v", server.url).stderr


def test_a_large_body_arrives_whole(stage, shell):
    body = os.urandom(9 << 20)
    server = stage.server(lambda request: response(200, body))
    assert shell.run("fetch", server.url).stdout == body


def test_redirects_are_followed_with_l_only(stage, shell):
    server = stage.server(lambda request: response(302, b"moved", "Location: /x") if request.target == "/" else response(200, b"there"))
    assert shell.run("fetch", server.url + "/").stdout == b"moved"
    assert shell.run("fetch", "-L", server.url + "/").stdout == b"there"


def test_exit_codes_are_curls(stage, shell, tmp_path):
    silent = stage.server(lambda request: None)
    loop = stage.server(lambda request: response(302, b"", "Location: /"))
    missing = stage.server(lambda request: response(404, b"no"))
    for code, arguments in [
        (3, ["http://"]), (6, ["http://nowhere.invalid/"]), (7, ["http://127.0.0.1:1/"]), (28, ["-m", "0.2", silent.url]),
        (43, ["-H", "A b: c", missing.url]), (47, ["-L", "--max-redirs", "2", loop.url]), (22, ["-f", missing.url]),
        (0, [missing.url]), (23, ["-o", str(tmp_path / "no" / "folder"), missing.url]), (26, ["-d", "@/nonexistent", missing.url]),
    ]:
        done = shell.run("fetch", *arguments)
        assert done.returncode == code, (arguments, done)
        assert done.stderr.count(b"\n") == (0 if code == 0 else 1), done.stderr


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
