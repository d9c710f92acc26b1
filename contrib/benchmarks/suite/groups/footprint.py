"""What one fetch executes: instructions, distinct code, and lines of code that miss the first-level cache.

Between two steps of a fetch other processes run, and its code has to come back from further away: the CPU time of a fetch is close to
10 ns for each missed line and 0.2 ns for each instruction. A debugger's information, which valgrind may not be able to read, is not
needed: strip -g removes it.
"""
import json

from ..bench import output
from ..callgrind import CACHES, COMMAND, read
from ..sites import USER

FETCHES = 200


def measure(bench, report, name, title, process, params, answer=""):
    count = bench.count(FETCHES)
    bench.load(process, "sequential", count, params, answer=answer)
    output(["callgrind_control", "--dump=before", process.pid])
    bench.load(process, "sequential", count, params, answer=answer)
    output(["callgrind_control", "--dump=counted", process.pid])
    counts = read(process.counts.with_name(process.counts.name + ".2"))
    for key, figure, unit, value in [
            ("instructions", "instructions", "", counts.instructions(count) / count),
            ("code", "code", " KiB", counts.code_bytes(count) / 1024),
            ("missed", "missed lines of code", "", counts.missed_code / count)]:
        report.add(f"footprint.{name}.{key}", f"{title}, {figure}", [value], unit)


def run(bench, report):
    url = bench.sites.nginx() + "staff/1k"
    answer = json.dumps({"action": "credential", "credential": {"type": "password", "user": USER, "password": bench.sites.password}})

    def counting(name):
        parts = bench.folder / f"{name}.out"
        return parts, [*COMMAND, *CACHES, f"--callgrind-out-file={parts}"]

    for name, title, more, given in [
            ("fetch", "a fetch from the session cache", {}, ""),
            ("challenge", "a challenge that the client answers", {"auth": {"useStorage": False}}, answer)]:
        parts, prefix = counting(name)
        with bench.broker(prefix=prefix) as broker:
            broker.counts = parts
            bench.log_in(broker, url)
            measure(bench, report, name, title, broker, json.dumps({"url": url, **more}), given)
    parts, prefix = counting("floor")
    with bench.peer(bench.program("floor_broker"), prefix=prefix) as floor:
        floor.counts = parts
        measure(bench, report, "floor", "the C broker", floor, json.dumps({"url": url, "userpwd": bench.sites.login}))
