"""A client that ends while it is asked: no stored credential is sent for it, and no other respondent is asked instead."""
import json

import pytest
from rig import audit
from rig.bodies import eventually
from rig.subjects import HALF, WHOLLY, DyingClient
from rig.scripted import basic_server

RUNS = 5


def stored(stage, **more):
    """A broker whose session has bob's password for a server."""
    broker = stage.broker()
    secret = stage.secret()
    server = stage.server(basic_server("bob", secret))
    stage.allow(secret, server)
    observer = stage.client(broker=broker, **more)
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic"}
    reply = observer.call("credential/store", {
        "protectionSpace": space, "credential": {"type": "password", "user": "bob", "password": secret, "persistence": "forSession"}})
    assert "result" in reply, reply
    return broker, server, observer


def settle(observer):
    """Waits until no fetch and no request is in flight."""
    def rest():
        status = observer.call("server/status")["result"]
        return [status["fetches"]["running"], status["challenges"]["pending"], status["engine"]["running"], status["connections"] - 1]

    eventually(lambda: not any(rest()), lambda: f"{rest()} remain")


@pytest.mark.parametrize("way", WHOLLY + HALF)
def test_rule_26_nothing_is_sent_when_a_client_dies(stage, way):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        # Several fetches that wait for the same answer: none of them inherits the question, or the credential that it proposed.
        dying = DyingClient(broker.socket, way, *(f"{server.url}/{run}/{number}" for number in range(3)))
        asked = dying.wait_for("auth/challenge")
        assert asked["params"]["proposedCredential"]["source"] == "session"
        eventually(lambda: len(server.requests) == 3 * (run + 1), "the server has not received a request of every fetch")
        dying.die()
        if way == "half":
            assert dying.statuses() == [401, 401, 401]
            dying.socket.close()
        settle(observer)
    assert server.authorizations == [None] * 3 * RUNS
    # Records are written in order.
    audit.clear(observer, [1])
    audit.wait_for(lambda: "sessionCleared" in audit.kinds(broker))
    assert "credentialUsed" not in audit.kinds(broker)


@pytest.mark.parametrize("way", WHOLLY)
def test_a_question_of_a_disconnected_client_reaches_no_agent(stage, way):
    broker, server, observer = stored(stage)
    observer.call("agent/register", {"name": "desk"})
    for run in range(RUNS):
        dying = DyingClient(broker.socket, way, f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        dying.die()
        settle(observer)
    assert observer.challenges.empty() and server.authorizations == [None] * RUNS


def test_rule_21_the_question_of_a_client_that_cannot_answer_goes_to_an_agent(stage):
    broker, server, agent = stored(stage)
    agent.call("agent/register", {"name": "desk"})
    for run, (answer, status) in enumerate([({"action": "continue"}, 401), ({"action": "default"}, 401)]):
        dying = DyingClient(broker.socket, "half", f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        dying.die()
        asked = agent.challenges.get(timeout=30)
        assert asked["params"]["proposedCredential"]["source"] == "session"
        agent.reply(asked, answer)
        assert dying.statuses()[0] == status
        dying.socket.close()
    assert server.authorizations == [None, None]


@pytest.mark.parametrize("way", WHOLLY + HALF)
def test_a_client_that_dies_before_its_reply_to_can_authenticate_sends_nothing(stage, way):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        dying = DyingClient(
            broker.socket, way, f"{server.url}/{run}", subscription={"mode": "classic", "asksCanAuthenticate": True})
        dying.wait_for("auth/canAuthenticate")
        dying.die()
        if way == "half":
            assert dying.statuses() == [401]
            dying.socket.close()
        settle(observer)
    assert server.authorizations == [None] * RUNS


def test_a_deadline_sends_nothing(stage):
    broker = stage.configured("[limits]\nchallenge-deadline-s = 1\n")
    secret = stage.secret()
    server = stage.server(basic_server("bob", secret))
    stage.allow(secret, server)
    client = stage.client(broker=broker)
    space = {"protocol": "http", "host": "127.0.0.1", "port": server.port}
    client.call("credential/store", {
        "protectionSpace": space, "credential": {"type": "password", "user": "bob", "password": secret, "persistence": "forSession"}})
    client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(server.url)["result"]["status"] == 401
    assert server.authorizations == [None]
    audit.wait_for(lambda: "challengeUnanswered" in audit.kinds(broker))
    unanswered = [event for event in audit.events(broker) if event["kind"] == "challengeUnanswered"]
    assert [(event["by"], event["reason"]) for event in unanswered] == [("client", "deadline")]
    # The answer was received: the stored credential is sent.
    client.answer = lambda challenge: {"action": "default"}
    assert client.fetch(server.url)["result"]["status"] == 200


def test_an_agent_that_dies_sends_nothing(stage):
    broker, server, observer = stored(stage)
    for run in range(RUNS):
        dying = DyingClient(broker.socket, "half", f"{server.url}/{run}")
        dying.wait_for("auth/challenge")
        agent = stage.client(broker=broker)
        agent.call("agent/register", {"name": "desk"})
        dying.die()
        agent.challenges.get(timeout=30)
        agent.close()
        assert dying.statuses() == [401]
        dying.socket.close()
        settle(observer)
    assert server.authorizations == [None] * RUNS


def test_an_answer_before_the_end_counts(stage):
    broker, server, observer = stored(stage)
    dying = DyingClient(broker.socket, "half", server.url)
    asked = dying.wait_for("auth/challenge")
    dying.socket.sendall(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {
        "action": "credential", "credential": {"type": "proposed"}}}).encode() + b"\n")
    dying.die()
    assert dying.statuses() == [200]
    dying.socket.close()
