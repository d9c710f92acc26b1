"""The request bodies that the helper sends, where it writes response bodies, and what is left when the helper, the server or the broker ends
at random moments of a transfer, or the disk is full."""
import contextlib
import email
import hashlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from rig import faults
from rig.bodies import eventually
from rig.broker import Broker, program
from rig.scripted import Request, ScriptedServer, head_from, response


class Stuck(ScriptedServer):
    """Reads a part of the first body, and the rest on demand."""

    def __init__(self, handler):
        self.has_begun, self.may_continue = threading.Event(), threading.Event()
        super().__init__(handler)

    def _open(self, connection, number):
        server = self

        class Slow:
            def recv(self, size):
                data = connection.recv(size)
                server.has_begun.set()
                server.may_continue.wait(30)
                return data

            def __getattr__(self, name):
                return getattr(connection, name)

        return Slow()


@pytest.fixture
def echo(stage):
    return stage.server(lambda request: response(200, b"taken"))


def test_standard_input_is_for_all_urls(shell, echo):
    shell.run("fetch", "-d", "@-", echo.url + "/1", echo.url + "/2", input=b"piped")
    shell.run("fetch", "-F", "a=<-", echo.url + "/1", echo.url + "/2", input=b"piped")
    assert [request.body for request in echo.requests[:2]] == [b"piped"] * 2
    assert [parts(request)[0].get_payload() for request in echo.requests[2:]] == ["piped"] * 2


def test_a_file_that_reports_the_size_0(shell, echo):
    """Files of proc(5) report the size 0."""
    version = open("/proc/version", "rb").read()
    shell.run("fetch", "--data-binary", "@/proc/version", echo.url)
    shell.run("fetch", "-T", "/proc/version", echo.url + "/x")
    assert [request.body for request in echo.requests] == [version] * 2


def parts(request):
    """Returns the parts, as Python's own parser for messages reads them."""
    head = b"Content-Type: " + request.header("Content-Type").encode() + b"\r\n\r\n"
    return email.message_from_bytes(head + request.body).get_payload()


def test_a_form_is_read_by_a_real_server(shell, httpbin, tmp_path):
    (tmp_path / "n.txt").write_bytes(b"note")
    done = shell.run("fetch", "-F", "a=b c", "-F", f"f=@{tmp_path}/n.txt", f"http://127.0.0.1:{httpbin.port}/post")
    answer = json.loads(done.stdout)
    assert answer["form"] == {"a": "b c"} and answer["files"] == {"f": "note"}


# Larger than an inline body: sent through a connection of its own


LARGE = 5 << 20


@pytest.fixture
def large(tmp_path):
    (tmp_path / "large").write_bytes(os.urandom(LARGE))
    return tmp_path / "large"


def test_a_large_file_is_streamed(shell, echo, large):
    for arguments in [["-T", str(large)], ["-X", "POST", "--data-binary", f"@{large}"]]:
        assert shell.run("fetch", *arguments, echo.url + "/x").stdout == b"taken"
        assert echo.requests[-1].body == large.read_bytes()


def test_a_large_form_is_streamed(shell, echo, large):
    assert shell.run("fetch", "-F", f"f=@{large}", "-F", "a=b", echo.url).stdout == b"taken"
    file, field = parts(echo.requests[0])
    assert file.get_payload(decode=True) == large.read_bytes() and field.get_payload() == "b"


def test_standard_input_is_streamed_chunked(shell, httpbin):
    done = shell.run("fetch", "-T", "-", f"http://127.0.0.1:{httpbin.port}/put", input=b"piped " * 50_000)
    answer = json.loads(done.stdout)
    assert answer["data"] == "piped " * 50_000 and "Content-Length" not in answer["headers"], answer["headers"]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_pipe_is_streamed_as_it_comes(stage, shell, tmp_path, is_named):
    """The writer of the pipe need not finish first."""
    server = stage.server(ScriptedServer(lambda request: None))
    os.mkfifo(tmp_path / "pipe")
    running = shell.start("fetch", "-T", str(tmp_path / "pipe") if is_named else "-", server.url + "/x", stdin=subprocess.PIPE)
    with open(tmp_path / "pipe", "wb", buffering=0) if is_named else running.stdin as pipe:
        for text in [b"first", b"second"]:
            pipe.write(text)
            pipe.flush()
            eventually(lambda: text in server.wire, lambda: server.wire)
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130


