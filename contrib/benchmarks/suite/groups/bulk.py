"""1 GiB: `watchword fetch -o` and a minimal client in C against `curl -o`, and uploads against `curl -T`, over http and https."""
import os
import time

from ..bench import output
from ..results import Sample, alternate


def run(bench, report):
    megabytes = 64 if bench.is_quick else 1024
    authority, out = bench.sites.tls / "ca.pem", bench.folder / "downloaded"
    with bench.broker("--ca-file", authority) as broker:
        helper = [bench.binaries / "watchword", "fetch", "-s", "--socket", broker.path]
        curl = ["curl", "-s", "--noproxy", "*", "--cacert", authority]
        before, large = None, None
        try:
            for name, is_secure in [("http", False), ("https", True)]:
                url = bench.sites.nginx(is_secure)
                www = bench.folder / ("nginx-tls" if is_secure else "nginx") / "www"
                if large is None:
                    large = www / "1g"
                    with open(large, "wb") as file:
                        for _ in range(megabytes):
                            file.write(os.urandom(1 << 20))
                    output([*helper, "-o", out, url + "1k"], env=broker.environment)
                    before = broker.kibibytes("VmHWM")
                else:
                    os.link(large, www / "1g")
                downloads = {
                    "watchword fetch -o": [*helper, "-o", out, url + "1g"],
                    "minimal client": [bench.program("download_client"), broker.path, url + "1g", out],
                    "curl -o": [*curl, "-o", out, url + "1g"]}
                rounds = measured(bench, downloads, broker.environment, out, megabytes, large)
                report.compare(f"bulk.download.{name}", f"download, {name}, speed / `curl -o`", rounds, "watchword fetch -o", "curl -o")
                report.compare(f"bulk.download.{name}.minimal", f"download, {name}, minimal client, speed / `curl -o`",
                               rounds, "minimal client", "curl -o")
                uploads = {
                    "watchword fetch -T": [*helper, "-T", large, url + "up/file"], "curl -T": [*curl, "-T", large, url + "up/file"]}
                uploaded = www / "up" / "file"
                rounds = measured(bench, uploads, broker.environment, uploaded, megabytes, large)
                report.compare(f"bulk.upload.{name}", f"upload, {name}, speed / `curl -T`", rounds, "watchword fetch -T", "curl -T")
            growth = (broker.kibibytes("VmHWM") - before) / 1024
            report.add("bulk.memory", "growth of the broker's memory by these transfers", [growth], " MiB")
        finally:
            for path in [out, *bench.folder.glob("nginx*/www/1g"), *bench.folder.glob("nginx*/www/up/file")]:
                path.unlink(missing_ok=True)


def measured(bench, commands, environment, written, megabytes, original):
    """Returns MiB/s of each command. Removes `written` before each run, so that all runs use recently freed memory, which is faster."""
    def rate(command):
        written.unlink(missing_ok=True)
        begin = time.monotonic()
        output(command, env=environment)
        return Sample(megabytes / (time.monotonic() - begin))

    for command in commands.values():
        rate(command)
        output(["cmp", written, original])
    return alternate(bench.pairs, {name: lambda command=command: rate(command) for name, command in commands.items()})
