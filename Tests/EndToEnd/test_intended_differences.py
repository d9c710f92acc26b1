"""The tables "Intended differences" of the documents: each cell of the column "Watchword" is what the broker does, as the probe of its
row returns it."""
import base64
import re
import socket
import struct

import pytest

from rig.broker import ROOT
from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy, open_site
from rig.scripted import DigestCheck, response
from rig.servers import private

ABSOLUTE, BOB = "GET {url}/ HTTP/1.1", {"type": "password", "user": "bob", "password": "secret"}
# A type 2 message without the flag for extended session security.
TYPE_2 = base64.b64encode(b"NTLMSSP\0" + struct.pack("<IHHII8s8xHHI", 2, 0, 0, 48, 0x8205, b"12345678", 0, 0, 48)).decode()


def front(*requests, sees=None, reply=response(200, b"page"), site=False):
    """A probe of what a front does with each request: what `sees` returns for the one that the server has received and for the
    response of the front, else the status. {url} and {own} are the URL of the server and the address of the front."""
    def probe(stage):
        server = stage.server(lambda request: reply)
        client = stage.client()
        address = open_site(client, server.url) if site else open_proxy(client)[0]
        found = set()
        for text in requests:
            before = len(server.requests)
            received = exchange(address, encoded(text.replace("{own}", "{}:{}".format(*address)), server))
            passed = server.requests[before:]
            found.add(sees(passed[0], received) if passed and sees else received.decode().split(" ")[1])
        return " or ".join(sorted(found))
    return probe


def encoded(text, server):
    text = text.replace("{url}", server.url).replace("{port}", str(server.port))
    return text.replace("\n", "\r\n").replace("\f", "\n").encode("latin-1")


def asking(*fields, line=ABSOLUTE, host="x", body=""):
    return "\n".join([line, f"Host: {host}", "Connection: close", *fields]) + "\n\n" + body


def posting(*fields, body="abc", line="POST {url}/ HTTP/1.1"):
    return asking(*fields, line=line, body=body)


def chunks(body):
    return posting("Transfer-Encoding: chunked", body=body)


def targets(*targets, method="GET"):
    return front(*(asking(line=f"{method} {target} HTTP/1.1") for target in targets))


def replies(*fields, status="HTTP/1.1 200 OK", sees=None):
    return front(asking(), reply="\r\n".join([status, *fields, "\r\npage"]).encode(), sees=sees)


def without(name, text):
    """Whether the request that the server has received, or else the response, lacks a text."""
    def sees(request, received):
        return name if text not in request.raw.lower() + request.body + received.lower() else "passed on"
    return sees


def merged(*probes):
    return lambda stage: " or ".join(sorted({probe(stage) for probe in probes}))


def via(stage):
    server = stage.server(lambda request: response(200, b"page"))
    address, _ = open_proxy(stage.client())
    for _ in range(2):
        exchange(address, encoded(asking(), server))
    names = {request.header("Via") for request in server.requests}
    return "another one each time" if len(names) == 2 else "the same"


def expectation(stage):
    server = stage.server(lambda request: None)
    with socket.create_connection(open_proxy(stage.client())[0], timeout=20) as connection:
        connection.sendall(encoded(posting("Expect: 100-continue", "Content-Length: 3", body=""), server))
        return "the front sends it" if connection.recv(100).startswith(b"HTTP/1.1 100 ") else "passed on"


def upstream(found):
    def probe(stage):
        proxy = stage.server(lambda request: response(407, b"", 'Proxy-Authenticate: Basic realm="up"'))
        client = stage.client(broker=stage.configured(f'[proxy]\nurl = "{proxy.url}"\n'))
        text = asking("Proxy-Authorization: Basic eDp5", line="GET http://h.example/ HTTP/1.1")
        received = exchange(open_proxy(client)[0], encoded(text, proxy))
        assert len(proxy.requests) == 1
        return found(proxy.requests[0], received)
    return probe


