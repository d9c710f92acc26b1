"""Edges of logins in a browser that were wrong once."""
import socket
import time

import pytest

from rig import tiny_browser
from rig.authorization_server import AuthorizationServer, ProtectedResource
from rig.bodies import eventually
from rig.login_sites import (  # noqa: F401
    Site, client, failure, forgotten, held_login, is_closed, log_in, logged_in, login_url, site, started)
from rig.oauth_answers import CLOSE, json_answer
from rig.scripted import ScriptedServer, response
from rig.subjects import Consenter


# Refresh tokens


def test_one_renewal_for_fetches_that_need_different_scopes(site, client):
    """The same refresh token, sent twice, ends the whole login."""
    logged_in(client, site)
    site.server.revoke_access()
    def answer(request):
        refused = site.resource._answer(request)
        return refused.replace(b'scope="read"', b'scope="read write"')

    site.resource.fail("/api/other", answer)
    before = len(site.resource.presented)
    with site.server.held("/token"):
        calls = [*started(client, site.url), *started(client, site.url + "/other")]
        site.server.wait_for("/token", 2)
        eventually(lambda: len(site.resource.presented) == before + 2, "both fetches are refused")
        client.call("server/status")
    eventually(lambda: all(call in client.replies for call in calls) or not client.challenges.empty(), "replies or a question")
    sent = [request.form.get("refresh_token") for request in site.token_requests()[1:]]
    assert len(sent) == len(set(sent)), "one refresh token was sent twice"
    assert client.challenges.empty()


@pytest.mark.parametrize("grant", ["authorization_code", "refresh_token"])
def test_a_token_request_is_not_repeated_if_the_connection_ends(site, client, grant):
    """The server may have processed it: a repeated refresh token or code ends the whole login."""
    answer = lambda request: site.server._answer(request) and CLOSE
    if grant == "refresh_token":
        logged_in(client, site)
        site.server.revoke_access()
    site.server.fail("/token", answer, times=1, grant=grant)
    before = len(site.token_requests())
    call = started(client, site.url)
    if grant == "authorization_code":
        log_in(client)
    eventually(lambda: call[0] in client.replies or not client.challenges.empty(), "a reply or a question")
    assert len(site.token_requests()) - before == 1


# https


@pytest.mark.parametrize("name", ["token_endpoint", "authorization_endpoint"])
def test_an_issuer_with_https_has_no_endpoint_with_http_on_this_machine(stage, certificates, name):
    """Another user's program can listen there."""
    site = Site(stage, server=stage.server(AuthorizationServer(certificates, "/tenant")))
    client = stage.client(broker=site.broker("--ca-file", str(certificates / "ca.pem")))
    other = stage.server(ScriptedServer(lambda request: response(400)))
    site.server.config(metadata={name: other.url + "/x"})
    call = client.start("fetch/run", {"url": site.url})
    eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
    if not client.challenges.empty():
        tiny_browser.open_login(login_url(client.challenges.get()), authority=str(certificates / "ca.pem"))
    assert other.connections == 0


def test_a_resource_with_https_names_no_issuer_with_http_on_this_machine(stage, certificates):
    site = Site(stage, resource=lambda server: ProtectedResource(server, certificates), issuer=None)
    client = stage.client(broker=site.broker("--ca-file", str(certificates / "ca.pem")))
    call = client.start("fetch/run", {"url": site.url})
    eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
    assert not site.server.requests and client.challenges.empty(), client.replies


@pytest.mark.parametrize("method", ["session/clear", "broker/lock"])
def test_a_login_that_began_before_the_session_ended_is_not_stored(site, client, method):
    call, challenge, back = held_login(client, site.url)
    assert "result" in client.call(method)
    try:
        back.follow()
    except OSError:
        pass
    eventually(lambda: call in client.replies, "the fetch ends")
    if method == "broker/lock":
        client.call("broker/unlock")
    assert forgotten(client, site)
    assert [request.form["grant_type"] for request in site.token_requests()] in ([], ["authorization_code"])


