"""Logins at real servers of OAuth: glewlwyd, of Debian, an OpenID Connect mock, and the token service of a container registry."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import sys
import types
import urllib.parse

import jwt
import pytest
import requests

from rig import browser, tiny_browser
from rig.authority import Pair, new_key
from rig.authorization_server import ProtectedResource
from rig.bodies import eventually
from rig.broker import ROOT
from rig.client import password_answer
from rig.field_servers import Registry
from rig.forwarding import forwarded
from rig.login_sites import is_asked
from rig.oauth_answers import Site, json_answer
from rig.scripted import basic
from rig.servers import INSTALL, Server, find, free_port, private

WEBAPP, TEMPLATE = "/usr/share/glewlwyd/webapp", "/usr/share/glewlwyd/templates/config.json"
SCHEMA = "/usr/share/doc/glewlwyd/database/init.sqlite3.sql.gz"
SCOPES = ("read", "write")
ALL_TYPES = ["code", "refresh_token", "device_authorization"]
MODULES = "\n".join(f'{name}_module_path="/usr/lib/glewlwyd/{folder}"' for name, folder in [
    ("user", "user"), ("client", "client"), ("user_auth_scheme", "scheme"), ("plugin", "plugin")])
TYPES = ",".join(f'{{extension=".{ending}" mime_type="{kind}"}}' for ending, kind in [
    ("html", "text/html"), ("css", "text/css"), ("js", "application/javascript"), ("json", "application/json")])


#: The database with the user and the scopes, once a server of this process has made them.
PREPARED = []
#: The key of the tokens.
KEY = Pair(new_key(2048), None)


def _schema():
    """Returns the empty database of the package."""
    assert os.path.exists(SCHEMA), f"{SCHEMA} is missing; run {INSTALL}"
    database = sqlite3.connect(":memory:")
    with gzip.open(SCHEMA, "rt") as script:
        database.executescript(script.read())
    return database.serialize()


PARAMETERS = {
    "jwt-type": "rsa", "jwt-key-size": "256", "jwks-show": True, "jwks-uri": "", "access-token-duration": 2,
    "refresh-token-duration": 1209600, "code-duration": 600, "allow-non-oidc": True, "refresh-token-rolling": True,
    "refresh-token-one-use": "always", "auth-type-code-revoke-replayed": True, "auth-type-code-enabled": True,
    "auth-type-client-enabled": True, "auth-type-refresh-enabled": True, "auth-type-device-enabled": True,
    "auth-type-token-enabled": False, "auth-type-id-token-enabled": False, "auth-type-password-enabled": False,
    "device-authorization-expiration": 120, "device-authorization-interval": 2, "scope": [], "additional-parameters": [], "claims": [],
    "pkce-allowed": True, "pkce-method-plain-allowed": False, "pkce-required-public-client": True,
    "introspection-revocation-allowed": True, "introspection-revocation-allow-target-client": True,
    "introspection-revocation-auth-scope": ["read"], "oauth-dpop-allowed": True, "oauth-dpop-iat-duration": 60,
    "oauth-dpop-iat-gap-duration": 60, "oauth-as-iss-id": True, "resource-allowed": True, "resource-scope": {},
    "resource-client-property": "resource", "resource-scope-and-client-property": False}


class Session(requests.Session):
    """A user's cookies at glewlwyd."""

    def __init__(self, server, user, password):
        super().__init__()
        self.trust_env, self.server = False, server
        self.call("POST", "auth/", {"username": user, "password": password})

    def call(self, method, path, value=None):
        """Calls glewlwyd's own API; returns the object of the response."""
        page = self.request(method, f"{self.server.url}/api/{path}", json=value, timeout=60)
        assert page.status_code == 200, (method, path, page.status_code, page.text)
        return page.json() if page.content else None

    def visit(self, url):
        """Opens the URL in the user's browser; returns the page at the end of the redirects."""
        return tiny_browser.open_login(url, {("127.0.0.1", cookie.name): cookie.value for cookie in self.cookies})


