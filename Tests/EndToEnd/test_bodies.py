"""Downloads from real and scripted servers, compared byte by byte, also after challenges."""
import http.client
import json
import os
import pathlib
import shutil
import sys

import pytest

from rig.bodies import Download, digest_of, eventually, read_parts, sha256
from rig.broker import ROOT
from rig.client import Client, password_answer
from rig.scripted import DigestCheck, response
from rig.streams import BLOCK, StreamServer, chunked, head, repeated

FRAMINGS = ["lines", "headers"]
WAYS = ["attach", "read"]


def published(server, path, megabytes, name="large.bin"):
    """Writes a file that `server` serves at `path` below its root; returns its SHA-256."""
    file = server.log_path.parent / "www" / path / name
    data = b"".join(bytes([number]) + BLOCK[1:] for number in range(megabytes)) + b"end"
    file.write_bytes(data)
    file.chmod(0o644)
    return sha256(data), len(data)


def take(download, way):
    return digest_of(download.attach().parts() if way == "attach" else download.parts())


def check_completed(download, wanted, status=200):
    completed = download.completed()
    assert (completed["status"], completed["bodyBytes"]) == (status, wanted[1]), completed
    assert len(download.notifications("fetch/headers")) == len(download.notifications("fetch/completed")) == 1
    headers = download.headers()
    assert {key: headers[key] for key in ("status", "url", "httpVersion", "headers")} == {
        key: completed[key] for key in ("status", "url", "httpVersion", "headers")}
    return completed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_byte_from_nginx(stage, nginx, framing, way):
    wanted = published(nginx, "", 7)
    client = stage.client(framing=framing)
    download = Download(client, f"http://127.0.0.1:{nginx.port}/large.bin")
    assert download.headers()["bodyBytes"] == wanted[1]
    assert take(download, way) == wanted
    assert check_completed(download, wanted)["auth"] is None


@pytest.mark.parametrize("way", WAYS)
def test_digest_at_apache_first_and_then_the_body(stage, apache, account, way):
    wanted = published(apache, "private", 5)
    asked = []
    client = stage.client(answer=lambda params: asked.append(params) or password_answer(*account, persistence="none"))
    download = Download(client, f"http://127.0.0.1:{apache.port}/private/large.bin")
    assert take(download, way) == wanted
    completed = check_completed(download, wanted)
    assert completed["exchanges"] == 2 and completed["auth"]["authenticationMethod"] == "httpDigest"
    assert len(asked) == 1 and asked[0]["fetchId"] == download.id


def test_a_socket_attached_before_the_challenge_receives_nothing_of_the_401(stage):
    password = stage.secret()
    check = DigestCheck("bob", password, algorithm="SHA-256", body=BLOCK)
    server, other = stage.server(StreamServer(check)), stage.server(lambda request: response(200))
    client = stage.client()
    download = Download(client, server.url + "/")
    attached = download.attach()
    challenge = client.challenges.get(timeout=30)
    # The data of the 401 would have arrived before the replies of later transfers.
    for _ in range(3):
        assert client.fetch(other.url)["result"]["status"] == 200
    attached.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        attached.socket.recv(1)
    attached.socket.settimeout(30)
    client.reply(challenge, password_answer("bob", password))
    assert attached.read() == BLOCK
    assert check_completed(download, (None, len(BLOCK)))["exchanges"] == 2
    assert check.problems == []


def test_the_body_of_a_401_waits_for_a_long_answer(stage):
    """The answer is `continue`, after the server has closed its connection: the body is that of the 401."""
    refusal = os.urandom(3 << 20)
    server = stage.server(StreamServer(lambda request: iter([
        response(401, refusal, 'WWW-Authenticate: Basic realm="Staff"'), None])))
    other = stage.server(lambda request: response(200))
    client = stage.client()
    download = Download(client, server.url + "/")
    attached = download.attach()
    challenge = client.challenges.get(timeout=30)
    eventually(lambda: server.open_connections == 0, "the server has not closed its connection")
    # Other transfers, which come after the end of that connection.
    for _ in range(3):
        assert client.fetch(other.url)["result"]["status"] == 200
    assert download.notifications("fetch/headers") == []
    client.reply(challenge, {"action": "continue"})
    assert attached.digest() == (sha256(refusal), len(refusal))
    assert check_completed(download, (None, len(refusal)), status=401)["exchanges"] == 1
    assert len(server.requests) == 1


