"""The program in SSH_ASKPASS, which takes the text as its argument and prints the answer (ssh(1))."""
import os
from typing import Optional, Sequence

from ..escaping import shown
from ..secret import Secret
from .dialogue import Stopper, Unavailable, one_line, run


# They ask the agent, which would ask them again.
_OURS = ("watchword", "watchword-askpass")
# `watchword askpass` does not ask the agent if this is set: the program can be a script that runs it.
_ENVIRONMENT = {"WATCHWORD_ASKPASS_OF_AGENT": "1"}


class Askpass:
    """A dialogue that starts one process per prompt."""

    shows_addresses = False

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = os.environ.get("SSH_ASKPASS", "")
        if not self._program:
            raise Unavailable("SSH_ASKPASS is not set")
        if not os.access(self._program, os.X_OK):
            raise Unavailable(f"{self._program} (SSH_ASKPASS) is not executable")
        if os.path.basename(os.path.realpath(self._program)) in _OURS or os.path.basename(self._program) in _OURS:
            raise Unavailable(f"{self._program} (SSH_ASKPASS) asks this agent")

    def has_room(self, text: str) -> bool:
        """Always true: the limit for arguments is much higher."""
        return True

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Asks for a line; with a proposal, first asks whether to use it."""
        if initial and self._confirm(f"{text}\n\n{prompt}: {shown(initial)}?"):
            return initial
        typed = self.secret(text, prompt)
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        """Returns the first line that the program prints, or `None` if it fails."""
        code, output = run(self._stopper, [self._program, f"{text}\n\n{prompt}:"], _ENVIRONMENT)
        line = one_line(output)
        if code == 0:
            return line
        line.wipe()
        return None

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Asks yes or no; yes means the first choice, which permits the least."""
        value, words = choices[0]
        return value if self._confirm(f"{text}\n\n{words}?") else None

    def _confirm(self, text: str) -> bool:
        """Asks yes or no with SSH_ASKPASS_PROMPT=confirm; the exit status is the answer."""
        code, output = run(self._stopper, [self._program, text], {**_ENVIRONMENT, "SSH_ASKPASS_PROMPT": "confirm"})
        typed = one_line(output)
        # Programs that do not support SSH_ASKPASS_PROMPT print the typed text: only "yes" and an empty line confirm.
        return code == 0 and typed.text().strip().lower() in ("", "yes")
