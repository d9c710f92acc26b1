"""The forward proxy of the broker against squid: GET requests on kept connections, downloads through tunnels, and memory."""
import os
import pathlib
import subprocess
import sys
import time

from rig.servers import free_port

from ..bench import output, rate_in
from ..results import FINE, Sample, alternate

TUNNELS = 1000
SCRIPT = pathlib.Path(__file__).parents[1] / "tunnels.py"
USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def configuration(port, ports):
    return f'[front]\nproxy = "127.0.0.1:{port}"\nhosts = ["127.0.0.1", "localhost"]\ntunnel-ports = {list(ports)}\n'


def requests(bench, report, squid):
    url, port = bench.sites.nginx() + "1k", free_port()
    with bench.broker(configuration=configuration(port, [])) as broker:
        def load(process, port, connections, count):
            before = process.cpu_seconds
            text = output([bench.program("proxy_load"), port, connections, count, url])
            return Sample(rate_in(text), None, (process.cpu_seconds - before) / count * 1e6)

        for connections in [8, 1]:
            count = bench.count(8000 if connections > 1 else 2000)
            actions = {"watchwordd": lambda: load(broker, port, connections, count),
                       "squid": lambda: load(squid, squid.port, connections, count)}
            for action in actions.values():
                action()
            rounds = alternate(FINE * bench.pairs, actions)
            for figure, title in [("rate", "requests/s"), ("cpu_us", "CPU µs per request")]:
                key = f"fronts.{connections}.{figure.partition('_')[0]}"
                report.compare(
                    key, f"1 kB by GET, {connections} kept connections, {title} / squid", rounds, "watchwordd", "squid", figure)


def downloads(bench, report, squid):
    megabytes = 64 if bench.is_quick else 1024
    authority, url, port = bench.sites.tls / "ca.pem", bench.sites.nginx(True), free_port()
    large = bench.folder / "nginx-tls" / "www" / "tunnelled"
    with open(large, "wb") as file:
        for _ in range(megabytes):
            file.write(os.urandom(1 << 20))
    curl = ["curl", "-sS", "--fail", "--cacert", authority, "-o", "/dev/null", url + large.name]
    bare = free_port()
    ways = {name: ["--noproxy", "", "-x", f"http://127.0.0.1:{proxy}"]
            for name, proxy in {"watchwordd": port, "squid": squid.port, "relay": bare}.items()}
    ways["direct"] = ["--noproxy", "*"]
    origin = int(url.split(":")[2].strip("/"))

    def rate(options):
        begin = time.monotonic()
        output([*curl, *options])
        return Sample(megabytes / (time.monotonic() - begin))

    relay = subprocess.Popen([bench.program("relay"), str(bare)], stdout=subprocess.PIPE)
    try:
        relay.stdout.readline()
        with bench.broker(configuration=configuration(port, [origin])):
            rounds = alternate(bench.pairs, {name: lambda options=options: rate(options) for name, options in ways.items()})
    finally:
        relay.kill()
        relay.communicate()
        large.unlink()
    report.compare("fronts.tunnel.squid", "download by TLS through a tunnel, speed / squid", rounds, "watchwordd", "squid")
    report.compare("fronts.tunnel.direct", "download by TLS through a tunnel, speed / without a proxy", rounds, "watchwordd", "direct")
    report.compare("fronts.tunnel.relay", "download by TLS through a tunnel, speed / bare relay", rounds, "watchwordd", "relay")
    report.compare("fronts.relay.direct", "download by TLS through the bare relay, speed / without a proxy", rounds, "relay", "direct")


def memory(bench, report):
    """As an unprivileged user, because the limits of the kernel are lower for one."""
    prefix, count = USER if os.geteuid() == 0 else [], bench.count(TUNNELS)
    idle, each = [], []
    origin = int(bench.sites.nginx().split(":")[2].strip("/"))
    for _ in range(min(bench.pairs, 5)):
        port = free_port()
        with bench.broker(configuration=configuration(port, [origin]), prefix=prefix) as broker:
            time.sleep(0.3)
            idle.append(broker.kibibytes() / 1024)
            # The first tunnels load code and buffers that all tunnels share.
            with Tunnels(prefix, port, origin, 50):
                before = broker.kibibytes()
                with Tunnels(prefix, port, origin, count):
                    each.append((broker.kibibytes() - before) / count)
    report.add("fronts.idle", "resident memory with an idle proxy", idle, " MiB")
    report.add("fronts.tunnel.memory", f"resident memory per idle tunnel ({count:,} of them, of an unprivileged user)", each, " KiB")


class Tunnels:
    """`count` open tunnels through the proxy at `port`, each checked by one exchange."""

    def __init__(self, prefix, port, origin, count):
        self.process = subprocess.Popen(
            [*prefix, sys.executable, SCRIPT, str(port), str(origin), str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != b"ready\n":
            self.__exit__()
            raise RuntimeError(f"the proxy did not open {count} tunnels")

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.communicate()


def run(bench, report):
    if not bench.find("squid"):
        report.note("squid is not installed: no comparison of the proxy with it")
    else:
        squid = bench.sites.squid()
        requests(bench, report, squid)
        downloads(bench, report, squid)
    memory(bench, report)
