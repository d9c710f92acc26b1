"""A server that sends what a test wants, and records every byte that it receives, by connection."""
import base64
import contextlib
import hashlib
import itertools
import re
import socket
import struct
import threading
import urllib.parse


class Request:
    def __init__(self, connection, head, body):
        self.connection, self.raw, self.body = connection, head, body
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ", 2)
        self.headers = [(name, value.lstrip(" ")) for name, colon, value in (line.partition(":") for line in lines[1:]) if colon]

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def authorization(self):
        return self.header("Authorization")

    @property
    def path(self):
        return urllib.parse.urlsplit(self.target).path

    @property
    def query(self):
        return dict(self.query_pairs)

    @property
    def query_pairs(self):
        return urllib.parse.parse_qsl(urllib.parse.urlsplit(self.target).query, keep_blank_values=True)

    @property
    def form(self):
        return dict(self.form_pairs)

    @property
    def form_pairs(self):
        return urllib.parse.parse_qsl(self.body.decode("latin-1"), keep_blank_values=True)


#: Parts of an answer: both end the connection; RESET without an orderly end.
CLOSE, RESET = object(), object()
#: Nothing more is sent until the peer disconnects.
WAIT = object()


def response(status, body=b"", *headers, reason="X", length=True):
    """`length` is the announced one, if it is not that of the body, or None for none."""
    length = len(body) if length is True else length
    lines = [f"HTTP/1.1 {status} {reason}", *([] if length is None else [f"Content-Length: {length}"]), *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def head_from(stream):
    """Reads a head up to its empty line, or to the end of the connection."""
    return b"".join(itertools.takewhile(lambda line: line != b"\r\n", iter(stream.readline, b"")))


def end_listening(listener):
    """Closes a listening socket. close(2) alone does not wake a thread in accept(2), which would keep the socket listening, the thread
    running and everything that the server has recorded in memory, until the end of the run."""
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def reset_at_close(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def taken(buffer):
    """Returns the head and the body of the first request in `buffer`, and the rest, or None if the request is incomplete."""
    head, end, rest = buffer.partition(b"\r\n\r\n")
    if not end:
        return None
    if not re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found[1]) if found else 0
        return (head, rest[:length], rest[length:]) if len(rest) >= length else None
    body, count = b"", None
    while count != 0:
        size, line, rest = rest.partition(b"\r\n")
        if not line or len(rest) < (count := int(size, 16)) + 2:
            return None
        body, rest = body + rest[:count], rest[count + 2:]
    return head, body, rest


class ScriptedServer:
    """`handler(request)` returns the bytes of the response, or parts of it, which end with CLOSE, RESET or WAIT if the connection is not
    used again; None sends nothing and keeps the connection open, and between parts it is as CLOSE."""

    def __init__(self, handler, port=0):
        self.handler, self.requests, self.wire = handler, [], b""
        self.connections = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with self.lock:
                    self.connections += 1
                    number = self.connections
                threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _open(self, connection, number):
        """For servers with a protocol before HTTP, such as TLS: returns the connection to read from."""
        return connection

    def _send(self, connection, request, data):
        connection.sendall(data)

    def _respond(self, connection, request, early):
        """Responds to a request. Returns true if the connection is used otherwise afterwards, or must be closed. `early` is the
        data after the request."""
        answer = self.handler(request)
        for part in [] if answer is None else [answer] if answer is CLOSE or isinstance(answer, bytes) else answer:
            if part is RESET:
                reset_at_close(connection)
            if part in (None, CLOSE, RESET):
                return True
            if part is WAIT:
                return connection.recv(1) == b""
            self._send(connection, request, part)
        # A proxy that forwards one request waits for the end of the connection.
        return request.header("Connection") == "close"

    def _serve(self, connection, number):
        buffer = b""
        try:
            connection = self._open(connection, number)
            while data := connection.recv(1 << 16):
                with self.lock:
                    self.wire += data
                buffer += data
                while found := taken(buffer):
                    request, buffer = Request(number, *found[:2]), found[2]
                    with self.lock:
                        self.requests.append(request)
                    if self._respond(connection, request, buffer):
                        return
        except OSError:
            pass
        finally:
            connection.close()

    @property
    def authorizations(self):
        return [request.authorization for request in self.requests]

    def close(self):
        end_listening(self.listener)


def basic(user, password):
    """The value of Authorization."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def basic_server(user, password, realm="Staff", body=b"welcome"):
    right, refusal = basic(user, password), response(401, b"please log in", f'WWW-Authenticate: Basic realm="{realm}"')
    return ScriptedServer(lambda request: response(200, body) if request.authorization == right else refusal)


class DigestCheck:
    """The server's side of RFC 7616, computed with hashlib, independently of our code.

    `proof` selects the server's proof (rspauth): None sends none; others are "right", "wrong", "of another body", and "of the
    text" without the content coding.
    """

    FUNCTIONS = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}

    def __init__(
            self, user, password, realm="Staff", algorithm="MD5", opaque=None, stale_times=0,
            qop="auth,auth-int", charset=None, userhash=False, domain=None, announces=False, proof=None, body=b"welcome",
            encoding="utf-8", nonce_end="", fields=()):
        self.encoding, self.nonce_end = encoding, nonce_end
        self.user, self.password, self.realm, self.algorithm = user, password, realm, algorithm
        self.opaque, self.stale_left = opaque, stale_times
        self.qop, self.charset, self.userhash, self.domain = qop, charset, userhash, domain
        self.announces, self.proof, self.body, self.fields = announces, proof, body, fields
        self.text = body
        self.nonces, self.counts, self.problems, self.client_nonces = 0, {}, [], []
        self.sessions = {}  # nonce: (first nonce, first client nonce)
        self.lock = threading.Lock()

    def _hash(self, data):
        """The hash of bytes, or of a text as `response` sends it and `Request` reads it."""
        data = data if isinstance(data, bytes) else data.encode("latin-1")
        return hashlib.new(self.FUNCTIONS[self.algorithm.removesuffix("-sess")], data).hexdigest()

    def _new_nonce(self):
        # Each connection has a thread: the same nonce for two of them would look like a replay.
        with self.lock:
            self.nonces += 1
            return f"nonce{self.nonces}{self.nonce_end}"

    def challenge(self, stale=False):
        parts = [f'realm="{self.realm}"', f'nonce="{self._new_nonce()}"', f"algorithm={self.algorithm}"]
        given = {"qop": self.qop, "opaque": self.opaque, "charset": self.charset, "domain": self.domain}
        parts += [f'{name}="{value}"' for name, value in given.items() if value]
        parts += ["userhash=true"] * self.userhash + ["stale=true"] * stale
        return response(401, b"please log in", "WWW-Authenticate: Digest " + ", ".join(parts))

    def _expect(self, what, found, right):
        if found != right:
            self.problems.append(f"{what}: {found!r} and not {right!r}")

    def _check_user(self, found):
        name = self.user.encode(self.encoding)
        if self.userhash:
            right = {"username": self._hash(name + f":{self.realm}".encode("latin-1")), "userhash": "true"}
        elif self.charset == "UTF-8" and not self.user.isascii():
            right = {"username*": "UTF-8''" + urllib.parse.quote(self.user, safe="!#$&+-.^_`|~")}
        else:
            right = {"username": name.decode("latin-1")}
        self._expect("user", {key: found[key] for key in ("username", "username*", "userhash") if key in found}, right)
        return self.problems == []

    def _session_key(self, nonce, client_nonce):
        key = self._hash(b":".join([self.user.encode(self.encoding), self.realm.encode("latin-1"), self.password.encode(self.encoding)]))
        if not self.algorithm.endswith("-sess"):
            return key
        return self._hash(":".join([key, *self.sessions.setdefault(nonce, (nonce, client_nonce))]))

    def __call__(self, request):
        text = request.authorization
        if not text or not text.startswith("Digest "):
            return self.challenge()
        pairs = re.findall(r'([\w*]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))', text)
        found = {key: re.sub(r"\\(.)", r"\1", quoted) or bare for key, quoted, bare in pairs}
        self._expect("parameters", len(found), len(pairs))
        nonce, count, client_nonce = found.get("nonce"), found.get("nc", ""), found.get("cnonce")
        if self.stale_left > 0:
            self.stale_left -= 1
            return self.challenge(stale=True)
        if not re.fullmatch(r"[0-9a-f]{8}", count) or int(count, 16) <= self.counts.get(nonce, 0):
            self.problems.append(f"nc {count} after {self.counts.get(nonce, 0)} for {nonce}")
        self.counts[nonce] = int(count or "0", 16)
        self.client_nonces.append(client_nonce)
        self._expect("nonce", re.sub("[0-9]+", "", nonce or ""), f"nonce{self.nonce_end}")
        self._expect("uri", found.get("uri"), request.target)
        self._expect("opaque", found.get("opaque"), self.opaque)
        protection = "auth" if "auth" in self.qop.split(",") else "auth-int"
        self._expect("qop", found.get("qop"), protection)
        key = self._session_key(nonce, client_nonce)

        def digest(method, body):
            covered = f"{method}:{request.target}" + (f":{self._hash(body)}" if protection == "auth-int" else "")
            return self._hash(f"{key}:{nonce}:{count}:{client_nonce}:{protection}:{self._hash(covered)}")

        if found.get("response") != digest(request.method, request.body) or not self._check_user(found):
            return self.challenge()
        info = []
        if self.announces:
            info.append(f'nextnonce="{(announced := self._new_nonce())}"')
            self.sessions[announced] = self.sessions.get(nonce)
        if self.proof:
            proven = digest("", {"of another body": b"another", "of the text": self.text}.get(self.proof, self.body))
            proven = "0" * len(proven) if self.proof == "wrong" else proven
            info.append(f'qop={protection}, rspauth="{proven}", cnonce="{client_nonce}", nc={count}')
        return response(200, self.body, *self.fields, *(["Authentication-Info: " + ", ".join(info)] if info else []))


def bearer_server(token, realm="api", scope=None, body=b"for the bearer\n"):
    """RFC 6750: a plain challenge without a token, invalid_token for a wrong one, and insufficient_scope at /wider."""
    about = f'Bearer realm="{realm}"' + (f', scope="{scope}"' if scope else "")

    def handle(request):
        said = request.authorization
        if said is None:
            return response(401, b"please log in", f"WWW-Authenticate: {about}")
        if said != f"Bearer {token}":
            return response(
                401, b"no", f'WWW-Authenticate: {about}, error="invalid_token", error_description="The access token expired"')
        if request.target.startswith("/wider"):
            return response(403, b"not you", f'WWW-Authenticate: Bearer realm="{realm}", error="insufficient_scope", scope="admin"')
        return response(200, body)

    return ScriptedServer(handle)


def rounds_server(rounds, scheme="Hoba", body=b"after all rounds\n"):
    """A scheme in several rounds. `rounds` are pairs of the challenge after the scheme's name, and its answer. Any other request gets the
    first challenge."""
    turn = 0

    def handle(request):
        nonlocal turn
        is_answer = [request.authorization == f"{scheme} {rounds[number][1]}" for number in (turn, 0)]
        turn = turn + 1 if is_answer[0] else 1 if is_answer[1] else 0
        if turn == len(rounds):
            turn = 0
            return response(200, body)
        return response(401, b"please log in", f"WWW-Authenticate: {scheme} {rounds[turn][0]}")

    return ScriptedServer(handle)
