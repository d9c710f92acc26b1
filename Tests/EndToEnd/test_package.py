"""The Debian package: its files, its installation with dpkg, its programs after that, its upgrade and complete removal; the source package;
and contrib/container, in whose place a container of bubblewrap runs with the installed package and the restricted socket."""
import contextlib
import gzip
import json
import os
import pathlib
import re
import subprocess
import sysconfig
import tarfile

import pytest

from rig.broker import ROOT, binaries, program
from rig.client import password_answer
from rig.scripted import basic_server, response

CONTRIB = ROOT / "contrib"
PROFILE = "etc/apparmor.d/usr.bin.watchwordd"
AUTOSTART = "etc/xdg/autostart/watchword-agent.desktop"


def run(*command, timeout=120, **more):
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL, **more)


def made(folder, *options):
    built = run("/usr/bin/python3", CONTRIB / "make-deb", "--output", folder, *options)
    assert built.returncode == 0, built.stderr
    return pathlib.Path(built.stdout.strip())


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return made(tmp_path_factory.mktemp("package"), "--build", "none", "--binaries", binaries())


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Small programs in place of the real ones, stripped as those of a release are."""
    folder = tmp_path_factory.mktemp("small")
    source = '#include <stdio.h>\nint main(void) { char text[99]; return fgets(text, 99, stdin) ? puts(text) : puts("completions") < 0; }\n'
    for name in ["watchword", "watchwordd", "watchword-pac"]:
        built = subprocess.run(["cc", "-O2", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now", "-s", "-o", folder / name, "-x", "c", "-"],
                               input=source, text=True, capture_output=True)
        assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def small_package(tmp_path_factory, small):
    return made(tmp_path_factory.mktemp("small_package"), "--build", "none", "--binaries", small)


def changed(package, folder, version, change=lambda root: None):
    """Returns a copy of a package with another version, and other files."""
    root = folder / "changed"
    assert run("dpkg-deb", "--raw-extract", package, root).returncode == 0
    control = root / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", f"Version: {version}", control.read_text()))
    change(root)
    built = folder / f"watchword_{version}.deb"
    assert run("dpkg-deb", "--root-owner-group", "--build", "-Znone", root, built).returncode == 0
    return built


class Target:
    """A separate root directory with those installed packages of this machine on which the package depends."""

    def __init__(self, folder, package):
        self.root, self.records = folder / "root", folder / "records"
        for name in ["info", "updates", "triggers"]:
            (self.records / name).mkdir(parents=True)
        self.root.mkdir()
        depends = run("dpkg-deb", "--field", package, "Depends").stdout
        names = re.findall(r"(?:^|[,|] ?)([a-z0-9.+-]+)", depends)
        self.database = self.records / "status"
        self.database.write_text("\n".join(run("dpkg-query", "--status", name).stdout for name in names))

    def dpkg(self, *words):
        return run("dpkg", f"--instdir={self.root}", f"--admindir={self.records}", f"--log={self.records}/log",
                   *([] if os.geteuid() == 0 else ["--force-not-root"]), *words)

    def do(self, *words):
        done = self.dpkg(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def apt(self, *words):
        """Runs apt-get with the package lists of this machine. Everything that it writes is in the folder of this object."""
        state = self.records.parent / "apt"
        for name in ["state/lists/partial", "cache/archives/partial", "log"]:
            (state / name).mkdir(parents=True, exist_ok=True)
        settings = {
            "Dir::State": state / "state", "Dir::State::lists": "/var/lib/apt/lists", "Dir::State::status": self.database,
            "Dir::Cache": state / "cache", "Dir::Log": state / "log", "APT::Sandbox::User": "root", "Debug::NoLocking": "true",
            "APT::Get::AllowUnauthenticated": "true"}
        options = [f"-o{name}={value}" for name, value in settings.items()]
        options += [f"-oDPkg::Options::=--{name}={value}" for name, value in [
            ("instdir", self.root), ("admindir", self.records), ("log", self.records / "log")]]
        return run("apt-get", "--yes", *options, *words, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})

    def files(self):
        return sorted(str(path.relative_to(self.root)) for path in self.root.rglob("*"))


@pytest.fixture(scope="module")
def target(tmp_path_factory, package):
    target = Target(tmp_path_factory.mktemp("system"), package)
    target.do("--install", package)
    return target


def test_it_depends_on_what_it_is_linked_with(package, tmp_path):
    target = Target(tmp_path, package)
    needed = dict(re.findall(r"(?:^|, )([a-z0-9.+-]+)[^\s,]*(?: \(>= ([^)]+)\))?", run("dpkg-deb", "--field", package, "Depends").stdout))
    assert needed.keys() >= {"libc6", "libcurl4", "libssl3", "libjansson4", "libgssapi-krb5-2", "libsecret-1-0", "python3"}, needed
    recommended = run("dpkg-deb", "--field", package, "Recommends").stdout
    assert all(name in recommended for name in ["python3-gi", "gir1.2-gtk-4.0", "gir1.2-adw-1"]), "a server needs no GTK"
    target.database.write_text(re.sub(r"(?ms)^Package: libssl3\n.*?\n\n", "", target.database.read_text() + "\n\n"))
    refused = target.dpkg("--install", package)
    assert refused.returncode != 0 and "libssl3" in refused.stderr


@contextlib.contextmanager
def fetching(target, stage, folder):
    """Yields a function that fetches with the installed helper, and returns the process ID of the broker that this has started."""
    server = stage.server(lambda request: response(200, b"the page\n"))
    runtime = folder / "run"
    runtime.mkdir(mode=0o700)
    environment = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(runtime), "PATH": os.environ["PATH"]}
    lock = runtime / "watchword" / "broker.sock.lock"

    def fetch():
        fetched = run(target.root / "usr/bin/watchword", "fetch", server.url, env=environment)
        assert fetched.returncode == 0 and fetched.stdout == "the page\n", fetched.stderr
        return int(lock.read_text())

    try:
        yield fetch
    finally:
        os.kill(int(lock.read_text()), 15)


def test_programs_installed_by_dpkg_work(target, stage, tmp_path):
    with fetching(target, stage, tmp_path) as fetch:
        assert os.readlink(f"/proc/{fetch()}/exe") == str(target.root / "usr/bin/watchwordd")


def test_it_is_what_debian_expects(target, package, tmp_path):
    version = re.search('current = "(.*)"', (ROOT / "Sources/WatchwordProtocol/Version.swift").read_text()).group(1)
    assert run("dpkg-deb", "--field", package, "Version").stdout.strip() == version + "-1"
    documents = target.root / "usr/share/doc/watchword"
    assert "Apache-2.0" in (documents / "copyright").read_text()
    (tmp_path / "changelog").write_bytes(gzip.decompress((documents / "changelog.Debian.gz").read_bytes()))
    assert run("dpkg-parsechangelog", "-l", tmp_path / "changelog", "-S", "Version").stdout == version + "-1\n"
    assert "ExecStart=/usr/bin/watchwordd\n" in (target.root / "usr/lib/systemd/user/watchword.service").read_text()
    assert run("man", "-M", target.root / "usr/share/man", "-w", "5", "watchword-config").returncode == 0
    assert (target.root / "usr/share/locale/de/LC_MESSAGES/watchword-agent.mo").exists()
    assert all(path.stat().st_mode & 0o022 == 0 for path in target.root.rglob("*") if not path.is_symlink())
    assert set(re.findall(r"^\S+ (\S+)", run("dpkg-deb", "--contents", package).stdout, re.MULTILINE)) == {"root/root"}
    assert set(run("dpkg-deb", "--info", package, "conffiles").stdout.splitlines()) == {f"/{PROFILE}", f"/{AUTOSTART}"}
    assert not any(path.name.endswith((".pyc", ".orig")) or path.name == "installed-files" for path in target.root.rglob("*"))


def test_every_file_has_a_checksum(target):
    sums = (target.records / "info/watchword.md5sums").read_text().splitlines()
    checked = run("md5sum", "--check", "--strict", "--quiet", target.records / "info/watchword.md5sums", cwd=target.root)
    assert checked.returncode == 0, checked.stdout
    assert {line.split("  ", 1)[1] for line in sums} == {
        path for path in target.files() if not path.startswith("etc/") and (target.root / path).is_file() and not (target.root / path).is_symlink()}


@pytest.mark.tier3("packages for a release, which take long")
def test_lintian_reports_nothing(small_package):
    checked = run("lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", small_package)
    assert checked.returncode == 0 and not checked.stdout, checked.stdout + checked.stderr


def test_an_earlier_version_is_upgraded(small_package, tmp_path):
    def earlier(root):
        for path in [PROFILE, AUTOSTART]:
            (root / path).write_text("# of the earlier version\n")
        (root / "usr/share/watchword/old").write_text("old")
        (root / "usr/bin/watchwordd").unlink()
    target = Target(tmp_path, small_package)
    target.do("--install", changed(small_package, tmp_path, "0.3.9-1", earlier))
    assert (target.root / "usr/share/watchword/old").exists() and not (target.root / "usr/bin/watchwordd").exists()
    (target.root / PROFILE).write_text("# mine\n")
    target.do("--force-confold", "--install", small_package)
    assert (target.root / PROFILE).read_text() == "# mine\n" and "abi <abi" in (target.root / (PROFILE + ".dpkg-dist")).read_text()
    assert (target.root / AUTOSTART).read_bytes() == (CONTRIB / "agent/watchword-agent.desktop").read_bytes(), "an unchanged file is replaced"
    assert not (target.root / "usr/share/watchword/old").exists() and (target.root / "usr/bin/watchwordd").exists()
    assert not [path for path in target.files() if path.endswith((".dpkg-new", ".dpkg-tmp"))]
    target.do("--purge", "watchword")
    assert target.files() == []


needs_lists = pytest.mark.skipif(
    not list(pathlib.Path("/var/lib/apt/lists").glob("*_Packages*")), reason="there are no package lists; run apt-get update")


@needs_lists
@pytest.mark.tier3("packages for a release, which take long")
def test_apt_resolves_its_dependencies_on_a_minimal_system(package, tmp_path):
    """On a system without any package. Nothing is installed, and nothing downloaded."""
    target = Target(tmp_path, package)
    target.database.write_text("")
    needed, recommended = [target.apt("--simulate", option, "install", package) for option in ["--no-install-recommends", "--install-recommends"]]
    assert needed.returncode == recommended.returncode == 0, needed.stderr + recommended.stderr
    names = [set(re.findall(r"^Inst (\S+)", done.stdout, re.MULTILINE)) for done in [needed, recommended]]
    assert {"watchword", "libcurl4", "libsecret-1-0", "python3"} <= names[0] and "gir1.2-gtk-4.0" not in names[0]
    assert {"gir1.2-gtk-4.0", "gir1.2-adw-1", "python3-gi", "libpam-systemd"} <= names[1]


@needs_lists
@pytest.mark.tier3("packages for a release, which take long")
def test_apt_installs_and_upgrades_it(small_package, tmp_path):
    def earlier(root):
        (root / "usr/share/watchword/old").write_text("old")
    target = Target(tmp_path, small_package)
    target.database.write_text(pathlib.Path("/var/lib/dpkg/status").read_text())
    old = changed(small_package, tmp_path, "0.3.9-1", earlier)
    for package, result in [(old, "0 upgraded, 1 newly installed, 0 to remove"), (small_package, "1 upgraded, 0 newly installed, 0 to remove")]:
        installed = target.apt("--no-install-recommends", "install", package)
        assert installed.returncode == 0 and result in installed.stdout, installed.stdout + installed.stderr
        version = run("dpkg-deb", "--field", package, "Version").stdout.strip()
        assert re.search(rf"^ii +watchword +{version} ", target.do("--list", "watchword"), re.MULTILINE)
        if package == old:
            (target.root / AUTOSTART).unlink()
    assert not (target.root / "usr/share/watchword/old").exists() and (target.root / "usr/bin/watchwordd").exists()
    assert not (target.root / AUTOSTART).exists(), "a file that the administrator has removed is not installed again"
    removed = target.apt("purge", "watchword")
    assert removed.returncode == 0 and target.files() == [], removed.stdout + removed.stderr


def test_a_running_broker_survives_an_upgrade(package, stage, tmp_path):
    target = Target(tmp_path, package)
    target.do("--install", changed(package, tmp_path, "0.3.9-1"))
    with fetching(target, stage, tmp_path) as fetch:
        before = fetch()
        target.do("--install", package)
        assert fetch() == before
        assert os.readlink(f"/proc/{before}/exe") == f"{target.root}/usr/bin/watchwordd (deleted)"


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    described = made(folder, "--source")
    assert described.suffix == ".dsc"
    unpacked = run("dpkg-source", "--extract", described, folder / "unpacked", cwd=folder)
    assert unpacked.returncode == 0, unpacked.stderr
    return folder / "unpacked"


@pytest.mark.tier3("packages for a release, which take long")
def test_the_source_package_has_all_files(source):
    listed = run("git", "ls-files", "-z", cwd=ROOT).stdout.split("\0")[:-1]
    if not listed:
        pytest.skip("this source has no repository to compare with")
    found = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_symlink() or path.is_file()}
    assert {path for path in found if not path.startswith(("Dependencies/", "debian/", ".pc/"))} == set(listed)
    assert all((source / path).read_bytes() == (ROOT / path).read_bytes() for path in listed)
    assert {path.name for path in (source / "Dependencies").iterdir()} == {"swift-argument-parser", "swift-log"}
    assert all((source / "Dependencies" / name / "Package.swift").is_file() for name in ["swift-argument-parser", "swift-log"])
    with tarfile.open(next(source.parent.glob("*.orig.tar.xz"))) as archive:
        assert {(one.uid, one.uname, oct(one.mode)) for one in archive if one.isfile()} <= {(0, "root", "0o644"), (0, "root", "0o755")}


@pytest.mark.tier3("packages for a release, which take long")
def test_dpkg_buildpackage_builds_the_package(source, small, tmp_path):
    """With a `swift` that finds the small programs. The next test builds the real ones."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "swift").write_text(f'#!/bin/sh\necho "$HOME: $*" >>{tmp_path}/calls\ncase "$*" in *--show-bin-path) echo {small};; esac\n')
    without = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "HOME": "/nonexistent"}
    failed = run("debian/rules", "build", cwd=source, env=without)
    assert failed.returncode != 0 and "swift: command not found; put the Swift toolchain into PATH" in failed.stderr
    (tools / "swift").chmod(0o755)
    built = run("dpkg-buildpackage", "--build=full", "--no-check-builddeps", "--unsigned-source", "--unsigned-changes", cwd=source,
                env={**without, "PATH": f"{tools}:{without['PATH']}"})
    assert built.returncode == 0, built.stdout + built.stderr
    calls = (tmp_path / "calls").read_text()
    assert "build --configuration release --static-swift-stdlib" in calls and f"{source}/.build/home: " in calls and "/nonexistent" not in calls
    packages = list(source.parent.glob("*.deb"))
    changes = next(source.parent.glob("*.changes"))
    assert len(packages) == 1 and packages[0].name in changes.read_text()


