"""The helper's files, what it leaves behind after errors and signals, and files that another user has created where it writes."""
import os
import resource
import signal
import stat
import subprocess

import pytest

from rig.bodies import eventually
from rig.broker import program
from rig.scripted import response
from rig.waiting import is_drained
from test_helper_downloads import Cut, Ranges, Slow, named, names, size_of_any


# Exits

@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_no_file(stage, shell, tmp_path, number):
    server = stage.server(Slow(b"x" * 1000, at=600))
    running = shell.start("fetch", "-o", "f", server.url, cwd=tmp_path)
    assert server.has_begun.wait(30)
    running.send_signal(number)
    assert running.wait(30) == 128 + number and not list(tmp_path.glob("f*"))


def test_a_signal_ends_the_command_while_it_waits_for_the_request_body(stage, shell, tmp_path):
    """Neither a typing user nor a writing program has to finish first."""
    os.mkfifo(tmp_path / "pipe")
    url = stage.server(lambda request: None).url
    for arguments in [["-d", "@-"], ["--data-urlencode", "@-"], ["-F", "a=<-"], ["-T", str(tmp_path / "pipe")]]:
        running = shell.start("fetch", *arguments, url + "/x", stdin=subprocess.PIPE)
        # For a named pipe, this waits until the command opens it.
        body = open(tmp_path / "pipe", "wb") if arguments[0] == "-T" else running.stdin
        with body:
            body.write(b"the start")
            body.flush()
            eventually(lambda: is_drained(body), f"{arguments} does not read")
            running.terminate()
            assert running.wait(30) in (-signal.SIGTERM, 128 + signal.SIGTERM), arguments


@pytest.mark.parametrize("moment", ["at once", "attached"])
def test_a_broker_that_hangs_does_not_delay_the_exit(stage, shell, tmp_path, moment):
    """At once, the helper may still be about to attach its body."""
    server = stage.server(Slow(b"x" * 1000, at=600))
    running = shell.start("fetch", "-o", "f", server.url, cwd=tmp_path)
    assert server.has_begun.wait(30)
    if moment == "attached":
        eventually(lambda: [path for path in tmp_path.glob("f.*") if path.stat().st_size == 600], "nothing is written")
    broker = stage.brokers[0].process
    broker.send_signal(signal.SIGSTOP)
    try:
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130 and not list(tmp_path.glob("f*"))
    finally:
        broker.send_signal(signal.SIGCONT)


def test_a_command_killed_during_a_download_does_not_end_the_broker(stage, shell, tmp_path):
    url = stage.server(lambda request: response(200, b"x" * (32 << 20))).url
    for number in range(10):
        running = shell.start("fetch", "-o", f"f{number}", url, cwd=tmp_path)
        # The file already has its final name if the download is complete before this check.
        eventually(lambda: size_of_any(tmp_path.glob(f"f{number}*")), "nothing has come", pause=0.0005)
        running.kill()
        running.wait(30)
    assert stage.brokers[0].process.poll() is None, stage.brokers[0].log[-2000:]
    assert shell.run("fetch", stage.server(named).url).stdout == b"body of /"


def transfers(client):
    return client.call("server/status")["result"]["engine"]["running"]


def test_a_closed_standard_output_does_not_cancel_other_downloads(stage, shell, tmp_path):
    url = stage.server(lambda request: response(200, b"x" * (16 << 20))).url
    slow = stage.server(Slow(b"y" * 1000, at=500))
    running = shell.start("fetch", "-Z", "-o", "f", slow.url, url, cwd=tmp_path)
    assert slow.has_begun.wait(30) and running.stdout.read(1) == b"x"
    watcher = stage.client()
    assert transfers(watcher) == 2, "a transfer ended early; 16 MiB exceed all buffers"
    running.stdout.close()
    eventually(lambda: transfers(watcher) == 1, lambda: f"{transfers(watcher)} transfers run")
    slow.may_end.set()
    assert running.wait(30) == 23 and running.stderr.read() == b""
    assert (tmp_path / "f").read_bytes() == b"y" * 1000 and names(tmp_path)[-1] == "f"


