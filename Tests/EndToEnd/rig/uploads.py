"""A server for bodies larger than memory: it requires a login before an announced body, and records what it receives."""
import hashlib
import re

from .scripted import Request, ScriptedServer


class UploadServer(ScriptedServer):
    """`handler` is a check such as DigestCheck or NtlmCheck, called once for each request, before its body.

    `bodies` contains (connection, bytes, SHA-256) of each body received, whether it was accepted or not.
    """

    def __init__(self, handler):
        super().__init__(handler)
        self.bodies = []

    def _serve(self, connection, number):
        file = connection.makefile("rb")
        try:
            while head := self._head(file):
                request = Request(number, head, b"")
                with self.lock:
                    self.wire += head
                    self.requests.append(request)
                answer = self.handler(request)
                is_announced = request.header("Expect") == "100-continue"
                if is_announced and not answer.startswith(b"HTTP/1.1 2"):
                    # The client may now send the body or close the connection.
                    connection.sendall(answer)
                    continue
                if is_announced:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                self._take(file, int(request.header("Content-Length") or 0), number)
                connection.sendall(answer)
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def _head(self, file):
        head = b""
        while line := file.readline(1 << 16):
            if line == b"\r\n":
                return head
            if not head and not re.match(rb"[A-Z]+ ", line):
                raise ValueError("bytes of a body instead of a request line")
            head += line
        return b""

    def _take(self, file, length, number):
        digest, left = hashlib.sha256(), length
        while left and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            left -= len(part)
        if length:
            with self.lock:
                self.bodies.append((number, length - left, digest.hexdigest()))
