"""The memory of a scripted authorization server: clients, grants, codes, devices and tokens."""
import dataclasses
import time
import urllib.parse

from .dpop import Proofs

ALL_GRANTS = ("authorization_code", "refresh_token", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code")
DEVICE_GRANT = ALL_GRANTS[3]


@dataclasses.dataclass
class Client:
    """A registered client; public without a secret."""
    name: str
    secret: str | None = None


def is_loopback(uri):
    """Whether a redirect URI is one of RFC 8252 section 7.3."""
    parts = urllib.parse.urlsplit(uri)
    return parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1") and not parts.fragment


@dataclasses.dataclass
class Grant:
    """The scopes and resources granted by a user, or to a client for itself. All its tokens are a family: reuse of a refresh token kills them all."""
    client: Client
    scopes: tuple
    resources: tuple = ()
    nonce: str | None = None
    jkt: str | None = None
    tokens: list = dataclasses.field(default_factory=list)

    def revoke(self):
        for token in self.tokens:
            token.revoked = True


@dataclasses.dataclass
class Token:
    """An access or refresh token. `expires` is in seconds of the server's clock; `used` is set for a refresh token that was
    exchanged; `jkt` is the thumbprint of the key to which it is bound."""
    value: str
    kind: str
    grant: Grant
    scopes: tuple
    expires: float | None
    resources: tuple = ()
    jkt: str | None = None
    revoked: bool = False
    used: bool = False


@dataclasses.dataclass
class Code:
    value: str
    grant: Grant
    redirect_uri: str
    challenge: str
    expires: float
    used: bool = False


@dataclasses.dataclass
class Device:
    code: str
    user_code: str
    grant: Grant
    expires: float
    is_approved: bool = False
    used: bool = False


@dataclasses.dataclass
class Memory:
    """`offset` is the difference of the server's clock in seconds."""
    clients: dict = dataclasses.field(default_factory=dict)
    tokens: list = dataclasses.field(default_factory=list)
    codes: list = dataclasses.field(default_factory=list)
    devices: list = dataclasses.field(default_factory=list)
    proofs: Proofs = dataclasses.field(default_factory=Proofs)
    offset: float = 0

    def now(self):
        return time.time() + self.offset

    def token(self, value, kind=None):
        """Returns the token with this value, whether valid or not."""
        return next((token for token in self.tokens if token.value == value and kind in (None, token.kind)), None)

    def is_valid(self, token):
        return not token.revoked and (token.expires is None or self.now() < token.expires)