@pytest.mark.parametrize("more", [[], ["-C", "-"]])
def test_a_file_that_may_not_grow(stage, shell, tmp_path, more):
    """A user's file size limit is like a full disk, except for the signal."""
    body = os.urandom(40_000)
    server = stage.server(Ranges(body))
    running = shell.start(
        "fetch", *more, "-o", "f", server.url, cwd=tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)))
    assert running.communicate(timeout=30)[0] == b"" and running.returncode == 23
    assert not (tmp_path / "f").exists()
    if not more:
        assert not list(tmp_path.glob("f*"))
        return
    assert (tmp_path / "f.part").read_bytes() == body[:10_000]
    assert shell.run("fetch", "-C", "-", "-o", "f", server.url, cwd=tmp_path).returncode == 0
    assert (tmp_path / "f").read_bytes() == body and server.requests[-1].header("Range") == "bytes=10000-"


def test_closed_standard_streams_are_not_confused_with_files(stage, shell, tmp_path):
    url = stage.server(named).url

    def run(closed, *arguments):
        done = subprocess.run(
            ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", program("watchword"), "fetch", *arguments], env=shell.environment, cwd=tmp_path,
            capture_output=True, timeout=30, start_new_session=True)
        return done.returncode

    assert run(">&-", url) == 23 and run(">&- 2>&-", url) == 23 and run("<&- >&- 2>&-", "-o", "f", url) == 0
    assert (tmp_path / "f").read_bytes() == b"body of /"
    assert run("<&-", "-T", "-", url + "/x") == 26 and run("<&-", "-d", "@-", url) == 26


# Names, modes, types

def test_a_replaced_file_keeps_its_mode(stage, shell, tmp_path):
    url = stage.server(named).url
    for more in [[], ["-C", "-"]]:
        (tmp_path / "f").write_bytes(b"old")
        (tmp_path / "f").chmod(0o600)
        assert shell.run("fetch", *more, "-o", "f", url, cwd=tmp_path).returncode == 0
        assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o600 and (tmp_path / "f").read_bytes() == b"body of /"


