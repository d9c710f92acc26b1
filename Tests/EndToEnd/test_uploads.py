"""Uploads through a connection of their own: whole, once where that can be, and again where it has to be."""
import hashlib
import http.server
import os
import socket
import threading
import time

import pytest

from rig.bodies import Attached, Download, eventually
from rig import ntlm as rig_ntlm
from rig import uploads
from rig.client import password_answer
from rig.scripted import DigestCheck, response
from rig.streams import StreamServer

BLOCK = os.urandom(1 << 16)
# 4096 for the whole of it: as much as may be challenged without being held anywhere.
LARGE_MEGABYTES = int(os.environ.get("WATCHWORD_TEST_UPLOAD_MEGABYTES", "64"))


class UploadServer(http.server.ThreadingHTTPServer):
    """Takes PUT; asks for a log-in never, before the body (where it is announced) or after it. Remembers what came."""

    daemon_threads = True

    def __init__(self, asks):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asks, self.bodies, self.refused_early, self.is_called = asks, [], 0, threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/up"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def setup(self):
        super().setup()
        self.server.is_called.set()

    def handle_expect_100(self):
        if self.server.asks == "before" and not self.headers.get("Authorization"):
            self.server.refused_early += 1
            self.refuse()
            return False
        return super().handle_expect_100()

    def refuse(self):
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="r"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def parts(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while count := int(self.rfile.readline(), 16):
                yield self.rfile.read(count)
                self.rfile.readline()
            self.rfile.readline()
        else:
            left = int(self.headers["Content-Length"])
            while left and (part := self.rfile.read(min(left, 1 << 20))):
                left -= len(part)
                yield part

    def do_PUT(self):
        digest, count = hashlib.sha256(), 0
        for part in self.parts():
            digest.update(part)
            count += len(part)
        login = self.headers.get("Authorization")
        self.server.bodies.append((count, digest.hexdigest(), login is not None))
        if self.server.asks != "never" and not login:
            return self.refuse()
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()


def send(path, token, count):
    """Attaches, and sends `count` bytes, in a thread of its own; a broker that wants no more is no failure here."""
    attached = Attached(path, token, side="request")
    assert attached.reply.get("result") == {}, attached.reply

    def run():
        left = count
        try:
            while left:
                left -= attached.socket.send(BLOCK[:min(left, len(BLOCK))])
            attached.socket.shutdown(socket.SHUT_WR)
            # Who leaves before the broker has seen the end has not said that this was all.
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
def test_it_arrives_whole(stage, asks, size, again):
    count = 6 << 20
    server = UploadServer(asks)
    body = {"type": "attach"} | ({"sizeBytes": count} if size == "known" else {})
    client = stage.client(answer=lambda params: password_answer("bob", "secret", persistence="none"))
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, asked = client.socket.getpeername(), []
    client.give_body = lambda params: ({"body": body}, lambda: asked.append(send(path, upload.token, count)))
    before = stage.brokers[0].resident_kilobytes
    upload = Download(client, server.url, method="PUT", body=body)
    send(path, upload.token, count)
    assert upload.headers()["status"] == 201
    assert upload.attach().read() == b""
    assert upload.completed()["status"] == 201
    sent = [wanted(count) + (login,) for login in ([False] if asks == "never" else [True])]
    if asks == "after":
        sent.insert(0, wanted(count) + (False,))
    assert server.bodies == sent
    assert server.refused_early == (asks == "before")
    assert len(asked) == (asks == "after" and again == "needBody")
    assert stage.brokers[0].resident_kilobytes - before < 8 << 10
    server.shutdown()


def test_the_copy_of_an_upload_has_a_quota(stage):
    """Without a size, the copy grows with the body; it is given up at 256 MiB, and the body still arrives once."""
    count = 300 << 20
    server = UploadServer("after")
    client = stage.client(answer=lambda params: password_answer("bob", "secret", persistence="none"))
    broker = stage.brokers[0]
    upload = Download(client, server.url, method="PUT", body={"type": "attach"})
    writing, most = send(client.socket.getpeername(), upload.token, count), 0
    while writing.is_alive():
        most = max(most, broker.temporary_bytes)
        writing.join(0.02)
    completed = upload.completed()
    assert completed["error"]["data"]["kind"] == "bodyNotReplayable" and "quota" in completed["error"]["message"]
    assert 1 << 20 < most <= 256 << 20
    assert broker.temporary_bytes == 0
    assert server.bodies == [wanted(count) + (False,)]
    server.shutdown()


@pytest.mark.parametrize("scheme", ["httpDigest", "ntlm"])
def test_a_large_one_arrives_once_behind_its_log_in(stage, tmp_path, scheme):
    """The challenge comes before the first byte: to the announcement, or to the messages of a handshake, which have no body."""
    count, password = LARGE_MEGABYTES << 20, stage.secret()
    if scheme == "ntlm":
        check = rig_ntlm.NtlmCheck(tmp_path, {"bob": password}, handler=lambda request: response(201))
        answer = password_answer("bob", password, domain=rig_ntlm.DOMAIN, persistence="none")
    else:
        check, answer = DigestCheck("bob", password), password_answer("bob", password, persistence="none")
    server = stage.server(uploads.UploadServer(check))
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
    assert [body[1:] for body in server.bodies if body[1] > 8] == [wanted(count)]
    assert broker.peak_kilobytes - before < 8 << 10


class EarlyServer(threading.Thread):
    """Answers as soon as it has the header, and then with the number of bytes that come behind it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/"
        self.start()

    def run(self):
        connection, _ = self.listener.accept()
        file = connection.makefile("rb")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += file.readline()
        count = int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0])
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        text = str(len(file.read(count))).encode()
        connection.sendall(b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text))


def test_a_response_may_begin_before_the_request_has_ended(stage):
    server, client = EarlyServer(), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 9})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    attached.socket.sendall(b"abc")
    assert upload.headers()["status"] == 200
    attached.socket.sendall(b"def")
    time.sleep(0.2)
    attached.socket.sendall(b"ghi")
    attached.socket.shutdown(socket.SHUT_WR)
    assert upload.attach().read() == b"9"
    assert upload.completed()["bodyBytes"] == 1


class Scripted(StreamServer):
    """Remembers what each connection has said, whatever it was, and answers its header with `answer(number, head)`."""

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


@pytest.mark.parametrize("again", ["copy", "needBody"])
def test_a_kept_connection_that_dies_under_it(stage, again):
    """The server closes it when the second request comes, as it may at any time."""
    server, client = stage.server(Scripted(lambda number, head: response(201, b""))), stage.client()
    client.call("auth/subscribe", {"asksNeedBody": again == "needBody"})
    path, body = client.socket.getpeername(), {"type": "attach", "sizeBytes": 10}
    client.give_body = lambda params: ({"body": body}, lambda: send(path, upload.token, 10))
    server.requests_to_a_connection = 1
    for _ in range(2):
        upload = Download(client, server.url, method="PUT", body=body)
        send(path, upload.token, 10)
        assert upload.headers()["status"] == 201
        assert upload.attach().read() == b"" and upload.completed()["status"] == 201
    assert server.heard[1].count(b"PUT /") == 2, "the connection was kept"
    assert server.heard[max(server.heard)].endswith(b"\r\n\r\n" + BLOCK[:10])


def test_one_that_ends_too_early_is_a_failure(stage):
    server, client = UploadServer("never"), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 10})
    send(client.socket.getpeername(), upload.token, 3)
    assert upload.failure() == "bodyIncomplete"
    server.shutdown()


def test_what_goes_beyond_the_announced_size_is_not_sent(stage):
    """The server would take it for another request, on a connection that may be somebody else's next."""
    server, client = stage.server(Scripted(lambda number, head: b"")), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 5})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    attached.socket.sendall(b"12345GET /another HTTP/1.1\r\nHost: h\r\n\r\n")
    attached.socket.shutdown(socket.SHUT_WR)
    eventually(lambda: server.heard.get(1, b"").endswith(b"\r\n\r\n12345"), lambda: server.heard)
    time.sleep(0.2)
    assert server.heard[1].endswith(b"\r\n\r\n12345")


