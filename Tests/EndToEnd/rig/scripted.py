"""A server that says what a test wants and records every byte it hears, by connection."""
import hashlib
import re
import socket
import threading


class Request:
    def __init__(self, connection, head, body):
        self.connection, self.raw, self.body = connection, head, body
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ", 2)
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:] if ": " in line]

    def header(self, name):
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def authorization(self):
        return self.header("Authorization")


def response(status, body=b"", *headers):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class ScriptedServer:
    """`handler(request)` returns the bytes of the response, or None to say nothing and keep the connection."""

    def __init__(self, handler):
        self.handler, self.requests, self.wire = handler, [], b""
        self.connections = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        buffer = b""
        try:
            while data := connection.recv(1 << 16):
                with self.lock:
                    self.wire += data
                buffer += data
                while b"\r\n\r\n" in buffer:
                    head, rest = buffer.split(b"\r\n\r\n", 1)
                    found = re.search(rb"(?i)content-length: *(\d+)", head)
                    length = int(found.group(1)) if found else 0
                    if len(rest) < length:
                        break
                    request = Request(number, head, rest[:length])
                    buffer = rest[length:]
                    with self.lock:
                        self.requests.append(request)
                    answer = self.handler(request)
                    if answer is not None:
                        connection.sendall(answer)
        except OSError:
            pass
        finally:
            connection.close()

    @property
    def authorizations(self):
        return [request.authorization for request in self.requests]

    def close(self):
        self.listener.close()


def basic_server(user, password, realm="Staff", body=b"welcome"):
    import base64

    right = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def handle(request):
        if request.authorization == right:
            return response(200, body)
        return response(401, b"please log in", f'WWW-Authenticate: Basic realm="{realm}"')

    return ScriptedServer(handle)


class DigestCheck:
    """The server's side of RFC 7616, computed here with hashlib and not by anything of ours."""

    FUNCTIONS = {"MD5": "md5", "SHA-256": "sha256", "SHA-512-256": "sha512_256"}

    def __init__(self, user, password, realm="Staff", algorithm="MD5", opaque=None, stale_times=0, one_use=False):
        self.user, self.password, self.realm, self.algorithm = user, password, realm, algorithm
        self.opaque, self.stale_left, self.one_use = opaque, stale_times, one_use
        self.nonces, self.counts, self.problems = 0, {}, []

    def _hash(self, text):
        return hashlib.new(self.FUNCTIONS[self.algorithm.removesuffix("-sess")], text.encode()).hexdigest()

    def challenge(self, stale=False):
        self.nonces += 1
        parts = [f'realm="{self.realm}"', f'nonce="nonce{self.nonces}"', 'qop="auth,auth-int"', f"algorithm={self.algorithm}"]
        if self.opaque:
            parts.append(f'opaque="{self.opaque}"')
        if stale:
            parts.append("stale=true")
        return response(401, b"please log in", "WWW-Authenticate: Digest " + ", ".join(parts))

    def __call__(self, request):
        text = request.authorization
        if not text or not text.startswith("Digest "):
            return self.challenge()
        found = {key: quoted or bare for key, quoted, bare in re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]*))', text)}
        nonce, count = found.get("nonce"), found.get("nc", "")
        if self.stale_left > 0:
            self.stale_left -= 1
            return self.challenge(stale=True)
        if not re.fullmatch(r"[0-9a-f]{8}", count) or int(count, 16) <= self.counts.get(nonce, 0):
            self.problems.append(f"nc {count} after {self.counts.get(nonce, 0)} for {nonce}")
        self.counts[nonce] = int(count or "0", 16)
        if found.get("uri") != request.target or found.get("opaque") != self.opaque:
            self.problems.append(f"uri {found.get('uri')} opaque {found.get('opaque')}")
        key = self._hash(f"{self.user}:{self.realm}:{self.password}")
        if self.algorithm.endswith("-sess"):
            key = self._hash(f"{key}:{nonce}:{found.get('cnonce')}")
        rest = f"{nonce}:{count}:{found.get('cnonce')}:{found.get('qop')}:" + self._hash(f"{request.method}:{request.target}")
        if found.get("username") == self.user and found.get("response") == self._hash(f"{key}:{rest}"):
            return response(200, b"welcome")
        return self.challenge()
