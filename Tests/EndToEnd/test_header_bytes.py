"""Responses as bytes: field values are opaque (RFC 9110 section 5.5); length and target must be unambiguous; trailers after a body; and the
bodies of challenges and redirects."""
import gzip
import socket
import subprocess
import threading
import time
import zlib

import pytest

from rig.bodies import Download
from rig.client import password_answer
from rig.local_fronts import exchange, open_proxy
from rig.scripted import DigestCheck, ScriptedServer, basic_server, response
from rig.streams import StreamServer
from rig.terminal import Shell


# In ISO 8859-1, as the scripted server sends them, and in UTF-8.
VALUES = [b"\xe9", b"\xc3\xa9", b"\xfc\xc3\xbc", b"\xf4\x8f\xbf\xa9", b"\x80\xff\xc3"]


def get(url, *fields, end=b""):
    return b"\r\n".join([f"GET {url} HTTP/1.1".encode(), b"Host: x", b"Connection: close", *fields]) + b"\r\n\r\n" + end


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_proxy_front_passes_bytes_on_in_both_directions(stage, value):
    fields = [b"A: " + value, b'ETag: "' + value + b'"', b"Set-Cookie: a=" + value + b"; Path=/", b"WWW-Authenticate: X a=" + value]
    server = stage.server(lambda request: b"\r\n".join([b"HTTP/1.1 200 " + value, b"Transfer-Encoding: chunked", b"Trailer: X-Sum", *fields])
                          + b"\r\n\r\n2\r\nok\r\n0\r\nX-Sum: " + value + b"\r\n\r\n")
    address, _ = open_proxy(stage.client())
    sent = [b'If-None-Match: "' + value + b'"', b"Cookie: a=" + value, b"A: " + value, b"Authorization: X " + value, b"TE: trailers"]
    received = exchange(address, get(server.url, *sent))
    assert received.startswith(b"HTTP/1.1 200 " + value + b"\r\n")
    assert all(field + b"\r\n" in received for field in [*fields, b"X-Sum: " + value])
    asked = server.requests[0].raw.split(b"\r\n")
    assert all(field in asked for field in sent[:4])


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_site_front_passes_bytes_on_in_both_directions(stage, value):
    server = stage.server(lambda request: b"HTTP/1.1 200 X\r\nContent-Length: 2\r\nLocation: " + server.url.encode() + b"/" + value
                          + b"\r\nSet-Cookie: a=" + value + b"; Secure\r\n\r\nok")
    result = stage.client().call("front/open", {"site": {"url": server.url}})["result"]
    host, port = result["listen"].rsplit(":", 1)
    name = result["name"].encode()
    received = exchange((host, int(port)), b"GET / HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\nCookie: a=" + value
                        + b"\r\nReferer: http://" + name + b"/" + value + b"\r\n\r\n")
    assert b"\r\nSet-Cookie: a=" + value + b"\r\n" in received
    assert b"\r\nLocation: http://" + name + b"/" + value + b"\r\n" in received
    asked = server.requests[0].raw.split(b"\r\n")
    assert b"Cookie: a=" + value in asked and b"Referer: " + server.url.encode() + b"/" + value in asked


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256-sess"])
@pytest.mark.parametrize("more", [
    {"realm": "B\xfcro"}, {"realm": "B\xc3\xbcro"}, {"nonce_end": "\xfc"}, {"opaque": "\xfc"}, {"realm": "\xfc", "userhash": True},
    {"realm": "\xfc", "nonce_end": "\xe9", "opaque": "\xc3", "announces": True, "proof": "right"}], ids=str)
def test_rules_d8_and_x2_digest_returns_and_hashes_the_bytes_received(stage, algorithm, more):
    password = stage.secret()
    check = DigestCheck("bob", password, algorithm=algorithm, **more)
    server = stage.server(check)
    client = stage.client(answer=password_answer("bob", password))
    replies = [client.fetch(server.url + path)["result"] for path in ["/x", "/y"]]
    assert [(reply["status"], reply["exchanges"]) for reply in replies] == [(200, 2), (200, 1)] and check.problems == []
    if "\xfc" in more.get("realm", "") or "\xc3" in more.get("realm", ""):
        name = "B\xfcro" if "ro" in more["realm"] else "\xfc"
        assert client.asked[0]["protectionSpace"]["realm"] == client.asked[0]["offers"][0]["realm"] == name