def test_a_writer_that_dies_leaves_nothing_that_looks_whole(stage):
    """The kernel closes what a client had open: of unknown size, its body must not get an end on the wire."""
    server = stage.server(Scripted(lambda number, head: b"HTTP/1.1 100 Continue\r\n\r\n"))
    stage.client().call("ping")
    for number in range(1, 21):
        client = stage.client()
        upload = Download(client, server.url, method="PUT", body={"type": "attach"})
        attached = Attached(client.socket.getpeername(), upload.token, side="request")
        attached.socket.sendall(b"the start")
        eventually(lambda: b"the start" in server.heard.get(number, b""), "nothing has come")
        attached.close()
        client.close()
    eventually(lambda: stage.client().call("server/status")["result"]["engine"]["running"] == 0, "transfers run")
    assert [number for number, heard in server.heard.items() if heard.endswith(b"\r\n0\r\n\r\n")] == []


def test_a_refusal_does_not_wait_for_a_body_that_has_not_come(stage):
    """And a body that comes while the question is open is no work for anybody."""
    def answer(number, head):
        return response(201 if b"Authorization" in head else 401, b"", 'WWW-Authenticate: Basic realm="r"')

    server, client = stage.server(Scripted(answer)), stage.client()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 10})
    attached = Attached(client.socket.getpeername(), upload.token, side="request")
    challenge = client.challenges.get(timeout=10)
    attached.socket.sendall(b"0123456789")
    attached.socket.shutdown(socket.SHUT_WR)
    before = stage.brokers[0].processor_seconds
    time.sleep(1)
    assert stage.brokers[0].processor_seconds - before < 0.3
    client.reply(challenge, password_answer("bob", "secret", persistence="none"))
    assert upload.headers()["status"] == 201
    assert server.heard[2].endswith(b"\r\n\r\n0123456789")
    assert upload.attach().read() == b"" and upload.completed()["exchanges"] == 2


