"""Start time of `watchwordd` until it accepts, compared with `curl --version`, which loads the same libraries."""
import os

from ..bench import output
from ..results import FINE, Sample, alternate


def run(bench, report):
    with bench.broker() as broker:
        environment = {**broker.environment, "XDG_RUNTIME_DIR": str(broker.folder)}
        command = [*broker.command, "--ready-fd", 3]
    os.makedirs(broker.folder / "run", mode=0o700, exist_ok=True)
    count = bench.count(20 // FINE, 5)

    def median(until, words):
        return Sample(None, float(output([bench.program("start_time"), count, until, *words], env=environment)))

    rounds = alternate(FINE * bench.pairs, {
        "watchwordd": lambda: median("ready", command), "curl --version": lambda: median("exit", ["curl", "--version"])})
    report.compare("start.ready", "start to accepting / `curl --version`", rounds, "watchwordd", "curl --version", "p50_us")
