"""Uploads through a connection of their own: complete, sent once if possible, and again if necessary."""
import hashlib
import os
import socket
import threading
import time

import pytest

from rig.bodies import Attached, Download, eventually
from rig import ntlm as rig_ntlm
from rig.client import password_answer
from rig.scripted import DigestCheck, response
from rig.streams import StreamServer, UploadServer

BLOCK = os.urandom(1 << 16)
# 4096 for a complete test: the size up to which a body may be challenged without being buffered anywhere.
LARGE_MEGABYTES = int(os.environ.get("WATCHWORD_TEST_UPLOAD_MEGABYTES", "64"))


def upload_server(asks):
    """Requires no login, or one before the body (if it is announced), or after it."""
    def answer(request):
        return response(201) if asks == "never" or request.authorization else response(401, b"", 'WWW-Authenticate: Basic realm="r"')

    return UploadServer(answer, is_late=asks == "after")


def send(path, token, count):
    """Attaches and sends `count` bytes in a separate thread; the broker may close the connection early."""
    attached = Attached(path, token, side="request")
    assert attached.reply.get("result") == {}, attached.reply

    def run():
        left = count
        try:
            while left:
                left -= attached.socket.send(BLOCK[:min(left, len(BLOCK))])
            attached.socket.shutdown(socket.SHUT_WR)
            # The client must wait until the broker has received the end; otherwise the body counts as incomplete.
            attached.socket.recv(1)
        except OSError:
            pass
        finally:
            attached.socket.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def wanted(count):
    digest = hashlib.sha256()
    for start in range(0, count, len(BLOCK)):
        digest.update(BLOCK[:min(len(BLOCK), count - start)])
    return count, digest.hexdigest()


@pytest.mark.parametrize("again", ["copy", "needBody"])
@pytest.mark.parametrize("size", ["known", "chunked"])
@pytest.mark.parametrize("asks", ["never", "before", "after"])
def test_an_upload_arrives_complete(stage, asks, size, again):
    count = 6 << 20
    server = stage.server(upload_server(asks))
    body = {"type": "attach"} | ({"sizeBytes": count} if size == "known" else {})
    client = stage.client(answer=lambda params: password_answer("bob", "secret", persistence="none"))
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, asked = client.socket.getpeername(), []
    client.takes["fetch/needBody"] = lambda need: client.reply(need, {"body": body}) or asked.append(send(path, upload.token, count))
    before = stage.brokers[0].resident_kilobytes
    upload = Download(client, server.url + "/up", method="PUT", body=body)
    send(path, upload.token, count)
    assert upload.headers()["status"] == 201
    assert upload.attach().read() == b""
    assert upload.completed()["status"] == 201
    sent = [wanted(count) + (login,) for login in ([False] if asks == "never" else [True])]
    if asks == "after":
        sent.insert(0, wanted(count) + (False,))
    assert server.bodies == sent
    assert server.refused == (asks == "before")
    assert len(asked) == (asks == "after" and again == "needBody")
    assert stage.brokers[0].resident_kilobytes - before < 8 << 10


@pytest.mark.parametrize("scheme", ["httpDigest", "ntlm"])
def test_a_large_upload_arrives_once_after_its_login(stage, tmp_path, scheme):
    """The challenge comes before the first byte: as the response to the announcement, or to a round of a handshake, which has
    no body."""
    count, password = LARGE_MEGABYTES << 20, stage.secret()
    if scheme == "ntlm":
        check = rig_ntlm.NtlmCheck(tmp_path, {"bob": password}, handler=lambda request: response(201))
        answer = password_answer("bob", password, domain=rig_ntlm.DOMAIN, persistence="none")
    else:
        check, answer = DigestCheck("bob", password), password_answer("bob", password, persistence="none")
    server = stage.server(UploadServer(check))
    stage.allow(password, server)
    broker = stage.configured('[schemes]\nntlm = ["127.0.0.1"]\n')
    client = stage.client(answer=lambda params: answer, broker=broker)
    warm = Download(client, server.url + "/warm", method="PUT", body={"type": "attach", "sizeBytes": 8})
    send(client.socket.getpeername(), warm.token, 8)
    assert warm.headers()["status"] in (200, 201) and warm.attach().read() is not None and warm.completed()
    before = broker.peak_kilobytes
    upload = Download(client, server.url + "/up", method="PUT", body={"type": "attach", "sizeBytes": count})
    send(client.socket.getpeername(), upload.token, count)
    assert upload.headers(seconds=600)["status"] in (200, 201)
    upload.attach().read()
    assert upload.completed()["auth"]["authenticationMethod"] == scheme
    assert [body[:2] for body in server.bodies if body[0] > 8] == [wanted(count)]
    assert broker.peak_kilobytes - before < 8 << 10


class Scripted(StreamServer):
    """Records what each connection sends, and responds to its header with `answer(number, head)`."""

    requests_to_a_connection = None

    def __init__(self, answer):
        self.answer, self.heard = answer, {}
        super().__init__(None)

    def _serve(self, connection, number):
        self.heard[number] = b""
        try:
            while data := connection.recv(1 << 16):
                heads = self.heard[number].count(b"\r\n\r\n")
                self.heard[number] += data
                if self.requests_to_a_connection and self.heard[number].count(b"PUT /") > self.requests_to_a_connection:
                    return
                if not heads and b"\r\n\r\n" in self.heard[number]:
                    connection.sendall(self.answer(number, self.heard[number]))
        except OSError:
            pass
        finally:
            connection.close()
            self.ended[number] = time.monotonic()


