"""Searches the memory of a process, as root, for secrets that must have been wiped."""
import base64
import contextlib
import ctypes
import os
import pathlib
import re
import struct
import subprocess
import time

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


def blocks(pid, overlap):
    """Yields the writable memory of a process in blocks: the address, the data, which begins with the end of the block before, and the
    name of the region."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for start, end, name in regions(pid):
            rest = b""
            for offset in range(start, end, BLOCK):
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(offset)
                    data = rest + memory.read(min(BLOCK, end - offset))
                    yield offset - len(rest), data, name
                    rest = data[-overlap:]


def places(pid, secret):
    """Returns where the process has `secret` in any form: (address, region, form)."""
    wanted = forms(secret)
    return sorted({(hex(address + found.start()), name, form.decode("latin-1")) for address, data, name in blocks(pid, max(map(len, wanted)))
                   for form in wanted for found in re.finditer(re.escape(form), data)})


def remaining(broker, secret, seconds=30):
    """Searches the memory after a moment: the broker is still cleaning up when the client receives the end of its fetch."""
    end = time.monotonic() + seconds
    while (found := places(broker.process.pid, secret)) and time.monotonic() < end:
        time.sleep(0.1)
    return found


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


LEAST = 16
WINDOW = 8
OVERLAP = 2048


def parted_forms(secret):
    """Returns the secret unchanged, as UTF-16 (NTLM), in hexadecimal, and in base64 at each alignment."""
    raw = secret.encode()
    encoded = [base64.b64encode(bytes(shift) + raw)[(shift * 4 + 2) // 3 + bool(shift):].rstrip(b"=")[:-1] for shift in range(3)]
    return [raw, secret.encode("utf-16-le"), raw.hex().encode(), *encoded]


class Scanner:
    """`places(pid)` returns where a process has a part of one of `secrets`: (length of the secret, form, part, region)."""

    def __init__(self, secrets, folder):
        library = pathlib.Path(folder) / "fragments.so"
        if not library.exists():
            source = pathlib.Path(__file__).with_name("fragments.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", library, source], check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.find.restype = ctypes.c_size_t
        self.found_at = {}  # window: [(secret, form, offset in it)]
        for secret in secrets:
            for form in parted_forms(secret):
                # Any 16 consecutive bytes of a form contain one of these windows.
                for offset in range(0, len(form) - WINDOW + 1, WINDOW):
                    window, = struct.unpack("=Q", form[offset:offset + WINDOW])
                    self.found_at.setdefault(window, []).append((secret, form, offset))
        windows = sorted(self.found_at)
        self.windows = (ctypes.c_uint64 * len(windows))(*windows)
        self.library.prepare(self.windows, ctypes.c_size_t(len(windows)))

    def places(self, pid):
        return sorted(set().union(*(self._look(data, name) for _, data, name in blocks(pid, OVERLAP))))

    def _look(self, data, name):
        hits = (ctypes.c_uint64 * 2048)()
        count = self.library.find(data, ctypes.c_size_t(len(data)), self.windows, ctypes.c_size_t(len(self.windows)), hits,
                                  ctypes.c_size_t(1024))
        found = set()
        for index in range(count):
            place, window = hits[2 * index], hits[2 * index + 1]
            for secret, form, offset in self.found_at[window]:
                first = last = 0
                while first < min(offset, place) and data[place - first - 1] == form[offset - first - 1]:
                    first += 1
                while offset + last < len(form) and place + last < len(data) and data[place + last] == form[offset + last]:
                    last += 1
                if first + last >= min(LEAST, len(form)):
                    found.add((len(secret), form[:12].decode("latin-1"), (offset - first, offset + last), name))
        return found
