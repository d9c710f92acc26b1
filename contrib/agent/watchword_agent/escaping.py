"""Texts that others have written, made safe to show: nothing in them acts, hides, or runs over what stands beside it."""
import unicodedata

#: What is shown of a realm, a user, a subject of a certificate.
TEXT_LIMIT = 80
#: What is shown of a host or of a program's path.
PATH_LIMIT = 200
#: Letters of no language need more marks above each other; many of them reach into the lines above and below.
MARKS_IN_A_ROW = 3

# Control, format (bidirectional overrides among them), surrogates, private, unassigned; separators of lines and paragraphs.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and symbols that show as nothing.
_BLANK = {"\u115f", "\u1160", "\u2800", "\u3164", "\uffa0", "\u034f"}


def shown(text: object, limit: int = TEXT_LIMIT) -> str:
    """`text` as it can be shown: what is not a visible character by its number, at most `limit` characters, then an ellipsis."""
    if not isinstance(text, str):
        return ""
    parts: list[str] = []
    length = marks = 0
    for character in text:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if category in _UNSAFE or character in _BLANK or marks > MARKS_IN_A_ROW:
            piece = f"‹U+{ord(character):04X}›"
        elif category == "Zs":
            piece = " "
        else:
            piece = character
        if length + len(piece) > limit:
            return "".join(parts) + "…"
        parts.append(piece)
        length += len(piece)
    return "".join(parts)


def quoted(text: object, limit: int = TEXT_LIMIT) -> str:
    """`text` as somebody else's words: quotation marks of its own cannot end the quotation."""
    return "“" + shown(text, limit).replace("“", "'").replace("”", "'") + "”"


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
