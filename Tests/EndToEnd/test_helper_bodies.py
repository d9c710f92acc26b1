"""What the helper sends as a body, and where it puts what it gets."""
import email
import json
import os

import pytest

from rig.scripted import basic_server, response
from rig.terminal import Shell


@pytest.fixture
def shell(stage):
    return Shell(stage.broker())


@pytest.fixture
def echo(stage):
    return stage.server(lambda request: response(200, b"taken"))


def test_data_reaches_the_server_byte_by_byte(shell, echo, tmp_path):
    bytes_of_all_kinds = bytes(range(256)) * 3 + b"\r\n\0"
    file = tmp_path / "data"
    file.write_bytes(bytes_of_all_kinds)
    shell.run("fetch", "--data-binary", f"@{file}", echo.url)
    shell.run("fetch", "--data-raw", "@x", "--data-urlencode", "a=ü b", "-d", "c", echo.url)
    shell.run("fetch", "-G", "-d", "a=b", echo.url + "/x")
    shell.run("fetch", "--data-binary", "@-", echo.url, input=b"from\nthe pipe")
    assert [request.body for request in echo.requests] == [bytes_of_all_kinds, b"@x&a=%C3%BC%20b&c", b"", b"from\nthe pipe"]
    assert [request.method for request in echo.requests] == ["POST", "POST", "GET", "POST"]
    assert echo.requests[2].target == "/x?a=b"


def parts(request):
    """As Python's own parser for messages reads them."""
    head = b"Content-Type: " + request.header("Content-Type").encode() + b"\r\n\r\n"
    return email.message_from_bytes(head + request.body).get_payload()


def test_a_form_with_files(shell, echo, tmp_path):
    picture = os.urandom(5000)
    (tmp_path / "p.png").write_bytes(picture)
    (tmp_path / "n.txt").write_bytes(b"note")
    done = shell.run(
        "fetch", "-F", "a=b", "-F", f"file=@{tmp_path}/p.png", "-F", f'q"r=@{tmp_path}/n.txt;filename="x;y";type=text/x', "-F",
        f"c=<{tmp_path}/n.txt", "--form-string", "s=@;type=x", echo.url)
    assert done.stdout == b"taken", done
    found = [
        (part.get_param("name", header="content-disposition"), part.get_filename(), part.get("Content-Type"), part.get_payload(decode=True))
        for part in parts(echo.requests[0])]
    assert found == [
        ("a", None, None, b"b"), ("file", "p.png", "image/png", picture), ("q%22r", "x;y", "text/x", b"note"),
        ("c", None, "text/plain", b"note"), ("s", None, None, b"@;type=x")]
    assert echo.requests[0].method == "POST"


def test_a_form_is_read_by_a_real_server(shell, httpbin, tmp_path):
    (tmp_path / "n.txt").write_bytes(b"note")
    done = shell.run("fetch", "-F", "a=b c", "-F", f"f=@{tmp_path}/n.txt", f"http://127.0.0.1:{httpbin.port}/post")
    answer = json.loads(done.stdout)
    assert answer["form"] == {"a": "b c"} and answer["files"] == {"f": "note"}


def test_a_form_keeps_its_boundary_with_a_type_of_the_command(shell, echo):
    shell.run("fetch", "-H", "Content-Type: multipart/form-data; charset=utf-8", "-F", "a=b", echo.url)
    assert [part.get_payload() for part in parts(echo.requests[0])] == ["b"]


def test_put_a_file(shell, echo, tmp_path):
    (tmp_path / "a b").write_bytes(b"content")
    assert shell.run("fetch", "-T", str(tmp_path / "a b"), echo.url + "/folder/").stdout == b"taken"
    assert shell.run("fetch", "-T", "-", echo.url + "/x", input=b"piped").stdout == b"taken"
    assert [(request.method, request.target, request.header("Content-Type")) for request in echo.requests] == [
        ("PUT", "/folder/a%20b", None), ("PUT", "/x", None)]
    assert echo.requests[0].body == b"content" and b"piped" in echo.wire
    assert shell.run("fetch", "-T", "/nonexistent", echo.url).returncode == 26


def test_a_form_is_sent_again_with_the_log_in(stage, shell):
    password = stage.secret()
    server = stage.server(basic_server("bob", password))
    stage.allow(password, server)
    assert shell.run("fetch", "-u", f"bob:{password}", "-F", "a=b", server.url).stdout == b"welcome"
    assert [parts(request)[0].get_payload() for request in server.requests][-1] == "b"
