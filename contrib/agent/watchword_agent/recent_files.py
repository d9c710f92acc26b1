"""The certificate files that were used recently, by path, in the state folder: the last one first."""
import json
import os
from typing import Any

from . import private_file, typed_files

#: The number of files that are remembered, and the size limit of the list.
LIMIT, SIZE_LIMIT_BYTES = 8, 64 << 10

Files = tuple[str, str]


def read(path: str) -> list[Files]:
    """Returns pairs of certificate and key; nothing if the list is missing or damaged."""
    try:
        with open(path, "rb") as file:
            listed = json.loads(file.read(SIZE_LIMIT_BYTES))
    except (OSError, ValueError):
        return []
    pairs = [
        (one.get("certificate"), one.get("privateKey", "")) for one in (listed if isinstance(listed, list) else [])
        if isinstance(one, dict)]
    return [pair for pair in pairs if all(isinstance(text, str) for text in pair) and pair[0]][:LIMIT]


def record(path: str, answer: dict[str, Any]) -> None:
    """Puts the files of an answer first; raises OSError. URIs are left out: tokens are listed anyway, and a URI can contain a PIN."""
    files = typed_files.files_of(answer)
    if not files or not all(text.startswith("/") for text in filter(None, files)):
        return
    kept = [files, *(one for one in read(path) if one[0] != files[0])][:LIMIT]
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    listed = [{"certificate": file, "privateKey": key} for file, key in kept]
    private_file.replace(path, json.dumps(listed, indent=1).encode())
