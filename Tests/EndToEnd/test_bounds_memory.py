"""The limits of memory and time for one client, and the effect on other clients."""
import socket
import threading
import time

import pytest

from rig import streams
from rig.bodies import Attached, eventually, read_parts
from rig.overload import Others, Raw, line
from rig.scripted import response
from rig.streams import StreamServer

pytestmark = pytest.mark.tier3("takes the machine to its limits")

MEGABYTE = 1 << 20
FELT = 20


def waiting(client):
    return client.call("server/status")["result"]["fetches"]["waiting"]


@pytest.fixture
def others(stage):
    return Others(stage, stage.client())


def test_a_client_that_fetches_much_and_reads_nothing(stage, others):
    """256 bodies of a megabyte: after some, nothing more is read; what exceeds the limit becomes handles, or is refused."""
    body = b"m" * MEGABYTE
    server = stage.server(lambda request: response(200, body))
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    greedy = Raw(broker.socket)
    greedy.send(b"".join(line("fetch/run", {"url": f"{server.url}/{number}"}, number) for number in range(256)))
    client = others.client

    def have_ended():
        # Before the first fetch begins, none is running either.
        fetches = client.call("server/status", {})["result"]["fetches"]
        return fetches["done"] > 0 and fetches["running"] == 0

    eventually(have_ended, "the fetches do not end", 60)
    growth = broker.peak_kilobytes - before
    print(f"256 bodies of 1 MiB for a client that reads nothing: {growth / 1024:.0f} MiB more")
    assert growth < 200 << 10
    others.ratio("a client that reads nothing", 3)
    inline = handles = busy = 0
    for message in greedy.messages(256):
        if "error" in message:
            assert message["error"]["data"]["kind"] == "busy", message
            busy += 1
        elif message["result"]["body"]["type"] == "handle":
            handles += 1
        else:
            assert message["result"]["body"]["value"] == body.decode()
            inline += 1
    print(f"inline {inline}, as handles {handles}, busy {busy}")
    # The number of handles depends on how many requests the broker has read before the queue was full.
    assert inline >= 4 and 0 < handles <= 64 and inline + handles + busy == 256
    greedy.end()
    eventually(lambda: client.call("server/status", {})["result"]["connections"] == 1, "the connection is still open")


def test_bodies_on_their_way_to_one_client(stage, others):
    """A hundred and twenty bodies, of each of which 4 of 8 MiB have arrived: no more than 32 MiB are buffered."""
    broker = stage.brokers[0]
    is_open = threading.Event()

    def half(request):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (8 * MEGABYTE)
        for _ in range(4):
            yield b"h" * MEGABYTE
        is_open.wait(60)
        for _ in range(4):
            yield b"h" * MEGABYTE

    server = stage.server(StreamServer(half))
    before = broker.peak_kilobytes
    client = stage.client()
    calls = [client.start("fetch/run", {"url": f"{server.url}/{number}", "maxInlineBodyBytes": 8 * MEGABYTE}) for number in range(120)]
    eventually(lambda: sum(call in client.replies for call in calls) >= 30, "fewer than 30 replies", 60)
    time.sleep(1)
    others.ratio("a hundred and twenty bodies for one client", FELT)
    growth = broker.peak_kilobytes - before
    print(f"120 bodies of which 4 MiB have come: {growth / 1024:.0f} MiB more")
    # Here 160 to 245 MiB, depending on the data in flight; 480 MiB if all were buffered.
    assert growth < 320 << 10
    is_open.set()
    # The bodies that became handles are complete, too.
    handle = next(client.replies[call] for call in calls if call in client.replies and "result" in client.replies[call])["result"]
    assert handle["body"]["type"] == "handle"
    assert sum(map(len, read_parts(client, handle["fetchId"]))) == 8 * MEGABYTE


def test_request_bodies_are_bounded(stage, others):
    """Bodies in messages, while their fetches run."""
    is_open = threading.Event()
    server = stage.server(lambda request: is_open.wait(60) and response(200))
    client = stage.client()
    body = {"type": "string", "value": "r" * (10 * MEGABYTE)}
    calls = [client.start("fetch/run", {"url": server.url, "method": "POST", "body": body}) for _ in range(4)]
    assert client.wait(calls[3], 60)["error"]["data"]["kind"] == "busy"
    others.ratio("a client with 30 MiB of requests", FELT)
    is_open.set()
    assert [client.wait(call, 60)["result"]["status"] for call in calls[:3]] == [200] * 3
    assert client.fetch(server.url, 60, method="POST", body=body)["result"]["status"] == 200, "there is room again"


