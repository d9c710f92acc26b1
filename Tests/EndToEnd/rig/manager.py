"""A real systemd user manager without root's privileges, in a mount namespace and a control group of its own, so that it sees
and changes nothing of the machine."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

from .broker import ROOT, binaries, program
from .fixtures import reachable_folder
from .subjects import Relay

# The user of the manager, without privileges: the namespace has a user database of its own.
USER = 61234
UNITS = "/usr/lib/systemd/user"
PLAIN_UNITS = ["basic.target", "default.target", "sockets.target", "timers.target", "paths.target", "exit.target",
               "shutdown.target", "systemd-exit.service", "app.slice", "session.slice", "background.slice"]

# The script exits before it starts the manager if the control group contains other processes, because the manager would move
# them.
START = r"""
set -eu
echo $$ > "$GROUP/cgroup.procs"
exec unshare --mount --cgroup --propagation private bash -c '
set -eu
mount -t cgroup2 none /sys/fs/cgroup
mapfile -t others < /sys/fs/cgroup/cgroup.procs
if [ "${#others[@]}" -ne 1 ] || [ "${others[0]}" != $$ ]; then echo "not alone in the control group" >&2; exit 1; fi
mkdir -p /run/systemd
mount -t tmpfs none /run/systemd
mkdir /run/systemd/system
mount --bind "$FOLDER/plain-units" /usr/lib/systemd/user
for generators in user-generators user-environment-generators; do
    [ ! -d /usr/lib/systemd/$generators ] || mount --bind "$FOLDER/none" /usr/lib/systemd/$generators
done
mount --bind "$FOLDER/passwd" /etc/passwd
mount --bind "$FOLDER/group" /etc/group
mount --bind "$SWIFT" "$FOLDER/swift"
mount --bind "$SOURCE" "$FOLDER/source"
mount --bind "$BINARIES" "$FOLDER/binaries"
exec setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups -- env -i HOME="$FOLDER/home" XDG_RUNTIME_DIR="$FOLDER/run" \
    PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 LD_LIBRARY_PATH="$FOLDER/swift" \
    /lib/systemd/systemd --user --unit=basic.target --log-target=console --log-level=info'
