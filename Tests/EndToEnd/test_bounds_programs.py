"""The common limits of all connections of one process; another process has room meanwhile.

BrokerQuotaTests tests the bytes of requests and responses, because sending 64 MiB takes a debug build most of a minute.
"""
import os
import signal
import subprocess
import threading

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.overload import Raw, line
from rig.scripted import response

MEGABYTE = 1 << 20


class Neighbour:
    """Another process of the user."""

    def __init__(self, broker, server):
        self.environment = {**broker.environment, "WATCHWORD_SOCKET": broker.socket}
        self.server = server

    def fetch(self, *options):
        return subprocess.run(
            [program("watchword"), "fetch", "-sS", *options, f"{self.server.url}/neighbour"],
            env=self.environment, capture_output=True, text=True, timeout=60, check=True).stdout


def last_words(one):
    """Returns what the broker sent before it closed the connection, whose input was not read completely."""
    found = b""
    try:
        while data := one.socket.recv(1 << 16):
            found += data
    except ConnectionResetError:
        pass
    return found


@pytest.fixture
def gate():
    """An event for which servers wait."""
    gate = threading.Event()
    yield gate
    gate.set()


def serve(stage, gate, body):
    """Returns a server that answers the neighbour at once, and others when the gate opens."""

    def handle(request):
        if request.target == "/neighbour":
            return response(200, b"%d" % len(request.body))
        return gate.wait(60) and response(200, body)

    return stage.server(handle)


def kinds(replies):
    return [reply["error"]["data"]["kind"] if "error" in reply else reply["result"]["status"] for reply in replies]


def take_turns(watcher):
    """Returns after three iterations of the broker's loop, so that the effects of earlier events are complete."""
    for _ in range(3):
        assert watcher.call("ping")["result"] == {}


def test_unfinished_messages_are_bounded(stage, gate):
    server = serve(stage, gate, b"")
    broker = stage.broker()
    crowd = [Raw(broker.socket) for _ in range(8)]
    before = broker.peak_kilobytes
    for one in crowd:
        one.send(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * (10 * MEGABYTE))
    assert Neighbour(broker, server).fetch() == "0"
    closed = []
    for one in crowd:
        try:
            one.send(b'"}\n')
        except BrokenPipeError:
            closed.append(one)
        else:
            assert one.messages(1)[0]["result"] == {}
    assert len(closed) == 2, "60 MiB fit"
    for one in closed:
        words = last_words(one)
        assert b"protocolViolation" in words and b"this program" in words
    assert broker.peak_kilobytes - before < 200 << 10
    again = Raw(broker.socket).send(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * (10 * MEGABYTE) + b'"}\n')
    assert again.messages(1)[0]["result"] == {}, "there is room again"


def test_unread_responses_are_bounded(stage, gate):
    """Thirty connections that each request 8 MB and read nothing."""
    gate.set()
    body = b"u" * 200_000
    server = serve(stage, gate, body)
    broker, watcher = stage.broker(), stage.client()
    before = broker.peak_kilobytes
    crowd = []
    # The clients send in sequence: this test is about buffered data, not about simultaneous requests. If a client has much to
    # read, the broker may not have read all its requests.
    for count in range(30):
        crowd.append(Raw(broker.socket).send(b"".join(line("fetch/run", {"url": server.url}, number) for number in range(40))))
        eventually(lambda: len(server.requests) > 20 * count and not watcher.call("server/status", {})["result"]["fetches"]["running"],
                   lambda: f"{len(server.requests)} requests of {count + 1}")
    neighbour = Neighbour(broker, server)
    assert neighbour.fetch() == "0"
    growth = broker.peak_kilobytes - before
    print(f"240 MB for a client that reads nothing: {growth / 1024:.0f} MiB more")
    replies = [reply for one in crowd for reply in one.messages(40)]
    inline = sum("result" in reply and reply["result"]["body"]["type"] != "handle" for reply in replies)
    busy = kinds(replies).count("busy")
    print(f"inline {inline}, as handles {1200 - inline - busy}, busy {busy}")
    assert 1200 - inline - busy == 256
    assert 100 < inline < 400
    assert growth < 200 << 10
    for one in crowd:
        one.end()


def batch(entries):
    return b"[" + b",".join(entry.strip() for entry in entries) + b"]\n"


