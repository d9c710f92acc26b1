"""1 kB with Basic from the session cache, compared with the C broker and one_loop, which get the login with the request."""
import json

from ..bench import NAMES, SHAPES
from ..results import FINE, alternate


def run(bench, report):
    url = bench.sites.nginx() + "staff/1k"
    ours, theirs = json.dumps({"url": url}), json.dumps({"url": url, "userpwd": bench.sites.login})
    programs = [bench.program("floor_broker"), bench.swift_program("one_loop")]
    with bench.broker() as broker, bench.peer(programs[0]) as floor, bench.peer(programs[1]) as one_loop:
        bench.log_in(broker, url)
        params = {"watchwordd": (broker, ours), "C broker": (floor, theirs), "one_loop": (one_loop, theirs)}
        for shape in SHAPES:
            count = bench.count((3000 if shape == "sequential" else 6000) // FINE, 256)
            actions = {name: lambda process=process, text=text: bench.load(process, shape, count, text)
                       for name, (process, text) in params.items()}
            for process, text in params.values():
                bench.load(process, shape, 256, text)
            rounds = alternate(FINE * bench.pairs, actions)
            for figure, title in [("rate", "fetches/s"), ("cpu_us", "CPU µs per fetch")]:
                key = f"floor.{shape}.{figure.partition('_')[0]}"
                report.compare(key, f"{NAMES[shape]}, {title} / C broker", rounds, "watchwordd", "C broker", figure)
                report.compare(f"{key}.one_loop", f"{NAMES[shape]}, {title} / one_loop", rounds, "watchwordd", "one_loop", figure)
