"""1 kB with Basic, compared with libraries in the process, and with aria2, a daemon with JSON-RPC."""
import json
import pathlib
import sys

from .. import aria2 as daemon
from ..bench import NAMES, SHAPES, output, rate_in
from ..results import Sample, alternate
from ..sites import USER

PARALLEL = ["sequential", "1x16"]
INSTALL = "contrib/install-dependencies --benchmarks"


def compare(bench, report, key, peer, fetch, share):
    """Compares with a peer: `fetch(url, count, parallel)` returns its rate; `share` is its number of fetches relative to the broker's."""
    url = bench.sites.nginx() + "staff/1k"
    params = json.dumps({"url": url})
    with bench.broker() as broker:
        bench.log_in(broker, url)
        for shape in PARALLEL:
            count, parallel = bench.count(3000 if shape == "sequential" else 6000), SHAPES[shape][0] * SHAPES[shape][1]
            theirs = max(int(count * share), 2 * parallel)
            bench.load(broker, shape, count // 10, params)
            rounds = alternate(bench.pairs, {
                "watchwordd": lambda: bench.load(broker, shape, count, params),
                peer: lambda: Sample(fetch(url, theirs, parallel))})
            report.compare(f"{key}.{shape}", f"{NAMES[shape]}, fetches/s / {peer}", rounds, "watchwordd", peer)


def urlsession(bench, report):
    program = bench.swift_program("urlsession")
    compare(bench, report, "urlsession", "in-process URLSession", lambda url, count, parallel: rate_in(
        output([program, url, count, parallel, USER, bench.sites.password])), 0.2)


def requests(bench, report):
    try:
        import requests as _  # noqa: F401
    except ImportError:
        report.note(f"requests: not measured: python3-requests is not installed; run {INSTALL}")
        return
    program = pathlib.Path(__file__).resolve().parents[1] / "requests_fetches.py"
    compare(bench, report, "requests", "in-process requests", lambda url, count, parallel: rate_in(
        output([sys.executable, program, url, count, parallel, USER, bench.sites.password])), 0.1)


def aria2(bench, report):
    program = bench.find("aria2c")
    if not program:
        report.note(f"aria2: not measured: aria2c is not installed; run {INSTALL}")
        return
    with daemon.Daemon(program, bench.folder / "aria2", USER, bench.sites.password) as started:
        compare(bench, report, "aria2", "aria2's JSON-RPC", started.rate, 0.1)
