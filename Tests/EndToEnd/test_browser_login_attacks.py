"""Attacks on logins in a browser: no token, code or secret may reach a server that it is not for.

The fixture `stage` searches what every server and client received, and all files of the broker, for each token and code.
"""
import contextlib
import os
import socket
import urllib.parse

import pytest

from rig import tiny_browser
from rig.login_sites import (  # noqa: F401
    Site, client, failure, held_login, is_closed, log_in, logged_in, login_url, own_address, site, started, statuses, stranger)
from rig.oauth_answers import dated, redirect
from rig.authorization_server import ProtectedResource

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def authorizations(server):
    return [request.authorization for request in server.requests]


# Tokens at resources


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_token_follows_a_redirect_of_the_resource(stage, site, client, status):
    logged_in(client, site)
    other = stranger(stage)
    # Another origin by its port, and by its name.
    for target in [other.url, f"http://localhost:{site.resource.port}/open", f"http://127.0.0.2:{other.port}/"]:
        site.resource.clear_faults()
        site.resource.fail("/api/redirect", redirect(status, target), times=1)
        # Nothing listens at 127.0.0.2.
        client.fetch(site.url + "/redirect", timeoutMs=3000)
    assert other.requests and authorizations(other) == [None] * len(other.requests)
    assert [one.authorization for one in site.resource.requests_to("/open")] == [None]


class Strict(ProtectedResource):
    """Requires tokens with the same challenge everywhere, and would accept none but below `path`."""

    def _answer(self, request):
        inside = request.path == self.path or request.path.startswith(self.path + "/")
        return super()._answer(request) if inside or "/.well-known/" in request.path else self._challenge(401)


OUTSIDE = ["/", "/v10", "/v1.", "/V1", "/v1%2fx", "/v1;x", "/v1/../admin", "/v1/./../admin", "/v1/%2e%2e/admin", "/v1//../../admin",
           "/admin?/v1/", "/v1/a/%2e%2e/%2e%2e/admin", "/v1/..%2fadmin", "/v1/%2e%2e%2fadmin", "/v1/..%5cadmin", "/v1/..;/admin",
           "/v1/%252e%252e/admin", "/v1/..%252fadmin"]


def test_no_token_at_another_path_than_the_configured_one(stage):
    site = Site(stage, resource=lambda server: Strict(server, path="/v1"), at="/v1")
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    before = len(site.resource.requests)
    for target in OUTSIDE:
        client.fetch(site.resource.url + target, auth={"interaction": "none"})
    sent = [(request.target, request.authorization) for request in site.resource.requests[before:]]
    assert len(sent) == len(OUTSIDE) and all(value is None for _, value in sent), [one for one in sent if one[1]]
    # With a respondent, a token may be typed, but no login begins.
    call = started(client, site.resource.url + "/v1/..%2fadmin")
    challenge = client.challenges.get(timeout=30)
    assert "login" not in challenge["params"]
    client.reply(challenge, {"action": "cancel"})
    client.wait(call[0])
    assert client.fetch(site.url + "/below")["result"]["status"] == 200 and len(site.server.authorizations) == 1


def test_no_token_of_one_resource_at_another_of_the_same_origin(stage):
    site = Site(stage, resource=lambda server: Strict(server, path="/v1"), at="/v1")
    other = site.configuration().replace("/v1\"]", "/v2\"]").replace('"watchword"', '"another"')
    site.server.client("another")
    client = stage.client(broker=site.broker(text=other))
    logged_in(client, site)
    call = started(client, site.resource.url + "/v2")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["clientId"] == "another"
    client.wait(call[0])
    used = {request.path: {value for value in [request.authorization] if value} for request in site.resource.requests}
    assert not used["/v2"] & used["/v1"], used


def test_a_token_for_https_is_not_sent_with_http(stage, certificates):
    site = Site(stage, resource=lambda server: ProtectedResource(server, certificates))
    client = stage.client(broker=site.broker("--ca-file", str(certificates / "ca.pem")))
    logged_in(client, site)
    plain = stranger(stage)
    site.resource.fail("/api/redirect", redirect(302, plain.url + "/api"))
    client.fetch(site.url + "/redirect")
    # The port of the resource itself, which expects TLS.
    client.fetch(site.url.replace("https:", "http:"), auth={"interaction": "none"})
    assert set(authorizations(plain)) <= {None}
    token = site.server.access_tokens[0].value.encode()
    assert site.resource.wire.count(token) == 2


