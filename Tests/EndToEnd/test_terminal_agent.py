"""`watchword agent`: the questions of all programs at one terminal."""
import json

import pytest

from rig.bodies import eventually
from rig.scripted import basic_server
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
        """Continues without a login."""
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


def test_a_missing_terminal_is_reported(stage):
    done = Shell(stage.broker()).run("agent")
    assert done.returncode == 1 and b"no terminal available" in done.stderr


def test_a_refusal_of_the_broker_is_reported(stage):
    shell = Shell(stage.broker())
    shell.environment["WATCHWORD_SOCKET"] = shell.environment["WATCHWORD_SOCKET"].replace("broker.sock", "restricted.sock")
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