def refusing(megabytes, status, *headers):
    """A large body without a length, in a response whose body is not needed."""
    data = BLOCK * megabytes

    def handle(request):
        if request.target == "/there":
            yield response(200, b"there")
            return
        yield head(status, *headers, "Connection: close")
        yield from [BLOCK] * megabytes
        yield None

    return StreamServer(handle), (sha256(data), len(data))


@pytest.mark.parametrize(("way", "megabytes"), [("attach", 40), ("read", 12), ("run", 12)])
def test_a_large_401_costs_no_memory_during_a_question(stage, way, megabytes):
    server, wanted = refusing(megabytes, 401, 'WWW-Authenticate: Basic realm="Staff"')
    stage.server(server)
    client = stage.client()
    take(Download(client, server.url + "/there"), "attach")
    before = stage.brokers[0].peak_kilobytes
    call = client.start("fetch/run", {"url": server.url + "/"}) if way == "run" else None
    download = None if way == "run" else Download(client, server.url + "/")
    client.reply(client.challenges.get(timeout=30), {"action": "continue"})
    if way == "run":
        result = client.wait(call)["result"]
        assert (result["status"], result["body"]["type"], result["bodyBytes"]) == (401, "handle", wanted[1])
        assert digest_of(read_parts(client, result["fetchId"], 1 << 17)) == wanted
    else:
        parts = download.attach().parts() if way == "attach" else download.parts(1 << 17)
        assert digest_of(parts) == wanted
        check_completed(download, wanted, status=401)
    assert stage.brokers[0].peak_kilobytes - before < 8 << 10


def test_a_large_redirect_body_costs_no_memory(stage):
    server, _ = refusing(40, 302, "Location: /there")
    stage.server(server)
    client = stage.client()
    take(Download(client, server.url + "/there"), "attach")
    broker = stage.brokers[0]
    before = broker.peak_kilobytes
    assert client.fetch(server.url + "/")["result"]["body"]["value"] == "there"
    assert broker.peak_kilobytes - before < 8 << 10
    eventually(lambda: not broker.temporary_files, "the broker still has an open temporary file")


@pytest.mark.parametrize("kind", ["main", "restricted"])
def test_temporary_files_of_one_connection_have_a_quota(stage, kind):
    """Five bodies of 60 MiB exceed the 256 MiB. Reading or cancelling makes room, and so does the end of the client."""
    server, wanted = refusing(60, 401, 'WWW-Authenticate: Basic realm="Staff"')
    stage.server(server)
    broker = stage.broker()
    path = broker.socket if kind == "main" else os.path.join(os.path.dirname(broker.socket), "restricted.sock")
    client = Client(path)
    stage.clients.append(client)
    results = [client.fetch(server.url + "/", auth={"interaction": "none"}) for _ in range(5)]
    assert [reply.get("result", {}).get("status") for reply in results] == [401] * 4 + [None]
    error = results[4]["error"]
    assert error["data"]["kind"] == "busy" and "this connection (" in error["message"], error
    assert f"of {256 << 20} bytes in use" in error["message"], error
    assert 240 << 20 <= broker.temporary_bytes <= 256 << 20
    assert client.call("fetch/cancel", {"fetchId": results[0]["result"]["fetchId"]})
    eventually(lambda: broker.temporary_bytes <= 180 << 20, "the body was not released")
    assert client.fetch(server.url + "/", auth={"interaction": "none"})["result"]["status"] == 401
    client.close()
    eventually(lambda: broker.temporary_bytes == 0, "the bodies were not released")


def test_a_larger_body_is_too_large(stage):
    server, _ = refusing(65, 401, 'WWW-Authenticate: Basic realm="Staff"')
    stage.server(server)
    error = stage.client().fetch(server.url + "/", auth={"interaction": "none"})["error"]
    assert error["data"]["kind"] == "tooLarge" and str(64 << 20) in error["message"]


def test_the_body_of_a_redirect_is_skipped(stage):
    server = stage.server(StreamServer(
        lambda request: response(302, BLOCK, "Location: /there") if request.target == "/" else repeated(3)))
    client = stage.client()
    download = Download(client, server.url + "/", notify=["redirect"])
    assert take(download, "attach") == (sha256(BLOCK * 3), 3 << 20)
    assert check_completed(download, (None, 3 << 20))["exchanges"] == 2
    assert [one["status"] for one in download.notifications("fetch/redirect")] == [302]


