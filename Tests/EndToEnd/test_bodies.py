"""Downloads from real and scripted servers, compared byte by byte, also after challenges, and every way in which one can end: one final
reply, nothing more from the server, and all resources released."""
import os
import random
import time

import pytest

from rig.bodies import Attached, Download, digest_of, eventually, read_parts, sha256
from rig.client import password_answer
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
    download = Download(stage.client(framing=framing), f"http://127.0.0.1:{nginx.port}/large.bin")
    assert download.headers()["bodyBytes"] == wanted[1]
    assert take(download, way) == wanted
    assert check_completed(download, wanted)["auth"] is None


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


@pytest.mark.parametrize("kind", ["socket", "restricted"])
def test_temporary_files_of_one_connection_have_a_quota(stage, kind):
    """Five bodies of 60 MiB exceed the 256 MiB. Reading or cancelling makes room, and so does the end of the client."""
    server, wanted = refusing(60, 401, 'WWW-Authenticate: Basic realm="Staff"')
    stage.server(server)
    broker = stage.broker()
    client = stage.client(at=kind)
    results = [client.fetch(server.url + "/", auth={"interaction": "none"}) for _ in range(5)]
    assert [reply.get("result", {}).get("status") for reply in results] == [401] * 4 + [None]
    error = results[4]["error"]
    assert error["data"]["kind"] == "busy" and "this connection (" in error["message"], error
    assert f"of {256 << 20} bytes in use" in error["message"], error
    assert 240 << 20 <= broker.temporary_bytes <= 256 << 20
    assert client.call("fetch/cancel", {"fetchId": results[0]["result"]["fetchId"]})["result"] == {"cancelled": True}
    eventually(lambda: broker.temporary_bytes <= 180 << 20, "the body was not released")
    assert client.fetch(server.url + "/", auth={"interaction": "none"})["result"]["status"] == 401
    client.close()
    eventually(lambda: broker.temporary_bytes == 0, "the bodies were not released")


def endless(request):
    return response(200, b"warm") if request.target == "/warm" else repeated(4096)


def halted(request):
    return response(200, b"warm") if request.target == "/warm" else iter([head(length=1 << 30), BLOCK, StreamServer.WAIT])


def begin(stage, handler):
    """Returns an idle broker, a client of its own for the download, and the broker's descriptors with both."""
    server = stage.server(StreamServer(handler, send_buffer=1 << 18))
    broker = stage.broker()
    watcher = stage.client(broker=broker)
    assert watcher.fetch(server.url + "/warm")["result"]["status"] == 200
    warm = Download(watcher, server.url + "/warm")
    assert b"".join(warm.parts()) and warm.completed()["status"] == 200
    return server, broker, watcher


def check_at_rest(broker, watcher, descriptors):
    eventually(lambda: watcher.call("server/status")["result"]["engine"]["running"] == 0, "transfers are still running")
    if descriptors is not None:
        eventually(lambda: broker.descriptors <= descriptors, lambda: f"{broker.descriptors} descriptors, and {descriptors} before")


