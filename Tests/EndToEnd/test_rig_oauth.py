"""The rig's scripted OAuth servers, tested with a plain client: the broker's tests rely on them."""
import contextlib
import http.client
import json
import os
import secrets
import ssl
import time
import urllib.parse

import pytest

from rig import dpop, oauth_answers, tiny_browser
from rig.authorization_server import AuthorizationServer
from rig.plain_client import DEVICE, PlainClient, get
from rig.protected_resource import ProtectedResource
from rig.scripted import response


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
    with contextlib.closing(PlainClient(server)) as client:
        yield client


def document(url):
    page = get(url)
    return page.status, json.loads(page.body) if page.status == 200 else None


def test_a_login_with_pkce(server, resource, client):
    redirect = tiny_browser.hold_redirect(client.login_url(state="s p&c"))
    assert redirect.url.startswith(client.redirect_uri + "?") and not client.listener.requests
    assert redirect.parameters == {"code": server.memory.codes[0].value, "state": "s p&c", "iss": server.issuer}
    status, answer = client.exchange(redirect.parameters["code"])
    assert status == 200 and answer == {
        "access_token": server.access_tokens[0].value, "token_type": "Bearer", "expires_in": 3600, "scope": "read",
        "refresh_token": server.refresh_tokens[0].value}
    challenged = get(resource.identifier)
    assert challenged.status == 401
    assert challenged.header("WWW-Authenticate") == f'Bearer realm="api", resource_metadata="{resource.metadata_url}", scope="read"'
    page = get(resource.identifier, answer["access_token"])
    assert (page.status, page.body) == (200, b"for the bearer\n")
    assert resource.presented == [(None, None), ("Bearer", answer["access_token"])]
    assert [request.form["grant_type"] for request in server.requests_to("/token")] == ["authorization_code"]
    assert server.authorizations[0]["state"] == "s p&c" and not server.problems


@pytest.mark.parametrize("changes, code", [
    ({"code_challenge": None}, "invalid_request"), ({"code_challenge_method": "plain"}, "invalid_request"),
    ({"code_challenge_method": None}, "invalid_request"), ({"state": None}, "invalid_request"),
    ({"response_type": "token"}, "unsupported_response_type"), ({"scope": "unknown"}, "invalid_scope")])
def test_bad_authorization_requests(server, client, changes, code):
    redirect = tiny_browser.hold_redirect(client.login_url(**changes))
    assert redirect.parameters["error"] == code and "code" not in redirect.parameters and not server.memory.codes


@pytest.mark.parametrize("uri", ["http://localhost:1/", "http://evil.example/", "https://127.0.0.1:1/", "http://127.0.0.1.evil.example/"])
def test_other_redirect_uris_get_no_redirect(server, client, uri):
    page = tiny_browser.visit(client.login_url(redirect_uri=uri))
    assert page.status == 400 and page.location is None and server.problems


def test_registered_redirect_uris(server, client):
    server.client("fixed", redirect_uris=("http://127.0.0.1:7777/callback",), any_port=False)
    server.client("floating", redirect_uris=("http://127.0.0.1/callback",))
    client.name = "fixed"
    assert tiny_browser.visit(client.login_url()).status == 400
    assert tiny_browser.visit(client.login_url(redirect_uri="http://127.0.0.1:7777/callback")).status == 302
    client.name = "floating"
    assert tiny_browser.visit(client.login_url()).status == 302
    assert tiny_browser.visit(client.login_url(redirect_uri=client.listener.url + "/other")).status == 400


def test_codes_are_for_one_use_and_one_verifier(server, resource, client):
    assert client.exchange(client.log_in()["code"], code_verifier=secrets.token_urlsafe(32))[1]["error"] == "invalid_grant"
    assert client.exchange(client.log_in()["code"], redirect_uri=client.redirect_uri + "2")[1]["error"] == "invalid_grant"
    code = client.log_in()["code"]
    tokens = client.exchange(code)[1]
    assert get(resource.identifier, tokens["access_token"]).status == 200
    status, answer = client.exchange(code)
    assert status == 400 and answer["error"] == "invalid_grant"
    assert get(resource.identifier, tokens["access_token"]).status == 401
    assert client.refresh(tokens["refresh_token"])[1]["error"] == "invalid_grant"
    late = client.log_in()["code"]
    server.advance(61)
    assert client.exchange(late)[1]["error"] == "invalid_grant"
    server.config(invalid_grant=oauth_answers.dated(400))
    assert client.exchange("unknown") == (400, None)


