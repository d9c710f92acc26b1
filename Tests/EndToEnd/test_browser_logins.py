"""Logins in a browser for Bearer: the broker gets the token, at a scripted authorization server and resource."""
import contextlib
import os
import subprocess
import sys

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.client import Client
from rig.login_sites import log_in, logged_in, site, started, statuses  # noqa: F401


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
    # The next request sends the token unasked.
    assert client.fetch(site.url)["result"]["exchanges"] == 1
    assert site.sent_tokens() == [None, site.server.access_tokens[0].value, site.server.access_tokens[0].value]
    assert not site.server.problems and not site.resource.problems


def test_a_revoked_token_is_renewed_once_for_all_fetches(stage, site):
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    site.server.revoke_access()
    assert statuses(client, started(client, site.url, 8)) == [200] * 8
    assert len(site.server.requests_to("/token")) == 2 and client.challenges.empty()


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_scope_is_asked_for_together_with_the_others(stage, site, status):
    site.resource.config(insufficient_status=status)
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    call = started(client, site.url + "/w")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["scopes"] == ["read", "write"]
    assert statuses(client, call) == [200]
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


def test_a_login_is_kept_in_the_keyring(stage, site, gnome):
    broker = site.broker(environment=gnome.environment)
    client = stage.client(broker=broker)
    logged_in(client, site)
    listed = client.call("credential/list")["result"]["credentials"]
    kept = [one for one in listed if one["source"] == "keyring"]
    assert [(one["type"], one["persistence"], one["protectionSpace"]["authenticationMethod"]) for one in kept] == [("token", "permanent", "bearer")]
    assert broker.stop() == 0
    broker = site.broker(environment=gnome.environment)
    client = stage.client(broker=broker)
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()
    assert len(site.server.authorizations) == 1 and len(site.server.refresh_tokens) == 2


@pytest.mark.parametrize("by", ["pattern", "keyring", "session"])
def test_forgetting_a_login_revokes_it(stage, site, gnome, by):
    client = stage.client(broker=site.broker(environment=gnome.environment))
    logged_in(client, site)
    listed = client.call("credential/list")["result"]["credentials"]
    found = {one["source"]: one for one in listed}
    params = {"protectionSpace": found["session"]["protectionSpace"]} if by == "pattern" else {"id": found[by]["id"]}
    assert client.call("credential/forget", params)["result"]["removed"] == (2 if by == "pattern" else 1)
    eventually(lambda: len(site.server.revocations) == 2, "both tokens are revoked")
    assert [hint for hint, _ in site.server.revocations] == ["refresh_token", "access_token"]
    assert not [one for one in client.call("credential/list")["result"]["credentials"] if one["source"] == "keyring"]
    logged_in(client, site)


def test_a_device_code(stage, site):
    site.options["flow"] = "device"
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    login = client.challenges.get(timeout=30)["params"]["login"]
    device = site.server.devices[0]
    assert (login["flow"], login["userCode"]) == ("device", device.user_code) and device.user_code in login["completeUrl"]
    site.server.wait_for("/token")
    site.server.approve()
    assert statuses(client, call) == [200]
    assert not site.server.problems


def test_discovery_by_the_resource(stage, site):
    site.options["issuer"] = None
    site.resource.config(checks_audience=True)
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    challenge, _ = log_in(client)
    assert statuses(client, call) == [200]
    assert challenge["params"]["login"]["issuer"] == site.server.issuer
    assert site.server.authorizations[0]["resource"] == site.resource.identifier


def test_a_program_that_logs_in_itself_gets_the_token(stage, site):
    text = f'[credentials]\nhand-out = ["{os.path.realpath(sys.executable)} 127.0.0.1"]\n'
    broker = site.broker(text=text)
    client = stage.client(broker=broker)
    logged_in(client, site)
    space = site.space(authenticationMethod="bearer")
    # Not one of the clients that must receive no secret.
    with contextlib.closing(Client(broker.socket)) as other:
        credential = other.call("credential/get", {"protectionSpace": space})["result"]["credential"]
        assert credential["token"] == site.server.access_tokens[0].value and "refreshToken" not in credential
        client.call("session/clear")
        assert other.call("credential/get", {"protectionSpace": space})["error"]["data"]["kind"] == "unknownCredential"
    assert client.challenges.empty(), "no respondent is asked"


def test_the_helper_prints_a_token_and_renews_it(stage, site, gnome):
    text = f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} 127.0.0.1"]\n'
    broker = site.broker(text=text, environment=gnome.environment)
    client = stage.client(broker=broker)
    logged_in(client, site)

    def printed(*arguments, url=site.url):
        return subprocess.run([program("watchword"), "token", "--socket", broker.socket, *arguments, url], capture_output=True, text=True, timeout=30)

    assert printed().stdout == site.server.access_tokens[0].value + "\n"
    site.server.revoke_access()
    client.call("session/clear")
    assert printed().stdout == site.server.access_tokens[1].value + "\n"
    refused = printed(url="http://localhost:1/")
    assert refused.stdout == "" and refused.returncode != 0 and "hand-out" in refused.stderr
    description = f"capability[]=authtype\nprotocol=http\nhost=127.0.0.1:{site.resource.port}\n\n"
    asked = subprocess.run(
        [program("watchword"), "git-credential", "--socket", broker.socket, "get"], input=description, capture_output=True, text=True, timeout=30)
    assert f"credential={site.server.access_tokens[-1].value}\n" in asked.stdout and "password_expiry_utc=" in asked.stdout


@pytest.mark.parametrize("nonce", [False, True])
def test_tokens_are_bound_to_a_key_of_the_broker(stage, site, gnome, nonce):
    site.server.config(dpop="required", expires_in=3600)
    site.resource.config(dpop=True)
    if nonce:
        site.server.new_dpop_nonce()
    broker = site.broker(environment=gnome.environment)
    client = stage.client(broker=broker)
    logged_in(client, site)
    assert client.fetch(site.url + "?q=1")["result"]["status"] == 200
    assert {scheme for scheme, token in site.resource.presented if token} == {"DPoP"}
    proofs = [request.header("DPoP") for request in site.resource.requests if request.header("DPoP")]
    assert len(set(proofs)) == len(proofs) >= 2, "each request has a proof of its own"
    if nonce:
        site.server.new_dpop_nonce()
        site.resource.new_dpop_nonce()
        assert client.fetch(site.url)["result"]["status"] == 200
    # The key is stored with the grant, so that the token can be renewed after a restart.
    assert broker.stop() == 0
    client = stage.client(broker=site.broker(environment=gnome.environment))
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()
    assert len({token.jkt for token in site.server.access_tokens}) == 1
    assert not site.server.problems and not site.resource.problems
