"""Challenges over the real socket: the effect of each answer, as received by the server."""
import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.scripted import DigestCheck, basic, basic_server


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_credential_is_asked_for_once_and_remembered(stage, framing):
    server, password = stage.protected("bob")
    asked = []
    client = stage.client(framing=framing, answer=lambda params: asked.append(params) or password_answer("bob", password))
    first = client.fetch(server.url + "/a/one")["result"]
    second = client.fetch(server.url + "/a/two")["result"]
    assert (first["status"], first["exchanges"], first["auth"]["source"]) == (200, 2, "client")
    assert (second["status"], second["exchanges"], second["auth"]["source"]) == (200, 1, "session")
    assert first["body"] == {"type": "string", "value": "welcome"}
    assert server.authorizations == [None, basic("bob", password), basic("bob", password)]
    assert server.connections == 1
    assert len(asked) == 1
    assert asked[0]["protectionSpace"] == {
        "protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic",
        "isProxy": False, "receivesCredentialSecurely": False}
    assert asked[0]["requester"]["name"] == "rig"


def test_rule_7_a_failed_attempt_raises_the_count(stage):
    wrong, right = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", right))
    stage.allow(wrong, server), stage.allow(right, server)
    asked = []

    def answer(params):
        asked.append(params)
        return password_answer("bob", wrong if params["previousFailureCount"] == 0 else right)

    assert stage.client(answer=answer).fetch(server.url)["result"]["exchanges"] == 3
    assert [params["previousFailureCount"] for params in asked] == [0, 1]
    assert [challenge["failureResponse"]["status"] for challenge in asked[:2]] == [401, 401]
    assert asked[1]["proposedCredential"] == {"user": "bob", "hasPassword": True, "source": "client"}
    assert server.authorizations == [None, basic("bob", wrong), basic("bob", right)]


def test_a_killed_client_ends_only_its_own_fetch(stage):
    server, password = stage.protected("bob")
    leaving, staying = stage.client(), stage.client()
    leaving.start("fetch/run", {"url": server.url})
    leaving.challenges.get(timeout=30)
    call = staying.start("fetch/run", {"url": server.url})
    eventually(lambda: staying.call("server/status")["result"]["fetches"]["waiting"] == 1, "it does not wait")
    leaving.close()
    challenge = staying.challenges.get(timeout=30)
    assert challenge["params"]["previousFailureCount"] == 0
    assert server.authorizations == [None, None]
    staying.reply(challenge, password_answer("bob", password))
    assert staying.wait(call)["result"]["status"] == 200


@pytest.mark.parametrize("algorithm", ["MD5", "MD5-sess", "SHA-256", "SHA-256-sess", "SHA-512-256", "SHA-512-256-sess"])
def test_digest_with_a_rising_count(stage, algorithm):
    password = stage.secret()
    check = DigestCheck("bob", password, algorithm=algorithm, opaque="o/p=q")
    server = stage.server(check)
    client = stage.client(answer=lambda params: password_answer("bob", password))
    results = [client.fetch(f"{server.url}/x?n={number}")["result"] for number in range(4)]
    assert [result["status"] for result in results] == [200] * 4
    assert [result["exchanges"] for result in results] == [2, 1, 1, 1]
    assert check.counts == {"nonce1": 4}
    assert check.problems == []


def test_notification_delivery(stage):
    server, password = stage.protected("bob")
    client = stage.client(delivery="notification")
    call = client.start("fetch/run", {"url": server.url})
    pending = client.notifications.get(timeout=30)
    assert pending["method"] == "auth/pending"
    answer = {"challengeId": pending["params"]["challengeId"], "answer": password_answer("bob", password)}
    typo = {**answer, "answer": password_answer("bob", password, persistance="none")}
    assert client.call("auth/respond", typo)["result"]["reason"] == "invalid"
    assert client.call("auth/respond", answer)["result"] == {"accepted": True}
    assert client.wait(call)["result"]["status"] == 200
    assert client.call("auth/respond", answer)["result"] == {"accepted": False, "reason": "answered"}
    gone = {**answer, "challengeId": "never made"}
    assert client.call("auth/respond", gone)["result"] == {"accepted": False, "reason": "gone"}
