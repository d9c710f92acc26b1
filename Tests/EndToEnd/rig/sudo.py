"""A user who may use sudo with a password, in a mount namespace with a user database of its own: nothing of the machine changes."""
import subprocess

from .manager import Desk
from .servers import written

USER = 61235
# Prints a line when everything is mounted, and then waits for the end of its input.
START = r"""
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
        super().__init__(folder, USER)
        hashed = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password + "\n", capture_output=True, text=True, check=True)
        written(folder, {
            "shadow": f"root:*:19000:0:99999:7:::\ndesk:{hashed.stdout.strip()}:19000:0:99999:7:::\n",
            "sudoers": "Defaults env_reset, !lecture\ndesk ALL=(ALL) ALL\n", "askpass": ASKPASS.format(folder=self.folder)})
        for name, mode in {"shadow": 0o600, "sudoers": 0o440, "askpass": 0o755}.items():
            (self.folder / name).chmod(mode)
        (self.folder / "watchword-askpass").symlink_to("binaries/watchword")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", START], env=self.mounts, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def inside(self, *command):
        return super().inside(*command, LANG="C", TERM="dumb", SUDO_ASKPASS=self.folder / "askpass")

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
