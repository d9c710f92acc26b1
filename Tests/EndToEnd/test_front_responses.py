"""Responses through fronts: interim ones, bodies that fail or arrive slowly, reason phrases, failures of upstream proxies, and WebSocket."""
import asyncio
import contextlib
import fcntl
import os
import pathlib
import socket
import struct
import termios
import threading
import time

import pytest
import websockets

from rig import kerberos
from rig.bodies import eventually
from rig.client import password_answer
from rig.fixtures import reachable_folder, running
from rig.local_fronts import exchange, open_proxy, open_site, receive_all, receive_response
from rig.ntlm import NtlmCheck
from rig.scripted import ScriptedServer, response
from rig.servers import Server, free_port, nginx_command, password_line


class Echo:
    """A server of the library "websockets". It repeats each message, and says "bye" before it closes after the message "end"."""

    def __init__(self):
        self.port, self.paths, self.headers = free_port(), [], []
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self._run, args=(started,), daemon=True).start()
        assert started.wait(20)

    def _run(self, started):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(websockets.serve(self._talk, "127.0.0.1", self.port, max_size=1 << 24))
        started.set()
        self.loop.run_forever()

    async def _talk(self, connection, *_):
        self.paths.append(connection.path)
        self.headers.append(connection.request_headers)
        async for message in connection:
            if message == "end":
                await connection.send("bye")
                return
            await connection.send(message)

    async def _close(self):
        self.server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self):
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(20)
        self.loop.call_soon_threadsafe(self.loop.stop)


def behind_nginx(folder, port, user, password, tls=None):
    """nginx in front of the server at `port`, which requires Basic at /private/."""
    folder, own = pathlib.Path(folder), free_port()
    (folder / "users").write_text(password_line(user, password))
    secure = f" ssl; ssl_certificate {tls}/server.pem; ssl_certificate_key {tls}/server.key" if tls else ""
    return Server(nginx_command(
        folder, "$status $remote_user $request_uri $http_authorization",
        f"server {{ listen 127.0.0.1:{own}{secure}; location / {{ proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1;\n"
        "proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; proxy_set_header Host $http_host; }\n"
        f"location /private/ {{ auth_basic \"Private\"; auth_basic_user_file {folder}/users; proxy_pass http://127.0.0.1:{port};\n"
        "proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $http_connection; }\n"
        "location = /plain { return 200 \"plain page\"; } }"), own, folder / "access.log")


class Slow(ScriptedServer):
    """`handler(request)` returns the parts of a response, each sent when the test calls `more`."""

    def __init__(self, handler):
        self.step = threading.Semaphore(0)
        super().__init__(handler)

    def more(self):
        self.step.release()

    def _respond(self, connection, request, early):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in self.handler(request):
            assert self.step.acquire(timeout=20)
            connection.sendall(part)
        return False


@pytest.fixture
def address(stage):
    return open_proxy(stage.client())[0]


@contextlib.contextmanager
def asking(address, server, version="1.1", fields=""):
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(f"GET {server.url}/x HTTP/{version}\r\nHost: x\r\n{fields}\r\n".encode())
        yield connection


def receive(connection, end):
    data = b""
    while not data.endswith(end):
        part = connection.recv(1 << 16)
        assert part, data
        data += part
    return data