@pytest.mark.tier3("builds a release, which takes minutes")
def test_the_source_package_is_built_without_a_network(source, stage, tmp_path):
    assert run("debian/rules", "clean", cwd=source).returncode == 0
    built = run("unshare", "--map-root-user", "--net", "dpkg-buildpackage", "--build=full", "--unsigned-source", "--unsigned-changes",
                cwd=source, timeout=1200)
    assert built.returncode == 0, built.stdout[-2000:] + built.stderr[-2000:]
    # Overrides do not apply to a .changes file.
    results = [next(source.parent.glob(name)) for name in ["*.dsc", "*.deb"]]
    checked = run("lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", *results)
    assert checked.returncode == 0 and not checked.stdout, checked.stdout + checked.stderr
    target = Target(tmp_path / "system", next(source.parent.glob("*.deb")))
    target.do("--install", next(source.parent.glob("*.deb")))
    test_programs_installed_by_dpkg_work(target, stage, tmp_path)


def test_purging_removes_every_file(package, tmp_path):
    target = Target(tmp_path, package)
    (target.root / "usr/share/man").mkdir(parents=True)
    (target.root / "usr/share/man/own").write_text("another package's")
    before = target.files()
    target.do("--install", package)
    target.do("--install", package)
    assert len(target.files()) > len(before) + 20
    (target.root / PROFILE).write_text("# mine\n")
    target.do("--remove", "watchword")
    left = [path for path in target.files() if (target.root / path).is_file()]
    assert left == [PROFILE, AUTOSTART, "usr/share/man/own"], "files in /etc belong to the administrator"
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
    """A kernel without AppArmor can parse the profile, but not enforce it."""
    profile = CONTRIB / "apparmor/usr.bin.watchwordd"
    parsed = run("apparmor_parser", "--skip-kernel-load", "--skip-cache", profile)
    assert parsed.returncode == 0, parsed.stderr
    (tmp_path / "broken").write_text(profile.read_text().replace("owner @{HOME}/** r,", "owner @{HOME}/** malformed,"))
    assert run("apparmor_parser", "--skip-kernel-load", "--skip-cache", tmp_path / "broken").returncode != 0


