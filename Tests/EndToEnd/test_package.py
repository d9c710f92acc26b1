"""The Debian package: what is in it, that dpkg installs it, that it works from there, and that nothing is left of it."""
import gzip
import os
import pathlib
import re
import subprocess

import pytest

from rig.broker import ROOT, program
from rig.scripted import response

CONTRIB = ROOT / "contrib"
PROFILE = "etc/apparmor.d/usr.bin.watchwordd"
AUTOSTART = "etc/xdg/autostart/watchword-agent.desktop"


def run(*command, **more):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, **more)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    built = run("/usr/bin/python3", CONTRIB / "make-deb", "--build", "none", "--output", folder,
                "--binaries", pathlib.Path(program("watchword")).parent)
    assert built.returncode == 0, built.stderr
    return pathlib.Path(built.stdout.strip())


class Target:
    """A system of its own, in which of all packages those are installed that this machine has and the package depends on."""

    def __init__(self, folder, package):
        self.root, self.records = folder / "root", folder / "records"
        for name in ["info", "updates", "triggers"]:
            (self.records / name).mkdir(parents=True)
        self.root.mkdir()
        depends = run("dpkg-deb", "--field", package, "Depends").stdout
        names = re.findall(r"(?:^|[,|] ?)([a-z0-9.+-]+)", depends)
        assert "libcurl4" in names and "libssl3" in names
        self.database = self.records / "status"
        self.database.write_text("\n".join(run("dpkg-query", "--status", name).stdout for name in names))

    def dpkg(self, *words):
        done = run("dpkg", f"--instdir={self.root}", f"--admindir={self.records}", f"--log={self.records}/log",
                   *([] if os.geteuid() == 0 else ["--force-not-root"]), *words)
        return done

    def do(self, *words):
        done = self.dpkg(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@pytest.fixture(scope="module")
def target(tmp_path_factory, package):
    target = Target(tmp_path_factory.mktemp("system"), package)
    target.do("--install", package)
    return target


def test_it_depends_on_what_it_is_linked_with(package, tmp_path):
    target = Target(tmp_path, package)
    target.database.write_text(re.sub(r"(?ms)^Package: libssl3\n.*?\n\n", "", target.database.read_text() + "\n\n"))
    refused = target.dpkg("--install", package)
    assert refused.returncode != 0 and "libssl3" in refused.stderr


def test_what_dpkg_has_installed_works(target, stage, tmp_path):
    server = stage.server(lambda request: response(200, b"the page\n"))
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    environment = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"]}
    fetched = run(target.root / "usr/bin/watchword", "fetch", server.url, env=environment)
    try:
        assert fetched.returncode == 0 and fetched.stdout == "the page\n", fetched.stderr
        pid = int((runtime / "watchword" / "broker.sock.lock").read_text())
        assert os.readlink(f"/proc/{pid}/exe") == str(target.root / "usr/bin/watchwordd")
    finally:
        os.kill(int((runtime / "watchword" / "broker.sock.lock").read_text()), 15)


def test_it_is_what_debian_expects(target, package, tmp_path):
    version = re.search('current = "(.*)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)
    assert run("dpkg-deb", "--field", package, "Version").stdout.strip() == version + "-1"
    documents = target.root / "usr/share/doc/watchword"
    assert "Apache-2.0" in (documents / "copyright").read_text()
    (tmp_path / "changelog").write_bytes(gzip.decompress((documents / "changelog.Debian.gz").read_bytes()))
    assert run("dpkg-parsechangelog", "-l", tmp_path / "changelog", "-S", "Version").stdout == version + "-1\n"
    assert "ExecStart=/usr/bin/watchwordd\n" in (target.root / "usr/lib/systemd/user/watchword.service").read_text()
    assert run("man", "-M", target.root / "usr/share/man", "-w", "5", "watchword-config").returncode == 0
    assert all(path.stat().st_mode & 0o022 == 0 for path in target.root.rglob("*") if not path.is_symlink())
    listed = run("dpkg-deb", "--contents", package).stdout
    assert set(re.findall(r"^\S+ (\S+)", listed, re.MULTILINE)) == {"root/root"}
    assert set(run("dpkg-deb", "--info", package, "conffiles").stdout.splitlines()) == {f"/{PROFILE}", f"/{AUTOSTART}"}
    assert not any(path.name.endswith((".pyc", ".orig")) or path.name == "installed-files" for path in target.root.rglob("*"))


def test_nothing_is_left_of_it(package, tmp_path):
    target = Target(tmp_path, package)
    (target.root / "usr/share/man").mkdir(parents=True)
    (target.root / "usr/share/man/own").write_text("somebody else's")
    before = target.files()
    target.do("--install", package)
    target.do("--install", package)
    assert len(target.files()) > len(before) + 20
    (target.root / PROFILE).write_text("# mine\n")
    target.do("--remove", "watchword")
    left = [path for path in target.files() if (target.root / path).is_file()]
    assert left == [PROFILE, AUTOSTART, "usr/share/man/own"], "what is in /etc is the administrator's"
    target.do("--purge", "watchword")
    assert target.files() == before
    assert "watchword" not in target.database.read_text() and not list((target.records / "info").glob("watchword*"))


def test_the_desktop_understands_the_entries(tmp_path):
    entry, about = CONTRIB / "desktop/io.watchword.Watchword.desktop", CONTRIB / "desktop/io.watchword.Watchword.metainfo.xml"
    assert run("desktop-file-validate", entry).returncode == 0
    checked = run("appstreamcli", "validate", "--no-net", about)
    assert checked.returncode == 0, checked.stdout
    version = re.search('current = "(.*)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)
    assert f'<release version="{version}"' in about.read_text()
    (tmp_path / "broken.desktop").write_text(entry.read_text().replace("Type=Application\n", ""))
    assert run("desktop-file-validate", tmp_path / "broken.desktop").returncode != 0


def test_apparmor_understands_the_profile(tmp_path):
    """Whether it is kept to cannot be seen where the kernel has no AppArmor."""
    profile = CONTRIB / "apparmor/usr.bin.watchwordd"
    parsed = run("apparmor_parser", "--skip-kernel-load", "--skip-cache", profile)
    assert parsed.returncode == 0, parsed.stderr
    (tmp_path / "broken").write_text(profile.read_text().replace("owner @{HOME}/** r,", "owner @{HOME}/** nonsense,"))
    assert run("apparmor_parser", "--skip-kernel-load", "--skip-cache", tmp_path / "broken").returncode != 0
