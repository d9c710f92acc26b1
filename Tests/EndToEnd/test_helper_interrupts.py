"""Ctrl-C during a download: what remains, and how it is resumed."""
import pytest

from rig.bodies import eventually
from rig.scripted import response
from test_helper_downloads import Slow, names, size_of_any


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def interrupted(stage, shell, folder, *options, headers=('ETag: "1"',), output=("-o", "{folder}/f"), path=""):
    """Presses Ctrl-C after 600 of 1000 bytes. Returns what the helper prints."""
    server = stage.server(Slow(bytes(range(250)) * 4, *headers, at=600))
    terminal = shell.at_terminal("fetch", *[part.format(folder=folder) for part in output], *options, server.url + path)
    assert server.has_begun.wait(30)
    eventually(lambda: size_of_any(folder.glob("f.??????")) >= 600, "the bytes are not in the file")
    terminal.type("\x03")
    assert terminal.end() == 130
    return terminal.shown


@pytest.mark.parametrize("output", [("-o", "{folder}/f"), ("-O", "--output-dir", "{folder}")], ids=["-o", "-O"])
def test_an_interrupted_download_is_resumed(stage, shell, out, output):
    assert f"600 bytes are in {out}/f.part; resume with -C -".encode() in interrupted(stage, shell, out, output=output, path="/f")
    assert names(out) == ["f.part", "f.part.validator"]
    body = bytes(range(250)) * 4
    server = stage.server(lambda request: response(206, body[600:], "Content-Range: bytes 600-999/1000", 'ETag: "1"'))
    assert shell.run("fetch", "-C", "-", *[part.format(folder=out) for part in output], f"{server.url}/f").returncode == 0
    assert (server.requests[0].header("Range"), server.requests[0].header("If-Range")) == ("bytes=600-", '"1"')
    assert names(out) == ["f"] and (out / "f").read_bytes() == body


@pytest.mark.parametrize("option, tag", [
    ("--remove-on-error", 'ETag: "1"'), ("-i", 'ETag: "1"'), ("--compressed", 'ETag: "1"'), ("-L", 'ETag: W/"1"'), ("-d=x", 'ETag: "1"'),
    ("-XPUT", 'ETag: "1"'), ("-L", f'ETag: "{5000 * "x"}"')], ids=range(7))
def test_a_download_that_cannot_be_resumed_leaves_no_file(stage, shell, out, option, tag):
    assert b"resume" not in interrupted(stage, shell, out, option, headers=[tag])
    assert names(out) == []


def test_a_partial_file_is_not_replaced(stage, shell, out):
    (out / "f.part").write_bytes(b"older" * 200)
    assert b"resume" not in interrupted(stage, shell, out)
    assert names(out) == ["f.part"] and (out / "f.part").read_bytes() == b"older" * 200
