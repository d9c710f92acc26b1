"""A server for bodies larger than memory: it requires a login before an announced body, and records what it receives."""
import hashlib
import re

from .scripted import Request, ScriptedServer


class UploadServer(ScriptedServer):
    """`handler` is a check such as DigestCheck or NtlmCheck, called once for each request, before its body; with `is_late` its answer is
    sent after the body in any case.

    `bodies` contains (bytes, SHA-256, whether with a login) of each body received, whether it was accepted or not. `refused` counts the
    announced bodies that were not.
    """

    def __init__(self, handler, is_late=False):
        super().__init__(handler)
        self.is_late, self.bodies, self.refused = is_late, [], 0

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
                if is_announced and not self.is_late and not answer.startswith(b"HTTP/1.1 2"):
                    self.refused += 1
                    # The client may now send the body or close the connection.
                    connection.sendall(answer)
                    continue
                if is_announced:
                    connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                self._take(file, request)
                if self._answer(connection, request, answer):
                    return
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def _answer(self, connection, request, answer):
        """Responds after the body, of which `request.received` is the size and the SHA-256. Returns whether the connection ends."""
        connection.sendall(answer)
        return False

    def _head(self, file):
        head = b""
        while line := file.readline(1 << 16):
            if line == b"\r\n":
                return head
            if not head and not re.match(rb"[A-Z]+ ", line):
                raise ValueError("bytes of a body instead of a request line")
            head += line
        return b""

    def _take(self, file, request):
        digest, count = hashlib.sha256(), 0
        is_chunked = request.header("Transfer-Encoding") == "chunked"
        left = int(file.readline(), 16) if is_chunked else int(request.header("Content-Length") or 0)
        while left and (part := file.read(min(left, 1 << 20))):
            digest.update(part)
            count, left = count + len(part), left - len(part)
            if is_chunked and not left:
                file.readline()
                left = int(file.readline(), 16)
        if is_chunked:
            file.readline()
        request.received = (count, digest.hexdigest())
        if count:
            with self.lock:
                self.bodies.append((count, digest.hexdigest(), request.authorization is not None))
