"""The request bodies that the helper sends, and where it writes response bodies."""
import email
import json
import os
import signal
import subprocess
import threading

import pytest

from rig.bodies import eventually
from rig.scripted import ScriptedServer, response


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


def test_invalid_text_is_refused_and_not_changed(shell, echo, tmp_path):
    for arguments in [["-d", b"a\xffb"], ["-o", b"a\xffb"], ["-F", b"a=\xff"]]:
        done = shell.run("fetch", *arguments, echo.url, cwd=tmp_path)
        assert done.returncode == 2 and b"not UTF-8" in done.stderr
    assert echo.requests == [] and not [path for path in tmp_path.iterdir() if path.is_file()]


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


def test_a_form_keeps_its_boundary_with_a_type_of_the_command(shell, echo):
    shell.run("fetch", "-H", "Content-Type: multipart/form-data; charset=utf-8", "-F", "a=b", echo.url)
    assert [part.get_payload() for part in parts(echo.requests[0])] == ["b"]


def test_a_form_is_sent_again_with_the_login(stage, shell):
    server, password = stage.protected()
    assert shell.run("fetch", "-u", f"bob:{password}", "-F", "a=b", server.url).stdout == b"welcome"
    assert [parts(request)[0].get_payload() for request in server.requests][-1] == "b"


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
