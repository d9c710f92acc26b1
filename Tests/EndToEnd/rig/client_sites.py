"""A server behind Basic with all the resources on which the clients in contrib/clients are tested."""
import base64
import gzip
import hashlib
import http.server
import json
import os
import socket
import threading

# Larger than the limit for inline bodies.
LARGE = os.urandom(1 << 19) * 3
BINARY = b"\xff\xfe not UTF-8 \x00\xc3"


class ClientSite(http.server.ThreadingHTTPServer):
    """`seen` contains each request as (method, path, user or None), `wire` all headers received. `release` completes slow
    responses; `begun` and `ended_early` are the paths of those that began, and from which the client disconnected."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, user, password):
        super().__init__(("127.0.0.1", 0), Handler)
        self.right = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.port, self.seen, self.wire = self.server_port, [], b""
        self.url = f"http://127.0.0.1:{self.port}"
        self.release, self.given_up, self.slow = threading.Event(), threading.Event(), threading.Event()
        self.begun, self.ended_early, self.lock = [], [], threading.Lock()
        self.other = self.url
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def close(self):
        self.release.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        with self.server.lock:
            self.server.wire += bytes(str(self.headers), "latin-1")
        authorization = self.headers.get("Authorization")
        self.server.seen.append((self.command, self.path, authorization))
        body = b"".join(self._parts())
        name = self.path.split("?")[0].strip("/").replace("/", "_")
        if not name.startswith("open") and authorization != self.server.right:
            return self._say(401, b"please log in", ("WWW-Authenticate", 'Basic realm="Staff"'))
        getattr(self, f"say_{name}", self.say_page)(body)

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    def handle_expect_100(self):
        """Sends 100 Continue for an announced body if the login is correct."""
        if not self.path.startswith("/open") and self.headers.get("Authorization") != self.server.right:
            self.server.seen.append((self.command, self.path, None))
            self._say(401, b"", ("WWW-Authenticate", 'Basic realm="Staff"'))
            return False
        return super().handle_expect_100()

    def _parts(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while count := int(self.rfile.readline(), 16):
                yield self.rfile.read(count)
                self.rfile.readline()
            self.rfile.readline()
        elif length := int(self.headers.get("Content-Length") or 0):
            yield self.rfile.read(length)

    def _say(self, status, body, *headers):
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def say_page(self, body):
        self._say(200, b"staff page\n", ("Content-Type", "text/plain"))

    def say_binary(self, body):
        self._say(200, BINARY)

    def say_large(self, body):
        self._say(200, LARGE, ("Content-Type", "application/octet-stream"))

    def say_packed(self, body):
        """Sends a compressed response to clients that accept one."""
        packed = "gzip" in self.headers.get("Accept-Encoding", "")
        coding = [("Content-Encoding", "gzip")] if packed else []
        self._say(200, gzip.compress(b"packed page\n") if packed else b"unasked", *coding)

    def say_cookies(self, body):
        self._say(200, b"two\n", ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/"), ("X-Said", "caf\u00e9"))

    def say_echo(self, body):
        told = {"length": len(body), "sha256": hashlib.sha256(body).hexdigest(), "type": self.headers.get("Content-Type"),
                "method": self.command, "sized": self.headers.get("Content-Length"), "cookie": self.headers.get("Cookie")}
        self._say(200, json.dumps(told).encode(), ("Content-Type", "application/json"))

    def say_open_echo(self, body):
        self.say_echo(body)

    def say_redirect(self, body):
        self._say(302, b"", ("Location", f"{self.server.other}/page"))

    def say_open_refuse(self, body):
        self._say(403, b"no", ("X-Why", "because"))

    def say_slow(self, body):
        """Sends the first half at once, the second half when `release` is set. Sets `given_up` when the client disconnects."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"5\r\nfirst\r\n")
        self._note_begin()
        try:
            while not self.server.release.wait(0.05):
                if self._is_gone():
                    return self._note_early_end()
            self.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")
        except OSError:
            self._note_early_end()

    def say_silent(self, body):
        self._note_begin()
        while not self.server.release.wait(0.05):
            if self._is_gone():
                self.close_connection = True
                return self._note_early_end()
        self.say_page(body)

    def say_short(self, body):
        """Sends less than it announces."""
        self.send_response(200)
        self.send_header("Content-Length", str(4 << 20))
        self.end_headers()
        self.wfile.write(bytes(2 << 20))
        self.close_connection = True

    def _note_begin(self):
        self.server.begun.append(self.path)
        self.server.slow.set()

    def _note_early_end(self):
        self.server.ended_early.append(self.path)
        self.server.given_up.set()

    def _is_gone(self):
        self.connection.settimeout(0.01)
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except TimeoutError:
            return False
        except OSError:
            return True
        finally:
            try:
                self.connection.settimeout(None)
            except OSError:
                pass
