"""The interface of the dialogues, and functions that run their helper programs."""
import os
import selectors
import subprocess
import textwrap
from typing import Optional, Protocol, Sequence

from ..secret import Secret, wipe

#: The limit for the output of a helper, which should be one line.
OUTPUT_LIMIT_BYTES = 64 << 10


class Unavailable(Exception):
    """The dialogue cannot be used; the message is the reason. The agent tries the next one."""


class Withdrawn(Exception):
    """The question was withdrawn: its answer is no longer needed."""


class Dialogue(Protocol):
    """A blocking dialogue on a thread of its own. `None` means that the person cancelled. `initial` is the exact proposal; it is
    escaped only for display."""

    #: Whether addresses can be copied from its texts.
    shows_addresses: bool

    def has_room(self, text: str) -> bool:
        """Whether `text` can be shown whole, together with a prompt."""

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Asks for a visible line."""

    def secret(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        """Asks for a hidden line. `short` is the prompt without names, if it contains one."""

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Asks for one of `choices` (value and label), the least permissive first. `refusal` is the default, returned as `None`."""


class Stopper:
    """Stops a dialogue from another thread, through a pipe that the dialogue polls."""

    def __init__(self) -> None:
        self.readable, self._writable = os.pipe2(os.O_CLOEXEC)
        self.is_stopped = False

    def stop(self) -> None:
        """Wakes the waiting dialogue."""
        if not self.is_stopped:
            self.is_stopped = True
            os.write(self._writable, b"x")

    def close(self) -> None:
        """Closes the pipe, after the dialogue has ended."""
        os.close(self.readable)
        os.close(self._writable)

    def wait_for(self, descriptor: int) -> None:
        """Waits until `descriptor` is readable; raises `Withdrawn` if stopped."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.readable, selectors.EVENT_READ)
            selector.register(descriptor, selectors.EVENT_READ)
            if any(key.fd == self.readable for key, _ in selector.select()):
                raise Withdrawn


def run(stopper: Stopper, command: Sequence[str], environment: Optional[dict[str, str]] = None) -> tuple[int, bytearray]:
    """Runs a helper until it exits; returns its exit status and its output, which the caller wipes."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}, bufsize=0)
    except OSError as problem:
        raise Unavailable(f"cannot run {command[0]}: {problem.strerror}") from None
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
    """Reads once and appends to `into`; returns false at end of file."""
    stopper.wait_for(descriptor)
    block = bytearray(4096)
    count = os.readv(descriptor, [block])
    if len(into) + count > OUTPUT_LIMIT_BYTES:
        wipe(block)
        raise Unavailable("the helper printed more than 64 KiB")
    # A growing bytearray would leave copies of its contents in freed memory.
    grown = bytearray(len(into) + count)
    grown[:len(into)] = into
    grown[len(into):] = memoryview(block)[:count]
    wipe(into)
    into[:] = grown
    wipe(grown)
    wipe(block)
    return count > 0


def end(process: "subprocess.Popen[bytes]") -> None:
    """Terminates a helper that is still running, which closes its window."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(2)


def picked(choices: Sequence[tuple[str, str]], typed: Optional[Secret]) -> Optional[str]:
    """Returns the value of the choice with the typed number (ASCII digits), or `None` for anything else."""
    number = typed.text().strip() if typed is not None else ""
    is_one = number.isascii() and number.isdecimal() and 1 <= int(number) <= len(choices)
    return choices[int(number) - 1][0] if is_one else None


def wrapped(text: str, columns: int) -> str:
    """Wraps the lines of `text`, for helpers that do not: in a window wider than the screen their ends would be invisible."""
    lines = [textwrap.wrap(line, columns, break_on_hyphens=False) or [""] for line in text.split("\n")]
    return "\n".join(part for line in lines for part in line)


def one_line(output: bytearray) -> Secret:
    """Returns the first line of a helper's output, without the newline, and wipes `output`."""
    end_of_line = output.find(b"\n")
    length = len(output) if end_of_line < 0 else end_of_line
    taken = bytearray(memoryview(output)[:length])
    wipe(output)
    return Secret(taken)
