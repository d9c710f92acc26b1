"""Makes system calls of the broker fail, and clocks jump, with the library faults.c that is loaded into the broker, and a file
that it shares with the test."""
import contextlib
import errno
import mmap
import pathlib

from .servers import find
from .waiting import output

SECOND = 10 ** 9
KINDS = ["none", "accept", "read", "write", "read-file", "write-file", "getsockopt", "mmap", "mlock", "open", "socket", "memory", "library-memory"]


def build(folder):
    library = pathlib.Path(folder) / "faults.so"
    source = pathlib.Path(__file__).with_name("faults.c")
    output(find("cc"), "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", library, source, "-ldl")
    return library


class Faults:
    FIELDS = ["wall", "awake", "kind", "nth", "every", "error", "seen", "failed", "wall_timers", "passed", "aged", "caller"]

    def __init__(self, library, path):
        path = pathlib.Path(path)
        path.write_bytes(bytes(mmap.PAGESIZE))
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.numbers = memoryview(self.memory).cast("q")
        self.environment = {"LD_PRELOAD": str(library), "WATCHWORD_TEST_FAULTS": str(path)}

    def __getitem__(self, field):
        return self.numbers[self.FIELDS.index(field)]

    def __setitem__(self, field, number):
        self.numbers[self.FIELDS.index(field)] = number

    @contextlib.contextmanager
    def failing(self, kind, nth, error, every=False):
        """Makes the `nth` call of a kind fail inside this context, or every `nth`. With 0, calls are only counted, in `seen`.

        Without an `error`, the call does not return.
        """
        self["kind"] = 0
        for field, number in {
                "nth": nth, "every": every, "error": getattr(errno, error) if error else 0, "seen": 0, "failed": 0}.items():
            self[field] = number
        self["kind"] = KINDS.index(kind)
        try:
            yield self
        finally:
            self["kind"] = 0

    def is_of_swift(self, program):
        """Whether code that the Swift compiler made asked for the memory it did not get. It allocates the frames of accessors itself,
        and does not check the result."""
        if self["caller"] == 0:
            return False
        lines = output("nm", "--defined-only", program).splitlines()
        symbols = [(int(address, 16), name) for address, _, name in (line.split(maxsplit=2) for line in lines)]
        return max(symbol for symbol in symbols if symbol[0] <= self["caller"])[1].startswith("$s")

    def move_wall(self, seconds):
        self["wall"] += int(seconds * SECOND)

    def pass_time(self, seconds):
        """Makes the monotonic clock jump, as if the time had passed."""
        self["passed"] += int(seconds * SECOND)

    def age_connections(self, seconds):
        """Makes the monotonic clock of libcurl jump. For times without a transfer, whose timers would end."""
        self["aged"] += int(seconds * SECOND)

    def sleep(self, seconds):
        """Imitates a suspended machine: the clock that includes suspended time jumps, and the wall clock with it."""
        self["awake"] += int(seconds * SECOND)
        self.move_wall(seconds)


@contextlib.contextmanager
def small(folder, size):
    """Mounts a file system of `size`, as in tmpfs(5), on `folder`."""
    output("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))  # only root can
    try:
        yield folder
    finally:
        output("umount", "-l", str(folder))