def test_open_questions_are_bounded(stage, others):
    """128 of one client, then `busy`; another client's are asked."""
    server = stage.server(lambda request: response(401, b"", f'WWW-Authenticate: Basic realm="{request.target}"'))
    client, other = stage.client(), stage.client()
    calls = [client.start("fetch/run", {"url": f"{server.url}/{number}"}) for number in range(140)]
    eventually(lambda: len(client.replies) >= 12, "fewer than 12 replies", 30)
    eventually(lambda: client.challenges.qsize() == 128, lambda: f"{client.challenges.qsize()} are asked")
    refused = [call for call in calls if call in client.replies]
    assert len(refused) == 12
    assert {client.replies[call]["error"]["data"]["kind"] for call in refused} == {"busy"}
    others.ratio("128 unanswered questions", 3)
    own = other.start("fetch/run", {"url": f"{server.url}/other"})
    other.reply(other.challenges.get(timeout=10), {"action": "continue"})
    assert other.wait(own)["result"]["status"] == 401
    for _ in range(128):
        client.reply(client.challenges.get(timeout=10), {"action": "continue"})
    assert [client.wait(call)["result"]["status"] for call in calls if call not in refused] == [401] * 128
    again = client.start("fetch/run", {"url": f"{server.url}/again"})
    client.reply(client.challenges.get(timeout=10), {"action": "continue"})
    assert client.wait(again)["result"]["status"] == 401, "there is room again"


def test_requests_in_flight(stage, others):
    is_open = threading.Event()
    server = stage.server(lambda request: is_open.wait(60) and response(200))
    client = stage.client()
    calls = [client.start("fetch/run", {"url": f"{server.url}/{number}"}) for number in range(257)]
    assert client.wait(calls[256])["error"]["data"]["kind"] == "busy"
    others.ratio("256 requests in flight", FELT)
    is_open.set()
    assert all(client.wait(call)["result"]["status"] == 200 for call in calls[:256])


def test_slow_clients(stage, others):
    """Two hundred clients that send a byte per second, and one that reads none of its replies, are disconnected within about a
    minute."""
    broker = stage.brokers[0]
    reader, shut = (Raw(broker.socket).send(b"".join(line("rpc.discover", number=number) for number in range(10))) for _ in range(2))
    shut.socket.shutdown(socket.SHUT_WR)
    began, crowd = time.monotonic(), [Raw(broker.socket) for _ in range(200)]
    starts = [b'{"jsonrpc"', b"Content-Length: 1", b"Content-Length: 100\r\n\r\n{", b"{", b"[" + b" " * 1000]
    for number, one in enumerate(crowd):
        one.send(starts[number % len(starts)])
    steady = stage.client()
    while time.monotonic() - began < 20:
        time.sleep(1)
        for one in crowd:
            one.send(b" ")
        assert steady.call("ping", {})["result"] == {}
    others.ratio("two hundred slow senders", 3)
    for one in crowd:
        assert one.last_words(40).count(b'"protocolViolation"') == 1
    assert 30 <= time.monotonic() - began < 55
    log = "client disconnected: it does not read"
    eventually(lambda: broker.log.count(log) == 2, "the client that does not read is still connected", 80 - (time.monotonic() - began))
    assert time.monotonic() - began >= 58
    eventually(lambda: others.client.call("server/status", {})["result"]["connections"] == 2, "the slow clients are still connected")
    reader.end()
    shut.end()


def test_copies_of_requests_that_wait(stage, others):
    """Each body may be needed again after a question at another program: 1 MiB of each in memory would be 256 MiB."""
    server = stage.server(streams.UploadServer(lambda request: response(401, b"", 'WWW-Authenticate: Basic realm="r"')))
    broker, asked = stage.brokers[0], stage.client()
    asked.start("fetch/run", {"url": server.url})
    asked.challenges.get(timeout=10)
    before = broker.peak_kilobytes
    body = b"c" * MEGABYTE
    clients = [stage.client() for _ in range(4)]

    def send(token):
        attached = Attached(broker.socket, token, side="request")
        attached.socket.sendall(body)
        attached.close()

    for client in clients:
        for _ in range(64):
            started = client.call("fetch/start", {
                "url": server.url, "method": "PUT", "omitHeaders": ["Expect"],
                "body": {"type": "attach", "sizeBytes": MEGABYTE}})
            assert "result" in started, started
            send(started["result"]["attachToken"])
    eventually(lambda: waiting(asked) == 256, lambda: f"{waiting(asked)} wait", 60)
    growth = broker.peak_kilobytes - before
    print(f"256 copies of 1 MiB: {growth / 1024:.0f} MiB more, {broker.temporary_bytes >> 20} MiB in files")
    assert growth < 100 << 10
    for client in clients:
        client.close()
    eventually(lambda: broker.temporary_bytes == 0 and waiting(asked) == 0, "the copies were not released")
