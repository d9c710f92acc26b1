"""Searches the memory of a process, as root, for secrets that must have been wiped."""
import contextlib
import ctypes
import os

from .leaks import forms

BLOCK = 1 << 20


def regions(pid):
    """Returns (start, end, name) of all writable regions."""
    with open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            words = line.split(None, 5)
            start, end = (int(number, 16) for number in words[0].split("-"))
            if "w" in words[1] and "r" in words[1]:
                yield start, end, words[5].strip() if len(words) > 5 else "anonymous"


def places(pid, secret):
    """Returns where the process has `secret` in any form: (address, region, form)."""
    wanted = forms(secret)
    longest = max(map(len, wanted))
    found = []
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, name in regions(pid):
            rest = b""
            for offset in range(start, end, BLOCK):
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(offset)
                    data = rest + memory.read(min(BLOCK, end - offset))
                    for form in wanted:
                        position = data.find(form)
                        while position >= 0:
                            found.append((hex(offset - len(rest) + position), name, form.decode("latin-1")))
                            position = data.find(form, position + 1)
                    rest = data[-longest:]
    return sorted(set(found))


class Tracer:
    """Stops a process at its exit, while its memory still exists (PTRACE_O_TRACEEXIT, ptrace(2))."""

    SEIZE, CONT, SETOPTIONS_EXIT, EVENT_EXIT = 0x4206, 7, 0x40, 6

    def __init__(self, pid):
        self.pid, self.libc = pid, ctypes.CDLL(None, use_errno=True)
        self._call(self.SEIZE, self.SETOPTIONS_EXIT)

    def _call(self, request, data):
        if self.libc.ptrace(request, self.pid, None, ctypes.c_void_p(data)) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def wait_for_end(self):
        """Forwards signals until the main thread is about to exit."""
        while True:
            _, status = os.waitpid(self.pid, 0)
            assert os.WIFSTOPPED(status), f"it has ended: {status:#x}"
            if status >> 16 == self.EVENT_EXIT:
                return
            self._call(self.CONT, 0 if status >> 16 else os.WSTOPSIG(status))

    def release(self):
        self._call(self.CONT, 0)
