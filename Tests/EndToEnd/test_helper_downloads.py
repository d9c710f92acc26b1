"""The helper's output files: complete files, resumed and interrupted downloads, retries, parallel downloads, and the progress bar."""
import contextlib
import json
import os
import re
import subprocess
import threading
import time

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.scripted import basic_server, response
from rig.scripted_broker import OK, ScriptedBroker
from rig.streams import StreamServer, UploadServer
from test_helper_tls import challenge


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def size_of_any(paths):
    """The bytes in the files, which may be renamed meanwhile."""
    total = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def named(request):
    return response(200, b"body of " + request.target.encode())


def test_a_device_and_a_link_stay_what_they_are(stage, shell, tmp_path):
    url = stage.server(named).url
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    assert shell.run("fetch", "-o", "pipe", f"{url}/p", cwd=tmp_path).returncode == 0
    assert reader.communicate(timeout=30)[0] == b"body of /p" and (tmp_path / "pipe").is_fifo()
    assert shell.run("fetch", "-o", "link", f"{url}/l", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"body of /l"


class Cut(StreamServer):
    """Sends `at` bytes of the body that it has announced, and what `then` yields."""

    def __init__(self, body, *headers, at):
        whole = response(200, body, *headers)
        place = len(whole) - len(body) + at
        super().__init__(lambda request: (part for parts in ([whole[:place]], self.then(whole[place:])) for part in parts))

    def then(self, rest):
        yield None


def test_a_broker_that_dies_during_a_download_leaves_no_file(tmp_path):
    """The attached connection ends like that of a complete body; only the number of bytes tells the difference."""
    broker = ScriptedBroker(tmp_path, lambda broker, params: {**OK, "bodyBytes": 1000})
    done = subprocess.run(
        [program("watchword"), "fetch", "-o", str(tmp_path / "f"), "http://h/"], env=broker.environment, capture_output=True, timeout=30,
        start_new_session=True)
    broker.close()
    assert done.returncode == 18 and not list(tmp_path.glob("f*")), done


class Slow(Cut):
    """Stops there, and continues on demand."""

    def __init__(self, *arguments, **more):
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        super().__init__(*arguments, **more)

    def then(self, rest):
        self.has_begun.set()
        self.may_end.wait(300)
        yield rest


# Retries

def test_retries_and_their_delays(stage, shell):
    answers = [response(503, b"busy"), response(429, b"later", "Retry-After: 2"), response(200, b"there")]
    server = stage.server(lambda request: answers[len(server.requests) - 1])
    start = time.monotonic()
    done = shell.run("fetch", "--retry", "3", server.url)
    assert (done.returncode, done.stdout) == (0, b"there") and time.monotonic() - start >= 3
    assert b"503" in done.stderr and b"(retry 2 of 3 in 2 s)" in done.stderr
    server.requests.clear()
    answers[2] = response(500, b"broken")
    done = shell.run("fetch", "--retry", "2", "--retry-delay", "0.1", server.url)
    assert (done.returncode, done.stdout, len(server.requests)) == (0, b"broken", 3)
    server.requests.clear()
    assert shell.run("fetch", server.url).stdout == b"busy" and len(server.requests) == 1


def test_a_retry_sends_the_same_body_but_not_standard_input(stage, shell, tmp_path):
    (tmp_path / "f").write_bytes(b"content")
    server = stage.server(lambda request: response(503, b"busy"))
    shell.run("fetch", "--retry", "1", "--retry-delay", "0.1", "-T", str(tmp_path / "f"), server.url + "/x")
    assert [request.body for request in server.requests] == [b"content"] * 2
    server = stage.server(UploadServer(lambda request: response(503, b"busy"), is_late=True))
    assert shell.run("fetch", "--retry", "1", "--retry-delay", "0.1", "-T", "-", server.url + "/x", input=b"piped").stdout == b"busy"
    assert len(server.requests) == 1


def test_a_retry_does_not_repeat_the_question(stage, shell):
    password = stage.secret()
    server = basic_server("bob", password)
    inner, failures = server.handler, []

    def handle(request):
        if request.authorization and not failures:
            failures.append(1)
            return response(503, b"busy")
        return inner(request)

    server.handler = handle
    stage.server(server)
    stage.allow(password, server)
    terminal = shell.at_terminal("fetch", "--keep", "none", "--retry", "1", server.url)
    terminal.answer({"User: ": "bob", "Password for bob: ": password})
    assert terminal.end() == 0
    assert terminal.shown.count(b"User: ") == 1 and b"welcome" in terminal.shown


# Resuming

class Ranges:
    """A file in several versions, served with ranges (RFC 9110 section 14)."""

    def __init__(self, body, tag='"v1"', knows_ranges=True):
        self.body, self.tag, self.knows_ranges, self.cut = body, tag, knows_ranges, None

    def __call__(self, request):
        found = re.fullmatch(r"bytes=(\d+)-", request.header("Range") or "")
        is_same = request.header("If-Range") in (None, self.tag)
        if not found or not is_same or not self.knows_ranges:
            return response(200, self.body, f"ETag: {self.tag}")
        first = int(found.group(1))
        if first >= len(self.body):
            return response(416, b"", f"Content-Range: bytes */{len(self.body)}", f"ETag: {self.tag}")
        return response(206, self.body[first:], f"Content-Range: bytes {first}-{len(self.body) - 1}/{len(self.body)}", f"ETag: {self.tag}")


@pytest.fixture
def begun(stage, shell, tmp_path):
    """600 of 1000 bytes are in the file."""
    body = os.urandom(1000)
    done = shell.run("fetch", "-C", "-", "-o", "f", stage.server(Cut(body, 'ETag: "v1"', at=600)).url, cwd=tmp_path)
    assert done.returncode == 18 and b"600 bytes are in" in done.stderr, done
    assert (tmp_path / "f.part").read_bytes() == body[:600] and not (tmp_path / "f").exists()
    return body


def resume(stage, shell, folder, handler, at="-"):
    server = stage.server(handler)
    return shell.run("fetch", "-C", at, "-o", "f", server.url, cwd=folder), server


@pytest.mark.parametrize("size", [1000, 600], ids=["the rest", "nothing more"])
def test_resuming_where_it_ended(stage, shell, tmp_path, begun, size):
    done, server = resume(stage, shell, tmp_path, Ranges(begun[:size]))
    assert done.returncode == 0 and len(server.requests) == 1, done
    assert (tmp_path / "f").read_bytes() == begun[:size] and not list(tmp_path.glob("f.*"))
    assert (server.requests[0].header("Range"), server.requests[0].header("If-Range")) == ("bytes=600-", '"v1"')


@pytest.mark.parametrize("handler", [
    Ranges(b"another", tag='"v2"'), Ranges(b"another version that is longer" * 50, tag='"v2"'), Ranges(b"no ranges", knows_ranges=False)])
def test_another_version_is_fetched_from_the_start(stage, shell, tmp_path, begun, handler):
    done, _ = resume(stage, shell, tmp_path, handler)
    assert done.returncode == 0, done
    assert (tmp_path / "f").read_bytes() == handler.body and not list(tmp_path.glob("f.*"))


def test_a_server_that_ignores_if_range_causes_no_mixed_file(stage, shell, tmp_path, begun):
    other = Ranges(os.urandom(1000), tag='"v2"')

    def careless(request):
        request.headers = [(name, value) for name, value in request.headers if name != "If-Range"]
        return other(request)

    done, server = resume(stage, shell, tmp_path, careless)
    assert done.returncode == 0 and (tmp_path / "f").read_bytes() == other.body
    assert [request.header("Range") for request in server.requests] == ["bytes=600-", None]


def test_an_error_does_not_change_the_partial_file(stage, shell, tmp_path, begun):
    done, _ = resume(stage, shell, tmp_path, lambda request: response(500, b"broken"))
    assert done.returncode == 22 and (tmp_path / "f.part").read_bytes() == begun[:600] and not (tmp_path / "f").exists()


def test_a_fixed_offset(stage, shell, tmp_path, begun):
    assert shell.run("fetch", "-C", "990", stage.server(Ranges(begun)).url).stdout == begun[990:]
    assert resume(stage, shell, tmp_path, Ranges(begun), at="700")[0].returncode == 36
    assert shell.run("fetch", "-C", "5", stage.server(Ranges(begun, knows_ranges=False)).url).returncode == 33
    assert resume(stage, shell, tmp_path, Ranges(begun), at="500")[0].returncode == 0
    assert (tmp_path / "f").read_bytes() == begun


def test_resuming_with_a_real_server(shell, nginx, tmp_path):
    url = f"http://127.0.0.1:{nginx.port}/large.bin"
    whole = shell.run("fetch", "-i", url).stdout
    head, body = whole.split(b"\r\n\r\n", 1)
    tag = re.search(rb'(?i)etag: (".*?")', head).group(1)
    (tmp_path / "f.part").write_bytes(body[:len(body) // 2])
    (tmp_path / "f.part.validator").write_bytes(tag)
    done = shell.run("fetch", "-C", "-", "-o", "f", url, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "f").read_bytes() == body, done


def test_a_limited_rate_and_a_coding(stage, shell, httpbin):
    large = stage.server(lambda request: response(200, b"x" * 3_000_000))
    start = time.monotonic()
    assert len(shell.run("fetch", "--limit-rate", "1M", large.url).stdout) == 3_000_000
    assert time.monotonic() - start > 1.5
    done = shell.run("fetch", "--compressed", f"http://127.0.0.1:{httpbin.port}/gzip")
    assert json.loads(done.stdout)["gzipped"] is True


# Parallel downloads

def test_parallel_fetches_run_at_the_same_time(stage, shell, tmp_path):
    servers = [stage.server(Slow(bytes([65 + index]) * 1000, at=500)) for index in range(5)]
    command = [part for index, server in enumerate(servers) for part in ("-o", f"f{index}", server.url)]
    running = shell.start("fetch", "-Z", *command, cwd=tmp_path)
    assert all(server.has_begun.wait(30) for server in servers)
    for server in reversed(servers):
        server.may_end.set()
    assert running.communicate(timeout=30)[1] == b"" and running.returncode == 0
    assert [(tmp_path / f"f{index}").read_bytes() for index in range(5)] == [bytes([65 + index]) * 1000 for index in range(5)]


def test_a_failed_transfer_stops_no_other(stage, shell, tmp_path):
    url = stage.server(named).url
    for more in [[], ["-Z"]]:
        done = shell.run(
            "fetch", *more, "-o", "a", f"{url}/a", "-o", "b", "http://127.0.0.1:1/", "-o", "c", f"{url}/c", cwd=tmp_path)
        assert done.returncode == 7 and (tmp_path / "c").read_bytes() == b"body of /c"
        assert not (tmp_path / "b").exists()
        (tmp_path / "c").unlink()


def test_one_question_for_all_while_the_others_continue(stage, shell, tmp_path):
    server, password = stage.protected()
    free = stage.server(lambda request: response(200, b"x" * (3 << 20)))
    command = [part for index in range(4) for part in ("-o", f"f{index}", f"{server.url}/{index}")]
    folder = str(tmp_path)
    terminal = shell.at_terminal("fetch", "-Z", *[part.replace("f", f"{folder}/f") if part.startswith("f") else part for part in command],
                                 "-o", f"{folder}/big", free.url)
    terminal.expect("waiting for your answer", "User: ")
    eventually(lambda: size_of_any(tmp_path.glob("big*")) == 3 << 20, "the others wait for the answer")
    terminal.type("bob\n")
    terminal.answer({"Password for bob: ": password})
    assert terminal.end() == 0
    assert terminal.shown.count(b"User: ") == 1
    assert [(tmp_path / f"f{index}").read_bytes() for index in range(4)] == [b"welcome"] * 4


def test_a_question_that_is_withdrawn_at_once_is_not_shown(tmp_path):
    """The challenge and its withdrawal arrive in one read, and nothing else until a prompt would be shown."""
    asked = challenge("httpBasic", {"realm": "Staff"}, accepts=["password"])

    def plan(broker, params):
        messages = [{"id": 1, "method": "auth/challenge", "params": asked}, {"method": "$/cancelRequest", "params": {"id": 1}}]
        broker.connection.sendall(b"".join(json.dumps({"jsonrpc": "2.0", **one}).encode() + b"\n" for one in messages))
        time.sleep(0.5)
        return OK

    broker = ScriptedBroker(tmp_path, plan)
    terminal = broker.at_terminal("fetch", "http://h/")
    assert terminal.end() == 0 and b"done" in terminal.shown and b"User" not in terminal.shown
    broker.close()


# Progress bar

def test_the_progress_bar_is_cleared_at_the_end(stage, shell, tmp_path):
    server = stage.server(Slow(b"x" * 900, at=450))
    terminal = shell.at_terminal("fetch", "-o", str(tmp_path / "f"), server.url + "/report.csv")
    terminal.expect("report.csv", "50%  450 B of 900 B")
    server.may_end.set()
    assert terminal.end() == 0
    assert terminal.shown.endswith(b"\r" + b" " * (len(terminal.shown.split(b"\r")[-2])) + b"\r")


def let_a_bar_come(server, stage, shell):
    """Waits until a transfer that began later shows its progress bar."""
    assert server.has_begun.wait(30)
    later = stage.server(Slow(b"z" * 1000, at=500))
    terminal = shell.at_terminal("fetch", "-o", "/dev/null", later.url)
    terminal.expect("50%")
    later.may_end.set()
    assert terminal.end() == 0
    server.may_end.set()


@pytest.mark.parametrize("options", [["-s"], ["--no-progress-meter"]])
def test_no_progress_bar_where_none_is_wanted(stage, shell, tmp_path, options):
    server = stage.server(Slow(b"x" * 1000, at=500))
    terminal = shell.at_terminal("fetch", *options, "-o", str(tmp_path / "f"), server.url)
    let_a_bar_come(server, stage, shell)
    assert terminal.end() == 0 and terminal.shown == b""


def test_no_bar_in_a_pipe_and_none_among_the_body(stage, shell):
    server = stage.server(Slow(b"x" * 1000, at=500))
    running = shell.start("fetch", server.url)
    let_a_bar_come(server, stage, shell)
    assert running.communicate(timeout=30) == (b"x" * 1000, b"")
    server = stage.server(Slow(b"y" * 1000, at=500))
    terminal = shell.at_terminal("fetch", server.url)
    let_a_bar_come(server, stage, shell)
    assert terminal.end() == 0 and terminal.shown == b"y" * 1000


def test_silence(shell):
    assert shell.run("fetch", "-s", "http://127.0.0.1:1/").stderr == b""
    assert shell.run("fetch", "-sS", "http://127.0.0.1:1/").stderr.count(b"\n") == 1


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
