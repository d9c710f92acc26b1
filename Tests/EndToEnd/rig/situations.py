"""Runs curl and `watchword fetch` in the same situation, and compares their observable behaviour."""
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import socket
import subprocess
import tempfile

from .broker import program
from .scripted import CLOSE, ScriptedServer, basic, response


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
    found = re.search(r"boundary=(\S+)", request.header("Content-Type") or "")
    boundary = found[1] if found else "\0"
    fields = [(name.lower(), "N" if found and name.lower() == "content-length" else value.strip().replace(boundary, "BOUNDARY"))
              for name, value in request.headers]
    fields = sorted(field for field in fields if not any(rule(*field) for rule in ignored))
    return (request.method, request.target, request.version, fields, request.body.replace(boundary.encode(), b"BOUNDARY"))


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


PAGE = b"the page\n"


def reply(status=200, body=PAGE, *fields, reason="OK"):
    return response(status, body, *fields, reason=reason)


def page(request):
    fields = ["Content-Type: text/csv", "X-Two: a", "X-Two: b"]
    return reply(200, b"" if request.method == "HEAD" else PAGE, *fields)


def echo(request):
    return reply(200, request.method.encode() + b" " + request.target.encode() + b"\n" + request.body)


def status(code, *fields, body=b"no\n", reason="X"):
    return lambda request: reply(code, b"" if request.method == "HEAD" else body, *fields, reason=reason)


def raw(data, end=CLOSE):
    return lambda request: [data, end]


def redirect(code, to="/there", *fields):
    """Redirects every path except /there."""
    def handle(request):
        if request.target.startswith("/there"):
            return echo(request)
        return reply(code, b"moved\n", f"Location: {to}", *fields, reason="Moved")
    return handle


def endless(request):
    number = int(request.target.strip("/") or 0)
    return reply(302, b"", f"Location: /{number + 1}", reason="Found")


def ranges(request):
    data = b"0123456789"
    given = request.header("Range")
    if not given:
        return reply(200, data, 'ETag: "v1"', "Accept-Ranges: bytes")
    first, _, last = given.removeprefix("bytes=").partition("-")
    start = int(first) if first else max(0, len(data) - int(last))
    end = min(int(last), 9) if first and last else 9
    if start > 9:
        return reply(416, b"", "Content-Range: bytes */10", reason="Range Not Satisfiable")
    part = data[start:end + 1]
    return reply(206, part, f"Content-Range: bytes {start}-{end}/10", 'ETag: "v1"', reason="Partial Content")


def login(scheme="Basic"):
    def handle(request):
        if request.authorization == basic("bob", "pw"):
            return reply(200, b"welcome\n")
        return reply(401, b"log in\n", f'WWW-Authenticate: {scheme} realm="R"', reason="Unauthorized")
    return handle


def answered(challenge):
    """Accepts every login."""
    return lambda request: reply(200, b"welcome\n") if request.authorization else reply(401, b"log in\n", f"WWW-Authenticate: {challenge}")


def digest(*fields, stale=False):
    """`stale`: whether each login is for an old nonce."""
    nonces = itertools.count()

    def handle(request):
        if request.authorization and not stale:
            return reply(200, b"welcome\n", *fields)
        challenge = f'WWW-Authenticate: Digest realm="R", nonce="{next(nonces)}", qop="auth"' + ", stale=true" * bool(request.authorization)
        return reply(401, b"log in\n", challenge, reason="Unauthorized")
    return handle


def coded(coding, body):
    return lambda request: reply(200, body, f"Content-Encoding: {coding}")


def chunks(data):
    return raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
