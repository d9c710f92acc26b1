"""Fronts of a broker, and programs that use them."""
import os
import socket
import subprocess

from .broker import program
from .scripted import taken


def run(broker, *command, seconds=60, environment=None, options=(), **more):
    """Runs a command with `watchword run`, and returns the finished process."""
    return subprocess.run(
        [program("watchword"), "run", "--socket", broker.socket, *options, "--", *command], timeout=seconds, capture_output=True,
        env={**os.environ, "HOME": str(broker.home), "no_proxy": "", "NO_PROXY": "", **(environment or {})}, **more)


def _opened(client, **params):
    result = client.call("front/open", params)["result"]
    host, port = result["listen"].rsplit(":", 1)
    return (host, int(port)), result.get("token")


def open_proxy(client):
    """Returns the address and the token of a new front."""
    return _opened(client)


def open_site(client, url, **site):
    return _opened(client, site={"url": url, **site})[0]


def exchange(address, data, seconds=20):
    """Sends bytes, and returns everything that is received up to the end of the connection."""
    with socket.create_connection(address, timeout=seconds) as connection:
        connection.sendall(data)
        return receive_all(connection)


def receive_all(connection):
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def receive_response(connection):
    """Reads one response from a socket; returns its head and its body."""
    data = b""
    while not (found := taken(data)):
        part = connection.recv(1 << 16)
        assert part, f"the connection ended: {data!r}"
        data += part
    head, body, rest = found
    assert not rest, "bytes after the response"
    return head, body
