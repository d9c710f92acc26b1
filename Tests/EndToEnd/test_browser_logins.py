"""Logins in a browser for Bearer: the broker gets the token, at a scripted authorization server and resource."""
import time

import pytest

from rig.bodies import eventually
from rig.login_sites import Site, is_closed, log_in, started, statuses


@pytest.fixture
def site(stage):
    return Site(stage)


def test_a_login_in_the_browser_answers_the_challenge(stage, site):
    client = stage.client(broker=site.broker())
    fetch = client.start("fetch/run", {"url": site.url})
    challenge, page = log_in(client)
    result = client.wait(fetch)["result"]
    assert result["status"] == 200 and result["body"]["value"] == "for the bearer\n"
    login = challenge["params"]["login"]
    assert (login["flow"], login["issuer"], login["clientId"], login["scopes"]) == ("browser", site.server.issuer, "watchword", ["read"])
    assert challenge["params"]["protectionSpace"]["authenticationMethod"] == "bearer" and challenge["params"]["accepts"] == ["token"]
    assert page.status == 200 and b"logged in" in page.body and page.header("Cache-Control") == "no-store"
    cancelled = client.notifications.get(timeout=10)
    assert cancelled["method"] == "$/cancelRequest" or cancelled["params"].get("reason") == "answered", cancelled
    # The next request sends the token unasked, and nobody is asked.
    assert client.fetch(site.url)["result"]["exchanges"] == 1
    assert site.sent_tokens() == [None, site.server.access_tokens[0].value, site.server.access_tokens[0].value]
    assert not site.server.problems and not site.resource.problems


def test_one_login_serves_all_waiting_programs(stage, site):
    broker = site.broker()
    clients = [stage.client(broker=broker, delivery=None if index else "request") for index in range(10)]
    for client in clients[1:]:
        client.call("initialize", {"client": {"name": "program"}, "protocolVersion": 1})
    agent = clients[0]
    assert "result" in agent.call("agent/register", {"name": "tests"})
    calls = [(client, started(client, site.url)[0]) for client in clients[1:]]
    challenge, _ = log_in(agent)
    assert [client.wait(call)["result"]["status"] for client, call in calls] == [200] * 9
    assert agent.challenges.empty() and len(site.server.authorizations) == 1 and len(site.server.access_tokens) == 1
    assert challenge["params"]["requester"]["pid"]


def test_an_expired_token_is_renewed_without_a_question(stage, site):
    site.server.config(expires_in=2)
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]
    site.server.advance(3)
    eventually(lambda: client.fetch(site.url)["result"]["status"] == 200 and len(site.server.access_tokens) > 1, "the token is renewed")
    assert client.challenges.empty() and len(site.server.authorizations) == 1
    assert [form["grant_type"] for form in (one.form for one in site.server.requests_to("/token"))][:2] == ["authorization_code", "refresh_token"]


def test_a_revoked_token_is_renewed_once_for_all_fetches(stage, site):
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]
    site.server.revoke_access()
    assert statuses(client, started(client, site.url, 8)) == [200] * 8
    assert len(site.server.requests_to("/token")) == 2 and client.challenges.empty()


def test_a_revoked_login_is_asked_for_once(stage, site):
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]
    site.server.revoke_all()
    calls = started(client, site.url, 5)
    log_in(client)
    assert statuses(client, calls) == [200] * 5
    assert len(site.server.authorizations) == 2 and client.challenges.empty()


def test_a_missing_scope_is_asked_for_together_with_the_others(stage, site):
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]
    call = started(client, site.url + "/w")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["scopes"] == ["read", "write"]
    assert statuses(client, call) == [200]
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


def test_a_scope_that_is_not_granted_is_not_asked_for_again(stage, site):
    site.server.config(scopes=("read",))
    client = stage.client(broker=site.broker())
    call = started(client, site.url + "/w")
    log_in(client)
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["scopes"] == ["read", "write"]
    error = client.wait(call[0])["error"]
    assert error["data"]["kind"] == "loginFailed" and "did not grant write" in error["message"], error
    assert client.fetch(site.url)["result"]["status"] == 200
    time.sleep(0)
    error = client.fetch(site.url + "/w")["error"]
    assert error["data"]["kind"] == "loginFailed", error
    assert client.challenges.empty() and len(site.server.authorizations) == 2


def test_not_now_ends_the_login(stage, site):
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    challenge = client.challenges.get(timeout=30)
    client.reply(challenge, {"action": "cancel"})
    assert client.wait(call[0])["error"]["data"]["kind"] == "challengeCancelled"
    url = challenge["params"]["login"]["url"]
    # The listener closes a little later; whatever arrives until then has no effect.
    eventually(lambda: is_closed(url), "the listener is closed")
    assert not site.server.requests_to("/token")


def test_without_a_respondent_no_login_begins(stage, site):
    client = stage.client(broker=site.broker(), delivery=None)
    client.call("initialize", {"client": {"name": "program"}, "protocolVersion": 1})
    result = client.fetch(site.url, auth={"interaction": "none"})["result"]
    assert result["status"] == 401
    assert client.fetch(site.url)["result"]["status"] == 401
    assert not site.server.authorizations and not site.server.devices


def test_a_token_typed_by_hand_still_answers(stage, site):
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]
    token = site.server.access_tokens[0].value
    client.call("session/clear")
    other = stage.client(broker=site.broker())
    call = started(other, site.url)
    challenge = other.challenges.get(timeout=30)
    stage.secrets[token] = (site.server, site.resource)
    other.reply(challenge, {"action": "credential", "credential": {"type": "token", "token": token}})
    assert statuses(other, call) == [200]
