"""The rig's real OAuth servers, tested with a plain client: the broker's tests rely on them."""
import base64
import contextlib
import json
import subprocess
import threading
import time
import urllib.parse

import pytest

from rig import browser_login, dpop, oauth_answers, tiny_browser
from rig.field_servers import Registry
from rig.plain_client import PlainClient, get
from rig.protected_resource import ProtectedResource
from rig.registry import Image, content


@pytest.fixture
def client(glewlwyd):
    with contextlib.closing(PlainClient(glewlwyd, port=glewlwyd.redirect_port)) as client:
        yield client


def log_in(client, **changes):
    """Logs in as ann; returns the token response."""
    redirect = client.server.hold(client.login_url(**changes))
    assert redirect.parameters["state"] == "st" and redirect.parameters["iss"] == client.server.issuer
    status, answer = client.exchange(redirect.parameters["code"])
    assert status == 200, answer
    return answer


def through_another_page(stage, url):
    """Returns the URL of a server that redirects to `url`."""
    return stage.server(lambda request: oauth_answers.redirect(302, url)).url + "/start"


def test_glewlwyd_logs_in(glewlwyd, client, stage):
    resource = stage.server(ProtectedResource(glewlwyd))
    page = glewlwyd.approve(through_another_page(stage, client.login_url(scope="openid read", nonce="n")))
    assert page.body == b"done" and client.listener.requests[0].query["iss"] == glewlwyd.issuer
    status, answer = client.exchange(client.listener.requests[0].query["code"])
    assert status == 200 and answer["token_type"] == "bearer" and answer["scope"] == "openid read" and "id_token" in answer
    assert get(resource.identifier, answer["access_token"]).status == 200
    assert get(resource.identifier + "/w", answer["access_token"]).status == 403
    head, _, signature = answer["access_token"].rpartition(".")
    forged = f"{head}.{signature[:-8]}AAAAAAAA"
    assert get(resource.identifier, forged).status == 401
    assert get(resource.identifier, "not.a.token").status == 401
    assert len(glewlwyd.requests_to("/token")) == 1 and glewlwyd.issued_secrets()[answer["refresh_token"]] is False
    assert {client.verifier, client.listener.requests[0].query["code"], answer["access_token"]} < set(glewlwyd.issued_secrets())
    metadata = glewlwyd.issuer + "/.well-known/openid-configuration"
    assert json.loads(get(metadata).body)["token_endpoint"].rstrip("/") == glewlwyd.endpoint("token")


def test_glewlwyd_refreshes_and_revokes(glewlwyd, client):
    first = log_in(client)
    second = client.refresh(first["refresh_token"])[1]
    assert second["refresh_token"] != first["refresh_token"]
    assert client.refresh(first["refresh_token"]) == (400, None)
    assert client.refresh(second["refresh_token"]) == (400, None), "reuse ends the family"
    third = log_in(client)
    assert glewlwyd.revoke_refresh() >= 1 and glewlwyd.revoke_refresh() == 0
    assert client.refresh(third["refresh_token"]) == (400, None)
    assert glewlwyd.valid_token(third["access_token"]), "access tokens survive"
    assert client.exchange("unknown") == (403, {"error": "invalid_code"})


def test_glewlwyd_an_hour_later(glewlwyd, client):
    answer = log_in(client)
    assert glewlwyd.valid_token(answer["access_token"])
    glewlwyd.restart(advance=3600)
    assert glewlwyd.valid_token(answer["access_token"]) is None
    status, renewed = client.refresh(answer["refresh_token"])
    assert status == 200 and glewlwyd.valid_token(renewed["access_token"]).expires > time.time() + 3600


def test_glewlwyd_grants_fewer_scopes(glewlwyd, client):
    glewlwyd.grant("read")
    redirect = glewlwyd.hold(client.login_url(scope="read write"), scopes="read")
    assert client.exchange(redirect.parameters["code"])[1]["scope"] == "read"


def test_glewlwyd_devices(start_glewlwyd):
    glewlwyd = start_glewlwyd(device_authorization_interval=30)
    with contextlib.closing(PlainClient(glewlwyd)) as client:
        check_device(glewlwyd, client)


