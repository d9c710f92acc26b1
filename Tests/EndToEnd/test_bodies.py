"""Downloads from real and scripted servers, compared byte by byte, also after challenges."""
import os

import pytest

from rig.bodies import Download, digest_of, eventually, read_parts, sha256
from rig.client import Client, password_answer
from rig.scripted import DigestCheck, response
from rig.streams import BLOCK, StreamServer, chunked, head

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
