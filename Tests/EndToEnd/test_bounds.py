"""Too many connections, too few descriptors, and the effect on other clients."""
import resource
import socket
import subprocess
import threading

import pytest

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
