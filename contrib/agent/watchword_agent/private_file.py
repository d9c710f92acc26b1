"""Replaces a file at once, so that a crash leaves either the old contents or the new ones."""
import contextlib
import os
import tempfile
from typing import Callable, Optional


def replace(path: str, content: bytes, mode: int = 0o600, check: Optional[Callable[[str], None]] = None) -> None:
    """Writes a file beside `path`, calls `check` with its name, which may raise, and renames it to `path`."""
    folder, name = os.path.split(path)
    number, new = tempfile.mkstemp(prefix=f".{name}.", dir=folder)  # mode 0600, no symbolic link is followed
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        if check:
            check(new)
        os.rename(new, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        raise
    _sync(folder)


def _sync(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
