"""The expected destinations of logins: every place (a realm of a server or proxy) has users and passwords of its own.

Each secret, even a wrong one, contains the name of its place, so a server can tell where a received login belongs.
"""
import base64
import collections
import hashlib
import re
import struct
import threading

Account = collections.namedtuple("Account", "user secret")


class Place:
    """A realm with its accounts. `name` is unique, such as "s2r1"; `scheme` is basic, digest, bearer or ntlm."""

    def __init__(self, name, scheme, chance):
        self.name, self.scheme, self.realm, self.url = name, scheme, f"realm-{name}", None
        word = lambda kind: f"{kind}.{name}.{chance.getrandbits(64):016x}"  # noqa: E731
        self.right = [Account(f"user{number}-{name}", word("pw")) for number in range(2)]
        # Only a few, because `_digest` tries all of them to find the password of a response.
        self.wrong = [Account(f"user{number % 2}-{name}", word("wrong")) for number in range(3)]

    @property
    def secrets(self):
        return [account.secret for account in [*self.right, *self.wrong]]

    def owner(self, header, method, target):
        """Returns the account of a login received here, or `None` if it does not belong to this place."""
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
        """Finds the account of a Digest response (RFC 7616), computed with hashlib."""
        pairs = re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]*))', text)
        said = {key: quoted or bare for key, quoted, bare in pairs}
        digest = lambda value: hashlib.sha256(value.encode()).hexdigest()  # noqa: E731
        # A forwarding proxy receives the whole URL, the server behind it only the path.
        if said["realm"] != self.realm or said["uri"] not in (target, self.url + target):
            return None
        for account in [*self.right, *self.wrong]:
            key = digest(f"{account.user}:{self.realm}:{account.secret}")
            made = digest(":".join([key, said["nonce"], said["nc"], said["cnonce"], said["qop"], digest(f"{method}:{said['uri']}")]))
            if made == said["response"] and said["username"] == account.user:
                return account
        return None


def ntlm_user(text):
    """Returns the user in an NTLM type 3 message ([MS-NLMP] section 2.2.1.3), or `None` for a type 1 message."""
    message = base64.b64decode(text)
    if struct.unpack_from("<I", message, 8)[0] != 3:
        return None
    length, _, offset = struct.unpack_from("<HHI", message, 36)
    is_unicode = struct.unpack_from("<I", message, 60)[0] & 1
    return message[offset:offset + length].decode("utf-16-le" if is_unicode else "latin-1")


class Verdict:
    """The problems found, and counts of events. Thread-safe."""

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
