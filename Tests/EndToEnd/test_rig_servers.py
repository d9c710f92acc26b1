"""The rig's own servers, tested with curl: the broker's tests rely on them."""
import base64
import contextlib
import hashlib
import http.client
import io
import os
import socket
import ssl
import subprocess
import threading

import pytest

from rig import ntlm as rig_ntlm
from rig import tls as rig_tls
from rig import tokens
from rig.bodies import eventually
from rig.scripted import ScriptedServer, head_from
from rig.servers import find, marked
from rig.waiting import is_accepting


def curl(*words, environment=None, code=0, **more):
    """Makes a request; returns its status and body. `code` is curl's expected exit status."""
    done = subprocess.run(
        [find("curl"), "-q", "-sS", "-m", "20", "--noproxy", "", "-w", "\n%{http_code}", *map(str, words)],
        env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == code, (done.returncode, done.stderr)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_a_scripted_server_that_is_closed_does_not_listen():
    """A thread that still accepted connections would run until the end of all tests."""
    before = set(threading.enumerate())
    server = ScriptedServer(None)
    thread, = set(threading.enumerate()) - before
    eventually(lambda: is_accepting(thread), "the thread does not accept connections")
    server.close()
    thread.join(20)
    assert not thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), 20)


@pytest.mark.parametrize("data, head, rest", [
    (b"GET / HTTP/1.1\r\nHost: x\r\n\r\nbody", b"GET / HTTP/1.1\r\nHost: x\r\n", b"body"), (b"GET / HTTP/1.1\r\nHo", b"GET / HTTP/1.1\r\nHo", b""),
    (b"", b"", b"")])
def test_a_head_ends_with_an_empty_line_or_the_connection(data, head, rest):
    stream = io.BytesIO(data)
    assert head_from(stream) == head and stream.read() == rest


def test_kerberos_names_the_user(kerberos_apache, realm, kerberos_users, tls):
    alice, bob = [realm.log_in(user, password) for user, password in kerberos_users.items()]
    page = marked("/kerberos/page.txt")
    kerberos_apache.forget_delegated()
    negotiate = ["--negotiate", "-u:"]
    assert curl(*negotiate, kerberos_apache.url + page, environment=alice) == (200, "kerberos page\n")
    assert curl(*negotiate, "--cacert", tls / "ca.pem", kerberos_apache.tls_url + page, environment=bob)[0] == 200
    assert curl(*negotiate, kerberos_apache.url + page, environment=realm.environment())[0] == 401
    unknown_service = kerberos_apache.url.replace("localhost", "127.0.0.1")
    assert curl(*negotiate, unknown_service + page, environment=alice)[0] == 401
    kerberos_apache.wait_for_log(f"200 bob@WATCHWORD.TEST {page} port={kerberos_apache.tls_port}")
    kerberos_apache.wait_for_log(f"200 alice@WATCHWORD.TEST {page} port={kerberos_apache.port}")
    assert not list(kerberos_apache.delegated.iterdir())
    assert curl(*negotiate, "--delegation", "always", kerberos_apache.url + page, environment=alice)[0] == 200
    assert [path.name for path in kerberos_apache.delegated.iterdir()] == ["alice@WATCHWORD.TEST"]
    kerberos_apache.forget_delegated()
    late = realm.expired("bob", kerberos_users["bob"])
    assert curl(*negotiate, kerberos_apache.url + page, environment=late)[0] == 401
    password = f"bob:{kerberos_users['bob']}"
    assert curl("-u", password, kerberos_apache.url + "/either/page.txt") == (200, "either page\n")


def test_a_kdc_that_never_answers(kerberos_apache, realm, kerberos_users, silent_kdc):
    realm.log_in("alice", kerberos_users["alice"], "unused")
    waiting = subprocess.Popen(
        [find("curl"), "-sS", "--negotiate", "-u:", kerberos_apache.url + "/kerberos/page.txt"],
        env={**os.environ, **silent_kdc.environment(realm, "unused")}, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: silent_kdc.asked >= 2 or waiting.poll() is not None, lambda: silent_kdc.asked, 20)
        assert waiting.poll() is None
    finally:
        waiting.kill()
        waiting.wait()


