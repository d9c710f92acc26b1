"""Measurements with their spread, and the report that collects them."""
import collections
import dataclasses
import os
import platform
import statistics
import subprocess
import time

from .targets import TARGETS

Sample = collections.namedtuple("Sample", ["rate", "p50_us", "cpu_us"], defaults=[None, None])


def spread(values):
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return dict(zip(["min", "q1", "median", "q3", "max"], [min(values), *quartiles, max(values)]))


@dataclasses.dataclass
class Measurement:
    """The values of a figure, one per round; `parts` are the figures of each peer from which they were computed."""

    key: str
    title: str
    unit: str
    values: list
    parts: dict = dataclasses.field(default_factory=dict)
    x: float | None = None

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def line(self):
        found = {name: f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}" for name, value in spread(self.values).items()}
        parts = "".join(f"   {name} {statistics.median(values):,.0f}" for name, values in self.parts.items())
        return (f"{self.title}: {found['median']}{self.unit} "
                f"({found['min']}, quartiles {found['q1']} and {found['q3']}, {found['max']}){parts}")

    @property
    def json(self):
        result = {"key": self.key, "title": self.title, "unit": self.unit.strip() or "ratio", **spread(self.values), "values": self.values}
        return {**result, **({"x": self.x} if self.x is not None else {}), **({"parts": self.parts} if self.parts else {})}


class Report:
    def __init__(self, options):
        self.options, self.measurements, self.notes, self.started = options, [], [], time.time()

    def add(self, key, title, values, unit="", parts=None, x=None):
        self.measurements.append(Measurement(key, title, unit, values, parts or {}, x))
        print("  " + self.measurements[-1].line, flush=True)

    def compare(self, key, title, rounds, ours, theirs, figure="rate", x=None):
        """Adds the ratio ours / theirs of `figure` for each round."""
        pair = [[getattr(sample, figure) for sample in rounds[name]] for name in [ours, theirs]]
        self.add(key, title, [mine / other for mine, other in zip(*pair)], parts=dict(zip([ours, theirs], pair)), x=x)

    def note(self, text):
        self.notes.append(text)
        print("  " + text, flush=True)

    def median(self, key):
        """Returns the median of the latest measurement of `key`."""
        return next(found.median for found in reversed(self.measurements) if found.key == key)

    def verdicts(self):
        """Returns each measured target with its median and whether it is reached."""
        measured = {found.key for found in self.measurements}
        medians = [(target, self.median(target.key)) for target in TARGETS if target.key in measured]
        return [(target, median, target.is_reached_by(median)) for target, median in medians]

    @property
    def json(self):
        libcurl = subprocess.run(["curl", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
        targets = [{"key": target.key, "name": target.name, "wanted": target.wanted, "median": median, "isReached": is_reached}
                   for target, median, is_reached in self.verdicts()]
        return {
            "started": time.strftime("%FT%TZ", time.gmtime(self.started)), "seconds": round(time.time() - self.started),
            "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "curl": libcurl, "load": os.getloadavg()},
            "options": self.options, "targets": targets, "notes": self.notes,
            "measurements": [measurement.json for measurement in self.measurements]}


# The factor for many short rounds (fractions of a second), which distribute other load on the machine over all peers. It is not used
# for in-process peers, which each round starts again: in short rounds their first connections would weigh more.
FINE = 4


def alternate(count, actions):
    """Runs `count` rounds of all `actions` (name → function that returns a Sample), starting with another one in each round."""
    names, rounds = list(actions), {name: [] for name in actions}
    for number in range(count):
        for name in names[number % len(names):] + names[:number % len(names)]:
            rounds[name].append(actions[name]())
    return rounds
