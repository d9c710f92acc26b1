"""A real sshd on loopback with keys and a configuration of its own, run by the user whom it lets in."""
import contextlib
import os
import signal
import subprocess

from .servers import free_port, written

CONFIGURATION = """
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
CLIENT = """
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
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(self.folder / name)],
                               check=True, stdin=subprocess.DEVNULL)
        written(self.folder, {
            "authorized_keys": "restrict,port-forwarding " + (self.folder / "user.pub").read_text(),
            "known": f"[127.0.0.1]:{self.port} {(self.folder / 'host.pub').read_text()}",
            "config": CLIENT.format(port=self.port, folder=self.folder),
            "sshd_config": CONFIGURATION.format(port=self.port, folder=self.folder, more=more)})
        manager.own(self.folder)
        self.log_path = manager.folder / f"sshd-{self.port}.log"
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                manager.inside("/usr/sbin/sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        manager.wait_for(lambda: f"Server listening on 127.0.0.1 port {self.port}" in self.log_path.read_text())

    def ssh(self, *options):
        """Starts ssh as a user would; it ends with the test."""
        return subprocess.Popen(self.manager.inside("ssh", "-F", str(self.folder / "config"), *options), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def sessions(self):
        """The processes that serve connections: the descendants of the listening process."""
        listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs, found = [tuple(map(int, line.split())) for line in listed.splitlines()], [self.process.pid]
        for parent in found:
            found += [pid for pid, its_parent in pairs if its_parent == parent]
        return found[1:]

    def end_sessions(self):
        for pid in self.sessions():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self):
        self.end_sessions()
        self.process.kill()
        self.process.wait(30)
