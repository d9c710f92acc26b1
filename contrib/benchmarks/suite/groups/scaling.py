"""The growth of the cost of a fetch with idle connections, fetches in flight, cached logins, logins that were stored and never used, and
pending challenges."""
import contextlib
import json

from rig.client import Client

from ..crowd import Crowd, Waiting
from ..results import alternate
from ..sites import USER

# The limits are 3,584 connections per program and 65,536 entries in the session cache.
CONNECTIONS = [1, 30, 300, 1000, 3500]
TRANSFERS = {1: (1, 1), 4: (1, 4), 16: (1, 16), 64: (1, 64), 256: (4, 64), 1000: (8, 125), 2000: (8, 250)}
ENTRIES = [1, 256, 4096, 16_384, 65_000]
STORED = [1, 240, 4000]
CHALLENGES = [1, 125, 500, 1000]
# The growth factor at which a curve ends, because larger steps would take too long.
STEEPEST = 3


def run(bench, report):
    for measure in [connections, transfers, entries, stored, challenges]:
        measure(bench, report)


def reference(bench, report, key, what, steps, broker, grow):
    """Reports the cost of a fetch through `broker`, relative to another broker, after `grow(stack, previous, step)` for each of `steps`."""
    url = bench.sites.nginx() + "staff/1k"
    params, count = json.dumps({"url": url}), bench.count(1500)
    steps = [step for step in steps if step <= 1000] if bench.is_quick else steps
    with contextlib.ExitStack() as stack, bench.broker() as other:
        for one in [broker, other]:
            bench.log_in(one, url)
            bench.load(one, "sequential", 200, params)
        previous = 0
        for step in steps:
            grow(stack, previous, step)
            previous = step
            rounds = alternate(max(3, bench.pairs // 2), {
                name: lambda one=one: bench.load(one, "sequential", count, params) for name, one in [("with", broker), ("without", other)]})
            report.compare(f"{key}.cpu", f"{step:,} {what}, CPU per fetch / with none", rounds, "with", "without", "cpu_us", x=step)
            report.compare(f"{key}.rate", f"{step:,} {what}, fetches/s / with none", rounds, "with", "without", x=step)
            if step != steps[-1] and report.median(f"{key}.cpu") > STEEPEST:
                report.note(f"more than {step:,} {what}: not measured: a fetch costs more than {STEEPEST} times as much already")
                break


def connections(bench, report):
    with bench.broker() as broker:
        def grow(stack, previous, step):
            stack.enter_context(Crowd(broker.path, step - previous))

        reference(bench, report, "scaling.connections", "idle connections", CONNECTIONS, broker, grow)


def transfers(bench, report):
    url = bench.sites.nginx() + "staff/1k"
    ours, theirs = json.dumps({"url": url}), json.dumps({"url": url, "userpwd": bench.sites.login})
    with bench.broker() as broker, bench.peer(bench.program("floor_broker")) as floor:
        bench.log_in(broker, url)
        for step, shape in TRANSFERS.items():
            count = bench.count(max(1500, 2 * step), 2 * step)
            rounds = alternate(max(3, bench.pairs // 2), {
                "watchwordd": lambda: bench.load(broker, shape, count, ours), "C broker": lambda: bench.load(floor, shape, count, theirs)})
            for figure, title in [("cpu_us", "CPU per fetch"), ("rate", "fetches/s")]:
                report.compare(f"scaling.transfers.{figure.partition('_')[0]}", f"{step:,} fetches in flight, {title} / C broker",
                               rounds, "watchwordd", "C broker", figure, x=step)


def entries(bench, report):
    answer = json.dumps({"action": "credential", "credential": {"type": "password", "user": USER, "password": bench.sites.password}})
    # One server can have an eighth of the entries, so they are spread over all addresses.
    params = json.dumps({"url": bench.sites.nginx().replace("127.0.0.1", "127.0.0.@") + "realm/#/1k"})
    with bench.broker(configuration="[limits]\nsession-entries = 65536\n") as broker:
        def grow(stack, previous, step):
            bench.load(broker, (1, min(16, step - previous)), step - previous, params, answer=answer, first=previous)

        reference(bench, report, "scaling.entries", "cached logins", ENTRIES, broker, grow)


def stored(bench, report):
    with bench.broker(configuration="[limits]\nsession-entries = 65536\n") as broker:
        def grow(stack, previous, step):
            client = Client(broker.path)
            stack.callback(client.close)
            for number in range(previous, step):
                place = {"protocol": "http", "host": f"server{number // 4}.example", "port": 80, "realm": str(number)}
                login = {"type": "password", "user": "bob", "password": "secret", "persistence": "forSession"}
                reply = client.call("credential/store", {"protectionSpace": place, "credential": login})
                if "result" not in reply:
                    raise RuntimeError(f"cannot store a login: {reply}")

        reference(bench, report, "scaling.stored", "stored logins without use", STORED, broker, grow)


def challenges(bench, report):
    with bench.broker("--challenge-deadline-ms", "3600000") as broker:
        def grow(stack, previous, step):
            stack.enter_context(Waiting(broker.path, bench.sites.nginx(), previous, step - previous))

        reference(bench, report, "scaling.challenges", "pending challenges", CHALLENGES, broker, grow)
