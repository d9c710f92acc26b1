"""The matrix: which cells there are, why some cannot be or are otherwise, and the file that people read."""
import pathlib

from . import field_servers

FILE = pathlib.Path(__file__).parents[1] / "MATRIX.md"
REGENERATE = "WATCHWORD_WRITE_MATRIX=1 python3 -m pytest Tests/EndToEnd/test_matrix.py"

SCHEMES = {
    "basic": "Basic", "digest-md5": "Digest MD5", "digest-md5-sess": "Digest MD5-sess", "digest-sha-256": "Digest SHA-256",
    "digest-sha-256-sess": "Digest SHA-256-sess", "digest-sha-512-256": "Digest SHA-512-256", "bearer": "Bearer",
    "ntlm": "NTLM", "negotiate": "Negotiate", "unknown": "an unknown scheme, by header, two rounds",
    "certificate": "client certificate", "trust": "server trust"}

TARGETS = {
    "http": "origin, http", "https": "origin, https, HTTP/1.1", "h2": "origin, https, HTTP/2",
    "proxy": "HTTP proxy, request", "tunnel": "HTTP proxy, CONNECT",
    "tls-proxy": "HTTPS proxy, request", "tls-tunnel": "HTTPS proxy, CONNECT"}

OUTCOMES = {
    "right": "The answer is right: the page comes.",
    "wrong": "Wrong, then right: the server sees one failed log-in, the second question says `previousFailureCount` 1, and the page comes.",
    "continue": "Continue: the 401 or 407 with its body is the result, and nothing more is sent.",
    "cancel": "Cancel: the fetch fails with `challengeCancelled`, and nothing more is sent."}

PROXIES = {"proxy", "tunnel", "tls-proxy", "tls-tunnel"}
TUNNELS = {"tunnel", "tls-tunnel"}
CERTIFICATES = {"certificate", "trust"}
ALL = None

LOGGED_IN_TUNNEL = "In a tunnel whose connection is logged in the origin is fetched from by HTTP/1.1."

# What is true of cells: (schemes, targets, outcomes, text). Of `CANNOT` nothing is run.
CANNOT = [
    (CERTIFICATES, {"http", "proxy", "tunnel"}, ALL, "Without TLS nobody shows a certificate."),
    ({"trust"}, {"tls-proxy", "tls-tunnel"}, ALL,
     "The certificate of an HTTPS proxy must verify: in this version it is no challenge. The fetch fails with `proxyFailed`, "
     "nobody is asked and the proxy hears nothing (`test_the_certificate_of_a_proxy_is_no_challenge`)."),
    ({"certificate"}, {"tls-proxy", "tls-tunnel"}, ALL,
     "To an HTTPS proxy no certificate is shown: in this version it is no challenge. The handshake goes on without one "
     "(`test_a_proxy_is_shown_no_certificate`)."),
]
OTHERWISE = [
    ({"ntlm", "negotiate"}, {"h2"}, ALL,
     "Log-ins of a connection are not for HTTP/2, whose connections many requests share (RFC 9113, as RFC 7540): the first request is "
     "made by HTTP/2, and those with the log-in by HTTP/1.1, at the same server."),
    ({"ntlm"}, TUNNELS, {"right", "wrong"}, LOGGED_IN_TUNNEL),
    ({"negotiate"}, TUNNELS, {"right"}, LOGGED_IN_TUNNEL),
    ({"negotiate"}, ALL, {"right"}, "Nobody is asked: the tickets of the user are sent. A proxy gets them when the configuration names it."),
    ({"negotiate"}, ALL, {"wrong", "continue", "cancel"},
     "Tickets are not typed. The server refuses the ticket, which it sees once, and offers Basic beside: about that the client is "
     "asked, and told of one failure. Basic is used by HTTP/2 where there is HTTP/2."),
    ({"bearer"}, {"http", "proxy", "tunnel"}, ALL,
     "On this machine. Elsewhere a token does not go over plain http, and nobody is asked for one "
     "(`test_no_token_goes_over_plain_http_elsewhere`)."),
    (ALL, TUNNELS, {"continue"}, "The 407 is the result, but not its body: libcurl drops the body of a CONNECT that is refused."),
    ({"certificate"}, ALL, {"continue"}, "The handshake goes on without a certificate, and the server's log says that there was none."),
    ({"trust"}, ALL, {"wrong"},
     "Wrong is the fingerprint of another key. Nothing is tried with it, so that the second question says `fingerprintWrong` and "
     "no failure; no request comes before the right one."),
    ({"trust"}, ALL, {"continue"}, "As by default: the fetch fails with `serverNotTrusted`, and no request is sent."),
]

