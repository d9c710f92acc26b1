"""Attempts what the settings of a unit forbid: prints, as JSON, the errno of each attempt, or 0 if it succeeded.

A service manager runs this file alone, with the system's Python; it must not import the rig.
"""
import ctypes
import errno
import json
import os
import platform
import signal
import socket
import sys
import tempfile

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, FAILED = 7, 0x22, 2**64 - 1


def check(worked):
    if not worked:
        raise OSError(ctypes.get_errno() or errno.EIO, "")


def foreign_call():
    """Calls getpid(2) with the system call interface of i386."""
    if platform.machine() != "x86_64":
        return None
    block = libc.mmap(None, 4096, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0)
    check(block not in (None, FAILED))
    # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    ctypes.memmove(block, b"\x53\xb8\x14\x00\x00\x00\xcd\x80\x5b\xc3", 10)
    number = ctypes.CFUNCTYPE(ctypes.c_int)(block)()
    if number < 0:
        raise OSError(-number, "")


def set_user_id_bit():
    with tempfile.NamedTemporaryFile(dir=os.environ["HOME"]) as file:
        os.chmod(file.name, 0o4700)


ATTEMPTS = {
    "NoNewPrivileges": lambda: check("NoNewPrivs:\t0" in open("/proc/self/status").read()),
    "LockPersonality": lambda: check(libc.personality(0x40000) >= 0),
    "MemoryDenyWriteExecute": lambda: check(
        libc.mmap(None, 4096, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0) not in (None, FAILED)),
    "RestrictAddressFamilies": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM),
    # The attempt is for a process that does not exist: for its own process only some users have the permission.
    "RestrictRealtime": lambda: os.sched_setscheduler(2**31 - 1, os.SCHED_RR, os.sched_param(1)),
    "RestrictSUIDSGID": set_user_id_bit,
    "SystemCallFilter": lambda: check(libc.ptrace(0, 0, 0, 0) == 0),
    "SystemCallArchitectures": foreign_call,
    "UMask": lambda: check(os.umask(0o77) & 0o77 != 0o77),
    # This is the last attempt, because it changes the process.
    "RestrictNamespaces": lambda: check(libc.unshare(0x10000000) == 0),
}


def outcome(attempt):
    """Runs an attempt in a process of its own, because some filters end the process."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            attempt()
            os.write(writable, b"0")
        except OSError as error:
            os.write(writable, b"%d" % error.errno)
        os._exit(0)
    os.close(writable)
    _, status = os.waitpid(child, 0)
    said = os.read(readable, 16)
    os.close(readable)
    return int(said) if said else -os.WTERMSIG(status)


if __name__ == "__main__":
    signal.alarm(20)
    json.dump({name: outcome(attempt) for name, attempt in ATTEMPTS.items()}, sys.stdout)