RECIPE = ROOT / "contrib/container/Containerfile"


def instructions():
    """The instructions of the recipe, as pairs of name and text."""
    text = re.sub(r"(?m)^#.*\n", "", RECIPE.read_text()).replace("\\\n", " ")
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line]


def last(name):
    return [text for one, text in instructions() if one == name][-1]


VARIABLE, SOCKET = last("ENV").split("=")


class Container:
    """A root directory with the files of the package and the libraries of this machine; no network, and namespaces of its own."""

    def __init__(self, root, broker):
        self.root, self.restricted = root, broker.restricted

    def run(self, *words, user=0, mounts=()):
        libraries = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
        used = subprocess.run(["ldd", self.root / "usr/bin/watchword"], capture_output=True, text=True).stdout
        # A debug build needs Swift's libraries.
        swift = {str(pathlib.Path(path).parent) for path in re.findall(r"=> (/\S+)", used) if not path.startswith(("/lib", "/usr"))}
        command = ["bwrap", "--unshare-all", "--unshare-user", "--uid", user, "--gid", user, "--die-with-parent", "--clearenv", "--tmpfs", "/",
                   "--bind", self.root / "usr", "/usr", "--ro-bind", libraries, libraries, "--ro-bind", "/usr/lib64", "/usr/lib64",
                   "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin",
                   *(word for folder in swift for word in ("--ro-bind", folder, folder)), "--proc", "/proc", "--dev", "/dev",
                   "--perms", "0755", "--dir", os.path.dirname(SOCKET), "--bind", self.restricted, SOCKET, *mounts,
                   "--setenv", "PATH", "/usr/bin", "--setenv", VARIABLE, SOCKET, *words]
        return run(*command)

    def fetch(self, *words, **more):
        return self.run(*json.loads(last("ENTRYPOINT")), *words, **more)


