"""What happens when there is too much of something, and what others feel of it."""
import resource
import socket
import statistics
import time

import pytest

from rig.bodies import eventually

CONNECTIONS = 4096  # of the specification
TRIED = 10_000


def latency(client, count=200):
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        assert client.call("ping", {})["result"] == {}
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@pytest.fixture
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (TRIED + 2000, max(before[1], TRIED + 2000)))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_ten_thousand_connections(stage, many_descriptors):
    """The limit holds, who was there before feels nothing, and all descriptors come back."""
    client = stage.client()
    broker = stage.brokers[0]
    idle, before, crowd = latency(client), broker.descriptors, []
    for _ in range(TRIED):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(broker.socket)
        except BlockingIOError:  # the kernel's queue is full: as the broker wishes
            connection.close()
            continue
        crowd.append(connection)
    eventually(lambda: broker.descriptors >= before + CONNECTIONS - 1, "there are fewer")
    assert client.call("server/status", {})["result"]["connections"] == CONNECTIONS
    assert broker.descriptors <= before + CONNECTIONS + 8
    ratios = []
    for _ in range(5):
        ratios.append(latency(client) / idle)
        if ratios[-1] <= 1.5:
            break
    assert ratios[-1] <= 1.5, f"with {CONNECTIONS} connections the others wait {ratios} times as long"
    refused = socket.socket(socket.AF_UNIX)
    refused.connect(broker.socket)
    refused.settimeout(10)
    assert refused.recv(1) == b"", "the newcomer is closed"
    for connection in crowd:
        connection.close()
    eventually(lambda: broker.descriptors <= before, lambda: f"{broker.descriptors} of {before} remain", 30)
    assert stage.client().call("ping", {})["result"] == {}
