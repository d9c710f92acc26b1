"""Real servers and proxies, some of them stricter or more lenient than others; SOCKS; and proxies that violate the protocol, or refuse a
tunnel after a right login: which fetches they delay, and which are reported as the cause."""
import contextlib
import itertools
import re
import socket
import threading
import time

import pytest

from rig import field_servers
from rig.bodies import eventually
from rig.client import password_answer, trust_answer
from rig.fixtures import reachable_folder, running
from rig.forwarding import ForwardProxy, basic_check
from rig.local_fronts import exchange, open_proxy
from rig.scripted import ScriptedServer, basic_server, response
from rig.servers import free_port, marked
from rig.tls import TlsServer


def test_nginx_over_tls_and_http2(stage, nginx_tls, account, tls):
    user, password = account
    stage.broker("--ca-file", str(tls / "ca.pem"))
    page = marked("/staff/page.txt")
    client = stage.client(answer=password_answer(user, password))
    for host in ["localhost", "127.0.0.1"]:
        result = client.fetch(f"https://{host}:{nginx_tls.port}{page}")["result"]
        assert (result["status"], result["httpVersion"]) == (200, "2")
    assert [params["protectionSpace"]["host"] for params in client.asked] == ["localhost", "127.0.0.1"]
    assert client.asked[0]["protectionSpace"]["receivesCredentialSecurely"] is True
    assert nginx_tls.lines(page, 4) == [f"401 - HTTP/2.0 {page}", f"200 {user} HTTP/2.0 {page}"] * 2


def test_httpbin_digest_sha256_hidden_basic_and_redirects(stage, httpbin):
    client = stage.client(answer=lambda params: password_answer("bob", "pw", persistence="none"))
    url = f"http://127.0.0.1:{httpbin.port}"
    digest = client.fetch(url + "/digest-auth/auth/bob/pw/SHA-256")["result"]
    assert digest["status"] == 200 and digest["auth"]["authenticationMethod"] == "httpDigest"
    assert client.fetch(url + "/basic-auth/bob/pw")["result"]["auth"]["authenticationMethod"] == "httpBasic"
    # Responds with 404 and no challenge, so no credential is sent before one.
    hidden = client.fetch(url + "/hidden-basic-auth/bob/pw", credential={"type": "password", "user": "bob", "password": "pw"})
    assert hidden["result"]["status"] == 404 and hidden["result"]["exchanges"] == 1
    redirected = client.fetch(url + "/redirect-to?url=/basic-auth/bob/pw")["result"]
    assert redirected["status"] == 200 and re.search("/basic-auth/bob/pw$", redirected["url"])
    assert client.fetch(url + "/redirect/3", maxRedirects=2)["error"]["data"]["kind"] == "tooManyRedirects"


@pytest.fixture
def start(stage):
    """`start(make, password)` starts a server for the user bob with a folder of its own."""
    with contextlib.ExitStack() as stack:
        def started(make, password, *more):
            folder = stack.enter_context(reachable_folder(make.__name__))
            server = stack.enter_context(running(make(folder, "bob", password, *more)))
            stage.allow(password, server)
            return server

        yield started


@pytest.fixture(params=["tinyproxy", "squid"])
def forwarder(request, stage, tmp_path):
    """The URL of a proxy that forwards without a login."""
    if request.param == "squid":
        yield request.getfixturevalue("squid").url("open")
    else:
        with running(field_servers.tinyproxy(tmp_path)) as proxy:
            yield f"http://127.0.0.1:{proxy.port}"


def clients(stage, password, proxy=None):
    """A client that answers as bob, and its challenges."""
    client = stage.client(answer=password_answer("bob", password), broker=stage.configured(f'[proxy]\nurl = "{proxy}"\n' if proxy else ""))
    return client, client.asked


@pytest.mark.parametrize("site", ["lighttpd MD5", "lighttpd SHA-256", "apache", "wsgidav", "httpbin"])
def test_digest_through_a_proxy_that_forwards(stage, start, request, forwarder, site):
    password = stage.secret()
    if site == "apache":
        server = request.getfixturevalue("apache")
        user, password = request.getfixturevalue("account")
        path = "/private/page.txt"
    elif site == "httpbin":
        server, path = request.getfixturevalue("httpbin"), "/digest-auth/auth/bob/pw/SHA-256"
        user, password = "bob", "pw"
    else:
        make = {"lighttpd": field_servers.lighttpd, "wsgidav": field_servers.wsgidav}[site.split()[0]]
        server, user = start(make, password, *site.split()[1:]), "bob"
        path = "/page.txt" if site == "wsgidav" else "/private/page.txt"
    client, asked = clients(stage, password, forwarder)
    url = f"http://127.0.0.1:{server.port}{path}"
    # httpbin 0.7 fails on a query.
    results = [client.fetch(url + query)["result"] for query in ["", "" if site == "httpbin" else "?a=b%22c", ""]]
    assert [result["status"] for result in results] == [200] * 3
    # Behind a proxy, 127.0.0.1 is not this machine, so each fetch is asked about. None of the answers is refused.
    assert [(one["protectionSpace"]["isProxy"], one["previousFailureCount"]) for one in asked] == [(False, 0)] * 3
    assert [result["auth"]["user"] for result in results] == [user] * 3
    if site.startswith("lighttpd"):
        lines = server.wait_for_log("\n", times=4).splitlines()
        assert all(line.split()[3].startswith("/private/page.txt") for line in lines)