@pytest.mark.parametrize("again", ["copy", "needBody"])
def test_a_reused_connection_that_closes_during_an_upload(stage, again):
    """The server closes it when the second request arrives, as it may at any time."""
    server, client = stage.server(Scripted(lambda number, head: response(201, b""))), stage.client()
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, body = client.socket.getpeername(), {"type": "attach", "sizeBytes": 10}
    client.takes["fetch/needBody"] = lambda need: client.reply(need, {"body": body}) or send(path, upload.token, 10)
    server.requests_to_a_connection = 1
    for _ in range(2):
        upload = Download(client, server.url, method="PUT", body=body)
        send(path, upload.token, 10)
        assert upload.headers()["status"] == 201
        assert upload.attach().read() == b"" and upload.completed()["status"] == 201
    assert server.heard[1].count(b"PUT /") == 2, "the connection was persistent"
    # The response does not wait for the body.
    eventually(lambda: server.heard[max(server.heard)].endswith(b"\r\n\r\n" + BLOCK[:10]), lambda: server.heard)


def test_data_beyond_the_announced_size_is_not_sent(stage):
    """The server would take the rest for another request, on a connection that another fetch may use next."""
    server, client = stage.server(Scripted(lambda number, head: b"")), stage.client()
    other = stage.server(lambda request: response(200))
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 5})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    attached.socket.sendall(b"12345GET /another HTTP/1.1\r\nHost: h\r\n\r\n")
    attached.socket.shutdown(socket.SHUT_WR)
    eventually(lambda: server.heard.get(1, b"").endswith(b"\r\n\r\n12345"), lambda: server.heard)
    # Other transfers continue meanwhile. When the connection is closed, no more data is sent on it.
    for _ in range(3):
        assert client.fetch(other.url)["result"]["status"] == 200
    assert upload.cancel() is True
    eventually(lambda: 1 in server.ended, "the connection stays open")
    assert server.heard[1].endswith(b"\r\n\r\n12345")


def test_a_writer_that_dies_leaves_no_complete_request(stage):
    """The kernel closes all descriptors of the client. A body of unknown size must not get an end at the server."""
    server = stage.server(Scripted(lambda number, head: b"HTTP/1.1 100 Continue\r\n\r\n"))
    stage.client().call("ping")
    for number in range(1, 21):
        client = stage.client()
        upload = Download(client, server.url, method="PUT", body={"type": "attach"})
        attached = Attached(client.socket.getpeername(), upload.token, side="request")
        attached.socket.sendall(b"the start")
        eventually(lambda: b"the start" in server.heard.get(number, b""), "the server has received nothing")
        attached.close()
        client.close()
    # When a connection is closed, everything has been received that is ever sent on it.
    eventually(lambda: len(server.ended) == 20, lambda: f"{len(server.ended)} connections have ended")
    assert [number for number, heard in server.heard.items() if heard.endswith(b"\r\n0\r\n\r\n")] == []


def turns(client):
    """The number of iterations of the broker's loop so far."""
    return sum(client.call("server/status")["result"]["loop"]["turns"])


def test_a_refusal_does_not_wait_for_a_missing_body(stage):
    """A body that arrives while the question is open costs no processor time."""
    def answer(number, head):
        return response(201 if b"Authorization" in head else 401, b"", 'WWW-Authenticate: Basic realm="r"')

    server, client = stage.server(Scripted(answer)), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 10})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    challenge = client.challenges.get(timeout=30)
    attached.socket.sendall(b"0123456789")
    attached.socket.shutdown(socket.SHUT_WR)
    # A loop that did not stop reading would take thousands of turns during this fetch.
    before = turns(client)
    silent = stage.server(Scripted(lambda number, head: b""))
    assert client.fetch(silent.url, timeoutMs=500)["error"]["data"]["kind"] == "timedOut"
    assert turns(client) - before < 100
    client.reply(challenge, password_answer("bob", "secret", persistence="none"))
    assert upload.headers()["status"] == 201
    eventually(lambda: server.heard[2].endswith(b"\r\n\r\n0123456789"), lambda: server.heard)
    assert upload.attach().read() == b"" and upload.completed()["exchanges"] == 2


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_cancelled_upload_leaves_nothing_behind(stage, way):
    server = stage.server(upload_server("never"))
    other, client = stage.client(), stage.client()
    other.call("ping")
    path = client.socket.getpeername()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 1 << 30})
    attached = Attached(path, upload.token, side="request")
    attached.socket.sendall(BLOCK)
    # Resources that only the first upload of a broker allocates are allocated by now.
    eventually(lambda: server.requests, "the server was not called")
    before = stage.brokers[0].descriptors
    if way == "cancel":
        assert upload.cancel()
        assert upload.failure() == "cancelled"
    else:
        client.close()
    # The broker closes the connection, so that the client cannot write forever.
    with pytest.raises(OSError):
        for _ in range(10_000):
            attached.socket.sendall(BLOCK)
    eventually(lambda: stage.brokers[0].descriptors < before, "the broker does not release its descriptors")
