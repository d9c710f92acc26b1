"""Logins in a browser for Bearer at real servers: glewlwyd, a container registry with its token service, an OpenID Connect mock."""
import json

import pytest

from rig import browser, tiny_browser
from rig.bodies import eventually
from rig.client import password_answer
from rig.real_oauth import Glewlwyd, OIDCMock, TokenService
from rig.authorization_server import ProtectedResource


@pytest.fixture
def glewlwyd(stage, tmp_path):
    folder = tmp_path / "glewlwyd"
    folder.mkdir()
    server = stage.server(Glewlwyd(folder, access_token_duration=2))
    yield server
    server.stop()


@pytest.fixture
def resource(stage, glewlwyd):
    return stage.server(ProtectedResource(glewlwyd))


def configured(stage, resource, server, **options):
    lines = {"issuer": server.issuer, "client-id": "watchword", "scopes": None, **options}
    text = "".join(f'{name} = "{value}"\n' for name, value in lines.items() if isinstance(value, str))
    text += "".join(f"{name} = {value}\n" for name, value in lines.items() if isinstance(value, int))
    return stage.configured(f'[oauth."{resource.url}"]\nscopes = ["openid", "read"]\n{text}')


def start(client, url):
    return client.start("fetch/run", {"url": url})


def login_page(challenge):
    """Returns the page of the server to which the broker sends the browser."""
    return tiny_browser.visit(challenge["params"]["login"]["url"]).location


def test_glewlwyd_in_chromium(stage, glewlwyd, resource):
    """A real browser runs the scripts of the login page, and follows the redirect back to the broker."""
    client = stage.client(broker=configured(stage, resource, glewlwyd, **{"redirect-port": glewlwyd.redirect_port}))
    calls = [start(client, resource.url + "/api") for _ in range(3)]
    login = client.challenges.get(timeout=30)["params"]["login"]
    address, text = browser.log_in(glewlwyd, login["url"])
    assert address.startswith(f"http://127.0.0.1:{glewlwyd.redirect_port}/callback?") and "You are logged in" in text
    assert [client.wait(call)["result"]["status"] for call in calls] == [200] * 3
    assert [request.form["grant_type"] for request in glewlwyd.requests_to("/token")].count("authorization_code") == 1
    eventually(lambda: len({token for _, token in resource.presented if token}) > 1 or not client.fetch(resource.url + "/api"), "it is renewed")
    assert client.challenges.empty()
    # glewlwyd answers a refresh token that it has revoked with 400 and no body.
    assert glewlwyd.revoke_refresh()
    call = eventually(lambda: asked(client, resource.url + "/api"), "the person is asked again")
    glewlwyd.approve(login_page(client.challenges.get(timeout=30)))
    assert client.wait(call)["result"]["status"] == 200 and client.challenges.empty()


def asked(client, url):
    """Fetches; returns the call if it waits for a login."""
    call = start(client, url)
    eventually(lambda: call in client.replies or not client.challenges.empty(), "an answer or a question")
    return None if call in client.replies else call


def test_glewlwyd_with_a_device_code(stage, glewlwyd, resource):
    client = stage.client(broker=configured(stage, resource, glewlwyd, flow="device"))
    call = start(client, resource.url + "/api")
    login = client.challenges.get(timeout=30)["params"]["login"]
    glewlwyd.approve_device(login["userCode"])
    assert client.wait(call)["result"]["status"] == 200


def test_glewlwyd_with_client_credentials(stage, glewlwyd, resource, tmp_path):
    path = tmp_path / "secret"
    path.write_text(glewlwyd.secret)
    path.chmod(0o600)
    broker = stage.configured(
        f'[oauth."{resource.url}"]\nissuer = "{glewlwyd.issuer}"\nclient-id = "robot"\nclient-secret-file = "{path}"\n'
        'flow = "client-credentials"\nscopes = ["read"]\n')
    assert stage.client(broker=broker).fetch(resource.url + "/api")["result"]["status"] == 200


@pytest.fixture
def provider(tmp_path):
    provider = OIDCMock(tmp_path, expires_in=2)
    yield provider
    provider.stop()


def test_an_openid_provider(stage, provider, tmp_path):
    """A free port for the redirect, a client with a secret, an ID token, and user information as the resource."""
    path = tmp_path / "secret"
    path.write_text("not checked")
    path.chmod(0o600)
    url = provider.endpoint("userinfo")
    broker = stage.configured(
        f'[oauth."{url}"]\nissuer = "{provider.issuer}"\nclient-id = "watchword"\nclient-secret-file = "{path}"\n'
        'scopes = ["openid", "email"]\n')
    client = stage.client(broker=broker)
    call = start(client, url)
    assert b"logged in" in provider.approve(login_page(client.challenges.get(timeout=30))).body
    result = client.wait(call)["result"]
    assert result["status"] == 200 and json.loads(result["body"]["value"])["email"] == "ann", result
    eventually(lambda: client.fetch(url)["result"]["status"] == 200 and provider.token_requests() > 1, "the token is renewed")
    assert client.challenges.empty()
    # It answers a revoked token with 400 and no challenge.
    provider.revoke_all()
    assert client.fetch(url)["result"]["status"] == 400 and client.challenges.empty()


@pytest.fixture
def service(stage, tmp_path):
    folder = tmp_path / "registry"
    folder.mkdir()
    service = stage.server(TokenService(folder, {"ann": "anns-password"}))
    yield service
    service.stop()


def registry_broker(stage, service):
    return stage.configured(f'[oauth."http://127.0.0.1:{service.registry.port}"]\nflow = "registry"\nissuer = "{service.url}"\n')


def test_a_registry_gives_a_token_without_a_login(stage, service):
    client = stage.client(broker=registry_broker(stage, service))
    result = client.fetch(f"http://127.0.0.1:{service.registry.port}/v2/")["result"]
    assert result["status"] == 200 and client.challenges.empty()
    assert [user for user, _, _ in service.asked] == [""]


def test_a_registry_asks_for_the_password_to_push(stage, service):
    client = stage.client(broker=registry_broker(stage, service))
    url = f"http://127.0.0.1:{service.registry.port}/v2/images/blobs/uploads/"
    call = client.start("fetch/run", {"url": url, "method": "POST"})
    challenge = client.challenges.get(timeout=30)
    space = challenge["params"]["protectionSpace"]
    assert (space["port"], space["authenticationMethod"]) == (service.port, "httpBasic")
    client.reply(challenge, password_answer("ann", "anns-password"))
    assert client.wait(call)["result"]["status"] == 202
    assert [user for user, _, _ in service.asked] == ["", "ann"]
    assert client.fetch(url, method="POST")["result"]["status"] == 202 and client.challenges.empty()
