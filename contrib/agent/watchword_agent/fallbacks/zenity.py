"""Dialogues with zenity. Its arguments contain texts only; the answer is read from a pipe."""
import os
import shutil
from typing import Optional, Sequence

from ..secret import Secret
from .dialogue import Stopper, Unavailable, one_line, run, wrapped

_CANCELLED = 1
_TITLE = "Watchword"
_COLUMNS = 80


class Zenity:
    """A dialogue that starts one process per prompt."""

    shows_addresses = True

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = shutil.which("zenity") or ""
        if not self._program:
            raise Unavailable("not installed")
        if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise Unavailable("no display found; set DISPLAY or WAYLAND_DISPLAY")

    def has_room(self, text: str) -> bool:
        """Always true: the window grows with its text."""
        return True

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Asks for a visible line."""
        typed = self._run("--entry", f"--text={_beside_a_field(text, prompt)}", f"--entry-text={initial}")
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        """Asks for a hidden line."""
        return self._run("--entry", "--hide-text", f"--text={_beside_a_field(text, prompt)}")

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Asks yes or no for a single choice, with no as the default; shows several choices as a list."""
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
        raise Unavailable(f"exited with status {code}")


def _plain(text: str) -> str:
    """Wraps the text and escapes backslashes, which zenity interprets."""
    return wrapped(text, _COLUMNS).replace("\\", "\\\\")


def _beside_a_field(text: str, prompt: str) -> str:
    """Returns the label of a field. Only there does zenity treat underscores as mnemonics, so this doubles them."""
    return _plain(f"{text}\n\n{prompt}:").replace("_", "__")


def _markup(text: str) -> str:
    """Escapes a text that zenity parses as markup."""
    return _plain(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
