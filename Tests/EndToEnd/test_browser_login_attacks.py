"""Attacks on logins in a browser, and logins at the wrong server, for the wrong program or at the wrong time, as a review has found them: no
token, code or secret may reach a server that it is not for.

The fixture `stage` searches what every server and client received, and all files of the broker, for each token and code."""
import contextlib
import os
import socket
import subprocess
import urllib.parse

import pytest

from rig import tiny_browser
from rig.authorization_server import AuthorizationServer, ProtectedResource
from rig.bodies import eventually
from rig.broker import program
from rig.client import password_answer
from rig.login_sites import (  # noqa: F401
    Site, client, failure, fetching, held_login, is_closed, log_in, logged_in, login_url, own_address, site, started, statuses,
    stranger, user)
from rig.oauth_answers import dated, json_answer, redirect
from rig.scripted import response
from rig.servers import free_port, private

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


def authorizations(server):
    return [request.authorization for request in server.requests]


# Tokens at resources

@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_token_follows_a_redirect_of_the_resource(stage, site, user, status):
    other = stranger(stage)
    # Another origin by its port, and by its name.
    for target in [other.url, f"http://localhost:{site.resource.port}/open", f"http://127.0.0.2:{other.port}/"]:
        site.resource.faults.clear()
        site.resource.fail("/api/redirect", redirect(status, target), times=1)
        # Nothing listens at 127.0.0.2.
        user.fetch(site.url + "/redirect", timeoutMs=3000)
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
    client = site.logged_in()
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
    client = site.logged_in(text=other)
    call = started(client, site.resource.url + "/v2")
    challenge, _ = log_in(client)
    assert challenge["params"]["login"]["clientId"] == "another"
    client.wait(call[0])
    used = {request.path: {value for value in [request.authorization] if value} for request in site.resource.requests}
    assert not used["/v2"] & used["/v1"], used


def test_a_token_for_https_is_not_sent_with_http(stage, certificates):
    site = Site(stage, resource=lambda server: ProtectedResource(server, certificates))
    client = site.logged_in("--ca-file", str(certificates / "ca.pem"))
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
    site.server.faults.clear()
    site.resource.faults.clear()
    site.server.fail("/token", there, times=1)
    call = started(client, site.url)
    _, shown = log_in(client)
    assert "error" in client.wait(call[0]) and shown.status == 400
    assert len(site.token_requests()) == 1 and set(site.sent_tokens()) == {None}
    client = site.logged_in()
    site.server.revoke_access()
    site.server.fail("/token", there, times=1)
    assert "error" in client.fetch(site.url)
    assert other.connections == 0 and client.challenges.empty()


def test_the_secret_of_the_client_goes_to_the_token_endpoint_only(stage, site):
    secret = stage.secret(site.server)
    site.server.client("confidential", secret)
    path = private(stage.folder / "client-secret", secret + "\n")
    site.options |= {"client-id": "confidential", "client-secret-file": str(path)}
    client = site.logged_in()
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
    client = site.logged_in()
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


LOCK = ("gdbus", "call", "--session", "--dest", "org.freedesktop.secrets", "--object-path", "/org/freedesktop/secrets",
        "--method", "org.freedesktop.Secret.Service.Lock", "['/org/freedesktop/secrets/collection/login']")


RELEASED = f'[credentials]\nhand-out = ["{os.path.realpath(program("watchword"))} 127.0.0.1"]\n'