def test_a_server_that_does_not_know_expectations_gets_the_body_without(stage):
    def handle(request):
        return response(417, b"no") if request.header("Expect") else response(200, b"stored")

    class Server(StreamServer):
        """A request that is announced has no body yet."""

        def _serve(self, connection, number):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(1)
            connection.sendall(response(417, b"no"))
            super()._serve(connection, number)

    server, client = stage.server(Server(handle)), stage.client()
    count = 2 << 20
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": count})
    send(client.socket.getpeername(), upload.token, count)
    assert upload.headers()["status"] == 200
    assert upload.attach().read() == b"stored"
    assert upload.completed()["status"] == 200
    assert [len(request.body) for request in server.requests] == [count]


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_who_gives_up_leaves_nothing_behind(stage, way):
    server = UploadServer("never")
    other, client = stage.client(), stage.client()
    other.call("ping")
    path = client.socket.getpeername()
    upload = Download(client, server.url, method="PUT", body={"type": "attach", "sizeBytes": 1 << 30})
    attached = Attached(path, upload.token, side="request")
    attached.socket.sendall(BLOCK)
    # What the first upload of a broker needs once and for all is there by now.
    assert server.is_called.wait(20)
    before = stage.brokers[0].descriptors
    if way == "cancel":
        assert upload.cancel()
        assert upload.failure() == "cancelled"
    else:
        client.close()
    # The broker lets go of the connection: nobody can write to it for ever.
    with pytest.raises(OSError):
        for _ in range(10_000):
            attached.socket.sendall(BLOCK)
    eventually(lambda: stage.brokers[0].descriptors < before, "the broker keeps its descriptors")
    server.shutdown()
