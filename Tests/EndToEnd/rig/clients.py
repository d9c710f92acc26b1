"""The paths of the clients, and fixtures to test them."""
import asyncio
import gzip
import http
import json
import os
import socket
import sys
import threading

import pytest

from .broker import part
from .scripted import basic, response
from .scripted_broker import scripted  # noqa: F401
from .streams import UploadServer

CLIENTS = part("share/watchword/clients", "clients")
sys.path.insert(0, str(CLIENTS / "python"))


@pytest.fixture
def site(stage):
    """A `ClientSite` for the user bob with the password `site.password`; `site.broker_path` is the broker's socket."""
    password = stage.secret()
    site = stage.server(ClientSite("bob", password))
    stage.allow(password, site)
    site.password, site.broker = password, stage.broker()
    site.broker_path = site.broker.socket
    site.log_in = lambda challenge: ("bob", password)
    return site


@pytest.fixture
def login(tmp_path):
    """`login(user, password)` writes a file that the scripts of the clients read, and returns its path."""
    def write(user, password):
        path = tmp_path / "login"
        path.touch(mode=0o600)
        path.write_text(f"{user}\n{password}\n", newline="")
        return path

    return write


def run(coroutine, seconds=30):
    return asyncio.run(asyncio.wait_for(coroutine, seconds))


# Larger than the limit for inline bodies.
LARGE = os.urandom(1 << 19) * 3
BINARY = b"\xff\xfe not UTF-8 \x00\xc3"


def said(status, body, *headers):
    return response(status, body, *headers, reason=http.HTTPStatus(status).phrase)


class ClientSite(UploadServer):
    """`seen` contains each request as (method, path, Authorization). `release` completes slow responses; `begun` and `ended_early` are
    the paths of those that began, and from which the client disconnected."""

    def __init__(self, user, password):
        self.right, self.seen = basic(user, password), []
        self.release, self.given_up, self.slow = threading.Event(), threading.Event(), threading.Event()
        self.begun, self.ended_early = [], []
        super().__init__(self._login)
        self.other = self.url

    def close(self):
        self.release.set()
        super().close()

    def _login(self, request):
        self.seen.append((request.method, request.target, request.authorization))
        if not request.target.startswith("/open") and request.authorization != self.right:
            return said(401, b"please log in", 'WWW-Authenticate: Basic realm="Staff"')
        return said(200, b"")

    def _answer(self, connection, request, answer):
        if answer.startswith(b"HTTP/1.1 401"):
            return super()._answer(connection, request, answer)
        name = request.path.strip("/").removeprefix("open/")
        if name in ("slow", "silent"):
            return self._answer_slowly(connection, request, name)
        whole = self._page(request, name)
        connection.sendall(whole.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if request.method == "HEAD" else whole)
        return name == "short"

    def _page(self, request, name):
        # A compressed response, to clients that accept one.
        is_packed = "gzip" in (request.header("Accept-Encoding") or "")
        length, digest = request.received
        told = {"length": length, "sha256": digest, "method": request.method, **{
            key: request.header(field) for key, field in [("type", "Content-Type"), ("sized", "Content-Length"), ("cookie", "Cookie")]}}
        pages = {
            "binary": (200, BINARY), "large": (200, LARGE, "Content-Type: application/octet-stream"),
            "packed": (200, gzip.compress(b"packed page\n") if is_packed else b"unasked", *["Content-Encoding: gzip"] * is_packed),
            "cookies": (200, b"two\n", "Set-Cookie: a=1; Path=/", "Set-Cookie: b=2; Path=/", "X-Said: caf\u00e9"),
            "echo": (200, json.dumps(told).encode(), "Content-Type: application/json"),
            "redirect": (302, b"", f"Location: {self.other}/page"), "refuse": (403, b"no", "X-Why: because")}
        if name == "short":
            # Less than is announced.
            return said(200, bytes(4 << 20))[:-2 << 20]
        return said(*pages.get(name, (200, b"staff page\n", "Content-Type: text/plain")))

    def _answer_slowly(self, connection, request, name):
        """Sends the first half of a slow page at once, and the rest, or a silent page, when `release` is set. Sets `given_up` when the
        client disconnects before."""
        if name == "slow":
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        self.begun.append(request.target)
        self.slow.set()
        while not self.release.wait(0.05):
            if is_gone(connection):
                self.ended_early.append(request.target)
                self.given_up.set()
                return True
        connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n" if name == "slow" else self._page(request, "page"))
        return False


def is_gone(connection):
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
