"""contrib/container: its recipe, and in its place a container of bubblewrap with the installed package and the restricted socket."""
import json
import os
import pathlib
import re
import subprocess
import sysconfig

import pytest

from rig.broker import ROOT, program
from rig.client import password_answer
from rig.scripted import basic_server, response
from test_package import Target, package  # noqa: F401

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
        self.root, self.restricted = root, os.path.join(os.path.dirname(broker.socket), "restricted.sock")

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
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)

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
