"""Credentials before a challenge: which respondent decides about them, and to which servers they are sent."""
import base64

from rig.client import password_answer
from rig.scripted import basic_server


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def own(user, password):
    return {"type": "password", "user": user, "password": password}


def test_the_requests_own_password_is_sent_with_the_first_request(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    client = stage.client()
    for preemptive, sent in [("always", [basic("bob", password)]), (True, [None, basic("bob", password)])]:
        # Nothing is remembered without a challenge that names a realm.
        assert client.call("credential/list", {})["result"]["credentials"] == []
        count = len(server.requests)
        result = client.fetch(server.url, credential=own("bob", password), auth={"preemptive": preemptive})["result"]
        assert result["status"] == 200 and result["auth"]["source"] == "explicit"
        assert server.authorizations[count:] == sent


def test_a_wrong_one_is_sent_once(stage):
    password, wrong = stage.secret(), stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server), stage.allow(wrong, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    result = client.fetch(server.url, credential=own("bob", wrong), auth={"preemptive": "always"})["result"]
    assert result["status"] == 200
    assert server.authorizations == [basic("bob", wrong), basic("bob", password)]


def test_the_mode_everything_decides_about_the_sessions_login(stage):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    first = stage.client(answer=lambda challenge: password_answer("bob", password))
    assert first.fetch(server.url)["result"]["status"] == 200
    count, asked = len(server.requests), []
    careful = stage.client(answer=lambda challenge: asked.append(challenge) or {"action": "continue"})
    assert "result" in careful.call("auth/subscribe", {"mode": "everything"})
    assert careful.fetch(server.url)["result"]["status"] == 401
    assert server.authorizations[count:] == [None] and len(asked) == 1
    assert asked[0]["proposedCredential"]["user"] == "bob"
