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
    """The values of one figure, one for each round; `parts` are the figures it is made of, by peer."""

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
        kept = {"key": self.key, "title": self.title, "unit": self.unit.strip() or "ratio", **spread(self.values), "values": self.values}
        return {**kept, **({"x": self.x} if self.x is not None else {}), **({"parts": self.parts} if self.parts else {})}


class Report:
    def __init__(self, options):
        self.options, self.measurements, self.notes, self.started = options, [], [], time.time()

    def add(self, key, title, values, unit="", parts=None, x=None):
        self.measurements.append(Measurement(key, title, unit, values, parts or {}, x))
        print("  " + self.measurements[-1].line, flush=True)

    def compare(self, key, title, rounds, ours, theirs, figure="rate", x=None):
        """Adds the ratio of `figure` in each round, ours by theirs."""
        pair = [[getattr(sample, figure) for sample in rounds[name]] for name in [ours, theirs]]
        self.add(key, title, [mine / other for mine, other in zip(*pair)], parts=dict(zip([ours, theirs], pair)), x=x)

    def note(self, text):
        self.notes.append(text)
        print("  " + text, flush=True)

    def median(self, key):
        """Of the latest measurement of that key."""
        return next(found.median for found in reversed(self.measurements) if found.key == key)

    def verdicts(self):
        """Each target that was measured, with the median and whether it is reached."""
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


# Rounds of parts of a second, in place of one: what else the machine does then hits all peers alike. Not for peers that are
# programs of their own, whose first connections would count for more then.
FINE = 4


def alternate(count, actions):
    """`count` rounds, each with every one of `actions` (name → function that returns a Sample), the first one another each time."""
    names, rounds = list(actions), {name: [] for name in actions}
    for number in range(count):
        for name in names[number % len(names):] + names[:number % len(names)]:
            rounds[name].append(actions[name]())
    return rounds