@pytest.mark.parametrize("proxy", ["apache_proxy", "squid digest"])
def test_digest_of_the_proxy_itself(stage, start, request, proxy):
    """A proxy that requires a login itself receives the whole URL in the request line, and compares it."""
    password = stage.secret()
    if proxy == "apache_proxy":
        server = start(field_servers.apache_proxy, password)
        url = f"http://127.0.0.1:{server.port}"
    else:
        server = request.getfixturevalue("squid")
        password, url = request.getfixturevalue("account")[1], server.url("digest")
    origin = stage.server(ScriptedServer(lambda request: response(200, b"through")))
    client, asked = clients(stage, password, url)
    results = [client.fetch(f"{origin.url}/x{query}")["result"] for query in ["", "?a=b", "?c"]]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1), (200, 1)]
    assert len(asked) == 1 and asked[0]["protectionSpace"]["isProxy"] is True
    assert all(request.authorization is None for request in origin.requests)


@pytest.mark.parametrize("make, path, realm, forwards_the_login", [
    (field_servers.tinyproxy, "/ignored/path", "Tinyproxy", False), (field_servers.mitmproxy, "", "mitmproxy", False),
    (field_servers.proxy_py, "", None, True)], ids=["tinyproxy", "mitmproxy", "proxy.py"])
def test_basic_of_proxies(stage, start, make, path, realm, forwards_the_login):
    """proxy.py 2.4 names no realm, and forwards the login that was for itself."""
    password = stage.secret()
    server = start(make, password)
    origin = stage.server(ScriptedServer(lambda request: response(200, b"through")))
    if forwards_the_login:
        stage.allow(password, origin)
    client, asked = clients(stage, password, f"http://127.0.0.1:{server.port}{path}")
    results = [client.fetch(origin.url)["result"] for _ in range(2)]
    assert [(result["status"], result["exchanges"]) for result in results] == [(200, 2), (200, 1)]
    assert [(one["protectionSpace"]["isProxy"], one["protectionSpace"]["realm"]) for one in asked] == [(True, realm)]
    assert asked[0]["offers"][0].get("weak") == (None if realm else ["noRealm"])


def test_rule_29_two_repositories_of_a_registry_cost_two_questions(stage, tmp_path):
    with running(field_servers.Registry(tmp_path)) as registry:
        asked = []

        def answer(params):
            asked.append(params["offers"][0]["params"]["scope"])
            token = registry.token(asked[-1])
            return {"action": "credential", "credential": {"type": "token", "token": token, "persistence": "forSession"}}

        client, codes = stage.client(answer=answer), []
        for number in range(6):
            result = client.fetch(f"http://127.0.0.1:{registry.port}/v2/{'ab'[number % 2]}/tags/list")["result"]
            codes.append((result["status"], "NAME_UNKNOWN" in result["body"]["value"], result["exchanges"]))
        # The repositories are empty, which only an authorised client learns.
        assert codes == [(404, True, 2)] * 2 + [(404, True, 1)] * 4
        assert asked == ["repository:a:pull", "repository:b:pull"]
        # The same path with a wider scope: the narrower token stays stored, and one for this scope is asked about.
        pushed = client.fetch(f"http://127.0.0.1:{registry.port}/v2/a/blobs/uploads/", method="POST")["result"]
        assert (pushed["status"], len(asked)) == (202, 3) and "push" in asked[-1]
        again = client.fetch(f"http://127.0.0.1:{registry.port}/v2/a/tags/list")["result"]
        assert (again["exchanges"], len(asked)) == (1, 3)


@pytest.mark.parametrize("make", [field_servers.haproxy, field_servers.caddy, field_servers.radicale], ids=lambda make: make.__name__)
def test_basic_of_servers(stage, start, make):
    password = stage.secret()
    server = start(make, password)
    client, asked = clients(stage, password)
    path, method, status = ("bob/", "PROPFIND", 207) if make is field_servers.radicale else ("page", "GET", 200)
    results = [client.fetch(f"http://127.0.0.1:{server.port}/{path}", method=method)["result"] for _ in range(2)]
    assert [(result["status"], result["exchanges"]) for result in results] == [(status, 2), (status, 1)]
    assert [one["protectionSpace"]["authenticationMethod"] for one in asked] == ["httpBasic"]


