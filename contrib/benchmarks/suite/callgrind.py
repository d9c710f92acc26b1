"""Counts what a program executes with valgrind's callgrind. The figures are nearly the same on a busy machine."""
import collections
import dataclasses
import re

COMMAND = ["valgrind", "--tool=callgrind", "--separate-threads=no", "--demangle=no"]
# A cache line of code.
LINE = 64
# First-level caches of 32 KiB for code and 48 KiB for data, which only the measured process uses.
CACHES = ["--dump-instr=yes", "--cache-sim=yes", "--I1=32768,8,64", "--D1=49152,12,64", "--LL=1048576,16,64"]
# An instruction that repeats itself clears or copies memory, and is counted once for each byte.
REPEATED = 3000


@dataclasses.dataclass
class Counts:
    """The contents of one file of callgrind: instructions by function of each object (program or library), and with --dump-instr by
    address; accesses that missed the first-level cache of code, with --cache-sim."""

    functions: collections.Counter
    addresses: collections.Counter
    missed_code: int = 0

    def instructions(self, repetitions):
        return sum(count for count in self.addresses.values() if count < REPEATED * repetitions)

    def code_bytes(self, repetitions):
        """Returns the size of the lines of code that are executed at least every other time."""
        return LINE * len({(place, address // LINE) for (place, address), count in self.addresses.items() if count >= repetitions / 2})


def read(path):
    """Reads a file of callgrind, whose format compresses names, "(3) name" and later "(3)", and addresses, "+4"."""
    counts, names = Counts(collections.Counter(), collections.Counter()), {}
    function, place, address, is_call, cost_line = "", "", 0, False, re.compile(r"(\S+) (\d+)")
    for line in path.read_text(errors="replace").splitlines():
        if named := re.fullmatch(r"(c?)(fn|ob)=(\(\d+\))(?: (.*))?", line):
            of_callee, kind, number, name = named.groups()
            name = names.setdefault((kind, number), name)
            if not of_callee and kind == "fn":
                function = re.sub(r"'\d+$", "", name)  # a recursive call
            elif not of_callee:
                place = name.rpartition("/")[2]
        elif line.startswith("calls="):
            is_call = True
        elif line == "positions: instr line":
            cost_line = re.compile(r"(\S+) \S+ (\d+)")
        elif totals := re.match(r"totals: \d+ \d+ \d+ (\d+)", line):  # instructions, reads, writes, missed lines of code
            counts.missed_code = int(totals[1])
        elif re.match(r"[0-9+*-]", line) and (cost := cost_line.match(line)):
            where, number = cost.groups()
            address = address if where == "*" else address + int(where) if where[0] in "+-" else int(where, 0)
            if not is_call:
                counts.functions[place, function] += int(number)
                counts.addresses[place, address] += int(number)
            is_call = False
    return counts
