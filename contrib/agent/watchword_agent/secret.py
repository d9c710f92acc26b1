"""Secrets between window and broker, in memory that can be overwritten."""
import json
from typing import Any, Union

_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\"}


class Secret:
    """The UTF-8 bytes of a secret, which `repr` does not show and `wipe` overwrites."""

    __slots__ = ("_bytes",)

    def __init__(self, content: bytearray) -> None:
        """Takes ownership of `content`, which `wipe` overwrites."""
        self._bytes = content

    def __repr__(self) -> str:
        return "Secret"

    def __len__(self) -> int:
        return len(self._bytes)

    def wipe(self) -> None:
        """Overwrites the secret with zeros."""
        self._bytes[:] = bytes(len(self._bytes))

    def text(self) -> str:
        """Returns a string, which cannot be overwritten. Only for input that is not secret, such as a user."""
        return self._bytes.decode("utf-8", "replace")

    def escaped(self) -> bytearray:
        """Returns the contents of a JSON string; the caller wipes it."""
        length = sum(6 if byte < 0x20 else 2 if byte in _ESCAPES else 1 for byte in self._bytes)
        out, place = bytearray(length), 0
        for byte in self._bytes:
            if byte < 0x20:
                piece = b"\\u%04x" % byte
            else:
                piece = _ESCAPES.get(byte, b"")
            if piece:
                out[place:place + len(piece)] = piece
                place += len(piece)
            else:
                out[place] = byte
                place += 1
        return out


def line(message: dict[str, Any]) -> bytearray:
    """Returns a message as one line of JSON in one buffer; secrets are never copied to a `str` or `bytes`."""
    parts: list[Union[bytes, bytearray]] = []
    _encode(message, parts)
    parts.append(b"\n")
    whole, place = bytearray(sum(map(len, parts))), 0
    for part in parts:
        whole[place:place + len(part)] = part
        place += len(part)
        if isinstance(part, bytearray):
            wipe(part)
    return whole


def wipe(buffer: bytearray) -> None:
    """Overwrites a buffer with zeros, in place."""
    buffer[:] = bytes(len(buffer))


def _encode(value: Any, parts: list[Union[bytes, bytearray]]) -> None:
    if isinstance(value, Secret):
        parts += [b'"', value.escaped(), b'"']
    elif isinstance(value, dict):
        for index, (name, member) in enumerate(value.items()):
            parts.append(b"%s%s:" % (b"," if index else b"{", json.dumps(name).encode()))
            _encode(member, parts)
        parts.append(b"}" if value else b"{}")
    else:
        parts.append(json.dumps(value).encode())
