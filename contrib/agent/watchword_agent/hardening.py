"""Protects the process from being read by other programs, as far as the kernel supports that."""
import contextlib
import ctypes
import os
import resource
from typing import Iterator

_PR_SET_DUMPABLE = 4
_SWITCHES = ("GTK_DEBUG", "GOBJECT_DEBUG", "G_MESSAGES_DEBUG", "G_DEBUG", "GTK_MODULES", "PYTHONINSPECT")
_usual_umask = 0o022


def at_start() -> None:
    """Disables core files, makes new files private, and removes debugging variables from the environment."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    global _usual_umask
    _usual_umask = os.umask(0o077)
    for name in _SWITCHES:
        os.environ.pop(name, None)


@contextlib.contextmanager
def usual_umask() -> Iterator[None]:
    """Restores the umask of the session, for a program that is started."""
    own = os.umask(_usual_umask)
    try:
        yield
    finally:
        os.umask(own)


def hide() -> None:
    """Denies ptrace(2) and /proc/PID/mem to other programs of this user."""
    _set_dumpable(0)


def show_for_greeting() -> None:
    """Makes the process readable until the greeting is answered. The broker treats a process that it cannot read as sandboxed, and
    refuses it as an agent. The process holds no secrets at that time: those typed before were wiped."""
    _set_dumpable(1)


def _set_dumpable(value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_DUMPABLE, {value}): {os.strerror(number)}")
