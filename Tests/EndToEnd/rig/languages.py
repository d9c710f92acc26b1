"""The clients of all languages, built once in a run of all workers, with the scripts that their README shows."""
import fcntl
import os
import re
import shutil
import subprocess

import pytest

from .broker import PROGRAMS, program
from .clients import CLIENTS
from .servers import written
from .waiting import output

README = CLIENTS / "README.md"
#: The path of each language's script in the folder of its client, and the command that runs it.
SCRIPTS = {
    "python": ("python/example.py", ["/usr/bin/python3", "example.py"]),
    "shell": ("shell/example.sh", ["bash", "example.sh"]),
    "node": ("node/example.mjs", ["node", "example.mjs"]),
    "go": ("go/example/main.go", ["./built"]),
    "rust": ("rust/examples/example.rs", ["./built"]),
    "rust-async": ("rust/tokio/src/main.rs", ["target/debug/watchword-tokio-example"]),
    "perl": ("perl/example.pl", ["perl", "-I.", "example.pl"]),
    # Built together with the other Swift programs.
    "swift": ("swift/main.swift", "ClientExample"),
    "swift-async": ("swift/async/main.swift", "AsyncClientExample"),
}


#: For further programs: the ending of the file, its place in the folder of the client, and the commands that build and run it.
ENDINGS = {
    "python": ("py", "{}.py", None, "/usr/bin/python3 {}.py"), "shell": ("sh", "{}.sh", None, "bash {}.sh"),
    "node": ("mjs", "{}.mjs", None, "node {}.mjs"), "perl": ("pl", "{}.pl", None, "perl -I. {}.pl"),
    "go": ("go", "{}/main.go", "go build -o {0}/built ./{0}", "{}/built"),
    "rust": ("rs", "examples/{}.rs", "cargo build -q --example {}", "target/debug/examples/{}")}
#: The languages as parameters of tests.
LANGUAGES = [
    pytest.param(name, marks=pytest.mark.tier3("compiles tokio, which takes a minute")) if name == "rust-async" else name for name in SCRIPTS]


def shown(path):
    found = re.search(rf"\[{re.escape(path)}\]\({re.escape(path)}\):\n\n```\w+\n(.*?)```\n", README.read_text(), re.DOTALL)
    assert found, f"{path} is not in the README"
    return found.group(1)


_BUILT = {}


def built(name, folders):
    """Returns the client `name`, built on first use in a temporary folder that all workers of pytest-xdist share."""
    if name not in _BUILT:
        if name == "rust-async":
            # The crates that were compiled for the blocking example serve the asynchronous one, too.
            built("rust", folders)
        own = folders.getbasetemp()
        folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "languages"
        folder.mkdir(exist_ok=True)
        _BUILT[name] = Language(name, folder)
    return _BUILT[name]


class Language:
    """A copy of one client, with the script of the README in it."""

    def __init__(self, name, folder):
        self.name = name
        path, self.command = SCRIPTS[name]
        if isinstance(self.command, str):
            assert shown(path) == (CLIENTS / path).read_text(), "the script in the README differs from the one in the client's folder"
            self.folder, self.command = folder, [program(self.command)]
            return
        self.folder = folder / path.partition("/")[0]
        with open(f"{self.folder}.lock", "w") as lock:  # the other workers wait
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (done := folder / f"{name}.built").exists():
                self.build(path)
                done.touch()

    def build(self, path):
        if not self.folder.exists():
            shutil.copytree(CLIENTS / self.folder.name, self.folder, ignore=shutil.ignore_patterns("__pycache__", "target"))
        (self.folder.parent / path).write_text(shown(path))
        if self.name == "go":
            assert self.tool("gofmt", "-l", ".") == ""
            self.tool("go", "build", "-o", "built", "./example")
        elif self.name == "rust":
            # Debian's packages replace crates.io, as the README describes.
            settings = re.search(r"```ini\n(\[source.*?)```\n", README.read_text(), re.DOTALL).group(1)
            written(self.folder, {"cargo/config.toml": settings})
            self.tool("cargo", "build", "-q", "--example", "example")
            shutil.copy(self.folder / "target" / "debug" / "examples" / "example", self.folder / "built")
        elif self.name == "rust-async":
            self.tool("cargo", "build", "-q", folder=self.folder / "tokio")

    def tool(self, *command, folder=None, **environment):
        """Runs a build tool, in `folder` or in that of the client; returns its output. It must download nothing, and write nothing
        outside of the client's folder."""
        caches = {"GOCACHE": f"{self.folder}/go-cache", "GOPATH": f"{self.folder}/go-path", "GOFLAGS": "-mod=mod", "GOPROXY": "off",
                  "CARGO_HOME": f"{self.folder}/cargo", "CARGO_TARGET_DIR": f"{self.folder}/target", "CARGO_NET_OFFLINE": "true",
                  "RUSTC": "/usr/bin/rustc", "CARGO_PROFILE_DEV_DEBUG": "0", "HOME": str(self.folder),
                  "PATH": "/usr/bin:/bin", **environment}
        return output(*command, cwd=folder or self.folder, env=caches, timeout=900)

    def program(self, name):
        """Builds a program of Tests/EndToEnd/programs with this client; returns the command that runs it."""
        ending, place, build, command = ENDINGS[self.name]
        path = self.folder / place.format(name)
        path.parent.mkdir(exist_ok=True)
        shutil.copy(PROGRAMS / f"{name}.{ending}", path)
        if build:
            self.tool(*build.format(name).split())
        return command.format(name).split()

    def run(self, url, socket, login_file="/nonexistent", command=None, **more):
        """Runs the script with the URL as its argument; returns the exit status, standard output and standard error."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "WATCHWORD_SOCKET": str(socket), "LOGIN_FILE": str(login_file),
                       "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [*(command or self.command), url], cwd=self.folder, env=environment, capture_output=True, timeout=30,
            start_new_session=True, **more)