@pytest.mark.parametrize("handler", [endless, halted], ids=["busy", "silent"])
@pytest.mark.parametrize("end", ["cancel", "control", "attached", "idle-cancel"])
def test_the_server_is_notified_of_the_end(stage, handler, end):
    server, broker, watcher = begin(stage, handler)
    descriptors = broker.descriptors
    client = stage.client(broker=broker)
    download = Download(client, server.url + "/")
    attached = download.attach() if end != "idle-cancel" else None
    download.headers()
    if attached:
        attached.socket.recv(1000)
    # The server has filled the buffers; "idle-cancel" has no reader at all.
    eventually(lambda: server.all_sent > len(BLOCK) // 2, lambda: f"the server has sent {server.all_sent} bytes")
    before = set(server.ended)
    if end == "control":
        client.close()
    elif end == "attached":
        attached.close()
    else:
        assert download.cancel() is True
    eventually(lambda: set(server.ended) - before, "the server has not noticed the end")
    if end != "control":
        assert download.failure() == "cancelled"
        client.call("ping")
        assert len(download.notifications("fetch/completed")) == 1
        client.close()
    if end in ("cancel", "control"):
        attached.socket.settimeout(20)
        for _ in attached.parts():
            pass
        attached.close()
    check_at_rest(broker, watcher, descriptors)


def torn(chance):
    """A response that ends in its header section, before its body, or in it."""
    whole = head(length=1 << 22) if chance.random() < 0.5 else None
    text = b"".join(repeated(4)) if whole else b"".join(chunked([BLOCK] * 4))
    at = chance.choice([chance.randrange(1, 60), chance.randrange(60, 2000), chance.randrange(2000, len(text) - 10)])
    return iter([text[:at], chance.choice([None, StreamServer.RESET])])


SEED = int(os.environ.get("WATCHWORD_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)


@pytest.mark.tier3("waits at fifty moments")
def test_servers_that_die_at_fifty_moments(stage):
    print("WATCHWORD_SEED =", SEED)
    chance = random.Random(SEED)
    server, broker, watcher = begin(
        stage, lambda request: response(200, b"warm") if request.target == "/warm" else torn(chance))
    client = stage.client(broker=broker)
    # Each way has been tried once before anything is measured.
    for number in range(-5, 50):
        if number == 0:
            descriptors, kilobytes = broker.descriptors, broker.resident_kilobytes
        download = Download(client, server.url + "/")
        way = chance.choice(["attach", "read", "late"])
        if way == "late":
            time.sleep(chance.random() / 50)
        if way == "read":
            while "result" in client.call("fetch/read", {"fetchId": download.id, "maxBytes": 1 << 16}):
                pass
        else:
            attached = Attached(client.socket.getpeername(), download.token)
            if "result" in attached.reply:
                attached.read()
            else:
                assert attached.reply["error"]["data"]["kind"] == "unknownFetch"
            attached.close()
        assert download.failure() in ("connectionLost", "malformedResponse"), SEED
    client.call("ping")
    finals = [message["params"]["fetchId"] for side, message in client.messages if message.get("method") == "fetch/completed"]
    assert len(finals) == len(set(finals)) == 55, SEED
    # The broker notices that an idle connection was closed when the next fetch would use it.
    check_at_rest(broker, watcher, descriptors + 1)
    assert broker.resident_kilobytes - kilobytes < 8192, SEED


@pytest.mark.tier3("waits at fifty moments")
def test_clients_that_die_at_fifty_moments(stage):
    print("WATCHWORD_SEED =", SEED)
    chance = random.Random(SEED)
    server, broker, watcher = begin(stage, endless)
    for number in range(-5, 50):
        if number == 0:
            check_at_rest(broker, watcher, None)
            descriptors, kilobytes = broker.descriptors, broker.resident_kilobytes
        client = stage.client(broker=broker)
        download = Download(client, server.url + "/")
        # Random moments are what this test is about.
        time.sleep(chance.random() / 20)
        attached = download.attach(receive_buffer=4096) if chance.random() < 0.8 else None
        if attached and chance.random() < 0.8:
            attached.socket.recv(chance.randrange(1, 1 << 18))
        time.sleep(chance.random() / 20)
        if attached and chance.random() < 0.5:
            attached.close()
            assert download.failure() == "cancelled", SEED
            client.close()
        else:
            client.close()
            if attached:
                attached.close()
    eventually(lambda: server.open_connections <= 1, lambda: f"{server.open_connections} connections are open")
    check_at_rest(broker, watcher, descriptors)
    assert broker.resident_kilobytes - kilobytes < 8192, SEED


def test_data_before_the_reply_is_refused(stage):
    server = stage.server(StreamServer(lambda request: response(200, b"body")))
    download = Download(stage.client(), server.url)
    second = stage.client(delivery=None)
    second.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"fetch/attach","params":{"token":"%s","side":"response"}}\nearly' % download.token.encode())
    assert second.wait(1)["error"]["data"]["kind"] == "invalidRequest"
    assert download.attach().read() == b"body", "the token is still valid"
    assert download.completed()["bodyBytes"] == 4


@pytest.mark.parametrize("params, kind, handler", [
    ({"timeoutMs": 700}, "timedOut", halted),
    ({"lowSpeed": {"bytesPerSecond": 1000, "seconds": 2}}, "timedOut", halted),
    ({"maxBodyBytes": 1 << 20}, "tooLarge", endless),
    ({"maxBodyBytes": 1 << 20}, "tooLarge", lambda request: chunked([BLOCK] * 64)),
    ({}, "tooLarge", lambda request: iter([head(200, *(f"X-{n}: {'x' * 8000}" for n in range(60))), BLOCK])),
], ids=["timeoutMs", "lowSpeed", "maxBodyBytes", "maxBodyBytes-unannounced", "header-section"])
def test_rule_l11_downloads_are_bounded(stage, params, kind, handler):
    server = stage.server(StreamServer(handler))
    client = stage.client()
    download = Download(client, server.url, **params)
    attached = Attached(client.socket.getpeername(), download.token)
    if "result" in attached.reply:
        assert len(attached.read()) <= 1 << 20
    assert download.failure() == kind
    if "lowSpeed" in params:
        assert "slower than 1000 bytes per second for 2 seconds" in download.completed()["error"]["message"]
    eventually(lambda: server.open_connections == 0, "the server has not noticed the end")
