"""What is said about a question, in words: no widgets. Everything that others have written is escaped and, but for hosts, short."""
import datetime
import ipaddress
from typing import Any, Optional

from . import escaping
from .escaping import PATH_LIMIT, ordinal, quoted, shown
from .question import Certificate, Kind, KnownUser, Question, Requester, Space

#: How many of a certificate's names, of a server's issuers, are shown.
LIST_LIMIT = 6

STOP_ASKING = "Stop Asking _for This Program"
STOP_ASKING_HINT = "None of its questions is asked any more, until: watchword prompts resume"

_USUAL_PORTS = {"http": 80, "https": 443}
_SCHEMES = {
    "httpBasic": "Basic: the password itself is sent",
    "httpDigest": "Digest: a proof is sent, not the password",
    "ntlm": "NTLM: a proof that can be relayed; the password can be guessed from it",
    "bearer": "Bearer: the token itself is sent",
    "negotiate": "Negotiate: Kerberos",
    "clientCertificate": "Client certificate: the private key stays here",
}
_WEAKNESSES = {
    "noRealm": "The server does not say which area the login is for (no realm).",
    "noQop": "The server uses an old form of Digest (RFC 2069), whose proofs can be replayed.",
}
_PROBLEMS = {
    "credentialAlreadyRefused": "That log-in has been refused before.",
    "nothingProposed": "There is no stored password to use.",
    "credentialNotUsable": "This user cannot be sent: for Basic it must not have a colon.",
    "credentialNotKnown": "That saved login is not there any more.",
    "credentialExpired": "That login has expired.",
    "credentialForOtherPath": "That login is for another part of the server.",
    "credentialOfWrongType": "That answer was not of the kind that is asked for.",
    "connectionNotSecure": "A token cannot be sent here: everybody on the way could use it.",
    "certificateNotUsable": "The certificate or its key cannot be read, or they do not belong together.",
    "keyExposed": "Other users can read or change the private key file. Run “chmod 600” on it.",
    "certificateChanged": "The file or token holds another certificate than the one accepted before.",
    "passphraseWrong": "The passphrase or PIN is wrong or missing.",
    "pinNotTried": "The PIN was not tried, because one more wrong PIN may lock the token.",
    "certificateRefused": "The server has refused that certificate.",
    "fingerprintWrong": "The server shows another certificate now.",
}


def site(space: Space) -> str:
    """The host, with its port where that is not the usual one."""
    host = escaping.host(f"[{space.host}]" if ":" in space.host else space.host)
    is_usual = not space.is_proxy and _USUAL_PORTS.get(space.protocol) == space.port
    return host if is_usual else f"{host}:{space.port}"


def long_host(space: Space) -> Optional[str]:
    """The end of a host that is too long to be taken in at a glance: other names may stand at its beginning."""
    end = escaping.host_end(space.host)
    return f"The host has a long name, which ends in {end}" if end else None


def address(space: Space) -> str:
    """As in a URL."""
    return f"{shown(space.protocol)}://{site(space)}"


def title(question: Question) -> str:
    """Of the window, for lists of windows."""
    return {
        Kind.LOGIN: "Log In", Kind.TOKEN: "Token", Kind.CERTIFICATE: "Client Certificate", Kind.TRUST: "Server Identity",
        Kind.CONSENT: "Permission"}[question.kind]


def heading(question: Question) -> str:
    """The question itself."""
    place = f"the proxy {site(question.space)}" if question.space.is_proxy else site(question.space)
    if question.kind is Kind.LOGIN:
        return f"Log in to {place}"
    if question.kind is Kind.TOKEN:
        return f"Token for {place}"
    if question.kind is Kind.CERTIFICATE:
        return f"{_capital(place)} asks for your certificate"
    if question.kind is Kind.TRUST:
        return f"Is this really {place}?"
    return f"Let “{program(question.requester)}” use your log-in?"


def server_says(question: Question) -> Optional[str]:
    """The realm, as the server's own words."""
    if not question.space.realm:
        return None
    return f"The {'proxy' if question.space.is_proxy else 'server'} says: {quoted(question.space.realm)}"


