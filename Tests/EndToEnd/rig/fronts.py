"""The fronts that the matrix puts before the other servers: TLS, HTTP/2, and a record of the outcome of each request."""
import contextlib
import http.client
import itertools
import os
import pathlib
import socket
import ssl
import threading
import time

from .forwarding import ForwardProxy, join
from .scripted import response
from .servers import Server, free_port, nginx_command, publish
from .tls import TlsServer


class Noted:
    """A handler that wraps another one. `verdicts` contains, for each request, whether it contained a login and whether it was
    accepted.

    With `proxy`, the handler of an origin acts as a proxy: it refuses with 407, and the requests that it would have served are
    forwarded.
    """

    def __init__(self, handler, proxy=False, translate=True):
        self.handler, self.proxy, self.translate, self.verdicts = handler, proxy, translate, []

    def __call__(self, request):
        said = request.header("Proxy-Authorization" if self.proxy else "Authorization")
        answer = self.handler(_Asked(request, said) if self.proxy and self.translate else request)
        passed = answer is None or answer.startswith(b"HTTP/1.1 200 ")
        self.verdicts.append((said is not None, passed))
        if self.proxy:
            return None if passed else answer.replace(b" 401 ", b" 407 ", 1).replace(b"\r\nWWW-", b"\r\nProxy-")
        return answer


class _Asked:
    """A request to a proxy, in the form that the handler of an origin reads."""

    def __init__(self, request, said):
        self.request, self.authorization = request, said

    def __getattr__(self, name):
        return getattr(self.request, name)

    def header(self, name):
        return self.authorization if name == "Authorization" else self.request.header(name)


class TlsForwardProxy(TlsServer, ForwardProxy):
    """A ForwardProxy over TLS, which offers HTTP/2; `protocols` are the negotiated protocols."""

    def __init__(self, certificates, leaf="good", handler=lambda request: None, **more):
        self.protocols, self.alpn = [], ["h2", "http/1.1"]
        super().__init__(certificates, leaf, handler, **more)

    def _open(self, connection, number):
        secure = super()._open(connection, number)
        self.protocols.append(secure.selected_alpn_protocol())
        inside, outside = socket.socketpair()
        threading.Thread(target=join, args=(outside, secure), daemon=True).start()
        return inside


class Http2Front(TlsServer):
    """TLS that ends handshakes as TlsServer does, with HTTP/2 negotiated. Decrypted data is forwarded to `port`."""

    def __init__(self, certificates, port, leaf="good", **more):
        self.to, self.alpn = port, ["h2"]
        super().__init__(certificates, leaf, **more)

    def _serve(self, connection, number):
        with contextlib.suppress(OSError), connection:
            join(self._open(connection, number), socket.create_connection(("127.0.0.1", self.to), 10))


class Http2Nginx(Server):
    """nginx that speaks HTTP/2, as a front of the scripted servers and on its own.

    `front(port, path)` is the URL of what a server on that port serves at "/port/path"; `front_kept` is the same for the one
    port `kept`, over persistent connections, as connection-level logins need. `certificate_url` requests a client certificate
    and continues without one, `self_signed_url` has a certificate that does not verify, and `clear_port` speaks HTTP/2 without
    TLS. A line of the log: status, protocol, SUCCESS or NONE or FAILED:reason, the client's subject, target.
    """

    def __init__(self, folder, certificates, kept):
        folder = pathlib.Path(folder)
        self.ports = {name: free_port() for name in ["front", "kept", "certificate", "self-signed", "clear"]}
        publish(folder, {"page.txt": "page by HTTP/2\n"})

        def served(name, leaf, more):
            pem = f"ssl_certificate {certificates / leaf}.pem; ssl_certificate_key {certificates / leaf}.key;"
            return f"server {{ listen 127.0.0.1:{self.ports[name]} ssl http2; {pem} root {folder}/www; {more} }}\n"

        kept_up = 'proxy_http_version 1.1; proxy_set_header Connection "";'
        asks = f"ssl_verify_client optional; ssl_client_certificate {certificates / 'ca.pem'};"
        super().__init__(nginx_command(
            folder, "$status $server_protocol $ssl_client_verify \"$ssl_client_s_dn\" $uri",
            f"upstream kept {{ server 127.0.0.1:{kept}; keepalive 1; }}\n"
            + served("front", "good", "location ~ ^/(?<back>[0-9]+)/ { proxy_pass http://127.0.0.1:$back; proxy_set_header Host localhost; }")
            .replace("location ~", "location ~ ^/whole/(?<back>[0-9]+)(?<rest>/.*)$ { proxy_pass http://127.0.0.1:$back$rest; } location ~", 1)
            + served("kept", "good", f"location / {{ proxy_pass http://kept; {kept_up} }}")
            + served("certificate", "good", asks) + served("self-signed", "self-signed", "")
            + f"server {{ listen 127.0.0.1:{self.ports['clear']} http2; root {folder}/www; }}"), self.ports["front"], folder / "access.log")

    def url(self, name, path):
        return f"https://localhost:{self.ports[name]}{path}"


class Log:
    """The log lines that a real server writes about one cell: those between its construction and `lines`.

    Servers write late, so `lines` makes a request of its own at `mark` (scheme, port, and the start of the URL for a proxy),
    and reads up to its line.
    """

    _numbers = itertools.count(1)

    def __init__(self, server, scheme, port, through=""):
        self.server, self.scheme, self.port, self.through = server, scheme, port, through
        self.start = self._mark()

    def _mark(self):
        path = f"/mark-{os.getpid()}-{next(self._numbers)}"
        kind = http.client.HTTPSConnection if self.scheme == "https" else http.client.HTTPConnection
        more = {"context": ssl._create_unverified_context()} if self.scheme == "https" else {}
        connection = kind("127.0.0.1", self.port, timeout=30, **more)
        connection.request("GET", self.through + path)
        connection.getresponse().read()
        connection.close()
        return path

    def lines(self):
        end = self._mark()
        self.server.wait_for_log(end)
        lines = self.server.log.splitlines()
        first = next(index for index, line in enumerate(lines) if self.start in line)
        last = next(index for index, line in enumerate(lines) if end in line)
        return [line for line in lines[first + 1:last] if "/mark-" not in line]

    def verdicts(self, verdict, wanted):
        """Returns `verdict(line)` of each line, without None."""
        return settled(lambda: [one for one in map(verdict, self.lines()) if one is not None], wanted)


def settled(find, wanted, seconds=30):
    """Returns `find()` as soon as it equals `wanted`, or after a time limit: servers record some events after the client has
    disconnected."""
    end = time.monotonic() + seconds
    while (found := find()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return found


def open_page(request):
    return response(200, b"open page\n")
