"""Every scheme with every kind of server and proxy, and every outcome. MATRIX.md contains the results of a complete run.

Each cell compares the server's records: for each request, whether it contained a login, and whether it was accepted.
"""
import os
import urllib.parse

import pytest
from rig.fixtures import running
from rig.forwarding import ForwardProxy
from rig.fronts import ASKED, Http2Nginx, Noted, Stand, TlsForwardProxy, expected, is_login_of_connection, open_page, settled, taken
from rig.matrix import CELLS, CERTIFICATES, FILE, PROXIES, REGENERATE, TUNNELS, document
from rig.scripted import ScriptedServer, bearer_server
from rig.servers import private

pytestmark = pytest.mark.tier3("every scheme with every server")

SETTINGS = '[schemes]\nntlm = ["127.0.0.1", "localhost"]\nnegotiate = ["localhost"]\n'
# There is no challenge for Negotiate; the challenge after a refused ticket is for Basic.
METHODS = {"basic": "httpBasic", "bearer": "bearer", "ntlm": "ntlm", "negotiate": "httpBasic", "unknown": "other",
           "certificate": "clientCertificate", "trust": "serverTrust"}
PROBLEMS = {"certificate": "certificateRefused", "trust": "fingerprintWrong"}
tried, shown = set(), set()


@pytest.fixture(scope="module")
def kept():
    """The scripted server to which nginx uses persistent connections. A cell sets its handler."""
    server = ScriptedServer(open_page)
    yield server
    server.close()


@pytest.fixture(scope="module")
def front(tmp_path_factory, certificates, kept):
    with running(Http2Nginx(tmp_path_factory.mktemp("nginx-http2"), certificates, kept.port)) as server:
        yield server


@pytest.fixture(scope="module")
def authorities(tmp_path_factory, certificates, tls):
    path = tmp_path_factory.mktemp("authorities") / "both.pem"
    path.write_bytes((certificates / "ca.pem").read_bytes() + (tls / "ca.pem").read_bytes())
    return path


@pytest.fixture(scope="module")
def tickets(realm, kerberos_users):
    return realm.log_in("alice", kerberos_users["alice"], "matrix")


@pytest.fixture
def start(stage, authorities, tickets):
    """`start(answer)` returns a client of a new broker. With `everything` it is also asked about connections; `proxy` is the
    configured proxy."""
    def make(answer, everything=False, proxy=None):
        path = private(stage.folder / "config.toml", SETTINGS + (f'[proxy]\nurl = "{proxy}"\n' if proxy else ""))
        broker = stage.broker("--config", str(path), "--ca-file", str(authorities), environment=tickets)
        client = stage.client(answer=answer, broker=broker)
        if everything:
            assert "result" in client.call("auth/subscribe", {"mode": "everything"})
        return client, broker

    return make


@pytest.mark.parametrize("scheme, target, outcome", CELLS, ids=["-".join(cell) for cell in CELLS])
def test_cell(stage, start, request, scheme, target, outcome):
    tried.add((scheme, target, outcome))
    site = Stand(stage, request.getfixturevalue).site(scheme, target, outcome)
    # Before the challenge for Basic, the ticket was the wrong login.
    replies, asked = list(site.answers if outcome == "wrong" and scheme != "negotiate" else site.answers[1:]), []

    def answer(challenge):
        asked.append(challenge)
        if outcome in {"continue", "cancel"}:
            return {"action": outcome}
        reply = replies.pop(0)
        return reply(challenge) if callable(reply) else reply

    own = {"proxy": {"url": site.proxy}} if site.proxy and scheme != "negotiate" else {}
    client, broker = start(answer, scheme in CERTIFICATES, None if own else site.proxy)
    reply = client.fetch(site.url, **own)
    # Some servers log a tunnel or a connection when it ends.
    client.close()
    assert broker.stop() == 0

    noted, failures = expected(scheme, outcome)
    assert site.verdicts(noted) == noted, reply
    assert [one["previousFailureCount"] for one in asked] == failures
    # In other schemes, a response refuses the wrong answer, without an `error` in the challenge.
    problems = [one["error"]["kind"] for one in asked if one["error"]]
    assert problems == [PROBLEMS[scheme]] * (outcome == "wrong") if scheme in PROBLEMS else problems == []
    asker, method = urllib.parse.urlsplit(site.proxy or site.url), METHODS.get(scheme, "httpDigest")
    spaces = [[one["protectionSpace"][name] for name in ["authenticationMethod", "isProxy", "host", "port"]] for one in asked]
    assert spaces == [[method, target in PROXIES, asker.hostname, asker.port]] * len(asked)
    check_reply(reply, site, scheme, target, outcome)
    for name, (found, wanted) in site.also.items():
        assert found() == wanted, name
    if site.reached:
        assert site.reached() == (outcome in {"right", "wrong"}), "the origin's requests, none of which contains the proxy's login"
    shown.add((scheme, target, outcome))