def test_whole_bodies_that_become_handles(stage, gate):
    """Bodies of 8 MiB each, requested as a whole, after a reply that is not read: 32 MiB of them are buffered."""
    small, large = b"s" * MEGABYTE, b"w" * (8 * MEGABYTE - 100)
    server = stage.server(lambda request: response(200, small if request.target == "/0" else large))
    broker = stage.broker()
    one = Raw(broker.socket)
    before = broker.peak_kilobytes
    for number in range(20):
        one.send(line("fetch/run", {"url": f"{server.url}/{number}", "maxInlineBodyBytes": 8 * MEGABYTE}, number))
        eventually(lambda: broker.log.count("fetch done") == number + 1, "the fetch does not end", 20)
    growth = broker.peak_kilobytes - before
    print(f"160 MiB of bodies for a client that reads nothing: {growth / 1024:.0f} MiB more")
    assert growth < 110 << 10
    assert kinds(one.messages(20)) == [200] * 20


def test_replies_that_wait_for_their_batch(stage, gate):
    """Each batch contains a fetch that does not end, and reads of 40 MiB."""
    body = b"b" * (20 * MEGABYTE)
    server = stage.server(lambda request: gate.wait(60) and response(200) if request.target == "/slow" else response(200, body))
    broker = stage.broker()
    one = Raw(broker.socket)
    handles = []
    for number in range(10):
        one.send(line("fetch/run", {"url": f"{server.url}/", "maxInlineBodyBytes": 0}, number))
        handles.append(one.messages(1)[0]["result"]["fetchId"])
    before, watcher = broker.peak_kilobytes, stage.client()
    for first in range(100, 300, 20):
        reads = [line("fetch/read", {"fetchId": name, "maxBytes": 4 * MEGABYTE}, first + n) for n, name in enumerate(handles)]
        try:
            one.send(batch([line("fetch/run", {"url": f"{server.url}/slow"}, first + 19), *reads]))
        except OSError:
            break
        take_turns(watcher)
    eventually(lambda: "unread output above quota" in broker.log, "the broker does not close the connection")
    assert broker.peak_kilobytes - before < 250 << 10
    assert one.is_closed()
    assert watcher.call("ping", {})["result"] == {}


def test_a_client_that_dies_while_replies_wait(stage, gate):
    """The client has unread requests in the kernel, and a running fetch."""
    server = serve(stage, gate, b"")
    large = stage.server(lambda request: response(200, b"d" * 1_000_000))
    broker, watcher = stage.broker(), stage.client()
    for number in range(4):
        one = Raw(broker.socket)
        one.send(line("fetch/run", {"url": large.url}, 1) + line("fetch/run", {"url": server.url}, 2))
        eventually(lambda: broker.log.count("fetch done") == number + 1, "the fetch does not end", 20)
        take_turns(watcher)
        one.send(b"".join(line("ping", {}, number) for number in range(3, 1500)))
        one.end()
        eventually(lambda: watcher.call("server/status")["result"]["connections"] == 1, "it is not noticed")
    assert watcher.call("ping", {})["result"] == {}


def test_notifications_to_a_client_that_resumes_reading(stage):
    """Notifications sent in the same iteration of the loop in which the kernel accepts the rest of the queue."""
    server = stage.server(lambda request: response(200, b"n" * 300_000))
    broker, watcher = stage.broker(), stage.client()
    for number in range(4):
        listener, other = Raw(broker.socket), Raw(broker.socket)
        listener.send(line("events/subscribe", {}, 1))
        other.send(line("ping", {}, 1))
        assert listener.messages(1) and other.messages(1)
        listener.send(line("fetch/run", {"url": server.url}, 2))
        eventually(lambda: broker.log.count("fetch done") == number + 1, "the fetch does not end", 20)
        take_turns(watcher)
        # The broker is stopped, so that everything sent meanwhile arrives at once.
        os.kill(broker.process.pid, signal.SIGSTOP)
        assert os.waitid(os.P_PID, broker.process.pid, os.WSTOPPED)
        other.send(line("session/clear", {}, 2))
        listener.socket.setblocking(False)
        try:
            while listener.socket.recv(1 << 20):
                pass
        except BlockingIOError:
            pass
        os.kill(broker.process.pid, signal.SIGCONT)
        assert Raw(broker.socket).send(line("ping", {}, 1)).messages(1, seconds=20)[0]["result"] == {}
