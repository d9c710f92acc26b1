"""Proxies that violate the protocol: which fetches they delay, and which are reported as the cause."""
import itertools
import socket
import threading
import time

import pytest
from rig.bodies import eventually
from rig.scripted import ScriptedServer, response
from rig.servers import free_port

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
