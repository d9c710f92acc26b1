"""Every way in which a download can end: one final reply, nothing more from the server, and all resources released."""
import os
import random
import time

import pytest

from rig.bodies import Attached, Download, eventually
from rig.scripted import response
from rig.streams import BLOCK, StreamServer, chunked, head, repeated


def endless(request):
    return response(200, b"warm") if request.target == "/warm" else repeated(4096)


def halted(request):
    """Sends a part, and then nothing more."""
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


# Restrictions of an attached connection


def test_data_before_the_reply_is_refused(stage):
    server = stage.server(StreamServer(lambda request: response(200, b"body")))
    client = stage.client()
    download = Download(client, server.url)
    second = stage.client(delivery=None)
    second.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"fetch/attach","params":{"token":"%s","side":"response"}}\nearly' % download.token.encode())
    reply = second.wait(1)
    assert reply["error"]["data"]["kind"] == "invalidRequest"
    assert download.attach().read() == b"body", "the token is still valid"
    assert download.completed()["bodyBytes"] == 4


@pytest.mark.parametrize("framing, other", [("lines", "headers"), ("headers", "lines")])
def test_the_second_connection_has_a_framing_of_its_own(stage, framing, other):
    server = stage.server(StreamServer(lambda request: repeated(2)))
    download = Download(stage.client(framing=framing), server.url)
    assert download.attach(framing=other).read() == BLOCK * 2
    assert download.completed()["bodyBytes"] == 2 << 20


# Limits of a download


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


def test_the_rate_limit_is_enforced(stage):
    server = stage.server(StreamServer(lambda request: repeated(2)))
    began = time.monotonic()
    download = Download(stage.client(), server.url, maxBytesPerSecond=1 << 19)
    assert len(download.attach().read()) == 2 << 20
    assert time.monotonic() - began > 3.5
