"""The list of saved logins: its order, its search, and which logins are alternatives."""
from typing import Any

from . import recent
from .connection import Message

_SPACE = ("protocol", "host", "port", "realm", "authenticationMethod", "isProxy")


def in_order(credentials: list[Message]) -> list[Message]:
    """Returns the entries by server and user."""
    return sorted(credentials, key=lambda one: (recent.site(one), str(one.get("user"))))


def matches(entry: Message, text: str) -> bool:
    """Whether each word of `text` is in the host, the user or the realm."""
    space = entry.get("protectionSpace") or {}
    found = " ".join([recent.site(entry), *(str(one) for one in (entry.get("user"), space.get("realm")) if one)]).casefold()
    return all(word in found for word in text.casefold().split())


def has_alternatives(entry: Message, credentials: list[Message]) -> bool:
    """Whether another user's login is saved for the same protection space, of which one is the default."""
    return entry.get("user") is not None and any(
        other.get("user") not in (None, entry["user"]) and _place(other) == _place(entry) for other in credentials)


def _place(entry: Message) -> tuple[Any, ...]:
    space = entry.get("protectionSpace") or {}
    return tuple(space.get(name) for name in _SPACE)
