"""What is not remembered: an answer for this time only, and whatever was under way when somebody said to forget (rule 17)."""
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


def test_rule_17_an_answer_for_this_time_serves_the_same_process_and_no_other(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    broker = stage.broker()
    asked, beside = stage.client(), stage.client()
    call = asked.start("fetch/run", {"url": f"{server.url}/1"})
    challenge = asked.challenges.get(timeout=10)
    same = beside.start("fetch/run", {"url": f"{server.url}/2"})
    other = subprocess.Popen([sys.executable, "-c", CLIENT, broker.socket, f"{server.url}/3"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, text=True)
    other.stdin.write(json.dumps({"action": "continue"}) + "\n")
    other.stdin.flush()
    eventually(lambda: waiting(asked) == 2, "they do not wait")
    asked.reply(challenge, password_answer("bob", password, persistence="none"))
    assert asked.wait(call)["result"]["status"] == beside.wait(same)["result"]["status"] == 200
    assert json.loads(other.communicate(timeout=30)[0]) == {"asked": [0], "status": 401, "kind": None}
    assert {request.target for request in server.requests if request.authorization} == {"/1", "/2"}


class Held:
    """A server that lets bob in, and holds back what it says to a login until it may go on."""

    def __init__(self, stage, password):
        self.may_go_on, self.has_come = threading.Event(), threading.Event()
        self.server = stage.server(basic_server("bob", password))
        self.inner, self.server.handler = self.server.handler, self
        stage.allow(password, self.server)

    def __call__(self, request):
        if request.authorization and not self.may_go_on.is_set():
            self.has_come.set()
            assert self.may_go_on.wait(30)
        return self.inner(request)


FORGETTING = {
    "session/clear": [("session/clear", {})], "one origin": [("session/clear", "origin")],
    "credential/forget": [("credential/forget", "space")], "broker/lock": [("broker/lock", {}), ("broker/unlock", {})]}


@pytest.mark.parametrize("forgetting", FORGETTING)
def test_what_is_forgotten_during_a_login_is_not_brought_back_by_the_response(stage, forgetting):
    password = stage.secret()
    held = Held(stage, password)
    server, client, beside = held.server, stage.client(), stage.client()
    call = client.start("fetch/run", {"url": server.url})
    client.reply(client.challenges.get(timeout=10), password_answer("bob", password))
    assert held.has_come.wait(10)
    other = beside.start("fetch/run", {"url": f"{server.url}/other"})
    eventually(lambda: waiting(client) == 1, "it does not wait")
    space = {"protectionSpace": {"protocol": "http", "host": "127.0.0.1", "port": server.port}}
    for method, params in FORGETTING[forgetting]:
        params = {"origin": {"origin": server.url}, "space": space}.get(params, params) if isinstance(params, str) else params
        assert "result" in client.call(method, params)
    held.may_go_on.set()
    assert client.wait(call)["result"]["status"] == 200
    assert client.call("credential/list")["result"]["credentials"] == []
    # Whoever waited is asked, and is not served with what was to be forgotten.
    beside.reply(beside.challenges.get(timeout=10), {"action": "continue"})
    assert beside.wait(other)["result"]["status"] == 401
    before = len(server.requests)
    again = client.start("fetch/run", {"url": server.url})
    client.reply(client.challenges.get(timeout=10), {"action": "continue"})
    assert client.wait(again)["result"]["status"] == 401
    assert [request.authorization for request in server.requests[before:]] == [None]


def test_a_preemptive_login_that_is_under_way_brings_nothing_back(stage):
    password = stage.secret()
    held = Held(stage, password)
    held.may_go_on.set()
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    assert client.fetch(held.server.url)["result"]["status"] == 200
    held.may_go_on.clear()
    call = client.start("fetch/run", {"url": held.server.url})
    assert held.has_come.wait(10)
    client.call("session/clear", {})
    held.may_go_on.set()
    assert client.wait(call)["result"]["exchanges"] == 1
    assert client.call("credential/list")["result"]["credentials"] == []
    assert held.server.authorizations.count(basic(password)) == 2
