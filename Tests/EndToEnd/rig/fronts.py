"""The fronts that the matrix puts before the other servers: TLS, HTTP/2, and a record of the outcome of each request."""
import contextlib
import copy
import http.client
import itertools
import os
import pathlib
import shlex
import socket
import ssl
import threading
import time

from .client import password_answer, trust_answer
from .forwarding import ForwardProxy, join
from .matrix import CERTIFICATES, PROXIES, REAL, TUNNELS, about
from .ntlm import NtlmCheck
from .scripted import DigestCheck, ScriptedServer, basic, basic_server, bearer_server, response, rounds_server
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
        if self.proxy and self.translate:
            request = copy.copy(request)
            request.headers = [("Authorization", said)] * (said is not None) + [
                (name, value) for name, value in request.headers if name.lower() != "authorization"]
        answer = self.handler(request)
        passed = answer is None or answer.startswith(b"HTTP/1.1 200 ")
        self.verdicts.append((said is not None, passed))
        if self.proxy:
            return None if passed else answer.replace(b" 401 ", b" 407 ", 1).replace(b"\r\nWWW-", b"\r\nProxy-")
        return answer


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

    `url` is for "front", which serves what a server on that port serves at "/port/path"; "kept", the same for the one port `kept`, over
    persistent connections, as connection-level logins need; "certificate", which requests a client certificate and continues without
    one; and "self-signed", whose certificate does not verify. `ports["clear"]` speaks HTTP/2 without TLS. A line of the log: status,
    protocol, SUCCESS or NONE or FAILED:reason, the client's subject, target.
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
        inside = self.server.wait_for_log(end).partition(self.start)[2].partition(end)[0]
        return [line for line in inside.splitlines()[1:-1] if "/mark-" not in line]

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


# The record of a request or, with certificates, of a connection: whether it contained a login, and whether it was accepted.
ASKED, REFUSED, PASSED = (False, False), (True, False), (True, True)
OPEN, HTTP2 = b"open page\n", "page by HTTP/2\n"


class Site:
    """`answers` are a wrong answer and then the right ones. `verdicts(expected)` returns the server's records as soon as they
    are as expected. `also` has further records of servers: name → (function that returns it, expected value).

    `reached` counts the requests that reached the origin behind a proxy.
    """

    def __init__(self, url, answers, verdicts, proxy=None, reached=None, version="1.1", body=OPEN.decode(),
                 refused_body="please log in", also=None):
        self.url, self.answers, self.verdicts, self.proxy, self.reached = url, answers, verdicts, proxy, reached
        self.version, self.body, self.refused_body, self.also = version, body, refused_body, also or {}


def expected(scheme, outcome):
    """Returns the expected records of the server, and the failure count in each challenge."""
    is_page, failures = outcome in {"right", "wrong"}, [0] + [1] * (outcome == "wrong")
    if scheme == "trust":
        return [PASSED] * is_page, [0] * len(failures)
    if scheme == "certificate":
        return {"right": [PASSED], "wrong": [ASKED, REFUSED, PASSED], "continue": [(False, True)], "cancel": []}[outcome], failures
    if scheme == "negotiate":
        # The refused ticket counts as a failure.
        return [ASKED, *[REFUSED] * (outcome != "right"), *[PASSED] * is_page], [1] * (outcome != "right")
    # The first round of a login in two rounds contains data, but is not accepted yet.
    rounds = [REFUSED] * (scheme in {"ntlm", "unknown"})
    wrong = [REFUSED] * (0 if outcome == "right" else 2 if scheme == "ntlm" else 1)
    if not is_page:
        return [ASKED], failures
    return [ASKED, *wrong, *rounds, PASSED], failures + failures[-1:] * (scheme == "unknown")


def is_login_of_connection(scheme, outcome):
    return scheme == "ntlm" or (scheme, outcome) == ("negotiate", "right")


def taken(server):
    """A handler for a server that is not needed."""
    server.close()
    return server.handler


def token(text):
    return {"action": "credential", "credential": {"type": "token", "token": text}}


def refusing_tickets(password):
    """Offers Kerberos, whose tickets it refuses, and Basic."""
    refusal = response(401, b"please log in", "WWW-Authenticate: Negotiate", 'WWW-Authenticate: Basic realm="Staff"')
    return lambda request: open_page(request) if request.authorization == basic("bob", password) else refusal


