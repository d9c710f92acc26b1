"""The flow of bodies: a slow reader slows down its own server only; uploads arrive complete, once if possible, and again if necessary."""
import base64
import contextlib
import hashlib
import itertools
import os
import socket
import statistics
import threading
import time
import timeit

import pytest

from rig import ntlm as rig_ntlm, streams
from rig.bodies import Attached, Download, digest_of, eventually, wait_until_still
from rig.client import password_answer
from rig.scripted import DigestCheck, response
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


@pytest.fixture
def sized(stage, nginx, nginx_tls, tls):
    """`sized(scheme)` makes a small and a huge file for a server; returns a client, the server and its URL."""
    def make(scheme):
        server = nginx if scheme == "http" else nginx_tls
        folder = server.log_path.parent / "www"
        (folder / "huge.bin").write_bytes(BLOCK * 64)
        (folder / "1k").write_bytes(BLOCK[:1024])
        return stage.client(broker=stage.broker("--ca-file", str(tls / "ca.pem"))), server, f"{scheme}://localhost:{server.port}"

    return make


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_reader_that_stops_does_not_delay_others(sized, scheme):
    """With HTTP/2 the others have the streams of one connection, and the download a connection of its own, with HTTP/1.1."""
    client, server, url = sized(scheme)
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
def test_a_slow_reader_does_not_slow_down_others(sized, scheme):
    """Compares batches of a hundred fetches, in pairs without and with a reader of 10 kB/s."""
    client, _, url = sized(scheme)
    seconds = lambda: timeit.timeit(lambda: fetch_many(client, f"{url}/1k"), number=1)  # noqa: E731
    seconds()
    ratios = []
    for _ in range(31):
        alone = seconds()
        download = Download(client, f"{url}/huge.bin")
        attached = download.attach(receive_buffer=4096)
        reader = SlowReader(attached, 10_000)
        eventually(lambda: reader.count > 0, "the slow reader has received nothing")
        wait_until_still(client, lambda: client.call("server/status")["result"]["engine"]["running"])
        ratios.append(alone / seconds())
        assert not download.notifications("fetch/completed"), "the slow reader has ended before the others"
        reader.stop()
        attached.close()
        assert download.failure() == "cancelled"
    assert statistics.median(ratios) > 0.9, f"with a slow reader, the others have {ratios} of their speed"


def test_bursts_over_http2_never_stall(sized):
    """Unless asked again, libcurl may wait half a minute for a socket on which nothing more arrives."""
    client, _, url = sized("https")
    for _ in range(60):
        fetch_many(client, f"{url}/1k")


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


PART = os.urandom(1 << 16)
# 4096 for a complete test: the size up to which a body may be challenged without being buffered anywhere.
LARGE_MEGABYTES = int(os.environ.get("WATCHWORD_TEST_UPLOAD_MEGABYTES", "64"))


def upload_server(asks):
    """Requires no login, or one before the body (if it is announced), or after it."""
    def answer(request):
        return response(201) if asks == "never" or request.authorization else response(401, b"", 'WWW-Authenticate: Basic realm="r"')

    return streams.UploadServer(answer, is_late=asks == "after")


def send(path, token, count):
    """Attaches and sends `count` bytes in a separate thread; the broker may close the connection early."""
    attached = Attached(path, token, side="request")
    assert attached.reply.get("result") == {}, attached.reply

    def run():
        left = count
        with attached.socket, contextlib.suppress(OSError):
            while left:
                left -= attached.socket.send(PART[:min(left, len(PART))])
            attached.socket.shutdown(socket.SHUT_WR)
            # The client must wait until the broker has received the end; otherwise the body counts as incomplete.
            attached.socket.recv(1)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def wanted(count):
    digest = hashlib.sha256()
    for start in range(0, count, len(PART)):
        digest.update(PART[:min(len(PART), count - start)])
    return count, digest.hexdigest()