def test_rotation_detects_reuse(server, resource, client):
    first = client.tokens(scope="read write")
    second = client.refresh(first["refresh_token"])[1]
    assert second["refresh_token"] != first["refresh_token"] and second["scope"] == "read write"
    assert get(resource.identifier + "/w", second["access_token"]).status == 200
    assert client.refresh(first["refresh_token"])[1]["error"] == "invalid_grant"
    assert get(resource.identifier, second["access_token"]).status == 401
    assert client.refresh(second["refresh_token"])[1]["error"] == "invalid_grant"
    server.config(rotation=False)
    kept = client.tokens(scope="read write")
    for _ in range(2):
        status, answer = client.refresh(kept["refresh_token"], scope="read")
        assert status == 200 and "refresh_token" not in answer and answer["scope"] == "read"
    assert client.refresh(kept["refresh_token"], scope="read openid")[1]["error"] == "invalid_scope"


def test_other_clients(server, client):
    """Codes and tokens of one client are not valid for another, and a client has only its grants."""
    server.client("other")
    server.client("limited", grants=("refresh_token",))
    code, token = client.log_in()["code"], client.tokens()["refresh_token"]
    device = client.post("device_authorization")[1]
    client.name = "other"
    assert client.exchange(code)[1]["error"] == client.refresh(token)[1]["error"] == client.poll(device)[1]["error"] == "invalid_grant"
    client.name = "limited"
    assert client.log_in()["error"] == client.exchange(code)[1]["error"] == client.post("device_authorization")[1]["error"]
    assert client.exchange(code)[1]["error"] == "unauthorized_client"
    client.name = "watchword"
    assert client.exchange(code)[0] == client.refresh(token)[0] == 200 and client.poll(device)[1]["error"] == "authorization_pending"


def test_expiry_and_revocation(server, resource, client):
    server.config(expires_in=60)
    tokens = client.tokens()
    assert tokens["expires_in"] == 60 and get(resource.identifier, tokens["access_token"]).status == 200
    server.advance(60)
    page = get(resource.identifier, tokens["access_token"])
    assert page.status == 401 and 'error="invalid_token"' in page.header("WWW-Authenticate")
    tokens = client.refresh(tokens["refresh_token"])[1]
    server.revoke_access()
    assert get(resource.identifier, tokens["access_token"]).status == 401
    tokens = client.refresh(tokens["refresh_token"])[1]
    server.revoke_refresh()
    assert get(resource.identifier, tokens["access_token"]).status == 200
    assert client.refresh(tokens["refresh_token"])[1]["error"] == "invalid_grant"
    tokens = client.tokens()
    assert client.post("revoke", token=tokens["access_token"]) == (200, None) and server.revocations.pop()[1].kind == "access"
    assert get(resource.identifier, tokens["access_token"]).status == 401
    tokens = client.refresh(tokens["refresh_token"])[1]
    server.client("other")
    assert client.post("revoke", token=tokens["access_token"], client_id="other")[1]["error"] == "unauthorized_client"
    assert get(resource.identifier, tokens["access_token"]).status == 200
    assert client.post("revoke", token=tokens["refresh_token"], token_type_hint="refresh_token") == (200, None)
    assert get(resource.identifier, tokens["access_token"]).status == 401
    assert client.post("revoke", token="unknown") == (200, None)
    assert [(hint, token and token.value) for hint, token in server.revocations] == [("refresh_token", tokens["refresh_token"]), (None, None)]


def test_scopes(server, resource, client):
    server.config(scopes=("read",))
    assert client.tokens(scope="read write")["scope"] == "read"
    page = get(resource.identifier + "/w", server.access_tokens[-1].value)
    assert page.status == 403 and 'scope="read write", error="insufficient_scope"' in page.header("WWW-Authenticate")
    resource.config(insufficient_status=401)
    assert get(resource.identifier + "/w", server.access_tokens[-1].value).status == 401


def test_client_credentials(server, resource, client):
    server.client("robot", "s:e%cret")
    form = {"grant_type": "client_credentials", "scope": "read"}
    client.name, client.secret = "robot", urllib.parse.quote("s:e%cret", safe="")
    status, answer = client.post("token", **form)
    assert status == 200 and "refresh_token" not in answer
    assert get(resource.identifier, answer["access_token"]).status == 200
    client.secret = "wrong"
    assert client.post("token", **form) == (401, {"error": "invalid_client"})
    client.secret = None
    assert client.post("token", **form, client_secret="s:e%cret")[1]["error"] == "invalid_client" and server.problems
    assert client.post("token", **form, client_id="watchword")[1]["error"] == "unauthorized_client"


