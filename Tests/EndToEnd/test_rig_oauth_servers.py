"""The rig's real OAuth servers, tested with a plain client: the broker's tests rely on them."""
import contextlib
import json
import threading
import time

import pytest

from rig import dpop, tiny_browser
from rig.bodies import eventually
from rig.plain_client import PlainClient, get
from rig.protected_resource import ProtectedResource


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


def test_glewlwyd_logs_in(glewlwyd, client, stage):
    resource = stage.server(ProtectedResource(glewlwyd))
    page = glewlwyd.approve(client.login_url(scope="openid read", nonce="n"))
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


def test_glewlwyd_devices(glewlwyd, client):
    status, device = client.post("device_authorization", scope="read")
    assert status == 200 and device["interval"] == 2
    assert client.poll(device) == (400, {"error": "authorization_pending"})
    assert client.poll(device) == (400, {"error": "slow_down"})
    assert "deviceComplete" in glewlwyd.approve_device(device["user_code"], "read").url
    status, answer = eventually(lambda: (answer := client.poll(device))[0] == 200 and answer, "a token", pause=0.3)
    assert glewlwyd.valid_token(answer["access_token"]).scopes == ("read",)
    assert client.poll(device)[1] == {"error": "access_denied"}


def test_glewlwyd_credentials_and_registration(start_glewlwyd, stage):
    glewlwyd = start_glewlwyd(access_token_duration=2, register_client_allowed=True, register_client_auth_scope=[])
    with contextlib.closing(PlainClient(glewlwyd, "robot", glewlwyd.secret)) as robot:
        status, answer = robot.post("token", grant_type="client_credentials", scope="read")
        assert status == 200 and answer["expires_in"] == 2 and "refresh_token" not in answer
        assert glewlwyd.valid_token(answer["access_token"])
        robot.secret = "wrong"
        assert robot.post("token", grant_type="client_credentials", scope="read") == (403, None)
    value = {"redirect_uris": ["http://127.0.0.1:7777/callback"], "token_endpoint_auth_method": "none", "client_name": "new"}
    page = tiny_browser.request(glewlwyd.endpoint("register"), "POST", {"Content-Type": "application/json"}, json.dumps(value).encode())
    assert page.status == 200 and json.loads(page.body)["client_id"]
    eventually(lambda: glewlwyd.valid_token(answer["access_token"]) is None, "the token has expired", seconds=4)


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
    answers = []
    with glewlwyd.held("/token"):
        threads = [threading.Thread(target=lambda: answers.append(client.exchange("unknown")[0])) for _ in range(3)]
        for thread in threads:
            thread.start()
        glewlwyd.wait_for("/token", 3)
        assert not answers
    for thread in threads:
        thread.join(10)
    assert answers == [403] * 3
