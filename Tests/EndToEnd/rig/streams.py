"""Scripted servers for bodies: slow ones, large uploads, and responses that are cut at a byte that is set for each fetch.

A fetch that is cut is identified by the number in its path and in its realms, `/00042/page` and "r00042". Each has passwords of its own,
so that a password sent with the request of another fetch is detected.
"""
import collections
import contextlib
import hashlib
import os
import re
import socket
import threading
import time
import zlib

from . import scripted
from .forwarding import ForwardProxy
from .scripted import DigestCheck, Request, ScriptedServer, basic, head_from, reset_at_close, response
from .tls import TlsServer

BLOCK = os.urandom(1 << 20)


def head(status=200, *headers, length=None):
    return response(status, b"", *headers, length=length)


def repeated(count):
    """Yields the head and the blocks of a response of `count` blocks."""
    yield head(length=count * len(BLOCK))
    yield from [BLOCK] * count


def chunked(parts):
    yield head(200, "Transfer-Encoding: chunked")
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


class StreamServer(ScriptedServer):
    """The bytes are counted in `sent`, by connection; `ended` has the time at which the end of each connection was noticed."""

    WAIT, RESET = scripted.WAIT, scripted.RESET

    def __init__(self, handler, send_buffer=None):
        self.sent, self.ended, self.send_buffer = {}, {}, send_buffer
        super().__init__(handler)

    def _open(self, connection, number):
        if self.send_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer)
        return connection

    def _send(self, connection, request, data):
        view = memoryview(data)
        while view:
            count = connection.send(view[:1 << 16])
            view = view[count:]
            self.sent[request.connection] = self.sent.get(request.connection, 0) + count

    def _serve(self, connection, number):
        try:
            super()._serve(connection, number)
        finally:
            self.ended[number] = time.monotonic()

    @property
    def all_sent(self):
        return sum(self.sent.values())

    @property
    def open_connections(self):
        return self.connections - len(self.ended)


