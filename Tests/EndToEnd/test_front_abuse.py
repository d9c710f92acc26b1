"""More attacks on fronts: each form of address, of ambiguous request and of forged field, and every kind of front for another
user."""
import base64
import contextlib
import os
import socket
import subprocess
import sys
import threading

import pytest

from rig import leaks
from rig.bodies import eventually
from rig.broker import program
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_proxy
from rig.scripted import response
from rig.servers import free_port

ANOTHER = 65534


def status(received):
    return int(received.split(b" ")[1])


@pytest.fixture
def server(stage):
    return stage.server(lambda request: response(200, b"page"))


def as_another_user(code):
    """Runs Python code as another user; returns what it prints."""
    script = f"import os, socket\nos.setgroups([]); os.setgid({ANOTHER}); os.setuid({ANOTHER})\n{code}"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30).stdout.strip()


# Another user

@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("kind", ["proxy of the configuration", "proxy at ::1", "site"])
def test_another_user_is_refused_by_every_front(stage, server, kind):
    host, port = "::1" if "::1" in kind else "127.0.0.1", free_port()
    listen = f"[::1]:{port}" if host == "::1" else f"{host}:{port}"
    front = f'site = [{{ listen = "{listen}", url = "{server.url}" }}]' if kind == "site" else f'proxy = "{listen}"'
    broker = stage.configured(f'[front]\n{front}\nhosts = ["127.0.0.1"]\n')
    target = "/" if kind == "site" else f"{server.url}/"
    request = f"GET {target} HTTP/1.1\r\nHost: {listen}\r\nConnection: close\r\n\r\n".encode()
    # The front listens as soon as the broker is ready.
    assert status(exchange((host, port), request)) == 200
    server.requests.clear()
    shown = as_another_user(
        f"connection = socket.create_connection(({host!r}, {port}), timeout=20)\n"
        f"try:\n    connection.sendall({request!r}); print(connection.recv(100))\nexcept ConnectionError: print(b'')")
    assert shown == "b''" and not server.requests
    eventually(lambda: f"uid={ANOTHER}" in broker.log and "refused" in broker.log, "the refusal is logged")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_at_a_unix_socket(stage, server, tmp_path):
    """Even if the directory and the socket are open for everyone, as for a container."""
    client = stage.client()
    path = tmp_path / "api.sock"
    assert "result" in client.call("front/open", {"listen": str(path), "site": {"url": server.url}})
    for part in [path, *path.parents][:-1]:
        if part.stat().st_uid == 0 and str(part) != "/tmp":
            part.chmod(part.stat().st_mode | 0o5 | (0o2 if part == path else 0))
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    code = (f"connection = socket.socket(socket.AF_UNIX); connection.settimeout(20); connection.connect({str(path)!r})\n"
            f"try:\n    connection.sendall({request!r}); print(connection.recv(100))\nexcept ConnectionError: print(b'')")
    done = subprocess.run([sys.executable, "-c", f"import socket\n{code}"], capture_output=True, text=True, timeout=30)
    assert "200" in done.stdout, "this user is served"
    server.requests.clear()
    assert as_another_user(code) == "b''" and not server.requests


# Ambiguous requests, followed by one that must not be read


def test_a_field_that_frames_the_message_cannot_be_removed_as_hop_by_hop(stage, server):
    address, _ = open_proxy(stage.client())
    text = f"POST {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close, Content-Length, Host, Via\r\nContent-Length: 5\r\n\r\nhello"
    assert status(exchange(address, text.encode())) == 200
    request, = server.requests
    assert request.body == b"hello" and request.header("Host") == f"127.0.0.1:{server.port}" and request.header("Via")


# Forbidden targets