def test_token_requests_that_are_not_forms(server, client):
    form = f"grant_type=refresh_token&refresh_token=x&client_id={client.name}".encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    url = server.endpoint("token")
    for method, target, headers, body in [
            ("POST", url, {"Content-Type": "application/json"}, form), ("POST", url + "?refresh_token=x", kind, form),
            ("POST", url, kind, form + b"&refresh_token=x"), ("GET", url + "?" + form.decode(), {}, None)]:
        count = len(server.problems)
        page = tiny_browser.request(target, method, headers, body)
        assert page.status == (405 if method == "GET" else 400)
        assert method == "GET" or json.loads(page.body)["error"] == "invalid_request" and len(server.problems) == count + 1


def test_a_device(server, resource, client):
    status, device = client.post("device_authorization", scope="read")
    assert status == 200 and device["interval"] == 1 and device["verification_uri_complete"].endswith(device["user_code"])
    poll = lambda: client.post("token", grant_type=DEVICE, device_code=device["device_code"])
    assert poll() == (400, {"error": "authorization_pending"})
    assert poll() == (400, {"error": "slow_down"}) and server.devices[0].interval == 6
    server.config(enforce_interval=False)
    server.slow_down()
    assert [poll()[1]["error"] for _ in range(2)] == ["slow_down", "authorization_pending"]
    assert tiny_browser.open_login(device["verification_uri_complete"]).body.count(b"enter the code")
    assert poll()[1]["error"] == "authorization_pending"
    server.approve(device["user_code"])
    status, answer = poll()
    assert status == 200 and get(resource.identifier, answer["access_token"]).status == 200
    assert poll()[1]["error"] == "invalid_grant" and len(server.devices[0].polls) == 6
    server.config(interval=None, approves_visits=True)
    for act, code in [(server.deny, "access_denied"), (server.expire_device, "expired_token"), (lambda: server.advance(600), "expired_token")]:
        device = client.post("device_authorization", scope="read")[1]
        assert "interval" not in device
        act()
        assert poll()[1]["error"] == code
    device = client.post("device_authorization", scope="read")[1]
    tiny_browser.open_login(device["verification_uri_complete"])
    assert poll()[0] == 200


def test_places_of_metadata():
    for path in ["", "/t1"]:
        with contextlib.closing(AuthorizationServer(issuer_path=path)) as server:
            places = {"inserted-oauth": f"/.well-known/oauth-authorization-server{path}",
                      "inserted-openid": f"/.well-known/openid-configuration{path}",
                      "appended-openid": f"{path}/.well-known/openid-configuration"}
            for name, place in places.items():
                server.config(metadata_at=(name,))
                found = {one for one, other in places.items() if document(server.url + other)[0] == 200}
                assert found == ({name} if path or name == "inserted-oauth" else {"inserted-openid", "appended-openid"})
                value = document(server.url + place)[1]
                assert value["issuer"] == server.issuer == server.url + path
                assert value["token_endpoint"] == f"{server.url}{path}/token" == server.endpoint("token")
                assert value["code_challenge_methods_supported"] == ["S256"]
                assert value["authorization_response_iss_parameter_supported"] is True
            assert len(server.requests_to("metadata")) == 12 and not server.requests_to("/token")


def test_metadata_of_the_resource(server, resource):
    assert document(resource.metadata_url) == (200, resource.metadata())
    assert resource.metadata()["authorization_servers"] == [server.issuer] and resource.metadata()["resource"] == resource.identifier
    root = resource.url + "/.well-known/oauth-protected-resource"
    assert document(root)[0] == 404
    resource.config(metadata_at=("root",), metadata={"resource": "https://other.example/", "scopes_supported": None})
    assert document(resource.metadata_url)[0] == 404
    changed = document(root)[1]
    assert changed["resource"] == "https://other.example/" and "scopes_supported" not in changed
    resource.config(resource_metadata="https://other.example/metadata", realm=None, scope=None)
    assert get(resource.identifier).header("WWW-Authenticate") == 'Bearer resource_metadata="https://other.example/metadata"'
    resource.config(resource_metadata=None)
    assert get(resource.identifier).header("WWW-Authenticate") == "Bearer"


