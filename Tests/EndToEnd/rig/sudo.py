"""A user who may use sudo with a password, in a mount namespace with a user database of its own: nothing of the machine changes."""
import os
import pathlib
import subprocess

from .broker import binaries
from .manager import swift_libraries

USER = 61235
FILES = ("passwd", "group", "shadow", "sudoers")
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


class SudoUser:
    """The user `desk`. `folder` must be reachable by all users."""

    def __init__(self, folder, password):
        self.folder, self.home, self.runtime = pathlib.Path(folder), pathlib.Path(folder) / "home", pathlib.Path(folder) / "run"
        hashed = subprocess.run(["openssl", "passwd", "-6", "-stdin"], input=password + "\n", capture_output=True, text=True, check=True)
        text = {
            "passwd": f"root:x:0:0::/root:/bin/sh\ndesk:x:{USER}:{USER}::{self.home}:/bin/sh\n",
            "group": f"root:x:0:\ndesk:x:{USER}:\nshadow:x:42:\n",
            "shadow": f"root:*:19000:0:99999:7:::\ndesk:{hashed.stdout.strip()}:19000:0:99999:7:::\n",
            "sudoers": "Defaults env_reset, !lecture\ndesk ALL=(ALL) ALL\n"}
        for name in FILES:
            (self.folder / name).write_text(text[name])
            (self.folder / name).chmod(0o440 if name == "sudoers" else 0o600 if name == "shadow" else 0o644)
        for name in ("swift", "binaries", "none"):
            (self.folder / name).mkdir()
        for path in (self.home, self.runtime):
            path.mkdir(mode=0o700)
            os.chown(path, USER, USER)
        (self.folder / "watchword-askpass").symlink_to("binaries/watchword")
        self.askpass = self.folder / "askpass"
        self.askpass.write_text(ASKPASS.format(folder=self.folder))
        self.askpass.chmod(0o755)
        environment = {"PATH": os.environ["PATH"], "FOLDER": str(self.folder), "SWIFT": swift_libraries() or str(self.folder / "none"),
                       "BINARIES": binaries()}
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-c", START], env=environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"

    def inside(self, *command):
        """Returns `command` as run by this user in the namespace."""
        return ["/usr/bin/nsenter", "--target", str(self.process.pid), "--mount", "--", "setpriv", "--reuid", str(USER), "--regid", str(USER),
                "--clear-groups", "--", "env", "-i", f"HOME={self.home}", f"XDG_RUNTIME_DIR={self.runtime}", "LANG=C", "TERM=dumb",
                "PATH=/usr/bin:/bin", f"LD_LIBRARY_PATH={self.folder}/swift", f"SUDO_ASKPASS={self.askpass}", *command]

    def end(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()
