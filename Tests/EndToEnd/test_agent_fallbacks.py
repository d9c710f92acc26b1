"""The agent without windows of its own: the real zenity, pinentry, SSH_ASKPASS and terminal."""
import contextlib
import os
import pty
import re
import shutil
import signal

import pytest

from rig.bodies import eventually
from rig.desktop import AGENT, askpass
from rig.scripted import ScriptedServer, basic, response
from rig.servers import executable
from rig.terminal import Terminal
from test_agent_windows import HOSTILE, ask, two_logins


@pytest.fixture
def started(stage, start_agent):
    """`started(name)` starts an agent with that fallback; further arguments are those of `start_agent`."""
    return lambda name, desktop=None, broker=None, **more: start_agent(
        broker or stage.broker(), desktop, *(["--fallback", name] if name else []), **more).wait_until_registered()


@pytest.fixture
def asked(stage, started):
    """`asked(url, name)` also begins a fetch; returns its client and its number."""
    def begin(url, *words, **more):
        started(*words, **more)
        client = stage.client(delivery=None)
        return client, ask(client, url)

    return begin


@pytest.fixture
def site(stage):
    """A server, and its password."""
    return stage.protected()


@pytest.fixture
def guest(stage, site):
    """`guest(broker)` returns a sandboxed program that has begun a fetch, and needs consent for the login that another program
    has stored."""
    server, password = site

    def begin(broker):
        if not stage.sandboxes:
            stage.client(delivery=None).store(server, "bob", password, realm="Staff", authenticationMethod="httpBasic")
            stage.sandbox(broker)
        # The program answers no challenges itself; they are sent to an agent.
        stage.sandboxes[0].send({"id": 1, "method": "fetch/run", "params": {
            "url": server.url, "auth": {"interaction": "agent", "methods": ["httpBasic"]}}})
        return stage.sandboxes[0]

    return begin


def answered(client, fetch):
    return client.wait(fetch)["result"]["status"]


# zenity

@pytest.mark.tier3("windows")
def test_zenity_asks_in_its_windows(asked, desktop, site):
    server, password = site
    client, fetch = asked(server.url, "zenity", desktop)
    shown = desktop.hear("The server says: “Staff”")["name"]
    assert "Not encrypted (http), but the password stays on this machine unless a proxy is used." in shown.replace("\n", " ") and f"process {os.getpid()}" in shown
    desktop.hear("", role="text", focused=True)
    desktop.has_keyboard("Watchword")
    desktop.type("bob")
    desktop.key("Return")
    desktop.hear("Password of bob:")
    desktop.hear("", role="password text", focused=True)
    desktop.has_keyboard("Watchword")
    desktop.picture("zenity")
    desktop.type(password)
    desktop.key("Return")
    assert answered(client, fetch) == 200


@pytest.mark.tier3("windows")
def test_zenity_lists_the_details_of_a_server_and_closes(asked, desktop, tls_server):
    server = tls_server("self-signed")
    client, fetch = asked(server.url, "zenity", desktop)
    desktop.hear_all("It is self-signed", "Trust once")
    desktop.picture("zenity-trust")
    desktop.has_keyboard("Watchword")
    desktop.key("Escape")
    assert client.wait(fetch)["error"]["data"]["kind"] == "serverNotTrusted"
    fetch = ask(client, server.url)
    desktop.hear("Trust once")
    client.cancel(fetch)
    eventually(lambda: not desktop.windows(), lambda: desktop.summary())
    fetch = ask(client, server.url)
    desktop.hear("Trust once")
    desktop.has_keyboard("Watchword")
    desktop.key("Home", "space", "Return")
    assert answered(client, fetch) == 200


@pytest.mark.tier3("windows")
def test_zenity_reads_nothing_of_a_server_as_markup(stage, asked, desktop):
    realm = HOSTILE.encode().decode("latin-1")
    server = stage.server(ScriptedServer(lambda request: response(401, b"no", f'WWW-Authenticate: Basic realm="\\\\n{realm}"')))
    client, fetch = asked(server.url, "zenity", desktop)
    assert "The server says: “\\n<b>Bank</b>‹U+202E›&amp;‹U+200B›xxx" in desktop.hear("The server says: ")["name"]
    desktop.picture("zenity-hostile")
    desktop.has_keyboard("Watchword")
    desktop.key("Escape")
    assert client.wait(fetch)["error"]["data"]["kind"] == "challengeCancelled"


