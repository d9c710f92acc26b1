"""`watchword agent`: the questions of all programs at one terminal."""
import json

import pytest

from rig.bodies import eventually
from rig.scripted import basic_server
from rig.terminal import Shell


@pytest.fixture
def desk(stage):
    return Desk(stage, stage.broker())


class Desk:
    def __init__(self, stage, broker, *options):
        self.broker, self.shell = broker, Shell(broker)
        self.client = stage.client(broker=broker, delivery=None)
        self.terminal = self.shell.at_terminal("agent", *options)
        self.terminal.expect("showing the questions of all programs")

    def status(self):
        return json.loads(self.shell.run("status", "--json").stdout)

    def end(self):
        self.terminal.type("\x03")
        return self.terminal.end()


def test_the_login_of_a_program_that_cannot_ask(stage, desk):
    wrong, right = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", right))
    stage.allow(wrong, server), stage.allow(right, server)
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


def test_a_cancelled_fetch_withdraws_its_question(stage, desk):
    server = stage.server(basic_server("bob", "x"))
    number = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.expect("User: ")
    desk.client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
    desk.terminal.expect("The question was withdrawn")
    assert desk.client.wait(number)["error"]["code"] == -32800
    desk.terminal.shown = b""
    second = desk.client.start("fetch/run", {"url": server.url + "/second"})
    desk.terminal.expect("User: ")
    desk.terminal.type("\x04")
    assert desk.client.wait(second)["result"]["status"] == 401
    assert desk.end() == 130


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
    assert desk.end() == 130


def test_the_questions_of_a_program_are_stopped_after_the_second_refusal(stage, desk):
    server = stage.server(basic_server("bob", "x"))
    first = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.expect("User: ")
    desk.terminal.type("\x04")
    assert desk.client.wait(first)["result"]["status"] == 401
    assert b"Stop all" not in desk.terminal.shown
    desk.terminal.shown = b""
    second = desk.client.start("fetch/run", {"url": server.url + "/second"})
    desk.terminal.expect("User: ")
    desk.terminal.type("\x04")
    desk.terminal.answer({"? y/N: ": "y"})
    assert desk.client.wait(second)["error"]["data"]["kind"] == "challengeCancelled"
    third = desk.client.fetch(server.url + "/third")["result"]
    assert third["status"] == 401 and third["noRespondent"] == "stopped"
    [stopped] = desk.client.call("prompt/list")["result"]["stopped"]
    shell = Shell(desk.broker)
    listed = shell.run("prompts", "list")
    assert listed.returncode == 0 and stopped["subject"].encode() in listed.stdout
    assert shell.run("prompts", "resume", "exe:/nowhere").returncode == 1
    assert shell.run("prompts", "resume").returncode == 64
    resumed = shell.run("prompts", "resume", stopped["subject"])
    assert resumed.returncode == 0 and b"1 program resumed" in resumed.stdout
    assert b"No stopped programs." in shell.run("prompts", "list").stdout
    desk.terminal.shown = b""
    fourth = desk.client.start("fetch/run", {"url": server.url + "/fourth"})
    desk.terminal.expect("User: ")
    desk.client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": fourth}})
    desk.client.wait(fourth)
    assert desk.end() == 130


def test_the_agent_exits_with_a_message_when_the_broker_exits(desk):
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


def test_an_incomplete_password_does_not_answer_the_next_question(stage, desk):
    """The question is withdrawn while the user types."""
    server = stage.server(basic_server("bob", "x"))
    first = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.answer({"User: ": "bob"})
    desk.terminal.expect("Password for bob: ")
    desk.terminal.type("half of it")
    desk.client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": first}})
    desk.terminal.expect("The question was withdrawn")
    desk.client.wait(first)
    desk.terminal.shown = b""
    second = desk.client.start("fetch/run", {"url": server.url + "/second"})
    desk.terminal.answer({"User: ": "amy"})
    desk.terminal.expect("Password for ")
    assert b"Password for amy: " in desk.terminal.shown, desk.terminal.shown
    desk.terminal.type("\x04")
    assert desk.client.wait(second)["result"]["status"] == 401
    assert desk.end() == 130