# Who plays the server, where it is not a script.
REAL = [
    ({"basic"}, {"http", "h2"}, ALL, "nginx"), ({"trust"}, {"h2"}, ALL, "nginx"),
    ({"certificate"}, {"https", "h2"}, {"right", "continue", "cancel"}, "nginx"),
    ({"negotiate"}, {"http", "https", "h2"}, {"right"}, "Apache"),
    ({"basic", "digest-md5"}, PROXIES, ALL, "squid"), ({"negotiate"}, PROXIES, {"right"}, "squid")]


def about(table, scheme, target, outcome):
    """The texts of `table` that are about a cell."""
    def holds(names, name):
        return names is ALL or name in names

    return [text for schemes, targets, outcomes, text in table
            if holds(schemes, scheme) and holds(targets, target) and holds(outcomes, outcome)]


EVERY = [(scheme, target, outcome) for scheme in SCHEMES for target in TARGETS for outcome in OUTCOMES]
CELLS = [cell for cell in EVERY if not about(CANNOT, *cell)]


def document(shown):
    """MATRIX.md, when the cells `shown` have been found green."""
    notes = list(dict.fromkeys(text for *_, text in CANNOT + OTHERWISE))

    def cell(*name):
        here = about(CANNOT, *name) or about(OTHERWISE, *name)
        numbers = ", ".join(str(notes.index(text) + 1) for text in here)
        if about(CANNOT, *name):
            return f"– ({numbers})"
        server = (about(REAL, *name) or ["scripted"])[0]
        return (f"✓ {server}" if name in shown else "✗ **not shown**") + (f" ({numbers})" if numbers else "")

    green = len([name for name in CELLS if name in shown])
    lines = [
        "# What has been shown to work", "",
        f"Written by `test_matrix.py`; do not edit, but run `{REGENERATE}`. The test fails when a run shows anything else than this file says.", "",
        f"{green} of {len(EVERY)} cells are green (✓, with who played the server), {len(EVERY) - len(CELLS)} cannot be (–). Numbers lead to the "
        "notes below. Each green cell is read in the records of the server: which requests had a log-in, and which of them it let through.", "",
        "At a proxy it is the proxy that asks. To every proxy HTTP/1.1 is spoken, also to an HTTPS proxy that offers HTTP/2; in the tunnels the "
        "origin is fetched from by HTTP/2, unless a note says otherwise. HTTP/2 of the scripted servers is nginx, in front of them."]
    for outcome, about_it in OUTCOMES.items():
        title, _, text = about_it.partition(": ")
        lines += ["", f"## {title}", "", text[:1].upper() + text[1:], "",
                  "| | " + " | ".join(TARGETS.values()) + " |", "| --- |" + " --- |" * len(TARGETS)]
        lines += [f"| {name} | " + " | ".join(cell(scheme, target, outcome) for target in TARGETS) + " |" for scheme, name in SCHEMES.items()]
    lines += ["", "## Notes", ""] + [f"{number}. {text}" for number, text in enumerate(notes, 1)]
    lines += field_servers.field_section()
    return "\n".join(lines) + "\n"
