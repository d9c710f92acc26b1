"""The request target of a program reaches the server as it is."""

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


def test_the_digest_of_the_broker_is_for_the_target_that_it_sends(stage):
    check = DigestCheck("alice", "secret", qop="auth", proof="right")
    server = stage.server(check)
    address, _ = open_proxy(stage.agent(password_answer("alice", "secret")))
    for target in ["/a/../b?x=|", "/c|d"]:
        received = exchange(address, f"GET {server.url}{target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert received.endswith(b"welcome") and not check.problems, (received, check.problems)
    assert len(server.requests) == 3, "the second request logs in unasked"