def check_device(glewlwyd, client):
    status, device = client.post("device_authorization", scope="read")
    assert status == 200 and device["interval"] == 30
    assert client.poll(device) == (400, {"error": "authorization_pending"})
    assert client.poll(device) == (400, {"error": "slow_down"})
    assert "deviceComplete" in glewlwyd.approve_device(device["user_code"], "read").url
    status, answer = client.poll(device)
    assert status == 200 and glewlwyd.valid_token(answer["access_token"]).scopes == ("read",)
    assert client.poll(device)[1] == {"error": "access_denied"}


def test_glewlwyd_credentials_and_registration(start_glewlwyd, stage):
    glewlwyd = start_glewlwyd(access_token_duration=30, register_client_allowed=True, register_client_auth_scope=[])
    with contextlib.closing(PlainClient(glewlwyd, "robot", glewlwyd.secret)) as robot:
        status, answer = robot.post("token", grant_type="client_credentials", scope="read")
        assert status == 200 and answer["expires_in"] == 30 and "refresh_token" not in answer
        assert glewlwyd.valid_token(answer["access_token"])
        robot.secret = "wrong"
        assert robot.post("token", grant_type="client_credentials", scope="read") == (403, None)
    value = {"redirect_uris": ["http://127.0.0.1:7777/callback"], "token_endpoint_auth_method": "none", "client_name": "new"}
    page = tiny_browser.request(glewlwyd.endpoint("register"), "POST", {"Content-Type": "application/json"}, json.dumps(value).encode())
    assert page.status == 200 and json.loads(page.body)["client_id"]
    glewlwyd.offset = 30
    assert glewlwyd.valid_token(answer["access_token"]) is None


def test_glewlwyd_resources(glewlwyd, client, stage):
    resource = stage.server(ProtectedResource(glewlwyd)).config(checks_audience=True)
    assert get(resource.identifier, log_in(client)["access_token"]).status == 401
    glewlwyd.allow_resource(resource.identifier)
    answer = log_in(client, resource=resource.identifier)
    assert get(resource.identifier, answer["access_token"]).status == 200


def test_glewlwyd_binds_tokens(start_glewlwyd, stage):
    glewlwyd = start_glewlwyd(dpop_nonces=True)
    resource = stage.server(ProtectedResource(glewlwyd)).config(dpop=True)
    with contextlib.closing(PlainClient(glewlwyd, port=glewlwyd.redirect_port, prover=dpop.Prover())) as client:
        code = glewlwyd.hold(client.login_url()).parameters["code"]
        status, refused = client.exchange(code)
        assert status == 400 and refused["error"] == "use_dpop_nonce"
        nonce = client.last.header("DPoP-Nonce")
        status, answer = client.exchange(code, nonce=nonce)
        assert status == 200 and answer["token_type"].lower() == "dpop"
        token = answer["access_token"]
        proof = client.prover.proof("GET", resource.identifier, token)
        assert get(resource.identifier, token, "DPoP", DPoP=proof).status == 200
        assert get(resource.identifier, token).status == 401
        client.prover = None
        status, refused = client.refresh(answer["refresh_token"])
        assert status == 403 and refused["error"] == "invalid_dpop_proof"


def test_parallel_requests_reach_glewlwyd(glewlwyd, client):
    answers, both, answer = [], threading.Barrier(2, timeout=10), glewlwyd._answer
    glewlwyd._answer = lambda request: both.wait() is None or answer(request)
    with glewlwyd.held("/token"):
        threads = [threading.Thread(target=lambda: answers.append(client.exchange("unknown")[0])) for _ in range(2)]
        for thread in threads:
            thread.start()
        glewlwyd.wait_for("/token", 2)
        assert not answers
    for thread in threads:
        thread.join(20)
    assert answers == [403] * 2 and not glewlwyd.problems


