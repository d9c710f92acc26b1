"""Challenges over the real socket: the effect of each answer, as received by the server."""
import base64

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.scripted import DigestCheck, basic_server, response


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("framing", ["lines", "headers"])
def test_a_credential_is_asked_for_once_and_remembered(stage, framing):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
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


@pytest.mark.parametrize("action, status, kind", [
    ("continue", 401, None), ("default", 401, None), ("reject", 401, None), ("cancel", None, "challengeCancelled")])
def test_rules_11_to_14_the_other_answers_send_nothing(stage, action, status, kind):
    server = stage.server(basic_server("bob", stage.secret()))
    client = stage.client(answer=lambda params: {"action": action})
    reply = client.fetch(server.url)
    if kind:
        assert reply["error"]["data"]["kind"] == kind
        assert client.notifications.get(timeout=30)["method"] == "auth/cancelled"
    else:
        assert reply["result"]["status"] == status
        assert reply["result"]["body"]["value"] == "please log in"
    assert server.authorizations == [None]


def test_rule_9_a_refused_credential_is_not_sent_twice(stage):
    wrong = stage.secret()
    server = stage.server(basic_server("bob", stage.secret()))
    stage.allow(wrong, server)
    asked = []
    client = stage.client(answer=lambda params: asked.append(params) or password_answer("bob", wrong))
    assert client.fetch(server.url)["error"]["data"]["kind"] == "tooManyAttempts"
    assert server.authorizations == [None, basic("bob", wrong)]
    assert asked[2]["error"]["kind"] == "credentialAlreadyRefused"


def test_rule_9_the_deadline_ends_the_wait(stage):
    stage.broker("--challenge-deadline-ms", "300")
    server = stage.server(basic_server("bob", stage.secret()))
    client = stage.client()
    reply = client.fetch(server.url)
    assert reply["result"]["status"] == 401
    challenge = client.challenges.get(timeout=30)
    assert client.notifications.get(timeout=30) == {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": challenge["id"]}}
    client.reply(challenge, password_answer("bob", stage.secret()))
    assert client.call("ping")["result"] == {}
    assert client.call("server/status")["result"]["ignoredReplies"] == 1
    assert server.authorizations == [None]


def test_cancelling_a_fetch_withdraws_its_challenge(stage):
    server = stage.server(basic_server("bob", stage.secret()))
    client = stage.client()
    call = client.start("fetch/run", {"url": server.url})
    challenge = client.challenges.get(timeout=30)
    client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
    assert client.wait(call)["error"]["code"] == -32800
    heard = [client.notifications.get(timeout=30) for _ in range(2)]
    assert [message["method"] for message in heard] == ["$/cancelRequest", "auth/cancelled"]
    assert heard[1]["params"]["challengeId"] == challenge["params"]["challengeId"]
    assert server.authorizations == [None]


def test_a_killed_client_ends_only_its_own_fetch(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
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


@pytest.mark.parametrize("times", [1, 2])
def test_digest_stale_asks_no_respondent_and_endless_stale_gets_four_requests(stage, times):
    password = stage.secret()
    once = DigestCheck("bob", password, stale_times=times)
    server = stage.server(once)
    asked = []
    client = stage.client(answer=lambda params: asked.append(params) or password_answer("bob", password))
    assert client.fetch(server.url)["result"]["exchanges"] == 2 + times
    assert len(asked) == 1 and once.problems == []
    stubborn = stage.server(DigestCheck("bob", password, stale_times=1000))
    quiet = stage.client(delivery=None)
    credential = {"type": "password", "user": "bob", "password": password}
    assert quiet.fetch(stubborn.url, credential=credential)["result"]["status"] == 401
    assert len(stubborn.requests) == 4


def test_no_credential_is_sent_before_a_challenge(stage):
    password = stage.secret()
    server = stage.server(lambda request: response(200, b"open"))
    client = stage.client()
    credential = {"type": "password", "user": "bob", "password": password}
    assert client.fetch(server.url, credential=credential)["result"]["status"] == 200
    assert client.fetch(f"http://bob:{password}@127.0.0.1:{server.port}/")["result"]["auth"] is None
    assert server.authorizations == [None, None]


def test_rule_23_no_credential_goes_to_another_origin(stage):
    password = stage.secret()
    other = stage.server(basic_server("bob", "another password"))

    def handle(request):
        if request.authorization is None:
            return response(401, b"", 'WWW-Authenticate: Basic realm="Staff"')
        return response(302, b"", f"Location: {other.url}/x")

    first = stage.server(handle)
    stage.allow(password, first)
    client = stage.client(delivery=None)
    credential = {"type": "password", "user": "bob", "password": password}
    reply = client.fetch(first.url, credential=credential, headers={"X-Key": "secret", "Accept": "a/b"})
    assert reply["result"]["status"] == 401
    assert other.authorizations == [None]
    assert other.requests[0].header("X-Key") is None
    assert other.requests[0].header("Accept") == "a/b"


def test_rule_r4_a_scheme_hidden_in_a_realm_sends_nothing(stage):
    password = stage.secret()
    server = stage.server(lambda request: response(401, b"", 'WWW-Authenticate: Newauth realm="foo, Basic realm=evil"'))
    credential = {"type": "password", "user": "bob", "password": password}
    asked = []
    client = stage.client(answer=lambda challenge: asked.append(challenge) or {"action": "continue"})
    assert client.fetch(server.url, credential=credential)["result"]["status"] == 401
    assert [challenge["protectionSpace"]["authenticationMethod"] for challenge in asked] == ["other"]
    assert server.authorizations == [None]


def test_notification_delivery(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
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
