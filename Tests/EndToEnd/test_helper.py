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
