"""Data that is not remembered: an answer for one fetch only, and logins in progress when the session is cleared (SEMANTICS rule
17)."""
import json
import subprocess
import sys
import threading

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.scripted import basic_server
from test_sharing import CLIENT, basic


def waiting(client):
    return client.call("server/status")["result"]["fetches"]["waiting"]


def test_rule_17_an_answer_with_persistence_none_serves_the_same_process_and_no_other(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    broker = stage.broker()
    asked, beside = stage.client(), stage.client()
    call = asked.start("fetch/run", {"url": f"{server.url}/1"})
    challenge = asked.challenges.get(timeout=30)
    same = beside.start("fetch/run", {"url": f"{server.url}/2"})
    other = subprocess.Popen([sys.executable, "-c", CLIENT, broker.socket, f"{server.url}/3"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    other.stdin.write(json.dumps({"action": "continue"}) + "\n")
    other.stdin.flush()
    eventually(lambda: waiting(asked) == 2, "the fetches do not wait")
    asked.reply(challenge, password_answer("bob", password, persistence="none"))
    assert asked.wait(call)["result"]["status"] == beside.wait(same)["result"]["status"] == 200
    assert json.loads(other.communicate(timeout=30)[0]) == {"asked": [0], "status": 401, "kind": None}
    assert {request.target for request in server.requests if request.authorization} == {"/1", "/2"}


class Held:
    """A server that accepts bob, and delays its response to a login until it may continue."""

    def __init__(self, stage, password):
        self.may_continue, self.has_come = threading.Event(), threading.Event()
        self.server = stage.server(basic_server("bob", password))
        self.inner, self.server.handler = self.server.handler, self
        stage.allow(password, self.server)

    def __call__(self, request):
        if request.authorization and not self.may_continue.is_set():
            self.has_come.set()
            assert self.may_continue.wait(30)
        return self.inner(request)


FORGETTING = {
    "session/clear": [("session/clear", {})], "one origin": [("session/clear", "origin")],
    "credential/forget": [("credential/forget", "space")], "broker/lock": [("broker/lock", {}), ("broker/unlock", {})]}


@pytest.mark.parametrize("forgetting", FORGETTING)
def test_a_response_does_not_restore_a_login_that_was_forgotten_meanwhile(stage, forgetting):
    password = stage.secret()
    held = Held(stage, password)
    server, client, beside = held.server, stage.client(), stage.client()
    call = client.start("fetch/run", {"url": server.url})
    client.reply(client.challenges.get(timeout=30), password_answer("bob", password))
    assert held.has_come.wait(30)
    other = beside.start("fetch/run", {"url": f"{server.url}/other"})
    eventually(lambda: waiting(client) == 1, "the fetch does not wait")
    space = {"protectionSpace": {"protocol": "http", "host": "127.0.0.1", "port": server.port}}
    for method, params in FORGETTING[forgetting]:
        params = {"origin": {"origin": server.url}, "space": space}.get(params, params) if isinstance(params, str) else params
        assert "result" in client.call(method, params)
    held.may_continue.set()
    assert client.wait(call)["result"]["status"] == 200
    assert client.call("credential/list")["result"]["credentials"] == []
    # The waiting fetches are challenged, and do not use the forgotten login.
    beside.reply(beside.challenges.get(timeout=30), {"action": "continue"})
    assert beside.wait(other)["result"]["status"] == 401
    before = len(server.requests)
    again = client.start("fetch/run", {"url": server.url})
    client.reply(client.challenges.get(timeout=30), {"action": "continue"})
    assert client.wait(again)["result"]["status"] == 401
    assert [request.authorization for request in server.requests[before:]] == [None]


def test_a_preemptive_login_in_progress_does_not_restore_a_forgotten_login(stage):
    password = stage.secret()
    held = Held(stage, password)
    held.may_continue.set()
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    assert client.fetch(held.server.url)["result"]["status"] == 200
    held.may_continue.clear()
    call = client.start("fetch/run", {"url": held.server.url})
    assert held.has_come.wait(30)
    client.call("session/clear", {})
    held.may_continue.set()
    assert client.wait(call)["result"]["exchanges"] == 1
    assert client.call("credential/list")["result"]["credentials"] == []
    assert held.server.authorizations.count(basic(password)) == 2