def test_ntlm_logs_in_a_connection(ntlm, ntlm_users):
    login = ["--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}"]
    assert curl(*login, ntlm.url + "/one", "-o", "-", ntlm.url + "/two")[1].endswith("hello TESTDOM\\alice\n")
    assert curl("--ntlm", "-u", f"TESTDOM\\bob:{ntlm_users['bob']}", ntlm.url + "/three") == (200, "hello TESTDOM\\bob\n")
    assert ntlm.handler.served == [(1, "/one", "TESTDOM\\alice"), (1, "/two", "TESTDOM\\alice"), (2, "/three", "TESTDOM\\bob")]
    assert curl("--ntlm", "-u", "TESTDOM\\alice:wrong", ntlm.url)[0] == 401
    assert curl("--ntlm", "-u", "TESTDOM\\unknown:wrong", ntlm.url)[0] == 401
    assert curl(ntlm.url)[0] == 401 and len(ntlm.handler.served) == 3 and len(ntlm.handler.refused) == 2


def test_ntlm_in_disguise(ntlm_in_disguise, ntlm_users):
    """curl without gss-ntlmssp does not support this, so the client is pyspnego's: wrapped as SPNEGO, and unwrapped."""
    host = ("127.0.0.1", ntlm_in_disguise.port)
    for number, protocol in enumerate(["negotiate", "ntlm"], 1):
        client = rig_ntlm.spnego.client(
            "TESTDOM\\alice", ntlm_users["alice"], protocol=protocol, options=rig_ntlm.spnego.NegotiateOptions.use_ntlm)
        connection, token = http.client.HTTPConnection(*host, timeout=30), None
        while not client.complete and (token := client.step(token)):
            connection.request("GET", f"/{protocol}", headers={"Authorization": "Negotiate " + base64.b64encode(token).decode()})
            answer = connection.getresponse()
            answer.read()
            token = base64.b64decode((answer.getheader("WWW-Authenticate") or "").removeprefix("Negotiate"))
        assert answer.status == 200 and ntlm_in_disguise.handler.served[-1] == (number, f"/{protocol}", "TESTDOM\\alice")


def test_a_proxy_that_demands_ntlm(ntlm_proxy, ntlm_users, nginx, nginx_tls, tls):
    proxy = ["-x", ntlm_proxy.url, "--proxy-ntlm", "-U"]
    right = [*proxy, f"TESTDOM\\alice:{ntlm_users['alice']}"]
    assert curl(*right, f"http://127.0.0.1:{nginx.port}/open.txt") == (200, "open page\n")
    assert curl(*right, "--cacert", tls / "ca.pem", f"https://localhost:{nginx_tls.port}/open.txt") == (200, "open page\n")
    assert curl(*proxy, "TESTDOM\\alice:wrong", f"http://127.0.0.1:{nginx.port}/open.txt")[0] == 407
    assert curl(*proxy, "TESTDOM\\alice:wrong", f"https://localhost:{nginx_tls.port}/open.txt", code=56)[0] == 0
    assert ntlm_proxy.handler.served == [
        (1, f"http://127.0.0.1:{nginx.port}/open.txt", "TESTDOM\\alice"), (2, f"localhost:{nginx_tls.port}", "TESTDOM\\alice")]
    assert len(ntlm_proxy.tunnelled) > 300 and b"open.txt" not in ntlm_proxy.tunnelled


PROXY_LOGINS = {"open": [], "basic": [], "digest": ["--proxy-digest"], "both": ["--proxy-anyauth"], "negotiate": ["--proxy-negotiate"]}


@pytest.mark.parametrize("kind", ["", "tls-"])
def test_squid(squid, kind, account, realm, kerberos_users, nginx, nginx_tls, tls):
    environment = realm.log_in("alice", kerberos_users["alice"])
    urls = [f"http://localhost:{nginx.port}/open.txt", f"https://localhost:{nginx_tls.port}/open.txt"]
    who = {"open": "-", "negotiate": "alice@WATCHWORD.TEST"}
    for way, option in PROXY_LOGINS.items():
        login = {"open": [], "negotiate": ["-U", ":"]}.get(way, ["-U", ":".join(account)])
        trust = ["--proxy-cacert", tls / "ca.pem", "--cacert", tls / "ca.pem"]
        for url, method in zip(urls, ["GET", "CONNECT"]):
            target = url if method == "GET" else url.split("/")[2]
            line = f"200 {method} {target} {who.get(way, account[0])} port={squid.ports[kind + way]}"
            before = squid.log.count(line)
            assert curl("-x", squid.url(kind + way), *option, *login, *trust, url, environment=environment) == (200, "open page\n")
            squid.wait_for_log(line, before + 1)


def test_squid_refuses(squid, nginx):
    url = f"http://intranet.test:{nginx.port}/open.txt"
    assert curl("-x", squid.url("open"), url) == (200, "open page\n")
    for way, schemes in {"basic": ["Basic"], "digest": ["Digest"], "both": ["Basic", "Digest"], "negotiate": ["Negotiate"]}.items():
        status, head = curl("-x", squid.url(way), "-U", "bob:wrong", "-I", url)
        offered = [line.split()[1] for line in head.splitlines() if line.startswith("Proxy-Authenticate")]
        assert status == 407 and offered == schemes
    assert curl("-x", squid.url("open"), "http://nowhere.test/")[0] in (502, 503)


