"""contrib/install: the files that it writes, those that it does not overwrite, that uninstalling removes everything, and what it does not
trust as root."""
import hashlib
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from rig import manager as rig_manager
from rig.broker import ROOT, binaries, program
from rig.fixtures import reachable_folder
from rig.servers import executable, written

sys.path.insert(0, str(ROOT / "contrib"))

from installer import layout  # noqa: E402

BINARIES = binaries()


def install(*options, path=os.environ["PATH"], umask=-1):
    return subprocess.run(["/usr/bin/python3", str(ROOT / "contrib" / "install"), *map(str, options)], capture_output=True, text=True,
                          timeout=120, env={"PATH": path, "LANG": "C.UTF-8", "HOME": "/nonexistent"}, umask=umask, stdin=subprocess.DEVNULL)


def put(*options, binaries=BINARIES, **more):
    done = install(*options, "--build", "none", "--binaries", binaries, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tree(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink() or path.is_dir():
            found[name] = os.readlink(path) if path.is_symlink() else "folder"
        else:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Small programs in place of the real ones, for tests of the files only."""
    folder = tmp_path_factory.mktemp("small")
    for name in ["watchword", "watchwordd", "watchword-pac"]:
        executable((folder / name), "#!/bin/sh\necho completions of $0\n")
    return folder


@pytest.fixture
def there(tmp_path, small):
    """The folder with an installation of the small programs."""
    put("--destdir", tmp_path, binaries=small)
    return tmp_path


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    put("--destdir", folder)
    return folder


def test_the_installed_programs_work(installed):
    local = installed / "usr" / "local"
    for name in ["watchword", "watchwordd"]:
        shown = subprocess.run([local / "bin" / name, "--version"], capture_output=True, text=True, timeout=30)
        assert shown.returncode == 0 and shown.stdout.strip() in (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()
    evaluator = subprocess.run([local / "lib/watchword/watchword-pac"], input=b"find http://h/ h\n", capture_output=True, timeout=30)
    assert evaluator.stdout == b"error no script is loaded\n"
    assert "ExecStart=/usr/local/bin/watchwordd\n" in (local / "lib/systemd/user/watchword.service").read_text()
    assert "@bindir@" not in "".join(path.read_text() for path in (local / "lib/systemd/user").iterdir())
    pages = {page.name for page in (ROOT / "contrib" / "man").glob("*.[1-8]")}
    # What the scripts do is tested by test_repository.py.
    for shell, path in [("bash", "bash-completion/completions/watchword"), ("zsh", "zsh/site-functions/_watchword"),
                        ("fish", "fish/vendor_completions.d/watchword.fish")]:
        made = subprocess.run([program("watchword"), "--generate-completion-script", shell], capture_output=True, check=True).stdout
        made = made.removeprefix(b"#!/bin/bash\n")
        assert (local / "share" / path).read_bytes() == (layout._terminating(made) if shell == "fish" else made) != b""
    assert pages == {page.name for page in (local / "share" / "man").rglob("*.[1-8]")}
    shown = subprocess.run(["man", "-M", local / "share" / "man", "-w", "5", "watchword-config"], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


def test_the_agents_files(installed):
    """Its catalogues are where it reads them. A file that it shares with a client is a link in the source, but not here."""
    local = installed / "usr" / "local"
    inside = local / "lib/watchword/agent"
    shared = inside / "watchword_agent/trust.py"
    assert not shared.is_symlink() and shared.read_bytes() == (local / "share/watchword/clients/python/watchword/_trust.py").read_bytes()
    translated = subprocess.run(
        ["/usr/bin/python3", "-c", "from watchword_agent.messages import _; print(_('_Password'))"], cwd=inside,
        env={"LANG": "de_DE.UTF-8", "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True)
    assert translated.stdout == "_Passwort\n", translated


def test_without_msgfmt_the_agent_is_installed_in_english(tmp_path, small):
    done = install("--destdir", tmp_path, "--build", "none", "--binaries", small, path=str(tmp_path))
    assert done.returncode == 0 and "msgfmt; the agent is installed in English only" in done.stderr, done.stderr
    assert (tmp_path / "usr/local/bin/watchword-agent").exists() and not (tmp_path / "usr/local/share/locale").exists()


def test_uninstalling_removes_every_file(tmp_path, small):
    written(tmp_path, {"usr/local/share/man/own": "mine"})
    before = tree(tmp_path)
    put("--destdir", tmp_path, binaries=small)
    put("--destdir", tmp_path, binaries=small)
    assert len(tree(tmp_path)) > len(before) + 20
    client = tmp_path / "usr/local/share/watchword/clients/python"
    subprocess.run(["/usr/bin/python3", "-c", "import watchword"], cwd=client, check=True, env={"PATH": os.environ["PATH"]})
    assert list((client / "watchword" / "__pycache__").iterdir())
    done = install("--destdir", tmp_path, "--uninstall")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path) == before
    again = install("--destdir", tmp_path, "--uninstall")
    assert again.returncode == 1 and "no list of installed files" in again.stderr


@pytest.fixture
def read_only(tmp_path):
    """Runs contrib/install where only the folder `tmp_path`/opt can be written, without --destdir."""
    (tmp_path / "opt").mkdir()

    def run(*options):
        command = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/root", "--bind", tmp_path / "opt", tmp_path / "opt",
                   "/usr/bin/python3", ROOT / "contrib" / "install", *options]
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"})
    return run


def test_nothing_is_written_outside_of_the_prefix(tmp_path, small, read_only):
    prefix = tmp_path / "opt" / "watchword"
    done = read_only("--prefix", prefix, "--build", "none", "--binaries", small)
    assert done.returncode == 0, done.stderr
    entry, profile = prefix / "share/watchword/autostart/watchword-agent.desktop", prefix / "share/watchword/apparmor/usr.bin.watchwordd"
    said = done.stdout.partition(f"Not enabled, because these need files outside of {prefix}:\n")[2]
    assert f"cp {entry} ~/.config/autostart/" in said and f"cp {profile} /etc/apparmor.d/" in said, done.stdout
    assert f"systemctl --user link {prefix}/lib/systemd/user/watchword*\n" in done.stdout
    assert f"Exec={prefix}/bin/watchword-agent" in entry.read_text() and f"profile watchwordd {prefix}/bin/watchwordd " in profile.read_text()
    parsed = subprocess.run(["apparmor_parser", "--skip-kernel-load", "--skip-cache", profile], capture_output=True, text=True)
    assert parsed.returncode == 0, parsed.stderr
    listed = read_only("--prefix", prefix, "--build", "none", "--binaries", small, "--dry-run").stdout.splitlines()
    assert len(listed) > 20 and all(line.startswith(f"{prefix}/") for line in listed)
    done = read_only("--prefix", prefix, "--uninstall")
    assert done.returncode == 0 and tree(tmp_path / "opt") == {}, done.stderr


def test_a_file_that_an_earlier_version_wrote_outside_of_the_prefix_is_removed(tmp_path, small):
    """Version 0.4.0 wrote the agent's autostart entry to /etc."""
    former, line = "/etc/xdg/autostart/watchword-agent.desktop", hashlib.sha256(b"entry").hexdigest()
    for options in (["--build", "none", "--binaries", small], ["--uninstall"]):
        put("--destdir", tmp_path, binaries=small)
        (tmp_path / "etc/xdg/autostart").mkdir(parents=True)
        (tmp_path / former[1:]).write_bytes(b"entry")
        record = tmp_path / "usr/local/share/watchword/installed-files"
        record.write_text(record.read_text() + "".join(f"folder - {folder}\n" for folder in ["/etc", "/etc/xdg", "/etc/xdg/autostart"])
                          + f"file {line} {former}\n")
        done = install("--destdir", tmp_path, *options)
        assert done.returncode == 0 and not (tmp_path / former[1:]).exists(), done.stderr
        done = install("--destdir", tmp_path, "--uninstall")
        assert tree(tmp_path) == {}


def test_a_file_that_was_changed_is_not_overwritten(there, small):
    unit = there / "usr/local/lib/systemd/user/watchword.service"
    other = there / "usr/local/share/man/man5/watchword-config.5"
    unit.write_text("mine")
    before = tree(there)
    refused = install("--destdir", there, "--build", "none", "--binaries", small)
    named = [str(path).removeprefix(str(there)) in refused.stderr for path in (unit, other)]
    assert refused.returncode == 1 and named == [True, False], refused.stderr
    assert tree(there) == before, "nothing was changed"
    said = put("--destdir", there, "--set-aside", binaries=small)
    assert unit.with_name(unit.name + ".set-aside").read_text() == "mine" and ".set-aside" in said
    assert "ExecStart" in unit.read_text()


def test_a_file_that_was_changed_is_not_uninstalled(there):
    unit = there / "usr/local/lib/systemd/user/watchword.service"
    unit.write_text("mine")
    done = install("--destdir", there, "--uninstall")
    assert done.returncode == 1 and str(unit) in done.stderr
    assert [path for path, kind in tree(there).items() if kind != "folder"] == [str(unit.relative_to(there))]


def test_files_that_a_new_version_no_longer_has_are_removed(there, small):
    old, record = there / "usr/local/share/watchword/old", there / "usr/local/share/watchword/installed-files"
    old.write_text("old")
    record.write_text(record.read_text() + f"file {hashlib.sha256(b'old').hexdigest()} /usr/local/share/watchword/old\n")
    put("--destdir", there, binaries=small)
    assert not old.exists() and "/old\n" not in record.read_text()


def test_a_dry_run_changes_nothing(tmp_path, small):
    said = put("--destdir", tmp_path, "--dry-run", binaries=small)
    assert f"{tmp_path}/usr/local/bin/watchwordd" in said and tree(tmp_path) == {}
    put("--destdir", tmp_path, binaries=small)
    before = tree(tmp_path)
    assert "watchword.socket" in install("--destdir", tmp_path, "--uninstall", "--dry-run").stdout
    assert tree(tmp_path) == before


@pytest.mark.parametrize("options,said", [
    (["--user", "--prefix", "/x"], "not allowed with"), (["--binaries", "/x"], "--build none"),
    (["--build", "none", "--binaries", "/nonexistent"], "cannot be found"), (["--build", "some"], "invalid choice")])
def test_unintended_options_are_refused_with_a_reason(tmp_path, options, said):
    done = install(*options, "--destdir", tmp_path)
    assert done.returncode != 0 and said in done.stderr and "Traceback" not in done.stderr
    assert tree(tmp_path) == {}


def test_for_one_user_with_the_service_manager(tmp_path):
    """Installed, enabled, used by the next client, and uninstalled: the home directory is as before."""
    if reason := rig_manager.why_not():
        pytest.skip(f"no user manager can be started here: {reason}")
    with reachable_folder("home") as folder:
        manager = rig_manager.Manager(folder)
        try:
            manager.start()
            before = tree(manager.home)
            done = manager.install("--build", "none", "--binaries", f"{folder}/binaries")
            assert done.returncode == 0 and "systemctl --user enable --now watchword.socket" in done.stdout, done.stderr
            steps = [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]
            for step in steps:
                if step.startswith("systemctl"):
                    assert manager.run(*step.split()).returncode == 0
            manager.do("set-environment", f"LD_LIBRARY_PATH={folder}/swift")
            shown = manager.run("watchword", "status")
            assert "watchword status" in steps and shown.returncode == 0, shown.stderr
            # The broker replies before the manager has received its notification.
            manager.wait_for(lambda: manager.value("watchword.service", "ActiveState") == "active")
            done = manager.install("--uninstall")
            assert done.returncode == 0 and not done.stderr, done.stderr
            assert manager.value("watchword.service", "ActiveState") == "inactive"
            assert os.listdir(manager.runtime / "watchword") == []
            assert {path for path in tree(manager.home) if "state" not in path} == set(before) | {".local"}
        finally:
            manager.stop()


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


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_installed_files_are_readable_by_all_and_writable_only_by_root(tmp_path, small, umask):
    made = tmp_path / "new" / "target"
    done = install("--destdir", made, "--build", "none", "--binaries", small, umask=umask)
    assert done.returncode == 0, done
    for path in [made, *made.rglob("*")]:
        if not path.is_symlink():
            wanted = (0o755,) if path.is_dir() else (0o644, 0o755)
            assert stat.S_IMODE(path.stat().st_mode) in wanted, path
    assert stat.S_IMODE((made / LIST).stat().st_mode) == 0o644
    assert install("--destdir", made, "--uninstall", umask=umask).returncode == 0 and tree(made) == {}


@pytest.mark.parametrize("line", [
    entry("/usr/local/share/../../../precious", b"precious"), entry("/usr/local/../../precious", b"precious"), entry("/precious", b"precious"),
    entry("/usr/local/./bin/watchword", b""), entry("/usr//local/bin/watchword", b""), entry("precious", b"precious"), "folder - /precious\n",
    "file\n", "other - /usr/local/x\n", "\n", entry("/usr/locals/x", b"precious"), entry("/usr/local", b"precious")])
def test_rule_x7_a_file_list_with_a_path_outside_the_installation_is_refused(there, small, line):
    (there / "precious").write_bytes(b"precious")
    add(there, line)
    before = tree(there)
    for options in (["--uninstall"], ["--build", "none", "--binaries", small], ["--uninstall", "--dry-run"]):
        refused("--destdir", there, *options, said=f"{there}/{LIST}, line ")
    assert tree(there) == before


def test_a_line_separator_in_a_list_does_not_end_a_line(there):
    add(there, "link x\u2028file /usr/local/x\n")
    assert install("--destdir", there, "--uninstall").returncode == 0


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
def test_a_file_list_that_another_user_can_write_is_refused(there, small, spoil, said):
    spoil(there / LIST)
    before = tree(there)
    for options in (["--uninstall"], ["--build", "none", "--binaries", small]):
        refused("--destdir", there, *options, said=said)
    assert tree(there) == before


def test_a_named_pipe_in_place_of_the_list_does_not_block(there):
    (there / LIST).unlink()
    os.mkfifo(there / LIST)
    refused("--destdir", there, "--uninstall", said="not a regular file with a single link")


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


def test_an_existing_backup_is_not_replaced(there, small):
    unit = there / "usr/local/lib/systemd/user/watchword.service"
    (there / "usr/local/lib/systemd/user/watchword.service.set-aside.1").symlink_to("nowhere")
    for text in ["first", "second", "third"]:
        unit.write_text(text)
        put("--destdir", there, "--set-aside", binaries=small)
    found = [unit.with_name(f"{unit.name}.set-aside{ending}").read_text() for ending in ["", ".2", ".3"]]
    assert found == ["first", "second", "third"]


@pytest.mark.parametrize("prefix, name", [
    ("/opt/two words", "SPACE"), ("/opt/100%", "PERCENT SIGN"), ("/opt/a\u2028b", "LINE SEPARATOR"), ("/opt/a\u00a0b", "NO-BREAK SPACE"),
    ("/opt/a\tb", "U+0009"), ('/opt/a"b', "QUOTATION MARK"), ("/opt/$HOME", "DOLLAR SIGN"), ("/opt/a\\b", "REVERSE SOLIDUS"),
    ("/opt/a;b", "SEMICOLON"), ("/opt/a\u202eb", "RIGHT-TO-LEFT OVERRIDE"), ("/opt/\udcff", "U+DCFF"), ("/", "below /")])
def test_a_prefix_that_units_or_lists_cannot_represent_is_refused(tmp_path, small, prefix, name):
    refused("--prefix", prefix, "--destdir", tmp_path, "--build", "none", "--binaries", small, said=name)
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
