"""Reads subject, issuer and expiry of certificates (RFC 5280), which need no passphrase."""
import base64
import binascii
import dataclasses
import datetime
import re
from typing import Iterator

# Short names as OpenSSL, and with it the broker, writes them.
_NAMES = {
    "2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "serialNumber", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.9": "street",
    "2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "title", "2.5.4.42": "GN", "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC", "1.2.840.113549.1.9.1": "emailAddress"}
_SEQUENCE, _SET, _UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x30, 0x31, 0x17, 0x18, 0xA0
_ENCODINGS = {0x1E: "utf-16-be", 0x1C: "utf-32-be", 0x14: "latin-1"}
_PEM = re.compile(rb"-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END ")


@dataclasses.dataclass(frozen=True)
class Summary:
    """A certificate's names in the form of RFC 2253, as in a challenge's `distinguishedNames`, and its expiry (RFC 3339)."""

    subject: str
    issuer: str
    not_after: str

    @property
    def name(self) -> str:
        """The common name of the subject, or else its e-mail address or the whole name."""
        return short_name(self.subject)

    def has_expired(self, now: datetime.datetime) -> bool:
        """Whether the certificate is not valid any longer; `now` is in UTC."""
        return self.not_after < f"{now:%Y-%m-%dT%H:%M:%SZ}"


def summaries(content: bytes) -> list[Summary]:
    """Returns the certificates in PEM or DER, the first of a file first. Those that cannot be parsed are left out."""
    found = []
    for der in _ders(content):
        try:
            found.append(_summary(der))
        except (ValueError, IndexError):
            continue
    return found


def has_private_key(content: bytes) -> bool:
    """Whether a PEM file contains a private key."""
    return b"PRIVATE KEY-----" in content


def short_name(name: str) -> str:
    """Returns the common name in a distinguished name, or else the e-mail address or all of it."""
    for attribute in ("CN", "emailAddress"):
        if found := re.search(rf"(?:^|[,+]){attribute}=((?:\\.|[^\\,+])*)", name):
            return re.sub(r"\\(.)", r"\1", found[1])
    return name


def _ders(content: bytes) -> Iterator[bytes]:
    if content[:1] == b"\x30":
        yield content
    for text in _PEM.findall(content):
        try:
            yield base64.b64decode(text)
        except binascii.Error:
            continue


def _summary(der: bytes) -> Summary:
    fields = list(_parts(_content(_content(der, _SEQUENCE), _SEQUENCE)))
    if fields[0][0] == _VERSION:
        del fields[0]
    _serial, _algorithm, issuer, validity, subject = fields[:5]
    end = list(_parts(validity[1]))[1]
    return Summary(_name(subject[1]), _name(issuer[1]), _time(*end))


def _parts(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Returns the tags and contents of the values in `content` (X.690, definite lengths)."""
    place = 0
    while place < len(content):
        tag, length = content[place], content[place + 1]
        place += 2
        if length & 0x80:
            size = length & 0x7F
            length = int.from_bytes(content[place:place + size], "big")
            place += size
        if length > len(content) - place:
            raise ValueError("a value is longer than what contains it")
        yield tag, content[place:place + length]
        place += length


def _content(value: bytes, tag: int) -> bytes:
    found, content = next(_parts(value), (0, b""))
    if found != tag:
        raise ValueError("unexpected tag")
    return content


def _name(content: bytes) -> str:
    """Formats a name as RFC 2253 does: the last part first."""
    names = []
    for tag, several in _parts(content):
        if tag != _SET:
            raise ValueError("not a name")
        pairs = [list(_parts(pair)) for _, pair in _parts(several)]
        names.append("+".join(f"{_attribute(kind[1])}={_value(*value)}" for kind, value in reversed(pairs)))
    return ",".join(reversed(names))


def _attribute(oid: bytes) -> str:
    if len(oid) > 64:
        raise ValueError("an object identifier is too long")
    numbers, number = [], 0
    for byte in oid:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    dotted = ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))
    return _NAMES.get(dotted, dotted)


def _value(tag: int, content: bytes) -> str:
    text = content.decode(_ENCODINGS.get(tag, "utf-8"), "replace")
    text = re.sub(r'[,+"\\<>;]', r"\\\g<0>", text)
    text = re.sub(r"^[# ]|(?<=.) $", r"\\\g<0>", text)
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\{ord(found[0]):02X}", text)


def _time(tag: int, content: bytes) -> str:
    text = content.decode("ascii")
    if tag == _UTC_TIME:  # years from 1950 to 2049 (RFC 5280 section 4.1.2.5.1)
        text = ("19" if text[:2] >= "50" else "20") + text
    elif tag != _GENERALIZED_TIME:
        raise ValueError("not a time")
    return f"{datetime.datetime.strptime(text, '%Y%m%d%H%M%SZ'):%Y-%m-%dT%H:%M:%SZ}"