def test_changes_of_a_hostile_server(server, client):
    server.config(metadata={"issuer": "https://other.example", "token_endpoint": lambda url: url + "/elsewhere", "jwks_uri": None})
    changed = document(server.url + "/.well-known/oauth-authorization-server")[1]
    assert changed["issuer"] == "https://other.example" and changed["token_endpoint"] == server.endpoint("token/elsewhere")
    assert "jwks_uri" not in changed
    server.config(redirect={"state": "wrong", "iss": None})
    redirect = client.log_in()
    assert redirect["state"] == "wrong" and "iss" not in redirect and redirect["code"]
    server.config(token_response={"token_type": "mac", "expires_in": None, "access_token": lambda value: value + "\r\nX: y"}, redirect={})
    answer = client.tokens()
    assert answer["token_type"] == "mac" and "expires_in" not in answer and answer["access_token"].endswith("\r\nX: y")
    server.config(token_response={}, refresh_tokens=False, sends_iss=False, approves=False)
    assert "authorization_response_iss_parameter_supported" not in server.metadata()
    assert client.log_in() == {"error": "access_denied", "state": "st"}
    server.config(approves=True)
    assert "refresh_token" not in client.tokens()
    with pytest.raises(AssertionError, match="no setting"):
        server.config(unknown=1)


def test_faults(server, client):
    server.refuse("/token", "invalid_client", times=1)
    server.refuse("/token", "temporarily_unavailable", grant="refresh_token")
    assert client.refresh("x") == (401, {"error": "invalid_client"})
    assert client.refresh("x")[1]["error"] == "temporarily_unavailable"
    assert client.tokens()
    server.clear_faults()
    server.refuse("/authorize", "login_required", description="no session")
    assert client.log_in() == {"error": "login_required", "error_description": "no session", "state": "st", "iss": server.issuer}
    server.fail("/token", oauth_answers.redirect(307, "http://127.0.0.1:9/"), times=1)
    server.fail("/token", oauth_answers.dated(503, b"", "Retry-After: 7"), times=1)
    server.fail("/token", oauth_answers.CLOSE, times=1)
    url = server.endpoint("token")
    page = tiny_browser.request(url, "POST", {}, b"")
    assert page.status == 307 and page.location == "http://127.0.0.1:9/"
    assert tiny_browser.request(url, "POST", {}, b"").header("Retry-After") == "7"
    with pytest.raises(http.client.RemoteDisconnected):
        tiny_browser.request(url, "POST", {}, b"")
    server.fail("/token", oauth_answers.SILENT)
    with pytest.raises(TimeoutError):
        tiny_browser.request(url, "POST", {}, b"", seconds=0.3)
    assert len(server.requests_to("/token")) == 7


def test_metadata_without_end(server):
    url = server.url + "/.well-known/oauth-authorization-server"
    server.fail("metadata", oauth_answers.huge(server.metadata(), 3_000_000), times=1)
    page = get(url)
    assert len(page.body) == 3_000_000 and json.loads(page.body)["issuer"] == server.issuer
    server.fail("metadata", oauth_answers.slowly(response(200, b"{}"), 0.005), times=1)
    start = time.monotonic()
    assert get(url).body == b"{}" and time.monotonic() - start > 0.15
    server.fail("metadata", oauth_answers.endless)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("GET", "/.well-known/oauth-authorization-server")
    assert len(connection.getresponse().read(20_000_000)) == 20_000_000
    connection.close()


def test_held_requests(server, client):
    import threading

    done = []
    with server.held("/token") as held:
        thread = threading.Thread(target=lambda: done.append(client.refresh("x")[0]))
        thread.start()
        server.wait_for("/token")
        time.sleep(0.1)
        assert not done
        held.set()
        thread.join(10)
    assert done == [400]


def test_resource_indicators(server, resource, client):
    resource.config(checks_audience=True)
    token = client.tokens()["access_token"]
    assert get(resource.identifier, token).status == 401
    token = client.tokens(resource=resource.identifier)["access_token"]
    assert get(resource.identifier, token).status == 200 and server.access_tokens[-1].resources == (resource.identifier,)
    code = client.log_in(resource=resource.identifier)["code"]
    assert client.exchange(code, resource="https://other.example/")[1]["error"] == "invalid_target"
    server.config(resources=(resource.identifier,))
    assert client.log_in(resource="https://other.example/")["error"] == "invalid_target"


