"""zenity: windows by a program. Only texts are among its arguments; what was typed comes through a pipe."""
import os
import shutil
from typing import Optional, Sequence

from ..secret import Secret
from .dialogue import Stopper, Unavailable, one_line, run, wrapped

_CANCELLED = 1
_TITLE = "Watchword"
_COLUMNS = 80


class Zenity:
    """One process for each small question."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = shutil.which("zenity") or ""
        if not self._program:
            raise Unavailable("zenity is not installed")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise Unavailable("there is no display (DISPLAY, WAYLAND_DISPLAY)")

    def has_room(self, text: str) -> bool:
        """A window grows."""
        return True

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """A field."""
        typed = self._run("--entry", f"--text={_beside_a_field(text, prompt)}", f"--entry-text={initial}")
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str) -> Optional[Secret]:
        """A field that shows dots."""
        return self._run("--entry", "--hide-text", f"--text={_beside_a_field(text, prompt)}")

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """One choice is yes or no, of which no is the default; several are a list."""
        if len(choices) == 1:
            value, words = choices[0]
            said = self._run(
                "--question", "--no-markup", "--default-cancel", f"--text={_plain(text)}", f"--ok-label={words}",
                f"--cancel-label={refusal}")
            return None if said is None else value
        rows = [word for value, words in choices for word in (value, words)]
        chosen = self._run(
            "--list", "--hide-header", "--column=value", "--column=words", "--hide-column=1", "--print-column=1", "--width=520",
            "--height=360", f"--text={_markup(text)}", f"--cancel-label={refusal}", "--", *rows)
        value = chosen.text() if chosen is not None else ""
        return value if value in dict(choices) else None

    def _run(self, *options: str) -> Optional[Secret]:
        code, output = run(self._stopper, [self._program, f"--title={_TITLE}", *options])
        line = one_line(output)
        if code == 0:
            return line
        line.wipe()
        if code == _CANCELLED:
            return None
        raise Unavailable(f"zenity has ended with {code}")


def _plain(text: str) -> str:
    """zenity undoes escapes with backslashes."""
    return wrapped(text, _COLUMNS).replace("\\", "\\\\")


def _beside_a_field(text: str, prompt: str) -> str:
    """What stands above a field is its label: there, and nowhere else, an underscore is the mark of a key."""
    return _plain(f"{text}\n\n{prompt}:").replace("_", "__")


def _markup(text: str) -> str:
    """For the texts that zenity reads as markup."""
    return _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