@pytest.mark.parametrize("again", ["copy", "needBody"])
@pytest.mark.parametrize("size", ["known", "chunked"])
@pytest.mark.parametrize("asks", ["never", "before", "after"])
def test_an_upload_arrives_complete(stage, asks, size, again):
    count = 6 << 20
    server = stage.server(upload_server(asks))
    body = {"type": "attach"} | ({"sizeBytes": count} if size == "known" else {})
    client = stage.client(answer=lambda params: password_answer("bob", "secret", persistence="none"))
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, asked = client.socket.getpeername(), []
    client.takes["fetch/needBody"] = lambda need: client.reply(need, {"body": body}) or asked.append(send(path, upload.token, count))
    before = stage.brokers[0].resident_kilobytes
    upload = Download(client, server.url + "/up", method="PUT", body=body)
    send(path, upload.token, count)
    assert upload.headers()["status"] == 201
    assert upload.attach().read() == b""
    assert upload.completed()["status"] == 201
    sent = [wanted(count) + (login,) for login in ([False] if asks == "never" else [True])]
    if asks == "after":
        sent.insert(0, wanted(count) + (False,))
    assert server.bodies == sent
    assert server.refused == (asks == "before")
    assert len(asked) == (asks == "after" and again == "needBody")
    assert stage.brokers[0].resident_kilobytes - before < 8 << 10


@pytest.mark.parametrize("scheme", ["httpDigest", "ntlm"])
def test_a_large_upload_arrives_once_after_its_login(stage, tmp_path, scheme):
    """The challenge comes before the first byte: as the response to the announcement, or to a round of a handshake, which has
    no body."""
    count, password = LARGE_MEGABYTES << 20, stage.secret()
    if scheme == "ntlm":
        check = rig_ntlm.NtlmCheck(tmp_path, {"bob": password}, handler=lambda request: response(201))
        answer = password_answer("bob", password, domain=rig_ntlm.DOMAIN, persistence="none")
    else:
        check, answer = DigestCheck("bob", password), password_answer("bob", password, persistence="none")
    server = stage.server(streams.UploadServer(check))
    stage.allow(password, server)
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n')
    client = stage.client(answer=lambda params: answer, broker=broker)
    warm = Download(client, server.url + "/warm", method="PUT", body={"type": "attach", "sizeBytes": 8})
    send(client.socket.getpeername(), warm.token, 8)
    warm.attach().read()
    assert warm.headers()["status"] == warm.completed()["status"] != 401
    before = broker.peak_kilobytes
    upload = Download(client, server.url + "/up", method="PUT", body={"type": "attach", "sizeBytes": count})
    send(client.socket.getpeername(), upload.token, count)
    assert upload.headers(seconds=600)["status"] in (200, 201)
    upload.attach().read()
    assert upload.completed()["auth"]["authenticationMethod"] == scheme
    assert [body[:2] for body in server.bodies if body[0] > 8] == [wanted(count)]
    assert broker.peak_kilobytes - before < 8 << 10


def test_a_response_may_begin_before_the_request_has_ended(stage):
    client = stage.client()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        upload = Download(client, url, method="PUT", body={"type": "attach", "sizeBytes": 9})
        sender = Attached(client.socket.getpeername(), upload.token, side="request").socket
        sender.sendall(b"abc")
        connection, _ = listener.accept()
    with connection, connection.makefile("rb") as received:
        connection.settimeout(30)
        while received.readline() != b"\r\n":
            pass
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        assert upload.headers()["status"] == 200
        body = upload.attach()
        assert next(body.parts()) == b"first" and received.read(3) == b"abc"
        sender.sendall(b"def")
        assert received.read(3) == b"def"
        sender.sendall(b"ghi")
        sender.shutdown(socket.SHUT_WR)
        assert received.read(3) == b"ghi"
        connection.sendall(b"4\r\nlast\r\n0\r\n\r\n")
        assert body.read() == b"last" and upload.completed()["bodyBytes"] == 9


class Scripted(StreamServer):
    """Records what each connection sends, and responds to its header with `answer(number, head)`."""

    requests_to_a_connection = None

    def __init__(self, answer):
        self.answer, self.heard = answer, {}
        super().__init__(None)

    def _serve(self, connection, number):
        self.heard[number] = b""
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                heads = self.heard[number].count(b"\r\n\r\n")
                self.heard[number] += data
                if self.requests_to_a_connection and self.heard[number].count(b"PUT /") > self.requests_to_a_connection:
                    break
                if not heads and b"\r\n\r\n" in self.heard[number]:
                    connection.sendall(self.answer(number, self.heard[number]))
        self.ended[number] = time.monotonic()