@pytest.mark.parametrize("name", field_servers.FIELD)
def test_the_versions_are_those_of_the_matrix(name):
    assert field_servers.installed(name).startswith(field_servers.FIELD[name][0])


def configured(stage, url, *options, extra=""):
    return stage.configured(f'[proxy]\nurl = "{url}"\n{extra}', *options)


def test_socks_with_a_password(stage, socks, account, nginx):
    url, proxy = f"http://localhost:{nginx.port}/open.txt", {"url": f"socks5h://127.0.0.1:{socks.port}"}
    client = stage.client(answer=password_answer(*account))
    result = client.fetch(url, proxy=proxy)["result"]
    (challenge,) = client.asked
    space = challenge["protectionSpace"]
    assert (result["status"], space["authenticationMethod"], space["proxyType"]) == (200, "httpBasic", "socks")
    assert challenge["offers"] == [] and challenge["failureResponse"] is None

    client = stage.client(answer=lambda one: password_answer(account[0], "wrong") if len(client.asked) < 3 else {"action": "continue"})
    reply = client.fetch(url, proxy=proxy)
    wrong = [one["previousFailureCount"] for one in client.asked]
    assert reply["error"]["data"]["kind"] == "proxyFailed" and wrong[0] == 0 and wrong[-1] >= 1


def test_socks_without_a_password(stage, dante, nginx):
    result = stage.client().fetch(f"http://localhost:{nginx.port}/open.txt", proxy={"url": f"socks5h://127.0.0.1:{dante.port}"})
    assert result["result"]["status"] == 200


def test_rules_2_and_r15_a_tunnel_raises_challenges_in_order_and_each_gets_its_own_credential(stage, certificates):
    """Every request is on a new connection, which raises the earlier challenges again; their answers stay valid."""
    at_server, at_proxy = stage.secret(), stage.secret()
    server = stage.server(TlsServer(
        certificates, "self-signed", basic_server("bob", at_server).handler, client_authority=certificates / "ca.pem", first=True))
    proxy = stage.server(ForwardProxy(basic_check("pat", at_proxy)))
    stage.allow(at_server, server)
    stage.allow(at_proxy, proxy)
    asked = []

    def answer(challenge):
        space = challenge["protectionSpace"]
        asked.append((space["authenticationMethod"], space["isProxy"]))
        if space["authenticationMethod"] == "serverTrust":
            return trust_answer(challenge)
        if space["authenticationMethod"] == "clientCertificate":
            return {"action": "credential", "credential": certificates.credential(persistence="none")}
        return password_answer("pat", at_proxy) if space["isProxy"] else password_answer("bob", at_server)

    client = stage.client(answer=answer)
    client.call("auth/subscribe", {"mode": "everything"})
    assert client.fetch(server.url, proxy={"url": proxy.url})["result"]["status"] == 200
    assert asked == [("httpBasic", True), ("serverTrust", False), ("clientCertificate", False), ("httpBasic", False)]
    assert [request.authorization is not None for request in server.requests] == [False, True]
    assert len({request.connection for request in server.requests}) == 2
    assert all(request.header("Proxy-Authorization") is None for request in server.requests)
    assert all(request.method == "CONNECT" and request.authorization is None for request in proxy.requests)
    assert proxy.requests[-1].header("Proxy-Authorization")


REFUSAL = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n"


class RogueProxy(ScriptedServer):
    """Sends `parts` in response to every request, and then nothing; with `ends`, the proxy closes the connection."""

    def __init__(self, parts, ends=True):
        self.parts, self.ends, self.over = parts, ends, threading.Event()
        super().__init__(lambda request: b"")

    def _respond(self, connection, request, early):
        try:
            for part in self.parts:
                connection.sendall(part)
            if not self.ends:
                self.over.wait(60)
        except OSError:
            pass
        return True

    def close(self):
        self.over.set()
        super().close()


