"""Logins in a browser for Bearer: the broker gets the token, at scripted servers, also as time passes; after their last use, no code and no
token remains in its memory; and servers that are broken, slow or hostile: what happens with each answer, and that each wait ends."""
import contextlib
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from rig import tiny_browser
from rig.authorization_server import AuthorizationServer, ProtectedResource
from rig.bodies import eventually
from rig.broker import program
from rig.client import Client
from rig.login_sites import (  # noqa: F401
    Site, client, failure, fetching, forgotten, held_login, is_asked, is_closed, log_in, logged_in, login_url, site, started, statuses,
    user)
from rig.memory import places, remaining
from rig.oauth_answers import CLOSE, Refusal, dated, endless
from rig.scripted import ScriptedServer, response


def test_a_login_in_the_browser_answers_the_challenge(site, client):
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


def test_a_revoked_token_is_renewed_once_for_all_fetches(site, user):
    site.server.revoke_access()
    assert statuses(user, started(user, site.url, 8)) == [200] * 8
    assert len(site.server.requests_to("/token")) == 2 and user.challenges.empty()


@pytest.mark.parametrize("status", [401, 403])
def test_a_missing_scope_is_asked_for_together_with_the_others(site, status, client):
    site.resource.config(insufficient_status=status)
    logged_in(client, site)
    call = started(client, site.url + "/w")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["scopes"] == ["read", "write"]
    assert statuses(client, call) == [200]
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


def test_a_login_is_kept_in_the_keyring(stage, site, gnome):
    client = site.logged_in(environment=gnome.environment)
    broker = stage.brokers[-1]
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
    client = site.logged_in(environment=gnome.environment)
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
    client = site.logged_in(text=f'[credentials]\nhand-out = ["{os.path.realpath(sys.executable)} 127.0.0.1"]\n')
    broker = stage.brokers[-1]
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
    client = site.logged_in(text=text, environment=gnome.environment)
    broker = stage.brokers[-1]

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
    site.server.config(dpop="required")
    site.resource.config(dpop=True)
    if nonce:
        site.server.proofs.new_nonce()
    client = site.logged_in(environment=gnome.environment)
    broker = stage.brokers[-1]
    assert client.fetch(site.url + "?q=1")["result"]["status"] == 200
    assert {scheme for scheme, token in site.resource.presented if token} == {"DPoP"}
    proofs = [request.header("DPoP") for request in site.resource.requests if request.header("DPoP")]
    assert len(set(proofs)) == len(proofs) >= 2, "each request has a proof of its own"
    if nonce:
        site.server.proofs.new_nonce()
        site.resource.proofs.new_nonce()
        assert client.fetch(site.url)["result"]["status"] == 200
    # The key is stored with the grant, so that the token can be renewed after a restart.
    assert broker.stop() == 0
    client = stage.client(broker=site.broker(environment=gnome.environment))
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()
    assert len({token.jkt for token in site.server.access_tokens}) == 1
    assert not site.server.problems and not site.resource.problems


HOUR = 3600


def pass_time(faults, seconds):
    faults.move_wall(seconds)
    faults.pass_time(seconds)


def grants(site):
    return [request.form["grant_type"] for request in site.token_requests()]


def test_an_hour_later_no_person_is_asked(stage, site, gnome, faults):
    client = site.logged_in(environment={**gnome.for_broker, **faults.environment})
    pass_time(faults, HOUR + 1)
    assert client.fetch(site.url)["result"]["status"] == 200
    assert client.challenges.empty() and grants(site) == ["authorization_code", "refresh_token"]
    assert len(site.server.authorizations) == 1


