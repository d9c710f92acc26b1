"""Attacks on fronts: other users, web pages, ambiguous and smuggled requests, forged fields, each form of address, and tunnels to
forbidden places."""
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from rig import audit, leaks
from rig.bodies import eventually
from rig.client import password_answer
from rig.forwarding import ForwardProxy
from rig.local_fronts import exchange, open_proxy, open_site, receive_response
from rig.scripted import basic, response
from rig.servers import free_port
from rig.terminal import Shell


def login(token):
    return f"Proxy-Authorization: {basic('x', token)}\r\n"


def status(received):
    return int(received.split(b" ")[1])


ANOTHER = 65534


def ask_as(user, address, request, reads=True):
    """Sends the request as this user, and returns how Python writes the bytes of the answer."""
    family = "AF_UNIX" if isinstance(address, str) else "AF_INET6" if address[0] == "::1" else "AF_INET"
    script = f"""
import os, socket
os.setgroups([]); os.setgid({user}); os.setuid({user})
connection = socket.socket(socket.{family})
connection.settimeout(20)
connection.connect({address!r})
try:
    connection.sendall({request!r})
    print(connection.recv(100) if {reads} else b"")
except ConnectionError:
    print(b"")
"""
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=30, check=True)
    return done.stdout.strip()


@pytest.fixture
def proxy(stage):
    """A front that another program has opened, whose descendants do not include this process."""
    broker = stage.broker()
    script = """
import json, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
connection.sendall(b'{"jsonrpc":"2.0","id":1,"method":"front/open","params":{}}\\n')
print(connection.makefile().readline(), flush=True)
sys.stdin.read()
"""
    opener = subprocess.Popen(
        [sys.executable, "-c", script, broker.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    result = json.loads(opener.stdout.readline())["result"]
    host, port = result["listen"].rsplit(":", 1)
    yield (host, int(port)), result["token"]
    opener.stdin.close()
    opener.wait(20)


def test_a_program_without_the_token_is_refused(stage, proxy):
    address, token = proxy
    server = stage.server(lambda request: response(200, b"page"))
    request = f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n".encode()
    assert status(exchange(address, request + b"\r\n")) == 407
    assert status(exchange(address, request + login("0" * 32).encode() + b"\r\n")) == 407
    assert not server.requests
    assert status(exchange(address, request + login(token).encode() + b"\r\n")) == 200
    assert server.requests[0].header("Proxy-Authorization") is None
    eventually(lambda: "connection closed" in stage.brokers[0].log, "the connections are closed")
    assert token not in stage.brokers[0].log, "the token is in no log"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_refused_before_a_byte_is_read(stage, proxy):
    address, token = proxy
    assert ask_as(ANOTHER, address, f"GET http://127.0.0.1:1/ HTTP/1.1\r\n{login(token)}\r\n".encode()) == "b''"
    eventually(lambda: "connection to a front refused" in stage.brokers[0].log, "the refusal is logged")


@pytest.mark.parametrize("target, code, reason", [
    ("127.0.0.1:25", 403, b"may not open a tunnel to port 25"), ("127.0.0.1:3000", 403, b"may not open a tunnel to port 3000"),
    ("127.0.0.1:{port}", 403, b"is a front of watchword"), ("[::ffff:127.0.0.1]:{port}", 403, b"is a front of watchword"),
    ("[::1]:{port}", 403, b"is a front of watchword"), ("localhost:{port}", 403, b"is a front of watchword"),
    ("localhost.:{port}", 403, b"is a front of watchword"), ("user@127.0.0.1:443", 400, b"user and password"),
    ("127.0.0.1", 400, b"malformed request target")])
def test_tunnels_to_forbidden_places_are_refused(stage, target, code, reason):
    port = free_port()
    client = stage.client(broker=stage.configured(f"[front]\ntunnel-ports = [25, 443, {port}]\n"))
    assert client.call("front/open", {"listen": f"127.0.0.1:{port}"})["result"]["listen"] == f"127.0.0.1:{port}"
    received = exchange(("127.0.0.1", port), f"CONNECT {target.format(port=port)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert status(received) == code and reason in received


def test_a_web_page_cannot_use_the_front_of_a_site(stage):
    server, password = stage.protected()
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    assert client.fetch(server.url)["result"]["status"] == 200
    requests = len(server.requests)
    host, port = open_site(client, server.url)
    own = f"Host: {host}:{port}\r\n"
    for fields in [
            "Host: rebound.example\r\n", f"Host: rebound.example:{port}\r\n", f"Host: {host}.rebound.example:{port}\r\n",
            own + "Sec-Fetch-Site: cross-site\r\n", own + "Sec-Fetch-Site: same-site\r\n", own + "Origin: http://evil.example\r\n",
            own + "Origin: null\r\n"]:
        received = exchange((host, port), f"GET / HTTP/1.1\r\n{fields}\r\n".encode())
        assert status(received) == 403 and received.endswith(b"\r\n\r\n"), (fields, received)
        assert b"Access-Control" not in received
    assert len(server.requests) == requests
    received = exchange((host, port), f"GET / HTTP/1.1\r\n{own}Connection: close\r\n\r\n".encode())
    assert status(received) == 200


def test_a_web_page_gets_no_stored_credential_through_a_proxy(stage):
    server, password = stage.protected()
    client = stage.client(answer=lambda challenge: password_answer("bob", password))
    assert client.fetch(server.url)["result"]["status"] == 200
    address, _ = open_proxy(client)
    for field, code in [("Sec-Fetch-Site: cross-site\r\n", 401), ("Origin: http://evil.example\r\n", 401), ("", 200)]:
        request = f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n{field}Connection: close\r\n\r\n"
        assert status(exchange(address, request.encode())) == code, field


def test_the_login_of_the_program_is_passed_on_and_never_mixed_with_a_stored_one(stage):
    server, stored = stage.protected()
    own = stage.secret(server)
    client = stage.client(answer=lambda challenge: password_answer("bob", stored))
    assert client.fetch(server.url)["result"]["status"] == 200
    address, _ = open_proxy(client)
    field = f"Authorization: {basic('eve', own)}\r\n"
    received = exchange(address, f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n{field}Connection: close\r\n\r\n".encode())
    assert status(received) == 401 and b"WWW-Authenticate" in received, "the program gets the challenge"
    assert server.requests[-1].authorization == field.split(": ", 1)[1].strip()
    assert client.fetch(server.url)["result"]["auth"]["source"] == "session", "the stored login does not count as refused"


def test_a_client_that_stops_reading_holds_little_and_is_closed(stage):
    server = stage.server(lambda request: response(200, b"x" * (64 << 20)))
    client = stage.client()
    address, _ = open_proxy(client)
    broker = stage.brokers[0]
    before = broker.resident_kilobytes
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(1 << 16)
        eventually(lambda: server.connections == 1, "the request was sent")
        assert broker.resident_kilobytes - before < 16 << 10
    eventually(lambda: client.call("front/list", {})["result"]["fronts"][0]["connections"] == 0, "the connection is closed")
    eventually(lambda: client.call("server/status", {})["result"]["fetches"]["running"] == 0, "the fetch has ended")


def test_a_request_of_a_restricted_front_has_no_login_and_is_recorded_without_its_query(stage):
    server = stage.server(lambda request: response(200, b"page"))
    host, port = open_site(stage.client(), server.url, restricted=True, methods=["GET"], paths=["/api/"], budget=1)
    own = f"Host: {host}:{port}\r\nAuthorization: Bearer own\r\nConnection: close\r\n\r\n"
    for line, code in [("GET /api/a?token=secret", 200), ("GET /other", 403), ("POST /api/a", 403), ("GET /api/../x", 403),
                       ("GET /api/b", 429)]:
        assert status(exchange((host, port), f"{line} HTTP/1.1\r\n{own}".encode())) == code, line
    assert [(request.target, request.authorization) for request in server.requests] == [("/api/a?token=secret", None)]
    broker = stage.brokers[0]
    eventually(lambda: audit.kinds(broker).count("frontRequest") == 4, "all requests are recorded, equal refusals once")
    seen = [event for event in audit.events(broker) if event["kind"] == "frontRequest"]
    assert {event["origin"] for event in seen} == {server.url}
    assert [(event["action"], event.get("reason")) for event in seen] == [
        ("GET", None), ("GET", "request-not-allowed"), ("POST", "request-not-allowed"), ("GET", "budget")]


def test_the_answer_to_a_withheld_body_comes_after_100_continue(stage):
    server = stage.server(lambda request: response(200, request.body))
    address, _ = open_proxy(stage.client())
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(f"POST {server.url}/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n".encode())
        assert receive_response(connection)[0] == b"HTTP/1.1 100 Continue"
        connection.sendall(b"body")
        assert receive_response(connection)[1] == b"body"


def test_a_client_cannot_open_any_number_of_fronts(stage):
    client = stage.client()
    replies = [client.call("front/open", {}) for _ in range(65)]
    assert all("result" in reply for reply in replies[:64])
    assert replies[64]["error"]["data"]["kind"] == "busy"
    assert "result" in client.call("front/close", {"frontId": replies[0]["result"]["frontId"]})
    assert "result" in client.call("front/open", {})
    other = stage.client(broker=stage.brokers[0])
    assert "error" in other.call("front/close", {"frontId": replies[1]["result"]["frontId"]}), "only the opener closes it"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_connection_that_its_user_has_closed_is_refused(stage, proxy):
    """The kernel reports a closed socket as one of root."""
    address, token = proxy
    server = stage.server(lambda request: response(200, b"page"))
    broker = stage.brokers[0]
    broker.process.send_signal(signal.SIGSTOP)
    try:
        ask_as(ANOTHER, address, f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n{login(token)}\r\n".encode(), reads=False)
    finally:
        broker.process.send_signal(signal.SIGCONT)
    eventually(lambda: "connection to a front refused" in broker.log, "the refusal is logged")
    assert not server.requests


def test_the_connection_that_a_program_has_authenticated_is_not_used_for_another_one(stage, ntlm, ntlm_users):
    """The program makes its NTLM login with libcurl; the server remembers it for the connection."""
    client = stage.client()
    address, _ = open_proxy(client)
    done = subprocess.run(
        ["curl", "-sS", "--noproxy", "", "-x", f"http://{address[0]}:{address[1]}", "--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}",
         ntlm.url], capture_output=True, timeout=30)
    assert b"hello TESTDOM\\alice" in done.stdout, done
    host, port = open_site(client, ntlm.url, restricted=True)
    for place, line in [(address, f"GET {ntlm.url}/ HTTP/1.1\r\nHost: x"), ((host, port), f"GET / HTTP/1.1\r\nHost: {host}:{port}")]:
        received = exchange(place, f"{line}\r\nConnection: close\r\n\r\n".encode())
        assert status(received) == 401 and b"alice" not in received, received


def test_a_program_that_does_not_read_has_to_wait(stage):
    server = stage.server(lambda request: response(200, b"x" * 60000))
    client = stage.client()
    address, _ = open_proxy(client)
    request = f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with socket.create_connection(address, timeout=20) as connection:
        connection.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 64 << 20:
                sent += connection.send(request * 1000)
                client.call("ping", {})
        assert sent < 64 << 20, "the broker reads requests without limit"
        assert len(server.requests) < 2000


@pytest.fixture
def server(stage):
    return stage.server(lambda request: response(200, b"page"))


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
    assert ask_as(ANOTHER, (host, port), request) == "b''" and not server.requests
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
    assert "200" in ask_as(os.getuid(), str(path), request), "this user is served"
    server.requests.clear()
    assert ask_as(ANOTHER, str(path), request) == "b''" and not server.requests


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
    client = stage.client(broker=stage.configured(f"[front]\ntunnel-ports = [{port}]\n"))
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


def test_the_token_is_shown_only_to_the_program_that_opens_the_front(stage, server):
    client = stage.client()
    address, token = open_proxy(client)
    broker = stage.brokers[0]
    for sent in [token, token[:-1] + "0", "x" * 40]:
        login = base64.b64encode(f"watchword:{sent}".encode()).decode()
        for target in [server.url + "/", "http://127.0.0.1:1/", "not a target"]:
            received = exchange(address, f"GET {target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic {login}\r\nConnection: close\r\n\r\n".encode())
            assert not leaks.places_with(token, {"the response": received})
    port, shell = str(address[1]), Shell(broker)
    for words, expected in [("front status", port), ("front status --json", port), ("doctor", "front"), ("log", "audit.jsonl"), ("status", "Broker:")]:
        shown = shell.run(*words.split())
        assert expected in (shown.stdout + shown.stderr).decode(), (words, shown)
    assert not leaks.places_with(token, {"the output": shell.printed})
    places = {"the server": server.wire, "the list": str(client.call("front/list", {})).encode(), **leaks.files_below(broker.folder)}
    assert not leaks.places_with(token, places)
    assert server.requests