def test_socks(dante, socks, account, nginx, nginx_tls, tls):
    urls = [f"http://localhost:{nginx.port}/open.txt", f"https://localhost:{nginx_tls.port}/open.txt"]
    for url in urls:
        target = f"127.0.0.1.{url.split(':')[2].split('/')[0]}"
        before = dante.log.count(target)
        assert curl("--cacert", tls / "ca.pem", "-x", f"socks5h://127.0.0.1:{dante.port}", url) == (200, "open page\n")
        dante.wait_for_log(target, before + 1)
        assert curl("--cacert", tls / "ca.pem", "-x", f"socks5h://{':'.join(account)}@127.0.0.1:{socks.port}", url) == (200, "open page\n")
    assert curl("-x", f"socks5://{':'.join(account)}@127.0.0.1:{socks.port}", urls[0])[0] == 200
    assert curl("-x", f"socks5h://bob:wrong@127.0.0.1:{socks.port}", urls[0], code=97)[0] == 0
    # The server records the connection after it has sent the refusal.
    eventually(lambda: socks.refused, "the refusal is not noted")
    assert curl("-x", f"socks5h://127.0.0.1:{socks.port}", urls[0], code=97)[0] == 0
    assert socks.asked == [("bob", "localhost", nginx.port), ("bob", "localhost", nginx_tls.port), ("bob", "127.0.0.1", nginx.port)]
    assert socks.refused == [("user", "bob"), ("methods", [0, 1])]


CERTIFICATE_PROBLEMS = {
    "self-signed": "self-signed certificate", "expired": "certificate has expired", "not-yet-valid": "certificate is not yet valid",
    "wrong-name": "no alternative certificate subject name matches", "unknown-issuer": "unable to get local issuer certificate",
    "weak-key": "EE certificate key too weak", "incomplete-chain": "unable to get local issuer certificate"}


def test_certificates(certificates, tls_server):
    good = tls_server("good")
    assert curl("--cacert", certificates / "ca.pem", good.url) == (200, "secure page\n")
    for kind, problem in CERTIFICATE_PROBLEMS.items():
        server = tls_server(kind)
        done = subprocess.run(
            [find("curl"), "-q", "-sS", "--cacert", str(certificates / "ca.pem"), server.url], capture_output=True, text=True, timeout=30)
        assert done.returncode == 60 and problem in done.stderr, (kind, done.stderr)
        assert server.connections == 1 and not server.requests
        assert curl("-k", "--ciphers", "DEFAULT@SECLEVEL=0", server.url) == (200, "secure page\n")


def test_a_certificate_that_changes(certificates, tls_server):
    server = tls_server("good")
    trust = ["--cacert", certificates / "ca.pem"]
    for kind in ["good", "other-good", "wrong-name"]:
        server.leaf = kind
        presented = ssl.get_server_certificate(("127.0.0.1", server.port))
        assert hashlib.sha256(ssl.PEM_cert_to_DER_cert(presented)).hexdigest() == certificates.fingerprint(kind)
        curl(*trust, server.url, code=60 if kind == "wrong-name" else 0)
    assert len(server.requests) == 2


def test_stapled_status(certificates, tmp_path):
    for leaf, code in {"stapled": 0, "revoked": 91}.items():
        (tmp_path / leaf).mkdir()
        server = rig_tls.stapling_nginx(tmp_path / leaf, certificates, leaf)
        try:
            curl("--cert-status", "--cacert", certificates / "ca.pem", server.url + "/page.txt", code=code)
        finally:
            server.stop()


@pytest.mark.parametrize("verify", ["on", "optional"])
@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_client_certificates(client_nginx, certificates, verify, version):
    server = client_nginx(verify, version)
    path = marked("/page.txt")
    page = ["--cacert", certificates / "ca.pem", server.url + path]
    client = certificates / "client.pem"
    right = [["--cert", client, "--key", certificates / "client.key"],
             ["--cert", client, "--key", certificates / "client-locked.key", "--pass", rig_tls.PASSPHRASE],
             ["--cert", certificates / "client-both.pem"],
             ["--cert-type", "P12", "--cert", f"{certificates / 'client.p12'}:{rig_tls.PASSPHRASE}"],
             ["--cert-type", "P12", "--cert", certificates / "client-open.p12"]]
    for words in right:
        assert curl(*words, *page) == (200, "page for you\n")
    lines = server.lines(path, len(right))
    assert all(line.startswith(f'200 SUCCESS "CN=Alice Client" {version} ') for line in lines)
    assert curl(*page)[0] == (400 if verify == "on" else 200)
    for kind in ["stranger", "expired-client"]:
        assert curl("--cert", certificates / f"{kind}.pem", "--key", certificates / f"{kind}.key", *page)[0] == 400
    assert curl("--cert", client, "--key", certificates / "mismatch.key", *page, code=58)[0] == 0
    assert curl("--cert", client, "--key", certificates / "client-locked.key", "--pass", "wrong", *page, code=58)[0] == 0
    lines = server.lines(path, len(right) + 3)[len(right):]
    assert [" ".join(line.split()[:2])[:10] for line in lines] == ["400 NONE" if verify == "on" else "200 NONE"] + ["400 FAILED"] * 2


