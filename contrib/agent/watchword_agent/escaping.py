"""Makes text from servers and programs safe to display: no control or invisible characters, no stacked marks.

A host is never shortened, because its end identifies the owner. A URL loses the middle of its path, other text its own middle.
"""
import re
import unicodedata
from typing import Iterable, Optional

from .messages import _, is_right_to_left

#: The length limit of a realm, user, or certificate subject, in characters.
TEXT_LIMIT = 80
#: The length limit of a program's path, and of the path of a URL, in characters.
PATH_LIMIT = 200
#: The longest host (253, RFC 1035 section 2.3.4) with its port. Longer text is not a host.
HOST_LIMIT = 259
#: The length limit of a line of a program's prompt, and the limit for its lines.
PROMPT_LINE_LIMIT, PROMPT_LINES_LIMIT = 300, 16
#: The number of combining marks on one letter that are shown. No language uses more; a long stack would cover other lines.
MARKS_IN_A_ROW = 3
# The length up to which a host is readable at a glance, and the length limit of the repeated end of a longer one.
_AT_A_GLANCE, _HOST_END_LIMIT = 60, 40

# Control, format (bidirectional overrides among them), surrogates, private, unassigned; line and paragraph separators.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and symbols without a visible glyph.
_BLANK = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0", "\u034f"}
# A backslash ends the authority too: the WHATWG URL standard reads it as a slash.
# Quotation marks of all languages, which a translation may use.
_MARKS = dict.fromkeys(map(ord, "“”„‟«»「」『』"), "'")
_URL = re.compile(r"([^:/?#]*)://(?:[^/?#\\]*@)?([^/?#\\]*)(.*)", re.DOTALL)


def shown(text: object, limit: int = TEXT_LIMIT) -> str:
    """Returns `text` with invisible characters replaced by their number; a text of more than `limit` characters is shortened to its
    beginning, an ellipsis, and its end."""
    if not isinstance(text, str):
        return ""
    pieces = _pieces(text)
    if sum(map(len, pieces)) <= limit:
        return "".join(pieces)
    end = _fitting(reversed(pieces), limit // 3)
    return "".join(_fitting(pieces, limit - limit // 3)) + "…" + "".join(reversed(end))


def lines(text: str) -> str:
    """Returns a text of several lines, each as `shown` returns it; if there are too many, without those in the middle."""
    found = [shown(line, PROMPT_LINE_LIMIT) for line in text.strip().replace("\r\n", "\n").split("\n")]
    if len(found) > PROMPT_LINES_LIMIT:
        half = PROMPT_LINES_LIMIT // 2
        found = [*found[:half], "…", *found[-half:]]
    return "\n".join(found)


def host(text: object) -> str:
    """Returns a whole host, escaped, or the end of a text that is too long for one."""
    if not isinstance(text, str):
        return ""
    pieces = "".join(_pieces(text))
    return pieces if len(pieces) <= HOST_LIMIT else "…" + pieces[-HOST_LIMIT:]  # guard: agent-host-whole


def host_end(text: str) -> Optional[str]:
    """Returns the last labels of a long host, or `None` for one that can be read at a glance."""
    if len(text) <= _AT_A_GLANCE:
        return None
    labels = [label for label in text.split(".") if label]
    three = ".".join(labels[-3:])
    return host(three if len(three) <= _HOST_END_LIMIT else ".".join(labels[-2:]))


def url(text: object, path_limit: int = PATH_LIMIT) -> str:
    """Returns a URL without user and password, with its whole host and a shortened path; other text as `shown` does."""
    parts = _URL.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        return shown(text, path_limit)
    scheme, authority, rest = parts.groups()
    return f"{shown(scheme)}://{host(authority)}{shown(rest, path_limit)}"


def authority(text: str) -> str:
    """Returns the host of a URL, with its port if it has one."""
    parts = _URL.fullmatch(text)
    return host(parts.group(2)) if parts else shown(text)


def quoted(text: object, limit: int = TEXT_LIMIT) -> str:
    """Returns `text` in quotation marks, with those inside replaced so that they cannot end the quotation."""
    return _("“{text}”").format(text=shown(text, limit).translate(_MARKS))


def isolated(text: str) -> str:
    """Returns a path or name for use before translated text: in a language that is written from right to left, neither moves parts
    of the other (Unicode Standard Annex 9, isolates)."""
    return f"\u200f\u2066{text}\u2069" if is_right_to_left() else text


def _pieces(text: str) -> list[str]:
    """Returns the displayed form of each character."""
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
    """Returns the first pieces that fit into `limit` characters; none is split."""
    found: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > limit:
            break
        found.append(piece)
    return found