"""


def why_not():
    """Returns why no manager can be started here, or None."""
    if os.geteuid() != 0:
        return "only root can make a control group and a mount namespace"
    if not pathlib.Path("/lib/systemd/systemd").exists():
        return "systemd is not installed"
    if _own_group() is None:
        return "there is no control group file system of version 2"
    try:
        group = _own_group() / f"watchword-probe-{os.getpid()}"
        group.mkdir()
        group.rmdir()
    except OSError as error:
        return f"no control group can be made: {error}"
    probe = subprocess.run(["unshare", "--mount", "--cgroup", "true"], capture_output=True, text=True)
    return probe.stderr.strip() or None if probe.returncode else None


def _own_group():
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if fields[fields.index("-") + 1] == "cgroup2":
            own = next(line for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
            return pathlib.Path(fields[4]) / own[len("0::/"):]
    return None


def swift_libraries():
    """Returns the directory of the Swift runtime for the debug build, which not every user may read; empty for a static build."""
    listed = subprocess.run(["ldd", program("watchwordd")], capture_output=True, text=True, check=True).stdout
    return next((str(pathlib.Path(line.split()[2]).parent) for line in listed.splitlines() if "libswiftCore.so" in line), None)


class Manager:
    """`folder` must be reachable by all users, and its name short. In the namespace it contains `source` and `binaries`,
    readable by all users whatever their real permissions."""

    def __init__(self, folder):
        self.folder, self.process = pathlib.Path(folder), None
        self.home, self.runtime = self.folder / "home", self.folder / "run"
        self.group = _own_group() / f"watchword-test-{os.getpid()}-{self.folder.name}"
        for name in ["home", "run"]:
            (self.folder / name).mkdir(mode=0o700)
        for name in ["none", "swift", "source", "binaries", "plain-units"]:
            (self.folder / name).mkdir(mode=0o755)
        for name in PLAIN_UNITS:
            shutil.copy(f"{UNITS}/{name}", self.folder / "plain-units" / name)
        (self.folder / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\ndesk:x:{USER}:{USER}::{self.home}:/bin/sh\n")
        (self.folder / "group").write_text(f"root:x:0:\ndesk:x:{USER}:\n")
        self.units = self.home / ".config" / "systemd" / "user"
        self.log_path = self.folder / "manager.log"

    def start(self, seconds=30):
        self.own(self.home, self.runtime)
        self.group.mkdir()
        self.environment = {"GROUP": str(self.group), "FOLDER": str(self.folder), "USER_ID": str(USER),
                            "PATH": os.environ["PATH"], "SWIFT": swift_libraries() or str(self.folder / "none"),
                            "SOURCE": str(ROOT),
                            "BINARIES": binaries()}
        self.own(self.group, self.group / "cgroup.procs", self.group / "cgroup.subtree_control", self.group / "cgroup.threads")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", START], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wait_for(lambda: self.systemctl("is-active", "basic.target").returncode == 0, seconds)
        return self

    def own(self, *paths):
        for path in paths:
            for one in [path, *path.rglob("*")] if path.is_dir() and "cgroup" not in str(path) else [path]:
                os.chown(one, USER, USER, follow_symlinks=False)

    def wait_for(self, condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"the manager has ended: {self.log[-3000:]}"
            assert time.monotonic() < end, f"the condition did not become true in {seconds} s: {self.log[-3000:]}"
            time.sleep(0.02)

    def inside(self, *command):
        """Returns `command` as run by the manager's user in its namespace."""
        return ["nsenter", "--target", str(self.process.pid), "--mount", "--", "setpriv", "--reuid", str(USER),
                "--regid", str(USER), "--clear-groups",
                "--", "env", "-i", f"HOME={self.home}", f"XDG_RUNTIME_DIR={self.runtime}", "LANG=C.UTF-8",
                f"PATH={self.home}/.local/bin:/usr/bin:/bin", f"LD_LIBRARY_PATH={self.folder}/swift", *command]

    def run(self, *command, seconds=30):
        return subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)

    def install(self, *options):
        """Runs contrib/install --user as the manager's user."""
        return self.run("/usr/bin/python3", f"{self.folder}/source/contrib/install", "--user", *options)

    def client(self, name="broker.sock"):
        return Relay(f"{self.runtime}/watchword/{name}", *self.inside())

    def systemctl(self, *words):
        return self.run("systemctl", "--user", "--no-pager", *words)

    def do(self, *words):
        """Runs `systemctl`, which must succeed; returns its output."""
        done = self.systemctl(*words)
        assert done.returncode == 0, f"systemctl {' '.join(words)}: {done.stdout}{done.stderr}{self.log[-3000:]}"
        return done.stdout.strip()

    def value(self, unit, name):
        return self.do("show", "--property", name, "--value", unit)

    def unit(self, name, text):
        path = self.units / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.own(self.home)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def processes(self):
        found = []
        for path in self.group.rglob("cgroup.procs"):
            found += [int(text) for text in path.read_text().split()]
        return found

    def stop(self):
        """Ends the manager and all processes that it has started: those in its control group."""
        end = time.monotonic() + 20
        while self.group.exists():
            for pid in self.processes():
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if self.process is not None:
                self.process.poll()
            try:
                for path in sorted((one for one in self.group.rglob("*") if one.is_dir()), reverse=True):
                    path.rmdir()
                self.group.rmdir()
            except OSError:
                assert time.monotonic() < end, f"processes are left in {self.group}"
                time.sleep(0.02)
        if self.process is not None:
            self.process.wait(30)


@contextlib.contextmanager
def with_units(name, more=""):
    """Yields a manager with the installed units, and with these lines in the service."""
    if reason := why_not():
        pytest.skip(f"no user manager can be started here: {reason}")
    with reachable_folder(name) as folder:
        manager = Manager(folder)
        try:
            manager.start()
            installed = manager.install("--build", "none", "--binaries", f"{folder}/binaries")
            assert installed.returncode == 0, installed.stderr
            # The debug build needs Swift's libraries, which may be readable only by root.
            manager.unit("watchword.service.d/test.conf", f"[Service]\nEnvironment=LD_LIBRARY_PATH={folder}/swift\n{more}")
            manager.do("daemon-reload")
            yield manager
        finally:
            manager.stop()
