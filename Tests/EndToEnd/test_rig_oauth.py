"""What the rig's OAuth servers must refuse, tested with a plain client: with servers that accept everything, the broker's tests would
show nothing. What they accept is shown by the broker's tests."""
import base64
import contextlib
import hashlib
import json
import secrets
import time
import urllib.parse

import pytest

from rig import oauth_answers, tiny_browser
from rig.authorization_server import DEVICE_GRANT, AuthorizationServer, ProtectedResource
from rig.login_sites import Site
from rig.oauth_answers import with_query
from rig.scripted import response

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class PlainClient:
    """A client with PKCE. With `prover`, it sends DPoP proofs."""

    redirect_uri = "http://127.0.0.1:9/callback"

    def __init__(self, server):
        self.server, self.name, self.secret, self.prover = server, "watchword", None, None
        self.verifier = secrets.token_urlsafe(32)

    def login_url(self, **changes):
        challenge = oauth_answers.encoded(hashlib.sha256(self.verifier.encode()).digest())
        parameters = {"response_type": "code", "client_id": self.name, "redirect_uri": self.redirect_uri, "state": "st", "scope": "read",
                      "code_challenge": challenge, "code_challenge_method": "S256"}
        return with_query(self.server.endpoint("authorize"), {**parameters, **changes})

    def log_in(self, **changes):
        """Returns the parameters of the redirect."""
        return tiny_browser.hold_redirect(self.login_url(**changes)).parameters

    def post(self, place, nonce=None, **form):
        """Returns the error, or the JSON object of the response."""
        headers, url = dict(FORM), self.server.endpoint(place)
        if self.secret is None:
            form.setdefault("client_id", self.name)
        else:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{self.name}:{self.secret}".encode()).decode()
        if self.prover:
            headers["DPoP"] = self.prover.proof("POST", url, nonce=nonce)
        answer = tiny_browser.request(url, "POST", headers, urllib.parse.urlencode(form).encode())
        value = json.loads(answer.body or "{}")
        assert ("error" in value) == (answer.status >= 400)
        return value.get("error", value)

    def exchange(self, code, **changes):
        return self.post("token", **{"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri,
                                     "code_verifier": self.verifier, **changes})

    def tokens(self, **changes):
        """Logs in; returns the token response."""
        return self.exchange(self.log_in(**changes)["code"])

    def refresh(self, token, **more):
        return self.post("token", grant_type="refresh_token", refresh_token=token, **more)

    def poll(self, device):
        return self.post("token", grant_type=DEVICE_GRANT, device_code=device["device_code"])


@pytest.fixture
def server():
    with contextlib.closing(AuthorizationServer()) as server:
        yield server
        assert not [one for one in server.problems if "Traceback" in one], server.problems


@pytest.fixture
def resource(server):
    with contextlib.closing(ProtectedResource(server)) as resource:
        yield resource
        assert not [one for one in resource.problems if "Traceback" in one], resource.problems


@pytest.fixture
def client(server):
    return PlainClient(server)


def get(url, token, scheme="Bearer", **headers):
    """Returns the status, and the error of the challenge."""
    page = tiny_browser.request(url, headers={"Authorization": f"{scheme} {token}", **headers})
    return page.status, (page.header("WWW-Authenticate") or "").partition('error="')[2].partition('"')[0]


REFUSED = (401, "invalid_token")


@pytest.mark.parametrize("uri", ["http://localhost:1/", "http://evil.example/", "https://127.0.0.1:1/", "http://127.0.0.1.evil.example/"])
def test_other_redirect_uris_get_no_redirect(server, client, uri):
    page = tiny_browser.visit(client.login_url(redirect_uri=uri))
    assert page.status == 400 and page.location is None and server.problems


def test_codes_are_for_one_use_and_one_verifier(server, resource, client):
    assert client.exchange(client.log_in()["code"], code_verifier=secrets.token_urlsafe(32)) == "invalid_grant"
    assert client.exchange(client.log_in()["code"], redirect_uri=client.redirect_uri + "2") == "invalid_grant"
    code = client.log_in()["code"]
    tokens = client.exchange(code)
    assert get(resource.identifier, tokens["access_token"])[0] == 200
    assert client.exchange(code) == "invalid_grant"
    assert get(resource.identifier, tokens["access_token"]) == REFUSED
    assert client.refresh(tokens["refresh_token"]) == "invalid_grant"
    late = client.log_in()["code"]
    server.advance(61)
    assert client.exchange(late) == "invalid_grant"


