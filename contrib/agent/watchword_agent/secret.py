"""A password on its way from the window to the broker, in memory that can be overwritten."""
import json
from typing import Any, Union

_ESCAPES = {0x22: b'\\"', 0x5C: b"\\\\"}


class Secret:
    """The UTF-8 bytes of a secret. It cannot be printed or compared by accident, and `wipe` overwrites it."""

    __slots__ = ("_bytes",)

    def __init__(self, content: bytearray) -> None:
        """Takes `content` over: it is overwritten by `wipe`."""
        self._bytes = content

    def __repr__(self) -> str:
        return "Secret"

    def __len__(self) -> int:
        return len(self._bytes)

    def wipe(self) -> None:
        """Overwrites it with zeros."""
        self._bytes[:] = bytes(len(self._bytes))

    def text(self) -> str:
        """For what was asked for like a secret and is none: a user. Such a string cannot be overwritten."""
        return self._bytes.decode("utf-8", "replace")

    def escaped(self) -> bytearray:
        """As it stands between the quotation marks of a JSON text; the caller wipes it."""
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
    """A message as one line for the broker, in one buffer that can be wiped: nothing is joined as `str` or `bytes`."""
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
    """Overwrites with zeros, in place."""
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
