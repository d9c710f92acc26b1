"""A lock that allows one agent per session."""
import fcntl
import os
import pathlib
from typing import Optional


class AnotherRuns(Exception):
    """Another agent holds the lock; `pid` is its process, if the lock file contains it."""

    def __init__(self, pid: Optional[int]) -> None:
        super().__init__("another watchword-agent runs in this session" + (f" (process {pid})" if pid else ""))
        self.pid = pid


class InstanceLock:
    """A file lock, which the kernel releases when the process ends."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._file = os.open(folder / "agent.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.read(self._file, 20).strip()
            os.close(self._file)
            raise AnotherRuns(int(text) if text.isdigit() else None) from None
        os.ftruncate(self._file, 0)
        os.write(self._file, b"%d\n" % os.getpid())

    def release(self) -> None:
        """Releases the lock."""
        os.close(self._file)