def test_a_registry_and_its_token_service(token_service):
    url = f"http://127.0.0.1:{token_service.registry.port}/v2/demo/manifests/x"
    challenge = get(url).header("WWW-Authenticate")
    assert challenge == f'Bearer realm="{token_service.realm}",service="{Registry.SERVICE}",scope="repository:demo:pull"'

    def token(scope="repository:demo:pull", query="", **headers):
        page = tiny_browser.request(f"{token_service.realm}?service={Registry.SERVICE}&scope={scope}{query}", headers=headers)
        return page.status, json.loads(page.body)

    basic = {"Authorization": "Basic " + base64.b64encode(f"ann:{token_service.users['ann']}".encode()).decode()}
    status, anonymous = token()
    assert status == 200 and anonymous["expires_in"] == 60 and "refresh_token" not in anonymous
    assert get(url, anonymous["token"]).status == 404, "the registry has no such image"
    push = f"http://127.0.0.1:{token_service.registry.port}/v2/demo/blobs/uploads/"
    upload = lambda value: tiny_browser.request(push, "POST", {"Authorization": f"Bearer {value}"}, b"")
    refused = upload(token("repository:demo:pull,push")[1]["token"])
    assert refused.status == 401 and 'error="insufficient_scope"' in refused.header("WWW-Authenticate")
    status, offline = token("repository:demo:pull,push", "&offline_token=true", **basic)
    assert upload(offline["access_token"]).status == 202
    assert token(Authorization="Basic " + base64.b64encode(b"ann:wrong").decode())[0] == 401
    token_service.config(rights={"": None}, lifetime=-120)
    assert token()[0] == 401
    assert 'error="invalid_token"' in get(url, token(**basic)[1]["token"]).header("WWW-Authenticate")
    token_service.config(lifetime=60, expires_in=None, response={"access_token": None})
    form = urllib.parse.urlencode({"grant_type": "refresh_token", "refresh_token": offline["refresh_token"], "service": Registry.SERVICE,
                                   "client_id": "tests", "scope": "repository:demo:pull repository:other:pull"}).encode()
    post = lambda: tiny_browser.request(token_service.realm, "POST", {}, form)
    answer = json.loads(post().body)
    assert set(answer) == {"token", "issued_at"} and get(url, answer["token"]).status == 404
    assert token_service.asked[-1] == ("ann", Registry.SERVICE, ["repository:demo:pull", "repository:other:pull"])
    token_service.revoke_refresh()
    assert post().status == 401


def test_skopeo_with_a_token_service(token_service, tmp_path):
    image = Image(tmp_path / "image", size=1000)
    name = f"127.0.0.1:{token_service.registry.port}/demo:one"
    command = image.push_and_pull(name, tmp_path / "back", f"ann:{token_service.users['ann']}")
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "back") == image.content
    assert {user for user, _, _ in token_service.asked} == {"ann"}
    assert [scope for _, _, scopes in token_service.asked for scope in scopes][0].startswith("repository:demo:")


def test_the_mock_with_an_ephemeral_port(oidc_mock):
    with contextlib.closing(PlainClient(oidc_mock, "any", "secret")) as client:
        url = client.login_url(scope="openid", nonce="n")
        assert oidc_mock.approve(url).body == b"done"
        query = client.listener.requests[0].query
        assert query["state"] == "st" and "iss" not in query
        status, answer = client.exchange(query["code"])
        assert status == 200 and answer["token_type"] == "Bearer" and "id_token" in answer
        page = get(oidc_mock.endpoint("userinfo"), answer["access_token"])
        assert page.status == 200 and json.loads(page.body)["sub"] == "ann"
        assert client.refresh(answer["refresh_token"])[0] == 200
        oidc_mock.revoke_all()
        assert client.refresh(answer["refresh_token"])[1]["error"] == "invalid_grant"
        assert oidc_mock.hold(url, "deny").parameters["error"] == "access_denied"


def test_chromium_logs_in(glewlwyd, client, stage):
    url, text = browser_login.log_in(glewlwyd, through_another_page(stage, client.login_url(scope="read write")))
    assert url.startswith(client.redirect_uri + "?") and text == "done"
    code = next(request.query["code"] for request in client.listener.requests if request.path == "/callback")
    status, answer = client.exchange(code)
    assert status == 200 and sorted(answer["scope"].split()) == ["read", "write"]
    status, device = client.post("device_authorization", scope="read")
    url, _ = browser_login.log_in(glewlwyd, device["verification_uri_complete"])
    assert "prompt=deviceComplete" in url and client.poll(device)[0] == 200
