"""pinentry: the Assuan protocol on its standard input and output."""
import os
import shutil
import subprocess
from typing import Optional, Sequence

from ..escaping import shown
from ..secret import Secret, wipe
from .dialogue import Stopper, Unavailable, end, picked, read_some, wrapped

_CANCELLED = {"83886179", "83886194"}  # GPG_ERR_CANCELED and GPG_ERR_NOT_CONFIRMED, of the source pinentry
# pinentry-curses cannot ask where a line is wider than the terminal.
_COLUMNS = 68
# ASSUAN_LINELENGTH less the end of the line: pinentry exits when one is longer. Of a description so much is left for the prompt
# and the choices behind it.
_LINE_BYTES, _RESERVED_BYTES = 1000, 260
_CANNOT = "pinentry cannot ask"


class Pinentry:
    """One process for each small question: whoever is withdrawn in the middle leaves nothing half said."""

    def __init__(self, stopper: Stopper) -> None:
        self._stopper = stopper
        self._program = shutil.which("pinentry") or ""
        if not self._program:
            raise Unavailable("pinentry is not installed")
        self._terminal = os.environ.get("GPG_TTY") or _own_terminal()
        if not (self._terminal or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
            raise Unavailable("there is neither a display nor a terminal (GPG_TTY) for pinentry")

    def has_room(self, text: str) -> bool:
        """Whether it fits into one line of Assuan."""
        return len(_encoded(wrapped(text, _COLUMNS)).encode()) <= _LINE_BYTES - len("SETDESC ") - _RESERVED_BYTES

    def line(self, text: str, prompt: str, initial: str) -> Optional[str]:
        """pinentry has only fields that show nothing; with a proposal it is asked whether that is good."""
        if initial:
            name = shown(initial, 40)
            chosen = self._confirm(f"{text}\n\n{prompt}: {name}", f"As {name}", "Cancel", "Another")
            if chosen != "NOTOK":
                return initial if chosen == "OK" else None
        typed = self._get(text, f"{prompt} (not shown)")
        return None if typed is None else typed.text()

    def secret(self, text: str, prompt: str) -> Optional[Secret]:
        """A field that shows nothing, or asterisks."""
        return self._get(text, prompt)

    def choose(self, text: str, choices: Sequence[tuple[str, str]], refusal: str) -> Optional[str]:
        """By number. Not with CONFIRM: there Enter says yes, and some pinentries report a closed window like its third button."""
        lines = [f"  {number}  {words}" for number, (_, words) in enumerate(choices, 1)]
        return picked(choices, self._get("\n".join([text, "", *lines, f"  or nothing: {refusal}"]), "Number"))

    # Assuan

    def _get(self, text: str, prompt: str) -> Optional[Secret]:
        # Some pinentries read underscores of a prompt as marks of keys, others do not: the name of a user stands in the text.
        word, _, name = prompt.partition(" of ")
        text = f"{text}\n\n{prompt}:" if name else text
        commands = [_command("SETDESC", wrapped(text, _COLUMNS)), _command("SETPROMPT", f"{word}:"), "SETOK OK", "SETCANCEL Cancel"]
        return self._talk(commands, "GETPIN")[1]

    def _confirm(self, text: str, yes: str, refusal: str, other: str) -> str:
        commands = [
            _command("SETDESC", wrapped(text, _COLUMNS)), _command("SETOK", _button(yes)), _command("SETCANCEL", _button(refusal))]
        if other:
            commands.append(_command("SETNOTOK", _button(other)))
        return self._talk(commands, "CONFIRM")[0]

    def _talk(self, commands: list[str], last: str) -> tuple[str, Optional[Secret]]:
        """`OK`, `NOTOK` or `CANCEL`, and what was typed."""
        terminal = [f"OPTION ttyname={self._terminal}", f"OPTION ttytype={os.environ.get('TERM', 'dumb')}"]
        options = terminal if self._terminal else []
        try:
            process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        except OSError as problem:
            raise Unavailable(f"{self._program}: {problem.strerror}") from None
        incoming = bytearray()
        try:
            self._line(process, incoming)
            for command in [*options, "OPTION lc-ctype=C.UTF-8", "SETTITLE Watchword", *commands]:
                self._say(process, command)
                # An option that this pinentry does not know changes nothing that matters.
                answer = self._line(process, incoming)
                if not answer.startswith((b"OK", b"ERR")):
                    raise Unavailable(f"{_CANNOT}: it does not speak Assuan")
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
                    raise Unavailable(f"{_CANNOT}: {line.decode('utf-8', 'replace')}")
                return ("NOTOK" if number == "83886194" else "CANCEL"), None

    def _say(self, process: "subprocess.Popen[bytes]", command: str) -> None:
        assert process.stdin is not None
        try:
            process.stdin.write(command.encode() + b"\n")
        except OSError as problem:
            raise Unavailable(f"{_CANNOT}: {problem.strerror}") from None

    def _line(self, process: "subprocess.Popen[bytes]", incoming: bytearray) -> bytearray:
        assert process.stdout is not None
        while (place := incoming.find(b"\n")) < 0:
            if not read_some(self._stopper, process.stdout.fileno(), incoming):
                raise Unavailable(f"{_CANNOT}: it has ended")
        line = bytearray(memoryview(incoming)[:place])
        rest = bytearray(memoryview(incoming)[place + 1:])
        wipe(incoming)
        incoming[:] = rest
        return line


def _command(name: str, text: str) -> str:
    """One line of Assuan. What has no room is cut at its end: the host stands at the beginning."""
    room = _LINE_BYTES - len(name) - 1
    encoded = [_encoded(character) for character in text]
    if sum(len(piece.encode()) for piece in encoded) > room:
        while sum(len(piece.encode()) for piece in encoded) > room - len("…".encode()):
            encoded.pop()
        encoded.append("…")
    return f"{name} {''.join(encoded)}"


def _encoded(text: str) -> str:
    """What would end the line, and the sign of the encoding itself."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _button(text: str) -> str:
    """In a button, and nowhere else, an underscore is the mark of a key."""
    return text.replace("_", "__")


def _decoded(line: bytearray) -> Secret:
    """What follows `D `; the line is wiped."""
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
