"""`watchword agent`: the questions of all programs at one terminal."""
import json

import pytest

from rig.subjects import Relay, flatpak
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
        self.terminal.expect("questions of all programs are asked here")

    def status(self):
        return json.loads(self.shell.run("status", "--json").stdout)

    def end(self):
        self.terminal.type("\x03")
        return self.terminal.end()


def test_the_log_in_of_a_program_that_cannot_ask(stage, desk):
    wrong, right = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", right))
    stage.allow(wrong, server), stage.allow(right, server)
    fetch = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.expect("asks for a log-in")
    desk.terminal.expect("User: ")
    desk.terminal.type("bob\n")
    desk.terminal.expect("Password for bob: ")
    desk.terminal.type(wrong + "\n")
    desk.terminal.expect("has refused the last answer (1 failed so far)")
    desk.terminal.expect("User [bob]: ")
    desk.terminal.type("\n")
    desk.terminal.expect("User [bob]: \r\nPassword for bob: ")
    desk.terminal.type(right + "\n")
    result = desk.client.wait(fetch)["result"]
    assert result["status"] == 200 and result["auth"]["source"] == "agent"
    assert b"A program (exe:/usr/bin/python3" in desk.terminal.shown, "who asks"
    assert wrong.encode() not in desk.terminal.shown and right.encode() not in desk.terminal.shown
    assert desk.status()["agents"] == [{"agentId": "a1", "name": "watchword agent", "priority": 0}]
    assert desk.end() == 130
    assert desk.status()["agents"] == []


def test_a_fetch_that_is_cancelled_takes_its_question_away(stage, desk):
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
def test_consent_for_a_sandbox(stage, desk, typed, is_allowed):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    place = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
    credential = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    assert "result" in desk.client.call("credential/store", {"protectionSpace": place, "credential": credential})
    command, info = flatpak()
    inside = Relay(desk.broker.socket, *command, pass_fds=[info])
    inside.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    desk.terminal.expect("flatpak:org.example.Maps")
    desk.terminal.expect("It wants to use the log-in of the session")
    desk.terminal.expect("May it? once/session/always/NO: ")
    for part in typed.splitlines(keepends=True):
        # What is typed before a question comes is no answer to it.
        desk.terminal.expect("May it? ")
        desk.terminal.shown = b""
        desk.terminal.type(part)
    if not is_allowed:
        desk.terminal.expect("User: ")
        desk.terminal.type("\x04")
        # The second refusal.
        desk.terminal.expect("Stop all questions of flatpak:org.example.Maps? y/N: ")
        desk.terminal.type("\n")
    while (message := inside.read()).get("id") != 1:
        pass
    assert message["result"]["status"] == (200 if is_allowed else 401)
    inside.close()
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
    desk.terminal.expect("? y/N: ")
    desk.terminal.type("y\n")
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
    assert resumed.returncode == 0 and b"1 program may ask again." in resumed.stdout
    assert b"The questions of no program are stopped." in shell.run("prompts", "list").stdout
    desk.terminal.shown = b""
    fourth = desk.client.start("fetch/run", {"url": server.url + "/fourth"})
    desk.terminal.expect("User: ")
    desk.client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": fourth}})
    desk.client.wait(fourth)
    assert desk.end() == 130


def test_a_broker_that_ends_ends_it_with_a_sentence(desk):
    desk.broker.stop()
    assert desk.terminal.end() == 2
    assert b"The broker has closed the connection" in desk.terminal.shown


def test_without_a_terminal_it_says_so(stage):
    done = Shell(stage.broker()).run("agent")
    assert done.returncode == 1 and b"There is no terminal to ask at" in done.stderr


def test_half_a_password_is_no_answer_to_the_next_question(stage, desk):
    """The question goes away under the user's fingers."""
    server = stage.server(basic_server("bob", "x"))
    first = desk.client.start("fetch/run", {"url": server.url})
    desk.terminal.expect("User: ")
    desk.terminal.type("bob\n")
    desk.terminal.expect("Password for bob: ")
    desk.terminal.type("half of it")
    desk.client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": first}})
    desk.terminal.expect("The question was withdrawn")
    desk.client.wait(first)
    desk.terminal.shown = b""
    second = desk.client.start("fetch/run", {"url": server.url + "/second"})
    desk.terminal.expect("User: ")
    desk.terminal.type("amy\n")
    desk.terminal.expect("Password for ")
    assert b"Password for amy: " in desk.terminal.shown, desk.terminal.shown
    desk.terminal.type("\x04")
    assert desk.client.wait(second)["result"]["status"] == 401
    assert desk.end() == 130
