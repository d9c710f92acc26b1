"""What the servers do in the situations in which curl and `watchword fetch` are compared."""
import itertools

from .scripted import CLOSE, basic, response

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
        more = ", stale=true" if request.authorization else ""
        challenge = f'WWW-Authenticate: Digest realm="R", nonce="{next(nonces)}", qop="auth"{more}'
        return reply(401, b"log in\n", challenge, reason="Unauthorized")
    return handle


def coded(coding, body):
    return lambda request: reply(200, body, f"Content-Encoding: {coding}")


def chunks(data):
    return raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + data)
