"""A scripted server with slow bodies, which counts how much of them it could send."""
import hashlib
import os
import re
import socket
import threading
import time
import zlib

from . import scripted
from .scripted import Request, ScriptedServer, response

BLOCK = os.urandom(1 << 20)


def head(status=200, *headers, length=None):
    return response(status, b"", *headers, length=length)


def repeated(count, block=BLOCK):
    """Yields the head and the blocks of a response of `count` blocks."""
    yield head(length=count * len(block))
    for _ in range(count):
        yield block


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
        file = connection.makefile("rb")
        try:
            while head := self._head(file):
                request = Request(number, head, b"")
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
                self._take(file, request)
                if self._answer(connection, request, answer):
                    return
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def _answer(self, connection, request, answer):
        """Responds after the body, of which `request.received` is the size and the SHA-256. Returns whether the connection ends."""
        connection.sendall(answer)
        return False

    def _head(self, file):
        head = b""
        while line := file.readline(1 << 16):
            if line == b"\r\n":
                return head
            if not head and not re.match(rb"[A-Z]+ ", line):
                raise ValueError("bytes of a body instead of a request line")
            head += line
        return b""

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
        request.received = (count, digest.hexdigest())
        if count:
            with self.lock:
                self.bodies.append((count, digest.hexdigest(), request.authorization is not None))
