"""What the adapters for other libraries have in common: their words for things, in the broker's."""
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

#: Fields that the broker makes itself.
_OF_THE_BROKER = {
    "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade"}
#: In what a library hands from a request to the one that a redirect leads to: there was a login on the way.
_LOGGED_IN = "watchword.loggedIn"
TIMEOUTS = {"timedOut", "challengeTimedOut"}


class InsecureRedirect(Exception):
    """A redirect from https to plain http, or to an ambiguous target, after a login: refused as the broker refuses it."""

    def __init__(self, url: str, target: str):
        super().__init__(f"{urlsplit(url).netloc.rpartition('@')[2]} redirects to something other than https after a login: {target[:200]!r}")


def split_headers(headers: Iterable[Tuple[str, str]]) -> Tuple[List[List[str]], Optional[Dict[str, Any]]]:
    """The fields for the broker, and the credential that stood among them: it goes with the fetch, not as a header.

    So it is sent only after the server has asked for it, and only there.
    """
    kept, credential = [], None
    for name, value in headers:
        if _wire.ascii_lower(name) == "authorization":
            credential = _credential(value)
        elif _wire.ascii_lower(name) not in _OF_THE_BROKER:
            kept.append([name, value])
    return kept, credential


def _credential(value: str) -> Dict[str, Any]:
    scheme, _, rest = value.partition(" ")
    if _wire.ascii_lower(scheme) == "basic":
        try:
            user, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            raise ValueError("the Authorization header is Basic, and not base64 of UTF-8") from None
        return {"type": "password", "user": user, "password": password}
    if _wire.ascii_lower(scheme) == "bearer":
        return {"type": "token", "token": rest.strip(" \t")}
    return {"type": "header", "scheme": scheme, "value": rest}


def patience(seconds: Optional[float]) -> Dict[str, Any]:
    """For a timeout that counts from one byte to the next: how long nothing may come. People who are asked take their time."""
    limits: Dict[str, Any] = {"timeoutMs": _wire.DAY_MS}
    if seconds is not None:
        limits["lowSpeed"] = {"bytesPerSecond": 1, "seconds": max(1, math.ceil(seconds))}
    return limits


def tls(cert: Any) -> Dict[str, Any]:
    """A client certificate as these libraries name it: a file, or two."""
    if not cert:
        return {}
    files = [os.path.abspath(file) for file in ([cert] if isinstance(cert, str) else cert)]
    return {"tls": {"certificate": {"type": "certificate", **dict(zip(("certificate", "privateKey"), files))}}}


def insecure_target(url: str, status: int, headers: Iterable[Tuple[str, str]]) -> Optional[str]:
    """The `Location` of a response that may lead from https to anything else. Whether that is refused depends on a login.

    The libraries that follow it strip and decode characters before they parse it (`ht%74p:`), so only what keeps to https
    however it is read passes: the scheme itself, or a reference without a scheme (RFC 3986 sections 4.1 and 4.2).
    """
    locations = _locations(url, status, headers)
    if not locations:
        return None
    start = re.split("[/?#]", locations[0], maxsplit=1)[0]
    stays = len(locations) == 1 and (_wire.ascii_lower(start) == "https:" or ":" not in start)
    return None if stays else ", ".join(locations)


def _locations(url: str, status: int, headers: Iterable[Tuple[str, str]]) -> List[str]:
    """Of a redirect by https."""
    if not 300 <= status < 400 or urlsplit(url).scheme != "https":
        return []
    return [value for name, value in headers if _wire.ascii_lower(name) == "location"]


def _judge(opened: Any, trail: MutableMapping[str, Any]) -> None:
    """What is known at the end of a redirect. The broker sees each request of a chain by itself: `trail` goes from one to the next."""
    if opened.head.get("auth"):
        trail[_LOGGED_IN] = True
    target = insecure_target(opened.url, opened.status, opened.headers)
    if target is not None and trail.get(_LOGGED_IN):
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
    """Connections to the broker, each used by one thread at a time."""

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
