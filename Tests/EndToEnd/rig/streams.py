"""A scripted server with slow bodies, which counts how much of them it could send."""
import os
import socket
import threading
import time
import zlib

from .scripted import ScriptedServer

BLOCK = os.urandom(1 << 20)


def head(status=200, *headers, length=None):
    lines = [f"HTTP/1.1 {status} X", *([f"Content-Length: {length}"] if length is not None else []), *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def repeated(count, block=BLOCK):
    """Returns a response of `blocks` blocks, and its head."""
    yield head(length=count * len(block))
    for _ in range(count):
        yield block


def chunked(parts):
    yield head(200, "Transfer-Encoding: chunked")
    for part in parts:
        yield b"%x\r\n%s\r\n" % (len(part), part)
    yield b"0\r\n\r\n"


class StreamServer(ScriptedServer):
    """`handler(request)` returns bytes, or a generator of parts, which are sent in turn and counted in `sent`, by connection.

    A generator that yields `None` closes the connection there, `RESET` resets it, and `WAIT` sends nothing more until the peer
    disconnects. `ended` has the time at which the end of each connection was noticed.
    """

    WAIT, RESET = object(), object()

    def __init__(self, handler, send_buffer=None):
        self.sent, self.ended, self.send_buffer = {}, {}, send_buffer
        super().__init__(handler)

    def _open(self, connection, number):
        if self.send_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer)
        return connection

    def _respond(self, connection, request, early):
        answer = self.handler(request)
        if isinstance(answer, bytes):
            answer = [answer]
        for part in answer:
            if part is None or part is self.RESET:
                if part is self.RESET:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return True
            if part is self.WAIT:
                return connection.recv(1) == b""
            view = memoryview(part)
            while view:
                count = connection.send(view[:1 << 16])
                view = view[count:]
                self.sent[request.connection] = self.sent.get(request.connection, 0) + count
        return False

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
    for _ in range(megabytes // 64):
        yield block * 64
    # The checksum would have to be that of all the zeros, but no reader gets that far.
    yield b"\x03\0" + bytes(8)


class SlowReader(threading.Thread):
    """Reads an attached body at a limited rate in bytes per second, until `stop`."""

    def __init__(self, attached, bytes_per_second):
        super().__init__(daemon=True)
        self.attached, self.pace, self.count, self.stopping = attached, bytes_per_second, len(attached.start), threading.Event()
        self.start()

    def run(self):
        while not self.stopping.wait(0.05):
            data = self.attached.socket.recv(self.pace // 20)
            if not data:
                return
            self.count += len(data)

    def stop(self):
        self.stopping.set()
        self.join(30)
