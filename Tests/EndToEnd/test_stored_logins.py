"""Which of several stored logins is sent, with scripted servers that record every request."""
import itertools

import pytest

from rig.client import password_answer
from rig.keyring import SCHEMA, description, settle
from rig.scripted import DigestCheck, basic, basic_server, response


def never(challenge):
    pytest.fail(f"unexpected challenge: {challenge}")


# The strength that a server has shown applies to all spaces that a stored item matches.

def by_path(**handlers):
    """Returns a handler that calls another one for each first part of a path."""
    return lambda request: handlers[request.target.split("/")[1]](request)


def test_a_login_stored_without_a_realm_is_not_sent_by_basic_in_another_realm(stage, gnome):
    password = stage.secret()
    strong = DigestCheck("bob", password, realm="R", algorithm="SHA-256")
    weak = lambda request: response(401, b"", 'WWW-Authenticate: Basic realm="X"')  # noqa: E731
    server = stage.server(by_path(strong=strong, weak=weak))
    item = description(server, "bob")
    item.pop("domain", None), item.pop("authtype", None)
    gnome.put(password, schema=SCHEMA, **item)
    asked = []
    client = stage.client(
        broker=stage.broker(environment=gnome.for_broker), answer=lambda challenge: asked.append(challenge) or {"action": "continue"})
    assert client.fetch(f"{server.url}/strong/1")["result"]["status"] == 200 and not asked
    assert client.fetch(f"{server.url}/weak/1")["result"]["status"] == 401
    assert [challenge["downgrade"] for challenge in asked] == [True]
    sent = [text for text in server.authorizations if text]
    # A nonce of Digest is valid for the whole server, so its response may be sent before a challenge; a password may not.
    assert sent and all(text.startswith("Digest ") for text in sent) and strong.problems == []
    settle(client)
    assert [secret for _, secret in gnome.items()] == [password]


@pytest.mark.parametrize("plain, strong, again", [("plain/1", "strong/1", "plain/2"), ("plain", "strong", "plain")])
def test_basic_where_it_was_accepted_before_is_not_a_downgrade(stage, plain, strong, again):
    password = stage.secret()
    checked = basic_server("bob", password, realm="R")
    server = stage.server(by_path(strong=DigestCheck("bob", password, realm="R"), plain=checked.handler))
    checked.close()
    stage.allow(password, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    for part in (plain, strong):
        assert client.fetch(f"{server.url}/{part}")["result"]["status"] == 200
    client.answer = never
    result = client.fetch(f"{server.url}/{again}", auth={"preemptive": False})["result"]
    assert result["status"] == 200 and server.authorizations[-1] == basic("bob", password)


# Each server has a share of the session cache.

def test_three_hundred_realms_of_one_site_push_out_no_other_login(stage):
    precious, cheap = stage.secret(), stage.secret()
    numbers = itertools.count()
    realms = {}

    def hostile(request):
        realm = realms.setdefault(request.target, f"realm {next(numbers)}")
        right = request.authorization == basic("eve", cheap)
        return response(200, b"ok") if right else response(401, b"", f'WWW-Authenticate: Basic realm="{realm}"')

    site, other = stage.server(basic_server("bob", precious)), stage.server(hostile)
    stage.allow(precious, site), stage.allow(cheap, other)
    client = stage.client(answer=lambda challenge: (
        password_answer("bob", precious) if challenge["protectionSpace"]["port"] == site.port else password_answer("eve", cheap)))
    assert client.fetch(f"{site.url}/a/1")["result"]["status"] == 200
    for number in range(300):
        assert client.fetch(f"{other.url}/{number}/x", auth={"preemptive": False})["result"]["status"] == 200
    assert len(realms) == 300
    client.answer = never
    assert client.fetch(f"{site.url}/a/2")["result"]["status"] == 200
    listed = client.call("credential/list", {})["result"]["credentials"]
    of_other = [one for one in listed if one["protectionSpace"]["port"] == other.port]
    assert 0 < len(of_other) <= 32


# Which of several logins is used

@pytest.mark.parametrize("chosen", ["alice", "bob"])
def test_the_default_is_used_whether_it_was_stored_or_accepted(stage, chosen):
    passwords = {"alice": stage.secret(), "bob": stage.secret()}
    right = {basic(user, password) for user, password in passwords.items()}
    server = stage.server(lambda request: (
        response(200, b"ok") if request.authorization in right else response(401, b"", 'WWW-Authenticate: Basic realm="R"')))
    for password in passwords.values():
        stage.allow(password, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", passwords["bob"]))
    assert client.fetch(f"{server.url}/1")["result"]["status"] == 200
    client.answer = never
    client.store(server, "alice", passwords["alice"], realm="R", authenticationMethod="httpBasic")
    listed = client.call("credential/list", {})["result"]["credentials"]
    ids = {one["user"]: one["id"] for one in listed}
    assert set(ids) == {"alice", "bob"} and [one["isDefault"] for one in listed].count(True) == 1
    for user in (chosen, "alice" if chosen == "bob" else "bob", chosen):
        assert client.call("credential/setDefault", {"id": ids[user]})["result"] == {}
        listed = client.call("credential/list", {})["result"]["credentials"]
        ids = {one["user"]: one["id"] for one in listed}
        assert [one["user"] for one in listed if one["isDefault"]] == [user]
        assert client.fetch(f"{server.url}/2", auth={"preemptive": False})["result"]["status"] == 200
        assert server.authorizations[-1] == basic(user, passwords[user])


@pytest.mark.parametrize("preemptive", [True, False])
def test_a_password_that_is_stored_replaces_the_accepted_one(stage, preemptive):
    old, new = stage.secret(), stage.secret()
    before, after = basic_server("bob", old, realm="R"), basic_server("bob", new, realm="R")
    server = stage.server(before.handler)
    for one in (before, after):
        one.close()
    stage.allow(old, server), stage.allow(new, server)
    client = stage.client(answer=lambda challenge: password_answer("bob", old))
    assert client.fetch(f"{server.url}/1")["result"]["status"] == 200
    client.answer, server.handler = never, after.handler
    client.store(server, "bob", new, realm="R", authenticationMethod="httpBasic")
    count = len(server.requests)
    assert client.fetch(f"{server.url}/2", auth={"preemptive": preemptive})["result"]["status"] == 200
    assert {text for text in server.authorizations[count:] if text} == {basic("bob", new)}


# Proposed credentials

def test_after_reject_a_proposed_login_is_an_answer(stage):
    password = stage.secret()
    offers = ('WWW-Authenticate: Digest realm="R", nonce="n", qop="auth"', 'WWW-Authenticate: Basic realm="R"')
    server = stage.server(lambda request: (
        response(200, b"ok") if request.authorization == basic("bob", password) else response(401, b"", *offers)))
    stage.allow(password, server)
    asked = []

    def answer(challenge):
        asked.append(challenge)
        if challenge["protectionSpace"]["authenticationMethod"] == "httpDigest":
            # The first answer is refused; the second one leaves the scheme.
            return password_answer("bob", password) if challenge["previousFailureCount"] == 0 else {"action": "reject"}
        if (challenge.get("proposedCredential") or {}).get("hasPassword"):
            return {"action": "credential", "credential": {"type": "proposed"}}
        return password_answer("bob", password)

    client = stage.client(answer=answer)
    assert client.fetch(f"{server.url}/1")["result"]["status"] == 200
    assert [challenge.get("error") for challenge in asked].count("nothingProposed") == 0
    methods = [challenge["protectionSpace"]["authenticationMethod"] for challenge in asked]
    assert methods == ["httpDigest", "httpDigest", "httpBasic"]