def test_a_server_that_ends_the_handshake(certificates, tls_server):
    for version, code in {ssl.TLSVersion.TLSv1_2: 35, ssl.TLSVersion.TLSv1_3: 56}.items():
        server = tls_server(client_authority=certificates / "ca.pem", minimum=version, maximum=version)
        page = ["--cacert", certificates / "ca.pem", server.url]
        assert curl(*page, code=code)[0] == 0 and not server.requests
        eventually(lambda: len(server.failures) == 1, lambda: f"{server.failures} are noted")
        words = ["--cert", certificates / "other-client.pem", "--key", certificates / "other-client.key"]
        assert curl(*words, *page) == (200, "secure page\n") and server.peers == {2: "Bob Client"}


def test_bearer():
    with contextlib.closing(tokens.bearer_server("abc")) as server:
        assert curl("--oauth2-bearer", "abc", server.url) == (200, "for the bearer\n")
        assert 'error="invalid_token"' in curl("-i", "--oauth2-bearer", "old", server.url)[1]
        assert 'Bearer realm="api"\n' in curl("-i", server.url)[1]
        assert curl("--oauth2-bearer", "abc", server.url + "/wider")[0] == 403


@pytest.mark.parametrize("bound", [False, True])
def test_an_unknown_scheme(bound):
    rounds = [("challenge=one", "first"), ("challenge=two", "second")]
    with contextlib.closing(tokens.rounds_server(rounds, ending="done", bound=bound)) as server:
        steps = [["-i", *header, server.url] for header in [[], ["-H", "Authorization: Hoba first"], ["-H", "Authorization: Hoba second"]]]
        said = [curl(*step) for step in steps]
        assert [status for status, _ in said] == [401, 401, 401 if bound else 200]
        assert "WWW-Authenticate: Hoba challenge=one\n" in said[0][1]
        assert ("WWW-Authenticate: Hoba challenge=two\n" in said[1][1]) and ("Authentication-Info: done\n" in said[2][1]) != bound
        together = [word for step in steps for word in [*step, "--next", "-s", "-w", "\n%{http_code}"]][:-4]
        assert curl(*together)[1].endswith("after all rounds\n")


def test_data_that_servers_received_is_searched(stage, nginx, squid, apache, kerberos_apache, client_nginx, certificates):
    with pytest.raises(AssertionError, match="a secret was found"):
        secret = stage.secret()
        open_page = f"http://127.0.0.1:{nginx.port}/open.txt"
        heard = ["-k", "--cert", certificates / "client-both.pem", "-H", f"Authorization: Hoba {secret}"]
        curl(*heard, "-x", squid.url("open"), open_page)
        for server in [apache, kerberos_apache, client_nginx("on")]:
            curl(*heard, getattr(server, "url", f"http://127.0.0.1:{server.port}"))
        for server in [nginx, squid, apache, kerberos_apache, client_nginx("on")]:
            eventually(lambda: secret.encode() in server.wire, f"{server.log_path} does not contain it")
        stage.watch(nginx)
        stage.end()
    stage.secrets.clear()


def test_a_token(token, client_nginx, certificates):
    assert "Private Key Object" in token.objects() and "Certificate Object" in token.objects()
    server = client_nginx("on", "TLSv1.3")
    words = ["--engine", "pkcs11", "--cert-type", "ENG", "--cert", token.certificate_url, "--key-type", "ENG"]
    path = marked("/page.txt")
    page = ["--cacert", certificates / "ca.pem", server.url + path]
    assert curl(*words, "--key", f"{token.key_url};pin-value={token.pin}", *page, environment=token.environment)[0] == 200
    assert server.lines(path)[0].startswith('200 SUCCESS "CN=Alice Client"')
    curl(*words, "--key", f"{token.key_url};pin-value=0000", *page, environment=token.environment, code=58)
