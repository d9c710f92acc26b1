"""Dialogues with pinentry, by the Assuan protocol on its standard input and output."""
import os
import shutil
import subprocess
from typing import Optional, Sequence

from ..escaping import shown
from ..messages import _
from ..secret import Secret, wipe
from .dialogue import Stopper, Unavailable, end, picked, read_some, wrapped

_CANCELLED = {"83886179", "83886194"}  # GPG_ERR_CANCELED and GPG_ERR_NOT_CONFIRMED, from pinentry
# pinentry-curses fails if a line is wider than the terminal.
_COLUMNS = 68
# ASSUAN_LINELENGTH without the newline; pinentry exits on a longer line. The reserve is the part of it for the prompt and the
# choices that follow a text.
_LINE_BYTES, _RESERVED_BYTES = 1000, 260


class Pinentry:
    """A dialogue that starts one process per prompt, so that a withdrawn question leaves no protocol state behind."""

    shows_addresses = False

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = shutil.which("pinentry") or ""
        if not self._program:
            raise Unavailable("not installed")
        self._terminal = os.environ.get("GPG_TTY") or _own_terminal()
        if not (self._terminal or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise Unavailable("no display and no terminal; set GPG_TTY")

    def has_room(self, text: str) -> bool:
        """Whether `text` fits into one Assuan line."""
        return len(_encoded(wrapped(text, _COLUMNS)).encode()) <= _LINE_BYTES - len("SETDESC ") - _RESERVED_BYTES

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """Asks for a line. pinentry does not show typed text, so a proposal is first offered as a button."""
        if initial:
            name = shown(initial, 40)
            chosen = self._confirm(f"{text}\n\n{prompt}: {name}", _("As {user}").format(user=name), _("Cancel"), _("Another"))
            if chosen != "NOTOK":
                return initial if chosen == "OK" else None
        typed = self._get(text, _("{prompt} (not shown)").format(prompt=prompt))
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        """Asks for a hidden line."""
        return self._get(text, prompt, short)

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """Asks for a number. With CONFIRM, Enter would mean yes, and some pinentries report a closed window as NOTOK."""
        lines = [f"  {number}  {words}" for number, (_, words) in enumerate(choices, 1)]
        return picked(choices, self._get("\n".join([text, "", *lines, _("  or nothing: {refusal}").format(refusal=refusal)]), _("Number")))

    # Assuan

    def _get(self, text: str, prompt: str, short: str = "") -> Optional[Secret]:
        # Only some pinentries treat underscores in a prompt as mnemonics, so a user name is moved to the text.
        text = f"{text}\n\n{prompt}:" if short else text
        commands = [_command("SETDESC", wrapped(text, _COLUMNS)), _command("SETPROMPT", f"{short or prompt}:"),
            _command("SETOK", _button(_("OK"))), _command("SETCANCEL", _button(_("Cancel")))]
        return self._talk(commands, "GETPIN")[1]

    def _confirm(self, text: str, yes: str, refusal: str, other: str) -> str:
        commands = [
            _command("SETDESC", wrapped(text, _COLUMNS)), _command("SETOK", _button(yes)), _command("SETCANCEL", _button(refusal))]
        if other:
            commands.append(_command("SETNOTOK", _button(other)))
        return self._talk(commands, "CONFIRM")[0]

    def _talk(self, commands: list[str], last: str) -> tuple[str, Optional[Secret]]:
        """Runs pinentry; returns `OK`, `NOTOK` or `CANCEL`, and the typed text."""
        terminal = [f"OPTION ttyname={self._terminal}", f"OPTION ttytype={os.environ.get('TERM', 'dumb')}"]
        options = terminal if self._terminal else []
        try:
            process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        except OSError as problem:
            raise Unavailable(f"cannot run {self._program}: {problem.strerror}") from None
        incoming = bytearray()
        try:
            self._line(process, incoming)
            for command in [*options, "OPTION lc-ctype=C.UTF-8", "SETTITLE Watchword", *commands]:
                self._say(process, command)
                # An unsupported option does no harm.
                answer = self._line(process, incoming)
                if not answer.startswith((b"OK", b"ERR")):
                    raise Unavailable(f"{self._program} does not speak the Assuan protocol")
            self._say(process, last)
            return self._outcome(process, incoming)
        finally:
            wipe(incoming)
            if process.stdin and process.stdout:
                process.stdin.close()
                process.stdout.close()
            end(process)

    def _outcome(self, process: "subprocess.Popen[bytes]", incoming: bytearray) -> tuple[str, Optional[Secret]]:
        typed: Optional[Secret] = None
        while True:
            line = self._line(process, incoming)
            if line.startswith(b"D "):
                typed = _decoded(line)
            elif line.startswith(b"OK"):
                return "OK", typed or Secret(bytearray())
            elif line.startswith(b"ERR"):
                number = line.split()[1].decode("ascii", "replace")
                if number not in _CANCELLED:
                    raise Unavailable(line.decode("utf-8", "replace"))
                return ("NOTOK" if number == "83886194" else "CANCEL"), None

    def _say(self, process: "subprocess.Popen[bytes]", command: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(command.encode() + b"\n")
        except OSError as problem:
            raise Unavailable(f"cannot write to {self._program}: {problem.strerror}") from None

    def _line(self, process: "subprocess.Popen[bytes]", incoming: bytearray) -> bytearray:
        assert process.stdout is not None
        while (place := incoming.find(b"\n")) < 0:
            if not read_some(self._stopper, process.stdout.fileno(), incoming):
                raise Unavailable(f"{self._program} exited")
        line = bytearray(memoryview(incoming)[:place])
        rest = bytearray(memoryview(incoming)[place + 1:])
        wipe(incoming)
        incoming[:] = rest
        return line


def _command(name: str, text: str) -> str:
    """Returns an Assuan line. A text that is too long loses its end; the host is at the beginning."""
    room = _LINE_BYTES - len(name) - 1
    encoded = [_encoded(character) for character in text]
    if sum(len(piece.encode()) for piece in encoded) > room:
        while sum(len(piece.encode()) for piece in encoded) > room - len("…".encode()):
            encoded.pop()
        encoded.append("…")
    return f"{name} {''.join(encoded)}"


def _encoded(text: str) -> str:
    """Escapes line ends and the percent sign."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _button(text: str) -> str:
    """Escapes underscores, which mark mnemonics in buttons (but not elsewhere)."""
    return text.replace("_", "__")


def _decoded(line: bytearray) -> Secret:
    """Decodes the data after `D `, and wipes the line."""
    out, place = bytearray(len(line)), 2
    length = 0
    while place < len(line):
        if line[place] == 0x25:
            out[length] = int(line[place + 1:place + 3], 16)
            place += 3
        else:
            out[length] = line[place]
            place += 1
        length += 1
    taken = bytearray(memoryview(out)[:length])
    wipe(out)
    wipe(line)
    return Secret(taken)


def _own_terminal() -> str:
    try:
        return os.ttyname(0)
    except OSError:
        return ""
