"""The rig's own servers, each shown to work with curl: what the broker's tests rely on."""
import base64
import http.client
import os
import subprocess
import time

from rig import ntlm as ntlm_module
from rig.servers import find


def curl(*words, environment=None, code=0, **more):
    """(status, what came) of a request; `code` is curl's exit code."""
    done = subprocess.run(
        [find("curl"), "-q", "-sS", "-m", "20", "--noproxy", "", "-w", "\n%{http_code}", *map(str, words)],
        env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=60, **more)
    assert done.returncode == code, (done.returncode, done.stderr)
    body, _, status = done.stdout.rpartition("\n")
    return int(status), body


def test_kerberos_names_the_user(kerberos_apache, realm, kerberos_users, tls):
    alice, bob = [realm.log_in(user, password) for user, password in kerberos_users.items()]
    page = "/kerberos/page.txt"
    negotiate = ["--negotiate", "-u:"]
    assert curl(*negotiate, kerberos_apache.url + page, environment=alice) == (200, "kerberos page\n")
    assert curl(*negotiate, "--cacert", tls / "ca.pem", kerberos_apache.tls_url + page, environment=bob)[0] == 200
    assert curl(*negotiate, kerberos_apache.url + page, environment=realm.environment())[0] == 401
    unknown_service = kerberos_apache.url.replace("localhost", "127.0.0.1")
    assert curl(*negotiate, unknown_service + page, environment=alice)[0] == 401
    log = kerberos_apache.wait_for_log("200 bob@WATCHWORD.TEST /kerberos/page.txt port=%d" % kerberos_apache.tls_port)
    assert "200 alice@WATCHWORD.TEST /kerberos/page.txt port=%d" % kerberos_apache.port in log
    password = f"bob:{kerberos_users['bob']}"
    assert curl("-u", password, kerberos_apache.url + "/either/page.txt") == (200, "either page\n")


def test_a_kdc_that_never_answers(kerberos_apache, realm, kerberos_users, silent_kdc):
    realm.log_in("alice", kerberos_users["alice"], "unused")
    waiting = subprocess.Popen(
        [find("curl"), "-sS", "--negotiate", "-u:", kerberos_apache.url + "/kerberos/page.txt"],
        env={**os.environ, **silent_kdc.environment(realm, "unused")}, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 10
        while silent_kdc.asked < 2:
            assert time.monotonic() < end and waiting.poll() is None
            time.sleep(0.05)
    finally:
        waiting.kill()
        waiting.wait()


def test_ntlm_logs_in_a_connection(ntlm, ntlm_users):
    login = ["--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}"]
    assert curl(*login, ntlm.url + "/one", "-o", "-", ntlm.url + "/two")[1].endswith("hello TESTDOM\\alice\n")
    assert curl("--ntlm", "-u", f"TESTDOM\\bob:{ntlm_users['bob']}", ntlm.url + "/three") == (200, "hello TESTDOM\\bob\n")
    assert ntlm.handler.served == [(1, "/one", "TESTDOM\\alice"), (1, "/two", "TESTDOM\\alice"), (2, "/three", "TESTDOM\\bob")]
    assert curl("--ntlm", "-u", "TESTDOM\\alice:wrong", ntlm.url)[0] == 401
    assert curl("--ntlm", "-u", "TESTDOM\\nobody:wrong", ntlm.url)[0] == 401
    assert curl(ntlm.url)[0] == 401 and len(ntlm.handler.served) == 3 and len(ntlm.handler.refused) == 2


def test_ntlm_in_disguise(ntlm_in_disguise, ntlm_users):
    """curl without gss-ntlmssp does not speak this, so the client is pyspnego's: wrapped as SPNEGO, and bare."""
    host = ("127.0.0.1", ntlm_in_disguise.port)
    for number, protocol in enumerate(["negotiate", "ntlm"], 1):
        client = ntlm_module.spnego.client(
            "TESTDOM\\alice", ntlm_users["alice"], protocol=protocol, options=ntlm_module.spnego.NegotiateOptions.use_ntlm)
        connection, token = http.client.HTTPConnection(*host, timeout=10), None
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
