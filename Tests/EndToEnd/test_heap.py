"""The daemon's allocator (CWipingHeap), which wipes freed memory and keeps blocks for the event loop, in a program of its own."""
import signal
import subprocess

import pytest

from rig.broker import ROOT

SOURCE = ROOT / "Sources" / "CWipingHeap"
PROGRAM = ROOT / "Tests" / "EndToEnd" / "programs" / "heap.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    built = tmp_path_factory.mktemp("heap") / "heap"
    # Without -fno-builtin the compiler removes memory that is only allocated and freed.
    subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-I", SOURCE / "include", SOURCE / "heap.c",
                    PROGRAM, "-o", built, "-lpthread"], check=True)
    return built


@pytest.mark.parametrize("what", ["contents", "wiping", "bound", "threads"])
def test_blocks_are_whole_wiped_and_bounded(program, what):
    done = subprocess.run([program, what], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "good\n")


@pytest.mark.parametrize("what", ["twice", "returned"])
def test_a_block_freed_twice_ends_the_process(program, what):
    done = subprocess.run([program, what], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGABRT
