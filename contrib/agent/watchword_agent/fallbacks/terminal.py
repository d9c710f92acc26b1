"""Dialogues at the controlling terminal."""
import contextlib
import os
import termios
from typing import Iterator, Optional, Sequence

from ..escaping import shown
from ..messages import _
from ..secret import Secret, wipe
from .dialogue import Stopper, Unavailable, Withdrawn, one_line, picked, read_some


class Terminal:
    """A dialogue at the terminal. Only for an agent in the foreground: in the background it would write over other output."""

    shows_addresses = True

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        try:
            self._file = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError:
            raise Unavailable("no controlling terminal") from None
        if os.tcgetpgrp(self._file) != os.getpgrp():
            os.close(self._file)
            raise Unavailable("the agent is a background process of its terminal")
        self._introduced = ""

    def close(self) -> None:
        """Closes the terminal."""
        os.close(self._file)

    def has_room(self, text: str) -> bool:
        """Always true: a terminal scrolls."""
        return True

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Asks for a line; Enter alone accepts the proposal."""
        self._introduce(text)
        typed = self._read(f"{prompt}{f' [{shown(initial)}]' if initial else ''}: ", is_secret=False)
        return None if typed is None else typed.text() or initial

    def secret(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        """Asks for a line without echo."""
        self._introduce(text)
        return self._read(f"{prompt}: ", is_secret=True)

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Asks for a number; anything else is the refusal."""
        self._introduce(text)
        lines = [f"  {number}  {words}" for number, (_, words) in enumerate(choices, 1)]
        self._write("\n".join([*lines, f"  0  {refusal}"]) + "\n")
        return picked(choices, self._read(_("Which one? 1 to {number}, or [0]: ").format(number=len(choices)), is_secret=False))

    def _introduce(self, text: str) -> None:
        """Writes the introduction, once per question."""
        if text != self._introduced:
            self._write(f"\n{text}\n")
            self._introduced = text

    def _read(self, prompt: str, is_secret: bool) -> Optional[Secret]:
        with self._echo(not is_secret):
            # Input typed before the prompt is not an answer to it.
            termios.tcflush(self._file, termios.TCIFLUSH)
            self._write(prompt)
            output = bytearray()
            try:
                while b"\n" not in output:
                    if not read_some(self._stopper, self._file, output):
                        return None
                return one_line(output)
            except Withdrawn:
                self._write("\n" + _("No longer needed.") + "\n")
                raise
            finally:
                wipe(output)
                if is_secret:
                    self._write("\n")

    @contextlib.contextmanager
    def _echo(self, is_on: bool) -> Iterator[None]:
        before = termios.tcgetattr(self._file)
        changed = termios.tcgetattr(self._file)
        echo = termios.ECHO if is_on else 0
        changed[3] = changed[3] & ~termios.ECHO | termios.ICANON | echo
        termios.tcsetattr(self._file, termios.TCSANOW, changed)
        try:
            yield
        finally:
            termios.tcsetattr(self._file, termios.TCSANOW, before)

    def _write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(self._file, data):]