@pytest.mark.tier3("windows")
def test_zenity_asks_for_consent(stage, started, desktop, guest):
    broker = stage.broker()
    started("zenity", desktop, broker)
    # After the refusal, no login is requested for this program.
    for keys, status, reason in [(("Home", "space", "Return"), 200, None), (("Escape",), 401, "consentDenied")]:
        program = guest(broker)
        desktop.hear_all("Let “org.example.Maps” use your login?", "Allow once")
        desktop.has_keyboard("Watchword")
        desktop.key(*keys)
        result = program.read()["result"]
        assert (result["status"], result.get("noRespondent")) == (status, reason)
        eventually(lambda: not desktop.windows(), lambda: desktop.summary())


# pinentry

class Screen:
    """A terminal on which pinentry-curses draws."""

    def __init__(self):
        self.here, there = pty.openpty()
        self.name, self.shown = os.ttyname(there), ""
        os.set_blocking(self.here, False)
        self._there = there

    def expect(self, *texts):
        def look():
            try:
                self.shown += os.read(self.here, 65536).decode(errors="replace")
            except BlockingIOError:
                pass
            shown = re.sub(r"\x1b[\[(][0-9;?]*[A-Za-z]", " ", self.shown)
            return all(text in shown for text in texts)

        eventually(look, lambda: f"no {texts!r} in {self.shown!r}", 20)
        self.shown = ""

    def type(self, text):
        os.write(self.here, text.encode())

    def close(self):
        os.close(self.here)
        os.close(self._there)


