"""Our own proxies, for behaviour that squid and dante cannot be configured to show: a scripted HTTP proxy, and SOCKS5 with RFC
1929.

Both record every byte that clients send to them, and connect to 127.0.0.1 for any host: no name is looked up, and nothing
leaves the machine.
"""
import re
import socket
import struct
import threading
import urllib.parse

from .scripted import ScriptedServer, response


def pump(source, sink, note=lambda data: None):
    try:
        while data := source.recv(1 << 16):
            note(data)
            sink.sendall(data)
    except OSError:
        pass
    for one in (source, sink):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def join(client, upstream, note):
    """Forwards bytes in both directions until either side ends."""
    upstream.settimeout(None)
    back = threading.Thread(target=pump, args=(upstream, client), daemon=True)
    back.start()
    pump(client, upstream, note)
    back.join()
    upstream.close()


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
        refusal = self.handler(request)
        if refusal is not None:
            connection.sendall(refusal)
            return False
        tunnel = request.method == "CONNECT"
        url = urllib.parse.urlsplit(("//" if tunnel else "") + request.target)
        if not tunnel and url.scheme != "http":
            connection.sendall(response(400, b"not a proxy request"))
            return False
        self.reached.append((url.hostname, url.port or 80))
        try:
            upstream = socket.create_connection(("127.0.0.1", url.port or 80), 10)
        except OSError:
            connection.sendall(response(502, b"cannot reach it"))
            return False
        if tunnel:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._note(early)
            upstream.sendall(early)
            join(connection, upstream, self._note)
            return True
        with upstream:
            connection.sendall(self._forward(upstream, url, request))
        return False

    def _forward(self, upstream, url, request):
        lines = [f"{request.method} {url._replace(scheme='', netloc='').geturl() or '/'} HTTP/1.0"]
        own = {"proxy-authorization", "proxy-connection", "connection"}
        lines += [f"{name}: {value}" for name, value in request.headers if name.lower() not in own]
        upstream.sendall("\r\n".join([*lines, "Connection: close"]).encode("latin-1") + b"\r\n\r\n" + request.body)
        answer = b""
        while data := upstream.recv(1 << 16):
            answer += data
            # Some servers keep the connection open, whatever the request says.
            head, found, body = answer.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)content-length: *(\d+)", head)
            if found and length and (request.method == "HEAD" or len(body) >= int(length.group(1))):
                break
        # The client's connection stays open when the origin's ends: an NTLM login lasts as long as the client's connection.
        head, _, body = answer.partition(b"\r\n\r\n")
        status, *fields = head.split(b"\r\n")
        fields = [field for field in fields if not field.lower().startswith((b"connection:", b"content-length:"))]
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        size = int(length.group(1)) if length and request.method == "HEAD" else len(body)
        return b"\r\n".join([status, *fields, b"Content-Length: %d" % size]) + b"\r\n\r\n" + body


class Socks5Server(ScriptedServer):
    """SOCKS5 (RFC 1928). With `users` (name → password) it requires RFC 1929; without, it accepts everyone.

    `asked` contains the (user, host, port) of each requested connection. A host name there shows that the proxy was to look it
    up.
    """

    def __init__(self, users=None):
        self.users, self.asked, self.refused, self.tunnelled = users, [], [], b""
        super().__init__(None)

    def _note(self, data):
        with self.lock:
            self.tunnelled += data

    def _serve(self, connection, number):
        def take(count):
            data = b""
            while len(data) < count:
                more = connection.recv(count - len(data))
                if not more:
                    raise OSError("the client has disconnected")
                data += more
            with self.lock:
                self.wire += data
            return data

        try:
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
        except OSError:
            pass
        finally:
            connection.close()

    def destination(self, host, port):
        """Returns the port of this machine to connect to for `host`."""
        return port

    def _log_in(self, connection, take):
        _, count = take(2)
        offered = take(count)
        method = 0 if self.users is None else 2
        if method not in offered:
            self.refused.append(("methods", list(offered)))
            connection.sendall(b"\5\xff")
            return False
        connection.sendall(bytes([5, method]))
        if method == 0:
            return None
        _, length = take(2)
        user = take(length).decode()
        password = take(take(1)[0]).decode()
        right = self.users.get(user) == password
        connection.sendall(b"\1" + (b"\0" if right else b"\1"))
        if not right:
            self.refused.append(("user", user))
        return user if right else False