def login(*cases, answers=True, found=lambda server, reply: "answered" if server.authorizations[-1] else "not answered", configuration="",
          url="http://127.0.0.1:{port}/", **params):
    """A probe of a fetch from a server for each case: the handler of the server, or a list of challenges. `found` returns the text for
    the server and the reply."""
    def probe(stage):
        texts = set()
        for case in cases:
            server = stage.server(case if callable(case) else challenging(case))
            client = stage.client(
                delivery="request" if answers else None, broker=stage.configured(configuration.format(port=server.port)),
                answer=lambda asked: password_answer("bob", "secret") if asked["previousFailureCount"] == 0 else {"action": "continue"})
            texts.add(found(server, client.fetch(url.format(port=server.port), **params)))
        return " or ".join(sorted(texts))
    return probe


def challenging(challenges):
    def handle(request):
        return response(200) if request.authorization else response(401, b"", *(f"WWW-Authenticate: {one}" for one in challenges))
    return handle


def failing(kind, text="the fetch fails"):
    return lambda server, reply: text if reply.get("error", {}).get("data", {}).get("kind") == kind else f"{reply}"


def sending(text, *logins):
    """`text` if the last login that the server has received is Basic with one of these, or has them as a part."""
    def found(server, reply):
        sent = server.authorizations[-1] or ""
        return text if any(sent == "Basic " + base64.b64encode(one.encode()).decode() or one in sent for one in logins) else sent
    return found


def weak(stage):
    challenges = [["Basic"], ['Digest realm="d", nonce="n"']]
    asked = login(*challenges)(stage)
    unasked = netrc("machine 127.0.0.1:{port} login bob password secret", cases=challenges)(stage)
    return "asked about, no stored login" if (asked, unasked) == ("answered", "not used") else f"{asked}, {unasked}"


def netrc(*texts, mode=0o600, cases=(['Basic realm="x"'],)):
    """A probe of netrc files: whether the login is used for http://127.0.0.1:{port}/."""
    def probe(stage):
        found = set()
        for case in cases:
            for text in texts:
                server = stage.server(challenging(case))
                path = stage.folder / f"netrc{server.port}"
                path.write_text(text.format(port=server.port))
                path.chmod(mode)
                client = stage.client(delivery=None, broker=stage.configured(f'[credentials]\nnetrc = "{path}"\n'))
                client.fetch(server.url)
                found.add("used" if server.authorizations[-1] else "not used")
        return " or ".join(sorted(found))
    return probe


def default_port(stage):
    """Only the explicit port is one that a test can listen at."""
    found = [netrc(f"machine 127.0.0.1{port} login bob password secret")(stage) for port in ["", ":{port}"]]
    return "used for the default port" if found == ["not used", "used"] else f"{found}"


def missing_password(stage):
    server = stage.server(challenging(['Basic realm="x"']))
    client = stage.client(answer={"action": "continue"})
    client.fetch(f"http://bob@127.0.0.1:{server.port}/")
    users = [one["proposedCredential"]["user"] for one in client.asked]
    return "the password is asked for" if users == ["bob"] and server.authorizations == [None] else "sent"


def unasked(stage):
    found = [login(case, answers=False, credential=BOB, found=lambda server, _: f"{len(server.requests)}")(stage)
             for case in [lambda request: response(200), ['Basic realm="x"']]]
    return "sent after the challenge" if found == ["1", "2"] else f"{found}"


def large_upload(stage):
    """The body is not there any more when the challenge arrives."""
    server = stage.server(DigestCheck("bob", "secret", qop="auth-int"))
    client = stage.agent(password_answer("bob", "secret"))
    received = exchange(open_proxy(client)[0], encoded(posting("Content-Length: 100000", body="x" * 100_000), server))
    return received[9:12].decode() if server.authorizations == [None] else f"{server.authorizations}"


