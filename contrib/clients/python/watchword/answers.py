"""What a challenge is answered with."""
import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Mapping, Optional, Tuple, Union

from .messages import Challenge, Resolved


class Decision(enum.Enum):
    """The four answers that are not a credential."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    DEFAULT = "default"
    REJECT = "reject"


#: No more authentication: the response that asked becomes the result, with its body.
CONTINUE = Decision.CONTINUE
#: The fetch fails with `challengeCancelled`.
CANCEL = Decision.CANCEL
#: As though nobody had been asked here: what is stored, then an agent, else as CONTINUE.
DEFAULT = Decision.DEFAULT
#: Not this scheme: ask with the next one that was offered.
REJECT = Decision.REJECT


@dataclass(frozen=True)
class Password:
    """`persistence`, here and below: `none`, `forSession` or `permanent`, as far as the challenge allows it.

    `path` limits it to that path of the server and below. From `expiresAt` on (RFC 3339) it is sent no more.
    """

    user: str
    password: str = field(repr=False)
    domain: Optional[str] = None
    persistence: Optional[str] = None
    path: Optional[str] = None
    expiresAt: Optional[str] = None
    refreshToken: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Token:
    token: str = field(repr=False)
    persistence: Optional[str] = None


@dataclass(frozen=True)
class Header:
    """For schemes that the broker does not know: sent as `scheme value`. `state` comes back with the next round."""

    scheme: str
    value: str = field(repr=False)
    state: Optional[str] = None


@dataclass(frozen=True)
class Certificate:
    """Each part is an absolute path, PEM, or a `pkcs11:` URI."""

    certificate: str = field(repr=False)
    privateKey: Optional[str] = field(default=None, repr=False)
    passphrase: Optional[str] = field(default=None, repr=False)
    persistence: Optional[str] = None


@dataclass(frozen=True)
class Trust:
    """The fingerprint of the key that was seen, out of `protectionSpace.serverTrust`."""

    spkiSha256: str
    persistence: Optional[str] = None


@dataclass(frozen=True)
class Proposed:
    """The credential that the challenge proposes."""

    persistence: Optional[str] = None


@dataclass(frozen=True)
class Stored:
    """One of the credentials that the challenge lists in `knownUsers`, by its `id`."""

    id: str


Credential = Union[Password, Token, Header, Certificate, Trust, Proposed, Stored]
#: User and password stand for `Password`, `None` for `CONTINUE`; a dictionary goes to the broker as it is.
Answer = Union[Credential, Decision, Tuple[str, str], Mapping[str, Any], None]
Answerer = Callable[[Challenge], Answer]
#: Told how an answer ended, before the fetch returns.
ResolvedHandler = Callable[[Resolved], object]

_TYPES = {
    Password: "password", Token: "token", Header: "header", Certificate: "certificate", Trust: "trust", Proposed: "proposed",
    Stored: "stored"}


def credential_json(credential: Credential) -> Dict[str, Any]:
    """As it goes over the wire; what is `None` is left out."""
    members = {name: value for name, value in vars(credential).items() if value is not None}
    return {"type": _TYPES[type(credential)], **members}


def answer_json(answer: Answer) -> Dict[str, Any]:
    """The reply to a challenge. Raises `TypeError` for what is no answer; its text does not quote it."""
    if answer is None:
        return {"action": "continue"}
    if isinstance(answer, Decision):
        return {"action": answer.value}
    if isinstance(answer, tuple) and len(answer) == 2:
        return {"action": "credential", "credential": credential_json(Password(*answer))}
    if type(answer) in _TYPES:
        return {"action": "credential", "credential": credential_json(answer)}  # type: ignore[arg-type]
    if isinstance(answer, Mapping) and "action" in answer:
        return dict(answer)
    raise TypeError(
        f"a challenge was answered with {type(answer).__name__}: return a credential, a decision, or (user, password)")
