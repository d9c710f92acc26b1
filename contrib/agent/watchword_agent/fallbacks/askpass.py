"""The program that SSH_ASKPASS names: it gets the text as its argument, and prints what was typed."""
import os
from typing import Optional, Sequence

from ..escaping import shown
from ..secret import Secret
from .dialogue import Stopper, Unavailable, one_line, run


class Askpass:
    """One process for each small question."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = os.environ.get("SSH_ASKPASS", "")
        if not self._program:
            raise Unavailable("SSH_ASKPASS names no program")
        if not os.access(self._program, os.X_OK):
            raise Unavailable(f"SSH_ASKPASS names {self._program}, which cannot be run")

    def has_room(self, text: str) -> bool:
        """The argument of a program has room for far more."""
        return True

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """With a proposal: whether that is good."""
        if initial and self._confirm(f"{text}\n\n{prompt}: {shown(initial)}?"):
            return initial
        typed = self.secret(text, prompt)
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str) -> Optional[Secret]:
        """What is printed up to the end of the line."""
        code, output = run(self._stopper, [self._program, f"{text}\n\n{prompt}:"])
        line = one_line(output)
        if code == 0:
            return line
        line.wipe()
        return None

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Yes or no: only the least can be said yes to."""
        value, words = choices[0]
        return value if self._confirm(f"{text}\n\n{words}?") else None

    def _confirm(self, text: str) -> bool:
        """OpenSSH's way: the exit code is the answer."""
        code, output = run(self._stopper, [self._program, text], {"SSH_ASKPASS_PROMPT": "confirm"})
        typed = one_line(output)
        # Programs that do not know of the question print what was typed: only a plain yes counts.
        return code == 0 and typed.text().strip().lower() in ("", "yes")