@pytest.mark.parametrize("way", ["-u", "question"])
def test_a_large_body_is_sent_again_with_the_login(stage, shell, large, way):
    """The file is read a second time; no copy is made."""
    server, password = stage.protected()
    if way == "-u":
        assert shell.run("fetch", "-u", f"bob:{password}", "-T", str(large), server.url + "/x").stdout == b"welcome"
    else:
        terminal = shell.at_terminal("fetch", "-T", str(large), server.url + "/x")
        terminal.answer({"User: ": "bob", "Password for bob: ": password})
        assert terminal.end() == 0 and b"welcome" in terminal.shown
    assert server.requests[-1].body == large.read_bytes() and server.requests[-1].authorization


def test_a_file_that_becomes_shorter_is_an_incomplete_body(stage, shell, tmp_path):
    """The truncated body must not look complete to the server."""
    file = tmp_path / "shrinking"
    file.write_bytes(b"x" * (40 << 20))
    server = stage.server(Stuck(lambda request: response(200, b"taken")))
    running = shell.start("fetch", "-T", str(file), server.url + "/x")
    assert server.has_begun.wait(30)
    os.truncate(file, 1 << 20)
    server.may_continue.set()
    output, errors = running.communicate(timeout=30)
    assert running.returncode == 26 and output == b"" and b"shorter" in errors, errors
    assert server.requests == []


SIZE = 3 << 20
BODY = random.Random(1).randbytes(SIZE)
DIGEST = hashlib.sha256(BODY).digest()
SECONDS = 0.4


