"""Clients that end in the middle of their challenges: their resources are released, and others are little affected."""
import json
import pathlib
import statistics
import subprocess
import time

import pytest

from rig.bodies import eventually
from rig.scripted import response

pytestmark = pytest.mark.tier3("ten thousand clients, and compares times")

CLIENTS, AT_ONCE = 10_000, 1000
KEPT = 64  # the connections to one server that libcurl keeps open, whether or not the client still exists
# Relative to the resources of the broker after a tenth of the clients, and to the duration of a fetch without load.
KILOBYTES, SLOWER = 4096, 40


def crowd(broker, clients):
    program = pathlib.Path(__file__).parent / "rig" / "crowd.py"
    return subprocess.Popen(
        ["/usr/bin/python3", str(program), broker.socket, str(clients), str(AT_ONCE)], stdout=subprocess.PIPE, text=True)


def heard(process):
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    told = json.loads(text)
    assert told["wrong"] == []
    return told


def settled(client, broker, descriptors):
    """Whether no resources of the clients are left."""
    def rest():
        status = client.call("server/status")["result"]
        return [status["challenges"]["pending"], status["fetches"]["running"], status["fetches"]["waiting"], status["engine"]["running"],
                status["connections"] - 1, status["session"]["entries"]]

    eventually(lambda: not any(rest()), lambda: f"{rest()} remain", 30)
    eventually(lambda: broker.descriptors <= descriptors, lambda: f"{broker.descriptors} descriptors, and {descriptors} before")


def latencies(client, url, until):
    times = []
    while not until(len(times)):
        begin = time.perf_counter()
        assert client.fetch(url)["result"]["status"] == 200
        times.append(time.perf_counter() - begin)
    return times


def test_ten_thousand_clients_that_die_in_the_middle_of_their_challenges(stage):
    # Little logging, so that it is not measured.
    broker = stage.broker("--log-level", "warning")
    server = stage.server(lambda request: response(200, b"open"))
    client = stage.client(broker=broker)
    descriptors = broker.descriptors + KEPT
    heard(crowd(broker, CLIENTS // 10))
    settled(client, broker, descriptors)
    kilobytes = broker.resident_kilobytes
    idle = statistics.median(latencies(client, server.url, lambda count: count == 200))
    process = crowd(broker, CLIENTS)
    times = latencies(client, server.url, lambda _: process.poll() is not None)
    told = heard(process)
    assert told["challenges"] == CLIENTS * 3 // 4 and told["requests"] >= CLIENTS * 3 // 4, told
    settled(client, broker, descriptors)
    grown = broker.resident_kilobytes - kilobytes
    middle, worst = statistics.median(times) / idle, max(times)
    print(f"a fetch: {idle * 1000:.2f} ms idle, {middle:.1f} times as long meanwhile (of {len(times)}), {worst:.2f} s at worst; "
          f"{grown} kB more")
    assert grown < KILOBYTES
    assert middle < SLOWER and worst < 10, (middle, worst)
    assert client.fetch(server.url)["result"]["status"] == 200