def script(stage, scheme, proxy):
    """Returns the server's side of a scheme, the secrets that it may receive, and the answers."""
    right, wrong = stage.secret(), stage.secret()
    if scheme == "ntlm":
        check = NtlmCheck(stage.folder, {"alice": right}, proxy=proxy, handler=(lambda request: None) if proxy else open_page)
        return check, [], [password_answer("TESTDOM\\alice", text) for text in [wrong, right]]
    if scheme == "bearer":
        return taken(bearer_server(right, body=OPEN)), [right, wrong], [token(wrong), token(right)]
    if scheme == "unknown":
        values = [f'response="{text}"' for text in [wrong, right, 2]]
        rounds = [('challenge="1"', values[1]), ('challenge="2"', values[2])]
        answers = [{"action": "credential", "credential": {"type": "header", "scheme": "Hoba", "value": value}} for value in values]
        return taken(rounds_server(rounds, body=OPEN)), [right, wrong], answers
    answers = [password_answer("bob", text) for text in [wrong, right]]
    if scheme == "negotiate":
        return refusing_tickets(right), [right, wrong], answers
    if scheme == "basic":
        return taken(basic_server("bob", right, body=OPEN)), [right, wrong], answers
    algorithm = scheme.removeprefix("digest-").upper().replace("-SESS", "-sess")
    return DigestCheck("bob", right, algorithm=algorithm, body=OPEN), [], answers


