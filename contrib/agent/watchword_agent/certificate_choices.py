"""The client certificates that a person can choose from: on tokens, recently used, and in the usual folders."""
import contextlib
import dataclasses
import datetime
import os
import stat
from typing import Iterable, Optional, Sequence

from . import x509

#: The folders below the home directory, and the number of files of each that are read.
FOLDERS, FILE_LIMIT = (".pki", ".ssl", ".cert"), 64
#: Larger files are not certificates.
SIZE_LIMIT_BYTES = 256 << 10
_PEM_ENDS, _PKCS12_ENDS = (".pem", ".crt", ".cer"), (".p12", ".pfx")
_KEY_ENDS = (".key", "-key.pem", ".key.pem", "_key.pem")
TOKEN, RECENT, FOLDER = range(3)


@dataclasses.dataclass(frozen=True)
class Choice:
    """A certificate and its key: paths or `pkcs11:` URIs. `summary` is `None` if only a passphrase would reveal it; `issuers` are
    those of the certificate and of the chain in its file."""

    certificate: str
    private_key: str
    origin: int
    summary: Optional[x509.Summary] = None
    issuers: tuple[str, ...] = ()
    token: str = ""


def on_files(recent: Iterable[tuple[str, str]], home: str) -> list[Choice]:
    """Returns the certificates among the recently used files and in the folders, each once. Unreadable files are left out."""
    found: dict[str, Choice] = {}
    for certificate, key in recent:
        if choice := _of_file(certificate, key, RECENT):
            found.setdefault(certificate, choice)
    for path in _paths(home):
        if choice := _of_file(path, "", FOLDER):
            found.setdefault(path, choice)
    return list(found.values())


def on_token(uri: str, token: str, der: bytes) -> Optional[Choice]:
    """Returns a token's certificate, or `None` if it cannot be parsed."""
    found = x509.summaries(der)
    return Choice(
        f"{uri};type=cert", f"{uri};type=private", TOKEN, found[0], (found[0].issuer,), token) if found else None


def rank(choice: Choice, accepted: Sequence[str], now: datetime.datetime) -> tuple[bool, bool, int]:
    """Returns the sort key: certificates of an accepted issuer first, expired ones last, then tokens, recent files and others."""
    is_accepted = any(issuer in accepted for issuer in choice.issuers)
    has_expired = choice.summary is not None and choice.summary.has_expired(now)
    return (not is_accepted, has_expired, choice.origin)


def _paths(home: str) -> Iterable[str]:
    for folder in FOLDERS:
        with contextlib.suppress(OSError):
            names = sorted(os.listdir(os.path.join(home, folder)))
            for name in [one for one in names if one.lower().endswith(_PEM_ENDS + _PKCS12_ENDS)][:FILE_LIMIT]:
                yield os.path.join(home, folder, name)


def _of_file(path: str, key: str, origin: int) -> Optional[Choice]:
    """Returns the certificate in a file, or `None`: without a key, it cannot be used as a client."""
    content = _read(path)
    if content is None:
        return None
    if path.lower().endswith(_PKCS12_ENDS):
        return Choice(path, key, origin)
    found = x509.summaries(content)
    if not found:
        return None
    if not key and not x509.has_private_key(content):
        key = _key_beside(path)
        if not key:
            return None
    return Choice(path, key, origin, found[0], tuple(one.issuer for one in found))


def _key_beside(path: str) -> str:
    stem = os.path.splitext(path)[0]
    return next((stem + end for end in _KEY_ENDS if stem + end != path and os.path.isfile(stem + end)), "")


def _read(path: str) -> Optional[bytes]:
    try:
        # Neither waits for a pipe's other end nor for a device.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            facts = os.fstat(file.fileno())
            return file.read() if stat.S_ISREG(facts.st_mode) and facts.st_size <= SIZE_LIMIT_BYTES else None
    except OSError:
        return None
