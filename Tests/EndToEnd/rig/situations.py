"""Runs curl and `watchword fetch` in the same situation, and compares their observable behaviour."""
import contextlib
import dataclasses
import os
import pathlib
import re
import socket
import subprocess
import tempfile

from .broker import program
from .scripted import ScriptedServer


class Server(ScriptedServer):
    def _serve(self, connection, number):
        if not connection.recv(1, socket.MSG_PEEK).isalpha():
            return connection.close()  # A TLS record, not HTTP.
        super()._serve(connection, number)


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
        folder = pathlib.Path(folder)
        for name, content in situation.files.items():
            (folder / name).write_bytes(content)
        words = [word.replace("{url}", server.url).replace("{port}", str(server.port)) for word in situation.arguments]
        done = subprocess.run(
            [*command, *words], cwd=folder, env=environment, input=situation.stdin, capture_output=True, timeout=30,
            start_new_session=True)
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with server.lock:
        requests, server.requests = server.requests, []
    if situation.is_concurrent:
        requests.sort(key=lambda request: request.target)
    return Observation(done.returncode, done.stdout, done.stderr, requests, files)


def observe(situation, broker):
    """Returns the outcomes of curl and then watchword, with one server."""
    with contextlib.closing(Server(situation.handler)) as server:
        theirs = run(["curl", "-q"], situation, server, {"PATH": os.environ["PATH"], "HOME": "/nonexistent"})
        environment = {**broker.environment, "WATCHWORD_SOCKET": broker.socket, "TERM": "dumb"}
        return theirs, run([program("watchword"), "fetch"], situation, server, environment)