def test_identity_tokens(server, client):
    answer = client.tokens(scope="openid read", nonce="n1")
    claims = json.loads(dpop.decoded(answer["id_token"].split(".")[1]))
    assert claims["iss"] == server.issuer and claims["aud"] == "watchword" and claims["nonce"] == "n1" and claims["exp"] > time.time()
    keys = document(server.endpoint("jwks"))[1]["keys"]
    dpop.verify(answer["id_token"], dpop.key_of(keys[0]))
    with pytest.raises(Exception):
        dpop.verify(answer["id_token"], dpop.Prover().key.public_key())
    server.config(id_token={"nonce": None, "aud": "other"})
    claims = json.loads(dpop.decoded(client.tokens(scope="openid", nonce="n2")["id_token"].split(".")[1]))
    assert claims["aud"] == "other" and "nonce" not in claims


def test_registration(server, client):
    url = server.endpoint("register")
    register = lambda **value: tiny_browser.request(url, "POST", {"Content-Type": "application/json"}, json.dumps(value).encode())
    assert register().status == 404 and "registration_endpoint" not in server.metadata()
    server.config(registration=True)
    page = register(redirect_uris=[client.redirect_uri], token_endpoint_auth_method="none")
    answer = json.loads(page.body)
    assert page.status == 201 and "client_secret" not in answer and server.metadata()["registration_endpoint"] == url
    client.name = answer["client_id"]
    assert client.tokens()
    confidential = json.loads(register(redirect_uris=[client.redirect_uri]).body)
    client.name, client.secret = confidential["client_id"], confidential["client_secret"]
    assert client.tokens() and len(server.registrations) == 2


def test_a_browser_with_a_session(server, client):
    server.config(needs_session=True)
    jar = {}
    page = tiny_browser.open_login(client.login_url(), jar)
    assert page.status == 200 and page.body == b"done" and len(page.history) == 3
    assert [host for host, _ in jar] == ["127.0.0.1"] and server.requests[-1].header("Cookie") == client.listener.requests[0].header("Cookie")
    tiny_browser.visit(client.listener.url.replace("127.0.0.1", "localhost"), jar)
    assert client.listener.requests.pop().header("Cookie") is None
    assert page.url.startswith(client.redirect_uri + "?") and client.listener.requests[0].header("Host") == f"127.0.0.1:{client.listener.port}"
    assert len(tiny_browser.open_login(client.login_url(), jar).history) == 1
    assert len(server.requests_to("/login")) == 1 and len(server.authorizations) == 2
    redirect = tiny_browser.hold_redirect(client.login_url(), jar).altered(state="other", iss=None)
    assert redirect.at("/elsewhere").follow(host="evil.example", method="POST").status == 200
    last = client.listener.requests[-1]
    assert (last.method, last.path, last.header("Host")) == ("POST", "/elsewhere", "evil.example")
    assert last.query["state"] == "other" and "iss" not in last.query


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_request_of_another_user(client):
    import pwd

    uids = []
    client.listener.handler = lambda request: uids.append(peer_user(client.listener.port)) or response(200)
    assert tiny_browser.hold_redirect(client.login_url()).follow_as("nobody") == 200
    assert uids == [pwd.getpwnam("nobody").pw_uid]


def peer_user(port):
    """Returns the user of the connected socket to a loopback port, from /proc/net/tcp."""
    with open("/proc/net/tcp") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return next(int(row[7]) for row in rows if row[2] == f"0100007F:{port:04X}" and row[3] == "01")


