"""Memory of the idle broker and per idle connection, and the cost of a fetch with many idle connections."""
import json
import time

from ..crowd import Crowd
from ..results import alternate

CROWD, FIRST = 3000, 100


def run(bench, report):
    count = bench.count(CROWD)
    idle, each, used = [], [], []
    url = bench.sites.nginx() + "1k"
    params = json.dumps({"url": url})
    for _ in range(min(bench.pairs, 5)):
        with bench.broker() as broker:
            time.sleep(0.3)
            idle.append(broker.kibibytes() / 1024)
            # The first connections load code and buffers that all connections share.
            with Crowd(broker.path, FIRST):
                before = broker.kibibytes()
                with Crowd(broker.path, count):
                    each.append((broker.kibibytes() - before) / count)
            bench.load(broker, "1x16", bench.count(6000), params)
            used.append(broker.kibibytes() / 1024)
    report.add("memory.idle", "resident memory, idle", idle, " MiB")
    report.add("memory.connection", f"resident memory per idle connection ({count:,} of them)", each, " KiB")
    report.add("memory.used", "resident memory after these connections and some thousand fetches", used, " MiB")
    with bench.broker() as broker:
        bench.load(broker, "sequential", bench.count(2000), params)

        def crowded():
            with Crowd(broker.path, count):
                return bench.load(broker, "sequential", bench.count(2000), params)

        def alone():
            # Lets the broker close the connections of the crowd.
            time.sleep(0.3)
            return bench.load(broker, "sequential", bench.count(2000), params)

        rounds = alternate(bench.pairs, {"none": alone, "crowd": crowded})
        report.compare("memory.crowd", f"time of a fetch with {count:,} idle connections / with none", rounds, "none", "crowd")
        report.compare("memory.crowd.cpu", f"CPU of a fetch with {count:,} idle connections / with none", rounds, "crowd", "none", "cpu_us")