@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "127.1", "0x7f000001", "2130706433", "[::ffff:7f00:1]", "LOCALHOST", "front.localhost"])
@pytest.mark.parametrize("method", ["GET", "CONNECT"])
def test_no_spelling_of_this_machine_leads_to_a_front(stage, host, method):
    port = free_port()
    broker = stage.configured(f"[front]\ntunnel-ports = [{port}]\n")
    client = stage.client(broker=broker)
    assert "result" in client.call("front/open", {"listen": f"127.0.0.1:{port}"})
    target = f"{host}:{port}" if method == "CONNECT" else f"http://{host}:{port}/"
    received = exchange(("127.0.0.1", port), f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert status(received) in [400, 403], received
    assert client.call("front/list", {})["result"]["fronts"][0]["requests"] <= 1, "no other request has reached the front"


@pytest.mark.parametrize("target", ["mail.test:25", "mail.test:025", "mail.test:0000000025", "127.0.0.1:25", "[::1]:25", "mail.test:+25",
                                    "mail.test: 25", "mail.test:25.", "mail.test:4294967321", "mail.test:65561"])
def test_no_spelling_of_port_25_opens_a_tunnel(stage, target):
    upstream = stage.server(ForwardProxy())
    broker = stage.configured(f'[proxy]\nurl = "{upstream.url}"\n[front]\ntunnel-ports = [25, 443]\n')
    address, _ = open_proxy(stage.client(broker=broker))
    assert status(exchange(address, f"CONNECT {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())) in [400, 403]
    assert not upstream.requests


# Ends of tunnels that do not read

class Silent:
    """A server that sends `content` on each connection, and reads nothing."""

    def __init__(self, content=b""):
        self.content, self.accepted = content, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.accepted.append(connection)
                connection.sendall(self.content)

    def close(self):
        for connection in [*self.accepted, self.listener]:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@pytest.mark.parametrize("silent", ["program", "server"])
def test_an_end_of_a_tunnel_that_does_not_read_holds_little_memory(stage, silent):
    silent_server = Silent(b"x" * (64 << 20) if silent == "program" else b"")
    broker = stage.configured(f"[front]\ntunnel-ports = [{silent_server.port}]\n")
    client = stage.client(broker=broker)
    address, _ = open_proxy(client)
    before = broker.resident_kilobytes
    with contextlib.closing(silent_server), socket.create_connection(address, timeout=20) as connection:
        target = f"127.0.0.1:{silent_server.port}"
        connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        assert b" 200 " in connection.recv(100)
        connection.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while silent == "server" and sent < 64 << 20:
                sent += connection.send(b"x" * (1 << 20))
                assert "result" in client.call("ping", {})
        assert sent < 64 << 20, "the broker reads without limit"
        for _ in range(100):  # the broker moves what it can meanwhile
            client.call("ping", {})
        assert broker.resident_kilobytes - before < 8 << 10
    eventually(lambda: client.call("front/list", {})["result"]["fronts"][0]["connections"] == 0, "the connection is closed")


# The token

def test_the_token_is_shown_only_to_the_program_that_opens_the_front(stage, server):
    client = stage.client()
    address, token = open_proxy(client)
    broker = stage.brokers[0]
    for sent in [token, token[:-1] + "0", "x" * 40]:
        login = base64.b64encode(f"watchword:{sent}".encode()).decode()
        for target in [server.url + "/", "http://127.0.0.1:1/", "not a target"]:
            received = exchange(address, f"GET {target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {login}\r\nConnection: close\r\n\r\n".encode())
            assert not leaks.places_with(token, {"the response": received})
    environment = {**os.environ, "HOME": str(broker.home), "WATCHWORD_SOCKET": broker.socket}
    port = str(address[1])
    for words, expected in [("front status", port), ("front status --json", port), ("doctor", "front"), ("log", "audit.jsonl"), ("status", "Broker:")]:
        shown = subprocess.run([program("watchword"), *words.split()], capture_output=True, timeout=30, env=environment)
        assert expected in (shown.stdout + shown.stderr).decode(), (words, shown)
        assert not leaks.places_with(token, {words: shown.stdout + shown.stderr})
    places = {"the server": server.wire, "the list": str(client.call("front/list", {})).encode(), **leaks.files_below(broker.folder)}
    assert not leaks.places_with(token, places)
    assert server.requests
