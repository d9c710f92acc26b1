"""Fronts of a broker, and programs that use them."""
import os
import socket
import subprocess

from .broker import program


def run(broker, *command, seconds=60, environment=None, options=(), **more):
    """Runs a command with `watchword run`, and returns the finished process."""
    return subprocess.run(
        [program("watchword"), "run", "--socket", broker.socket, *options, "--", *command], timeout=seconds, capture_output=True,
        env={**os.environ, "HOME": str(broker.home), "no_proxy": "", "NO_PROXY": "", **(environment or {})}, **more)


def open_proxy(client):
    """Returns the address and the token of a new front."""
    result = client.call("front/open", {})["result"]
    host, port = result["listen"].rsplit(":", 1)
    return (host, int(port)), result["token"]


def open_site(client, url, **site):
    """Returns the address of a front of `url`."""
    result = client.call("front/open", {"site": {"url": url, **site}})["result"]
    host, port = result["listen"].rsplit(":", 1)
    return host, int(port)


def exchange(address, data, seconds=20):
    """Sends bytes, and returns everything that is received up to the end of the connection."""
    with socket.create_connection(address, timeout=seconds) as connection:
        connection.sendall(data)
        return receive_all(connection)


def receive_all(connection):
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def receive_response(connection):
    """Reads one response with Content-Length from a socket."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(1 << 16)
        assert part, f"the connection ended: {data!r}"
        data += part
    head, body = data.split(b"\r\n\r\n", 1)
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = int(lengths[0]) if lengths else 0
    while len(body) < length:
        body += connection.recv(1 << 16)
    assert len(body) == length, "bytes after the response"
    return head, body
