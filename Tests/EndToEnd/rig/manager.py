"""A real systemd user manager without root's privileges, in a mount namespace and a control group of its own, so that it sees
and changes nothing of the machine."""
import contextlib
import os
import pathlib
import shutil
import socket
import subprocess

import psutil
import pytest

from .bodies import eventually
from .broker import ROOT, binaries, program
from .fixtures import reachable_folder
from .servers import free_port, written
from .subjects import Relay
from .waiting import is_ready, output, started

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
    """Returns the directory of the Swift runtime for the debug build, which not every user may read; None for a static build."""
    lines = output("ldd", program("watchwordd")).splitlines()
    return next((str(pathlib.Path(line.split()[2]).parent) for line in lines if "libswiftCore.so" in line), None)


class Desk:
    """The user `desk` of a mount namespace with a user database of its own, so that nothing of the machine changes. `folder` must be
    reachable by all users; `swift` and `binaries` in it are readable by all users whatever their real permissions. `process` is in the
    namespace."""

    def __init__(self, folder, user, *mounted):
        self.folder, self.user, self.process = pathlib.Path(folder), user, None
        self.home, self.runtime = self.folder / "home", self.folder / "run"
        written(self.folder, {"passwd": f"root:x:0:0::/root:/bin/sh\ndesk:x:{user}:{user}::{self.home}:/bin/sh\n",
                              "group": f"root:x:0:\ndesk:x:{user}:\nshadow:x:42:\n"})
        for name in ["home", "run"]:
            (self.folder / name).mkdir(mode=0o700)
        for name in ["none", "swift", "binaries", *mounted]:
            (self.folder / name).mkdir(mode=0o755)
        self.own(self.home, self.runtime)
        self.mounts = {"PATH": os.environ["PATH"], "FOLDER": str(self.folder), "SWIFT": swift_libraries() or f"{self.folder}/none",
                       "BINARIES": binaries()}

    def own(self, *paths):
        for path in paths:
            for one in [path, *path.rglob("*")] if path.is_dir() and "cgroup" not in str(path) else [path]:
                os.chown(one, self.user, self.user, follow_symlinks=False)

    def inside(self, *command, **variables):
        """Returns `command` as run by this user in the namespace."""
        variables = {"HOME": self.home, "XDG_RUNTIME_DIR": self.runtime, "LANG": "C.UTF-8", "PATH": f"{self.home}/.local/bin:/usr/bin:/bin",
                     "LD_LIBRARY_PATH": f"{self.folder}/swift", **variables}
        return ["/usr/bin/nsenter", "--target", str(self.process.pid), "--mount", "--", "setpriv", "--reuid", str(self.user),
                "--regid", str(self.user), "--clear-groups", "--", "env", "-i", *(f"{name}={value}" for name, value in variables.items()), *command]