def gzip_bomb(megabytes):
    """Yields the parts of a gzip stream of `megabytes` of zeros; every megabyte takes about a kilobyte."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    yield b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    yield from [block * 64] * (megabytes // 64)
    # The checksum would have to be that of all the zeros, but no reader gets that far.
    yield b"\x03\0" + bytes(8)


class SlowReader(threading.Thread):
    """Reads an attached body at a limited rate in bytes per second, until `stop`."""

    def __init__(self, attached, bytes_per_second):
        super().__init__(daemon=True)
        self.attached, self.pace, self.count, self.stopping = attached, bytes_per_second, len(attached.start), threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.05) and (data := self.attached.socket.recv(self.pace // 20)):
            self.count += len(data)

    def stop(self):
        self.stopping.set()
        self.join(30)


class UploadServer(ScriptedServer):
    """`handler` is a check such as DigestCheck or NtlmCheck, called once for each request, before its body; with `is_late` its answer is
    sent after the body in any case.

    `bodies` contains (bytes, SHA-256, whether with a login) of each body received, whether it was accepted or not. `refused` counts the
    announced bodies that were not.
    """

    def __init__(self, handler, is_late=False):
        super().__init__(handler)
        self.is_late, self.bodies, self.refused = is_late, [], 0

    def _serve(self, connection, number):
        with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as file:
            while re.match(rb"[A-Z]+( |$)", file.peek(8)):  # and no bytes of a body
                head = head_from(file)
                request = Request(number, head.removesuffix(b"\r\n"), b"")
                with self.lock:
                    self.wire += head
                    self.requests.append(request)
                answer = self.handler(request)
                is_announced = request.header("Expect") == "100-continue"
                if is_announced and not self.is_late and not answer.startswith(b"HTTP/1.1 2"):
                    self.refused += 1
                    # The client may now send the body or close the connection.
                    connection.sendall(answer)
                    continue
                if is_announced:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                count, digest = request.received = self._take(file, request)
                if count:
                    with self.lock:
                        self.bodies.append((count, digest, request.authorization is not None))
                if self._answer(connection, request, answer):
                    return

    def _answer(self, connection, request, answer):
        """Responds after the body, of which `request.received` is the size and the SHA-256. Returns whether the connection ends."""
        connection.sendall(answer)
        return False

    def _take(self, file, request):
        digest, count = hashlib.sha256(), 0
        is_chunked = request.header("Transfer-Encoding") == "chunked"
        left = int(file.readline(), 16) if is_chunked else int(request.header("Content-Length") or 0)
        while left and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            count, left = count + len(part), left - len(part)
            if is_chunked and not left:
                file.readline()
                left = int(file.readline(), 16)
        if is_chunked:
            file.readline()
        return count, digest.hexdigest()


# The response that is cut (its status, or "tunnel": all that passes through the proxy after CONNECT), the number of bytes
# before the cut, and whether the connection is then reset instead of closed.
Cut = collections.namedtuple("Cut", "what at resets", defaults=(False,))


class Line:
    """A connection on which only `left` more bytes are sent."""

    def __init__(self, connection, left, resets):
        self.connection, self.left, self.resets, self.said = connection, left, resets, 0

    def sendall(self, data):
        self.said += len(data)
        self.connection.sendall(data[:self.left])
        self.left -= min(len(data), self.left)
        if self.left == 0:
            if self.resets:
                reset_at_close(self.connection)
                # close(2) alone would wait for the thread that reads from the connection.
                self.connection.shutdown(socket.SHUT_RD)
                self.connection.close()
            raise OSError("the connection was cut")

    def __getattr__(self, name):
        return getattr(self.connection, name)


def number_of(request):
    """Returns the number in a request to a server, or to a proxy, where CONNECT contains it in the host."""
    return int(re.search(r"[/s](0\d{4})", request.target).group(1))


class Dying:
    """A mixin for ScriptedServer; `cuts` are the cuts by number."""

    def __init__(self, *words, **more):
        self.cuts, self.lines = {}, {}
        super().__init__(*words, **more)

    @property
    def lengths(self):
        """The lengths of the responses to the last fetch that was not cut."""
        return {what: line.said for what, line in self.lines.items()}

    def what(self, request):
        return 200 if request.authorization else 401

    def _respond(self, connection, request, early):
        what, cut = self.what(request), self.cuts.get(number_of(request))
        is_cut = cut and cut.what == what
        line = Line(connection, cut.at, cut.resets) if is_cut else Line(connection, 1 << 30, False)
        if not cut:
            self.lines[what] = line
        return super()._respond(line, request, early) or is_cut


class Passwords:
    def __init__(self, secret):
        self.secret = secret

    def __call__(self, number):
        return f"{self.secret}.{number:05}"

    def check(self, scheme, chunks=False):
        """Returns the handler of a server that requires the password of each fetch."""
        digests = {}

        def handle(request):
            number = number_of(request)
            body = b"page %05d" % number
            if scheme == "Digest":
                return digests.setdefault(number, DigestCheck(
                    "bob", self(number), f"r{number:05}", body=body, proof="right", domain=f"/{number:05}/"))(request)
            if request.authorization != basic("bob", self(number)):
                return response(401, b"please log in", f'WWW-Authenticate: Basic realm="r{number:05}"')
            if chunks:
                return b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n6\r\n %05d\r\n0\r\n\r\n" % number
            return response(200, body)

        return handle


class DyingServer(Dying, ScriptedServer):
    pass


class DyingTlsServer(Dying, TlsServer):
    pass


class DyingProxy(Dying, ForwardProxy):
    """A proxy that requires a password with 407, and forwards requests."""

    def __init__(self, passwords):
        def check(request):
            number = number_of(request)
            if request.header("Proxy-Authorization") == basic("pat", passwords(number)):
                return None
            return response(407, b"who are you?", f'Proxy-Authenticate: Basic realm="g{number:05}"')

        super().__init__(check)

    def what(self, request):
        if not request.header("Proxy-Authorization"):
            return 407
        return "tunnel" if request.method == "CONNECT" else super().what(request)