def is_this_machine(space: Space) -> bool:
    """Whether nothing goes over a network."""
    try:
        return ipaddress.ip_address(space.host).is_loopback
    except ValueError:
        return space.host == "localhost" or space.host.endswith(".localhost")


def security(question: Question) -> tuple[bool, str]:
    """Whether the line is good enough, and why."""
    space = question.space
    thing = "token" if question.kind is Kind.TOKEN else "password"
    if space.protocol == "https":
        return True, "The connection is encrypted (https)"
    if is_this_machine(space) and not space.is_proxy:
        return space.is_secure, f"Not encrypted (http), but the {thing} stays on this machine"
    if space.method == "ntlm":
        return False, "Not encrypted: what is sent can be relayed, and the password guessed from it"
    if space.is_secure:
        return True, f"Not encrypted ({shown(space.protocol)}), but the password itself is not sent"
    return False, f"The {thing} would be readable on the network: {shown(space.protocol)} is not encrypted"


def scheme(space: Space) -> str:
    """How the log-in is sent."""
    return _SCHEMES.get(space.method, shown(space.method))


def failures(question: Question) -> Optional[str]:
    """What went wrong with the answer before, and how often."""
    reason = _PROBLEMS.get(question.problem or "")
    if question.problem and reason is None:
        reason = f"The last answer was of no use: {shown(question.problem)}."
    if not question.failures:
        return reason
    if reason is None:
        thing = {Kind.TOKEN: "token", Kind.CERTIFICATE: "certificate"}.get(question.kind, "password")
        reason = f"The last {thing} was refused."
    return f"{reason} {ordinal(question.failures + 1)} try."


def downgrade(question: Question) -> Optional[str]:
    """Why a person should hesitate."""
    for weakness in question.weaknesses:
        if weakness in _WEAKNESSES:
            return f"{_WEAKNESSES[weakness]} Saved logins are not used for it."
    if not question.is_downgrade:
        return None
    return "This server has accepted a safer way to log in before. Somebody on the network may be in between."


def program(requester: Requester) -> str:
    """The name of the program, as far as it is known from the kernel."""
    kind, _, name = requester.subject.partition(":")
    if kind == "exe" and name:
        return shown(name.rpartition("/")[2] or name)
    if kind in ("flatpak", "snap", "apparmor", "unit") and name:
        return shown(name)
    return "an unknown program"


def program_place(requester: Requester) -> str:
    """Where it comes from, its process, and that it is on the restricted socket."""
    kind, _, name = requester.subject.partition(":")
    place = shown(name, PATH_LIMIT)
    if kind != "exe":
        kinds = {
            "flatpak": "Flatpak application", "snap": "Snap application", "apparmor": "AppArmor profile", "unit": "systemd unit"}
        place = f"{kinds[kind]} {place}" if kind in kinds else "Nothing is known of it for certain"
    parts = [place, f"process {requester.pid}"]
    if requester.name and requester.name != program(requester):
        parts.append(f"calls itself {quoted(requester.name, 40)}")
    if requester.is_restricted:
        parts.append("in a container or on another machine")
    return ", ".join(parts)


def fetch(question: Question) -> str:
    """What the program wants to do."""
    return f"{shown(question.http_method, 20)} {escaping.url(question.origin_url)}"


def problems(question: Question) -> list[str]:
    """What is wrong with a server's certificate."""
    leaf = question.chain[0]
    sentences = {
        "changed": "It has another key than the one that was accepted here before. Somebody may be in between.",
        "revoked": "Its issuer has revoked it.",
        "hostMismatch": f"It was issued for another name: {names(leaf)}.",
        "expired": f"It expired on {date(leaf.not_after)}.",
        "notYetValid": f"It is not valid before {date(leaf.not_before)}.",
        "selfSigned": "It was issued by itself: anybody can make one like it.",
        "untrustedIssuer": "It was not issued by anybody this machine knows.",
        "weakKey": "Its key or its signature is too weak.",
    }
    # The gravest first.
    known = [sentences[name] for name in sentences if name in question.trust_problems]
    other = [f"{shown(name)}." for name in question.trust_problems if name not in sentences]
    return (known + other) or ["Nothing is wrong with it; the program wants you to look at it."]


