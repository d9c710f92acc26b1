"""Runs the helper at a terminal of its own, or without any."""
import os
import subprocess
import time

from .broker import program
from .waiting import is_ready


class Terminal:
    def __init__(self, *command, environment):
        # `setsid` and not `pty.fork`, which copies the memory of the tests.
        self.terminal, inner = os.openpty()
        self.process = subprocess.Popen(
            ["/usr/bin/setsid", "--ctty", *command], env=environment, stdin=inner, stdout=inner, stderr=inner)
        os.close(inner)
        self.child, self.shown = self.process.pid, b""

    def expect(self, *texts, seconds=30, times=1):
        """Waits until each text has been shown, `times` times altogether."""
        end = time.monotonic() + seconds
        for text in texts:
            while self.shown.count(text.encode()) < times:
                assert time.monotonic() < end, f"{text!r} did not appear: {self.shown!r}"
                self._read(0.2)

    def answer(self, lines):
        """Waits for each prompt of `lines`, and types the line that belongs to it."""
        for prompt, line in lines.items():
            self.expect(prompt)
            self.type(line + "\n")

    def _read(self, seconds):
        if not is_ready(self.terminal, seconds):
            return True
        try:
            data = os.read(self.terminal, 4096)
        except OSError:
            return False
        self.shown += data
        return bool(data)

    def type(self, text):
        os.write(self.terminal, text.encode("utf-8", "surrogateescape"))

    def end(self, seconds=30):
        limit = time.monotonic() + seconds
        while self._read(0.1) and time.monotonic() < limit:
            pass
        try:
            return self.process.wait(max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the process has not ended in {seconds} s: {self.shown!r}") from None


class Shell:
    """Runs `watchword` with one broker, and records its output."""

    def __init__(self, broker):
        self.broker, self.printed = broker, b""
        self.environment = {**broker.environment, "WATCHWORD_SOCKET": broker.socket, "TERM": "dumb"}

    def run(self, *arguments, **more):
        # A new session has no terminal.
        done = subprocess.run(
            [program("watchword"), *arguments], env=self.environment, capture_output=True, timeout=60, start_new_session=True, **more)
        self.printed += done.stdout + done.stderr
        return done

    def start(self, *arguments, **more):
        return subprocess.Popen([program("watchword"), *arguments], env=self.environment, start_new_session=True,
                                **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})

    def at_terminal(self, *arguments):
        return Terminal(program("watchword"), *arguments, environment=self.environment)


def install_helper(folder):
    """Makes a folder with the helper under the names that programs use; returns it."""
    folder.mkdir()
    for name in ["git-credential-watchword", "watchword-askpass", "watchword"]:
        (folder / name).symlink_to(os.path.realpath(program("watchword")))
    return folder


class Git:
    """git with a home directory of its own, whose helper uses one broker."""

    def __init__(self, broker, tools, *settings):
        self.environment = {
            "HOME": str(broker.home), "PATH": f"{tools}:{os.environ['PATH']}", "WATCHWORD_SOCKET": broker.socket,
            "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self.settings = [option for setting in settings for option in ("-c", setting)]

    def __call__(self, *arguments, **more):
        return subprocess.run(
            ["git", *self.settings, *arguments], env={**self.environment, **more.pop("environment", {})}, capture_output=True, text=True,
            timeout=60, start_new_session=True, **more)

    def credential(self, operation, *lines):
        """Runs `git credential`, which calls the helper."""
        return self("credential", operation, input="".join(f"{line}\n" for line in [*lines, ""]))