# Metadata


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_of_metadata_and_of_the_token_endpoint_are_not_followed(stage, status):
    site, other = Site(stage, issuer=None), stranger(stage)
    client, there = stage.client(broker=site.broker()), redirect(status, other.url + "/there")
    for server in [site.server, site.resource]:
        server.fail("metadata", there, times=3)
        assert "error" in client.fetch(f"{site.url}/{server.port}") and client.challenges.empty()
    client = stage.client(broker=site.broker())
    site.server.clear_faults()
    site.resource.clear_faults()
    site.server.fail("/token", there, times=1)
    call = started(client, site.url)
    _, shown = log_in(client)
    assert "error" in client.wait(call[0]) and shown.status == 400
    assert len(site.token_requests()) == 1 and set(site.sent_tokens()) == {None}
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    site.server.revoke_access()
    site.server.fail("/token", there, times=1)
    assert "error" in client.fetch(site.url)
    assert other.connections == 0 and client.challenges.empty()


def test_the_secret_of_the_client_goes_to_the_token_endpoint_only(stage, site):
    secret = stage.secret(site.server)
    site.server.client("confidential", secret)
    path = stage.folder / "client-secret"
    path.write_text(secret + "\n")
    path.chmod(0o600)
    site.options |= {"client-id": "confidential", "client-secret-file": str(path)}
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    with_secret = {request.path for request in site.server.requests if request.authorization}
    assert with_secret == {"/tenant/token"}
    other = stranger(stage)
    site.server.fail("/token", redirect(307, other.url))
    site.server.revoke_access()
    assert "error" in client.fetch(site.url) and other.connections == 0


def test_a_challenge_of_the_token_endpoint_and_of_metadata_is_not_answered(stage, site, client):
    asked = dated(401, b"", 'WWW-Authenticate: Basic realm="x"', 'WWW-Authenticate: Bearer realm="api", scope="read"')
    site.server.fail("metadata", asked, times=3)
    failure(client, client.start("fetch/run", {"url": site.url}))
    assert client.challenges.empty()
    assert not any(request.authorization for request in site.server.requests)


def test_no_access_token_for_a_server_at_the_origin_of_the_resource(stage):
    """The table covers the endpoints, too."""

    class Both(ProtectedResource):
        def _answer(self, request):
            return self.authorization._handle(request) if "tenant" in request.path else super()._answer(request)

    site = Site(stage, resource=Both)
    site.server.issuer = site.resource.url + "/tenant"
    site.server.endpoint = lambda name: f"{site.server.issuer}/{name}"
    site.options["issuer"] = site.server.issuer
    site.stage.servers.remove(site.server)
    client = stage.client(broker=site.broker())
    logged_in(client, site)
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200
    for request in site.resource.requests:
        assert request.path.startswith("/api") or request.authorization is None, request.raw
    assert sum(request.path == "/tenant/token" for request in site.resource.requests) == 2
    site.server.close()


# The listener


@needs_root
def test_another_user_is_refused_at_the_listener(site, client):
    call, challenge, back = held_login(client, site.url)
    for url in [login_url(challenge), back.url]:
        assert tiny_browser.request_as("nobody", url) in (None, 403, 404)
    assert not site.token_requests()
    assert back.follow().status == 200 and statuses(client, [call]) == [200]


@pytest.mark.parametrize("form", ["localhost:{}", "attacker.example:{}", "127.0.0.1", "127.0.0.1.:{}", "127.1:{}", "[::1]:{}", "127.0.0.1:0{}", "",
                                  "user@127.0.0.1:{}"])
def test_another_name_is_refused_at_the_listener(site, client, form):
    call, challenge, back = held_login(client, site.url)
    host = form.format(urllib.parse.urlsplit(back.url).port)
    for url in [back.url, login_url(challenge)]:
        answer = tiny_browser.request(url, host=host)
        assert answer.status in (400, 404, 421) and not answer.location, (answer.status, answer.body)
    assert not site.token_requests()
    assert back.follow().status == 200 and statuses(client, [call]) == [200]