def printed(broker, url):
    command = [program("watchword"), "token", "--socket", broker.socket, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout, done.stderr


# The secrets of the broker

def test_the_secret_of_a_new_issuer_is_not_sent_to_the_old_one(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker)
    broker = stage.brokers[-1]
    new = stage.server(AuthorizationServer(issuer_path="/new"))
    secret = stage.secret()
    broker.reload(site.configuration(issuer=new.issuer, **{"client-secret-file": str(private(stage.folder / "secret", secret))}))
    assert client.call("credential/forget", {"protectionSpace": site.space()})["result"]["removed"] >= 1
    (refresh, access) = site.server.wait_for("/revoke", 2)
    assert refresh.form["client_id"] == access.form["client_id"] == "watchword"
    assert not any(request.authorization or "client_secret" in request.form for request in [refresh, access])


def test_the_secret_of_a_client_is_not_sent_over_a_certificate_exception(stage, certificates):
    server, secret = stage.server(AuthorizationServer(certificates, "/t")), stage.secret()
    server.client("job", secret)
    site = Site(stage, server=server, **{
        "client-id": "job", "client-secret-file": str(private(stage.folder / "secret", secret)), "flow": "client-credentials"})
    broker = site.broker()
    client, agent = stage.client(broker=broker), stage.agent({"action": "cancel"}, broker)
    message = failure(client, client.start("fetch/run", {"url": site.url}), "serverNotTrusted")
    assert message.startswith(f"cannot log in at {server.url}: ") and not agent.asked and not server.requests


# Token services of registries

def registry(stage, answer):
    """A registry whose token service has the same origin, and answers with `answer(request, challenge)`."""
    def handle(request):
        repository = request.path.split("/")[-1]
        bearer = 'WWW-Authenticate: Bearer realm="http://127.0.0.1:%d/token",service="reg",scope="repository:%s:pull"'
        if request.path == "/token":
            return answer(request, lambda name: json_answer(401, {}, bearer % (server.port, name)))
        if request.authorization == f"Bearer token-{repository}":
            return response(200, b"ok")
        return response(401, b"", bearer % (server.port, repository))

    server = stage.server(handle)
    return server


def issue(request):
    return json_answer(200, {"token": "token-" + request.query["scope"].split(":")[1], "expires_in": 300})


def broker_of(stage, server):
    return stage.configured(f'[oauth."{server.url}"]\nflow = "registry"\nissuer = "{server.url}"\n')


def asked(server):
    return [request for request in server.requests if request.path == "/token"]


def test_a_token_service_that_requires_a_token_of_its_own_is_asked_once(stage):
    """Each challenge names another scope."""
    server = registry(stage, lambda request, challenge: challenge(f"a{len(asked(server))}"))
    client = stage.client(broker=broker_of(stage, server))
    assert client.fetch(server.url + "/v2/a", auth={"interaction": "none"})["result"]["status"] == 401
    assert len(asked(server)) == 1


def test_a_sandboxed_program_does_not_choose_the_account_at_a_token_service(stage):
    server = registry(stage, lambda request, _: issue(request) if request.authorization else json_answer(200, {"token": "anonymous"}))
    broker = broker_of(stage, server)
    agent = stage.consenter(broker, allow="session")
    confined = fetching(stage, broker, server.url + "/v2/a")
    while (message := confined.read()).get("id") != 99:
        space = message.get("params", {}).get("protectionSpace", {})
        assert message.get("method") != "auth/challenge" or space["authenticationMethod"] == "bearer", message
        if "id" in message:
            confined.send({"id": message["id"], "result": {"action": "cancel"}})


def test_a_login_at_a_token_service_goes_on_if_the_first_program_exits(stage):
    server = registry(stage, lambda request, _: issue(request) if request.authorization else json_answer(
        401, {}, 'WWW-Authenticate: Basic realm="service"'))
    broker = broker_of(stage, server)
    first, second = stage.client(broker=broker), stage.client(broker=broker)
    started(first, server.url + "/v2/a")
    first.challenges.get(timeout=30)
    call = second.start("fetch/run", {"url": server.url + "/v2/a"})
    eventually(lambda: len([one for one in server.requests if one.path == "/v2/a"]) == 2, "both were challenged")
    second.call("ping")
    first.close()
    second.reply(second.challenges.get(timeout=30), password_answer("ann", "password"))
    assert second.wait(call)["result"]["status"] == 200


def test_the_token_of_a_registry_needs_its_challenge(stage):
    broker = stage.configured(RELEASED + '[oauth."http://127.0.0.1:4"]\nflow = "registry"\nissuer = "http://127.0.0.1:5"\n')
    code, output, error = printed(broker, "http://127.0.0.1:4/v2/x")
    assert (code, output) == (1, "") and "log in with: watchword fetch http://127.0.0.1:4/v2/x" in error


# Programs that consent keeps apart

def reply_of(program):
    return next(message for message in iter(program.read, None) if message.get("id") == 99)


def test_a_login_for_one_sandboxed_program_is_not_for_another(stage, site):
    """Each has its own question; the person answers that of the first."""
    broker = site.broker()
    agent = stage.agent(broker=broker)
    programs = [stage.sandbox(broker, name) for name in ["org.example.Maps", "org.example.Music"]]
    for one in programs:
        one.send({"id": 99, "method": "fetch/run", "params": {"url": site.url}})
    asked = [agent.challenges.get(timeout=30) for _ in programs]
    assert len({login_url(challenge) for challenge in asked}) == 2
    first = next(one for one in asked if "Maps" in str(one["params"]["requester"]))
    other = next(one for one in asked if one is not first)
    assert tiny_browser.open_login(login_url(first)).status == 200
    assert reply_of(programs[0])["result"]["status"] == 200
    agent.reply(other, {"action": "cancel"})
    assert "error" in reply_of(programs[1]) and len([token for token in site.sent_tokens() if token]) == 1


def test_a_login_ends_when_its_table_is_removed(stage, site):
    broker = site.broker()
    client = stage.client(broker=broker)
    call = client.start("fetch/run", {"url": site.url})
    client.challenges.get(timeout=30)
    broker.reload("")
    assert "table was changed" in failure(client, call)


# The keyring

def test_a_locked_keyring_is_no_deleted_login(stage, site, gnome):
    client = site.logged_in(environment=gnome.for_broker)
    gnome.run(*LOCK)
    site.server.revoke_access()
    assert client.fetch(site.url)["result"]["status"] == 200 and client.challenges.empty()


def test_a_login_that_is_forgotten_during_its_renewal_is_not_stored_again(stage, site, gnome):
    broker = site.broker(environment=gnome.for_broker)
    client, other = stage.client(broker=broker), stage.client(broker=broker)
    logged_in(client, site)
    client.call("session/clear")
    (login,) = client.call("credential/list", {})["result"]["credentials"]
    site.server.fail("/revoke", json_answer(503, {}))
    with site.server.held("/token"):
        call = client.start("fetch/run", {"url": site.url})
        site.server.wait_for("/token", 2)
        assert other.call("credential/forget", {"id": login["id"]})["result"]["removed"] == 1
    assert "error" in client.wait(call)
    assert client.call("credential/list", {})["result"]["credentials"] == []


def test_forgetting_a_token_leaves_the_other_tables_of_the_host(stage, gnome):
    site = Site(stage, at="/api")
    broker = stage.configured(site.configuration() + site.configuration().replace("/api", "/other"), environment=gnome.for_broker)
    client = stage.client(broker=broker)
    site.resource.fail("/other", lambda r: response(200) if r.authorization else response(401, b"", 'WWW-Authenticate: Bearer realm="o"'))
    logged_in(client, site)
    call = started(client, site.resource.url + "/other")
    log_in(client)
    assert statuses(client, call) == [200]
    listed = client.call("credential/list", {})["result"]["credentials"]
    (token,) = [one["id"] for one in listed if one["source"] == "session" and one["path"] == "/other"]
    client.call("credential/forget", {"id": token})
    left = client.call("credential/list", {})["result"]["credentials"]
    assert sorted((one["source"], one["path"]) for one in left) == [("keyring", "/api"), ("session", "/api")]


# The token for other programs

def test_the_same_token_is_printed_until_it_expires(stage, site, gnome):
    client = site.logged_in(text=RELEASED, environment=gnome.for_broker)
    broker = stage.brokers[-1]
    client.call("session/clear")
    assert len({printed(broker, site.url)[1] for _ in range(3)}) == 1 and len(site.token_requests()) == 2


@pytest.mark.parametrize("rest", ["?next=/api", "/other#/api", "/api/../admin", "/api/..%2fadmin"])
def test_no_token_for_another_path(stage, rest):
    site = Site(stage, at="/api")
    broker = site.broker(text=RELEASED)
    logged_in(stage.client(broker=broker), site)
    code, output, _ = printed(broker, site.resource.url + rest)
    assert code != 0 and output == ""


def test_a_port_that_another_login_uses_is_named_with_that_login(stage, site):
    options = site.configuration(**{"redirect-port": free_port()})
    broker = stage.configured(options + options.replace(site.configured_url, site.resource.url + "/other", 1))
    client = stage.client(broker=broker)
    client.start("fetch/run", {"url": site.url})
    client.challenges.get(timeout=30)
    site.resource.fail("/other", lambda r: response(401, b"", 'WWW-Authenticate: Bearer realm="o"'))
    message = failure(client, client.start("fetch/run", {"url": site.resource.url + "/other"}))
    assert "uses port" in message and "finish or decline it first" in message
