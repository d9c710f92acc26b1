"""Imitates a service manager, as a service sees it: it passes sockets and listens on the notification socket. For machines
without systemd."""
import os
import pathlib
import socket
import subprocess

from .broker import program
from .waiting import is_ready

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