def test_rotation_detects_reuse(server, resource, client):
    first = client.tokens(scope="read write")
    second = client.refresh(first["refresh_token"])
    assert get(resource.identifier + "/w", second["access_token"])[0] == 200
    assert client.refresh(first["refresh_token"]) == "invalid_grant"
    assert get(resource.identifier, second["access_token"]) == REFUSED
    assert client.refresh(second["refresh_token"]) == "invalid_grant"
    assert client.refresh(client.tokens()["refresh_token"], scope="read openid") == "invalid_scope"


def test_expiry_revocation_and_scopes(server, resource, client):
    server.config(expires_in=60)
    tokens = client.tokens()
    assert get(resource.identifier, tokens["access_token"])[0] == 200
    assert get(resource.identifier + "/w", tokens["access_token"]) == (403, "insufficient_scope")
    server.advance(60)
    assert get(resource.identifier, tokens["access_token"]) == REFUSED
    for kind in ["access_token", "refresh_token"]:
        tokens = client.refresh(tokens["refresh_token"])
        assert client.post("revoke", token=tokens[kind]) == {} and get(resource.identifier, tokens["access_token"]) == REFUSED
    assert client.refresh(tokens["refresh_token"]) == "invalid_grant"
    resource.config(checks_audience=True)
    assert get(resource.identifier, client.tokens()["access_token"]) == REFUSED
    code = client.log_in(resource=resource.identifier)["code"]
    assert client.exchange(code, resource="https://other.example/") == "invalid_target"


def test_bound_tokens(server, resource, client):
    """RFC 9449: the proof's key, and every claim, are checked at the token endpoint and at the resource."""
    server.config(dpop="offered")
    resource.config(dpop=True)
    assert get(resource.identifier, client.tokens()["access_token"], "DPoP") == REFUSED, "the token is not bound"
    client.prover = prover = oauth_answers.Prover()
    answer = client.tokens(dpop_jkt=prover.thumbprint)
    token = answer["access_token"]

    def reach(scheme="DPoP", by=prover, header=None, url=resource.identifier, **changes):
        return get(resource.identifier, token, scheme, DPoP=by.proof("GET", url, token, header=header, **changes))

    assert reach() == (200, "") and reach(url=resource.identifier + "?query") == (200, "")
    assert reach("Bearer") == reach(by=oauth_answers.Prover()) == get(resource.identifier, token) == REFUSED
    assert get(resource.identifier, token, "DPoP") == (401, "invalid_dpop_proof")
    for changes in [{"ath": None}, {"ath": "x"}, {"htm": "POST"}, {"htu": resource.url}, {"jti": None}, {"iat": int(time.time()) - 90},
                    {"iat": int(time.time()) + 90}, {"header": {"typ": "JWT"}}, {"header": {"alg": "none"}},
                    {"header": {"jwk": oauth_answers.Prover().jwk}}, {"header": {"jwk": {**prover.jwk, "d": "AA"}}}]:
        assert reach(**changes) == (401, "invalid_dpop_proof"), changes
    assert reach(jti="twice") == (200, "") and reach(jti="twice") == (401, "invalid_dpop_proof")
    resource.new_dpop_nonce()
    assert reach() == reach(nonce="old") == (401, "use_dpop_nonce")

    for client.prover in [None, oauth_answers.Prover()]:
        assert client.refresh(answer["refresh_token"]) == "invalid_dpop_proof"
    assert client.exchange(client.log_in(dpop_jkt=prover.thumbprint)["code"]) == "invalid_dpop_proof"
    client.prover = prover
    assert client.refresh(answer["refresh_token"])["token_type"] == "DPoP"
    server.new_dpop_nonce()
    assert client.tokens() == "use_dpop_nonce"
    server.config(dpop="required")
    client.prover = None
    assert client.tokens() == "invalid_dpop_proof"


def test_secrets_of_a_test(stage):
    """At the end of a test, a token at a server that it is not for is found."""
    site = Site(stage)
    tokens = PlainClient(site.server).tokens()
    assert get(site.url, tokens["access_token"])[0] == 200
    other = stage.server(lambda request: response(200))
    for place, kind in [(other, "access_token"), (site.resource, "refresh_token")]:
        get(place.url, tokens[kind])
        with pytest.raises(AssertionError, match="a secret was found"):
            stage.end()
        place.wire = b""
