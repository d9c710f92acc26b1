"""The types of the broker's messages. All values are plain dictionaries; the specification explains their members.

A base class whose name begins with an underscore has the optional members.
"""
from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

AuthenticationMethod = Literal[
    "httpBasic", "httpDigest", "ntlm", "negotiate", "bearer", "other", "clientCertificate", "serverTrust"]
Persistence = Literal["none", "forSession", "permanent"]
CredentialSource = Literal["explicit", "url", "session", "keyring", "client", "agent", "ambient", "netrc", "command"]
NoRespondent = Literal["interaction", "canAuthenticate", "unsubscribed", "noAgent", "stopped", "consentDenied"]


class CertificateFacts(TypedDict):
    pem: str
    subject: str
    issuer: str
    notBefore: str
    notAfter: str
    spkiSha256: str
    sha256: str
    subjectAltNames: List[str]


class ServerTrust(TypedDict):
    """The certificate chain of a server, the leaf first, and its problems."""

    chain: List[CertificateFacts]
    problems: List[Literal[
        "selfSigned", "untrustedIssuer", "expired", "notYetValid", "hostMismatch", "revoked", "weakKey", "changed"]]


class _ProtectionSpace(TypedDict, total=False):
    proxyType: Literal["http", "https", "socks"]
    serverTrust: ServerTrust
    distinguishedNames: List[str]


class ProtectionSpace(_ProtectionSpace):
    """The scope in which a credential is valid. `realm` is untrusted text from the server."""

    protocol: Literal["http", "https", "socks"]
    host: str
    port: int
    realm: Optional[str]
    authenticationMethod: AuthenticationMethod
    isProxy: bool
    receivesCredentialSecurely: bool


class _Offer(TypedDict, total=False):
    weak: List[Literal["noRealm", "noQop", "unquotedRealm"]]


class Offer(_Offer):
    scheme: str
    authenticationMethod: AuthenticationMethod
    realm: Optional[str]
    params: Dict[str, str]
    raw: str
    supported: bool


class _KnownUser(TypedDict, total=False):
    domain: str


class KnownUser(_KnownUser):
    """A stored credential that matches a challenge, without its secret."""

    id: str
    user: str
    source: Literal["session", "keyring"]


class ProposedCredential(TypedDict):
    user: Optional[str]
    hasPassword: bool
    source: CredentialSource


class FailureResponse(TypedDict):
    status: int
    headers: List[List[str]]


class ChallengeError(TypedDict):
    kind: str
    message: str


class Script(TypedDict):
    """The script that an interpreter runs, according to its command line."""

    path: str


class _Requester(TypedDict, total=False):
    script: Script
    restricted: bool


class Requester(_Requester):
    name: Optional[str]
    pid: int
    subject: str


class _SessionLimits(TypedDict, total=False):
    idleMs: int


class SessionLimits(_SessionLimits):
    """How long an answer for the session is stored: `idleMs` without use, which is absent for `serverTrust`, and at most `lifetimeMs`."""

    lifetimeMs: int


class _TokenLogin(TypedDict, total=False):
    completeUrl: str
    userCode: str


class TokenLogin(_TokenLogin):
    """A login in a browser that also answers a challenge, which the broker then withdraws. `userCode` is present for the flow `device`."""

    flow: Literal["browser", "device"]
    issuer: str
    clientId: str
    scopes: List[str]
    url: str
    expiresAt: str


class _Challenge(TypedDict, total=False):
    sessionLimits: SessionLimits
    knownUsers: List[KnownUser]
    state: str
    downgrade: Literal[True]
    formerRealm: str
    certificateException: str
    namedProxy: str
    login: TokenLogin
    handler: Literal["fetch"]
    requestId: Union[int, str, None]


class Challenge(_Challenge):
    """The parameters of `auth/challenge`."""

    challengeId: str
    fetchId: str
    protectionSpace: ProtectionSpace
    offers: List[Offer]
    proposedCredential: Optional[ProposedCredential]
    previousFailureCount: int
    failureResponse: Optional[FailureResponse]
    error: Optional[ChallengeError]
    accepts: List[Literal["password", "token", "header", "certificate", "trust"]]
    persistenceAllowed: List[Persistence]
    url: str
    method: str
    requester: Requester
    deadlineMs: int


class _Resolved(TypedDict, total=False):
    outcome: Literal["accepted", "refused", "abandoned", "superseded"]
    user: str


class Resolved(_Resolved):
    """The parameters of `auth/resolved`."""

    challengeId: str
    action: Literal["credential", "continue", "cancel", "default", "reject", "none"]
    by: Literal["agent", "client", "deadline"]


class InlineBody(TypedDict):
    """A body as UTF-8 text or as base64; `Watchword.content` returns its bytes."""

    type: Literal["string", "base64"]
    value: str


class BodyHandle(TypedDict):
    """A body that is still to be read, with `Watchword.content` or `Watchword.read`."""

    type: Literal["handle"]
    fetchId: str


Body = Union[InlineBody, BodyHandle]


class Authentication(TypedDict):
    """The credential that was accepted. `user` is `None` for a credential without a user."""

    authenticationMethod: AuthenticationMethod
    source: CredentialSource
    user: Optional[str]


class UnansweredScheme(TypedDict):
    scheme: str
    reason: Literal["noRealm", "noQop", "malformed", "notListed", "excluded", "needsTLS", "noTicket", "noChallenge",
                    "noRespondent"]


class Timings(TypedDict):
    total: float
    challenge: float


class RawBytes(TypedDict, total=False):
    """The received bytes, in base64, of the texts that are not UTF-8. `headers` has them by their index."""

    reason: str
    headers: Dict[str, str]


class _Head(TypedDict, total=False):
    reason: str
    rawBytes: RawBytes


class Head(_Head):
    """The head of a response. `bodyBytes` is the size that the server announced, until the body has been read."""

    fetchId: str
    status: int
    url: str
    httpVersion: Literal["1.0", "1.1", "2"]
    headers: List[List[str]]
    bodyBytes: Optional[int]


class _Finished(TypedDict, total=False):
    proxyAuth: Authentication
    unanswered: List[UnansweredScheme]
    noRespondent: NoRespondent
    proxyUnanswered: List[UnansweredScheme]
    proxyNoRespondent: NoRespondent


class Finished(Head, _Finished):
    """The result of a fetch in steps."""

    auth: Optional[Authentication]
    exchanges: int
    timingsMs: Timings


class Fetched(Finished):
    """The result of `fetch/run`."""

    body: Body


class Started(TypedDict):
    """The result of `fetch/start`."""

    fetchId: str
    attachToken: str


Message = Dict[str, Any]
#: A fetch whose body can be read.
Named = Union[Started, BodyHandle]
