"""What the rig's own servers must do so that the broker's tests rely on them, and that those tests do not show."""
import io
import os
import socket
import subprocess
import threading

import pytest

from rig.bodies import eventually
from rig.scripted import ScriptedServer, head_from
from rig.servers import find
from rig.waiting import is_accepting


def curl(*words, code=0):
    """Makes a request; returns its status and body. `code` is curl's expected exit status."""
    done = subprocess.run(
        [find("curl"), "-q", "-sS", "-m", "20", "--noproxy", "", "-w", "\n%{http_code}", *map(str, words)],
        env=os.environ, capture_output=True, text=True, timeout=60)
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


def test_ntlm_refuses_wrong_logins(ntlm, ntlm_users):
    login = ["--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}"]
    assert curl(*login, ntlm.url + "/one", "-o", "-", ntlm.url + "/two")[1].endswith("hello TESTDOM\\alice\n")
    for wrong in ["alice:wrong", "unknown:wrong", f"alice:{ntlm_users['bob']}"]:
        assert curl("--ntlm", "-u", f"TESTDOM\\{wrong}", ntlm.url)[0] == 401
    assert curl(ntlm.url)[0] == 401 and len(ntlm.handler.refused) == 3
    assert ntlm.handler.served == [(1, "/one", "TESTDOM\\alice"), (1, "/two", "TESTDOM\\alice")]


def test_socks_refuses_wrong_logins(socks, account, nginx):
    url = f"http://localhost:{nginx.port}/open.txt"
    assert curl("-x", f"socks5h://{':'.join(account)}@127.0.0.1:{socks.port}", url) == (200, "open page\n")
    assert curl("-x", f"socks5h://bob:wrong@127.0.0.1:{socks.port}", url, code=97)[0] == 0
    # The server records the connection after it has sent the refusal.
    eventually(lambda: socks.refused, "the refusal is not noted")
    assert curl("-x", f"socks5h://127.0.0.1:{socks.port}", url, code=97)[0] == 0
    assert socks.asked == [("bob", "localhost", nginx.port)] and socks.refused == [("user", "bob"), ("methods", [0, 1])]


def test_a_server_that_ends_the_handshake(certificates, tls_server):
    server = tls_server(client_authority=certificates / "ca.pem")
    for name in ["stranger", "expired-client"]:
        curl("--cacert", certificates / "ca.pem", "--cert", certificates / f"{name}.pem", "--key", certificates / f"{name}.key", server.url, code=56)
    eventually(lambda: len(server.failures) == 2, lambda: f"{server.failures} are noted")
    assert not server.requests and not server.peers


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