class Stand:
    """Builds the site of a cell. `fixture(name)` returns the servers that the site needs."""

    def __init__(self, stage, fixture):
        self.stage, self.fixture = stage, fixture

    def site(self, scheme, target, outcome):
        if scheme in CERTIFICATES:
            return getattr(self, scheme)(target, outcome)
        names = about(REAL, scheme, target, outcome)
        return getattr(self, names[0].lower() if names else "scripted")(scheme, target, outcome)

    def scripted(self, scheme, target, outcome):
        handler, secrets, answers = script(self.stage, scheme, target in PROXIES)
        noted = Noted(handler, proxy=target in PROXIES, translate=scheme != "ntlm")
        certificates, more, url = self.fixture("certificates"), {"also": {}}, None
        if target in PROXIES:
            server = TlsForwardProxy(certificates, handler=noted) if target.startswith("tls") else ForwardProxy(noted)
            url, more = self.behind(target)
            more |= {"proxy": server.url.replace("127.0.0.1", "localhost"), "also": {}}
            if target.startswith("tls"):
                more["also"]["HTTP/2 to the proxy"] = lambda: "h2" in server.protocols, False
        elif target == "https":
            server = TlsServer(certificates, handler=noted)
        elif target == "h2" and scheme == "ntlm":
            server, url = self.fixture("kept"), self.fixture("front").url("kept", "/page")
            server.handler = noted
        else:
            server = ScriptedServer(noted)
        if target == "h2":
            url = url or self.fixture("front").url("front", f"/{server.port}/page")
            more |= self.spoken(scheme, outcome)
        url = url or server.url.replace("127.0.0.1", "localhost") + "/page"
        if isinstance(handler, DigestCheck):
            more["also"]["problems of Digest"] = lambda: handler.problems, []
        if scheme == "ntlm":
            more["also"]["logins refused"] = lambda: len(handler.refused), int(outcome == "wrong")
        if scheme == "ntlm" and target == "h2":
            self.stage.watch(server)
        else:
            self.stage.server(server)
        for secret in secrets:
            self.stage.allow(secret, server)
        return Site(url, answers, lambda wanted: noted.verdicts, **more)

    def spoken(self, scheme, outcome):
        """Returns the HTTP version that nginx must have received: 1.1 for connection-level logins."""
        front = self.fixture("front")
        log, count = Log(front, "https", front.ports["certificate"]), len(expected(scheme, outcome)[0])
        wanted = ["HTTP/2.0"] * count
        if scheme == "ntlm":
            wanted[1:] = ["HTTP/1.1"] * (count - 1)
        elif scheme == "negotiate":
            wanted[1] = "HTTP/1.1"
        return {"version": "1.1" if is_login_of_connection(scheme, outcome) else "2",
                "also": {"HTTP": (lambda: [line.split()[1] for line in log.lines()], wanted)}}

    def behind(self, target):
        """An open origin behind a proxy."""
        if target not in TUNNELS:
            origin = self.stage.server(ScriptedServer(open_page))
            return origin.url + "/page", {"reached": lambda: [one.header("Proxy-Authorization") for one in origin.requests].count(None)}
        nginx = self.fixture("nginx_tls")
        log = Log(nginx, "https", nginx.port)
        return f"https://localhost:{nginx.port}/open.txt", {"version": "2", "reached": lambda: len(log.lines())}

    def nginx(self, scheme, target, outcome):
        """A site with Basic."""
        kind, protocol = ("https", "HTTP/2.0") if target == "h2" else ("http", "HTTP/1.1")
        server, (user, password) = self.fixture("nginx_tls" if target == "h2" else "nginx"), self.fixture("account")
        log = Log(server, kind, server.port)

        def verdict(line):
            status, remote, spoken, path = line.split()
            assert (spoken, path) == (protocol, "/staff/page.txt")
            return remote != "-", status == "200"

        answers = [password_answer(user, text) for text in [self.stage.secret(server), password]]
        return Site(f"{kind}://localhost:{server.port}/staff/page.txt", answers, lambda wanted: log.verdicts(verdict, wanted),
                    version="2" if target == "h2" else "1.1", body="staff page\n", refused_body="401 Authorization Required")

    def apache(self, scheme, target, outcome):
        """A site with Kerberos."""
        server = self.fixture("kerberos_apache")
        url, more = {"http": server.url, "https": server.tls_url}.get(target), {}
        if target == "h2":
            url, more = self.fixture("front").url("front", f"/whole/{server.port}"), self.spoken(scheme, outcome)
        log = Log(server, "http", server.port)

        def verdict(line):
            fields = shlex.split(line)
            return fields[4].startswith("Negotiate "), fields[:2] == ["200", "alice@WATCHWORD.TEST"]

        return Site(f"{url}/kerberos/page.txt", [], lambda wanted: log.verdicts(verdict, wanted), body="kerberos page\n", **more)

    def squid(self, scheme, target, outcome):
        squid, account = self.fixture("squid"), self.fixture("account")
        way = ("tls-" if target.startswith("tls") else "") + {"digest-md5": "digest"}.get(scheme, scheme)
        user = "alice@WATCHWORD.TEST" if scheme == "negotiate" else account[0]
        log = Log(squid, "http", squid.ports["open"], through=f"http://127.0.0.1:{self.fixture('nginx').port}")
        method = "CONNECT" if target in TUNNELS else "GET"

        def verdict(line):
            status, said_method, _, remote, port, said = shlex.split(line)[:6]
            if port != f"port={squid.ports[way]}" or said_method not in {"GET", "CONNECT"}:
                return None
            return said != "-", (status, said_method, remote) == ("200", method, user)

        url, more = self.behind(target)
        answers = [password_answer(account[0], text) for text in [self.stage.secret(squid), account[1]]]
        return Site(url, answers, lambda wanted: log.verdicts(verdict, wanted), proxy=squid.url(way), refused_body="Cache Access Denied", **more)

    def certificate(self, target, outcome):
        """nginx requests a certificate and continues without one. For a handshake that fails, a server of our own is needed."""
        certificates, front = self.fixture("certificates"), self.fixture("front")
        answers = [{"action": "credential", "credential": certificates.credential(f"{name}.pem", f"{name}.key")} for name in ["stranger", "client"]]
        if outcome == "wrong":
            return self.handshakes(certificates, target, answers)
        if target == "https":
            server = self.fixture("client_nginx")("optional", "TLSv1.2 TLSv1.3")
            url, log, spoken = server.url, Log(server, "https", server.port), {"body": "page for you\n"}
        else:
            url, log, spoken = front.url("certificate", ""), Log(front, "https", front.ports["certificate"]), {"version": "2", "body": HTTP2}

        def verdict(line):
            assert ("HTTP/2.0" in line) == (target == "h2")
            return 'SUCCESS "CN=Alice Client"' in line, line.startswith("200 ")

        return Site(url + "/page.txt", answers, lambda wanted: log.verdicts(verdict, wanted), **spoken)

    def handshakes(self, certificates, target, answers):
        """The records are those of handshakes: ended by the client, which then asks; refused; made as Alice."""
        needs, front = {"client_authority": certificates / "ca.pem"}, self.fixture("front")
        if target == "https":
            server, more = TlsServer(certificates, handler=open_page, **needs), {}
        else:
            server, log = Http2Front(certificates, front.ports["clear"], **needs), Log(front, "https", front.ports["certificate"])
            more = {"version": "2", "body": HTTP2, "also": {"HTTP": (lambda: [line.split()[:2] for line in log.lines()], [["200", "HTTP/2.0"]])}}
        self.stage.server(server)

        def verdict(number):
            if server.peers.get(number) == "Alice Client":
                return PASSED
            return REFUSED if dict(server.failures).get(number) == "CERTIFICATE_VERIFY_FAILED" else ASKED

        return Site(server.url + "/page.txt", answers, lambda wanted: settled(
            lambda: [verdict(number + 1) for number in range(server.connections)], wanted), **more)

    def trust(self, target, outcome):
        """The records are those of requests: none is sent over a connection that is not trusted."""
        answers = [{"action": "credential", "credential": {"type": "trust", "spkiSha256": "00" * 32}}, trust_answer]
        if target == "https":
            server = self.stage.server(TlsServer(self.fixture("certificates"), "self-signed", handler=open_page))
            return Site(server.url, answers, lambda wanted: [PASSED] * len(server.requests))
        front = self.fixture("front")
        log = Log(front, "https", front.ports["self-signed"])
        return Site(front.url("self-signed", "/page.txt"), answers, lambda wanted: log.verdicts(
            lambda line: (True, line.startswith("200 HTTP/2.0")), wanted), version="2", body=HTTP2)
