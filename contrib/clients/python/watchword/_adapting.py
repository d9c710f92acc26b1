"""The parts shared by the adapters for other libraries, which translate requests into parameters of the broker."""
import base64
import binascii
import math
import os
import re
import threading
from typing import Any, Callable, Dict, Iterable, List, MutableMapping, Optional, Tuple
from urllib.parse import urlsplit

from . import _wire
from .aio import AsyncStream
from .answers import Answerer
from .client import Stream, Watchword

#: Header fields that the broker sets itself.
_OF_THE_BROKER = {
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade"}
#: The key of a flag in the state that a library passes along a chain of redirects: whether the chain contains a login.
_LOGGED_IN = "watchword.loggedIn"
TIMEOUTS = {"timedOut", "challengeTimedOut"}


class InsecureRedirect(Exception):
    """A redirect from https to plain http, or to an ambiguous target, after a login. The broker also refuses such redirects."""

    def __init__(self, url: str, target: str):
        super().__init__(f"{urlsplit(url).netloc.rpartition('@')[2]} redirects from https to another scheme after a login: {target[:200]!r}")


def split_headers(headers: Iterable[Tuple[str, str]]) -> Tuple[List[List[str]], Optional[Dict[str, Any]]]:
    """Returns the header fields for the broker, and the credential of `Authorization`, if any, for the parameters of the fetch.

    The broker sends the credential only to the server of the request, and only after a challenge.
    """
    fields, credential = [], None
    for name, value in headers:
        if _wire.ascii_lower(name) == "authorization":
            credential = _credential(value)
        elif _wire.ascii_lower(name) not in _OF_THE_BROKER:
            fields.append([name, value])
    return fields, credential


def _credential(value: str) -> Dict[str, Any]:
    scheme, _, rest = value.partition(" ")
    if _wire.ascii_lower(scheme) == "basic":
        try:
            user, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("malformed Authorization header: Basic needs base64 of UTF-8") from None
        return {"type": "password", "user": user, "password": password}
    if _wire.ascii_lower(scheme) == "bearer":
        return {"type": "token", "token": rest.strip(" \t")}
    return {"type": "header", "scheme": scheme, "value": rest}


def patience(seconds: Optional[float]) -> Dict[str, Any]:
    """Returns the parameters for a read timeout: a limit for the time without data, which does not include time spent on prompts."""
    limits: Dict[str, Any] = {"timeoutMs": _wire.DAY_MS}
    if seconds is not None:
        limits["lowSpeed"] = {"bytesPerSecond": 1, "seconds": max(1, math.ceil(seconds))}
    return limits


def tls(cert: Any) -> Dict[str, Any]:
    """Returns the parameters for a client certificate: one path, or a pair of certificate and key."""
    if not cert:
        return {}
    files = [os.path.abspath(file) for file in ([cert] if isinstance(cert, str) else cert)]
    return {"tls": {"certificate": {"type": "certificate", **dict(zip(("certificate", "privateKey"), files))}}}


def insecure_target(url: str, status: int, headers: Iterable[Tuple[str, str]]) -> Optional[str]:
    """Returns the `Location` of an https response that may lead to another scheme, which is refused after a login.

    The libraries that follow a target strip and decode characters before they parse it (`ht%74p:`). So a target is accepted only
    if it stays on https in any reading: with the scheme `https`, or without a scheme (RFC 3986 sections 4.1 and 4.2).
    """
    locations = _locations(url, status, headers)
    if not locations:
        return None
    start = re.split("[/?#]", locations[0], maxsplit=1)[0]
    # guard: adapter-redirect-scheme
    stays = len(locations) == 1 and (_wire.ascii_lower(start) == "https:" or ":" not in start)
    return None if stays else ", ".join(locations)


def _locations(url: str, status: int, headers: Iterable[Tuple[str, str]]) -> List[str]:
    """Returns the `Location` fields of a redirect that came over https."""
    if not 300 <= status < 400 or urlsplit(url).scheme != "https":
        return []
    return [value for name, value in headers if _wire.ascii_lower(name) == "location"]


def _judge(opened: Any, trail: MutableMapping[str, Any]) -> None:
    """Raises `InsecureRedirect` for an insecure redirect after a login. `trail` is the state of the chain: to the broker each hop is a
    separate fetch."""
    if opened.auth:
        trail[_LOGGED_IN] = True
    target = insecure_target(opened.url, opened.status, opened.headers)
    if target is not None and trail.get(_LOGGED_IN):  # guard: adapter-redirect-behind-the-login
        raise InsecureRedirect(opened.url, target)


def check_redirect(opened: Stream, trail: MutableMapping[str, Any]) -> None:
    if _locations(opened.url, opened.status, opened.headers):
        opened.buffer()
        _judge(opened, trail)


async def check_redirect_async(opened: AsyncStream, trail: MutableMapping[str, Any]) -> None:
    if _locations(opened.url, opened.status, opened.headers):
        await opened.buffer()
        _judge(opened, trail)


class Pool:
    """A pool of connections to the broker, each used by one thread at a time."""

    def __init__(self, answer: Optional[Answerer], path: Optional[str], name: str):
        self._make: Callable[[], Watchword] = lambda: Watchword(answer, path, name)
        self._free: List[Watchword] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def take(self) -> Watchword:
        with self._lock:
            self._is_closed = False
            if self._free:
                return self._free.pop()
        return self._make()

    def give_back(self, broker: Watchword) -> None:
        with self._lock:
            if not self._is_closed:
                return self._free.append(broker)
        broker.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            free, self._free = self._free, []
        for broker in free:
            broker.close()
