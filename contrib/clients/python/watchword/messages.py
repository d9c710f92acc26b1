"""The shapes of what the broker sends, as far as a client looks into them; all are plain dictionaries."""
from typing import Any, Dict, List, Optional, TypedDict, Union


class ProtectionSpace(TypedDict, total=False):
    """What a credential is for. `realm` is the server's own text: it may say anything."""

    protocol: str
    host: str
    port: int
    realm: Optional[str]
    authenticationMethod: str
    isProxy: bool
    proxyType: str
    receivesCredentialSecurely: bool
    serverTrust: Dict[str, Any]
    distinguishedNames: List[str]


class Offer(TypedDict, total=False):
    scheme: str
    authenticationMethod: str
    realm: Optional[str]
    params: Dict[str, str]
    raw: str
    supported: bool


class KnownUser(TypedDict, total=False):
    """A stored credential that fits a challenge, without its secret."""

    id: str
    user: str
    domain: str
    source: str


class Challenge(TypedDict, total=False):
    """The parameters of `auth/challenge`."""

    challengeId: str
    fetchId: str
    protectionSpace: ProtectionSpace
    offers: List[Offer]
    proposedCredential: Optional[Dict[str, Any]]
    knownUsers: List[KnownUser]
    previousFailureCount: int
    failureResponse: Optional[Dict[str, Any]]
    error: Optional[Dict[str, Any]]
    accepts: List[str]
    persistenceAllowed: List[str]
    url: str
    method: str
    requester: Dict[str, Any]
    deadlineMs: int
    state: str
    downgrade: bool


class Resolved(TypedDict, total=False):
    """The parameters of `auth/resolved`: how an answer ended. `outcome` is accepted, refused, abandoned or superseded."""

    challengeId: str
    action: str
    by: str
    outcome: str
    user: str


class Body(TypedDict, total=False):
    """`string` and `base64` have a `value`; a `handle` has the `fetchId` to read from."""

    type: str
    value: str
    fetchId: str


class Fetched(TypedDict, total=False):
    """The result of `fetch/run`; that of a fetch in steps has no `body`."""

    fetchId: str
    status: int
    url: str
    httpVersion: str
    headers: List[List[str]]
    body: Body
    bodyBytes: Optional[int]
    auth: Optional[Dict[str, Any]]
    proxyAuth: Dict[str, Any]
    exchanges: int
    timingsMs: Dict[str, float]


class Started(TypedDict):
    """The result of `fetch/start`."""

    fetchId: str
    attachToken: str


Message = Dict[str, Any]
Named = Union[Started, Fetched, Body]
