"""What a person has typed where a certificate or a key is asked for."""
import os

from .escaping import PATH_LIMIT, shown

#: What is left out around a path. Blanks of other scripts may be part of a name.
BLANKS = " \t\r\n"


class NotUsable(Exception):
    """Nothing that could be sent; the text says why, and what to do."""


def checked(text: str) -> str:
    """An absolute path of a file that can be read, or a `pkcs11:` URI."""
    text = text.strip(BLANKS)
    if text.startswith("pkcs11:"):
        return text
    path = os.path.expanduser(text)
    if not os.path.isabs(path):
        raise NotUsable(f"{shown(text, PATH_LIMIT)} is not a full path: begin with / or ~/")
    if os.path.isdir(path):
        raise NotUsable(f"{shown(path, PATH_LIMIT)} is a folder: choose a file in it")
    try:
        with open(path, "rb"):
            return path
    except OSError as problem:
        raise NotUsable(f"{shown(path, PATH_LIMIT)} cannot be read: {problem.strerror}") from None


def folder_of(text: str) -> str:
    """Where choosing begins: beside the file that was typed, or else at home."""
    path = os.path.expanduser(text.strip(BLANKS))
    folder = os.path.dirname(path) if os.path.isabs(path) else ""
    return folder if folder and os.path.isdir(folder) else os.path.expanduser("~")