class Glewlwyd(Site):
    """The server, behind a site that forwards to it, and records; and its clients: "watchword", public, with the redirect URI
    http://127.0.0.1:PORT/callback, where PORT is `redirect_port`; and "robot", confidential with SECRET, for client credentials."""

    USER, PASSWORD, SECRET = "ann", "annspassword", "robots-secret"
    PARALLEL = True

    def __init__(self, folder):
        super().__init__()
        self.folder, self.inner_port, self.redirect_port = folder, free_port(), free_port()
        self.resources, self._issued, self.issuer = [], {}, self.url + "/api/oidc"
        self._prepare()
        self.server = Server([find("glewlwyd"), f"--config-file={folder}/g.conf"], self.inner_port, folder / "glewlwyd.log", cwd=folder)
        self.stop = self.server.stop
        self.admin = Session(self, "admin", "password")
        if not PREPARED:
            self._add_user()
            PREPARED.append((self.folder / "g.db").read_bytes())
        self.admin.call("POST", "mod/plugin/", {"module": "oidc", "name": "oidc", "display_name": "OpenID Connect", "parameters": {
            "iss": self.issuer, "key": KEY.key_pem().decode(), "cert": KEY.public_pem.decode(), **PARAMETERS}})
        self._add_client("watchword", redirect_uris=[f"http://127.0.0.1:{self.redirect_port}/callback"])
        self._add_client("robot", self.SECRET)
        self.ann = Session(self, self.USER, self.PASSWORD)

    def _prepare(self):
        web = self.folder / "web"
        # The package's config.json is a link to a directory.
        shutil.copytree(WEBAPP, web, ignore=lambda folder, names: ["config.json"] if folder == WEBAPP else [])
        shutil.copy(TEMPLATE, web / "config.json")
        (self.folder / "g.db").write_bytes(PREPARED[0] if PREPARED else _schema())
        (self.folder / "g.conf").write_text(
            f'port={self.inner_port}\nbind_address="127.0.0.1"\nexternal_url="{self.url}"\nlogin_url="login.html"\napi_prefix="api"\n'
            f'static_files_path="{web}/"\nstatic_files_mime_types=({TYPES})\nlog_mode="console"\nlog_level="INFO"\ncookie_secure=0\n'
            'session_key="GLEWLWYD2_SESSION_ID"\nsession_expiration=2419200\nadmin_scope="g_admin"\nprofile_scope="g_profile"\n'
            f'hash_algorithm="SHA512"\n{MODULES}\ndatabase={{type="sqlite3" path="{self.folder}/g.db"}};\n')

    def _place(self, request):
        return "metadata" if "/.well-known/" in request.path else request.path.removeprefix("/api/oidc")

    def _answer(self, request):
        """Also collects tokens, codes and verifiers."""
        answer = forwarded(request, self.inner_port, request.target)
        found, place, (head, _, body) = {}, self._place(request), answer.partition(b"\r\n\r\n")
        if place == "/auth" and (code := re.search(rb"\r\nLocation: \S*[?&]code=([^&\s]+)", head)):
            found = {"code": code[1].decode()}
        elif request.method == "POST" and place in ("/token", "/device_authorization"):
            found = {"verifier": request.form.get("code_verifier")}
            with contextlib.suppress(ValueError):
                value = json.loads(body)
                found |= {name: value.get(name) for name in ("access_token", "refresh_token", "device_code")}
        self._issued.update({value: name == "access_token" for name, value in found.items() if value})
        return answer

    def issued_secrets(self):
        """Returns the values of all tokens, codes and verifiers, with whether the `resources` may receive them."""
        return self._issued

    def _add_user(self):
        for scope in SCOPES:
            self.admin.call("POST", "scope/", {"name": scope, "display_name": scope, "description": scope, "password_required": True,
                                               "password_max_age": 0, "scheme": {}})
        self.admin.call("POST", "user/", {"username": self.USER, "name": "Ann", "password": self.PASSWORD, "email": "ann@example.test",
                                          "enabled": True, "scope": ["g_profile", "openid", *SCOPES]})

    def _add_client(self, name, secret=None, redirect_uris=()):
        """With a secret, the client is confidential, and for client credentials."""
        value = {"client_id": name, "name": name, "confidential": secret is not None, "enabled": True, "redirect_uri": list(redirect_uris),
                 "scope": list(SCOPES) if secret else [], "authorization_type": ["client_credentials"] if secret else ALL_TYPES,
                 "token_endpoint_auth_method": ["client_secret_basic" if secret else "none"], **({"password": secret} if secret else {})}
        self.admin.call("POST", "client/", value)

    def approve(self, url):
        """As ann, grants the scopes of the tests to "watchword", and visits the URL of an authorization request or of a device, which
        approves it; returns the last page."""
        self.ann.call("PUT", "auth/grant/watchword", {"scope": "openid read"})
        return self.ann.visit(url + "&g_continue")

    def revoke_refresh(self):
        """As ann, revokes all refresh tokens; returns how many there were. Access tokens survive that until they expire."""
        tokens = [one for one in self.ann.call("GET", "oidc/token") if one["enabled"]]
        for token in tokens:
            self.ann.call("DELETE", "oidc/token/" + urllib.parse.quote(token["token_hash"], safe=""))
        return len(tokens)

    def valid_token(self, value):
        """Returns the access token `value`, a JWT, or None if it is not signed by the plugin's key, or has expired."""
        try:
            claims = jwt.decode(value, KEY.key.public_key(), ["RS256"], {"verify_aud": False}, issuer=self.issuer)
        except jwt.PyJWTError:
            return None
        if claims.get("type") != "access_token":
            return None
        audience = claims.get("aud", [])
        return types.SimpleNamespace(scopes=claims["scope"].split(), resources=[audience] if isinstance(audience, str) else audience,
                                     jkt=(claims.get("cnf") or {}).get("jkt"))


PACKAGES = ROOT / ".build-oidc"
#: Its own command needs a newer websockets than Debian's.
PROGRAM = """
import datetime, json, sys
from oidc_provider_mock import User, app
port, user, seconds = json.loads(sys.argv[1])
lifetime = datetime.timedelta(seconds=seconds)
app(access_token_max_age=lifetime, user_claims=[User(sub=user, claims={"email": user})]).run("127.0.0.1", port)
"""