class Manager(Desk):
    """The name of `folder` must be short."""

    def __init__(self, folder):
        super().__init__(folder, USER, "source", "plain-units")
        self.group = _own_group() / f"watchword-test-{os.getpid()}-{self.folder.name}"
        for name in PLAIN_UNITS:
            shutil.copy(f"{UNITS}/{name}", self.folder / "plain-units" / name)
        self.units = self.home / ".config" / "systemd" / "user"
        self.log_path = self.folder / "manager.log"

    def start(self, seconds=30):
        self.group.mkdir()
        self.own(*(self.group / name for name in ["", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"]))
        environment = {**self.mounts, "GROUP": str(self.group), "USER_ID": str(USER), "SOURCE": str(ROOT)}
        self.process = started(["bash", "-c", START], self.log_path, env=environment)
        self.wait_for(lambda: self.systemctl("is-active", "basic.target").returncode == 0, seconds)
        return self

    def wait_for(self, condition, seconds=30):
        def is_true():
            assert self.process.poll() is None, f"the manager has ended: {self.log[-3000:]}"
            return condition()

        eventually(is_true, lambda: self.log[-3000:], seconds, 0.02)

    def run(self, *command, seconds=30):
        return subprocess.run(self.inside(*command), capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)

    def install(self, *options):
        return self.run("/usr/bin/python3", f"{self.folder}/source/contrib/install", "--user", *options)

    def client(self, name="broker.sock"):
        return Relay(f"{self.runtime}/watchword/{name}", *self.inside())

    def systemctl(self, *words):
        return self.run("systemctl", "--user", "--no-pager", *words)

    def do(self, *words):
        done = self.systemctl(*words)
        assert done.returncode == 0, f"systemctl {' '.join(words)}: {done.stdout}{done.stderr}{self.log[-3000:]}"
        return done.stdout.strip()

    def value(self, unit, name):
        return self.do("show", "--property", name, "--value", unit)

    def unit(self, name, text):
        written(self.units, {name: text})
        self.own(self.home)

    @property
    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def stop(self):
        """Ends the manager and all processes that it has started: those in its control group."""
        def is_gone():
            with contextlib.suppress(OSError):
                for path in [*sorted((one for one in self.group.rglob("*") if one.is_dir()), reverse=True), self.group]:
                    path.rmdir()
            return not self.group.exists()

        if self.group.exists():
            (self.group / "cgroup.kill").write_text("1")
            eventually(is_gone, f"processes are left in {self.group}", 20, 0.02)
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


SUDO_USER = 61235
# Prints a line when everything is mounted, and then waits for the end of its input.
SUDO_START = r"""
set -eu
for name in passwd group shadow sudoers; do mount --bind "$FOLDER/$name" "/etc/$name"; done
mount --bind "$SWIFT" "$FOLDER/swift"
mount --bind "$BINARIES" "$FOLDER/binaries"
echo ready
exec cat
"""
# sudo removes LD_LIBRARY_PATH from its environment.
ASKPASS = """#!/bin/sh
LD_LIBRARY_PATH={folder}/swift exec {folder}/watchword-askpass "$@"
"""


class SudoUser(Desk):
    def __init__(self, folder, password):
        super().__init__(folder, SUDO_USER)
        hashed = output("openssl", "passwd", "-6", "-stdin", input=password + "\n").strip()
        written(folder, {
            "shadow": f"root:*:19000:0:99999:7:::\ndesk:{hashed}:19000:0:99999:7:::\n",
            "sudoers": "Defaults env_reset, !lecture\ndesk ALL=(ALL) ALL\n", "askpass": ASKPASS.format(folder=self.folder)})
        for name, mode in {"shadow": 0o600, "sudoers": 0o440, "askpass": 0o755}.items():
            (self.folder / name).chmod(mode)
        (self.folder / "watchword-askpass").symlink_to("binaries/watchword")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", SUDO_START], env=self.mounts, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def inside(self, *command):
        return super().inside(*command, LANG="C", TERM="dumb", SUDO_ASKPASS=self.folder / "askpass")

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


SSHD_CONFIGURATION = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
{more}
AuthorizedKeysFile {folder}/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PidFile none
AcceptEnv none
"""
# The user's ~/.ssh/config.
SSH_CONFIGURATION = """
Host other
    HostName 127.0.0.1
    Port {port}
    User desk
    IdentityFile {folder}/user
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known
    StrictHostKeyChecking yes
"""


class Sshd:
    """`manager` provides the user, and the meaning of `own` and `inside`."""

    def __init__(self, manager, more="StreamLocalBindUnlink yes"):
        self.manager, self.folder, self.port = manager, manager.home / ".ssh", free_port()
        self.folder.mkdir(mode=0o700, exist_ok=True)
        for name in ["host", "user"]:
            if not (self.folder / name).exists():
                output("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.folder / name), stdin=subprocess.DEVNULL)
        written(self.folder, {
            "authorized_keys": "restrict,port-forwarding " + (self.folder / "user.pub").read_text(),
            "known": f"[127.0.0.1]:{self.port} {(self.folder / 'host.pub').read_text()}",
            "config": SSH_CONFIGURATION.format(port=self.port, folder=self.folder),
            "sshd_config": SSHD_CONFIGURATION.format(port=self.port, folder=self.folder, more=more)})
        manager.own(self.folder)
        self.log_path = manager.folder / f"sshd-{self.port}.log"
        self.process = started(manager.inside("/usr/sbin/sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")), self.log_path)
        manager.wait_for(lambda: f"Server listening on 127.0.0.1 port {self.port}" in self.log_path.read_text())

    def ssh(self, *options):
        """Starts ssh as a user would; it ends with the test."""
        return subprocess.Popen(self.manager.inside("ssh", "-F", str(self.folder / "config"), *options), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end_sessions(self):
        """Ends the processes that serve connections: the descendants of the listening process."""
        for session in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                session.kill()

    def stop(self):
        self.end_sessions()
        self.process.kill()
        self.process.wait(30)


# Uses the descriptors of sd_listen_fds(3), from 3 on. The process becomes the service with exec(2).
HAND_OVER = """
import fcntl, os, sys
names, given, program = sys.argv[1], [int(text) for text in sys.argv[2].split(",")], sys.argv[3:]
held = [fcntl.fcntl(one, fcntl.F_DUPFD, 100) for one in given]
for number, one in enumerate(held, 3):
    os.dup2(one, number)
    os.set_inheritable(number, True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(held)))
if names != "-":
    os.environ["LISTEN_FDNAMES"] = names
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(program[0], program)
"""


class Activation:
    """Listens at `folder`/main, `folder`/restricted, and a notification socket, which is a path or an abstract name."""

    def __init__(self, folder, is_abstract=False):
        self.folder, self.process = pathlib.Path(folder), None
        self.paths = {name: str(self.folder / name) for name in ["main", "restricted"]}
        self.listeners = {name: socket.socket(socket.AF_UNIX) for name in self.paths}
        for name, listener in self.listeners.items():
            listener.bind(self.paths[name])
            listener.listen(8)
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        name = f"watchword-test/{os.getpid()}/{self.folder.name}" if is_abstract else str(self.folder / "notify")
        self.heard.bind("\0" + name if is_abstract else name)
        self.address = "@" + name if is_abstract else name

    def start(self, handed=("main", "restricted"), names="broker:restricted", **environment):
        given = [self.listeners[name].fileno() for name in handed]
        self.process = subprocess.Popen(
            ["/usr/bin/python3", "-c", HAND_OVER, names, ",".join(map(str, given)), program("watchwordd")], pass_fds=given,
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"], "NOTIFY_SOCKET": self.address, **environment},
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return self

    def next(self, seconds=30):
        """Returns the next notification as fields. Watchdog notifications are recorded separately."""
        while True:
            assert is_ready(self.heard, seconds), "the service sends no notification"
            text = self.heard.recv(4096).decode()
            if text != "WATCHDOG=1":
                return dict(line.split("=", 1) for line in text.split("\n"))

    def lives(self, seconds=30):
        while is_ready(self.heard, seconds):
            if self.heard.recv(4096) == b"WATCHDOG=1":
                return True
        return False

    def end(self):
        if self.process:
            self.process.kill()
            self.process.communicate(timeout=30)
        for one in [*self.listeners.values(), self.heard]:
            one.close()
