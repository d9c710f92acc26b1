"""Responses through fronts: interim ones, bodies that fail or arrive slowly, reason phrases, and failures of upstream proxies."""
import contextlib
import socket
import subprocess
import threading
import time

import pytest

from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy, receive_all, receive_response
from rig.scripted import ScriptedServer, response


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


def test_a_program_of_http_1_0_gets_no_interim_response(stage, address):
    server = Slow(lambda request: [b"HTTP/1.1 103 Hints\r\n\r\n" + response(200, b"page")])
    server.more()
    with asking(address, server, version="1.0") as connection:
        assert receive(connection, b"page").startswith(b"HTTP/1.1 200 ")


def test_a_100_of_the_origin_is_not_passed_on(stage, address):
    server = Slow(lambda request: [b"HTTP/1.1 100 Continue\r\n\r\n", response(200, b"page")])
    server.more(), server.more()
    with asking(address, server) as connection:
        assert receive_response(connection)[0].startswith(b"HTTP/1.1 200 ")


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
    closing = threading.Event()

    class Origin(ScriptedServer):
        def _respond(self, connection, request, early):
            connection.sendall(self.handler(request))
            if closing.wait(20) and request.path == "/last":
                return True
            return False

    server = Origin(lambda request: response(200, b"page"))
    login = "Authorization: NTLM TlRMTVNTUAABAAAA\r\n"
    with socket.create_connection(address, timeout=20) as connection:
        closing.set()
        for path in ["/one", "/last"]:
            connection.sendall(f"GET {server.url}{path} HTTP/1.1\r\nHost: x\r\n{login}\r\n".encode())
            assert receive_response(connection)[1] == b"page"
        time.sleep(0.2)
        connection.sendall(f"GET {server.url}/again HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(100) == b"", "no answer on another connection"
    assert server.connections == 1 and [request.path for request in server.requests] == ["/one", "/last"]


def test_a_login_by_ntlm_of_the_program_survives_other_requests(stage, ntlm, ntlm_users):
    address, _ = open_proxy(stage.client())
    done = subprocess.run(
        ["curl", "-sS", "--noproxy", "", "-x", f"http://{address[0]}:{address[1]}", "--ntlm", "-u", f"TESTDOM\\alice:{ntlm_users['alice']}",
         ntlm.url + "/a", ntlm.url + "/b"], capture_output=True, timeout=30)
    assert done.stdout == b"hello TESTDOM\\alice\n" * 2, done
