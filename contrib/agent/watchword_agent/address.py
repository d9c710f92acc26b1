"""Parses the address that a person types for a login: a host or a URL."""
import urllib.parse
from typing import Any

from . import texts
from .certificate_files import BLANKS
from .escaping import shown
from .messages import _
from .question import Space

_PORTS = {"http": 80, "https": 443}
# Letters that the two versions of IDNA encode differently.
_AMBIGUOUS = "ßς\u200c\u200d"


class Unusable(Exception):
    """The text is not an address of a server; the message is the reason, and what to do about it."""


def space(text: str) -> dict[str, Any]:
    """Returns protocol, host and port, https by default; raises `Unusable`. A path is left out."""
    text = text.strip(BLANKS)
    try:
        parts = urllib.parse.urlsplit(text if "://" in text else f"https://{text}")
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise Unusable(_("{text} is not an address: type a host or a URL").format(text=shown(text))) from None
    if parts.scheme not in _PORTS:
        raise Unusable(_("{scheme} is not supported: type an address with https or http").format(scheme=shown(parts.scheme)))
    if parts.username is not None or parts.password is not None:
        raise Unusable(_("Type the user and the password in their own fields, not in the address"))
    if not host or any(character.isspace() for character in host) or port == 0:
        raise Unusable(_("{text} is not an address: type a host or a URL").format(text=shown(text)))
    return {"protocol": parts.scheme, "host": _ascii(host), "port": port or _PORTS[parts.scheme]}


def is_readable_on_the_network(text: str) -> bool:
    """Whether a password for the address is sent without encryption over a network."""
    try:
        found = space(text)
    except Unusable:
        return False
    return found["protocol"] == "http" and not texts.is_this_machine(Space("http", found["host"], found["port"], None, "", False, False))


def _ascii(host: str) -> str:
    if ":" in host:
        return f"[{host}]"
    try:
        if set(host) & set(_AMBIGUOUS):
            raise UnicodeError
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise Unusable(_("{host} cannot be encoded: type it in Punycode (xn--…)").format(host=shown(host))) from None
