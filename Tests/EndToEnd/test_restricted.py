"""The restricted socket, for containers and other machines: fetches and their own challenges, and no stored credentials."""
import os
import re
import stat

import pytest

from rig.bodies import Attached
from rig.client import Client, password_answer
from rig.schemas import PROTOCOL
from rig.scripted import basic_server, response

#: MethodTableTests compares this table with the methods in the source.
REFUSED = re.findall(r"^\| `([^`]+)` \|.*\| no \|$", (PROTOCOL / "SPECIFICATION.md").read_text(), re.M)


def path_of(broker):
    return os.path.join(os.path.dirname(broker.socket), "restricted.sock")


@pytest.fixture
def both(stage):
    """A client that has logged in on the main socket, one on the restricted socket, and the challenges of the latter."""
    server, password = stage.protected("bob")
    main, asked = stage.client(answer=lambda challenge: password_answer("bob", password)), []
    answers = [password_answer("bob", password, persistence="permanent")] * 9
    other = Client(path_of(stage.brokers[0]), answer=lambda challenge: asked.append(challenge) or answers.pop(0))
    stage.clients.append(other)
    assert main.fetch(server.url)["result"]["auth"]["source"] == "client"
    assert main.fetch(server.url)["result"]["auth"]["source"] == "session"
    return main, other, asked, server


def test_rule_g4_the_restricted_socket_uses_and_stores_no_credential(both):
    main, other, asked, server = both
    for times in [1, 2]:
        assert other.fetch(server.url)["result"]["auth"]["source"] == "client"
        assert len(asked) == times, "it is asked each time"
        assert asked[-1]["requester"]["restricted"] is True
    main.call("session/clear", {})
    assert other.fetch(server.url)["result"]["auth"]["source"] == "client"
    main.answer = lambda challenge: {"action": "continue"}
    assert main.fetch(server.url)["result"]["status"] == 401, "an answer on the restricted socket is not stored"


def test_the_answer_to_another_clients_question_is_refused(stage):
    server, password = stage.protected("bob")
    main = stage.client()
    other, silent = (Client(path_of(stage.brokers[0]), delivery=delivery) for delivery in ("request", None))
    stage.clients += [other, silent]
    call = main.start("fetch/run", {"url": server.url})
    question = main.challenges.get(timeout=30)
    others = other.start("fetch/run", {"url": server.url})
    own = other.challenges.get(timeout=30)
    assert silent.fetch(server.url)["result"]["status"] == 401, "it does not wait for others"
    main.reply(question, password_answer("bob", password))
    assert main.wait(call)["result"]["status"] == 200
    other.reply(own, {"action": "continue"})
    assert other.wait(others)["result"]["status"] == 401


def test_only_methods_for_fetching_and_answering_are_offered(both):
    main, other, _, _ = both
    assert len(REFUSED) > 15
    for method in REFUSED:
        assert other.call(method, {})["error"]["data"]["kind"] == "denied", method
    assert other.call("ping", {})["result"] == {}
    assert main.call("server/status", {})["result"]["session"] == {"entries": 1, "locked": False}
    main.call("session/clear", {})
    assert main.call("ping")["result"] == {} and other.call("ping")["result"] == {}
    told = [[message.get("method") for side, message in client.messages if side == "broker"] for client in (main, other)]
    assert "credential/changed" in told[0] and "credential/changed" not in told[1]


def test_the_socket_file_exists_as_long_as_the_broker(stage):
    broker = stage.broker()
    status = os.stat(path_of(broker))
    assert stat.S_ISSOCK(status.st_mode) and stat.S_IMODE(status.st_mode) == 0o600
    assert broker.stop() == 0
    assert not os.path.exists(path_of(broker))


def test_tokens_and_ids_of_the_main_socket_are_invalid_on_the_restricted_one(stage):
    """The reverse is also refused; and on the same socket, only tokens are valid on another connection."""
    server = stage.server(lambda request: response(200, b"of the user"))
    broker = stage.broker()
    for own, foreign in [(broker.socket, path_of(broker)), (path_of(broker), broker.socket)]:
        client, other, beside = (Client(path) for path in (own, foreign, own))
        stage.clients += [client, other, beside]
        begun = client.call("fetch/start", {"url": server.url})["result"]
        refused = Attached(foreign, begun["attachToken"])
        assert refused.reply["error"]["data"]["kind"] == "unknownFetch"
        for stranger in (other, beside):
            assert stranger.call("fetch/read", {"fetchId": begun["fetchId"]})["error"]["data"]["kind"] == "unknownFetch"
            assert stranger.call("fetch/cancel", {"fetchId": begun["fetchId"]})["result"] == {"cancelled": False}
            assert stranger.call("fetch/list")["result"]["fetches"] == []
        assert Attached(own, begun["attachToken"]).read() == b"of the user"


def test_a_challenge_of_the_main_socket_cannot_be_answered_on_the_restricted_one(stage):
    password = stage.secret()
    server, second = (stage.server(basic_server("bob", password)) for _ in range(2))
    broker = stage.broker()
    for own, foreign in [(broker.socket, path_of(broker)), (path_of(broker), broker.socket)]:
        client, halves, other = Client(own, delivery="notification"), Client(own, delivery="result"), Client(foreign)
        stage.clients += [client, halves, other]
        call = client.start("fetch/run", {"url": server.url})
        pending = client.notifications.get(timeout=30)["params"]["challengeId"]
        answer = password_answer("bob", password)
        assert other.call("auth/respond", {"challengeId": pending, "answer": answer})["result"]["accepted"] is False
        assert other.call("auth/listPending")["result"]["challenges"] == []
        resume = halves.fetch(second.url)["result"]["resume"]
        refused = other.call("fetch/run", {"resume": resume, "answer": answer})
        assert refused["error"]["data"]["kind"] == "unknownResume"
        client.call("auth/respond", {"challengeId": pending, "answer": {"action": "continue"}})
        assert client.wait(call)["result"]["status"] == 401
        halves.call("fetch/run", {"resume": resume, "answer": {"action": "continue"}})
    assert set(server.authorizations + second.authorizations) == {None}
