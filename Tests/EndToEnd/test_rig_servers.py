"""The rig's own servers, each shown to work with curl: what the broker's tests rely on."""
import os
import subprocess
import time

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
