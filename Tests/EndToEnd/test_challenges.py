"""Challenges over the real socket: the effect of each answer, as received by the server."""
import pytest

from rig.client import password_answer
from rig.scripted import basic


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