@pytest.fixture(scope="module")
def root(tmp_path_factory, package):  # noqa: F811
    target = Target(tmp_path_factory.mktemp("image"), package)
    target.do("--install", package)
    (target.root / "usr/bin/watchwordd").unlink()
    return target.root


@pytest.fixture
def container(root, stage):
    main = stage.client(answer=lambda challenge: password_answer("bob", main.password))
    return Container(root, stage.brokers[0]), main


def test_a_container_without_a_network_fetches(container, stage):
    server = stage.server(lambda request: response(200, b"the page\n"))
    for user in [0, 1000]:
        done = container[0].fetch(server.url, user=user)
        assert (done.returncode, done.stdout) == (0, "the page\n"), done.stderr


def test_rule_g4_a_container_does_not_use_the_logins_of_the_session(container, stage):
    inside, main = container
    main.password = stage.secret()
    server = stage.server(basic_server("bob", main.password))
    stage.allow(main.password, server)
    assert main.fetch(server.url)["result"]["status"] == 200
    main.answer = lambda challenge: {"action": "continue"}
    assert main.fetch(server.url)["result"]["auth"]["source"] == "session"
    done = inside.fetch(server.url)
    assert done.returncode == 67 and not done.stdout and "requires a login" in done.stderr, done
    assert inside.run("watchword", "credentials", "list").returncode != 0


def test_without_the_socket_no_broker_is_started(container):
    done = container[0].fetch("http://127.0.0.1:1/", mounts=["--tmpfs", os.path.dirname(SOCKET)])
    assert done.returncode == 2 and "no broker listens" in done.stderr, done


def test_the_recipe_matches_package_and_documentation(container, root):
    names = [name for name, _ in instructions()]
    assert names[0] == "FROM" and set(names) <= {"FROM", "COPY", "RUN", "ENV", "ENTRYPOINT"}
    for name, text in instructions():
        if name == "RUN":
            assert subprocess.run(["sh", "-n", "-c", text]).returncode == 0
    assert pathlib.PurePath("watchword_0.4.0-1_amd64.deb").match(last("COPY").split()[0])
    assert f"--mode=0755 {os.path.dirname(SOCKET)}" in last("RUN")
    documented = (ROOT / "contrib/docs/remote-use.md").read_text()
    assert f"-v $XDG_RUNTIME_DIR/watchword/restricted.sock:{SOCKET} " in documented
    version = container[0].run("watchword", "--version")
    assert version.stdout == subprocess.run([program("watchword"), "--version"], capture_output=True, text=True).stdout
