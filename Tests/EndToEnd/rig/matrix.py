"""The cells of the matrix, the reasons for those that are impossible or differ, and MATRIX.md."""
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
    "right": "The answer is right: the result is the page.",
    "wrong": "Wrong, then right: the server receives one failed login, the second challenge has the `previousFailureCount` 1, and the result is the page.",
    "continue": "Continue: the 401 or 407 with its body is the result, and nothing more is sent.",
    "cancel": "Cancel: the fetch fails with `challengeCancelled`, and nothing more is sent."}

PROXIES = {"proxy", "tunnel", "tls-proxy", "tls-tunnel"}
TUNNELS = {"tunnel", "tls-tunnel"}
CERTIFICATES = {"certificate", "trust"}
ALL = None

LOGGED_IN_TUNNEL = "In a tunnel through a connection that is logged in, requests for the origin use HTTP/1.1."

# Statements about cells: (schemes, targets, outcomes, text). Cells in `CANNOT` are not run.
CANNOT = [
    (CERTIFICATES, {"http", "proxy", "tunnel"}, ALL, "Certificates need TLS."),
    ({"trust"}, {"tls-proxy", "tls-tunnel"}, ALL,
     "The certificate of an HTTPS proxy must verify: in this version it causes no challenge. The fetch fails with `proxyFailed`, "
     "no respondent is asked, and the proxy receives nothing (`test_the_certificate_of_a_proxy_causes_no_challenge`)."),
    ({"certificate"}, {"tls-proxy", "tls-tunnel"}, ALL,
     "In this version, an HTTPS proxy that requests a client certificate causes no challenge. The handshake continues without one "
     "(`test_a_proxy_is_shown_no_certificate`)."),
]
OTHERWISE = [
    ({"ntlm", "negotiate"}, {"h2"}, ALL,
     "Connection-level logins are not used with HTTP/2, in which many requests share a connection: the first request uses HTTP/2, "
     "and those with the login use HTTP/1.1, at the same server."),
    ({"ntlm"}, TUNNELS, {"right", "wrong"}, LOGGED_IN_TUNNEL),
    ({"negotiate"}, TUNNELS, {"right"}, LOGGED_IN_TUNNEL),
    ({"negotiate"}, ALL, {"right"}, "No respondent is asked: the user's tickets are sent. A proxy receives them if the configuration names it."),
    ({"negotiate"}, ALL, {"wrong", "continue", "cancel"},
     "Tickets cannot be typed. The server refuses the ticket, which it receives once, and also offers Basic: the client gets a "
     "challenge for Basic with one failure. Where HTTP/2 is available, Basic uses it."),
    ({"bearer"}, {"http", "proxy", "tunnel"}, ALL,
     "Only for servers on this machine. To others, no token is sent over plain http, and no respondent is asked for one "
     "(`test_no_token_goes_over_plain_http_elsewhere`)."),
    (ALL, TUNNELS, {"continue"}, "The result is the 407 without its body: libcurl discards the body of a refused CONNECT."),
    ({"certificate"}, ALL, {"continue"}, "The handshake continues without a certificate, as the server's log shows."),
    ({"trust"}, ALL, {"wrong"},
     "The wrong answer is the fingerprint of another key. Nothing is tried with it, so the second challenge has the error "
     "`fingerprintWrong` and no failure; the server receives no request before the right answer."),
    ({"trust"}, ALL, {"continue"}, "The default applies: the fetch fails with `serverNotTrusted`, and no request is sent."),
]

# The program that acts as the server, if it is not a script.
REAL = [
    ({"basic"}, {"http", "h2"}, ALL, "nginx"), ({"trust"}, {"h2"}, ALL, "nginx"),
    ({"certificate"}, {"https", "h2"}, {"right", "continue", "cancel"}, "nginx"),
    ({"negotiate"}, {"http", "https", "h2"}, {"right"}, "Apache"),
    ({"basic", "digest-md5"}, PROXIES, ALL, "squid"), ({"negotiate"}, PROXIES, {"right"}, "squid")]


def about(table, *cell):
    """Returns the texts of `table` about a cell."""
    return [text for *sets, text in table if all(names is ALL or name in names for names, name in zip(sets, cell))]


EVERY = [(scheme, target, outcome) for scheme in SCHEMES for target in TARGETS for outcome in OUTCOMES]
CELLS = [cell for cell in EVERY if not about(CANNOT, *cell)]


def document(shown):
    """Returns the text of MATRIX.md after the cells `shown` have passed."""
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
        "# Test matrix", "",
        f"Written by `test_matrix.py`; do not edit, but run `{REGENERATE}`. The test fails if its results differ from this file.", "",
        f"{green} of {len(EVERY)} cells have passed (✓, with the program that acts as the server), {len(EVERY) - len(CELLS)} are impossible (–). Numbers "
        "refer to the notes below. Each cell compares the records of the server: which requests contained a login, and which it accepted.", "",
        "In the columns of proxies, the proxy requires the login. Every proxy is used with HTTP/1.1, also an HTTPS proxy that offers HTTP/2; in "
        "tunnels, requests for the origin use HTTP/2 unless a note says otherwise. nginx provides HTTP/2 in front of the scripted servers."]
    for outcome, about_it in OUTCOMES.items():
        title, _, text = about_it.partition(": ")
        lines += ["", f"## {title}", "", text[:1].upper() + text[1:], "",
                  "| | " + " | ".join(TARGETS.values()) + " |", "| --- |" + " --- |" * len(TARGETS)]
        lines += [f"| {name} | " + " | ".join(cell(scheme, target, outcome) for target in TARGETS) + " |" for scheme, name in SCHEMES.items()]
    lines += ["", "## Notes", ""] + [f"{number}. {text}" for number, text in enumerate(notes, 1)]
    lines += field_servers.field_section()
    return "\n".join(lines) + "\n"