def test_a_login_that_was_deleted_from_the_keyring_is_forgotten(stage, site, gnome):
    client = stage.client(broker=site.broker(environment=gnome.for_broker))
    logged_in(client, site)
    gnome.delete()
    site.server.revoke_access()
    assert forgotten(client, site)
    assert len(site.token_requests()) == 1


@pytest.mark.parametrize("length", [1, 3])
def test_a_grant_of_others_is_not_for_a_sandboxed_program(stage, site, length):
    """Without a consent, its fetches neither get the token nor renew it."""
    broker = site.broker()
    agent = Consenter(broker.socket)
    stage.clients.append(agent)
    logged_in(stage.client(broker=broker), site)
    confined = stage.sandbox(broker)
    for _ in range(length):
        assert confined.fetch(site.url).get("result", {}).get("status") != 200
    assert len(site.token_requests()) == 1


def test_a_sandboxed_program_does_not_show_a_login(stage, site):
    """Only an agent does, because others would then use the account that the program has chosen."""
    confined = stage.sandbox(site.broker())
    confined.call("initialize", {
        "client": {"name": "confined"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}})
    confined.send({"id": 99, "method": "fetch/run", "params": {"url": site.url}})
    while (challenge := confined.read()).get("method") != "auth/challenge":
        assert challenge.get("id") != 99, challenge
    assert "login" not in challenge["params"] and challenge["params"]["accepts"] == ["token"]
    confined.send({"id": challenge["id"], "result": {"action": "cancel"}})


# Questions


@pytest.mark.tier3
def test_no_renewal_after_its_table_was_removed(site, client):
    site.server.config(expires_in=5)
    logged_in(client, site)
    assert client.fetch(site.url)["result"]["status"] == 200
    site.stage.brokers[0].reload("")
    time.sleep(6)
    assert len(site.token_requests()) == 1


@pytest.mark.tier3
def test_a_fetch_that_ends_during_discovery_leaves_no_listener(stage, site):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    site.options["redirect-port"] = port
    client = stage.client(broker=site.broker())
    with site.server.held("metadata"):
        call = client.start("fetch/run", {"url": site.url})
        site.server.wait_for("metadata")
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
        assert "error" in client.wait(call)
    time.sleep(7)
    assert is_closed(f"http://127.0.0.1:{port}/")


# Broken servers


@pytest.mark.tier3
def test_broken_metadata_is_read_again_after_a_while(site, client):
    site.server.fail("metadata", json_answer(200, {}), times=1)
    failure(client, client.start("fetch/run", {"url": site.url}))
    time.sleep(6)
    call = client.start("fetch/run", {"url": site.url})
    eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
    assert not client.challenges.empty(), client.replies[call]


def test_scopes_that_a_terminal_would_obey_are_not_shown(stage):
    site = Site(stage, issuer=None)
    site.resource.config(scope=None, metadata={"scopes_supported": ["read", "a\u001b[2Jb", "c d", 'e"f', ""]})
    client = stage.client(broker=site.broker())
    client.start("fetch/run", {"url": site.url})
    assert client.challenges.get(timeout=30)["params"]["login"]["scopes"] == ["read"]


@pytest.mark.parametrize("change", [{"iss": "https://other.example"}, {"aud": "other"}, {"exp": 1}])
def test_an_id_token_of_another_login_is_refused_on_a_device(stage, change):
    site = Site(stage, scopes=["openid", "read"], flow="device")
    site.server.config(id_token=change)
    client = stage.client(broker=site.broker())
    call = started(client, site.url)
    client.challenges.get(timeout=30)
    site.server.approve()
    assert client.wait(call[0]).get("error"), site.sent_tokens()


def test_an_id_token_of_another_server_is_refused_at_a_renewal(stage):
    site = Site(stage, scopes=["openid", "read"])
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    site.server.revoke_access()
    site.server.config(id_token={"iss": "https://other.example"})
    call = client.start("fetch/run", {"url": site.url})
    eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
    assert client.replies.get(call, {}).get("result", {}).get("status") != 200