def test_rules_r10_and_x2_realms_in_two_encodings_are_two_spaces(stage):
    """The login of one is not sent for the other."""
    password = stage.secret()
    servers = {"/1": basic_server("bob", password, "B\xfcro"), "/2": basic_server("bob", password, "B\xc3\xbcro")}
    server = stage.server(lambda request: servers[request.path].handler(request))
    stage.allow(password, server)
    client = stage.client(answer=password_answer("bob", password))
    for path in ["/1", "/2", "/1", "/2"]:
        assert client.fetch(server.url + path, auth={"preemptive": False})["result"]["status"] == 200
    assert [challenge["protectionSpace"]["realm"] for challenge in client.asked] == ["B\xfcro"] * 2
    for each in servers.values():
        each.close()


@pytest.mark.parametrize("location, target", [
    (b"/\xe9", "/%E9"), (b"/\xc3\xa9", "/%C3%A9"), (b"?\xfc#\xe9", "/?%FC"), (b"/\xc3\xa9\xe9", "/%C3%A9%E9")], ids=str)
def test_a_redirect_leads_to_the_bytes_of_its_location_as_with_curl(stage, location, target):
    server = stage.server(lambda request: response(200) if request.target.upper() == target
                          else b"HTTP/1.1 302 X\r\nContent-Length: 0\r\nLocation: " + location + b"\r\n\r\n")
    done = Shell(stage.broker()).run("fetch", "-sSfL", server.url + "/")
    assert done.returncode == 0, done
    subprocess.run(["curl", "-sSfL", "--noproxy", "*", server.url + "/"], capture_output=True, timeout=30, check=True)
    assert [request.target for request in server.requests] == ["/", target, "/", target.lower()]


def test_cookies_of_a_fetch_keep_their_bytes(stage):
    server = stage.server(lambda request: response(200) if request.path == "/there"
                          else response(302, b"", "Location: /there", "Set-Cookie: a=\xe9; Path=/"))
    assert stage.client().fetch(server.url, headers=[["Cookie", "b=\xe9"]])["result"]["status"] == 200
    assert server.requests[1].header("Cookie") == "a=\xe9; b=\xc3\xa9"


def test_the_helper_writes_the_bytes_as_curl_does(stage, tmp_path):
    server = stage.server(lambda request: b"HTTP/1.1 302 d\xe9j\xe0\r\nContent-Length: 2\r\nA: \xe9\xc3\xa9\r\nLocation: /\xe9\r\n\r\nok")
    shell = Shell(stage.broker())
    options = ["-s", "-i", "-D", str(tmp_path / "head"), "-w", "%header{A} %{redirect_url} é", server.url + "/"]
    curl = subprocess.run(["curl", "--noproxy", "*", *options], capture_output=True, timeout=30, check=True).stdout
    head = (tmp_path / "head").read_bytes()
    assert b"A: \xe9\xc3\xa9\r\n" in head
    done = shell.run("fetch", *options)
    assert (done.stdout.replace(b"%E9", b"%e9"), (tmp_path / "head").read_bytes()) == (curl, head)


def raw(status, *fields, body=b"ok"):
    return "\r\n".join([f"HTTP/1.1 {status} X", *fields]).encode() + b"\r\n\r\n" + body