@pytest.fixture
def screen(tmp_path):
    screen = Screen()
    (tmp_path / "bin").mkdir()
    os.symlink(shutil.which("pinentry-curses"), tmp_path / "bin" / "pinentry")
    screen.environment = {"GPG_TTY": screen.name, "TERM": "vt100", "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    yield screen
    screen.close()


def test_pinentry_asks_at_the_terminal(stage, asked, screen):
    """The server's text is wider than the terminal."""
    server, password = stage.protected(realm="Staff %41 " + "x" * 100)
    client, fetch = asked(server.url, "pinentry", environment=screen.environment)
    screen.expect("Staff %41 xxx")
    screen.type("bob\r")
    screen.expect("Password of bob")
    screen.type(password + "\r")
    assert answered(client, fetch) == 200


def test_pinentry_asks_whether_to_trust(stage, started, tls_server, screen):
    server = tls_server("self-signed")
    started("pinentry", environment=screen.environment)
    client = stage.client(delivery=None)
    for count, typed in enumerate(["\r", "7\r", "0\r"]):
        fetch = ask(client, server.url)
        screen.expect("or nothing: Do not trust")
        screen.type(typed)
        if count:
            screen.expect("1  Stop asking")
            screen.type(typed)
        assert client.wait(fetch)["error"]["data"]["kind"] == "serverNotTrusted"
    fetch = ask(client, server.url)
    screen.expect("1  Trust once")
    client.cancel(fetch)
    fetch = ask(client, server.url)
    screen.expect("1  Trust once")
    screen.type("1\r")
    assert answered(client, fetch) == 200


def test_pinentry_asks_for_consent(stage, started, guest, screen):
    broker = stage.broker()
    started("pinentry", broker=broker, environment=screen.environment)
    for typed, status, reason in [("1\r", 200, None), ("\r", 401, "consentDenied")]:
        program = guest(broker)
        # The second is drawn last: the rest of the first window must not be taken for the next one.
        screen.expect("Let “org.example.Maps” use your login?", "1  Allow once")
        screen.type(typed)
        result = program.read()["result"]
        assert (result["status"], result.get("noRespondent")) == (status, reason)


# SSH_ASKPASS

def test_askpass_is_the_next_where_there_is_neither_display_nor_terminal(stage, started, site, tmp_path):
    server, password = site
    environment = askpass(tmp_path, password)
    assert "shows questions with: askpass" in started(None, environment=environment, start_new_session=True).log
    client = stage.client(delivery=None)
    assert answered(client, ask(client, server.url)) == 200
    asked = (tmp_path / "asked").read_text()
    assert "The server says: “Staff”" in asked and "Password of bob:" in asked and password not in asked
    (tmp_path / "typed").unlink()


@pytest.mark.parametrize("code, kind", [("0", None), ("1", "serverNotTrusted")])
def test_askpass_answers_by_its_exit_code(asked, tls_server, tmp_path, code, kind):
    server = tls_server("self-signed")
    client, fetch = asked(server.url, "askpass", environment={**askpass(tmp_path, "unused"), "ASKPASS_CONFIRM": code})
    reply = client.wait(fetch)
    assert reply["result"]["status"] == 200 if kind is None else reply["error"]["data"]["kind"] == kind
    assert (tmp_path / "asked").read_text().startswith("confirm|")


def test_a_fallback_that_fails_is_followed_by_the_next(stage, started, site, tmp_path):
    server, password = site
    (tmp_path / "bin").mkdir()
    for name, script in [("zenity", "#!/bin/sh\nexit 5\n"), ("pinentry", "#!/bin/sh\necho what\n")]:
        executable((tmp_path / "bin" / name), script)
    environment = {
        **askpass(tmp_path, password), "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "DISPLAY": ":nowhere", "GDK_BACKEND": "x11"}
    agent = started(None, environment=environment, start_new_session=True)
    assert "shows questions with: zenity, pinentry, askpass" in agent.log
    client = stage.client(delivery=None)
    assert answered(client, ask(client, server.url)) == 200
    assert "zenity cannot ask: exited with status 5" in agent.log and "pinentry cannot ask" in agent.log
    (tmp_path / "typed").unlink()


def test_if_every_fallback_fails_the_question_is_returned(stage, started, site, tmp_path):
    server, _ = site
    agent = started("askpass", environment={**askpass(tmp_path, "unused"), "PATH": "/usr/bin:/bin"})
    (tmp_path / "askpass").unlink()
    client = stage.client(delivery=None)
    assert answered(client, ask(client, server.url)) == 401
    assert "no window or fallback can show the question" in agent.log


# The terminal

@contextlib.contextmanager
def agent_at_terminal(broker):
    """Starts an agent in the foreground of a terminal."""
    terminal = Terminal(str(AGENT), "--fallback", "terminal", environment={
        "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1",
        **broker.environment, "WATCHWORD_SOCKET": broker.socket})
    try:
        terminal.expect("registered with the broker")
        yield terminal
    finally:
        os.kill(terminal.child, signal.SIGTERM)
        assert terminal.end() == 0


def test_the_terminal_asks_for_consent(stage, guest):
    broker = stage.broker()
    with agent_at_terminal(broker) as terminal:
        program = guest(broker)
        terminal.expect("Let “org.example.Maps” use your login?")
        terminal.answer({"or [0]: ": "1"})
        assert program.read()["result"]["status"] == 200
        terminal.shown = b""
        guest(broker)
        terminal.answer({"or [0]: ": ""})
        for _ in range(2):
            result = program.read()["result"]
            assert (result["status"], result["noRespondent"]) == (401, "consentDenied"), "no further question is shown"
            guest(broker)


def test_the_terminal_asks_without_showing_the_password(stage, site):
    server, password = site
    with agent_at_terminal(stage.broker()) as terminal:
        client = stage.client(delivery=None)
        fetch = ask(client, server.url)
        terminal.expect("The server says: “Staff”", "User: ")
        client.cancel(fetch)
        terminal.expect("No longer needed.")
        fetch = ask(client, server.url)
        terminal.expect("User: ", times=2)
        terminal.type("bob\n")
        terminal.answer({"Password of bob: ": password})
        assert answered(client, fetch) == 200
    # All that was shown has been read at the end of the agent.
    assert password.encode() not in terminal.shown


def test_at_the_terminal_the_name_of_a_saved_login_is_enough(stage, gnome):
    server, password = two_logins(stage, gnome)
    with agent_at_terminal(stage.broker(environment=gnome.for_broker)) as terminal:
        client = stage.client(delivery=None)
        fetch = ask(client, server.url)
        terminal.expect("Saved logins: ", "Type one of these names to use it.")
        terminal.answer({"User: ": "alice"})
        assert answered(client, fetch) == 200
    assert b"Password" not in terminal.shown and server.authorizations == [None, basic("alice", password)]