def test_a_link_to_a_file_that_is_not_there_yet(stage, shell, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/other")
    (tmp_path / "folder/other").symlink_to("target")
    assert shell.run("fetch", "-o", "link", stage.server(named).url, cwd=tmp_path).returncode == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder/target").read_bytes() == b"body of /"


def test_names_of_every_length(stage, shell, tmp_path):
    url = stage.server(named).url
    for name in ["n" * 255, "ü" * 127, "n" * 249]:
        assert shell.run("fetch", "-o", name, url, cwd=tmp_path).returncode == 0
        assert (tmp_path / name).read_bytes() == b"body of /"
    assert shell.run("fetch", "-o", "n" * 256, url, cwd=tmp_path).returncode == 23
    assert shell.run("fetch", "-o", "", url, cwd=tmp_path).returncode == 2


def test_a_folder_that_takes_the_name_meanwhile(stage, shell, tmp_path):
    for more in [[], ["-C", "-"]]:
        server = stage.server(Slow(b"x" * 1000, 'ETag: "v1"', at=600))
        running = shell.start("fetch", *more, "-o", "f", server.url, cwd=tmp_path)
        eventually(lambda: size_of_any(path for path in tmp_path.glob("f.*") if "validator" not in path.name) == 600, "nothing is written")
        (tmp_path / "f").mkdir()
        server.may_end.set()
        assert running.communicate(timeout=30)[1].count(b"\n") == (2 if more else 1) and running.returncode == 23
        # With -C, the received part is not lost.
        assert [name for name in names(tmp_path) if name.startswith("f")] == (["f.part", "f.part.validator"] if more else [])
        (tmp_path / "f").rmdir()
    assert shell.run("fetch", "-C", "-", "-o", "f", stage.server(Ranges(b"x" * 1000)).url, cwd=tmp_path).returncode == 0
    assert (tmp_path / "f").read_bytes() == b"x" * 1000


def test_resuming_into_a_pipe_does_not_replace_it(stage, shell, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE)
    assert shell.run("fetch", "-C", "-", "-o", "pipe", stage.server(named).url, cwd=tmp_path).returncode == 0
    assert reader.communicate(timeout=30)[0] == b"body of /" and (tmp_path / "pipe").is_fifo()


def test_a_range_that_ends_early_is_not_the_end(stage, shell, tmp_path):
    """A server may send a shorter range than was requested."""
    body = os.urandom(1000)
    assert shell.run("fetch", "-C", "-", "-o", "f", stage.server(Cut(body, 'ETag: "v1"', at=600)).url, cwd=tmp_path).returncode == 18
    server = stage.server(lambda request: response(206, body[600:700], "Content-Range: bytes 600-699/1000", 'ETag: "v1"'))
    done = shell.run("fetch", "-C", "-", "-o", "f", server.url, cwd=tmp_path)
    assert done.returncode == 18 and b"700 bytes are in" in done.stderr and not (tmp_path / "f").exists()
    assert shell.run("fetch", "-C", "-", "-o", "f", stage.server(Ranges(body)).url, cwd=tmp_path).returncode == 0
    assert (tmp_path / "f").read_bytes() == body


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs files of several users")
SOMEBODY = 65534


@pytest.fixture
def folder(tmp_path):
    """A directory like /tmp."""
    made = tmp_path / "for-all"
    made.mkdir()
    made.chmod(0o1777)
    return made


def begin(folder, content=b"planted", tag=b'"v1"'):
    """Creates a partial file and its validator, as -C leaves them."""
    (folder / "f.part").write_bytes(content)
    (folder / "f.part.validator").write_bytes(tag)


def refused(stage, shell, folder, name="f.part", reason=""):
    """Checks that nothing is requested, and that all files are unchanged."""
    def state():
        return {path.name: (path.lstat().st_mode, path.lstat().st_uid, path.read_bytes() if path.is_file() else None)
                for path in sorted(folder.iterdir())}

    before, server = state(), stage.server(Ranges(b"planted and more"))
    done = shell.run("fetch", "-C", "-", "-o", str(folder / "f"), server.url)
    assert done.returncode == 23 and not server.requests, done
    said = f"watchword: cannot resume {folder}/{name}: {reason}; remove it, or use -o in a directory of your own\n"
    assert done.stderr.decode() == said and state() == before
    return True


def test_a_partial_file_of_the_user_is_continued(stage, shell, folder):
    begin(folder)
    server = stage.server(Ranges(b"planted and more"))
    assert shell.run("fetch", "-C", "-", "-o", str(folder / "f"), server.url).returncode == 0
    assert (folder / "f").read_bytes() == b"planted and more" and server.requests[0].header("Range") == "bytes=7-"


def test_a_symbolic_link_is_not_followed(stage, shell, folder, tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    for name, target in [("f.part", "precious"), ("f.part", "not there"), ("f.part.validator", "precious")]:
        begin(folder)
        (folder / name).unlink()
        (folder / name).symlink_to(tmp_path / target)
        assert refused(stage, shell, folder, name, "it is a symbolic link")
        (folder / name).unlink()
    assert (tmp_path / "precious").read_bytes() == b"precious" and not (tmp_path / "not there").exists()


def test_a_hard_link_and_a_pipe_are_not_continued(stage, shell, folder, tmp_path):
    begin(folder)
    os.link(folder / "f.part", tmp_path / "other")
    assert refused(stage, shell, folder, reason="it has 2 hard links")
    (tmp_path / "other").unlink()
    os.link(folder / "f.part.validator", tmp_path / "other")
    assert refused(stage, shell, folder, "f.part.validator", "it has 2 hard links")
    for name in ("f.part", "f.part.validator"):
        begin(folder)
        (folder / name).unlink()
        os.mkfifo(folder / name)
        assert refused(stage, shell, folder, name, "it is not a regular file")
        (folder / name).unlink()


@ROOT_ONLY
@pytest.mark.parametrize("name", ["f.part", "f.part.validator"])
def test_a_partial_file_of_another_user_is_not_continued(stage, shell, folder, name):
    begin(folder)
    os.chown(folder / name, SOMEBODY, SOMEBODY)
    assert refused(stage, shell, folder, name, f"it belongs to user {SOMEBODY}, not to user 0")


@ROOT_ONLY
@pytest.mark.parametrize("more", [["-o"], ["-C", "-", "-o"], ["-o", "/dev/null", "-D"], ["--stderr"]])
def test_a_link_of_another_user_is_not_followed(stage, shell, folder, tmp_path, more):
    (tmp_path / "precious").write_bytes(b"precious")
    for target in ("precious", "not there", "/dev/null"):
        (folder / "f").symlink_to(tmp_path / target)
        os.chown(folder / "f", SOMEBODY, SOMEBODY, follow_symlinks=False)
        done = shell.run("fetch", *more, str(folder / "f"), stage.server(Ranges(b"body")).url)
        said = f"watchword: cannot write {folder}/f: it is a symbolic link of user {SOMEBODY}; remove it, or choose another file\n"
        assert done.returncode == 23 and done.stderr.decode() == said, done
        (folder / "f").unlink()
    assert (tmp_path / "precious").read_bytes() == b"precious" and not (tmp_path / "not there").exists()
    assert sorted(path.name for path in folder.iterdir()) == []


@ROOT_ONLY
@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o1770])
@pytest.mark.parametrize("more", [["-o"], ["-C", "-", "-o"], ["--stderr"]])
def test_a_file_of_another_user_in_a_folder_for_all_is_not_written(stage, shell, folder, tmp_path, more, mode):
    url = stage.server(Ranges(b"body")).url
    folder.chmod(mode)
    (folder / "f").write_bytes(b"planted")
    os.chown(folder / "f", SOMEBODY, SOMEBODY)
    done = shell.run("fetch", *more, str(folder / "f"), url)
    said = f"watchword: cannot write {folder}/f: it belongs to user {SOMEBODY}; remove it, or choose another file\n"
    assert done.returncode == 23 and done.stderr.decode() == said, done
    assert (folder / "f").read_bytes() == b"planted" and [path.name for path in folder.iterdir()] == ["f"]
    if more == ["--stderr"]:
        return
    # In that user's own directory the file is replaced; it stays that user's, and is not readable by others.
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", SOMEBODY, SOMEBODY)
    (tmp_path / "theirs/f").write_bytes(b"old")
    (tmp_path / "theirs/f").chmod(0o640)
    os.chown(tmp_path / "theirs/f", SOMEBODY, SOMEBODY)
    assert shell.run("fetch", *more, str(tmp_path / "theirs/f"), url).returncode == 0
    facts = (tmp_path / "theirs/f").stat()
    assert (tmp_path / "theirs/f").read_bytes() == b"body"
    assert (facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode)) == (SOMEBODY, SOMEBODY, 0o640)


@ROOT_ONLY
def test_a_pipe_of_another_user_is_not_written_to(stage, shell, folder):
    """The pipe is not opened: a process that reads from it would receive the response."""
    os.mkfifo(folder / "f")
    os.chown(folder / "f", SOMEBODY, SOMEBODY)
    for more in [["-o"], ["-C", "-", "-o"], ["--stderr"]]:
        done = shell.run("fetch", *more, str(folder / "f"), stage.server(Ranges(b"body")).url)
        assert done.returncode == 23 and b"it is a pipe of user 65534" in done.stderr, done


@ROOT_ONLY
def test_an_anonymous_pipe_of_another_user_is_written_to(stage, shell):
    readable, writable = os.pipe()
    os.fchown(writable, SOMEBODY, SOMEBODY)
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&3', "sh", program("watchword"), "fetch", "-o", "/dev/stdout", stage.server(lambda request: response(200, b"body")).url],
        env=shell.environment, preexec_fn=lambda: os.dup2(writable, 3), pass_fds=[3], timeout=30, capture_output=True)
    os.close(writable)
    assert done.returncode == 0 and os.read(readable, 100) == b"body", done
    os.close(readable)
