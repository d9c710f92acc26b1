"""Runs curl and `watchword fetch` in the same situation, and compares their observable behaviour."""
import dataclasses
import os
import re
import socket
import struct
import subprocess
import tempfile

from .broker import program
from .scripted import Request, ScriptedServer


class Server(ScriptedServer):
    """`handler(request)` returns bytes, or bytes and what happens to the connection: "close" or "reset"."""

    def _respond(self, connection, request, early):
        answer, end = self.handler(request), None
        if isinstance(answer, tuple):
            answer, end = answer
        connection.sendall(answer)
        if end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return end is not None

    def _serve(self, connection, number):
        buffer = b""
        try:
            while data := connection.recv(1 << 16):
                buffer += data
                if not buffer[:1].isalpha():
                    return  # A TLS record, not HTTP.
                while (request := self._taken(buffer, number)) is not None:
                    found, buffer = request
                    with self.lock:
                        self.requests.append(found)
                    if self._respond(connection, found, buffer):
                        return
        except OSError:
            pass
        finally:
            connection.close()

    @staticmethod
    def _taken(buffer, number):
        """Returns the first request in `buffer` and the rest, or None if the request is incomplete."""
        head, end, rest = buffer.partition(b"\r\n\r\n")
        if not end:
            return None
        if re.search(rb"(?i)\r\ntransfer-encoding: *chunked", head):
            body = b""
            while True:
                size, line, rest = rest.partition(b"\r\n")
                if not line:
                    return None
                count = int(size, 16)
                if len(rest) < count + 2:
                    return None
                body, rest = body + rest[:count], rest[count + 2:]
                if count == 0:
                    return Request(number, head, body), rest
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        return (Request(number, head, rest[:length]), rest[length:]) if len(rest) >= length else None


@dataclasses.dataclass
class Situation:
    """`arguments` may contain {url} and {port}. `differs` maps the names of differences in watchword-curl(7) to the aspects in
    which they show. `is_concurrent`: the requests may arrive in any order."""
    name: str
    arguments: list
    handler: object
    differs: dict = dataclasses.field(default_factory=dict)
    stdin: bytes = b""
    files: dict = dataclasses.field(default_factory=dict)
    is_concurrent: bool = False


ASPECTS = ("exit", "stdout", "requests", "files")


@dataclasses.dataclass
class Observation:
    exit: int
    stdout: bytes
    stderr: bytes
    requests: list
    files: dict

    def without(self, ignored):
        """Returns the outcome with the requests in a comparable form."""
        return dataclasses.replace(self, requests=[shown(request, ignored) for request in self.requests])

    def difference(self, other):
        return [aspect for aspect in ASPECTS if getattr(self, aspect) != getattr(other, aspect)]


def shown(request, ignored):
    """Returns a request in a comparable form: without the order of its fields, and without what `ignored` matches."""
    body, target = request.body, request.target
    found = re.search(r"boundary=(\S+)", request.header("Content-Type") or "")
    boundary = found.group(1) if found else None
    fields = []
    for name, value in request.headers:
        name, value = name.lower(), value.strip()
        if boundary:
            value = value.replace(boundary, "BOUNDARY")
        if name == "content-length" and boundary:
            value = "N"
        if not any(rule(name, value) for rule in ignored):
            fields.append((name, value))
    if boundary:
        body = body.replace(boundary.encode(), b"BOUNDARY")
    return (request.method, target, request.version, sorted(fields), body)


def run(command, situation, server, environment):
    """Runs one program in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in situation.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        words = [word.replace("{url}", server.url).replace("{port}", str(server.port)) for word in situation.arguments]
        done = subprocess.run(
            [*command, *words], cwd=folder, env=environment, input=situation.stdin, capture_output=True, timeout=30,
            start_new_session=True)
        files = {}
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, folder)] = file.read()
    with server.lock:
        requests, server.requests = server.requests, []
    if situation.is_concurrent:
        requests.sort(key=lambda request: request.target)
    return Observation(done.returncode, done.stdout, done.stderr, requests, files)


CURL = ["curl", "-q"]


def observe(situation, broker):
    """Returns the outcomes of curl and then watchword, with one server."""
    server = Server(situation.handler)
    try:
        plain = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        theirs = run(CURL, situation, server, plain)
        environment = {**broker.environment, "WATCHWORD_SOCKET": broker.socket, "TERM": "dumb"}
        ours = run([program("watchword"), "fetch"], situation, server, environment)
        return theirs, ours
    finally:
        server.close()