@pytest.mark.parametrize("hasty", [1, 2])
def test_rule_l14_a_response_that_arrives_before_the_first_request_is_no_response(stage, hasty):
    """The response comes together with the end of the SOCKS handshake, on so many connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard = []

    def serve():
        for number in range(3):
            with listener.accept()[0] as connection:
                connection.recv(100)
                connection.sendall(b"\5\0")
                connection.recv(100)
                early = raw(200, "Content-Length: 8", body=b"INJECTED") if number < hasty else b""
                connection.sendall(b"\5\0\0\1\0\0\0\0\0\0" + early)
                try:
                    heard.append(connection.recv(1000))
                except ConnectionResetError:
                    heard.append(b"")
                if heard[-1]:
                    connection.sendall(raw(200, "Content-Length: 2", "Connection: close"))
    threading.Thread(target=serve, daemon=True).start()
    client, proxy = stage.client(), f"socks5h://127.0.0.1:{listener.getsockname()[1]}"
    replies = [client.fetch("http://a.example/", proxy={"url": proxy}) for _ in range(hasty)]
    if hasty == 2:
        assert replies[0]["error"]["data"]["kind"] == "connectionLost"
    assert replies[-1]["result"]["body"]["value"] == "ok"
    assert [b"GET /" in one for one in heard] == [False] * hasty + [True]


@pytest.mark.parametrize("end", [
    raw(204, body=b""), raw(304, body=b""), raw(200, "Content-Length: 0", body=b""),
    raw(200, "Transfer-Encoding: chunked", body=b"2\r\nok\r\n0\r\n\r\n")], ids=["204", "304", "empty", "chunked"])
def test_rule_l14_bytes_behind_a_response_reach_no_program(stage, end):
    behind = raw(200, "Content-Length: 8", body=b"INJECTED")
    server = stage.server(ScriptedServer(lambda request: end + behind if request.target == "/a" else raw(200, "Content-Length: 2")))
    for target in ["/a", "/b", "/c"]:
        assert stage.client().fetch(server.url + target)["result"]["body"]["value"] in ["", "ok"]
    assert server.connections == 2 and len(server.requests) == 3


def trailing(check):
    """Sends the Authentication-Info of `check` after the body."""
    def handle(request):
        head, body = check(request).split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        after = [line for line in lines if line.startswith(b"Authentication-Info")]
        if not after:
            return head + b"\r\n\r\n" + body
        before = [line for line in lines if line not in after and not line.startswith(b"Content-Length")]
        before += [b"Transfer-Encoding: chunked", b"Trailer: Authentication-Info"]
        return b"\r\n".join(before) + b"\r\n\r\n%x\r\n" % len(body) + body + b"\r\n0\r\n" + after[0] + b"\r\n\r\n"

    return ScriptedServer(handle)


@pytest.fixture
def digest(stage):
    def make(in_trailer, **more):
        password = stage.secret()
        check = DigestCheck("bob", password, **more)
        server = stage.server(trailing(check) if in_trailer else ScriptedServer(check))
        client = stage.client(answer=password_answer("bob", password))
        return check, server, client, client.asked

    return make


LARGE = b"0123456789abcdef" * 20_000


@pytest.mark.parametrize("body", [b"welcome", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("in_trailer, qop, proof", [
    (True, "auth", "wrong"), (True, "auth-int", "wrong"), (True, "auth-int", "of another body"), (False, "auth-int", "of another body"),
    (False, "auth-int", "wrong")])
def test_rule_d15_a_wrong_proof_after_or_about_the_body_fails_the_fetch(digest, body, in_steps, in_trailer, qop, proof):
    check, server, client, asked = digest(in_trailer, qop=qop, proof=proof, body=body)
    for number in [1, 2]:
        if in_steps:
            download = Download(client, server.url)
            attached = download.try_to_attach()
            # A small body may have ended before.
            if "result" in attached.reply:
                attached.read()
            assert download.failure() == "serverNotAuthentic"
        else:
            # Above the inline limit, the body is still arriving when the result is sent.
            assert client.fetch(server.url, maxInlineBodyBytes=1 << 20)["error"]["data"]["kind"] == "serverNotAuthentic"
        assert len(asked) == number, "nothing is remembered"


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("proof", ["wrong", "of another body"])
def test_rule_d15_a_large_body_is_checked_before_it_is_delivered(digest, in_steps, proof):
    check, server, client, asked = digest(False, qop="auth-int", proof=proof, body=bytes(3 << 20))
    for number in [1, 2]:
        if in_steps:
            assert Download(client, server.url).failure() == "serverNotAuthentic"
        else:
            assert client.fetch(server.url)["error"]["data"]["kind"] == "serverNotAuthentic"
        assert len(asked) == number, "nothing is remembered"


@pytest.mark.parametrize("text", [b"welcome", LARGE, bytes(3 << 20), b""], ids=["small", "large", "expanding", "empty"])
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("in_trailer", [False, True])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("proof", ["right", "of another body", "of the text"])
def test_rule_d15_a_proof_covers_the_body_before_it_is_decompressed(digest, text, in_steps, in_trailer, coding, proof):
    body = (gzip if coding == "gzip" else zlib).compress(text)
    check, server, client, asked = digest(
        in_trailer, qop="auth-int", proof=proof, body=body, fields=[f"Content-Encoding: {coding}"])
    check.text = text
    if in_steps:
        download = Download(client, server.url, decompress=True)
        attached = download.try_to_attach()
        if "result" in attached.reply:
            received = attached.read()
        if proof == "right":
            assert received == text and download.completed()["bodyBytes"] == len(text)
        else:
            assert download.failure() == "serverNotAuthentic"
    else:
        reply = client.fetch(server.url, decompress=True, maxInlineBodyBytes=1 << 20)
        if proof == "right":
            assert reply["result"]["status"] == 200 and reply["result"]["bodyBytes"] == len(text)
        else:
            assert reply["error"]["data"]["kind"] == "serverNotAuthentic"
    assert len(asked) == 1


@pytest.mark.parametrize("body", [b"welcome", LARGE], ids=["small", "large"])
@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_rule_d14_and_d15_a_right_proof_and_the_next_nonce_after_the_body_are_used(digest, body, in_steps, qop):
    check, server, client, asked = digest(True, qop=qop, proof="right", announces=True, body=body)
    for _ in range(3):
        if in_steps:
            download = Download(client, server.url)
            assert download.attach().read() == body
            assert download.completed()["bodyBytes"] == len(body)
        else:
            assert client.fetch(server.url)["result"]["status"] == 200
    assert len(asked) == 1 and len(server.requests) == 4
    assert check.counts == {f"nonce{number}": 1 for number in range(1, 4)} and check.problems == []


FAULTS = {
    "cut": ["Content-Length: 921", b"abc", None],
    "cut-chunk": ["Transfer-Encoding: chunked", b"9\r\nabc", None],
    "bad-chunk": ["Transfer-Encoding: chunked", b"zz\r\n", None],
    "bad-gzip": ["Content-Encoding: gzip\r\nContent-Length: 3", b"abc"],
    "cut-gzip": ["Content-Encoding: gzip\r\nContent-Length: 9", gzip.compress(b"no")[:9]],
    "unknown-coding": ["Content-Encoding: br\r\nContent-Length: 3", b"abc"],
    "unknown-transfer-coding": ["Transfer-Encoding: compress", b"abc", None],
    "slow": ["Content-Length: 9", b"abc", StreamServer.WAIT],
    "too-large": ["Connection: close", *[bytes(1 << 20)] * 65, None],
}


def faulty(start, fault):
    head, *parts = FAULTS[fault]
    return [f"HTTP/1.1 {start}\r\n{head}\r\n\r\n".encode(), *parts]


@pytest.mark.parametrize("in_steps", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("start", ['401 No\r\nWWW-Authenticate: Basic realm="r"', "302 Go\r\nLocation: /there"], ids=["challenge", "redirect"])
def test_the_body_of_a_challenge_or_redirect_decides_nothing(stage, start, fault, in_steps):
    def handle(request):
        return response(200, b"welcome") if request.header("Authorization") or request.target == "/there" else faulty(start, fault)

    server = stage.server(StreamServer(handle))
    client = stage.client(answer=password_answer("bob", "x", persistence="none"))
    began = time.monotonic()
    if in_steps:
        assert Download(client, server.url, decompress=True).attach().read() == b"welcome"
    else:
        assert client.fetch(server.url, decompress=True)["result"]["body"]["value"] == "welcome"
    assert len(client.asked) == start.startswith("401") and time.monotonic() - began < 10