def exchange(port, data, seconds=10):
    """Sends bytes to the listener; returns what it answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as wire:
        received = b""
        with contextlib.suppress(OSError):
            wire.sendall(data)
            while part := wire.recv(1 << 16):
                received += part
        return received


def test_other_requests_are_refused_at_the_listener(stage, site, client):
    other = stranger(stage)
    call, challenge, back = held_login(client, site.url)
    parts = urllib.parse.urlsplit(back.url)
    target, host = f"{parts.path}?{parts.query}", f"Host: {parts.netloc}\r\n"
    body = parts.query.encode()
    requests = [
        f"POST {target} HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n",
        f"HEAD {target} HTTP/1.1\r\n{host}\r\n", f"PUT {target} HTTP/1.1\r\n{host}Content-Length: 0\r\n\r\n",
        f"OPTIONS * HTTP/1.1\r\n{host}\r\n", f"get {target} HTTP/1.1\r\n{host}\r\n", f"GET {back.url} HTTP/1.1\r\n{host}\r\n",
        f"GET {other.url}/ HTTP/1.1\r\nHost: 127.0.0.1:{other.port}\r\n\r\n", f"CONNECT 127.0.0.1:{other.port} HTTP/1.1\r\nHost: 127.0.0.1:{other.port}\r\n\r\n",
        f"GET {target} HTTP/1.1\r\n{host}{host}\r\n", f"GET {target} HTTP/1.1\r\n\r\n", f"GET {target}\r\n\r\n", f"GET  {target} HTTP/1.1\r\n{host}\r\n",
        f"GET {target} HTTP/9.9\r\n{host}\r\n", f"GET {target} HTTP/1.1\r\n{host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        f"GET /{'x' * 100_000} HTTP/1.1\r\n{host}\r\n", f"GET {target} HTTP/1.1\r\n{host}X: {'y' * 2_000_000}\r\n\r\n", "\x00" * 5000 + "\r\n\r\n",
    ]
    raw = [one.encode() for one in requests]
    raw.append(f"POST {parts.path} HTTP/1.1\r\n{host}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    for one in raw:
        answer = exchange(parts.port, one)
        status = answer.split(b" ")[1:2]
        assert answer == b"" or status[0] in (b"400", b"403", b"404", b"405", b"413", b"414", b"421", b"431", b"501", b"505"), (one[:100], answer[:300])
        assert not site.token_requests(), one[:200]
        assert back.parameters["code"].encode() not in answer and back.parameters["state"].encode() not in answer, one[:100]
    assert other.connections == 0
    assert back.follow().status == 200 and statuses(client, [call]) == [200]


def test_pages_of_the_listener_repeat_nothing_and_are_not_stored(site, client):
    call, challenge, back = held_login(client, site.url)
    answers = [tiny_browser.request(back.altered(state="zzmarker").url), tiny_browser.request(back.at("/zzmarker").url), back.follow()]
    for answer in answers:
        assert b"zzmarker" not in answer.body and back.parameters["code"].encode() not in answer.body
        assert answer.header("Cache-Control") == "no-store" and answer.header("Referrer-Policy") == "no-referrer" and not answer.location
        assert "default-src 'none'" in answer.header("Content-Security-Policy")
    assert statuses(client, [call]) == [200]


def test_idle_connections_do_not_keep_the_browser_out(stage, site, client):
    call = started(client, site.url)
    challenge = client.challenges.get(timeout=30)
    port = urllib.parse.urlsplit(login_url(challenge)).port
    with contextlib.ExitStack() as stack:
        for index in range(300):
            wire = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            with contextlib.suppress(OSError):
                wire.sendall(b"GET / HT" if index % 2 else b"")
        assert tiny_browser.open_login(login_url(challenge)).status == 200
        assert statuses(client, call) == [200]


def test_the_listener_is_the_brokers_own_on_the_loopback_interface_and_closes_after_the_login(site, client):
    call, challenge, back = held_login(client, site.url)
    port = urllib.parse.urlsplit(back.url).port
    for option in [None, socket.SO_REUSEADDR, socket.SO_REUSEPORT]:
        for address in ["127.0.0.1", "0.0.0.0"]:
            with socket.socket() as wire:
                if option is not None:
                    wire.setsockopt(socket.SOL_SOCKET, option, 1)
                with pytest.raises(OSError):
                    wire.bind((address, port))
                    wire.listen()
    for address in filter(None, [own_address(), "127.0.0.2", "::1"]):
        with pytest.raises(OSError):
            socket.create_connection((address, port), timeout=2).close()
    assert back.follow().status == 200 and statuses(client, [call]) == [200]
    assert is_closed(login_url(challenge)) and is_closed(back.url)


def test_codes_and_tokens_are_in_no_argument_list_and_environment(site, client):
    call, challenge, back = held_login(client, site.url)
    assert back.follow().status == 200 and statuses(client, [call]) == [200]
    secrets = [value.encode() for value in site.server.issued_secrets()] + [back.parameters["state"].encode()]
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        for name in ["cmdline", "environ"]:
            with contextlib.suppress(OSError), open(f"/proc/{entry.name}/{name}", "rb") as file:
                content = file.read()
                assert not any(secret in content for secret in secrets), (entry.name, name)
