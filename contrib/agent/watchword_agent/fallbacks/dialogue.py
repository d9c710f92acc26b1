"""What each way of asking without our windows can do, and how its helper program is run."""
import os
import selectors
import subprocess
import textwrap
from typing import Optional, Protocol, Sequence

from ..secret import Secret, wipe

#: A helper prints one line; more than the protocol takes is an error of the helper's.
OUTPUT_LIMIT_BYTES = 64 << 10


class Unavailable(Exception):
    """This way cannot ask; the text says why. The next one is tried."""


class Withdrawn(Exception):
    """The answer is not wanted any more."""


class Dialogue(Protocol):
    """Blocks; runs on a thread of its own. None means that the person has cancelled. `initial` is exactly what is proposed, and
    escaped where it is shown."""

    def has_room(self, text: str) -> bool:
        """Whether `text` can be shown whole, and a prompt with it."""

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Something that may be seen."""

    def secret(self, text: str, prompt: str) -> Optional[Secret]:
        """Something that may not."""

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """One of `choices` (value and words), the least first; the answer unless the person says otherwise is `refusal`, None."""


class Stopper:
    """Ends a dialogue from another thread: a descriptor that can be waited for, and the processes to be ended."""

    def __init__(self) -> None:
        self.readable, self._writable = os.pipe2(os.O_CLOEXEC)
        self.is_stopped = False

    def stop(self) -> None:
        """Whoever waits wakes up."""
        if not self.is_stopped:
            self.is_stopped = True
            os.write(self._writable, b"x")

    def close(self) -> None:
        """When nobody waits any more."""
        os.close(self.readable)
        os.close(self._writable)

    def wait_for(self, descriptor: int) -> None:
        """Until there is something to read; raises `Withdrawn`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.readable, selectors.EVENT_READ)
            selector.register(descriptor, selectors.EVENT_READ)
            if any(key.fd == self.readable for key, _ in selector.select()):
                raise Withdrawn


def run(stopper: Stopper, command: Sequence[str], environment: Optional[dict[str, str]] = None) -> tuple[int, bytearray]:
    """Runs a helper to its end; its exit code, and what it has printed, which the caller wipes."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}, bufsize=0)
    except OSError as problem:
        raise Unavailable(f"{command[0]}: {problem.strerror}") from None
    output = bytearray()
    try:
        assert process.stdout is not None
        with process.stdout:
            while read_some(stopper, process.stdout.fileno(), output):
                pass
        return process.wait(5), output
    except BaseException:
        wipe(output)
        raise
    finally:
        end(process)


def read_some(stopper: Stopper, descriptor: int, into: bytearray) -> bool:
    """Appends what has come; false at the end."""
    stopper.wait_for(descriptor)
    block = bytearray(4096)
    count = os.readv(descriptor, [block])
    if len(into) + count > OUTPUT_LIMIT_BYTES:
        wipe(block)
        raise Unavailable("the helper prints without an end")
    # A buffer that grows by itself leaves copies behind.
    grown = bytearray(len(into) + count)
    grown[:len(into)] = into
    grown[len(into):] = memoryview(block)[:count]
    wipe(into)
    into[:] = grown
    wipe(grown)
    wipe(block)
    return count > 0


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a helper that runs on, and its window."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(2)


def picked(choices: Sequence[tuple[str, str]], typed: Optional[Secret]) -> Optional[str]:
    """The value of the choice whose number was typed, in ASCII digits; anything else is the refusal."""
    number = typed.text().strip() if typed is not None else ""
    is_one = number.isascii() and number.isdecimal() and 1 <= int(number) <= len(choices)
    return choices[int(number) - 1][0] if is_one else None


def wrapped(text: str, columns: int) -> str:
    """With lines that are not longer, for helpers that break none: a window would be wider than the screen, and hide their ends."""
    lines = [textwrap.wrap(line, columns, break_on_hyphens=False) or [""] for line in text.split("\n")]
    return "\n".join(part for line in lines for part in line)


def one_line(output: bytearray) -> Secret:
    """The first line of what a helper has printed, without its end; `output` is wiped."""
    end_of_line = output.find(b"\n")
    length = len(output) if end_of_line < 0 else end_of_line
    taken = bytearray(memoryview(output)[:length])
    wipe(output)
    return Secret(taken)
