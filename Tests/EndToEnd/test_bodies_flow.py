"""A slow reader slows down its own server only, and the broker buffers little meanwhile."""
import base64
import itertools
import statistics
import threading
import time

import pytest

from rig.bodies import Download, digest_of, eventually, wait_until_still
from rig.scripted import response
from rig.servers import marked
from rig.streams import BLOCK, SlowReader, StreamServer, gzip_bomb, head, repeated

MEGABYTE = 1 << 20


def warmed(stage, server, *options):
    """A broker that has made a download of each kind, and a client of it."""
    broker = stage.broker(*options)
    client = stage.client(broker=broker)
    for way in ["attach", "read"]:
        download = Download(client, server.url + "/warm")
        digest_of(download.attach().parts() if way == "attach" else download.parts())
        assert "error" not in download.completed()
    return broker, client


def blocks(request):
    return repeated(8 if request.target == "/warm" else 256)


def test_a_large_body_costs_no_memory(stage):
    server = stage.server(StreamServer(blocks))
    broker, client = warmed(stage, server)
    before, peak = broker.resident_kilobytes, broker.peak_kilobytes
    download = Download(client, server.url)
    assert digest_of(download.attach().parts()) == digest_of(BLOCK for _ in range(256))
    assert download.completed()["bodyBytes"] == 256 * MEGABYTE
    assert broker.peak_kilobytes - peak < 8192, f"{before} kB, at the peak {peak} and then {broker.peak_kilobytes} kB"
    assert broker.resident_kilobytes - before < 8192


@pytest.mark.tier3("reads slowly")
def test_a_body_read_in_small_parts_costs_no_memory(stage):
    """The reader is always slower than the server."""
    server = stage.server(StreamServer(lambda request: repeated(8 if request.target == "/warm" else 16)))
    broker, client = warmed(stage, server)
    peak = broker.peak_kilobytes
    download = Download(client, server.url)
    assert digest_of(download.parts(1 << 16)) == digest_of(BLOCK for _ in range(16))
    assert broker.peak_kilobytes - peak < 8192, f"{peak} and then {broker.peak_kilobytes} kB"


@pytest.mark.parametrize("is_attached", [True, False], ids=["attached", "nobody"])
def test_the_server_waits_for_the_reader(stage, is_attached):
    """Backpressure reaches the server's socket: it can send no more than the buffers up to a client that does not read."""
    server = stage.server(StreamServer(blocks, send_buffer=MEGABYTE // 4))
    broker, client = warmed(stage, server)
    warm, peak = server.all_sent, broker.peak_kilobytes
    download = Download(client, server.url)
    attached = download.attach() if is_attached else None
    download.headers()
    eventually(lambda: server.all_sent - warm > MEGABYTE // 2, lambda: f"the server has sent {server.all_sent - warm} bytes")
    assert wait_until_still(client, lambda: server.all_sent) - warm < 10 * MEGABYTE
    assert broker.peak_kilobytes - peak < 8192
    found = digest_of((attached or download.attach()).parts())
    assert found == digest_of(BLOCK for _ in range(256)), "then the whole body arrives"
    assert "error" not in download.completed()


def test_sixty_four_unread_bodies(stage):
    server = stage.server(StreamServer(blocks, send_buffer=MEGABYTE // 4))
    broker, client = warmed(stage, server)
    peak = broker.peak_kilobytes
    downloads = [Download(client, server.url) for _ in range(64)]
    refused = client.call("fetch/start", {"url": server.url})
    assert refused["error"]["data"]["kind"] == "busy"
    for download in downloads:
        download.headers()
    other = stage.server(StreamServer(lambda request: repeated(1)))
    assert client.fetch(other.url, maxInlineBodyBytes=0)["error"]["data"]["kind"] == "busy"
    wait_until_still(client, lambda: server.all_sent)
    assert broker.peak_kilobytes - peak < 64 * 1536 + 8192, "a megabyte each, and one read of libcurl"
    for download in downloads:
        assert download.cancel() is True
        assert download.failure() == "cancelled"
    eventually(lambda: server.open_connections <= 2, lambda: f"{server.open_connections} connections are open")
    assert Download(client, server.url + "/warm").headers()["status"] == 200


def fetch_many(client, url, count=100):
    """Runs these fetches concurrently. The deadline is shorter than half a minute, for which libcurl may wait for a lost event."""
    for call in [client.start("fetch/run", {"url": url}) for _ in range(count)]:
        assert client.wait(call, 20)["result"]["status"] == 200


def seconds_for(client, url):
    begin = time.monotonic()
    fetch_many(client, url)
    return time.monotonic() - begin


def check_that_others_lose_nothing(client, small, large, rounds=31):
    """Compares batches of a hundred fetches, in pairs without and with a reader of 10 kB/s."""
    fetch_many(client, small)
    ratios = []
    for _ in range(rounds):
        alone = seconds_for(client, small)
        download = Download(client, large)
        attached = download.attach(receive_buffer=4096)
        reader = SlowReader(attached, 10_000)
        eventually(lambda: reader.count > 0, "the slow reader has received nothing")
        wait_until_still(client, lambda: client.call("server/status")["result"]["engine"]["running"])
        ratios.append(alone / seconds_for(client, small))
        assert not download.notifications("fetch/completed"), "the slow reader has ended before the others"
        reader.stop()
        attached.close()
        assert download.failure() == "cancelled"
    assert statistics.median(ratios) > 0.9, f"with a slow reader, the others have {ratios} of their speed"


def huge(server):
    folder = server.log_path.parent / "www"
    (folder / "huge.bin").write_bytes(BLOCK * 64)
    (folder / "1k").write_bytes(BLOCK[:1024])


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_reader_that_stops_does_not_delay_others(stage, nginx, nginx_tls, tls, scheme):
    """With HTTP/2 the others have the streams of one connection, and the download a connection of its own, with HTTP/1.1."""
    server = nginx if scheme == "http" else nginx_tls
    huge(server)
    stage.broker("--ca-file", str(tls / "ca.pem"))
    client = stage.client()
    url = f"{scheme}://localhost:{server.port}"
    large, small = marked("/huge.bin"), marked("/1k")
    download = Download(client, url + large)
    attached = download.attach(receive_buffer=4096)
    assert attached.start or attached.socket.recv(1)
    fetch_many(client, url + small)
    assert not download.notifications("fetch/completed"), "it has ended before the others"
    attached.close()
    assert download.failure() == "cancelled"
    if scheme == "https":
        assert server.lines(large) == [f"200 - HTTP/1.1 {large}"]
        assert set(server.lines(small, 100)) == {f"200 - HTTP/2.0 {small}"}


@pytest.mark.tier3("compares times")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_slow_reader_does_not_slow_down_others(stage, nginx, nginx_tls, tls, scheme):
    server = nginx if scheme == "http" else nginx_tls
    huge(server)
    stage.broker("--ca-file", str(tls / "ca.pem"))
    url = f"{scheme}://localhost:{server.port}"
    check_that_others_lose_nothing(stage.client(), f"{url}/1k", f"{url}/huge.bin")


def test_bursts_over_http2_never_stall(stage, nginx_tls, tls):
    """Unless asked again, libcurl may wait half a minute for a socket on which nothing more arrives."""
    huge(nginx_tls)
    stage.broker("--ca-file", str(tls / "ca.pem"))
    client = stage.client()
    for _ in range(60):
        fetch_many(client, f"https://localhost:{nginx_tls.port}/1k")


def bomb(request):
    if request.target == "/warm":
        yield from repeated(8)
    else:
        yield head(200, "Content-Encoding: gzip", "Connection: close")
        yield from gzip_bomb(10_240)
        yield None


@pytest.mark.parametrize("way", ["attach", "read", "run"])
def test_a_decompression_bomb_is_too_large(stage, way):
    """The body has 10 MB, which expand to 10,000 MB."""
    server = stage.server(StreamServer(bomb))
    broker, client = warmed(stage, server)
    peak = broker.peak_kilobytes
    limit = (64 if way == "attach" else 3) * MEGABYTE
    params = {"decompress": True, "maxBodyBytes": limit}
    count = 0
    if way == "attach":
        download = Download(client, server.url, **params)
        count = digest_of(download.attach().parts())[1]
        assert download.failure() == "tooLarge"
    else:
        name = Download(client, server.url, **params).id if way == "read" else client.fetch(server.url, **params)["result"]["fetchId"]
        while "result" in (reply := client.call("fetch/read", {"fetchId": name, "maxBytes": 1 << 16})):
            assert reply["result"]["eof"] is False
            count += len(base64.b64decode(reply["result"]["data"]["value"]))
        assert reply["error"]["data"]["kind"] == "tooLarge"
    assert limit - 2 * MEGABYTE < count <= limit
    assert broker.peak_kilobytes - peak < 8192, f"{peak} and then {broker.peak_kilobytes} kB"
    eventually(lambda: server.open_connections <= 1, "the server has not noticed the end")


def test_a_bomb_for_a_slow_reader(stage):
    server = stage.server(StreamServer(bomb))
    broker, client = warmed(stage, server)
    peak = broker.peak_kilobytes
    download = Download(client, server.url, decompress=True)
    attached = download.attach(receive_buffer=4096)
    reader = SlowReader(attached, 100_000)
    eventually(lambda: reader.count > 300_000, lambda: f"{reader.count} bytes have come", 30)
    assert not download.notifications("fetch/completed")
    assert broker.peak_kilobytes - peak < 8192
    reader.stop()
    attached.close()
    assert download.failure() == "cancelled"


def test_a_bomb_for_a_slow_reader_is_too_large(stage):
    attached = threading.Event()

    def bomb_once_attached(request):
        parts = bomb(request)
        yield next(parts)
        # The body soon exceeds the limit, and then can no longer be attached.
        if request.target == "/warm" or attached.wait(30):
            yield from parts

    server = stage.server(StreamServer(bomb_once_attached))
    broker, client = warmed(stage, server)
    peak = broker.peak_kilobytes
    download = Download(client, server.url, decompress=True, maxBodyBytes=MEGABYTE)
    reader = SlowReader(download.attach(receive_buffer=4096), 1_000_000)
    attached.set()
    assert download.failure() == "tooLarge"
    assert broker.peak_kilobytes - peak < 8192
    reader.join(10)
    assert reader.count <= MEGABYTE


@pytest.mark.parametrize("since", ["before", "after"])
def test_unread_handles_leave_connections_for_others(stage, since):
    """The handles use all connections that one server may have; the other fetches begin before the first of them is a handle,
    or after the last."""
    gate = threading.Event()

    def handle(request):
        if request.target == "/small":
            return response(200, b"small")
        return itertools.chain([head(length=64 * MEGABYTE)], (BLOCK for _ in range(64) if gate.wait(30)))

    server = stage.server(StreamServer(handle))
    reader, other = stage.client(), stage.client()
    calls = [reader.start("fetch/run", {"url": server.url, "maxInlineBodyBytes": 0}) for _ in range(64)]
    eventually(lambda: server.connections == 64, lambda: f"{server.connections} connections")
    if since == "before":
        small = other.start("fetch/run", {"url": server.url + "/small"})
        eventually(lambda: other.call("server/status")["result"]["fetches"]["running"] == 65, "it does not wait")
    gate.set()
    for call in calls:
        assert reader.wait(call)["result"]["body"]["type"] == "handle"
    if since == "after":
        small = other.start("fetch/run", {"url": server.url + "/small"})
    assert other.wait(small, 20)["result"]["body"]["value"] == "small"
