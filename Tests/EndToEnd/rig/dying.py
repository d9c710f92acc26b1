"""Servers and proxies that disconnect in the middle of a response, at a byte that is set for each fetch.

A fetch is identified by the number in its path and in its realms, `/00042/page` and "r00042". Each has passwords of its own, so
that a password sent with the request of another fetch is detected.
"""
import collections
import re
import socket

from .forwarding import ForwardProxy
from .scripted import DigestCheck, ScriptedServer, basic, reset_at_close, response
from .tls import TlsServer

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
    """A password for each number."""

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
                check = digests.setdefault(number, DigestCheck(
                    "bob", self(number), f"r{number:05}", body=body, proof="right", domain=f"/{number:05}/"))
                return check(request)
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
