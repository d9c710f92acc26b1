"""Texts that others have written, made safe to show: nothing in them acts, hides, or runs over what stands beside it.

A host is always whole, because its end says whose it is; of a URL the path is shortened, and of anything else the middle.
"""
import re
import unicodedata
from typing import Iterable, Optional

#: What is shown of a realm, a user, a subject of a certificate.
TEXT_LIMIT = 80
#: What is shown of a program's path, and of the path of a URL.
PATH_LIMIT = 200
#: The longest host (253, RFC 1035 section 2.3.4) with its port. What is longer names no host.
HOST_LIMIT = 259
#: Letters of no language need more marks above each other; many of them reach into the lines above and below.
MARKS_IN_A_ROW = 3
# What a person takes in at a glance, and the longest end of a host that is shown again.
_AT_A_GLANCE, _HOST_END_LIMIT = 60, 40

# Control, format (bidirectional overrides among them), surrogates, private, unassigned; separators of lines and paragraphs.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and symbols that show as nothing.
_BLANK = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0", "\u034f"}
# A backslash ends the authority too: some programs read it as a slash.
_URL = re.compile(r"([^:/?#]*)://(?:[^/?#\\]*@)?([^/?#\\]*)(.*)", re.DOTALL)


def shown(text: object, limit: int = TEXT_LIMIT) -> str:
    """`text` as it can be shown: what is not a visible character by its number; of more than `limit` characters the beginning,
    an ellipsis, and the end."""
    if not isinstance(text, str):
        return ""
    pieces = _pieces(text)
    if sum(map(len, pieces)) <= limit:
        return "".join(pieces)
    end = _fitting(reversed(pieces), limit // 3)
    return "".join(_fitting(pieces, limit - limit // 3)) + "…" + "".join(reversed(end))


def host(text: object) -> str:
    """A host, whole; of what is too long for one, the end."""
    if not isinstance(text, str):
        return ""
    pieces = "".join(_pieces(text))
    return pieces if len(pieces) <= HOST_LIMIT else "…" + pieces[-HOST_LIMIT:]


def host_end(text: str) -> Optional[str]:
    """The labels that end a long host, for a line of their own; None where the host can be taken in at a glance."""
    if len(text) <= _AT_A_GLANCE:
        return None
    labels = [label for label in text.split(".") if label]
    three = ".".join(labels[-3:])
    return host(three if len(three) <= _HOST_END_LIMIT else ".".join(labels[-2:]))


def url(text: object, path_limit: int = PATH_LIMIT) -> str:
    """A URL without user and password: its host whole, its path shortened. What is no URL is shown as any text."""
    parts = _URL.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        return shown(text, path_limit)
    scheme, authority, rest = parts.groups()
    return f"{shown(scheme)}://{host(authority)}{shown(rest, path_limit)}"


def quoted(text: object, limit: int = TEXT_LIMIT) -> str:
    """`text` as somebody else's words: quotation marks of its own cannot end the quotation."""
    return "“" + shown(text, limit).replace("“", "'").replace("”", "'") + "”"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _pieces(text: str) -> list[str]:
    """Each character as it is shown."""
    pieces: list[str] = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category in _UNSAFE or character in _BLANK or marks > MARKS_IN_A_ROW:
            pieces.append(f"‹U+{ord(character):04X}›")
        else:
            pieces.append(" " if category == "Zs" else character)
    return pieces


def _fitting(pieces: Iterable[str], limit: int) -> list[str]:
    """The first of them, as far as they have room: none is cut through."""
    found: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > limit:
            break
        found.append(piece)
    return found