def is_grave(question: Question) -> bool:
    """Whether somebody is likely to be in between."""
    return bool({"changed", "revoked"} & set(question.trust_problems))


def names(certificate: Certificate) -> str:
    """For whom it was issued."""
    found = [escaping.host(name.partition(":")[2] or name) for name in certificate.names[:LIST_LIMIT]]
    rest = len(certificate.names) - LIST_LIMIT
    return ", ".join(found + ([f"and {rest} more"] if rest > 0 else [])) or "no name at all"


def issuers(question: Question) -> list[str]:
    """Whose certificates a server takes."""
    found = [shown(name) for name in question.issuers[:LIST_LIMIT]]
    rest = len(question.issuers) - LIST_LIMIT
    return found + ([f"and {rest} more"] if rest > 0 else [])


def fingerprint(digest: str) -> str:
    """In pairs with colons, in two lines, to be compared by eye."""
    pairs = [digest[index:index + 2].upper() for index in range(0, min(len(digest), 64), 2)]
    return "\n".join(":".join(pairs[index:index + 16]) for index in range(0, len(pairs), 16))


def date(text: str) -> str:
    """A day, as people write it."""
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return shown(text)
    return f"{day.day} {day.strftime('%B %Y')}"


def strength(question: Question) -> str:
    """How certain it is who the program is."""
    return {
        "strong": "The name is certain: other programs cannot take it",
        "weak": "Other programs that run as you could imitate it",
    }.get(question.strength, "Which program it is cannot be known: it may run the programs of others")


def wanted(question: Question) -> str:
    """What a program would use."""
    if question.source == "ambient":
        return "Your Kerberos ticket"
    where = {"keyring": "the keyring", "session": "this session", "netrc": "the netrc file"}.get(question.source, shown(question.source))
    if question.space.method == "clientCertificate":
        return f"Your client certificate, kept in {where}"
    return f"{quoted(question.proposed_user) if question.proposed_user else 'A token'}, kept in {where}"


def waiting(count: int) -> str:
    """How many questions come after this one."""
    return "" if not count else "1 more question waits" if count == 1 else f"{count} more questions wait"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:] if text.startswith("the ") else text


def user(question: Question) -> str:
    """The user who is proposed, for a button: there it must not make the window wider."""
    return shown(question.proposed_user or "", 30)


def stored_place(source: str) -> str:
    """Where a saved login is kept."""
    return {"keyring": "in the keyring", "session": "until you log out", "netrc": "in the netrc file"}.get(source, shown(source))


def kept(one: dict[str, Any]) -> str:
    """What an entry of the broker's list is."""
    if one.get("type") == "trust":
        return "an accepted certificate of the server"
    if one.get("type") == "certificate":
        source = one.get("certificate")
        return f"your certificate {quoted(source, 60)}" if source else "your certificate"
    return quoted(one["user"]) if one.get("user") else "a token"


def kept_place(one: dict[str, Any]) -> str:
    """Where an entry of the broker's list is kept."""
    if one.get("type") == "trust" and one.get("persistence") == "permanent":
        return "for good"
    return stored_place(one.get("source", ""))


def known_user(known: KnownUser) -> str:
    """A saved login, by its user and where it is kept."""
    return f"{quoted(known.name)}, kept {stored_place(known.source)}"


def known_users(question: Question) -> Optional[str]:
    """All saved logins in one line, where there is nothing to choose with."""
    names = ", ".join(quoted(one.name, 40) for one in question.known_users)
    return f"Saved logins: {names}. Type one of these names to use it." if names else None


def place(space: Space) -> str:
    """Where a log-in is used."""
    return f"the proxy {address(space)}" if space.is_proxy else address(space)
