"""A first challenge: forwarded to the client, answered by it, and the page fetched.

It makes two exchanges with the server and two with the client, as two fetches with the login in the session cache do: what it
takes beyond the time of two such fetches is the cost of the challenge itself.
"""
import json

from ..bench import NAMES
from ..results import alternate
from ..sites import USER


def run(bench, report):
    url, password = bench.sites.nginx(), bench.sites.password
    answer = json.dumps({"action": "credential", "credential": {"type": "password", "user": USER, "password": password}})
    # Nothing is read from the session cache, so that each fetch is challenged; at 16 parallel each in a realm of its own.
    params = {shape: json.dumps({"url": url + path, "auth": {"useStorage": False}})
              for shape, path in [("sequential", "staff/1k"), ("1x16", "realm/#/1k")]}
    given = json.dumps({"url": url + "staff/1k", "userpwd": bench.sites.login})
    with bench.broker() as broker, bench.peer(bench.program("floor_broker")) as floor:
        bench.log_in(broker, url + "staff/1k")
        cached = json.dumps({"url": url + "staff/1k"})
        for shape, text in params.items():
            count = bench.count(1000)
            bench.load(broker, shape, 100, text, answer=answer)
            rounds = alternate(bench.pairs, {
                "challenged": lambda: bench.load(broker, shape, count, text, answer=answer),
                "from the cache": lambda: bench.load(broker, shape, count, cached),
                "C broker": lambda: bench.load(floor, shape, count, given)})
            if shape == "sequential":
                own, cached_ones = ([sample.p50_us for sample in rounds[name]] for name in ["challenged", "from the cache"])
                report.add("challenge.beyond", "challenge forwarded and answered, beyond the two exchanges",
                           [one - 2 * other for one, other in zip(own, cached_ones)], " µs", {"challenged": own, "from the cache": cached_ones})
            report.compare(f"challenge.{shape}.floor", f"{NAMES[shape]}, challenged, fetches/s / C broker, given the login",
                           rounds, "challenged", "C broker")
            report.compare(f"challenge.{shape}.cached", f"{NAMES[shape]}, challenged, fetches/s / from the cache",
                           rounds, "challenged", "from the cache")
            report.add(f"challenge.{shape}.cpu", f"{NAMES[shape]}, broker's CPU for each challenged fetch",
                       [sample.cpu_us for sample in rounds["challenged"]], " µs")
