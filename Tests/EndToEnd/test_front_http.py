"""HTTP/1.1 through a front: trailers, pipelining and incomplete bodies (RFC 9110, RFC 9112)."""
import os
import resource
import socket
import subprocess
import sys

import pytest

from rig.bodies import eventually
from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy, receive_all, run
from rig.scripted import response


def request(url, *fields, path="/", method="GET"):
    lines = [f"{method} {url}{path} HTTP/1.1", "Host: x", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@pytest.fixture
def address(stage):
    return open_proxy(stage.client())[0]


def test_a_program_that_has_sent_everything_gets_all_responses(stage, address):
    server = stage.server(lambda asked: response(200, asked.target.encode() * 1000))
    requests = b"".join(request(server.url, path=f"/{number}") for number in range(6))
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(requests)
        connection.shutdown(socket.SHUT_WR)
        received = receive_all(connection)
    assert [part.split(b"\r\n\r\n")[1] for part in received.split(b"HTTP/1.1 200")[1:]] == [
        f"/{number}".encode() * 1000 for number in range(6)]


@pytest.mark.parametrize("rest", [b"zz\r\n", b"5\r\nabcdeXX", b"-1\r\n"])
def test_a_malformed_chunk_in_a_streamed_body_ends_with_400(stage, address, rest):
    server = stage.server(lambda asked: None)
    part = os.urandom(100_000)
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(request(server.url, "Transfer-Encoding: chunked", method="POST"))
        connection.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        eventually(lambda: part in server.wire.replace(b"\r\n", b"") or len(server.wire) > len(part), "the origin has got the part")
        connection.sendall(rest)
        received = receive_all(connection)
    assert received.startswith(b"HTTP/1.1 400 ") and b"malformed chunk" in received
    assert b"\r\n0\r\n\r\n" not in server.wire, "the origin must not take the part for the whole body"


def test_a_tunnel_through_a_proxy_that_expects_tls(stage, squid, account, tls, nginx_tls, tmp_path):
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("tls-basic")}"\n[front]\ntunnel-ports = [{nginx_tls.port}]\n', "--ca-file", str(tls / "ca.pem"))
    agent = stage.agent(password_answer(*account), broker)
    url = f"https://localhost:{nginx_tls.port}"
    done = run(broker, "curl", "-sS", "--cacert", str(tls / "ca.pem"), "-o", str(tmp_path / "large"), f"{url}/large.bin", f"{url}/open.txt")
    assert done.stdout == b"open page\n", done
    assert (tmp_path / "large").read_bytes() == (nginx_tls.log_path.parent / "www" / "large.bin").read_bytes()
    assert len(agent.asked) == 1 and agent.asked[0]["protectionSpace"]["isProxy"]
    eventually(lambda: agent.call("server/status", {})["result"]["engine"]["running"] == 0, "the transfers have ended")


def test_a_large_upload_in_a_tunnel_through_a_proxy_that_expects_tls(stage, squid, account, tls):
    received = []
    server = stage.server(lambda asked: received.append(asked.body) or response(200, b"taken"))
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("tls-open")}"\n[front]\ntunnel-ports = [{server.port}]\n', "--ca-file", str(tls / "ca.pem"))
    address, _ = open_proxy(stage.client(broker=broker))
    body = os.urandom(5 << 20)
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        connection.sendall(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert connection.recv(1 << 16).endswith(b"taken")
    assert received == [body]


def test_the_broker_stops_during_a_tunnel_through_a_proxy_that_expects_tls(stage, squid, tls, nginx_tls):
    broker = stage.configured(
        f'[proxy]\nurl = "{squid.url("tls-open")}"\n[front]\ntunnel-ports = [{nginx_tls.port}]\n', "--ca-file", str(tls / "ca.pem"))
    address, _ = open_proxy(stage.client(broker=broker))
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(f"CONNECT localhost:{nginx_tls.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
        assert broker.stop() == 0, broker.log
        assert connection.recv(1) == b""


def test_one_program_cannot_take_all_connections(stage):
    broker = stage.broker()
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (600, 600))
    client = stage.client(broker=broker)
    address, _ = open_proxy(client)
    connections = []
    try:
        for _ in range(400):
            connections.append(socket.create_connection(address, timeout=20))
        eventually(lambda: "too many connections of a program" in broker.log, "the limit is reached")
        server = stage.server(lambda asked: response(200, b"page"))
        done = subprocess.run(
            ["curl", "-sS", "--noproxy", "", "-x", f"http://{address[0]}:{address[1]}", server.url], capture_output=True, timeout=30)
        assert done.stdout == b"page", done
    finally:
        for connection in connections:
            connection.close()


TUNNELS = """
import socket, sys
held, code = [], "200"
while code == "200" and len(held) < 400:
    held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20))
    held[-1].sendall(f"CONNECT 127.0.0.1:{sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n".encode())
    try:
        code = (held[-1].recv(100).decode() + " closed").split(" ")[1]
    except ConnectionResetError:
        code = "closed"
print(len(held), code, flush=True)
sys.stdin.read()
"""


def test_a_tunnel_needs_descriptors_that_are_not_reserved(stage):
    server = stage.server(lambda asked: response(200, b"page"))
    broker = stage.configured(f"[front]\ntunnel-ports = [{server.port}]\n")
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (600, 600))
    client = stage.client(broker=broker)
    address, _ = open_proxy(client)
    programs, ends = [], []
    try:
        for _ in range(2):
            programs.append(subprocess.Popen(
                [sys.executable, "-c", TUNNELS, str(address[1]), str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            ends.append(programs[-1].stdout.readline().split())
        assert [code for _, code in ends] == ["closed", "503"], "the first one reaches the limit of a program"
        assert all(int(count) > 20 for count, _ in ends)
        assert client.fetch(server.url)["result"]["status"] == 200, "the reserve is for other work"
    finally:
        for holder in programs:
            holder.communicate(timeout=20)


@pytest.mark.parametrize("head, code", [
    ("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("GET {url}/ HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n", 400),
    ("POST {url}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
    ("POST {url}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("POST {url}/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
    ("GET {url}/ HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("GET {url}/ HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400), ("GET {url}/ HTTP/1.1\nHost: x\n\n", 400),
    ("GET {url}/ HTTP/1.1\r\nHost: x\r\nA: " + "b" * 70_000 + "\r\n\r\n", 431),
])
def test_a_malformed_or_ambiguous_request_is_refused(stage, address, head, code):
    server = stage.server(lambda asked: response(200, b"page"))
    after = "GET {url}/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    received = exchange(address, (head + after).replace("{url}", server.url).encode())
    assert received.startswith(f"HTTP/1.1 {code} ".encode()) and received.count(b"\r\nDate: ") == 1, received
    assert b"Connection: close" in received and not server.requests


def test_a_blank_before_a_colon_is_removed(stage, address):
    server = stage.server(lambda asked: response(200, b"page", "A : b", "Set-Cookie\t: c"))
    head, body = exchange(address, request(server.url, "Connection: close")).split(b"\r\n\r\n")
    assert body == b"page" and b"\r\nA: b\r\nSet-Cookie: c\r\n" in head
