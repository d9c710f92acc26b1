"""1 kB with each scheme, with the login in the session cache, compared with in-process libcurl."""
import json

from rig import ntlm as rig_ntlm
from rig import servers

from ..bench import NAMES, SHAPES
from ..results import alternate

PARALLEL = ["sequential", "1x16", "16x16"]
BASIC, DIGEST, NTLM = 1, 2, 8


def run(bench, report):
    sites = bench.sites
    plain, secure, ntlm = sites.nginx(), sites.nginx(is_secure=True), sites.ntlm()
    # Name, URL, CURLAUTH_* bits, and the number of fetches relative to nginx.
    cases = [("no authentication", plain + "1k", 0, 1), ("Basic", plain + "staff/1k", BASIC, 1), ("TLS", secure + "1k", 0, 1),
             ("Digest", sites.apache(), DIGEST, 0.5), ("NTLM", ntlm, NTLM, 0.25)]
    if not ntlm:
        report.note(f"NTLM: not measured: pyspnego is missing; run {servers.INSTALL}")
    with bench.broker("--ca-file", sites.tls / "ca.pem", configuration='[schemes]\nntlm = ["127.0.0.1"]\n') as broker:
        for name, url, bits, share in cases:
            if url:
                measure(bench, report, broker, name, url, bits, share)


def measure(bench, report, broker, name, url, bits, share):
    domain = rig_ntlm.DOMAIN if bits == NTLM else ""
    if bits:
        bench.log_in(broker, url, **({"domain": domain} if domain else {}))
    params, login = json.dumps({"url": url}), bench.sites.login if bits else ""
    login = f"{domain}\\{login}" if domain else login
    for shape in PARALLEL:
        connections, depth = SHAPES[shape]
        count = bench.count(int((2000 if shape == "sequential" else 4000) * share))
        actions = {
            "watchwordd": lambda: bench.load(broker, shape, count, params),
            "in-process libcurl": lambda: bench.direct(url, count, connections * depth, login, bits)}
        bench.load(broker, shape, max(count // 10, 256), params)
        rounds = alternate(bench.pairs, actions)
        title = f"{name}, {NAMES[shape]}, fetches/s / in-process libcurl"
        report.compare(f"schemes.{name}.{shape}", title, rounds, "watchwordd", "in-process libcurl")
        report.add(f"schemes.{name}.{shape}.cpu", f"{name}, {NAMES[shape]}, broker's CPU per fetch",
                   [sample.cpu_us for sample in rounds["watchwordd"]], " µs")
