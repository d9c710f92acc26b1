"""A challenge that is forwarded to the client and answered, and the fetch of the page.

It needs two exchanges with the server and two with the client, like two fetches with a known login. The target limits the time beyond
two such fetches by the C broker; the time beyond two fetches by our broker is the cost of the challenge itself.
"""
import json

from ..bench import NAMES
from ..results import FINE, alternate
from ..sites import USER


def run(bench, report):
    url, password = bench.sites.nginx(), bench.sites.password
    answer = json.dumps({"action": "credential", "credential": {"type": "password", "user": USER, "password": password}})
    # The session cache is not used, so that each fetch is challenged; with 16 in parallel, each in its own realm.
    params = {shape: json.dumps({"url": url + path, "auth": {"useStorage": False}})
              for shape, path in [("sequential", "staff/1k"), ("1x16", "realm/#/1k")]}
    given = json.dumps({"url": url + "staff/1k", "userpwd": bench.sites.login})
    with bench.broker() as broker, bench.peer(bench.program("floor_broker")) as floor:
        bench.log_in(broker, url + "staff/1k")
        cached = json.dumps({"url": url + "staff/1k"})
        for shape, text in params.items():
            count = bench.count(1000 // FINE, 100)
            bench.load(broker, shape, 100, text, answer=answer)
            rounds = alternate(FINE * bench.pairs, {
                "challenged": lambda: bench.load(broker, shape, count, text, answer=answer),
                "from the cache": lambda: bench.load(broker, shape, count, cached),
                "C broker": lambda: bench.load(floor, shape, count, given)})
            if shape == "sequential":
                for key, peer, whose in [
                        ("beyond", "C broker", "the two exchanges"), ("beyond.own", "from the cache", "two fetches from the cache")]:
                    both = {name: [sample.p50_us for sample in rounds[name]] for name in ["challenged", peer]}
                    report.add(f"challenge.{key}", f"challenge forwarded and answered, beyond {whose}",
                               [challenged - 2 * one for challenged, one in zip(*both.values())], " µs", both)
            report.compare(f"challenge.{shape}.floor", f"{NAMES[shape]}, challenged, fetches/s / C broker, given the login",
                           rounds, "challenged", "C broker")
            report.compare(f"challenge.{shape}.cached", f"{NAMES[shape]}, challenged, fetches/s / from the cache",
                           rounds, "challenged", "from the cache")
            report.add(f"challenge.{shape}.cpu", f"{NAMES[shape]}, broker's CPU per challenged fetch",
                       [sample.cpu_us for sample in rounds["challenged"]], " µs")
