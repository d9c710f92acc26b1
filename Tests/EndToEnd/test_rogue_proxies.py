"""Proxies that do what no proxy should: who is held up by it, and who is blamed."""
import itertools
import socket
import threading
import time

import pytest
from rig.scripted import ScriptedServer, response
from rig.servers import free_port

REFUSAL = b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=x\r\n"


class RogueProxy(ScriptedServer):
    """Says `parts` in answer to every request, whatever it was, and then nothing; with `ends` it closes."""

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
def test_an_endless_answer_to_connect_holds_up_nobody(stage, way):
    """libcurl reads what follows a refused CONNECT to its end, and looks at nothing else meanwhile."""
    start, more = {
        "length": (REFUSAL + b"Content-Length: 99999999999\r\n\r\n", b"a" * 65536),
        "chunks": (REFUSAL + b"Transfer-Encoding: chunked\r\n\r\n", (b"1000\r\n" + b"a" * 4096 + b"\r\n") * 16),
        "lines": (REFUSAL, b"X: y\r\n" * 10_000)}[way]
    proxy = stage.server(RogueProxy(itertools.chain([start], itertools.repeat(more))))
    server = stage.server(lambda request: response(200, b"page"))
    client, other = stage.client(answer=lambda challenge: {"action": "continue"}), stage.client()
    assert other.fetch(server.url)["result"]["status"] == 200
    start = time.monotonic()
    rogue = client.start("fetch/run", {"url": "https://localhost:9/", "proxy": {"url": proxy.url}})
    try:
        while not proxy.requests:
            time.sleep(0.01)
        for _ in range(5):
            assert other.fetch(server.url, seconds=10)["result"]["status"] == 200
        reply = client.wait(rogue, 10)
        assert reply["error"]["data"]["kind"] == "tooLarge" if way == "lines" else reply["result"]["status"] == 407
        assert time.monotonic() - start < 5
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
    begin = time.monotonic()
    reply = client.fetch("https://localhost:9/", proxy={"url": proxy.url}, timeoutMs=1000)
    assert reply["result"]["status"] == 407 and time.monotonic() - begin < 3


@pytest.mark.parametrize("answer", [
    b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail\r\n\r\n", b"x" * 100_000, b"HTTP/1.1 200 OK\r\nA:",
], ids=["nothing", "ssh", "mail", "long", "half"])
def test_what_is_no_proxy_is_blamed_itself(stage, answer):
    proxy = stage.server(RogueProxy([answer]))
    reply = stage.client().fetch("https://server.test/", proxy={"url": proxy.url})
    assert reply["error"]["data"]["kind"] == "proxyFailed", reply
    assert f"127.0.0.1, port {proxy.port}" in reply["error"]["message"], reply


def test_a_silent_proxy_is_named(stage):
    """The time is the fetch's own: so is the kind."""
    for scheme, target in [("http", "https"), ("https", "https"), ("https", "http")]:
        proxy = stage.server(RogueProxy([], ends=False))
        reply = stage.client().fetch(
            f"{target}://server.test/", proxy={"url": f"{scheme}://127.0.0.1:{proxy.port}"}, timeoutMs=1000)
        assert reply["error"]["data"]["kind"] == "timedOut"
        assert f"127.0.0.1, port {proxy.port}" in reply["error"]["message"] and "1000 ms" in reply["error"]["message"], reply


def test_a_silent_https_proxy_fails_after_the_time_for_connecting(stage):
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