def test_a_token_in_use_is_renewed_every_hour(stage, site, faults):
    """Also without a keyring: a login in use stays in the session."""
    client = site.logged_in(environment=faults.environment)
    broker = stage.brokers[-1]
    for minute in range(5, 70, 5):
        pass_time(faults, 5 * 60)
        result = client.fetch(site.url)["result"]
        assert (result["status"], result["exchanges"]) == (200, 1), "the token is renewed before it expires"
        # The renewal begins after 48 minutes; the time must not pass meanwhile.
        eventually(lambda: broker.log.count("token obtained") == 1 + (minute >= 50), "the token is renewed")
    assert client.challenges.empty() and grants(site) == ["authorization_code", "refresh_token"]


def test_without_a_keyring_the_login_ends_with_the_time_of_the_session(stage, site, faults):
    client = site.logged_in(environment=faults.environment)
    pass_time(faults, HOUR // 2)
    assert forgotten(client, site) and grants(site) == ["authorization_code"]


def test_a_revoked_login_is_asked_for_once_an_hour_later(stage, site, gnome, faults):
    client = site.logged_in(environment={**gnome.for_broker, **faults.environment})
    site.server.revoke_all()
    pass_time(faults, HOUR + 1)
    calls = started(client, site.url, count=9)
    log_in(client)
    assert statuses(client, calls) == [200] * 9
    assert client.challenges.empty() and len(site.server.authorizations) == 2


def test_no_copy_of_the_code_remains_after_the_login(stage, site, user):
    form = site.token_requests()[0].form
    assert form["code"] and form["code_verifier"]
    assert remaining(stage.brokers[0], form["code"]) == []
    assert remaining(stage.brokers[0], form["code_verifier"]) == []


@pytest.mark.parametrize("how", ["session/clear", "broker/lock", "time", "renewal"])
def test_no_copy_of_a_token_remains(stage, site, how):
    """Without a keyring, the refresh token belongs to the session, too."""
    user = site.logged_in(text="[limits]\nsession-idle-s = 1\n" * (how == "time"))
    tokens = [site.server.access_tokens[0].value, site.server.refresh_tokens[0].value]
    if how == "renewal":
        site.server.revoke_access()
        assert user.fetch(site.url)["result"]["status"] == 200
    elif how != "time":
        assert all(places(stage.brokers[0].process.pid, token) for token in tokens), "the scan does not find the tokens"
        assert "result" in user.call(how, {})
    assert [remaining(stage.brokers[0], token) for token in tokens] == [[], []]
    user.call("broker/unlock")
    assert how == "renewal" or forgotten(user, site)


def text_is_plain(text):
    """Whether a terminal shows the text as it is."""
    return all(character.isprintable() or character == "\n" for character in text)


UNUSABLE = {
    "escape": {"token_type": "\u001b[2Jx"}, "line": {"access_token": "a\r\nX-Injected: 1"}, "long": {"access_token": "x" * 200_000},
    "list": {"access_token": ["x"]}, "null": {"access_token": lambda _: None}, "type object": {"token_type": {"a": 1}}}


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_token_is_not_used(site, client, name):
    site.server.config(token_response=UNUSABLE[name])
    call = started(client, site.url)
    _, shown = log_in(client)
    message = failure(client, call[0])
    assert text_is_plain(message) and shown.status == 400 and site.sent_tokens() == [None]
    assert text_is_plain(site.stage.brokers[0].log), site.stage.brokers[0].log
    assert client.challenges.empty() and len(site.token_requests()) == 1


METADATA = {"deep": dated(200, b'{"a":' * 50_000), "500": dated(500), "closed": CLOSE, "endless": endless, "garbage": b"\xff\xff\r\n\r\n"}


@pytest.mark.parametrize("place", ["server", "resource"])
@pytest.mark.parametrize("name", METADATA)
def test_broken_metadata_begins_no_login(stage, name, place):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    client = stage.client(broker=site.broker())
    before = stage.brokers[0].resident_kilobytes
    (site.server if place == "server" else site.resource).fail("metadata", METADATA[name])
    reply = client.fetch(site.url, seconds=40)
    assert "error" in reply and text_is_plain(reply["error"]["message"]), reply
    assert client.challenges.empty() and not site.server.authorizations
    assert stage.brokers[0].resident_kilobytes - before < 32 << 10


@pytest.mark.parametrize("code, description", [
    ("access_denied", "<script>alert(1)</script>"), ("server_error", "<script>alert(1)</script>"), ("x" * 5000, "<script>"),
    # As in the redirects of Microsoft Entra ID (AADSTS).
    ("server_error", "AADSTS50020: no <script>.\r\nTrace ID: 1\r\nTimestamp: 2")])
def test_an_error_at_the_login_page_ends_the_login(site, client, code, description):
    site.server.fail("/authorize", Refusal(code, description))
    call = started(client, site.url)
    _, shown = log_in(client)
    assert shown.status == 400 and b"script" not in shown.body
    message = failure(client, call[0], "challengeCancelled" if code == "access_denied" else "loginFailed")
    assert text_is_plain(message) and len(message) < 1000 and client.challenges.empty()
    assert not site.token_requests()


# Servers that do not answer

WAITS = {"/token": "/token", "device": "/token", "/device_authorization": "/device_authorization"}


def waits(site, place):
    """Makes the server of a place silent: it keeps the connection open."""
    (site.resource if place == "resource" else site.server).fail(WAITS.get(place, "metadata"), None)


@pytest.mark.parametrize("place", ["metadata", "resource", "/token", "slow"])
def test_the_time_limit_of_a_fetch_holds(stage, place):
    site = Site(stage, **({"issuer": None} if place == "resource" else {}))
    client = stage.client(broker=site.broker())
    if place == "/token":
        logged_in(client, site)
        site.server.revoke_access()
    if place == "slow":
        text = b"HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n" + b" " * 1000
        site.server.fail("metadata", lambda request: (time.sleep(0.2) or bytes([byte]) for byte in text))
    else:
        waits(site, place)
    before = time.monotonic()
    assert "error" in client.fetch(site.url, timeoutMs=1500) and 1 < time.monotonic() - before < 6 and client.challenges.empty()


@pytest.mark.tier3
@pytest.mark.parametrize("place", ["metadata", "resource", "/token", "login", "/device_authorization", "device"])
@pytest.mark.parametrize("end", ["cancel", "disconnect", "stop"])
def test_every_wait_ends_with_the_client_and_the_broker(stage, place, end):
    site = Site(stage, **({"issuer": None} if place == "resource" else {"flow": "device"} if "device" in place else {}))
    broker = site.broker()
    client = stage.client(broker=broker)
    url = None
    if place == "/token":
        call, _, back = held_login(client, site.url)
        site.server.fail("/token", None)
        threading.Thread(target=tiny_browser.quietly, args=[back.follow], daemon=True).start()
        site.server.wait_for("/token")
    else:
        if place != "login":
            waits(site, place)
        call = client.start("fetch/run", {"url": site.url})
        if place == "login":
            url = login_url(client.challenges.get(timeout=30))
        else:
            (site.resource if place == "resource" else site.server).wait_for(WAITS.get(place, "metadata"))
    if end == "cancel":
        client.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": call}})
        assert "error" in client.wait(call, 10)
    elif end == "disconnect":
        client.close()
    else:
        before = time.monotonic()
        assert broker.stop() == 0 and time.monotonic() - before < 10
        return
    if url:
        eventually(lambda: is_closed(url), "the listener is closed", 15)
    other = stage.client(broker=broker)
    assert other.fetch(site.resource.url + "/open")["result"]["status"] == 200


def test_a_client_is_registered_where_that_is_allowed(stage, site):
    site.options |= {"client-id": None, "register": True}
    site.server.config(registration=True)
    client = site.logged_in()
    assert site.server.registrations[0]["token_endpoint_auth_method"] == "none" and site.server.authorizations[0]["client_id"].startswith("dyn")
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200 and len(site.server.registrations) == 1
    site.server.revoke_all()
    calls = started(client, site.url, 3)
    log_in(client)
    assert statuses(client, calls) == [200] * 3 and client.challenges.empty()


# Refresh tokens

def test_one_renewal_for_fetches_that_need_different_scopes(site, user):
    """The same refresh token, sent twice, ends the whole login."""
    site.server.revoke_access()
    def answer(request):
        refused = site.resource._answer(request)
        return refused.replace(b'scope="read"', b'scope="read write"')

    site.resource.fail("/api/other", answer)
    before = len(site.resource.presented)
    with site.server.held("/token"):
        calls = [*started(user, site.url), *started(user, site.url + "/other")]
        site.server.wait_for("/token", 2)
        eventually(lambda: len(site.resource.presented) == before + 2, "both fetches are refused")
        user.call("server/status")
    eventually(lambda: all(call in user.replies for call in calls) or not user.challenges.empty(), "replies or a question")
    sent = [request.form.get("refresh_token") for request in site.token_requests()[1:]]
    assert len(sent) == len(set(sent)), "one refresh token was sent twice"
    assert user.challenges.empty()


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
    is_asked(client, call[0])
    assert len(site.token_requests()) - before == 1


# https

@pytest.mark.parametrize("name", ["token_endpoint", "authorization_endpoint"])
def test_an_issuer_with_https_has_no_endpoint_with_http_on_this_machine(stage, certificates, name):
    """Another user's program can listen there."""
    site = Site(stage, server=stage.server(AuthorizationServer(certificates, "/tenant")))
    client = stage.client(broker=site.broker("--ca-file", str(certificates / "ca.pem")))
    other = stage.server(ScriptedServer(lambda request: response(400)))
    site.server.config(metadata={name: other.url + "/x"})
    if forgotten(client, site):
        tiny_browser.open_login(login_url(client.challenges.get()), authority=str(certificates / "ca.pem"))
    assert other.connections == 0


def test_a_resource_with_https_names_no_issuer_with_http_on_this_machine(stage, certificates):
    site = Site(stage, resource=lambda server: ProtectedResource(server, certificates), issuer=None)
    client = stage.client(broker=site.broker("--ca-file", str(certificates / "ca.pem")))
    assert not forgotten(client, site) and not site.server.requests, client.replies


@pytest.mark.parametrize("method", ["session/clear", "broker/lock"])
def test_a_login_that_began_before_the_session_ended_is_not_stored(site, client, method):
    call, challenge, back = held_login(client, site.url)
    assert "result" in client.call(method)
    tiny_browser.quietly(back.follow)
    eventually(lambda: call in client.replies, "the fetch ends")
    if method == "broker/lock":
        client.call("broker/unlock")
    assert forgotten(client, site)
    assert [request.form["grant_type"] for request in site.token_requests()] in ([], ["authorization_code"])


def test_a_login_that_was_deleted_from_the_keyring_is_forgotten(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker)
    gnome.delete()
    site.server.revoke_access()
    assert forgotten(client, site)
    assert len(site.token_requests()) == 1


@pytest.mark.parametrize("length", [1, 3])
def test_a_grant_of_others_is_not_for_a_sandboxed_program(stage, site, length):
    """Without a consent, its fetches neither get the token nor renew it."""
    broker = site.broker()
    agent = stage.consenter(broker)
    logged_in(stage.client(broker=broker), site)
    confined = stage.sandbox(broker)
    for _ in range(length):
        assert confined.fetch(site.url).get("result", {}).get("status") != 200
    assert len(site.token_requests()) == 1


def test_a_sandboxed_program_does_not_show_a_login(stage, site):
    """Only an agent does, because others would then use the account that the program has chosen."""
    confined = fetching(stage, site.broker(), site.url)
    while (challenge := confined.read()).get("method") != "auth/challenge":
        assert challenge.get("id") != 99, challenge
    assert "login" not in challenge["params"] and challenge["params"]["accepts"] == ["token"]
    confined.send({"id": challenge["id"], "result": {"action": "cancel"}})


# Broken servers

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