@pytest.mark.parametrize("rest", [b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"Transfer-Encoding: gzip\r\n\r\nno gzip at all"])
@pytest.mark.parametrize("separately", [False, True])
def test_a_body_that_fails_behind_the_header_is_502_with_the_reason(stage, address, rest, separately):
    head, body = rest.split(b"\r\n\r\n", 1)
    head = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n"
    server = Slow(lambda request: [head, body] if separately else [head + body])
    server.more(), server.more()
    received = exchange(address, f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 502 ") and b"watchword: " in received, received


def test_a_body_that_fails_later_is_cut_off_behind_what_was_received(stage, address):
    server = Slow(lambda request: [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n", b"4\r\nnext\r\nzz\r\n"])
    with asking(address, server) as connection:
        server.more()
        assert receive(connection, b"4\r\npart\r\n").startswith(b"HTTP/1.1 200 ")
        server.more()
        rest = receive_all(connection)
    assert rest in [b"", b"4\r\nnext\r\n"]


def test_interim_responses_are_passed_on_at_once(stage, address):
    server = Slow(lambda request: [
        b"HTTP/1.1 102 Processing\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: </a.css>; rel=preload\r\nConnection: X\r\nX: 1\r\nContent-Length: 3\r\n\r\n",
        response(200, b"page")])
    with asking(address, server) as connection:
        server.more()
        assert receive(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 102 Processing\r\n")
        server.more()
        hints = receive(connection, b"\r\n\r\n").split(b"\r\n")
        assert hints[:2] == [b"HTTP/1.1 103 Hints", b"Link: </a.css>; rel=preload"] and len(hints) == 5 and hints[2].startswith(b"Via: ")
        server.more()
        assert receive_response(connection)[1] == b"page"


@pytest.mark.parametrize("framing", ["Content-Length: 4", "Transfer-Encoding: chunked"])
def test_a_slow_body_is_passed_on_as_it_arrives(stage, address, framing):
    parts = [b"a", b"bcd"] if "Length" in framing else [b"1\r\na\r\n", b"3\r\nbcd\r\n0\r\n\r\n"]
    server = Slow(lambda request: [f"HTTP/1.1 200 Fine\r\n{framing}\r\n\r\n".encode(), *parts])
    with asking(address, server) as connection:
        server.more()
        assert receive(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 200 Fine\r\n")
        server.more()
        assert receive(connection, parts[0]) == parts[0]
        server.more()
        assert receive(connection, parts[1]) == parts[1]


def test_a_login_that_cannot_be_made_is_502(stage):
    """The challenge of this server (NTLM type 2) is malformed."""
    challenge = "NTLM TlRMTVNTUAACAAAA"
    server = stage.server(lambda request: response(401, b"", f"WWW-Authenticate: {challenge if request.authorization else 'NTLM'}"))
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n')
    address, _ = open_proxy(stage.agent(password_answer("alice", "secret"), broker))
    received = exchange(address, f"GET {server.url}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert received.startswith(b"HTTP/1.1 502 ") and b"NTLM" in received, received


def test_the_end_of_an_authenticated_connection_is_the_end_of_the_programs(stage, address):
    """The program has logged in by NTLM itself; the origin closes the connection after its answer."""
    class Origin(ScriptedServer):
        def _respond(self, connection, request, early):
            connection.sendall(self.handler(request))
            return request.path == "/last"

    server = Origin(lambda request: response(200, b"page"))
    login = "Authorization: NTLM TlRMTVNTUAABAAAA\r\n"
    with socket.create_connection(address, timeout=20) as connection:
        for path in ["/one", "/last"]:
            connection.sendall(f"GET {server.url}{path} HTTP/1.1\r\nHost: x\r\n{login}\r\n".encode())
            assert receive_response(connection)[1] == b"page"
        time.sleep(0.2)
        connection.sendall(f"GET {server.url}/again HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100) == b"", "no answer on another connection"
    assert server.connections == 1 and [request.path for request in server.requests] == ["/one", "/last"]


HANDSHAKE = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"


@pytest.fixture
def echo():
    with running(Echo()) as server:
        yield server


@pytest.fixture(params=["http", "https"])
def site(request, echo, account, tls):
    with reachable_folder("websocket") as folder:
        with running(behind_nginx(folder, echo.port, *account, tls=tls if request.param == "https" else None)) as server:
            server.url = f"{request.param}://localhost:{server.port}"
            yield server


def talk(url, *messages, **more):
    async def run():
        # The library waits without a limit until the server has closed the connection.
        async with websockets.connect(url, max_size=1 << 24, close_timeout=None, **more) as connection:
            answers = []
            for message in messages:
                await connection.send(message)
                answers.append(await connection.recv())
            return answers

    return asyncio.run(asyncio.wait_for(run(), 60))


def test_the_broker_logs_in_for_a_websocket(stage, echo, site, account, tls):
    client = stage.agent(password_answer(*account), stage.broker("--ca-file", str(tls / "ca.pem")))
    host, port = open_site(client, site.url)
    large = os.urandom(3 << 20)
    for _ in range(2):
        assert talk(f"ws://{host}:{port}/private/chat?room=1", "hello", large, "end") == ["hello", large, "bye"]
    assert len(client.asked) == 1 and echo.paths == ["/private/chat?room=1"] * 2
    lines = [line.split()[:3] for line in site.wait_for_log("101", times=2).splitlines()]
    assert lines == [["401", "-", "/private/chat?room=1"], *[["101", account[0], "/private/chat?room=1"]] * 2]
    eventually(lambda: client.call("server/status", {})["result"]["engine"]["running"] == 0, "the transfers have ended")


def test_bytes_that_follow_the_handshake_at_once_are_passed_on(stage, echo):
    host, port = open_site(stage.client(), f"http://127.0.0.1:{echo.port}")
    frame = b"\x81\x82\0\0\0\0hi"
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(f"GET /x HTTP/1.1\r\nHost: {host}:{port}\r\n{HANDSHAKE}\r\n".encode() + frame)
        received = receive(connection, b"\x81\x02hi")
    head = received.split(b"\r\n\r\n")[0].decode().split("\r\n")
    assert head[0] == "HTTP/1.1 101 Switching Protocols" and "Upgrade: websocket" in head and "Connection: Upgrade" in head


def test_the_end_of_one_side_is_the_end_of_the_other(stage, echo):
    client = stage.client()
    host, port = open_site(client, f"http://127.0.0.1:{echo.port}")
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(f"GET /x HTTP/1.1\r\nHost: {host}:{port}\r\n{HANDSHAKE}\r\n".encode())
        assert receive_response(connection)[0].startswith(b"HTTP/1.1 101 ")
        assert client.call("server/status", {})["result"]["engine"]["running"] == 1
    eventually(lambda: client.call("server/status", {})["result"]["engine"]["running"] == 0, "the transfer has ended")


@contextlib.contextmanager
def switching(data):
    """Yields the port of a server that switches, sends `data`, and shuts down its side, and the list of what it then receives."""
    received = []

    def serve():
        connection, _ = listener.accept()
        with connection:
            while not (head := connection.recv(1 << 16)).endswith(b"\r\n\r\n"):
                assert head
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n" + data)
            connection.shutdown(socket.SHUT_WR)
            received.append(connection.recv(1 << 16))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], received
        thread.join(20)
        assert not thread.is_alive()


@pytest.mark.parametrize("size", [0, 5, 8 << 20])
def test_the_end_of_the_server_ends_the_connection_of_the_program(stage, size):
    """The program, which has not closed its side, gets all bytes before the end, also if it reads late."""
    data = os.urandom(size)
    with switching(data) as (port, received):
        host, own = open_site(stage.client(), f"http://127.0.0.1:{port}")
        with socket.create_connection((host, own), timeout=20) as connection:
            connection.sendall(f"GET /x HTTP/1.1\r\nHost: {host}:{own}\r\n{HANDSHAKE}\r\n".encode())
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(1)
            # Until the buffers between both are full.
            waited = eventually(lambda: size < 1 << 20 or is_full(connection), "the program has unread bytes")
            assert head.startswith(b"HTTP/1.1 101 ") and waited
            assert receive_all(connection) == data
            eventually(lambda: received == [b""], "the connection to the server is closed")


def is_full(connection):
    """Whether the number of bytes that can be read does not grow any more."""
    def count():
        return struct.unpack("i", fcntl.ioctl(connection, termios.FIONREAD, b"\0" * 4))[0]
    before = count()
    time.sleep(0.3)
    return before > 0 and count() == before


def test_a_server_that_does_not_switch_gives_an_ordinary_response(stage):
    server = stage.server(lambda request: response(200, b"page"))
    host, port = open_site(stage.client(), server.url)
    own = f"Host: {host}:{port}\r\n"
    with socket.create_connection((host, port), timeout=20) as connection:
        for fields in [HANDSHAKE, ""]:
            connection.sendall(f"GET /x HTTP/1.1\r\n{own}{fields}\r\n".encode())
            head, body = receive_response(connection)
            assert head.startswith(b"HTTP/1.1 200 ") and body == b"page"
    asked = server.requests[0]
    assert (asked.method, asked.header("Upgrade"), asked.header("Connection")) == ("GET", "websocket", "Upgrade")
    assert asked.header("Transfer-Encoding") is None and asked.header("Content-Length") is None and asked.header("Expect") is None
    assert server.requests[1].header("Upgrade") is None


def test_a_web_page_cannot_open_a_websocket(stage, echo):
    """Browsers send no Sec-Fetch-Site with it that would tell."""
    host, port = open_site(stage.client(), f"http://127.0.0.1:{echo.port}")
    with pytest.raises(websockets.exceptions.InvalidStatusCode, match="403"):
        talk(f"ws://{host}:{port}/x", "hello", origin="http://evil.example")
    assert echo.paths == []


def test_a_body_before_another_protocol_is_not_taken_for_it(stage):
    server = stage.server(lambda request: response(200, request.body))
    host, port = open_site(stage.client(), server.url)
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(f"POST /x HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 4\r\n{HANDSHAKE}\r\nbody".encode())
        assert receive_response(connection)[1] == b"body"
    assert server.requests[0].header("Upgrade") is None


class Switching(ScriptedServer):
    """Repeats all bytes after its 101."""

    def _respond(self, connection, request, early):
        answer = self.handler(request)
        connection.sendall(answer)
        if not answer.startswith(b"HTTP/1.1 101 "):
            return False
        connection.sendall(early)
        while data := connection.recv(1 << 16):
            connection.sendall(data)
        return True


SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
NTLM = '[schemes]\nntlm = ["127.0.0.1", "localhost"]\n'


def logged_in(stage, ntlm_users, text, *options):
    return stage.agent(password_answer("TESTDOM\\alice", ntlm_users["alice"]), stage.configured(text, *options))


def repeats(address, line):
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(f"GET {line} HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n{HANDSHAKE}\r\n".encode())
        head, _ = receive_response(connection)
        assert head.startswith(b"HTTP/1.1 101 "), head
        for text in [b"hello", b"again"]:
            connection.sendall(text)
            assert connection.recv(100) == text


@pytest.mark.parametrize("place", ["server", "proxy"])
def test_bytes_pass_after_a_login_by_ntlm(stage, tmp_path, ntlm_users, place):
    one = Switching(NtlmCheck(tmp_path, ntlm_users, proxy=place == "proxy", handler=lambda request: SWITCH))
    client = logged_in(stage, ntlm_users, NTLM + (f'[proxy]\nurl = "{one.url}"\n' if place == "proxy" else ""))
    address = open_proxy(client)[0] if place == "proxy" else open_site(client, one.url)
    for _ in range(2):
        repeats(address, "http://server.example/x" if place == "proxy" else "/x")
    assert len(one.handler.served) == 2


def test_a_refusal_after_a_login_by_ntlm_ends_the_request(stage, tmp_path, ntlm_users):
    server = Switching(NtlmCheck(tmp_path, ntlm_users, handler=lambda request: response(403, b"no chat")))
    address = open_site(logged_in(stage, ntlm_users, NTLM), server.url)
    fields = HANDSHAKE.replace("Connection: Upgrade", "Connection: Upgrade, close")
    received = exchange(address, f"GET /x HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n{fields}\r\n".encode())
    assert received.startswith(b"HTTP/1.1 403 ") and received.endswith(b"no chat")


def test_bytes_pass_after_a_login_by_ntlm_at_a_proxy_of_a_tunnel(stage, echo, ntlm_proxy, ntlm_users, account, tls):
    with reachable_folder("websocket") as folder:
        site = behind_nginx(folder, echo.port, *account, tls=tls)
        client = logged_in(
            stage, ntlm_users, f'{NTLM}[proxy]\nurl = "{ntlm_proxy.url}"\nexcept = []\n', "--ca-file", str(tls / "ca.pem"))
        host, port = open_site(client, f"https://localhost:{site.port}")
        for _ in range(2):
            assert talk(f"ws://{host}:{port}/chat", "hello", "end") == ["hello", "bye"]
        site.stop()


def test_bytes_pass_after_a_login_by_kerberos(stage, echo, realm, kerberos_users, tls):
    with reachable_folder("gssapi-websocket") as folder:
        site = kerberos.GssapiApache(folder, realm, tls, websocket=echo.port)
        broker = stage.configured('[schemes]\nnegotiate = ["localhost"]\n', environment=realm.log_in("alice", kerberos_users["alice"]))
        host, port = open_site(stage.client(broker=broker), site.url)
        for _ in range(2):
            assert talk(f"ws://{host}:{port}/kerberos/chat", "hello", "end") == ["hello", "bye"]
        assert echo.paths == ["/chat"] * 2
        site.stop()