def test_bound_tokens(server, resource, client):
    """RFC 9449: the proof's key, and every claim, are checked at the token endpoint and at the resource."""
    assert "dpop_signing_alg_values_supported" not in server.metadata()
    server.config(dpop="offered")
    resource.config(dpop=True)
    assert server.metadata()["dpop_signing_alg_values_supported"] == ["ES256"]
    challenges = [value for name, value in get(resource.identifier).headers if name == "WWW-Authenticate"]
    assert [one.split()[0] for one in challenges] == ["Bearer", "DPoP"] and challenges[1].endswith('algs="ES256"')
    free = client.tokens()["access_token"]
    assert get(resource.identifier, free).status == 200 and get(resource.identifier, free, "DPoP").status == 401
    client.prover = prover = dpop.Prover()
    answer = client.tokens(dpop_jkt=prover.thumbprint)
    token = answer["access_token"]
    assert answer["token_type"] == "DPoP" and server.access_tokens[-1].jkt == prover.thumbprint

    def reach(scheme="DPoP", by=prover, header=None, url=resource.identifier, **changes):
        proof = by.proof("GET", url, token, header=header, **changes)
        page = get(resource.identifier, token, scheme, DPoP=proof)
        found = page.header("WWW-Authenticate") or ""
        return (page.status, found.partition('error="')[2].partition('"')[0])

    assert reach() == (200, "")
    assert reach(url=resource.identifier + "?query") == (200, "")
    assert reach("Bearer") == (401, "invalid_token") and get(resource.identifier, token).status == 401
    assert get(resource.identifier, token, "DPoP").header("WWW-Authenticate").count("invalid_dpop_proof") == 1
    assert reach(by=dpop.Prover()) == (401, "invalid_token")
    for changes in [{"ath": None}, {"ath": "x"}, {"htm": "POST"}, {"htu": resource.url}, {"jti": None}, {"iat": int(time.time()) - 90},
                    {"iat": int(time.time()) + 90}, {"header": {"typ": "JWT"}}, {"header": {"alg": "none"}},
                    {"header": {"jwk": dpop.Prover().jwk}}, {"header": {"jwk": {**prover.jwk, "d": "AA"}}}]:
        assert reach(**changes) == (401, "invalid_dpop_proof"), changes
    assert reach(jti="twice") == (200, "") and reach(jti="twice") == (401, "invalid_dpop_proof")
    resource.proofs.offset = 3600
    assert reach() == (401, "invalid_dpop_proof") and reach(iat=int(time.time()) + 3600) == (200, "")
    resource.proofs.offset = 0

    client.prover = None
    assert client.refresh(answer["refresh_token"])[1]["error"] == "invalid_dpop_proof"
    client.prover = dpop.Prover()
    assert client.refresh(answer["refresh_token"])[1]["error"] == "invalid_dpop_proof"
    code = client.log_in(dpop_jkt=prover.thumbprint)["code"]
    assert client.exchange(code)[1]["error"] == "invalid_dpop_proof"
    client.prover = prover
    assert client.refresh(answer["refresh_token"])[1]["token_type"] == "DPoP"
    server.config(dpop="required")
    client.prover = None
    assert client.exchange(client.log_in()["code"])[1]["error"] == "invalid_dpop_proof"


def test_nonces(server, resource, client):
    server.config(dpop="offered")
    resource.config(dpop=True)
    client.prover = dpop.Prover()
    nonce = server.new_dpop_nonce()
    code = client.log_in()["code"]
    url, form = server.endpoint("token"), f"grant_type=authorization_code&code={code}&client_id=watchword"
    page = tiny_browser.request(
        url, "POST", {"Content-Type": "application/x-www-form-urlencoded", "DPoP": client.prover.proof("POST", url)}, form.encode())
    assert page.status == 400 and json.loads(page.body)["error"] == "use_dpop_nonce" and page.header("DPoP-Nonce") == nonce
    status, answer = client.exchange(code, nonce=nonce)
    assert status == 200
    token = answer["access_token"]
    reach = lambda nonce: get(resource.identifier, token, "DPoP", DPoP=client.prover.proof("GET", resource.identifier, token, nonce))
    assert reach(None).status == 200
    again = resource.new_dpop_nonce()
    page = reach(nonce)
    assert page.status == 401 and 'error="use_dpop_nonce"' in page.header("WWW-Authenticate") and page.header("DPoP-Nonce") == again
    assert reach(again).status == 200


def test_secrets_of_a_test(stage, oauth):
    """At the end of a test, a token at a server that it is not for is found."""
    with contextlib.closing(PlainClient(oauth.server)) as client:
        tokens = client.tokens()
    assert get(oauth.resource.identifier, tokens["access_token"]).status == 200
    other = stage.server(lambda request: response(200))
    get(other.url, tokens["access_token"])
    with pytest.raises(AssertionError, match="a secret was found"):
        stage.end()
    other.wire = b""
    get(oauth.resource.identifier, tokens["refresh_token"])
    with pytest.raises(AssertionError, match="a secret was found"):
        stage.end()
    oauth.resource.wire = b""


def test_https(certificates, client):
    with contextlib.closing(AuthorizationServer(certificates, "/t1")) as server:
        client.server = server
        assert server.issuer.startswith("https://localhost:")
        redirect = tiny_browser.hold_redirect(client.login_url(), authority=certificates / "ca.pem")
        assert redirect.parameters["iss"] == server.issuer
        with pytest.raises(ssl.SSLCertVerificationError):
            tiny_browser.request(server.issuer)
