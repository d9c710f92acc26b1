"""The required figures."""
import dataclasses


@dataclasses.dataclass(frozen=True)
class Target:
    """The limit for the median of the measurement `key`, and optionally a better value to aim for."""

    key: str
    name: str
    limit: float
    is_minimum: bool
    unit: str = ""
    aim: float | None = None

    def is_reached_by(self, value):
        return value >= self.limit if self.is_minimum else value <= self.limit

    @property
    def wanted(self):
        text = f"{'at least' if self.is_minimum else 'at most'} {self.limit:g}{self.unit}"
        return text + (f" (aim {self.aim:g})" if self.aim else "")


def at_least(key, name, limit, aim=None):
    return Target(key, name, limit, True, aim=aim)


def at_most(key, name, limit, unit=""):
    return Target(key, name, limit, False, unit)


TARGETS = [
    at_least("floor.sequential.rate", "sequential, Basic from the session cache / C broker", 0.85, 1.0),
    at_least("floor.1x16.rate", "16 parallel on one connection / C broker", 0.75, 0.9),
    at_least("floor.16x1.rate", "16 connections / C broker", 0.75, 0.9),
    at_most("floor.1x16.cpu", "CPU per fetch, 16 parallel on one connection / C broker", 1.5),
    at_most("floor.16x1.cpu", "CPU per fetch, 16 connections / C broker", 1.5),
    at_most("footprint.fetch.instructions", "instructions of a fetch from the session cache", 240_000),
    at_most("footprint.fetch.code", "code that a fetch from the session cache executes", 280, " KiB"),
    at_most("footprint.fetch.missed", "missed lines of code of a fetch from the session cache", 5_600),
    at_most("footprint.challenge.instructions", "instructions of a challenge with its answer", 780_000),
    at_most("footprint.challenge.missed", "missed lines of code of a challenge with its answer", 19_000),
    at_least("urlsession.sequential", "sequential / in-process URLSession", 8),
    at_least("urlsession.1x16", "16 parallel / in-process URLSession", 8),
    at_most("commands.http", "`watchword fetch` / `curl -u`, whole command, http", 0.6),
    at_most("commands.https", "`watchword fetch` / `curl -u`, whole command, https", 0.45),
    at_least("bulk.download.http", "1 GiB to a file, speed / `curl -o`, http", 0.8),
    at_least("bulk.download.https", "1 GiB to a file, speed / `curl -o`, https", 0.8),
    at_most("bulk.memory", "growth of the broker's memory by the 1 GiB", 8, " MiB"),
    at_most("challenge.beyond", "challenge forwarded and answered, beyond the two exchanges", 150, " µs"),
    at_most("start.ready", "start to accepting / `curl --version`", 1.25),
    at_most("memory.idle", "resident memory, idle", 20, " MiB"),
    at_most("memory.connection", "resident memory per idle connection", 4, " KiB"),
    at_most("memory.crowd", "cost of a fetch with 3,000 idle connections / with none", 1.2),
    at_least("fronts.8.rate", "forward proxy, 1 kB by GET, 8 kept connections / squid", 1.0),
    at_least("fronts.tunnel.squid", "download by TLS through a tunnel, speed / squid", 1.0),
    at_least("fronts.tunnel.direct", "download by TLS through a tunnel, speed / without a proxy", 0.75),
    at_most("fronts.tunnel.memory", "resident memory per idle tunnel", 8, " KiB"),
]