@pytest.mark.parametrize("again", ["copy", "needBody"])
def test_a_reused_connection_that_closes_during_an_upload(stage, again):
    """The server closes it when the second request arrives, as it may at any time."""
    server, client = stage.server(Scripted(lambda number, head: response(201, b""))), stage.client()
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, body = client.socket.getpeername(), {"type": "attach", "sizeBytes": 10}
    client.takes["fetch/needBody"] = lambda need: client.reply(need, {"body": body}) or send(path, upload.token, 10)
    server.requests_to_a_connection = 1
    for _ in range(2):
        upload = Download(client, server.url, method="PUT", body=body)
        send(path, upload.token, 10)
        assert upload.headers()["status"] == 201
        assert upload.attach().read() == b"" and upload.completed()["status"] == 201
    assert server.heard[1].count(b"PUT /") == 2, "the connection was persistent"
    # The response does not wait for the body.
    eventually(lambda: server.heard[max(server.heard)].endswith(b"\r\n\r\n" + PART[:10]), lambda: server.heard)


def test_data_beyond_the_announced_size_is_not_sent(stage):
    """The server would take the rest for another request, on a connection that another fetch may use next."""
    server, client = stage.server(Scripted(lambda number, head: b"")), stage.client()
    other = stage.server(lambda request: response(200))
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 5})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    attached.socket.sendall(b"12345GET /another HTTP/1.1\r\nHost: h\r\n\r\n")
    attached.socket.shutdown(socket.SHUT_WR)
    eventually(lambda: server.heard.get(1, b"").endswith(b"\r\n\r\n12345"), lambda: server.heard)
    # Other transfers continue meanwhile. When the connection is closed, no more data is sent on it.
    for _ in range(3):
        assert client.fetch(other.url)["result"]["status"] == 200
    assert upload.cancel() is True
    eventually(lambda: 1 in server.ended, "the connection stays open")
    assert server.heard[1].endswith(b"\r\n\r\n12345")


def test_a_writer_that_dies_leaves_no_complete_request(stage):
    """The kernel closes all descriptors of the client. A body of unknown size must not get an end at the server."""
    server = stage.server(Scripted(lambda number, head: b"HTTP/1.1 100 Continue\r\n\r\n"))
    stage.client().call("ping")
    for number in range(1, 21):
        client = stage.client()
        upload = Download(client, server.url, method="PUT", body={"type": "attach"})
        attached = Attached(client.socket.getpeername(), upload.token, side="request")
        attached.socket.sendall(b"the start")
        eventually(lambda: b"the start" in server.heard.get(number, b""), "the server has received nothing")
        attached.close()
        client.close()
    # When a connection is closed, everything has been received that is ever sent on it.
    eventually(lambda: len(server.ended) == 20, lambda: f"{len(server.ended)} connections have ended")
    assert [number for number, heard in server.heard.items() if heard.endswith(b"\r\n0\r\n\r\n")] == []


def turns(client):
    """The number of iterations of the broker's loop so far."""
    return sum(client.call("server/status")["result"]["loop"]["turns"])


def test_a_refusal_does_not_wait_for_a_missing_body(stage):
    """A body that arrives while the question is open costs no processor time."""
    def answer(number, head):
        return response(201 if b"Authorization" in head else 401, b"", 'WWW-Authenticate: Basic realm="r"')

    server, client = stage.server(Scripted(answer)), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 10})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    challenge = client.challenges.get(timeout=30)
    attached.socket.sendall(b"0123456789")
    attached.socket.shutdown(socket.SHUT_WR)
    # A loop that did not stop reading would take thousands of turns during this fetch.
    before = turns(client)
    silent = stage.server(Scripted(lambda number, head: b""))
    assert client.fetch(silent.url, timeoutMs=500)["error"]["data"]["kind"] == "timedOut"
    assert turns(client) - before < 100
    client.reply(challenge, password_answer("bob", "secret", persistence="none"))
    assert upload.headers()["status"] == 201
    eventually(lambda: server.heard[2].endswith(b"\r\n\r\n0123456789"), lambda: server.heard)
    assert upload.attach().read() == b"" and upload.completed()["exchanges"] == 2


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_cancelled_upload_leaves_nothing_behind(stage, way):
    server = stage.server(upload_server("never"))
    other, client = stage.client(), stage.client()
    other.call("ping")
    path = client.socket.getpeername()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 1 << 30})
    attached = Attached(path, upload.token, side="request")
    attached.socket.sendall(PART)
    # Resources that only the first upload of a broker allocates are allocated by now.
    eventually(lambda: server.requests, "the server was not called")
    before = stage.brokers[0].descriptors
    if way == "cancel":
        assert upload.cancel()
        assert upload.failure() == "cancelled"
    else:
        client.close()
    # The broker closes the connection, so that the client cannot write forever.
    with pytest.raises(OSError):
        for _ in range(10_000):
            attached.socket.sendall(PART)
    eventually(lambda: stage.brokers[0].descriptors < before, "the broker does not release its descriptors")
