"""contrib/install as root: it does not trust what another user can write, follows no links, and resolves no `..`."""
import hashlib
import os
import pathlib
import stat
import subprocess

import pytest

from rig.broker import ROOT
from test_install import install, put, small, tree  # noqa: F401

ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")
SOMEBODY = 65534
LIST = "usr/local/share/watchword/installed-files"


def entry(path, content):
    return f"file {hashlib.sha256(content).hexdigest()} {path}\n"


def add(folder, *lines):
    (folder / LIST).write_text((folder / LIST).read_text() + "".join(lines))


def refused(*options, said, **more):
    done = install(*options, **more)
    assert done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr, done
    return done


def with_umask(umask, *options):
    return subprocess.run(
        ["/usr/bin/python3", ROOT / "contrib" / "install", *map(str, options)], capture_output=True, text=True, timeout=60,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"}, umask=umask, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_installed_files_are_readable_by_all_and_writable_only_by_root(tmp_path, small, umask):
    made = tmp_path / "new" / "target"
    done = with_umask(umask, "--destdir", made, "--build", "none", "--binaries", small)
    assert done.returncode == 0, done
    for path in [made, *made.rglob("*")]:
        if not path.is_symlink():
            wanted = (0o755,) if path.is_dir() else (0o644, 0o755)
            assert stat.S_IMODE(path.stat().st_mode) in wanted, path
    assert stat.S_IMODE((made / LIST).stat().st_mode) == 0o644
    assert with_umask(umask, "--destdir", made, "--uninstall").returncode == 0 and tree(made) == {}


@pytest.mark.parametrize("line", [
    entry("/usr/local/share/../../../precious", b"precious"), entry("/usr/local/../../precious", b"precious"), entry("/precious", b"precious"),
    entry("/usr/local/./bin/watchword", b""), entry("/usr//local/bin/watchword", b""), entry("precious", b"precious"), "folder - /precious\n",
    "file\n", "other - /usr/local/x\n", "\n", entry("/usr/locals/x", b"precious"), entry("/usr/local", b"precious")])
def test_rule_x7_a_file_list_with_a_path_outside_the_installation_is_refused(tmp_path, small, line):
    put("--destdir", tmp_path, binaries=small)
    (tmp_path / "precious").write_bytes(b"precious")
    add(tmp_path, line)
    before = tree(tmp_path)
    for options in (["--uninstall"], ["--build", "none", "--binaries", small], ["--uninstall", "--dry-run"]):
        refused("--destdir", tmp_path, *options, said=f"{tmp_path}/{LIST}, line ")
    assert tree(tmp_path) == before


def test_a_line_separator_in_a_list_does_not_end_a_line(tmp_path, small):
    put("--destdir", tmp_path, binaries=small)
    add(tmp_path, "link x\u2028file /usr/local/x\n")
    assert install("--destdir", tmp_path, "--uninstall").returncode == 0


@ROOT_ONLY
@pytest.mark.parametrize("spoil, said", [
    (lambda path: path.chmod(0o666), "can be changed by other users (mode 0666)"),
    (lambda path: os.chown(path, SOMEBODY, SOMEBODY), "belongs to user 65534"),
    (lambda path: os.link(path, path.with_name("second")), "not a regular file with a single link"),
    (lambda path: (path.rename(path.with_name("first")), path.symlink_to("first")), "is not read"),
    (lambda path: path.parent.chmod(0o777), "can be changed by other users (mode 0777)"),
    (lambda path: (os.chown(path.parent, 0, 100), path.parent.chmod(0o775)), "can be changed by other users (mode 0775)"),
    (lambda path: os.chown(path.parent.parent, SOMEBODY, SOMEBODY), "belongs to user 65534")],
    ids=["mode", "owner", "hard link", "link", "folder", "group", "folder's owner"])
def test_a_file_list_that_another_user_can_write_is_refused(tmp_path, small, spoil, said):
    put("--destdir", tmp_path, binaries=small)
    spoil(tmp_path / LIST)
    before = tree(tmp_path)
    for options in (["--uninstall"], ["--build", "none", "--binaries", small]):
        refused("--destdir", tmp_path, *options, said=said)
    assert tree(tmp_path) == before


def test_a_named_pipe_in_place_of_the_list_does_not_block(tmp_path, small):
    put("--destdir", tmp_path, binaries=small)
    (tmp_path / LIST).unlink()
    os.mkfifo(tmp_path / LIST)
    refused("--destdir", tmp_path, "--uninstall", said="not a regular file with a single link")


@ROOT_ONLY
@pytest.mark.parametrize("owner", [0, SOMEBODY])
def test_rule_x7_a_link_that_replaces_a_directory_is_not_followed(tmp_path, small, owner):
    """The list is refused both when files are installed and when they are removed."""
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    put("--destdir", target, binaries=small)
    clients = target / "usr/local/share/watchword/clients"
    clients.rename(elsewhere)
    clients.symlink_to(elsewhere)
    os.chown(clients, owner, owner, follow_symlinks=False)
    before = tree(elsewhere)
    for options in (["--uninstall"], ["--build", "none", "--binaries", small]):
        refused("--destdir", target, *options, said=f"{clients} is a symbolic link, which is not followed")
    assert tree(elsewhere) == before and len(before) > 5


def test_a_link_in_the_way_of_the_list_is_not_followed(tmp_path, small):
    (tmp_path / "precious").write_text("precious")
    own = tmp_path / "target" / "usr/local/share/watchword"
    own.mkdir(parents=True)
    for name in ["installed-files.new", ".installed-files.new", ".watchword.new"]:
        (own / name).symlink_to(tmp_path / "precious")
    put("--destdir", tmp_path / "target", binaries=small)
    assert (tmp_path / "precious").read_text() == "precious" and not (own / "installed-files").is_symlink()


def test_an_existing_backup_is_not_replaced(tmp_path, small):
    put("--destdir", tmp_path, binaries=small)
    unit = tmp_path / "usr/local/lib/systemd/user/watchword.service"
    (tmp_path / "usr/local/lib/systemd/user/watchword.service.set-aside.1").symlink_to("nowhere")
    for text in ["first", "second", "third"]:
        unit.write_text(text)
        put("--destdir", tmp_path, "--set-aside", binaries=small)
    found = [unit.with_name(f"{unit.name}.set-aside{ending}").read_text() for ending in ["", ".2", ".3"]]
    assert found == ["first", "second", "third"]


@pytest.mark.parametrize("prefix, name", [
    ("/opt/two words", "SPACE"), ("/opt/100%", "PERCENT SIGN"), ("/opt/a\u2028b", "LINE SEPARATOR"), ("/opt/a\u00a0b", "NO-BREAK SPACE"),
    ("/opt/a\tb", "U+0009"), ('/opt/a"b', "QUOTATION MARK"), ("/opt/$HOME", "DOLLAR SIGN"), ("/opt/a\\b", "REVERSE SOLIDUS"),
    ("/opt/a;b", "SEMICOLON"), ("/opt/a\u202eb", "RIGHT-TO-LEFT OVERRIDE"), (b"/opt/\xff", "U+DCFF"), ("/", "below /")])
def test_a_prefix_that_units_or_lists_cannot_represent_is_refused(tmp_path, small, prefix, name):
    done = subprocess.run(
        ["/usr/bin/python3", ROOT / "contrib" / "install", "--prefix", prefix, "--destdir", tmp_path, "--build", "none", "--binaries", small],
        capture_output=True, timeout=60, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8"})
    assert done.returncode == 1 and name.encode() in done.stderr and b"Traceback" not in done.stderr, done
    assert tree(tmp_path) == {}


def test_other_prefixes_work_unchanged(tmp_path, small):
    put("--prefix", "/opt/jörg-1.0_x+y@z,a=b:c", "--destdir", tmp_path / "two words 100%\u2028", binaries=small)
    folder = tmp_path / "two words 100%\u2028" / "opt/jörg-1.0_x+y@z,a=b:c"
    assert "ExecStart=/opt/jörg-1.0_x+y@z,a=b:c/bin/watchwordd\n" in (folder / "lib/systemd/user/watchword.service").read_text()
    assert install("--prefix", "/opt/jörg-1.0_x+y@z,a=b:c", "--destdir", tmp_path / "two words 100%\u2028", "--uninstall").returncode == 0
    assert tree(tmp_path / "two words 100%\u2028") == {}


@ROOT_ONLY
def test_a_folder_of_another_user_is_not_installed_into(tmp_path, small):
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", SOMEBODY, SOMEBODY)
    refused("--destdir", tmp_path / "theirs", "--build", "none", "--binaries", small, said=f"{tmp_path}/theirs belongs to user 65534")
    assert tree(tmp_path / "theirs") == {}
    (tmp_path / "for-all").mkdir()
    (tmp_path / "for-all").chmod(0o1777)
    (tmp_path / "for-all" / "planted").symlink_to(tmp_path)
    os.chown(tmp_path / "for-all" / "planted", SOMEBODY, SOMEBODY, follow_symlinks=False)
    refused("--destdir", tmp_path / "for-all" / "planted" / "new", "--build", "none", "--binaries", small, said="is a symbolic link")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["for-all", "theirs"]


@ROOT_ONLY
def test_rule_x7_programs_that_another_user_can_write_are_not_run(tmp_path, small):
    binaries = tmp_path / "binaries"
    binaries.mkdir()
    for name in ["watchword", "watchwordd", "watchword-pac"]:
        (binaries / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/run\necho x\n")
        (binaries / name).chmod(0o757)
    refused("--destdir", tmp_path / "target", "--build", "none", "--binaries", binaries, said="watchwordd can be changed by other users")
    assert not (tmp_path / "run").exists() and not (tmp_path / "target").exists()


@ROOT_ONLY
def test_another_user_s_links_in_their_own_home_are_followed_by_themselves(small):
    """Folders in ~ are often links into a repository of dotfiles; no other user can have made them."""
    from rig.fixtures import reachable_folder
    with reachable_folder("home") as folder:
        home = pathlib.Path(folder) / "home"
        (home / "collection").mkdir(parents=True)
        (home / ".config").symlink_to("collection")
        for path in [home, home / "collection", home / ".config"]:
            os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
        binaries = pathlib.Path(folder) / "small"
        binaries.mkdir()
        for one in small.iterdir():
            (binaries / one.name).write_bytes(one.read_bytes())
            (binaries / one.name).chmod(0o755)
        command = ["setpriv", "--reuid", str(SOMEBODY), "--regid", str(SOMEBODY), "--clear-groups", "/usr/bin/python3",
                   str(ROOT / "contrib" / "install"), "--user"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([*command, "--build", "none", "--binaries", binaries], capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0 and (home / "collection/systemd/user/watchword.service").exists(), done
        done = subprocess.run([*command, "--uninstall"], capture_output=True, text=True, timeout=60, env=environment)
        assert done.returncode == 0 and not (home / "collection/systemd").exists(), done
