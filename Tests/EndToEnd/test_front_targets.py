"""The request target of a program reaches the server as it is; restricted fronts refuse what could be read in several ways."""
import subprocess

import pytest

from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy, open_site
from rig.scripted import DigestCheck, response

TARGETS = ["/a/../b", "/a/%2e%2e/b", "/./a", "/{x}|y^`", "/a?q=<\"|>&r=../..", "//a", "/%7euser", "/a/.", "/?"]


def test_a_proxy_and_a_site_pass_the_target_on_as_it_is(stage):
    server = stage.server(lambda request: response(200, b"page"))
    client = stage.client()
    address, _ = open_proxy(client)
    host, port = open_site(client, server.url)
    for target in TARGETS:
        exchange(address, f"GET {server.url}{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        exchange((host, port), f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        assert [request.target for request in server.requests[-2:]] == [target] * 2
    assert server.requests[-1].method == "GET" and len(server.requests) == 2 * len(TARGETS)


def test_options_for_the_server_itself(stage):
    server = stage.server(lambda request: response(200, b"", "Allow: GET"))
    client = stage.client()
    address, _ = open_proxy(client)
    host, port = open_site(client, server.url)
    for front, target in [(address, server.url), ((host, port), "*"), ((host, port), f"http://{host}:{port}")]:
        for limit, passed in [("", [None]), ("Max-Forwards: 5\r\n", ["4"]), ("Max-Forwards: 0\r\n", [])]:
            before = len(server.requests)
            received = exchange(
                front, f"OPTIONS {target} HTTP/1.1\r\nHost: {host}:{port}\r\n{limit}Connection: close\r\n\r\n".encode())
            assert received.startswith(b"HTTP/1.1 200 ") and (b"Allow: GET" in received) == bool(passed)
            assert [(one.target, one.header("Max-Forwards")) for one in server.requests[before:]] == [("*", value) for value in passed]
    host, port = open_site(client, server.url, restricted=True, paths=["/"])
    received = exchange((host, port), f"OPTIONS * HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 403 ") and len(server.requests) == 6


def test_a_site_accepts_its_own_url(stage):
    server = stage.server(lambda request: response(302, b"", f"Location: {server.url}/c"))
    host, port = open_site(stage.client(), server.url)
    received = exchange((host, port), f"GET http://{host}:{port}/a/../b?c HTTP/1.0\r\nHost: other\r\n\r\n".encode())
    assert f"\r\nLocation: http://{host}:{port}/c\r\n".encode() in received
    assert [(one.target, one.header("Host")) for one in server.requests] == [("/a/../b?c", f"127.0.0.1:{server.port}")]
    for url in [server.url, f"http://other:{port}"]:
        received = exchange((host, port), f"GET {url}/ HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        assert received.startswith(b"HTTP/1.1 400 ") and len(server.requests) == 1


def test_a_target_reaches_an_upstream_proxy_as_it_is(stage):
    upstream = stage.server(lambda request: response(200, b"page"))
    broker = stage.configured(f'[proxy]\nurl = "{upstream.url}"\n')
    address, _ = open_proxy(stage.client(broker=broker))
    exchange(address, b"GET http://server.example/a/../b?{|} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert upstream.requests[0].target == "http://server.example/a/../b?{|}"
    exchange(address, b"GET http://server.example/? HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert upstream.requests[1].target == "http://server.example/?"
    exchange(address, b"OPTIONS http://server.example HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert upstream.requests[2].target == "http://server.example"


def test_the_digest_of_a_program_is_for_the_target_that_it_has_sent(stage):
    check = DigestCheck("alice", "secret", qop="auth")
    server = stage.server(check)
    address, _ = open_proxy(stage.client())
    done = subprocess.run(
        ["curl", "-sS", "-g", "--path-as-is", "--noproxy", "", "-x", f"http://{address[0]}:{address[1]}", "--digest", "-u", "alice:secret",
         f"{server.url}/a/../b?x={{|}}"], capture_output=True, timeout=30)
    assert done.stdout == b"welcome" and not check.problems, (done, check.problems)
    assert server.requests[-1].target == "/a/../b?x={|}"


def test_the_digest_of_the_broker_is_for_the_target_that_it_sends(stage):
    check = DigestCheck("alice", "secret", qop="auth", proof="right")
    server = stage.server(check)
    client = stage.client(answer=lambda challenge: password_answer("alice", "secret"))
    assert "result" in client.call("agent/register", {"name": "tests"})
    address, _ = open_proxy(client)
    for target in ["/a/../b?x=|", "/c|d"]:
        received = exchange(address, f"GET {server.url}{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert received.endswith(b"welcome") and not check.problems, (received, check.problems)
    assert len(server.requests) == 3, "the second request logs in unasked"


@pytest.mark.parametrize("target", ["/api/..%25%32%66admin", "/api/../admin", "/api/a/../b", "/admin", "/api/..;/admin", "/api/%2e%2e/admin"])
def test_a_restricted_front_refuses_what_could_be_read_in_several_ways(stage, target):
    server = stage.server(lambda request: response(200, b"page"))
    host, port = open_site(stage.client(), server.url, restricted=True, paths=["/api/"])
    received = exchange((host, port), f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 403 ") and b"request-not-allowed" not in received and not server.requests
    exchange((host, port), f"GET /api/caf%C3%A9 HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
    assert server.requests[0].target == "/api/caf%C3%A9"


def test_a_restricted_program_cannot_name_another_method_or_path_in_a_field(stage):
    server = stage.server(lambda request: response(200, b"page"))
    host, port = open_site(stage.client(), server.url, restricted=True, methods=["GET"], paths=["/api/"], fields=["x-kept"])
    fields = "X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nx_rewrite_url: /admin\r\nX-Forwarded-Host: other\r\nX-Own-Verb: DELETE\r\nX-Kept: 1"
    exchange((host, port), f"GET /api/x HTTP/1.1\r\nHost: {host}:{port}\r\n{fields}\r\nConnection: close\r\n\r\n".encode())
    assert [name for name, _ in server.requests[0].headers] == ["Host", "X-Kept", "Via"]


@pytest.mark.parametrize("protocol", ["HTTP/2.0", "h2c", "TLS/1.0", "other"])
def test_only_websocket_is_tunnelled(stage, protocol):
    server = stage.server(lambda request: response(200, b"page"))
    host, port = open_site(stage.client(), server.url)
    received = exchange((host, port), (
        f"GET /x HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: Upgrade, close\r\nUpgrade: {protocol}\r\n\r\n").encode())
    assert received.startswith(b"HTTP/1.1 200 ") and server.requests[0].header("Upgrade") is None