@pytest.mark.parametrize("way", ["length", "chunks", "lines"])
def test_an_endless_answer_to_connect_does_not_delay_others(stage, way):
    """libcurl reads the response to a refused CONNECT to its end, and does nothing else meanwhile."""
    start, more = {
        "length": (REFUSAL + b"Content-Length: 99999999999\r\n\r\n", b"a" * 65536),
        "chunks": (REFUSAL + b"Transfer-Encoding: chunked\r\n\r\n", (b"1000\r\n" + b"a" * 4096 + b"\r\n") * 16),
        "lines": (REFUSAL, b"X: y\r\n" * 10_000)}[way]
    proxy = stage.server(RogueProxy(itertools.chain([start], itertools.repeat(more))))
    server = stage.server(lambda request: response(200, b"page"))
    client, other = stage.client(answer=lambda challenge: {"action": "continue"}), stage.client()
    assert other.fetch(server.url)["result"]["status"] == 200
    rogue = client.start("fetch/run", {"url": "https://localhost:9/", "proxy": {"url": proxy.url}})
    try:
        eventually(lambda: proxy.requests, "the proxy is not asked")
        for _ in range(5):
            assert other.fetch(server.url, seconds=20)["result"]["status"] == 200
        reply = client.wait(rogue, 20)
        assert reply["error"]["data"]["kind"] == "tooLarge" if way == "lines" else reply["result"]["status"] == 407
        assert stage.brokers[0].stop() == 0
    finally:
        if stage.brokers[0].process.poll() is None:
            stage.brokers[0].kill()


def test_a_dripping_answer_to_connect_ends_with_the_fetch(stage):
    def drip():
        yield REFUSAL + b"Content-Length: 99999999999\r\n\r\n"
        while True:
            time.sleep(0.02)
            yield b"a"

    proxy = stage.server(RogueProxy(drip()))
    client = stage.client(answer=lambda challenge: {"action": "continue"})
    reply = client.fetch("https://localhost:9/", proxy={"url": proxy.url}, timeoutMs=1000, seconds=20)
    assert reply["result"]["status"] == 407


@pytest.mark.parametrize("answer", [
    b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail\r\n\r\n", b"x" * 100_000, b"HTTP/1.1 200 OK\r\nA:",
], ids=["nothing", "ssh", "mail", "long", "half"])
def test_a_server_that_is_not_a_proxy_is_named_in_the_error(stage, answer):
    proxy = stage.server(RogueProxy([answer]))
    reply = stage.client().fetch("https://server.test/", proxy={"url": proxy.url})
    assert reply["error"]["data"]["kind"] == "proxyFailed", reply
    assert f"127.0.0.1, port {proxy.port}" in reply["error"]["message"], reply


def test_a_silent_proxy_is_named(stage):
    """The time limit is that of the fetch, and so is the kind of the error."""
    for scheme, target in [("http", "https"), ("https", "https"), ("https", "http")]:
        proxy = stage.server(RogueProxy([], ends=False))
        reply = stage.client().fetch(
            f"{target}://server.test/", proxy={"url": f"{scheme}://127.0.0.1:{proxy.port}"}, timeoutMs=1000)
        assert reply["error"]["data"]["kind"] == "timedOut"
        assert f"127.0.0.1, port {proxy.port}" in reply["error"]["message"] and "1000 ms" in reply["error"]["message"], reply


@pytest.mark.tier3("waits for the limit of thirty seconds")
def test_rule_l11_a_silent_https_proxy_fails_after_the_time_for_connecting(stage):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        reply = stage.client().fetch(
            f"http://localhost:{free_port()}/", proxy={"url": f"https://127.0.0.1:{port}"}, seconds=45)
    assert reply["error"]["data"]["kind"] == "proxyFailed", reply
    assert f"127.0.0.1, port {port}" in reply["error"]["message"] and "30000 ms" in reply["error"]["message"], reply


def test_a_line_without_end(stage):
    proxy = stage.server(RogueProxy([b"HTTP/1.1 200 OK\r\nX: " + b"a" * (2 << 20)], ends=False))
    for way in [{}, {"proxy": {"url": proxy.url}}]:
        reply = stage.client().fetch(proxy.url, timeoutMs=10_000, **way)
        assert reply["error"]["data"]["kind"] == "tooLarge", reply


@pytest.fixture(params=[403, 502])
def proxy(request, stage):
    """A broker and a proxy with Basic that connects to no server."""
    password = stage.secret()
    proxy = stage.server(ForwardProxy(basic_check("bob", password, granted=response(request.param), realm="Gate")))
    stage.allow(password, proxy)
    proxy.status = request.param
    proxy.client = stage.client(broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'), answer=password_answer("bob", password))
    return proxy


def test_a_second_fetch_asks_no_question(proxy):
    for _ in range(2):
        assert proxy.client.fetch("https://intranet.test/")["error"]["data"]["kind"] == "proxyFailed"
    assert len(proxy.client.asked) == 1


def test_a_second_tunnel_of_a_front_asks_no_question(proxy):
    assert "result" in proxy.client.call("agent/register", {"name": "tests"})
    address, _ = open_proxy(proxy.client)
    for _ in range(2):
        assert f" {proxy.status} ".encode() in exchange(address, b"CONNECT intranet.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(proxy.client.asked) == 1
