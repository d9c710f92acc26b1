"""Too many connections, too few descriptors, clients that send without end or read nothing, and the effect on other clients."""
import resource
import socket
import subprocess
import threading

import pytest

from rig.audit import events
from rig.bodies import eventually
from rig.overload import Others, Raw, line
from rig.scripted import response

pytestmark = pytest.mark.tier3("takes the machine to its limits")

CONNECTIONS, OF_ONE_PROGRAM = 4096, 3584  # from the specification
TRIED = 10_000
ANOTHER = """
import socket, sys
crowd = [socket.socket(socket.AF_UNIX) for _ in range(900)]
for connection in crowd:
    connection.connect(sys.argv[1])
sys.stdin.read()
"""


@pytest.fixture
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (TRIED + 2000, max(before[1], TRIED + 2000)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_closed(connection):
    try:
        return connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False


def test_ten_thousand_connections(stage, many_descriptors):
    """The limit holds, earlier clients are not affected, and all descriptors are released."""
    client = stage.client()
    broker = stage.brokers[0]
    others, before, crowd = Others(stage, client), broker.descriptors, []
    for _ in range(TRIED):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(broker.socket)
        except BlockingIOError:  # the kernel's queue is full, as the broker intends
            connection.close()
            continue
        crowd.append(connection)
    eventually(lambda: broker.descriptors >= before + OF_ONE_PROGRAM - 1, "the broker has fewer connections")
    assert client.call("server/status", {})["result"]["connections"] == OF_ONE_PROGRAM
    eventually(lambda: sum(map(is_closed, crowd)) == len(crowd) + 1 - OF_ONE_PROGRAM, "the broker has not closed the others")
    others.ratio(f"{OF_ONE_PROGRAM} connections of one program", 1.5)
    # Another program has room, and uses all of it.
    child = subprocess.Popen(["/usr/bin/python3", "-c", ANOTHER, broker.socket], stdin=subprocess.PIPE)
    eventually(lambda: broker.descriptors >= before + CONNECTIONS - 1, "the broker has fewer connections")
    assert client.call("server/status", {})["result"]["connections"] == CONNECTIONS
    assert broker.descriptors <= before + CONNECTIONS + 8
    others.ratio(f"{CONNECTIONS} connections", 1.5)
    child.communicate(timeout=20)
    refused = socket.socket(socket.AF_UNIX)
    refused.connect(broker.socket)
    refused.settimeout(10)
    assert refused.recv(1) == b"", "the newest connection is closed"
    for connection in crowd:
        connection.close()
    eventually(lambda: broker.descriptors <= before, lambda: f"{broker.descriptors} of {before} remain", 30)
    assert stage.client().call("ping", {})["result"] == {}


def test_descriptors_run_short(stage):
    """Running fetches continue, and further ones wait; a new client waits until descriptors are free."""
    broker = stage.broker(max_descriptors=256)
    is_open = threading.Event()

    def handle(request):
        if request.target.startswith("/slow"):
            is_open.wait(60)
        return response(200, b"x" * 100)

    server, another = stage.server(handle), stage.server(lambda request: response(200, b"another"))
    client = stage.client()
    others, before = Others(stage, client), broker.descriptors
    slow = [client.start("fetch/run", {"url": f"{server.url}/slow/{number}"}) for number in range(10)]
    eventually(lambda: len(server.requests) == 10, "the server has not received 10 requests")
    crowd = [Raw(broker.socket).send(line("ping", number=1)) for _ in range(400)]
    eventually(lambda: "not accepting connections" in broker.log, "the broker does not stop accepting connections")
    eventually(lambda: 100 <= broker.descriptors <= 160, lambda: f"{broker.descriptors} are open")
    assert broker.log.count("not accepting connections") <= 2, "once for each socket"
    others.ratio("only reserved descriptors", 3)
    waiting = Raw(broker.socket).send(line("fetch/run", {"url": another.url}, 1))
    calls = [client.start("fetch/run", {"url": f"{server.url}/{number}"}) for number in range(200)]
    assert client.fetch(another.url)["result"]["body"]["value"] == "another"
    assert all(client.wait(call)["result"]["status"] == 200 for call in calls)
    assert broker.descriptors <= 256 - 40
    is_open.set()
    assert all(client.wait(call)["result"]["status"] == 200 for call in slow)
    for one in crowd:
        one.end()
    assert waiting.messages(1)[0]["result"]["status"] == 200
    eventually(lambda: "accepting connections again" in broker.log, "the broker does not accept connections again")
    waiting.end()
    assert stage.client().fetch(another.url)["result"]["status"] == 200
    eventually(lambda: broker.descriptors <= before + 64, lambda: f"{broker.descriptors} and {before} before")


MEGABYTE = 1 << 20
FELT = 40  # the factor to the time of an idle broker
SENSELESS = 1024  # from the specification


@pytest.fixture
def others(stage):
    # At the log level debug, each notification writes a line to the disk.
    quiet = ["--log-level", "notice"]
    return Others(stage, stage.client(broker=stage.broker(*quiet)), *quiet)


@pytest.fixture
def raw(stage):
    """Opens further connections, which are closed at the end of the test."""
    made = []

    def make(**more):
        made.append(Raw(stage.brokers[0].socket, **more))
        return made[-1]

    yield make
    for one in made:
        one.end()


def pings(count, first=0):
    return b"".join(line("ping", number=first + number) for number in range(count))


@pytest.mark.parametrize("name,data", [
    ("pings", pings(200)),
    ("fetches that are refused", line("fetch/run", {"url": "ftp://h/"}, 1) * 200),
    ("unknown methods", line("x", number=1) * 200),
    ("notifications", line("x") * 500),
    ("cancellations", line("$/cancelRequest", {"id": 1}) * 500),
    ("empty lines", b"[]\n" + b"\n" * 60000),
], ids=lambda value: value if isinstance(value, str) else "")
def test_repeated_messages_of_clients_that_read(stage, others, raw, name, data):
    """Four such clients at once."""
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    crowd = [raw().repeat(data).drain() for _ in range(4)]
    eventually(lambda: sum(one.sent for one in crowd) > len(data), "the broker has read too little")
    others.ratio(f"four clients that repeat {name}", FELT)
    assert broker.peak_kilobytes - before < 64 << 10


@pytest.mark.parametrize("name,data", [("pings", pings(200)), ("documents", line("rpc.discover", number=1) * 200)])
def test_repeated_messages_of_clients_that_do_not_read(stage, others, raw, name, data):
    """Few replies are buffered, then nothing more is read; all arrive in the end."""
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    crowd = [raw().repeat(data) for _ in range(8)]

    def is_quiet():
        sent = [one.sent for one in crowd]
        return not crowd[0].is_over.wait(1) and sent == [one.sent for one in crowd] and min(sent) > 0

    eventually(is_quiet, "the broker does not stop reading", 60)
    others.ratio(f"eight clients that repeat {name} and read nothing", 3)
    growth = broker.peak_kilobytes - before
    print(f"eight clients that repeat {name} and read nothing: {growth / 1024:.0f} MiB more")
    assert growth < 8 * (12 << 10), f"{growth} kB"
    calls = 1000
    patient = raw().send(line("rpc.discover", number=0) + pings(calls, 1)) if name == "documents" else raw().send(pings(calls + 1))
    assert [message["id"] for message in patient.messages(calls + 1)] == list(range(calls + 1))


def test_documents_are_not_lost(stage, others, raw):
    """Three hundred replies of 150 kB that are not read exceed the queue; they are made when it has room."""
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    reader = raw()
    reader.send(b"".join(line("rpc.discover", number=number) for number in range(300)))
    others.ratio("three hundred documents", 3)
    assert [message["id"] for message in reader.messages(300)] == list(range(300))
    assert broker.peak_kilobytes - before < 48 << 10


def test_a_line_without_end(stage, others, raw):
    """It is reported once and not buffered, and the connection continues after it."""
    broker = stage.brokers[0]
    giant = raw().send(b"{" + b"x" * (17 * MEGABYTE))
    assert [message["error"]["data"]["kind"] for message in giant.messages(1)] == ["tooLarge"]
    before = broker.resident_kilobytes
    peak = broker.peak_kilobytes
    giant.repeat(b"x" * MEGABYTE)
    eventually(lambda: giant.sent > 200 * MEGABYTE, lambda: f"{giant.sent} bytes", 60)
    others.ratio("an endless line", FELT)
    assert broker.peak_kilobytes - peak < 1024 and broker.resident_kilobytes - before < 1024
    giant.is_over.set()
    giant.thread.join()
    giant.send(b"\n" + line("ping", number=1))
    assert [message["id"] for message in giant.messages(1)] == [1]


@pytest.mark.parametrize("text", [
    b'{"jsonrpc":"2.0","id":77,"result":{"action":"cancel"}}', b"{", b"[]",
], ids=["replies", "no JSON", "no requests"])
def test_malformed_messages(stage, others, raw, text):
    """Some malformed messages are ignored, and replies counted; too many in a row end that connection, and no other."""

    def told(one, count=None):
        return [message.get("id") or message["error"]["data"]["kind"] for message in one.messages(count)]

    errors = 0 if b"result" in text else SENSELESS
    some = raw().send((text + b"\n") * SENSELESS + line("ping", number=1))
    assert told(some, errors + 1)[-1] == 1
    many = raw().send((text + b"\n") * (SENSELESS + 1) + line("ping", number=1))
    found = told(many)
    assert found[-1] == "protocolViolation" and len(found) == (1 if errors == 0 else errors + 2)
    some.send(line("ping", number=2))
    assert told(some, 1) == [2]
    crowd = [raw().repeat((text + b"\n") * 100).drain() for _ in range(20)]
    others.ratio("twenty clients that send malformed messages", FELT)
    for one in crowd:
        one.thread.join(20)
        assert not one.thread.is_alive(), "it is read without limit"
    ignored = others.client.call("server/status", {})["result"]["ignoredMessages"]
    assert ignored >= 22 * SENSELESS or errors


def test_a_subscriber_to_events_that_does_not_read(stage, others, raw):
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    subscriber = raw()
    name = {"client": {"name": "s" * 80}, "protocolVersion": 1, "capabilities": {}}
    subscriber.send(line("events/subscribe", number=1))
    assert subscriber.messages(1)[0]["result"] == {}
    writer = raw()
    writer.send(line("initialize", name, 0)).repeat(line("session/clear", {"origin": f"http://{'h' * 60}"}, 1) * 100).drain()
    log = "client disconnected: it does not read"
    # About 400 bytes each, 32 MiB in all.
    eventually(lambda: log in broker.log, "the broker does not close the connection", 120)
    others.ratio("a subscriber that does not read", FELT)
    writer.is_over.set()
    assert subscriber.is_closed()
    assert broker.peak_kilobytes - before < 80 << 10


@pytest.mark.parametrize("hosts", [1, 5000])
def test_denials_do_not_displace_audit_records(stage, hosts):
    """Equal or different denials: few records; all records of another client are there."""
    broker = stage.configured('[fetch]\ndeny = ["*.denied.test"]\n')
    client, other = stage.client(broker=broker), stage.client(broker=broker, name="other")
    for number in range(5000):
        assert client.fetch(f"http://h{number % hosts}.denied.test/")["error"]["data"]["kind"] == "denied"
    other.fetch("http://mine.denied.test/")
    eventually(lambda: any(event["origin"] == "http://mine.denied.test" for event in events(broker)), "no audit record of the other client")
    assert len(events(broker)) <= 2 + min(hosts, 33)


def test_questions_do_not_displace_audit_records(stage):
    server = stage.server(lambda request: response(401, b"", f'WWW-Authenticate: Basic realm="{request.target}"'))
    client = stage.client(answer=lambda challenge: {"action": "continue"})
    for number in range(300):
        assert client.fetch(f"{server.url}/{number}")["result"]["status"] == 401
    found = events(stage.brokers[0])
    assert 2 <= len(found) <= 2 * 33
