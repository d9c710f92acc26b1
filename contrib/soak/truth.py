"""Which log-in belongs where: every place (a server's realm, or a proxy's) has users and passwords that no other place has.

A place is found again in each of its secrets, the wrong ones too: whatever a server hears says by itself where it belongs.
"""
import base64
import collections
import hashlib
import re
import struct
import threading

Account = collections.namedtuple("Account", "user secret")


class Place:
    """`name` is unique, such as "s2r1"; `scheme` is basic, digest, bearer or ntlm."""

    def __init__(self, name, scheme, chance):
        self.name, self.scheme, self.realm, self.url = name, scheme, f"realm-{name}", None
        word = lambda kind: f"{kind}.{name}.{chance.getrandbits(64):016x}"  # noqa: E731
        self.right = [Account(f"user{number}-{name}", word("pw")) for number in range(2)]
        # From a small store, so that a Digest's password can be told.
        self.wrong = [Account(f"user{number % 2}-{name}", word("wrong")) for number in range(3)]

    @property
    def secrets(self):
        return [account.secret for account in [*self.right, *self.wrong]]

    def owner(self, header, method, target):
        """The account that a log-in here is of; `None` for one that is not of this place at all."""
        scheme, _, text = header.partition(" ")
        if scheme.lower() != self.scheme:
            return None
        found = getattr(self, f"_{self.scheme}")(text, method, target)
        return next((account for account in [*self.right, *self.wrong] if account == found), None)

    def _basic(self, text, method, target):
        user, _, password = base64.b64decode(text).decode().partition(":")
        return Account(user, password)

    def _bearer(self, text, method, target):
        return next((account for account in [*self.right, *self.wrong] if account.secret == text), None)

    def _digest(self, text, method, target):
        """RFC 7616, computed with hashlib."""
        pairs = re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]*))', text)
        said = {key: quoted or bare for key, quoted, bare in pairs}
        digest = lambda value: hashlib.sha256(value.encode()).hexdigest()  # noqa: E731
        # A proxy that forwards a request gets the whole URL, and the server behind it the rest.
        if said["realm"] != self.realm or said["uri"] not in (target, self.url + target):
            return None
        for account in [*self.right, *self.wrong]:
            key = digest(f"{account.user}:{self.realm}:{account.secret}")
            made = digest(":".join([key, said["nonce"], said["nc"], said["cnonce"], said["qop"], digest(f"{method}:{said['uri']}")]))
            if made == said["response"] and said["username"] == account.user:
                return account
        return None


def ntlm_user(text):
    """Whom the third message of NTLM names, `None` for the first ([MS-NLMP] section 2.2.1.3)."""
    message = base64.b64decode(text)
    if struct.unpack_from("<I", message, 8)[0] != 3:
        return None
    length, _, offset = struct.unpack_from("<HHI", message, 36)
    is_unicode = struct.unpack_from("<I", message, 60)[0] & 1
    return message[offset:offset + length].decode("utf-16-le" if is_unicode else "latin-1")


class Verdict:
    """What was found wrong, and how much was looked at."""

    def __init__(self):
        self.lock, self.problems, self.counts = threading.Lock(), [], collections.Counter()

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def wrong(self, text):
        with self.lock:
            self.counts["problems"] += 1
            if len(self.problems) < 50:
                self.problems.append(text)
