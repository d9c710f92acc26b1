"""Checks the path or URI typed for a certificate or key."""
import os

from .escaping import PATH_LIMIT, shown
from .messages import _

#: The characters that are stripped at both ends of a path. Other Unicode spaces can be part of a file name.
BLANKS = " \t\r\n"


class NotUsable(Exception):
    """The text cannot be used; the message is the reason, and what to do about it."""


def checked(text: str) -> str:
    """Returns the absolute path of a readable file, or a `pkcs11:` URI; raises `NotUsable`."""
    text = text.strip(BLANKS)
    if text.startswith("pkcs11:"):
        return text
    path = os.path.expanduser(text)
    if not os.path.isabs(path):
        raise NotUsable(_("{path} is not a full path: begin with / or ~/").format(path=shown(text, PATH_LIMIT)))
    if os.path.isdir(path):
        raise NotUsable(_("{path} is a folder: choose a file in it").format(path=shown(path, PATH_LIMIT)))
    try:
        with open(path, "rb"):
            return path
    except OSError as problem:
        raise NotUsable(_("{path} cannot be read: {reason}").format(path=shown(path, PATH_LIMIT), reason=problem.strerror)) from None


def folder_of(text: str) -> str:
    """Returns the initial folder of the file chooser: that of the typed path, or else the home directory."""
    path = os.path.expanduser(text.strip(BLANKS))
    folder = os.path.dirname(path) if os.path.isabs(path) else ""
    return folder if folder and os.path.isdir(folder) else os.path.expanduser("~")
