"""A scripted server with slow bodies, which counts how much of them it could send."""
import os
import socket
import threading
import time
import zlib

from . import scripted
from .scripted import ScriptedServer, response

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
