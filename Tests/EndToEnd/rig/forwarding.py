"""Our own proxies, for behaviour that squid and dante cannot be configured to show: a scripted HTTP proxy, and SOCKS5 with RFC
1929.

Both record every byte that clients send to them, and connect to 127.0.0.1 for any host: no name is looked up, and nothing
leaves the machine.
"""
import contextlib
import http.client
import selectors
import socket
import ssl
import struct
import urllib.parse

from . import tiny_browser
from .scripted import ScriptedServer, basic, response


def join(client, upstream, note=lambda data: None):
    """Forwards bytes in both directions until either side ends, in one thread: OpenSSL allows no second one. `note` gets those of the
    client."""
    with contextlib.closing(client), contextlib.closing(upstream), selectors.DefaultSelector() as selector, contextlib.suppress(OSError):
        for side, carry in [(client, lambda data: note(data) or upstream.sendall(data)), (upstream, client.sendall)]:
            selector.register(side, selectors.EVENT_READ, carry)
        while all([_carry(key.fileobj, key.data) for key, _ in selector.select()]):
            pass


def _carry(source, carry):
    """Forwards the data that can be read now; returns false at the end."""
    source.setblocking(False)
    try:
        data = source.recv(1 << 16)
        # OpenSSL may hold more than it has returned, which select(2) does not see.
        while pending := getattr(source, "pending", int)():
            data += source.recv(pending)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    finally:
        source.setblocking(True)
    carry(data)
    return bool(data)


def forwarded(request, port, target, without=()):
    """Returns the response of a server on this machine to a request. The client's connection stays open when the server's ends."""
    own = {"connection", "content-length", "transfer-encoding", "host", *without}
    fields = [(name, value) for name, value in request.headers if name.lower() not in own] + [("Connection", "close")]
    body = request.body if request.header("Content-Length") else None
    page = tiny_browser.request(f"http://127.0.0.1:{port}{target}", request.method, fields, body, request.header("Host"))
    length = page.header("Content-Length") if request.method == "HEAD" else len(page.body)
    own.remove("host")
    return response(page.status, page.body, *(f"{name}: {value}" for name, value in page.headers if name.lower() not in own), length=length)


def basic_check(user, password, granted=None, realm="gate"):
    """Refuses all requests without this login; the others get `granted`, or are forwarded."""
    right, refusal = basic(user, password), response(407, b"who is there", f'Proxy-Authenticate: Basic realm="{realm}"')
    return lambda request: granted if request.header("Proxy-Authorization") == right else refusal


class ForwardProxy(ScriptedServer):
    """`check(request)` returns the bytes of a refusal, or None to forward the request.

    `wire` and `requests` contain the data sent to the proxy itself, `tunnelled` the data of clients in tunnels, and `reached` the
    requested (host, port) pairs.
    """

    def __init__(self, check=lambda request: None):
        self.tunnelled, self.reached = b"", []
        super().__init__(check)

    def _note(self, data):
        with self.lock:
            self.tunnelled += data

    def _respond(self, connection, request, early):
        refusal, tunnel = self.handler(request), request.method == "CONNECT"
        url = urllib.parse.urlsplit(("//" if tunnel else "") + request.target)
        if refusal is None and not tunnel and url.scheme != "http":
            refusal = response(400, b"not a proxy request")
        if refusal is not None:
            connection.sendall(refusal)
            return False
        self.reached.append((url.hostname, url.port or 80))
        try:
            if not tunnel:
                target = url._replace(scheme="", netloc="").geturl() or "/"
                connection.sendall(forwarded(request, url.port or 80, target, ["proxy-authorization", "proxy-connection"]))
                return False
            upstream = socket.create_connection(("127.0.0.1", url.port or 80), 10)
        except (OSError, http.client.HTTPException):
            connection.sendall(response(502, b"cannot reach it"))
            return False
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self._note(early)
        upstream.sendall(early)
        join(connection, upstream, self._note)
        return True


class Socks5Server(ScriptedServer):
    """SOCKS5 (RFC 1928). With `users` (name → password) it requires RFC 1929; without, it accepts everyone.

    `asked` contains the (user, host, port) of each requested connection. A host name there shows that the proxy was to look it
    up.
    """

    def __init__(self, users=None):
        self.users, self.asked, self.refused, self.tunnelled = users, [], [], b""
        super().__init__(None)

    _note = ForwardProxy._note

    def _serve(self, connection, number):
        def take(count):
            data = connection.recv(count, socket.MSG_WAITALL)
            with self.lock:
                self.wire += data
            if len(data) < count:
                raise OSError("the client has disconnected")
            return data

        with contextlib.suppress(OSError), connection:
            user = self._log_in(connection, take)
            if user is False:
                return
            _, command, _, kind = take(4)
            host = {1: lambda: socket.inet_ntoa(take(4)), 3: lambda: take(take(1)[0]).decode("latin-1"),
                    4: lambda: socket.inet_ntop(socket.AF_INET6, take(16))}[kind]()
            port, = struct.unpack(">H", take(2))
            self.asked.append((user, host, port))
            address = b"\1\x7f\0\0\1\0\0"
            if command != 1:
                return connection.sendall(b"\5\7\0" + address)
            try:
                upstream = socket.create_connection(("127.0.0.1", self.destination(host, port)), 10)
            except OSError:
                return connection.sendall(b"\5\5\0" + address)
            connection.sendall(b"\5\0\0" + address)
            join(connection, upstream, self._note)

    def destination(self, host, port):
        """Returns the port of this machine to connect to for `host`."""
        return port

    def _log_in(self, connection, take):
        """Returns the user, or None if everyone is accepted; False after a refusal."""
        offered, method = take(take(2)[1]), 0 if self.users is None else 2
        if method not in offered:
            self.refused.append(("methods", list(offered)))
            connection.sendall(b"\5\xff")
            return False
        connection.sendall(bytes([5, method]))
        if method == 0:
            return None
        user = take(take(2)[1]).decode()
        right = self.users.get(user) == take(take(1)[0]).decode()
        connection.sendall(b"\1" + (b"\0" if right else b"\1"))
        if not right:
            self.refused.append(("user", user))
        return user if right else False
