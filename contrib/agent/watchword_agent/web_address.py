"""The addresses that the agent opens in a browser or shows as a QR code. They come from the broker and, in part, from servers."""
import re
import urllib.parse
from typing import Optional

from .question import BrowserLogin

#: The length limit of an address, in characters.
LIMIT = 4096
# The characters of RFC 3986. Browsers read a backslash, which is not one of them, as a slash.
_ALLOWED = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_LOOPBACK = ("127.0.0.1", "::1")


def to_open(login: BrowserLogin) -> Optional[str]:
    """Returns the address at which to log in, or `None` if it must not be opened (RFC 8252 section 8.12)."""
    parts = _parsed(login.url)
    if parts is None:
        return None
    is_here = parts.scheme == "http" and parts.hostname in _LOOPBACK
    is_elsewhere = parts.scheme == "https" and login.user_code
    return login.url if is_here or is_elsewhere else None  # guard: agent-opens-loopback-or-https


def with_code(login: BrowserLogin) -> Optional[str]:
    """Returns the address for another device: with the code in it, if it is an address of the same site."""
    parts, other = _parsed(login.url), _parsed(login.complete_url)
    is_same_site = parts and other and (parts.scheme, parts.netloc) == (other.scheme, other.netloc)
    # guard: agent-code-address-of-the-same-site
    return login.complete_url if is_same_site and to_open(login) else to_open(login)


def _parsed(url: str) -> Optional[urllib.parse.SplitResult]:
    """Returns the parts of a URL with a host and without user and password, or `None`."""
    if len(url) > LIMIT or not _ALLOWED.fullmatch(url):  # guard: agent-opens-plain-addresses
        return None
    try:
        parts = urllib.parse.urlsplit(url)
        is_port = parts.port != 0
    except ValueError:
        return None
    is_plain = url.startswith(f"{parts.scheme}://") and parts.hostname and "@" not in parts.netloc
    return parts if is_port and is_plain else None
