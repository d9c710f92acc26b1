"""Keeps other programs from reading this process, as far as the kernel helps."""
import ctypes
import os
import resource

_PR_SET_DUMPABLE = 4
_SWITCHES = ("GTK_DEBUG", "GOBJECT_DEBUG", "G_MESSAGES_DEBUG", "G_DEBUG", "GTK_MODULES", "PYTHONINSPECT")


def at_start() -> None:
    """No core files, nothing that others may read, no switches that show what happens inside."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    for name in _SWITCHES:
        os.environ.pop(name, None)


def hide() -> None:
    """Neither ptrace(2) nor /proc/PID/mem, for other programs of this user."""
    _set_dumpable(0)


def show_for_greeting() -> None:
    """The broker has to see which program connects, or takes it for a sandbox, which may not be an agent: until it has
    answered the first request this process is as others are. Nothing has been typed into it then, or it has been wiped."""
    _set_dumpable(1)


def _set_dumpable(value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_DUMPABLE, {value}): {os.strerror(number)}")
