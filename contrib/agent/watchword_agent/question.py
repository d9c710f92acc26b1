"""The broker's questions as values, parsed and checked once."""
import dataclasses
import datetime
import enum
from typing import Any, Optional

Message = dict[str, Any]


class Kind(enum.Enum):
    """The kind of a question, which decides its window."""

    LOGIN = "login"
    TOKEN = "token"
    CERTIFICATE = "certificate"
    TRUST = "trust"
    CONSENT = "consent"
    PROMPT = "prompt"


class PromptKind(enum.Enum):
    """The kind of answer that a program's own prompt expects."""

    SECRET = "secret"
    TEXT = "text"
    CONFIRMATION = "confirmation"
    INFORMATION = "information"


class NotUnderstood(Exception):
    """The request is malformed or unsupported, so the agent cannot show it; the message is the reason."""


@dataclasses.dataclass(frozen=True)
class Space:
    """A protection space."""

    protocol: str
    host: str
    port: int
    realm: Optional[str]
    method: str
    is_proxy: bool
    is_secure: bool


@dataclasses.dataclass(frozen=True)
class Requester:
    """The requesting program. `name` is its own claim; `subject` is derived from the kernel. `script` is the path of the script that an
    interpreter runs, according to its command line; empty if there is none."""

    name: Optional[str]
    pid: int
    subject: str
    is_restricted: bool
    script: str = ""


@dataclasses.dataclass(frozen=True)
class KnownUser:
    """A stored login that matches; answering with its id uses it without its password."""

    identifier: str
    user: str
    domain: str
    source: str

    @property
    def name(self) -> str:
        """`DOMAIN\\user`, or the user without a domain."""
        return f"{self.domain}\\{self.user}" if self.domain else self.user


@dataclasses.dataclass(frozen=True)
class ProgramPrompt:
    """The prompt of a program that logs in by itself. `program` is the name that the requesting client gives it."""

    kind: PromptKind
    text: str
    program: str


@dataclasses.dataclass(frozen=True)
class BrowserLogin:
    """A login in a browser that provides the token. `user_code` is empty for a login in a browser of this session, and otherwise typed
    at `url`; `complete_url` contains it. `expires_at` is in seconds since 1970."""

    issuer: str
    scopes: tuple[str, ...]
    url: str
    complete_url: str
    user_code: str
    expires_at: float


@dataclasses.dataclass(frozen=True)
class SessionLimits:
    """The times in milliseconds after which an answer for the session is removed; `idle`, the time without use, is `None` if use does not
    count."""

    idle: Optional[int]
    lifetime: int