@pytest.mark.parametrize("way", WAYS)
def test_chunks_of_httpbin(stage, httpbin, way):
    path = "/stream-bytes/100000?seed=7&chunk_size=999"
    direct = http.client.HTTPConnection("127.0.0.1", httpbin.port)
    direct.request("GET", path)
    body = direct.getresponse().read()
    assert len(body) == 100_000
    download = Download(stage.client(), f"http://127.0.0.1:{httpbin.port}{path}")
    assert take(download, way) == (sha256(body), len(body))
    check_completed(download, (None, len(body)))
    assert download.headers()["bodyBytes"] is None


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_content_coding_of_httpbin_is_decoded(stage, httpbin, coding):
    client = stage.client()
    url = f"http://127.0.0.1:{httpbin.port}/{coding}"
    decoded = json.loads(Download(client, url, decompress=True).attach().read())
    assert decoded["gzipped" if coding == "gzip" else "deflated"] is True
    assert decoded["headers"]["Accept-Encoding"] == "gzip, deflate"
    with pytest.raises(ValueError):
        json.loads(Download(client, url).attach().read())


def test_an_unrequested_content_coding_is_not_decoded(stage, httpbin):
    url = f"http://127.0.0.1:{httpbin.port}/brotli"
    assert Download(stage.client(), url, decompress=True).failure() == "malformedResponse"


ODD = {
    "empty": (lambda: head(length=0), b""),
    "no-content": (lambda: head(204), b""),
    "no-chunks": (lambda: chunked([]), b""),
    "one-byte": (lambda: response(200, b"x"), b"x"),
    "chunks": (lambda: chunked([b"a", b"b" * 70_000, b"c"]), b"a" + b"b" * 70_000 + b"c"),
    "until-the-end": (lambda: iter([head(200, "Connection: close"), BLOCK, None]), BLOCK),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ODD)
def test_small_and_odd_bodies(stage, name, way):
    answer, body = ODD[name]
    server = stage.server(StreamServer(lambda request: answer()))
    download = Download(stage.client(), server.url)
    assert take(download, way) == (sha256(body), len(body))
    check_completed(download, (None, len(body)), 204 if name == "no-content" else 200)


def test_a_content_length_beside_chunks_is_ignored(stage):
    text = b"HTTP/1.1 200 X\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    download = Download(stage.client(), stage.server(StreamServer(lambda request: text)).url)
    assert download.headers()["bodyBytes"] is None
    assert download.attach().read() == b"hello"
    assert download.completed()["bodyBytes"] == 5


def test_a_head_request_has_headers_and_no_body(stage, nginx):
    wanted = published(nginx, "", 1)
    download = Download(stage.client(), f"http://127.0.0.1:{nginx.port}/large.bin", method="HEAD")
    assert download.attach().read() == b""
    assert download.completed()["bodyBytes"] == 0
    assert ["Content-Length", str(wanted[1])] in download.headers()["headers"]


def test_a_handle_is_returned_while_the_body_is_received(stage):
    may_continue = []

    def parts():
        yield BLOCK + BLOCK
        eventually(lambda: may_continue, "the client has not received its handle", 20)
        yield BLOCK

    server = stage.server(StreamServer(lambda request: chunked(parts())))
    client = stage.client()
    result = client.fetch(server.url)["result"]
    assert result["body"] == {"type": "handle", "fetchId": result["fetchId"]} and result["bodyBytes"] is None
    may_continue.append(True)
    download = object.__new__(Download)
    download.client, download.id = client, result["fetchId"]
    assert digest_of(download.parts(300_000)) == (sha256(BLOCK * 3), 3 << 20)
    client.call("ping")
    assert download.notifications("fetch/completed") == []


def test_the_python_client_downloads(stage, tmp_path):
    sys.path.insert(0, str(ROOT / "contrib" / "clients" / "python"))
    from watchword import BrokerError, Watchword

    server, password = stage.protected("bob", body=BLOCK * 3)
    broker = Watchword(answer=lambda challenge: ("bob", password), path=stage.broker().socket)
    download = broker.start(server.url)
    with broker.attach(download) as body, open(tmp_path / "file", "wb") as file:
        shutil.copyfileobj(body, file)
    assert broker.finish(download)["bodyBytes"] == 3 << 20
    assert pathlib.Path(tmp_path / "file").read_bytes() == BLOCK * 3
    download = broker.start(server.url)
    assert broker.headers(download)["status"] == 200
    assert b"".join(broker.read(download)) == BLOCK * 3
    assert broker.finish(download)["auth"]["source"] == "session"
    assert b"".join(broker.read(broker.fetch(server.url)["body"])) == BLOCK * 3
    with pytest.raises(BrokerError) as caught:
        broker.attach(broker.start("http://127.0.0.1:1/"))
    assert caught.value.kind == "cannotConnect"
    broker.close()