def elsewhere(challenge, **params):
    """A probe of a fetch of http://server.example/, a host that only a proxy knows."""
    def probe(stage):
        proxy, path = stage.server(challenging([challenge])), stage.folder / "netrc"
        private(path, "machine server.example login bob password secret")
        client = stage.client(delivery=None, broker=stage.configured(f'[credentials]\nnetrc = "{path}"\n[proxy]\nurl = "{proxy.url}"\n'))
        client.fetch("http://server.example/", **params)
        return "not sent" if proxy.authorizations == [None] else "sent"
    return probe


def ntlm(request):
    if not request.authorization:
        return response(401, b"", "WWW-Authenticate: NTLM")
    return response(200) if len(request.authorization) > 100 else response(401, b"", f"WWW-Authenticate: NTLM {TYPE_2}")


LISTED = '[schemes]\nntlm = ["127.0.0.1"]\n'
DIGEST = 'Digest realm="d", nonce="{}", qop="auth"'

#: The rows of the tables, in their order.
PROBES = {
    "request whose lines end with LF alone": front(asking().replace("\n", "\f"), asking("A: b\fC: d")),
    "folded field in a request": front(asking("A: b\n c")),
    "equal `Content-Length` fields, or `3, 3`": front(posting("Content-Length: 3", "Content-Length: 3"), posting("Content-Length: 3, 3")),
    "CR or NUL in a field of a request": front(asking("A: b\rc"), asking("A: b\0c")),
    "`Content-Length` with `Transfer-Encoding`": front(posting("Content-Length: 3", "Transfer-Encoding: chunked", body="0\n\n")),
    "`Transfer-Encoding: gzip, chunked` or `identity` in a request": front(
        posting("Transfer-Encoding: gzip, chunked"), posting("Transfer-Encoding: identity")),
    "`Transfer-Encoding` in a request of HTTP/1.0": front(
        posting("Transfer-Encoding: chunked", line="POST {url}/ HTTP/1.0", body="3\nabc\n0\n\n")),
    "chunk size with a blank at the end of its line, or with more than 15 digits": front(
        chunks("3 \nabc\n0\n\n"), chunks("0000000000000003\nabc\n0\n\n")),
    "request of HTTP/0.9": front("GET {url}/\n"),
    "HTTP/2 without TLS": front("PRI * HTTP/2.0\n\nSM\n\n"),
    "TRACE": front(
        *(asking(*fields, line="TRACE {url}/ HTTP/1.1") for fields in [[], ["Max-Forwards: 0"]]), sees=lambda request, received: "passed on"),
    "body of HEAD": front(posting("Content-Length: 3", line="HEAD {url}/ HTTP/1.1", body="xyz"), sees=without("removed", b"xyz")),
    "two `Authorization` fields": front(asking("Authorization: Basic eDp5", "Authorization: Basic eDp5")),
    "more than 128 fields, or more than 64 KiB of them": front(asking(*["A: b"] * 127), asking("A: " + "b" * (64 << 10))),
    "target with `https`, `ftp` or `ws` at a proxy": targets(*(f"{scheme}://127.0.0.1:{{port}}/" for scheme in ["https", "ftp", "ws"])),
    "path as the target at a proxy, with `Host`": front(asking(line="GET / HTTP/1.1", host="127.0.0.1:{port}")),
    "user and password in the target": targets("http://bob:secret@127.0.0.1:{port}/"),
    "hosts such as `0x7f.1` and `2130706433`": targets("http://0x7f.1:{port}/", "http://2130706433:{port}/"),
    "`#`, a backslash, or bytes that are not UTF-8 in the target": targets("{url}/a#b", "{url}/a\\b", "{url}/\xe9"),
    "CONNECT to other ports than 443, 80, 22 and 8443": targets("127.0.0.1:{port}", method="CONNECT"),
    "CONNECT with a body": front(posting("Content-Length: 3", line="CONNECT 127.0.0.1:443 HTTP/1.1")),
    "`Proxy-Authorization` of the program, for an upstream proxy": upstream(without("removed", b"proxy-authorization")),
    "407 of the upstream proxy": upstream(lambda request, received: received[9:12].decode()),
    "407 of a server": replies("Content-Length: 4", status="HTTP/1.1 407 X"),
    "`Expect: 100-continue`": expectation,
    "`Upgrade` to another protocol than WebSocket, such as `h2c`": front(
        asking("Connection: Upgrade", "Upgrade: h2c"), sees=without("removed", b"upgrade")),
    "chunk extensions and trailers of an upload": front(
        posting("Trailer: X-T", "Transfer-Encoding: chunked", body="3;a=b\nabc\n0\nX-T: 1\n\n"), sees=without("removed", b"x-t")),
    "upload in chunks, up to 64 KiB": front(chunks("3\nabc\n0\n\n"), sees=without("sent with `Content-Length`", b"chunked")),
    "larger upload to a server with Digest by `auth-int` only": large_upload,
    "trailers of a response, without `TE: trailers` in the request": front(
        asking(), reply=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npage\r\n0\r\nX-T: 1\r\n\r\n", sees=without("removed", b"x-t")),
    "name of the proxy in `Via`": via,
    "`Forwarded` and `X-Forwarded-For`": front(asking(), sees=without("not added", b"forwarded")),
    "`Cache-Control: only-if-cached`": front(
        asking("Cache-Control: only-if-cached"), sees=lambda request, received: "passed on" if b"page" in received else "504"),
    "response whose `Content-Length` is invalid: `4x`, `+4`, or too large": merged(
        *(replies(f"Content-Length: {length}") for length in ["4x", "+4", "9223372036854775808"])),
    "response with different `Content-Length` fields": replies("Content-Length: 4", "Content-Length: 3"),
    "response with several `Location` fields": replies("Content-Length: 4", "Location: /a", "Location: /b", status="HTTP/1.1 302 X"),
    "response with a blank before the colon of `Content-Length`, or another field of length or login": merged(
        replies("Content-Length : 4"), replies("Content-Length: 4", "Transfer-Encoding : chunked"), replies("Content-Length: 4", "WWW-Authenticate : NTLM")),
    "response with a field whose name is invalid": replies(
        "Content-Length: 4", "A(x-t: b", ": x-t", sees=without("the field is removed", b"x-t")),
    "response fields whose names begin with `Proxy-`": front(
        asking(), reply=response(200, b"", "Proxy-Status: x-t", "Proxy-Authenticate: Basic realm=x-t"), sees=without("removed", b"x-t")),
    "response that begins with `http/1.1`": replies("Content-Length: 4", status="http/1.1 200 OK"),
    "101 that was not requested": replies("Connection: Upgrade", "Upgrade: websocket", status="HTTP/1.1 101 X"),
    "`Host` that does not name the front of a site": front(asking(line="GET / HTTP/1.1", host="other.example"), site=True),
    "requests of web pages of other sites to a site": front(
        *(asking(field, line="GET / HTTP/1.1", host="{own}") for field in ["Origin: http://other.example", "Sec-Fetch-Site: cross-site"]), site=True),
    "`Refresh` from a site": front(
        asking(line="GET / HTTP/1.1", host="{own}"), site=True, reply=response(200, b"", "Refresh: 1; url=/"), sees=without("removed", b"refresh")),
    "`Set-Cookie` from a site at 127.0.0.1": front(
        asking(line="GET / HTTP/1.1", host="{own}"), site=True, reply=response(200, b"", "Set-Cookie: a=b"), sees=without("removed", b"cookie")),
    '`Basic, realm="foo"`': login(['Basic, realm="foo"']),
    '`Basic realm="foo", realm="bar"`, or two nonces': login(['Basic realm="foo", realm="bar"'], [DIGEST.format("n") + ', nonce="m"']),
    '`Basic realm="foo`': login(['Basic realm="foo']),
    '`Basic realm="foo" charset="UTF-8"`, and `;` for the comma': login(
        ['Basic realm="foo" charset="UTF-8"'], ['Basic realm="foo"; charset="UTF-8"']),
    '`Digest realm="d" nonce="n" qop="auth"`': login(['Digest realm="d" nonce="n" qop="auth"']),
    "`Basic` without a realm, Digest without `qop`": weak,
    "Digest without a realm": login(['Digest nonce="n", qop="auth"']),
    'Digest with `qop=""` or only unknown options': login(*([f'Digest realm="d", nonce="n", qop="{qop}"'] for qop in ["", "foo"])),
    "several Digest challenges": login(
        [DIGEST.format("n"), DIGEST.format("m") + ", algorithm=SHA-256"], found=sending("the strongest algorithm", "algorithm=SHA-256")),
    "Digest with `stale=true` in each response": login(
        DigestCheck("bob", "secret", stale_times=99), answers=False, credential=BOB,
        found=lambda server, reply: "two repetitions, then a refusal" if (len(server.requests), reply["result"]["status"]) == (4, 401) else f"{reply}"),
    "wrong `rspauth`": login(DigestCheck("bob", "secret", proof="wrong"), found=failing("serverNotAuthentic")),
    "more than 32 challenges, or more than 32 KiB of them": login(
        *([*first, 'Basic realm="x"'] for first in [["Other"] * 32, [f'Other realm="{"x" * (32 << 10)}"']]), answers=False, credential=BOB),
    "Negotiate or NTLM of a host that is not listed": login(["Negotiate"], ["NTLM"]),
    "NTLM and Basic of a listed host": login(["NTLM", 'Basic realm="x"'], configuration=LISTED, found=sending("Basic", "bob:secret")),
    "NTLM without extended session security, as in the tests of curl": login(ntlm, configuration=LISTED, found=failing("notSupported")),
    "login without a challenge": unasked,
    "`http://b%3Aob:secret@host/`": login(['Basic realm="x"'], answers=False, url="http://b%3Aob:secret@127.0.0.1:{port}/", found=lambda server, _: (
        "not answered by Basic" if server.authorizations == [None] else "answered")),
    "`http://b%0Aob:secret@host/`": login([], url="http://b%0Aob:secret@127.0.0.1:{port}/", found=failing("badURL", "refused")),
    "`http://bob:100%@host/`": login([], url="http://bob:100%@127.0.0.1:{port}/", found=failing("badURL", "refused")),
    "`http://bob@host/`": missing_password,
    "redirect to `http://eve:secret@host/`": login(
        lambda request: response(302, b"", "Location: http://eve:secret@127.0.0.1:1/"), found=failing("badRedirect")),
    "`default` in a netrc file": netrc("default login bob password secret"),
    "`machine HOST` in a netrc file": default_port,
    "netrc entry without a password, or with unknown or repeated words": netrc(
        "machine 127.0.0.1:{port} login bob", *(f"machine 127.0.0.1:{{port}} login bob {word} password secret" for word in ["port 1", "login eve"])),
    "netrc file that other users can read": netrc("machine 127.0.0.1:{port} login bob password secret", mode=0o644),
    "netrc login over plain http to another machine": elsewhere('Basic realm="x"'),
    "Bearer token over plain http to another machine": elsewhere("Bearer", credential={"type": "token", "token": "secret"}),
}

SECTIONS = [(ROOT / "contrib/docs" / name).read_text().partition("## Intended differences\n")[2].partition("\n## ")[0]
            for name in ["unchanged-programs.md", "authentication.md"]]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", "\n".join(SECTIONS), re.MULTILINE)]
CELLS = {case: cell for case, _, cell, _ in ROWS if case not in ["case", "---"]}


def test_the_tables_have_a_row_for_each_probe():
    assert list(CELLS) == list(PROBES)


@pytest.mark.parametrize("case", PROBES)
def test_a_cell(case, stage):
    assert PROBES[case](stage) == CELLS[case]
