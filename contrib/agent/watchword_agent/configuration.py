"""Reads and changes single options of the configuration. Comments, other options and the order of lines stay as they are."""
import os
import re
import stat
import tomllib
from typing import Any, Callable, Optional, Union

from . import private_file
from .escaping import PATH_LIMIT, shown
from .messages import _

Value = Union[bool, int, str]
#: The size limit of the file, the same as the broker's.
SIZE_LIMIT_BYTES = 1 << 20
#: The options that the window shows: their defaults (watchword-config(5)).
DEFAULTS: dict[tuple[str, str], Value] = {
    ("limits", "session-idle-s"): 600, ("limits", "session-lifetime-s"): 7200, ("sharing", "session"): "user",
    ("keyring", "enabled"): True, ("audit", "enabled"): True}
_HEADER = re.compile(r"\s*\[\s*([A-Za-z0-9_-]+)\s*\]\s*(?:#.*)?")
_ANY_HEADER = re.compile(r"\s*\[")
_SCALAR = r"""(?:true|false|[+-]?[0-9][0-9_]*|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""


class Unusable(Exception):
    """The configuration cannot be read or changed; the message is the reason, and what to do about it."""


def read(path: str) -> str:
    """Returns the text of the file, or an empty one if it does not exist; raises `Unusable`."""
    try:
        with open(path, "rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
        if len(content) > SIZE_LIMIT_BYTES:
            raise Unusable(_("{path} is larger than 1 MiB: make it smaller with an editor").format(path=shown(path, PATH_LIMIT)))
        return content.decode()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise Unusable(_("{path} is not text in UTF-8: correct it with an editor").format(path=shown(path, PATH_LIMIT))) from None
    except OSError as problem:
        raise Unusable(_("{path} cannot be read: {reason}").format(path=shown(path, PATH_LIMIT), reason=problem.strerror)) from None


def values(text: str) -> dict[tuple[str, str], Value]:
    """Returns the options of `DEFAULTS` that the text sets, or their defaults; raises `Unusable`."""
    parsed = _parsed(text)
    found = {}
    for (section, key), default in DEFAULTS.items():
        table = parsed.get(section)
        value = table.get(key, default) if isinstance(table, dict) else default
        found[section, key] = value if type(value) is type(default) else default
    return found


def token_module(text: str) -> str:
    """Returns the PKCS#11 module that the text names, or nothing."""
    try:
        module = tomllib.loads(text)["tokens"]["module"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return ""
    return module if isinstance(module, str) else ""


def changed(text: str, section: str, key: str, value: Value) -> str:
    """Returns the text with one option set; raises `Unusable` if a line editor cannot do that."""
    before = _parsed(text)
    lines = text.splitlines(keepends=True)
    place = _place(lines, section, key)
    new_line = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    if place is None:
        lines = _added(lines, section, f"{key} = {_spelt(value)}{new_line}", new_line)
    else:
        lines[place] = re.sub(rf"({_key(key)}){_SCALAR}", lambda found: found[1] + _spelt(value), lines[place], count=1)
    result = "".join(lines)
    wanted = {**before, section: {**(before.get(section) or {}), key: value}} if isinstance(before.get(section, {}), dict) else {}
    try:
        # A header inside of a multi-line string, a dotted key or an inline table misleads the search by lines.
        is_right = tomllib.loads(result) == wanted
    except (ValueError, RecursionError):
        is_right = False
    if not is_right:
        raise Unusable(_("{section}.{key} is written in a form that can only be changed with an editor").format(section=section, key=key))
    return result


def write(path: str, before: str, after: str, check: Callable[[str], Optional[str]]) -> None:
    """Replaces `before`, which was read from the file, with `after`, unless `check` returns an error; raises `Unusable`.

    A symbolic link stays one: the file it leads to is replaced. The file's permissions stay, without writing by others.
    """
    real = os.path.realpath(path)

    def checked(new: str) -> None:
        if problem := check(new):
            raise Unusable(problem)
        if read(real) != before:
            raise Unusable(_("Another program has changed the file meanwhile. Try again."))

    try:
        os.makedirs(os.path.dirname(real), mode=0o700, exist_ok=True)
        private_file.replace(real, after.encode(), _mode(real), checked)
    except OSError as problem:
        raise Unusable(_("{path} cannot be written: {reason}").format(path=shown(real, PATH_LIMIT), reason=problem.strerror)) from None


def _mode(path: str) -> int:
    """Returns the permissions of the file, or those of a new one; raises `Unusable` for one that is not the user's own."""
    try:
        facts = os.lstat(path)
    except FileNotFoundError:
        return 0o600
    if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.getuid():
        raise Unusable(_("{path} is not a file of yours, so it is not changed").format(path=shown(path, PATH_LIMIT)))
    return stat.S_IMODE(facts.st_mode) & ~0o022


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise Unusable(_("The configuration has an error: {reason}. Correct it with an editor.").format(
            reason=shown(str(problem), PATH_LIMIT))) from None


def _key(key: str) -> str:
    return rf"""^\s*(?:{key}|"{key}"|'{key}')\s*=\s*"""


def _place(lines: list[str], section: str, key: str) -> Optional[int]:
    """Returns the index of the line that sets the option."""
    here = None
    for index, line in enumerate(lines):
        if _ANY_HEADER.match(line):
            found = _HEADER.fullmatch(line.rstrip("\r\n"))
            here = found[1] if found else None
        elif here == section and re.match(rf"{_key(key)}{_SCALAR}\s*(?:#.*)?$", line):
            return index
    return None


def _added(lines: list[str], section: str, line: str, new_line: str) -> list[str]:
    """Returns the lines with one more, after the last option of its section, or in a new section at the end."""
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += new_line
    here, place = None, None
    for index, text in enumerate(lines):
        if _ANY_HEADER.match(text):
            found = _HEADER.fullmatch(text.rstrip("\r\n"))
            here = found[1] if found else None
            place = index + 1 if here == section else place
        elif here == section and text.strip() and not text.lstrip().startswith("#"):
            place = index + 1
    if place is not None:
        return [*lines[:place], line, *lines[place:]]
    return [*lines, *([new_line] if lines else []), f"[{section}]{new_line}", line]


def _spelt(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else f'"{value}"'
