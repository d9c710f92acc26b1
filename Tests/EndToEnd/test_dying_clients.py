"""Clients that die in the middle of their challenges: what they had comes back, and others feel little of it."""
import json
import pathlib
import statistics
import subprocess
import time

from rig.bodies import eventually
from rig.scripted import response

CLIENTS, AT_ONCE = 10_000, 1000
KEPT = 64  # connections to one server that libcurl keeps, whether or not it is still there
# Of what the broker has after a tenth of them, and of what a fetch takes while nothing else happens.
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
    """Nothing is left of them."""
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
    # As little as possible of what the broker writes down.
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
