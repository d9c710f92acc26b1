"""Whole commands for a page with Basic: `watchword fetch`, with the login in the session cache, compared with `curl -u`."""
from ..bench import output
from ..results import FINE, Sample, alternate


def run(bench, report):
    authority = bench.sites.tls / "ca.pem"
    with bench.broker("--ca-file", authority) as broker:
        for name, url in [("http", bench.sites.nginx()), ("https", bench.sites.nginx(is_secure=True))]:
            url += "staff/page.txt"
            bench.log_in(broker, url)
            ours = [bench.binaries / "watchword", "fetch", "-s", "--socket", broker.path, url]
            theirs = ["curl", "-s", "--noproxy", "*", "--cacert", authority, "-u", bench.sites.login, url]
            for command in [ours, theirs]:
                if output(command, env=broker.environment) != "staff page\n":
                    raise RuntimeError(f"{command[0]} did not print the page")
            rounds = alternate(FINE * bench.pairs, {
                "watchword fetch": lambda: milliseconds(bench, ours, broker.environment),
                "curl -u": lambda: milliseconds(bench, theirs, broker.environment)})
            title = f"`watchword fetch` / `curl -u`, {name}, wall time"
            report.compare(f"commands.{name}", title, rounds, "watchword fetch", "curl -u", "p50_us")


def milliseconds(bench, command, environment):
    text = output([bench.program("start_time"), bench.count(40 // FINE, 5), "exit", *command], env=environment)
    return Sample(None, float(text))