class OIDCMock(Server):
    """The server, whose issuer is its URL. Its clients need a secret, which it does not check, and it verifies no PKCE.
    `expires_in` is the lifetime of the access tokens in seconds."""

    USER = "ann"

    def __init__(self, folder, expires_in):
        assert PACKAGES.exists(), f"oidc-provider-mock is missing; run {INSTALL}"
        port = free_port()
        self.url = self.issuer = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "HOME": str(folder), "AUTHLIB_INSECURE_TRANSPORT": "1"}
        super().__init__([sys.executable, "-c", PROGRAM, json.dumps([port, self.USER, expires_in])],
                         port, pathlib.Path(folder) / "oidc.log", cwd=folder, env=environment)

    def endpoint(self, name):
        return json.loads(tiny_browser.request(self.url + "/.well-known/openid-configuration").body)[f"{name}_endpoint"]

    def approve(self, url):
        """Logs in at the URL of an authorization request, and follows the redirect; returns the program's page."""
        form = urllib.parse.urlencode({"sub": self.USER}).encode()
        return tiny_browser.request(tiny_browser.request(url, "POST", {"Content-Type": "application/x-www-form-urlencoded"}, form).location)

    def revoke_all(self):
        page = tiny_browser.request(f"{self.url}/users/{self.USER}/revoke-tokens", "POST", body=b"")
        assert page.status in (200, 204), (page.status, page.body)

    def token_requests(self):
        return self.output_path.read_text().count('"POST /oauth2/token ')


class TokenService(Site):
    """Issues tokens at /token: without a login for pulling, with Basic for everything.

    `registry` is a docker-registry that accepts them. `asked` are triples of user, service and scopes for each token request.
    """

    def __init__(self, folder, users):
        self.users, self.asked, self._issued = users, [], []
        super().__init__()
        self.registry = Registry(folder, self.url + "/token")
        self.resources, self.stop = [self.registry], self.registry.stop

    def issued_secrets(self):
        """Returns the values of all tokens, which the registry may receive."""
        return dict.fromkeys(self._issued, True)

    def _answer(self, request):
        if request.path != "/token" or request.method != "GET":
            return json_answer(404, {"errors": [{"code": "NOT_FOUND"}]})
        said, user = request.authorization or "", ""
        if said:
            user = next((user for user, password in self.users.items() if said == basic(user, password)), None)
            if user is None:
                value = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
                return json_answer(401, value, 'WWW-Authenticate: Basic realm="token service"')
        service = request.query.get("service")
        scopes = [scope for name, value in request.query_pairs if name == "scope" for scope in value.split()]
        self.asked.append((user, service, scopes))
        granted = []
        for scope in scopes:
            head, _, actions = scope.rpartition(":")
            granted.append(f"{head}:" + ",".join(one for one in actions.split(",") if user or one == "pull"))
        token = self.registry.token(*granted, user=user, lifetime=60, audience=service or "")
        self._issued.append(token)
        return json_answer(200, {"token": token, "access_token": token, "expires_in": 60})


@pytest.fixture
def glewlwyd(stage, tmp_path):
    server = stage.server(Glewlwyd(tmp_path))
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


def login_page(challenge):
    """Returns the page of the server to which the broker sends the browser."""
    return tiny_browser.visit(challenge["params"]["login"]["url"]).location


def test_glewlwyd_in_chromium(stage, glewlwyd, resource):
    """A real browser runs the scripts of the login page, and follows the redirect back to the broker."""
    client = stage.client(broker=configured(stage, resource, glewlwyd, **{"redirect-port": glewlwyd.redirect_port}))
    calls = [client.start("fetch/run", {"url": resource.url + "/api"}) for _ in range(3)]
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
    call = client.start("fetch/run", {"url": url})
    return call if is_asked(client, call) else None


def test_glewlwyd_with_a_device_code(stage, glewlwyd, resource):
    client = stage.client(broker=configured(stage, resource, glewlwyd, flow="device"))
    call = client.start("fetch/run", {"url": resource.url + "/api"})
    login = client.challenges.get(timeout=30)["params"]["login"]
    glewlwyd.approve(f"{glewlwyd.issuer}/device?" + urllib.parse.urlencode({"code": login["userCode"]}))
    assert client.wait(call)["result"]["status"] == 200


def test_glewlwyd_with_client_credentials(stage, glewlwyd, resource, tmp_path):
    path = private(tmp_path / "secret", glewlwyd.SECRET)
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
    path = private(tmp_path / "secret", "not checked")
    url = provider.endpoint("userinfo")
    broker = stage.configured(
        f'[oauth."{url}"]\nissuer = "{provider.issuer}"\nclient-id = "watchword"\nclient-secret-file = "{path}"\n'
        'scopes = ["openid", "email"]\n')
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": url})
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
    service = stage.server(TokenService(tmp_path, {"ann": "anns-password"}))
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
