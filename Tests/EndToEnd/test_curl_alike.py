"""curl and `watchword fetch` in the same situations: all differences are in watchword-curl(7), and all that it lists exist."""
import concurrent.futures
import contextlib
import dataclasses
import gzip
import itertools
import os
import pathlib
import re
import shlex
import socket
import subprocess
import tempfile
import zlib

import pytest

from rig.broker import ROOT, Broker, program
from rig.scripted import CLOSE, RESET, ScriptedServer, basic, response
from rig.terminal import Shell


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


S = Situation
OUT = "{url}/a/report.csv"


def each(handler, *lines, **more):
    """Situations with these options, each named by them; a line that names no URL is for `OUT`."""
    return [S(line, ["-s", *shlex.split(line), *([] if re.search("{|://", line) else [OUT])], handler, **more) for line in lines]


TRANSFER = [
    S("plain", [OUT], page),
    S("silent", ["-s", OUT], page),
    S("long silent", ["--silent", "--show-error", OUT], page),
    S("letters together", ["-sSfL", OUT], page),
    *each(page, "-i", "-I"),
    S("include with a reason", ["-s", "-i", OUT], status(404, reason="Not There At All")),
    S("include without a reason", ["-s", "-i", OUT], lambda request: b"HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok"),
    S("head of an error", ["-s", "-I", OUT], status(404, reason="Not Found")),
    S("http 1.0", ["-s", "-i", OUT], raw(b"HTTP/1.0 200 Fine\r\nX-A: b\r\n\r\nto the end")),
    S("204", ["-s", "-i", OUT], lambda request: b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"),
    S("interim response", ["-s", "-i", OUT], lambda request: b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + page(request), {"interim": ["stdout"]}),
    S("folded field", ["-s", "-i", OUT], lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A: b\r\n c\r\n\r\n", {"header-bytes": ["stdout"]}),
    S("field with blanks", ["-s", "-i", OUT], lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-A:   b  \r\n\r\n", {"header-bytes": ["stdout"]}),
    S("empty body", ["-s", OUT], status(200, body=b"")),
    S("chunked", ["-s", OUT], chunks(b"4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n")),
    S("chunked with trailers", ["-s", OUT], chunks(b"4\r\nabcd\r\n0\r\nX-T: 1\r\n\r\n")),
    S("chunk extension", ["-s", OUT], chunks(b"4;a=b\r\nabcd\r\n0\r\n\r\n")),
    S("binary body", ["-s", OUT], lambda request: reply(200, bytes(range(256)) * 40)),
    S("large body", ["-s", OUT], lambda request: reply(200, b"x" * 3_000_000)),
    *each(echo, "{url}/1 {url}/2", "--url {url}/1", "{url}/2 --url {url}/1", "{url}/a?b=c#d", "{url}/a/../b/./c", "{url}",
        "{url}?a=b", "{url}/%7Ebob/%2F/a%20b"),
]

FAILURES = [
    S("empty reply", ["-s", OUT], raw(b"")),
    S("reset instead of a reply", ["-s", OUT], raw(b"", RESET)),
    S("not HTTP", ["-s", OUT], raw(b"SSH-2.0-OpenSSH_9.2\r\n")),
    S("not HTTP at length", ["-s", OUT], raw(b"hello, this is not HTTP at all\r\n" * 20)),
    S("HTTP/3 in the status line", ["-s", OUT], raw(b"HTTP/9.9 200 OK\r\n\r\nx")),
    S("status without a number", ["-s", OUT], raw(b"HTTP/1.1 abc OK\r\n\r\nx")),
    S("ends in the header", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Le"), {"cut-header": ["exit"]}),
    S("ends in the body", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")),
    S("ends in the body, to a file", ["-s", "-o", "out", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), {"incomplete-files": ["files"]}),
    S("reset in the body", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", RESET)),
    S("bad chunk", ["-s", OUT], chunks(b"zz\r\nabcd\r\n")),
    S("bad second chunk", ["-s", OUT], chunks(b"4\r\nabcd\r\nxyz\r\n")),
    S("chunks end early", ["-s", OUT], chunks(b"4\r\nabcd\r\n")),
    S("bad gzip", ["-s", "--compressed", OUT], coded("gzip", b"this is not gzip"), {"codings": []}),
    S("unknown coding", ["-s", "--compressed", OUT], coded("pack200", b"x"), {"codings": []}),
    S("two lengths", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), {"two-lengths": ["exit", "stdout"]}),
    S("bad length", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabcd")),
    *[S(f"length {length}", ["-s", OUT], raw(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabcd".encode()), {"malformed": ["exit", "stdout"]}) for length in ["4x", "+4", "9223372036854775808"]],
    S("blank before a colon", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nA : b\r\nContent-Length: 4\r\n\r\nabcd")),
    S("blank before the colon of a length", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length : 4\r\n\r\nabcd"), {"malformed": ["exit", "stdout"]}),
    S("small letters in the status line", ["-s", OUT], raw(b"http/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"), {"malformed": ["exit", "stdout"]}),
    S("folded first field", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\n A: b\r\nContent-Length: 4\r\n\r\nabcd"), {"codes": ["exit"]}),
    S("0x in front of a chunk size", ["-s", OUT], chunks(b"0x4\r\nabcd\r\n0\r\n\r\n"), {"codes": ["exit"]}),
    S("large field", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 120_000 + b"\r\n\r\nabcd"), {"codes": ["exit"]}),
    S("unrequested 101", ["-s", OUT], raw(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), {"unrequested": ["exit"]}),
    S("negative length", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabcd")),
    S("NUL in a field", ["-s", OUT], raw(b"HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 1\r\n\r\nx")),
    *each(page, "http://nowhere.invalid/", "http://127.0.0.1:1/", "http://", "http://127.0.0.1:99999/", "foo://127.0.0.1/",
        "'{url}/a b'", "--nosuchoption", "-W", "-m abc", "--max-redirs abc", "-I -d x", "-d x -F a=b", "-o /dev/full",
        "-T none", "--max-filesize 5", "-o out --max-filesize 5"),
    *[S(f"{url}", ["-s", url], echo, {"strict-urls": ["exit", "stdout", "requests"]}) for url in [
        "http://127.1:{port}/x", "http://0x7f.1:{port}/x", "http://2130706433:{port}/x", "http://loc%61lhost:{port}/x", "http:/127.0.0.1:{port}/x",
        "http:///127.0.0.1:{port}/x"]],
    S("URL of 20,000 bytes", ["-s", "{url}/" + "x" * 20_000], echo, {"strict-urls": ["exit", "stdout", "requests"]}),
    *[S(f"URL with {text}", ["-s", "{url}/" + text], echo, {"url-characters": ["stdout", "requests"]}) for text in ["é", "a|b", 'a"b', "%2e%2e/b"]],
    S("host in capital letters", ["-s", "http://LOCALHOST:{port}/"], echo, {"url-characters": ["requests"]}),
    S("no URL", ["-s"], page),
    S("option without its value", ["-s", OUT, "-o"], page),
    S("404", ["-s", OUT], status(404)),
    *each(status(404), "-f", "--fail-with-body", "-f -o out"),
    S("500 with -f", ["-s", "-f", OUT], status(500)),
    S("399 with -f", ["-s", "-f", OUT], status(399)),
    S("404 with -f -i", ["-s", "-f", "-i", OUT], status(404), {"fail-include": ["stdout"]}),
    S("404 then 200, -f", ["-s", "-f", "{url}/1", "{url}/2"], lambda request: status(404)(request) if request.target == "/1" else echo(request), {"code-of-several": ["exit"]}),
    *each(lambda request: status(404)(request) if request.target == "/1" else echo(request), "-f {url}/2 {url}/1",
        "-f --fail-early {url}/1 {url}/2"),
    *each(page, "-o none/out", "-o .", differs={"opens-first": ["requests"]}),
    S("data from a missing file", ["-s", "-d", "@none", OUT], page, {"missing-input": ["exit", "stdout", "requests"]}),
    S("too large without a length", ["-s", "--max-filesize", "5", OUT], chunks(b"9\r\n123456789\r\n0\r\n\r\n"), {"filesize": ["exit", "stdout"]}),
    # Long enough to send the request on a busy machine.
    S("silent server", ["-s", "-m", "2", OUT], lambda request: b""),
]

HEADERS = [
    *each(page, "-H Host:", "-H 'Host: other'", "-H 'Authorization: Basic x'", "-H 'Connection: close'",
        differs={"reserved-fields": ["exit", "stdout", "requests"]}),
    S("-H Expect: with a large body", ["-s", "-H", "Expect:", "-d", "@big", OUT], page, files={"big": b"x" * 2_000_000}),
    S("-H @file", ["-s", "-H", "@fields", OUT], page, files={"fields": b"X-A: b\nX-C: d\n"}),
    S("-H @file with CRLF", ["-s", "-H", "@fields", OUT], page, files={"fields": b"X-A: b\r\nX-C;\r\n\r\nAccept:\r\n"}),
    S("-H @-", ["-s", "-H", "@-", OUT], page, stdin=b"X-A: b\n"),
    S("-H @missing", ["-s", "-H", "@none", OUT], page, {"missing-input": ["exit", "stdout", "requests"]}),
    S("-H with a bad name", ["-s", "-H", "A B: c", OUT], page, {"invalid-fields": ["exit", "stdout", "requests"]}),
    *each(page, "-A ''", "-e ''", "-H 'X-A: b' -H X-C:d", "-H 'X-A: b' -H 'X-A: c'", "-H X-A;", "-H X-A:", "-H Accept:",
        "-H 'accept: text/csv'", "-H User-Agent:", "-H Expect: -d a=b", "-H Content-Type: -d a=b",
        "-H 'content-type: text/plain' -d a=b", "-H nothing", "-A report/1", "-A report/1 -H 'User-Agent: x'",
        "-e http://h.example/", "-e http://h.example/ -H Referer:", "-b a=b", "-b a=b -H 'Cookie: c=d'", "-r 0-1,4-5", "-r x"),
    S("-C 5 where nothing continues", ["-s", "-C", "5", OUT], page),
    S("-e ;auto", ["-s", "-e", "http://h.example/;auto", OUT], page, {"--referer": ["requests"]}),
    S("-b twice", ["-s", "-b", "a=b", "-b", "c=d", OUT], page, {"--cookie": ["requests"]}),
    S("-b a file", ["-s", "-b", "jar", OUT], page, {"--cookie": ["exit", "stdout", "requests"]}, files={"jar": b""}),
    S("--compressed", ["-s", "--compressed", OUT], coded("gzip", gzip.compress(PAGE)), {"codings": []}),
    S("--compressed, deflate", ["-s", "--compressed", OUT], coded("deflate", zlib.compress(PAGE)), {"codings": []}),
    S("unrequested gzip", ["-s", OUT], coded("gzip", gzip.compress(PAGE, mtime=0))),
    S("-C - to a part", ["-s", "-C", "-", "-o", "out", OUT], ranges, {"--continue-at": ["requests"]}, files={"out": b"01234"}),
    S("-C 50", ["-s", "-C", "50", OUT], ranges, {"--continue-at": ["exit"]}),
    *each(ranges, "-r 0-3", "-r 4-", "-r -3", "-r -101", "-r-3", "-r 4", "-r 0-3 -H 'Range: bytes=5-6'", "-C 5", "-C 0",
        "-C -", "-C - -o out"),
]

METHODS = [
    *each(echo, "-X 'A B'", "-X TRACE", differs={"methods": ["exit", "stdout", "requests"]}),
    *each(echo, "-d ''", "-X DELETE", "-X delete", "-X PURGE", "-d a=b", "-d a=b -d c", "-d -x", "--data-raw @in",
        "--data-ascii 'x y'", "--data-urlencode 'a=b c&d'", "--data-urlencode '=x y'", "-d a -X PUT", "-d a -X GET",
        "-G -d a=b -d c=d", "-G -d a=b {url}/x?y=z", "-G", "--url-query 'a=b c'",
        "--url-query a=b --url-query '+c d' {url}/x?y=z", "--url-query a=b -d c"),
    S("-d @file", ["-s", "-d", "@in", OUT], echo, files={"in": b"a\nb\r\nc"}),
    S("-d @-", ["-s", "-d", "@-", OUT], echo, stdin=b"from stdin\n"),
    S("--data-binary", ["-s", "--data-binary", "@in", OUT], echo, files={"in": b"a\nb\r\nc\0"}),
    S("--data-urlencode @file", ["-s", "--data-urlencode", "n@in", OUT], echo, files={"in": b"a b\n"}),
    S("-G -I -d", ["-s", "-G", "-I", "-d", "a=b", OUT], lambda request: reply(200, b"", "X-Target: " + request.target)),
    *each(page, "-o out -F a=b -F c=d", "-o out --form-string a=@b"),
    S("-F file", ["-s", "-o", "out", "-F", "f=@in.txt", OUT], page, files={"in.txt": b"text"}),
    S("-F with a type", ["-s", "-o", "out", "-F", "f=@in;type=text/x", "-F", "t=<in", OUT], page, files={"in": b"text"}),
    *each(echo, "-T in {url}/put", "-T in {url}/folder/", "-T in -X POST {url}/put", differs={"expect": []},
        files={"in": b"content"}),
    S("-T empty file", ["-s", "-T", "in", "{url}/put"], echo, files={"in": b""}),
    S("-T -", ["-s", "-T", "-", "{url}/put"], echo, stdin=b"streamed"),
    S("large -d", ["-s", "-o", "out", "-d", "@in", OUT], page, files={"in": b"x" * 1_500_000}),
]

REDIRECTS = [
    S("302 without -L", ["-s", OUT], redirect(302)),
    *[S(f"{code} -L", ["-s", "-L", OUT], redirect(code)) for code in (301, 302, 303, 307, 308)],
    *[S(f"{code} -L", ["-s", "-L", OUT], redirect(code), {"redirects": ["requests", "stdout"]}) for code in (300, 305, 306, 309, 399)],
    S("304 -L with Location", ["-s", "-L", OUT], redirect(304), {"redirects": ["requests", "stdout"]}),
    S("304 -L", ["-s", "-L", OUT], lambda request: b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
    S("302 -L without Location", ["-s", "-L", OUT], status(302)),
    S("302 -L with a cookie", ["-s", "-L", OUT], redirect(302, "/there", "Set-Cookie: a=1; Path=/"), {"cookies": ["requests"]}),
    *[S(f"{code} -L -d", ["-s", "-L", "-d", "a=b", OUT], redirect(code)) for code in (301, 302, 303, 307, 308)],
    *[S(f"{code} -L -X POST -d", ["-s", "-L", "-X", "POST", "-d", "a=b", OUT], redirect(code), {"empty-length": []} if code != 307 else {}) for code in (301, 302, 303, 307)],
    *each(redirect(302), "-L -X DELETE", "-L --post302 -d a=b", "-L --post301 -d a=b", "-i -L", "-D head -L",
        "-L --max-redirs 0", "--max-redirs 0", "-L --max-redirs -1"),
    S("303 of a DELETE", ["-s", "-L", "-X", "DELETE", OUT], redirect(303)),
    *each(redirect(303), "-L --post303 -d a=b"),
    S("303 -L -T", ["-s", "-L", "-T", "in", "{url}/put"], redirect(303), {"expect": []}, files={"in": b"c"}),
    S("302 -L -T", ["-s", "-L", "-T", "in", "{url}/put"], redirect(302), {"expect": []}, files={"in": b"c"}),
    S("--post301", ["-s", "-L", "--post301", "-d", "a=b", OUT], redirect(301)),
    S("-I -L", ["-s", "-I", "-L", OUT], lambda request: reply(302, b"", "Location: /there") if request.target != "/there" else reply(200, b"", "X-A: b")),
    S("-i -L, two", ["-s", "-i", "-L", "{url}/1"], lambda request: redirect(302, "/2")(request) if request.target == "/1" else redirect(301, "/there")(request)),
    S("--max-redirs 0 -i", ["-s", "-i", "-L", "--max-redirs", "0", OUT], redirect(302), {"redirect-limit": ["stdout"]}),
    *each(endless, "-L --max-redirs 3 {url}/0", "-L {url}/0"),
    S("--max-redirs 60", ["-s", "-L", "--max-redirs", "60", "{url}/0"], endless, {"--max-redirs": ["requests"]}),
    S("to a relative place", ["-s", "-L", "{url}/a/b"], redirect(302, "../there?x=y")),
    S("to nowhere", ["-s", "-L", OUT], redirect(302, "http://nowhere.invalid/")),
    S("to another scheme", ["-s", "-L", OUT], redirect(302, "file:///etc/passwd"), {"bad-redirects": ["exit"]}),
    S("to a fragment", ["-s", "-L", OUT], redirect(302, "#x"), {"redirects": ["requests"]}),
    *[S(f"to {to}", ["-s", "-L", OUT], redirect(302, to), {"bad-redirects": ["exit"]}) for to in [
        "http:/there", "http:there", "http://[::1/there", "http://127.0.0.1:99999/", "http://127.1:1/there", "http://@127.0.0.1:1/", "mailto:x"]],
    S("to a backslash", ["-s", "-L", OUT], redirect(302, "/there\\a"), {"bad-redirects": ["exit", "stdout", "requests"]}),
    S("to a URL with a user", ["-s", "-L", OUT], lambda request: redirect(302, f"http://eve:pw@{request.header('Host')}/there")(request), {"bad-redirects": ["exit", "stdout", "requests"]}),
    S("with a fragment", ["-s", "-L", OUT], redirect(302, "/there#x")),
    S("with a blank", ["-s", "-L", OUT], redirect(302, "/there a b")),
    S("--proto-redir", ["-s", "-L", "--proto-redir", "=https", OUT], lambda request: reply(302, b"", "Location: /there")),
    *each(echo, "--proto-default http '127.0.0.1:{port}/x'", "--proto-default nosuch '127.0.0.1:{port}/x'"),
    S("no scheme", ["-s", "127.0.0.1:{port}/x"], echo, {"default-scheme": ["exit", "stdout", "requests"]}),
    *each(page, "--max-redirs 0 -L", "--proto =https", "--proto =http", "--proto -all,http"),
]

LOGINS = [
    *each(login(), "-u bob:pw", "http://bob:pw@127.0.0.1:{port}/x", differs={"logs-in-when-asked": ["requests"]}),
    S("-u wrong", ["-s", "-u", "bob:no", OUT], login(), {"logs-in-when-asked": ["requests"], "refused-login": ["exit", "stdout"]}),
    *each(page, "-u alice:pw", "--oauth2-bearer t", differs={"logs-in-when-asked": ["requests"]}),
    S("-u --anyauth", ["-s", "--anyauth", "-u", "bob:pw", OUT], login()),
    *[S(f"{user}@ in the URL", ["-s", f"http://{user}@127.0.0.1:{{port}}/x"], login(), {"users": ["exit", "stdout", "requests"]})
      for user in ["bob", "", "b%3Aob:pw", "b%0Aob:pw", "bob:pw%", "b%:pw", "bob:%zz"]],
    S("blank in a password in the URL", ["-s", "http://bob:p w@127.0.0.1:{port}/x"], login(), {"users": ["exit", "requests"]}),
    S("line feed in -u", ["-s", "-u", "bob:p\nw", OUT], login(), {"users": ["exit", "stdout", "requests"]}),
    *[S(f"challenge {text}", ["-s", "--anyauth", "-u", "bob:pw", OUT], answered(text), {"challenges": ["exit", *more]}) for text, *more in [
        ('Digest nonce="n", qop="auth"', "stdout", "requests"), ('Digest realm="R" nonce="n" qop="auth"', "stdout", "requests"),
        ('Digest realm="R", realm="S", nonce="n"', "stdout", "requests"), ('Basic realm="R', "stdout", "requests"),
        ('Basic, realm="R"', "stdout", "requests"), ('Basic realm="a", realm="b"', "stdout", "requests"), ("Foo", "stdout"), ("Bearer", "stdout")]],
    S("--digest", ["-s", "--digest", "-u", "bob:pw", OUT], digest('Authentication-Info: rspauth="00000000000000000000000000000000", qop=auth, nc=00000001'), {"proof": ["exit", "stdout", "requests"]}),
    S("--digest, stale", ["-s", "--digest", "-u", "bob:pw", OUT], digest(stale=True), {"stale": ["exit", "requests"]}),
    S("--disallow-username-in-url", ["-s", "--disallow-username-in-url", "http://bob:pw@127.0.0.1:{port}/x"], login()),
    S("--disallow-username-in-url without", ["-s", "--disallow-username-in-url", OUT], page),
    S("401 without a respondent", ["-s", OUT], login(), {"no-respondent": ["exit", "stdout"]}),
    S("401 without a challenge", ["-s", OUT], status(401)),
    S("407 from a server", ["-s", OUT], status(407, 'Proxy-Authenticate: Basic realm="x"')),
    S("-D of a login", ["-s", "-D", "head", "--anyauth", "-u", "bob:pw", OUT], login(), {"--dump-header": ["files"]}),
]

FILES = [
    S("-sO", ["-sO", OUT], page),
    S("-sOo", ["-sO", "{url}/1", "-oout", "{url}/2"], echo),
    S("-o over a file", ["-s", "-o", "out", OUT], page, files={"out": b"old and longer than the new one"}),
    S("--stderr", ["-sS", "--stderr", "errors", OUT], page),
    S("-R", ["-s", "-R", "-o", "out", OUT], lambda request: reply(200, PAGE, "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT")),
    S("-Z", ["-s", "-Z", "--no-progress-meter", "-o", "one", "{url}/1", "-o", "two", "{url}/2"], echo, is_concurrent=True),
    S("-g", ["-s", "-g", "{url}/{a,b}[1]"], echo, {"url-characters": ["stdout", "requests"]}),
    S("escaped braces", ["-s", "{url}/\\{a,b\\}"], echo, {"url-characters": ["stdout", "requests"]}),
    *each(page, "-o out", "-O", "-O {url}/", "-O {url}/name?x=y", "--remote-name-all --no-remote-name-all",
        "--create-dirs -o a/b/out", "--create-dirs --output-dir d -o out", "--create-dirs --output-dir d -O", "-D head",
        "-D -"),
    *each(echo, "-o out {url}/1 {url}/2", "-o one -o two {url}/1 {url}/2", "-o one {url}/1 -O {url}/2",
        "--remote-name-all {url}/1 {url}/2", "-D head {url}/1 {url}/2", "{url}/{a,b}", "{url}/[1-3]", "{url}/[08-10]",
        "{url}/[0-10:5]", "{url}/[a-c]", "{url}/{a,b}[1-2]", "-o out#1-#2 {url}/{a,b}[1-2]", "-o out#3 {url}/{a,b}",
        "-O {url}/{a,b}", "{url}/{a,b", "{url}/[1-3", "{url}/[3-1]", "{url}/{}"),
]

VARIABLES = """content_type errormsg exitcode filename_effective ftp_entry_path http_code http_connect http_version method
num_certs num_headers num_redirects proxy_ssl_verify_result redirect_url referer response_code scheme size_download size_header
size_upload ssl_verify_result url urlnum url_effective certs header_json""".split()
UNKNOWN_HERE = ["local_ip", "remote_port", "num_connects", "size_request"]
ALL = "|".join(f"{name}=%{{{name}}}" for name in VARIABLES) + "\\n"

REPORTS = [
    S("-w all", ["-s", "-o", "out", "-w", ALL, OUT], page),
    *[S(f"-w {name}", ["-s", "-o", "out", "-w", f"%{{{name}}}", OUT], page, {"--write-out": ["stdout"]}) for name in UNKNOWN_HERE],
    S("-w times", ["-s", "-o", "out", "-w", "%{time_connect}", OUT], page, {"--write-out": ["stdout"]}),
    S("-w json", ["-s", "-o", "out", "-w", "%{json}", OUT], page, {"--write-out": ["stdout"]}),
    S("-w all after a redirect", ["-s", "-L", "-o", "out", "-w", ALL, "-d", "a=b", OUT], redirect(302)),
    S("-w all without -L", ["-s", "-o", "out", "-w", ALL, OUT], redirect(302, "there?x")),
    S("-w all of an error", ["-s", "-w", ALL, OUT], status(404)),
    S("-w at a failure", ["-s", "-w", "%{http_code} %{exitcode} %{size_download} %{url_effective} %{num_headers} %{http_version} %{method}", "http://127.0.0.1:1/x"], page),
    S("-w errormsg", ["-s", "-w", "%{errormsg}", "http://127.0.0.1:1/"], page, {"messages": ["stdout"]}),
    S("-w escapes", ["-s", "-w", "\\n\\t\\r\\\\x %% %x %{open 100%", OUT], page),
    S("-w unknown", ["-s", "-w", "a%{nosuch}b", OUT], page),
    S("-w @file", ["-s", "-w", "@format", OUT], page, files={"format": b"%{http_code}\nx%{exitcode}\n"}),
    S("-w @-", ["-s", "-w", "@-", OUT], page, stdin=b"%{http_code}"),
    S("-w header", ["-s", "-w", "%header{x-two} %header{Content-Type} %header{none}", OUT], page),
    S("-w stderr", ["-s", "-w", "a%{stderr}b%{stdout}c", OUT], page),
    S("-w onerror", ["-s", "-w", "a%{onerror}b", OUT], page),
    S("-w onerror at a failure", ["-s", "-w", "a%{onerror}b", "http://127.0.0.1:1/"], page),
    S("-w of two", ["-s", "-w", "%{urlnum}%{http_code}\\n", "{url}/1", "{url}/2"], echo),
    S("-w -f", ["-s", "-f", "-w", "%{http_code}%{exitcode}", OUT], status(404)),
    S("-w of an upload", ["-s", "-w", "%{size_upload}", "-T", "in", "{url}/put"], page, {"expect": []}, files={"in": b"12345"}),
]

MORE = [
    S("--retry", ["-s", "--retry", "1", "--retry-delay", "1", OUT], status(503), {"retries": ["stdout"]}),
    S("-L --no-location", ["-s", "-L", "--no-location", OUT], redirect(302)),
    S("abbreviation", ["--sil", "--incl", OUT], page),
    S("--json", ["-s", "--json", '{"a":1}', OUT], echo, {"--json": ["exit", "stdout", "requests"]}),
    S("--noproxy of a host", ["-s", "--noproxy", "127.0.0.1", OUT], page, {"--noproxy": ["exit", "stdout", "requests"]}),
    *each(echo, "-x {url} http://h.example/x", "-m 5 -m 6 -X PUT -X DELETE"),
    S("-q", ["-q", "-s", OUT], page),
    S("option behind the URL", [OUT, "-s", "-i"], page),
    *each(page, "--re", "--connect-timeout 5", "--limit-rate 1M", "-m 0", "-Y 1 -y 5", "--noproxy *", "--", "-s -L -L"),
]

ALL_SITUATIONS = TRANSFER + FAILURES + HEADERS + METHODS + REDIRECTS + LOGINS + FILES + REPORTS + MORE


MANUAL = (ROOT / "contrib" / "man" / "watchword-curl.7").read_text()

# Differences in single fields of requests: they are checked for these situations, and ignored in the others.
FIELDS = {
    "user-agent": lambda name, value: name == "user-agent" and (value.startswith("curl/") or value == "watchword"),
    "expect": lambda name, value: (name, value) == ("expect", "100-continue"),
    "codings": lambda name, value: name == "accept-encoding",
    "empty-length": lambda name, value: (name, value) == ("content-length", "0"),
}
EVERYWHERE = {"user-agent"}


def section(name):
    return MANUAL.split(f".SH {name}\n")[1].split(".SH ")[0].replace("\\-", "-")


def listed(text):
    """Returns the name of every entry, and whether it can be compared."""
    return {name: not mark for mark, name in re.findall(r"(\.\\\" not compared\n)?\.TP\n\.B (.+)\n", text)}


DIFFERENCES = listed(section("DIFFERENCES"))
OPTIONS = {re.search(r"--[\w.-]+", name)[0]: compared for name, compared in listed(section("DIFFERENT")).items()}
KNOWN = {**DIFFERENCES, **OPTIONS}


@dataclasses.dataclass
class Finding:
    """The differences between the two programs, for each set of fields that may differ."""
    theirs: object
    ours: object

    def differing(self, ignored):
        return set(self.theirs.without(ignored).difference(self.ours.without(ignored)))


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    broker = Broker(tmp_path_factory.mktemp("alike")).start()
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            pairs = pool.map(lambda situation: observe(situation, broker), ALL_SITUATIONS)
            return {situation.name: Finding(*pair) for situation, pair in zip(ALL_SITUATIONS, pairs)}
    finally:
        assert broker.stop() == 0


def ignored_fields(names):
    return [FIELDS[name] for name in sorted(names) if name in FIELDS]


def test_there_are_enough_situations_and_each_has_a_name():
    names = [situation.name for situation in ALL_SITUATIONS]
    assert len(names) >= 150 and len(set(names)) == len(names)


@pytest.mark.parametrize("situation", ALL_SITUATIONS, ids=lambda situation: situation.name)
def test_only_what_the_page_lists_differs(findings, situation):
    finding = findings[situation.name]
    names = set(situation.differs)
    assert names <= set(KNOWN), f"watchword-curl(7) does not list {names - set(KNOWN)}"
    may = {aspect for name in names if name not in FIELDS for aspect in situation.differs[name]}
    assert may <= set(ASPECTS)
    found = finding.differing(ignored_fields(names | EVERYWHERE))
    more = found - may
    assert not more, {aspect: (getattr(finding.theirs, aspect), getattr(finding.ours, aspect)) for aspect in more} | {"stderr": finding.ours.stderr}
    assert found == may, f"no difference in {may - found}: watchword-curl(7) or the situation is out of date"
    for name in names & set(FIELDS):
        assert "requests" in finding.differing(ignored_fields((names | EVERYWHERE) - {name})), f"no difference of {name}"


def test_every_difference_of_the_page_occurs(findings):
    seen = {name for situation in ALL_SITUATIONS for name in situation.differs}
    if any("requests" in finding.differing([]) for finding in findings.values()):
        seen |= EVERYWHERE
    assert seen == {name for name, compared in KNOWN.items() if compared}


@pytest.fixture
def shell(stage):
    return Shell(stage.broker())


def options(text):
    return re.findall(r"(?:-(.), )?--([\w.-]*\w)", text.replace("\\-", "-"))


def values():
    """Returns the options that take a value, according to curl."""
    told = subprocess.run(["curl", "--help", "all"], capture_output=True, text=True, check=True).stdout
    return {long: " <" in rest[:2] or rest.startswith(" [") for long, rest in re.findall(r"^ *(?:-., )?--([\w.-]+)(.*)", told, re.M)}


def test_every_option_of_curl_is_listed_once():
    sections = ["IDENTICAL", "DIFFERENT", "IGNORED", "REFUSED"]
    heads = [section(name) if name != "DIFFERENT" else "\n".join(listed(section(name))) for name in sections]
    # The names of entries, not those in their texts.
    lists = [line for text in heads for line in text.splitlines() if line.startswith("-")]
    found = [long for line in lists for _, long in options(line)]
    assert len(found) == len(set(found)) and set(found) == set(values()), set(values()) ^ set(found)


def listed_options(name):
    return [long for line in section(name).splitlines() if line.startswith("-") for _, long in options(line)]


def test_refused_options_send_nothing(stage, shell):
    server = stage.server(lambda request: response(200))
    takes_value = values()
    for option in listed_options("REFUSED"):
        done = shell.run("fetch", f"--{option}", *["1"] * takes_value[option], server.url)
        assert (done.returncode, done.stdout) == (2, b""), (option, done)
        assert b"is refused" in done.stderr and done.stderr.count(b"\n") == 1, (option, done.stderr)
    assert server.requests == []


def test_ignored_options_change_nothing_and_are_noted(stage, shell):
    server = stage.server(lambda request: response(200, b"the page"))
    takes_value = values()
    named = [option for option in listed_options("IGNORED") if option != "disable"]
    words = [word for option in named for word in [f"--{option}", *["1"] * takes_value[option]]]
    shell.run("fetch", server.url)
    done = shell.run("fetch", *words, server.url)
    assert (done.returncode, done.stdout) == (0, b"the page")
    for option in named:
        assert re.search(rf"^watchword: note: (-., )?--{re.escape(option)} is ignored\. ".encode(), done.stderr, re.M), option
    assert done.stderr.count(b"\n") == len(named)
    for silent in ["-s", "-sS"]:
        assert shell.run("fetch", silent, *words, server.url).stderr == b""
    assert len({(request.method, request.target, tuple(request.headers)) for request in server.requests}) == 1
