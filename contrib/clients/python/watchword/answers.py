"""The answers to a challenge."""
import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Literal, Mapping, Optional, Tuple, TypedDict, Union

from .messages import Challenge, Persistence, Resolved


class Decision(enum.Enum):
    """The four answers that are not a credential."""

    CONTINUE = "continue"
    CANCEL = "cancel"
    DEFAULT = "default"
    REJECT = "reject"


#: Stop authenticating: the response with the challenge becomes the result, with its body.
CONTINUE = Decision.CONTINUE
#: Let the fetch fail with `challengeCancelled`.
CANCEL = Decision.CANCEL
#: Let the broker decide: a stored credential, then an agent, then CONTINUE.
DEFAULT = Decision.DEFAULT
#: Skip this scheme: the broker sends a challenge for the next offered one.
REJECT = Decision.REJECT


@dataclass(frozen=True)
class Password:
    """User and password. `persistence`, here and below, is `none`, `forSession` or `permanent`, if the challenge allows it.

    `path` limits the credential to that path and below. The credential is not sent after `expiresAt` (RFC 3339).
    """

    user: str
    password: str = field(repr=False)
    domain: Optional[str] = None
    persistence: Optional[Persistence] = None
    path: Optional[str] = None
    expiresAt: Optional[str] = None
    refreshToken: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Token:
    """A token for Bearer; `expiresAt` and `refreshToken` are as in `Password`."""

    token: str = field(repr=False)
    persistence: Optional[Persistence] = None
    expiresAt: Optional[str] = None
    refreshToken: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Header:
    """A value for a scheme that the broker does not support, sent as `scheme value`.

    The challenge of the next round contains `state`.
    """

    scheme: str
    value: str = field(repr=False)
    state: Optional[str] = None


@dataclass(frozen=True)
class Certificate:
    """A client certificate. Each part is an absolute path, PEM text, or a `pkcs11:` URI."""

    certificate: str = field(repr=False)
    privateKey: Optional[str] = field(default=None, repr=False)
    passphrase: Optional[str] = field(default=None, repr=False)
    persistence: Optional[Persistence] = None


@dataclass(frozen=True)
class Trust:
    """Trusts the key with this fingerprint, from `protectionSpace.serverTrust`."""

    spkiSha256: str
    persistence: Optional[Persistence] = None


@dataclass(frozen=True)
class Proposed:
    """The credential that the challenge proposes."""

    persistence: Optional[Persistence] = None


@dataclass(frozen=True)
class Stored:
    """A stored credential that the challenge lists in `knownUsers`, by its `id`."""

    id: str


class _AnswerMessage(TypedDict, total=False):
    credential: Mapping[str, object]


class AnswerMessage(_AnswerMessage):
    """An answer as in the specification."""

    action: Literal["credential", "continue", "cancel", "default", "reject"]


Credential = Union[Password, Token, Header, Certificate, Trust, Proposed, Stored]
#: A pair means `Password`, `None` means `CONTINUE`; a dictionary is sent unchanged.
Answer = Union[Credential, Decision, Tuple[str, str], AnswerMessage, None]
Answerer = Callable[[Challenge], Answer]
#: Called with the outcome of an answer before the fetch returns.
ResolvedHandler = Callable[[Resolved], object]

_TYPES = {
    Password: "password", Token: "token", Header: "header", Certificate: "certificate", Trust: "trust", Proposed: "proposed",
    Stored: "stored"}


def credential_json(credential: object) -> Dict[str, Any]:
    """Returns the JSON form of a credential, without members that are `None`. Raises `TypeError` for any other value."""
    if type(credential) not in _TYPES:
        raise TypeError(f"a value of type {type(credential).__name__} cannot be sent to the broker")
    members = {name: value for name, value in vars(credential).items() if value is not None}
    return {"type": _TYPES[type(credential)], **members}


def answer_json(answer: Answer) -> Dict[str, Any]:
    """Returns the reply to a challenge. Raises `TypeError` for an invalid answer, without quoting it."""
    if answer is None:
        return {"action": "continue"}
    if isinstance(answer, Decision):
        return {"action": answer.value}
    if isinstance(answer, tuple) and len(answer) == 2:
        return {"action": "credential", "credential": credential_json(Password(*answer))}
    if type(answer) in _TYPES:
        return {"action": "credential", "credential": credential_json(answer)}
    if isinstance(answer, Mapping) and "action" in answer:
        return dict(answer)
    raise TypeError(
        f"invalid answer of type {type(answer).__name__}; return a credential, a decision, or (user, password)")