@dataclasses.dataclass(frozen=True)
class Certificate:
    """A certificate of the server's chain."""

    subject: str
    issuer: str
    not_before: str
    not_after: str
    sha256: str
    spki_sha256: str
    names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Question:
    """One `auth/challenge`, `auth/confirm` or `auth/prompt`. `deadline` is on the same clock as the `now` given to `read`."""

    request_id: int
    identifier: str
    kind: Kind
    space: Space
    requester: Requester
    origin_url: str
    http_method: str
    deadline: float
    failures: int = 0
    problem: Optional[str] = None
    proposed_user: Optional[str] = None
    has_proposed_secret: bool = False
    known_users: tuple[KnownUser, ...] = ()
    persistence: tuple[str, ...] = ()
    session_limits: Optional[SessionLimits] = None
    is_downgrade: bool = False
    #: The realm that the server had here before; empty if this one is not new.
    former_realm: str = ""
    #: The hash of the public key of a server certificate that was accepted by exception, and a proxy that the program names. Questions
    #: that differ in them are about different servers.
    exceptional_key: str = ""
    named_proxy: str = ""
    #: The weaknesses of the challenge, from its offer.
    weaknesses: tuple[str, ...] = ()
    issuers: tuple[str, ...] = ()
    chain: tuple[Certificate, ...] = ()
    trust_problems: tuple[str, ...] = ()
    strength: str = ""
    is_sandboxed: bool = False
    source: str = ""
    allows: tuple[str, ...] = ()
    #: Set if `kind` is `PROMPT`. `space` and the members about a fetch are empty then.
    prompt: Optional[ProgramPrompt] = None
    #: Set if the broker withdraws this question for a token once the person has logged in in a browser.
    login: Optional[BrowserLogin] = None
    #: Whether a question of this program was refused before, so that the window offers to stop further ones.
    is_repeated: bool = False

    #: Certificate and key of the previous answer, so that a wrong passphrase does not lose them.
    typed_files: tuple[str, str] = ("", "")

    @property
    def is_proposal_apart(self) -> bool:
        """Whether the proposed credential can be offered and is not among the known users."""
        return self.has_proposed_secret and not self.failures and all(one.user != self.proposed_user for one in self.known_users)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for questions that look the same to the person, so that they are asked once."""
        # Prompts with the same text can be for different secrets.
        identifier = self.identifier if self.kind is Kind.PROMPT else ""
        left_out = {"request_id": 0, "identifier": identifier, "deadline": 0.0, "origin_url": "", "http_method": "",
                    "is_repeated": False, "typed_files": ("", "")}
        return dataclasses.astuple(dataclasses.replace(self, **left_out))  # type: ignore[arg-type]


def read(message: Message, now: float) -> Question:
    """Parses a request of the broker; raises `NotUnderstood`."""
    params = message.get("params")
    request_id, method = message.get("id"), message.get("method")
    if not isinstance(params, dict) or type(request_id) is not int:
        raise NotUnderstood("request without parameters or numeric id")
    if method == "auth/confirm":
        return _consent(request_id, params, now)
    if method == "auth/prompt":
        return _prompt(request_id, params, now)
    return _challenge(request_id, params, now)


def _consent(request_id: int, params: Message, now: float) -> Question:
    subject = _object(params, "subject")
    user = params.get("user")
    return Question(
        request_id, _text(params, "confirmId"), Kind.CONSENT, _space(params), _requester(params), _text(params, "url"),
        _text(params, "method"), _deadline(params, now), proposed_user=user if isinstance(user, str) else None,
        strength=_text(subject, "strength"), is_sandboxed=subject.get("sandboxed") is True, source=_text(params, "source"),
        allows=_texts(params, "allows"))


def _prompt(request_id: int, params: Message, now: float) -> Question:
    try:
        prompt = ProgramPrompt(PromptKind(params.get("kind")), _text(params, "text"), _text(params, "program"))
    except ValueError:
        raise NotUnderstood("prompt of an unknown kind") from None
    nowhere = Space("", "", 0, None, "", False, False)
    return Question(
        request_id, _text(params, "promptId"), Kind.PROMPT, nowhere, _requester(params), "", "", _deadline(params, now), prompt=prompt)


def _challenge(request_id: int, params: Message, now: float) -> Question:
    space = _object(params, "protectionSpace")
    proposed = params.get("proposedCredential") or {}
    error = params.get("error") or {}
    failures = params.get("previousFailureCount")
    trust = space.get("serverTrust") or {}
    user = proposed.get("user")
    question = Question(
        request_id, _text(params, "challengeId"), _kind(_texts(params, "accepts"), trust), _space(params), _requester(params),
        _text(params, "url"), _text(params, "method"), _deadline(params, now),
        failures=failures if isinstance(failures, int) and failures > 0 else 0, problem=error.get("kind"),
        proposed_user=user if isinstance(user, str) else None, has_proposed_secret=proposed.get("hasPassword") is True,
        known_users=_known_users(params), persistence=_texts(params, "persistenceAllowed"), session_limits=_session_limits(params),
        is_downgrade=params.get("downgrade") is True, former_realm=_text(params, "formerRealm"),
        exceptional_key=_text(params, "certificateException"), named_proxy=_text(params, "namedProxy"),
        weaknesses=_weaknesses(params, space), login=_login(params),
        issuers=_texts(space, "distinguishedNames"), chain=tuple(_certificate(one) for one in trust.get("chain", [])),
        trust_problems=_texts(trust, "problems"))
    if question.kind is Kind.TRUST and not question.chain:
        raise NotUnderstood("server trust challenge without a certificate")
    return question


def _login(params: Message) -> Optional[BrowserLogin]:
    """Returns the login in a browser, or `None` for one that is malformed or of an unknown flow: a token can still be typed."""
    login = params.get("login")
    if not isinstance(login, dict):
        return None
    found = BrowserLogin(
        _text(login, "issuer"), _texts(login, "scopes"), _text(login, "url"), _text(login, "completeUrl"), _text(login, "userCode"),
        _moment(_text(login, "expiresAt")))
    is_whole = found.issuer and found.url and found.expires_at and bool(found.user_code) == (login.get("flow") == "device")
    return found if is_whole and login.get("flow") in ("browser", "device") else None


def _moment(text: str) -> float:
    """Returns an RFC 3339 time in seconds since 1970, or 0."""
    try:
        return datetime.datetime.fromisoformat(text).timestamp() if text.endswith("Z") else 0
    except (ValueError, OverflowError):
        return 0


def _weaknesses(params: Message, space: Message) -> tuple[str, ...]:
    for offer in params.get("offers") or []:
        if isinstance(offer, dict) and all(offer.get(name) == space.get(name) for name in ("authenticationMethod", "realm")):
            return _texts(offer, "weak")
    return ()


def _kind(accepts: tuple[str, ...], trust: Message) -> Kind:
    if "trust" in accepts and trust:
        return Kind.TRUST
    for name, kind in (("certificate", Kind.CERTIFICATE), ("password", Kind.LOGIN), ("token", Kind.TOKEN)):
        if name in accepts:
            return kind
    raise NotUnderstood(f"no window for these answers: {', '.join(accepts) or 'none'}")


def _space(params: Message) -> Space:
    space = _object(params, "protectionSpace")
    realm, port = space.get("realm"), space.get("port")
    return Space(
        _text(space, "protocol"), _text(space, "host"), port if isinstance(port, int) else 0,
        realm if isinstance(realm, str) else None, _text(space, "authenticationMethod"), space.get("isProxy") is True,
        space.get("receivesCredentialSecurely") is True)


def _known_users(params: Message) -> tuple[KnownUser, ...]:
    listed = params.get("knownUsers")
    found = (
        KnownUser(_text(one, "id"), _text(one, "user"), _text(one, "domain"), _text(one, "source"))
        for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict))
    return tuple(one for one in found if one.identifier and one.user)


def _session_limits(params: Message) -> Optional[SessionLimits]:
    limits = params.get("sessionLimits")
    idle, lifetime = (limits.get("idleMs"), limits.get("lifetimeMs")) if isinstance(limits, dict) else (None, None)
    return SessionLimits(idle if isinstance(idle, int) else None, lifetime) if isinstance(lifetime, int) else None


def _requester(params: Message) -> Requester:
    requester = _object(params, "requester")
    name, pid, script = requester.get("name"), requester.get("pid"), requester.get("script")
    return Requester(
        name if isinstance(name, str) and name else None, pid if isinstance(pid, int) else 0, _text(requester, "subject"),
        requester.get("restricted") is True, _text(script, "path") if isinstance(script, dict) else "")


def _certificate(one: Message) -> Certificate:
    return Certificate(
        _text(one, "subject"), _text(one, "issuer"), _text(one, "notBefore"), _text(one, "notAfter"), _text(one, "sha256"),
        _text(one, "spkiSha256"), _texts(one, "subjectAltNames"))


def _deadline(params: Message, now: float) -> float:
    milliseconds = params.get("deadlineMs")
    return now + (milliseconds if isinstance(milliseconds, int) else 120_000) / 1000


def _object(params: Message, name: str) -> Message:
    value = params.get(name)
    if not isinstance(value, dict):
        raise NotUnderstood(f"request without {name}")
    return value


def _text(params: Message, name: str) -> str:
    value = params.get(name)
    return value if isinstance(value, str) else ""


def _texts(params: Message, name: str) -> tuple[str, ...]:
    value = params.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