class Paced(ScriptedServer):
    """Sends and receives bodies in steps that take `SECONDS` together, and can be ended in the middle of one."""

    def __init__(self):
        super().__init__(None)
        self.whole, self.open = [], []

    def _serve(self, connection, number):
        with self.lock:
            self.open.append(connection)
        try:
            with connection, connection.makefile("rb") as stream:
                head = head_from(stream)
                if not head:
                    return
                request = Request(number, head, b"")
                if request.method == "PUT":
                    self._take(connection, stream, int(request.header("Content-Length")))
                else:
                    connection.sendall(response(200, BODY, 'ETag: "v1"')[:-SIZE])
                    for part in range(0, SIZE, SIZE // 40):
                        connection.sendall(BODY[part:part + SIZE // 40])
                        time.sleep(SECONDS / 40)
        except OSError:
            pass

    def _take(self, connection, stream, length):
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = b""
        while len(body) < length and (part := stream.read(min(length - len(body), SIZE // 40))):
            body += part
            time.sleep(SECONDS / 40)
        if len(body) == length:
            self.whole.append(hashlib.sha256(body).digest())
            connection.sendall(response(200, b"taken"))

    def end(self):
        """Resets all connections at once, like a process that is killed. A mere end would leave a sender, whose data nobody reads
        or refuses, waiting for minutes."""
        self.close()
        with self.lock:
            for connection in self.open:
                with contextlib.suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 2 MiB, which is less than the body."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with faults.small(folder, "2m"):
        yield folder


class Case:
    """One transfer, and what ends it."""

    def __init__(self, number, folder, random):
        self.folder = folder / f"case{number}"
        self.folder.mkdir()
        self.way = ["down", "down on", "up"][number % 3]
        self.cause = ["helper KILL", "helper TERM", "server", "broker KILL", "broker TERM"][number // 3 % 5]
        self.delay = random.uniform(0, SECONDS * 1.2)
        self.server = Paced()

    def __repr__(self):
        return f"{self.way}, {self.cause} after {self.delay:.3f} s"

    def run(self, shared):
        if not self.cause.startswith("broker"):
            return self.transfer(shared)
        (self.folder / "broker").mkdir()
        broker = Broker(self.folder / "broker").start()
        try:
            return self.transfer(broker)
        finally:
            broker.kill()

    def transfer(self, broker):
        files = self.folder / "files"
        files.mkdir()
        (files / "f").write_bytes(b"as before")
        (files / "source").write_bytes(BODY)
        arguments = {"down": ["-o", "f"], "down on": ["-C", "-", "-o", "f"], "up": ["-o", "f", "-T", "source"]}[self.way]
        process = subprocess.Popen(
            [program("watchword"), "fetch", "--no-start", *arguments, f"{self.server.url}/x"],
            env={**broker.environment, "WATCHWORD_SOCKET": broker.socket}, cwd=files,
            start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(self.delay)
        if self.cause == "server":
            self.server.end()
        else:
            who, how = self.cause.split()
            (process if who == "helper" else broker.process).send_signal(signal.Signals[f"SIG{how}"])
        output, errors = process.communicate(timeout=30)
        if self.cause.startswith("broker"):
            broker.process.wait(30)
        self.server.end()
        self.check(files, process.returncode, errors)
        return process.returncode

    def check(self, files, code, errors):
        wanted = b"taken" if self.way == "up" else BODY
        found = (files / "f").read_bytes()
        # The transfer may be complete before that.
        assert found == (wanted if code == 0 else b"as before"), (self, code, len(found), errors)
        assert set(self.server.whole) <= {DIGEST}, (self, "an incomplete body looked complete")
        left = {path.name for path in files.iterdir()} - {"f", "source"}
        if self.cause == "helper KILL":
            assert {name for name in left if not name.startswith("f.")} == set(), (self, left)
        elif self.way == "down on":
            assert left <= {"f.part", "f.part.validator"}, (self, left)
        elif self.way == "down" and self.cause != "server":
            # A download that the helper's user or a lost broker ends can be resumed, because the server names its version.
            assert left in (set(), {"f.part", "f.part.validator"}), (self, left)
        else:
            assert left == set(), (self, left)
        if self.cause != "helper KILL" and (files / "f.part").exists():
            part = (files / "f.part").read_bytes()
            assert part == BODY[:len(part)], (self, len(part))
        if code > 0:
            assert errors.count(b"\n") == 1 + errors.count(b"resume with -C -") or code > 128, (self, code, errors)


@pytest.mark.tier3("waits at fifty moments")
def test_fifty_moments(stage, tmp_path):
    """A file under its final name is complete, no file is left but one that can be resumed, and every failure has its status."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = random.Random(seed)
    broker = stage.broker()
    cases = [Case(number, tmp_path, source) for number in range(50)]
    codes, failures = [], []

    def run(some):
        for case in some:
            try:
                codes.append(case.run(broker))
            except Exception as problem:
                failures.append((case, problem))

    threads = [threading.Thread(target=run, args=(cases[first::4],)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, (seed, failures)
    assert broker.process.poll() is None, broker.log[-3000:]
    # On SIGTERM, the broker waits for bodies in progress.
    assert sum(code != 0 for code in codes) > 15, codes


def test_a_full_disk(stage, small_disk):
    """The disk becomes full at any byte: the first, one in the middle, or one of the last."""
    broker = stage.broker()
    for free in [0, 5000, 1 << 20, 2 << 20]:
        for more in [[], ["-C", "-"]]:
            server = Paced()
            (small_disk / "filler").write_bytes(bytes((2 << 20) - free - (64 << 10)) if free < 2 << 20 else b"")
            done = subprocess.run(
                [program("watchword"), "fetch", *more, "-o", "f", f"{server.url}/x"], env={**broker.environment, "WATCHWORD_SOCKET": broker.socket},
                cwd=small_disk, capture_output=True, timeout=30, start_new_session=True)
            server.end()
            assert done.returncode == 23 and done.stderr.count(b"\n") == 1 + done.stderr.count(b"resume with -C -"), (free, more, done)
            assert not (small_disk / "f").exists()
            left = sorted(path.name for path in small_disk.iterdir() if path.name != "filler")
            assert left == [] if not more else set(left) <= {"f.part", "f.part.validator"}, left
            if left:
                part = (small_disk / "f.part").read_bytes()
                assert part == BODY[:len(part)]
            for name in left:
                (small_disk / name).unlink()
