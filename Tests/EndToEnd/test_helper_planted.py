"""Files that another user has created where `watchword fetch` writes: files of other users are neither followed nor resumed."""
import os
import stat
import subprocess

import pytest

from rig.scripted import response
from test_helper_downloads import Ranges

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
        ["/bin/sh", "-c", 'exec "$@" >&3', "sh", *shell_command(), "-o", "/dev/stdout", stage.server(lambda request: response(200, b"body")).url],
        env=shell.environment, preexec_fn=lambda: os.dup2(writable, 3), pass_fds=[3], timeout=30, capture_output=True)
    os.close(writable)
    assert done.returncode == 0 and os.read(readable, 100) == b"body", done
    os.close(readable)


def shell_command():
    from rig.broker import program
    return [program("watchword"), "fetch"]