def check_reply(reply, site, scheme, target, outcome):
    here, there = ("proxyAuth", "auth") if target in PROXIES else ("auth", "proxyAuth")
    if outcome == "cancel" or (scheme, outcome) == ("trust", "continue"):
        assert reply["error"]["data"]["kind"] == ("challengeCancelled" if outcome == "cancel" else "serverNotTrusted")
    elif outcome == "continue" and scheme != "certificate":
        result = reply["result"]
        assert result["status"] == (407 if target in PROXIES else 401) and result.get(here) is None
        # libcurl reads the body of a refused CONNECT and discards it.
        assert (result["body"]["value"] == "") if target in TUNNELS else (site.refused_body in result["body"]["value"])
    else:
        result, login = reply["result"], is_login_of_connection(scheme, outcome)
        version = "1.1" if target in TUNNELS and login else site.version
        assert (result["status"], result["body"]["value"], result["httpVersion"]) == (200, site.body, version)
        if scheme not in CERTIFICATES:
            method = "negotiate" if (scheme, outcome) == ("negotiate", "right") else METHODS.get(scheme, "httpDigest")
            assert result[here]["authenticationMethod"] == method and result.get(there) is None


# The tests that replace impossible cells

def never(challenge):
    pytest.fail("unexpected challenge")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("kind", ["self-signed", "expired", "wrong-name"])
def test_the_certificate_of_a_proxy_causes_no_challenge(stage, start, certificates, nginx, nginx_tls, scheme, kind):
    proxy = stage.server(TlsForwardProxy(certificates, kind))
    port = (nginx_tls if scheme == "https" else nginx).port
    client, _ = start(never, everything=True)
    reply = client.fetch(f"{scheme}://localhost:{port}/open.txt", proxy={"url": proxy.url})
    assert reply["error"]["data"]["kind"] == "proxyFailed"
    assert settled(lambda: (len(proxy.failures), proxy.connections), (1, 1)) == (1, 1) and not proxy.requests


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_shown_no_certificate(stage, start, certificates, nginx, nginx_tls, scheme):
    proxy = stage.server(TlsForwardProxy(certificates, client_authority=certificates / "ca.pem"))
    port = (nginx_tls if scheme == "https" else nginx).port
    client, _ = start(never, everything=True)
    for more in [{}, {"tls": {"certificate": certificates.credential()}}]:
        reply = client.fetch(f"{scheme}://localhost:{port}/open.txt", proxy={"url": proxy.url}, **more)
        assert "error" in reply, reply
    why = {"PEER_DID_NOT_RETURN_A_CERTIFICATE"}
    assert settled(lambda: {found for _, found in proxy.failures}, why) == why and proxy.connections >= 2 and not proxy.requests


def test_no_token_goes_over_plain_http_elsewhere(stage, start):
    noted = Noted(taken(bearer_server(stage.secret())))
    server, proxy = stage.server(ScriptedServer(noted)), stage.server(ForwardProxy())
    client, _ = start(never, everything=True)
    result = client.fetch(f"http://intranet.test:{server.port}/", proxy={"url": proxy.url})["result"]
    assert result["status"] == 401 and noted.verdicts == [ASKED]


def test_the_file_agrees_with_the_results():
    """This test runs last, after all cells."""
    assert tried == set(CELLS), "run the whole file"
    text = document(shown)
    if os.environ.get("WATCHWORD_WRITE_MATRIX"):
        FILE.write_text(text)
    assert FILE.exists() and FILE.read_text() == text, f"MATRIX.md differs from this run; if the run is right: {REGENERATE}"
