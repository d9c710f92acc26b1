"""The texts of a question, in the person's language, for windows and fallbacks. Text from servers and programs is escaped and, except
for hosts, shortened."""
import datetime
import ipaddress
import time
from typing import Any, Optional

from . import escaping
from .escaping import PATH_LIMIT, quoted, shown
from .messages import N_, _, ngettext
from .question import BrowserLogin, Certificate, Kind, KnownUser, ProgramPrompt, PromptKind, Question, Requester, Space

#: The length limit for path and query of an address that the person opens or copies, in characters.
ADDRESS_LIMIT = 1000
#: The number of names of a certificate, or issuers accepted by a server, that are shown.
LIST_LIMIT = 6

STOP_ASKING = N_("Stop Asking _for This Program")
STOP_PROMPTS = N_("Stop All Prompts _from {program}")
STOP_ASKING_HINT = N_("No more prompts for it until you run “watchword prompts resume” or the broker restarts")
STOP_ASKING_SCRIPT_HINT = N_(
    "No more prompts for {program}, whatever script it runs, until you run “watchword prompts resume” or the broker restarts")

_MONTHS = (
    N_("January"), N_("February"), N_("March"), N_("April"), N_("May"), N_("June"), N_("July"), N_("August"), N_("September"),
    N_("October"), N_("November"), N_("December"))
_USUAL_PORTS = {"http": 80, "https": 443}
_SCHEMES = {
    "httpBasic": N_("Basic: the password itself is sent"),
    "httpDigest": N_("Digest: a hash is sent, not the password"),
    "ntlm": N_("NTLM: a hash is sent, which can be relayed or used to guess the password"),
    "bearer": N_("Bearer: the token itself is sent"),
    "negotiate": N_("Negotiate: Kerberos"),
    "clientCertificate": N_("Client certificate: the private key is not sent"),
}
_WEAKNESSES = {
    "noRealm": N_("It is not said which area the login is for (no realm)."),
    "noQop": N_("An old form of Digest (RFC 2069) is used, whose responses can be replayed."),
}
_PROBLEMS = {
    "credentialAlreadyRefused": N_("That login was already refused."),
    "nothingProposed": N_("There is no saved login to use."),
    "credentialNotUsable": N_("This user name cannot be sent: with Basic it must not contain a colon."),
    "credentialNotKnown": N_("That saved login no longer exists."),
    "credentialExpired": N_("That login has expired."),
    "credentialForOtherPath": N_("That login is for another part of the server."),
    "credentialOfWrongType": N_("That type of credential is not accepted here."),
    "connectionNotSecure": N_("A token cannot be sent here: anyone on the network path could use it."),
    "certificateNotUsable": N_("The certificate or its key cannot be read, or they do not match."),
    "keyExposed": N_("Other users can read or change the private key file. Run “chmod 600” on it."),
    "certificateChanged": N_("The file or token contains a different certificate from the one accepted before."),
    "passphraseWrong": N_("The passphrase or PIN is wrong or missing."),
    "pinNotTried": N_("The PIN was not tried, because one more wrong PIN may lock the token."),
    "certificateRefused": N_("The server refused that certificate."),
    "fingerprintWrong": N_("The server now presents a different certificate."),
}


def site(space: Space) -> str:
    """Returns the host, with its port unless that is the default."""
    host = escaping.host(f"[{space.host}]" if ":" in space.host and not space.host.startswith("[") else space.host)
    is_usual = not space.is_proxy and _USUAL_PORTS.get(space.protocol) == space.port
    return host if is_usual else f"{host}:{space.port}"


def long_host(host: str) -> Optional[str]:
    """Returns a line with the end of a long host name, because its beginning may imitate another name."""
    end = escaping.host_end(host)
    return _("The host name is long and ends in {end}").format(end=end) if end else None


def address(space: Space) -> str:
    """Returns the space's address in the form of a URL."""
    return f"{shown(space.protocol)}://{site(space)}"


def login_host(question: Question) -> str:
    """Returns the host that the heading names: where the person logs in."""
    return escaping.authority(question.login.issuer) if question.login else question.space.host


def title(question: Question) -> str:
    """Returns the title of the window."""
    if question.login:
        return _("Browser Login")
    return {
        Kind.LOGIN: _("Log In"), Kind.TOKEN: _("Token"), Kind.CERTIFICATE: _("Client Certificate"),
        Kind.TRUST: _("Server Identity"), Kind.CONSENT: _("Permission"), Kind.PROMPT: _("Prompt")}[question.kind]


def heading(question: Question) -> str:
    """Returns the question as a heading."""
    if question.kind is Kind.CONSENT:
        return _("Let “{program}” use your login?").format(program=script(question.requester) or program(question.requester))
    if question.prompt:
        caller = quoted(question.prompt.program, 40)
        return _("{program} asks:").format(program=caller) if question.prompt.program else _("A program asks:")
    if question.login:
        return _("Log in at {host}").format(host=login_host(question))
    # Whole sentences for servers and proxies: in other languages the words around the host differ.
    server, proxy = {
        Kind.LOGIN: (N_("Log in to {host}"), N_("Log in to the proxy {host}")),
        Kind.TOKEN: (N_("Token for {host}"), N_("Token for the proxy {host}")),
        Kind.CERTIFICATE: (N_("{host} requests your certificate"), N_("The proxy {host} requests your certificate")),
        Kind.TRUST: (N_("Is this really {host}?"), N_("Is this really the proxy {host}?"))}[question.kind]
    return _(proxy if question.space.is_proxy else server).format(host=site(question.space))


def prompt_text(prompt: ProgramPrompt) -> str:
    """Returns the text of a program's prompt."""
    return escaping.lines(prompt.text)


def prompt_origin(prompt: ProgramPrompt) -> str:
    """Returns how reliable the name and the text of a prompt are."""
    if prompt.kind is PromptKind.INFORMATION:
        return _("The name of the program and its text are not verified.")
    return _("The name of the program and its text are not verified. Answer only if you have just started it.")


def stop_asking(question: Question) -> str:
    """Returns the title of the button that stops all prompts. In the prompt of a program, it names the program to be stopped."""
    if question.kind is Kind.PROMPT:
        return _(STOP_PROMPTS).format(program=program(question.requester))
    return _(STOP_ASKING)


def server_says(question: Question) -> Optional[str]:
    """Returns the realm as a quotation, or `None` without one."""
    if not question.space.realm:
        return None
    said = _("The proxy says: {text}") if question.space.is_proxy else _("The server says: {text}")
    return said.format(text=quoted(question.space.realm))


def is_this_machine(space: Space) -> bool:
    """Whether the host is this machine (RFC 6761 section 6.3)."""
    try:
        return ipaddress.ip_address(space.host.strip("[]")).is_loopback
    except ValueError:
        return space.host == "localhost" or space.host.endswith(".localhost")


def exception(question: Question) -> Optional[str]:
    """Returns a warning about a server whose certificate was not verified, or `None`."""
    return _("The server is not verified: its certificate was accepted by exception") if question.exceptional_key else None


def security(question: Question) -> tuple[bool, str]:
    """Returns whether the connection needs no warning for this credential, and the reason."""
    space = question.space
    is_token, protocol = question.kind is Kind.TOKEN, shown(question.space.protocol)
    if exception(question):
        return False, exception(question)
    if space.protocol == "https":
        return True, _("The connection is encrypted (https)")
    if question.named_proxy:
        return False, _("Not encrypted, and sent to a proxy that the program names: {proxy}").format(proxy=shown(question.named_proxy))
    if is_this_machine(space):
        # A configured proxy is not part of the challenge.
        if space.is_proxy:
            words = _("Not encrypted ({protocol}), but the password stays on this machine")
        elif is_token:
            words = _("Not encrypted ({protocol}), but the token stays on this machine unless a proxy is used")
        else:
            words = _("Not encrypted ({protocol}), but the password stays on this machine unless a proxy is used")
        return True, words.format(protocol=protocol)
    if space.method == "ntlm":
        return False, _("Not encrypted: the login can be relayed, and the password guessed from it")
    if space.is_secure:
        return True, _("Not encrypted ({protocol}), but the password itself is not sent").format(protocol=protocol)
    words = _("The token would be readable on the network: {protocol} is not encrypted") if is_token else _(
        "The password would be readable on the network: {protocol} is not encrypted")
    return False, words.format(protocol=protocol)


def scheme(space: Space) -> str:
    """Returns the description of the authentication scheme."""
    return _(_SCHEMES[space.method]) if space.method in _SCHEMES else shown(space.method)


def failures(question: Question) -> Optional[str]:
    """Returns why the previous answer failed, with the number of this attempt, or `None`."""
    reason = _(_PROBLEMS[question.problem]) if question.problem in _PROBLEMS else None
    if question.problem and reason is None:
        reason = _("The last answer could not be used: {problem}.").format(problem=shown(question.problem))
    if not question.failures:
        return reason
    if reason is None:
        reason = {
            Kind.TOKEN: _("The last token was refused."), Kind.CERTIFICATE: _("The last certificate was refused."),
            Kind.LOGIN: _("The last password was refused.")}.get(question.kind, _("The last answer was refused."))
    return _("{reason} Attempt {number}.").format(reason=reason, number=question.failures + 1)


def downgrade(question: Question) -> Optional[str]:
    """Returns a warning about a weak challenge, a downgrade or a new realm, or `None`."""
    for weakness in question.weaknesses:
        if weakness in _WEAKNESSES:
            return _("{weakness} Saved logins are not used here.").format(weakness=_(_WEAKNESSES[weakness]))
    if not question.is_downgrade:
        if not question.former_realm:
            return None
        return _("The name of this login is new here; before, it was “{realm}”. Saved logins of that name are not used.").format(
            realm=shown(question.former_realm))
    if question.space.is_proxy:
        return _("This proxy has accepted a safer way to log in before. Someone may be intercepting the connection.")
    return _("This server has accepted a safer way to log in before. Someone may be intercepting the connection.")


def program(requester: Requester) -> str:
    """Returns the program's name from its subject, which the broker gets from the kernel."""
    kind, _colon, name = requester.subject.partition(":")
    if kind == "exe" and name:
        return shown(name.rpartition("/")[2] or name)
    if kind in ("flatpak", "snap", "apparmor", "unit", "front") and name:
        return shown(name)
    return _("an unknown program")


def stop_asking_hint(requester: Requester) -> str:
    """Returns the effect of stopping all prompts, which applies to all scripts of an interpreter."""
    return _(STOP_ASKING_SCRIPT_HINT).format(program=program(requester)) if requester.script else _(STOP_ASKING_HINT)


def script(requester: Requester) -> str:
    """Returns the name of the script that an interpreter runs, or nothing."""
    return shown(requester.script.rpartition("/")[2] or requester.script)


def caller(requester: Requester) -> str:
    """Returns the program's name, or the script's name and that of its interpreter."""
    if not requester.script:
        return program(requester)
    return _("{script}, run by {program}").format(script=script(requester), program=program(requester))


def caller_alone(requester: Requester) -> str:
    """Returns `caller` for a line of its own; the translation isolates the names of a script and its interpreter."""
    return caller(requester) if requester.script else escaping.isolated(program(requester))


def asked_by(requester: Requester) -> str:
    """Returns a line that names the program."""
    return _("Asked by {program}").format(program=caller(requester))


def program_place(requester: Requester) -> str:
    """Returns the program's path or subject, its process, the name it claims, and whether it uses the restricted socket."""
    kind, _colon, name = requester.subject.partition(":")
    place = shown(name, PATH_LIMIT)
    if requester.script:
        # A translation isolates both.
        place = _("{script}, run by {program}").format(script=shown(requester.script, PATH_LIMIT), program=place)
    elif kind == "exe":
        place = escaping.isolated(place)
    if kind != "exe":
        kinds = {
            "flatpak": _("Flatpak application {name}"), "snap": _("Snap application {name}"),
            "apparmor": _("AppArmor profile {name}"), "unit": _("systemd unit {name}"),
            "front": _("Programs in a container, through the front for {name}")}
        place = kinds[kind].format(name=place) if kind in kinds else _("Cannot be identified")
    parts = [place, _("process {pid}").format(pid=requester.pid)]
    if requester.name and requester.name not in (program(requester), script(requester)):
        parts.append(_("calls itself {name}").format(name=quoted(requester.name, 40)))
    if requester.is_restricted:
        parts.append(_("in a container or on another machine"))
    return ", ".join(parts)


def fetch(question: Question) -> str:
    """Returns the method and URL of the fetch."""
    return f"{shown(question.http_method, 20)} {escaping.url(question.origin_url)}"


def problems(question: Question) -> list[str]:
    """Returns the problems of a server's certificate, the most serious first."""
    leaf = question.chain[0]
    sentences = {
        "changed": _("Its key differs from the one accepted here before. Someone may be intercepting the connection."),
        "revoked": _("Its issuer has revoked it."),
        "hostMismatch": _("It was issued for another name: {names}.").format(names=names(leaf)) if leaf.names else _(
            "It does not name any server."),
        "expired": _("It expired on {date}.").format(date=date(leaf.not_after)),
        "notYetValid": _("It is not valid before {date}.").format(date=date(leaf.not_before)),
        "selfSigned": _("It is self-signed: anyone could have made it."),
        "untrustedIssuer": _("Its issuer is not trusted by this machine."),
        "weakKey": _("Its key or its signature is too weak."),
    }
    # The sentences are in the order of their severity.
    known = [sentences[name] for name in sentences if name in question.trust_problems]
    other = [f"{shown(name)}." for name in question.trust_problems if name not in sentences]
    return (known + other) or [_("It is valid. The program asks you to confirm it.")]


def trust_summary(question: Question) -> str:
    """Returns the meaning of the certificate's problems."""
    if not question.trust_problems:
        return _("Compare the fingerprint with one that you know to be the server's.")
    return _("The server's certificate does not prove it. If you trust it anyway, others may read what you send.")


def session_hint(question: Question) -> str:
    """Returns how long an answer for the session is stored."""
    limits = question.session_limits
    # Consent has no time limit; an older broker does not state the limits of the others.
    if limits is None:
        return _("For this session: at most until the computer sleeps.")
    lifetime = span(limits.lifetime)
    if limits.idle is None or limits.idle >= limits.lifetime:
        return _("For this session: until the computer sleeps, at most {lifetime}.").format(lifetime=lifetime)
    return _("For this session: until it is unused for {idle} or the computer sleeps, at most {lifetime}.").format(
        idle=span(limits.idle), lifetime=lifetime)


def span(milliseconds: int) -> str:
    """Formats a time in the largest unit in which it is a whole number, rounded up to minutes from two minutes on, so that the real
    time is not longer."""
    seconds = -(-max(0, milliseconds) // 1000)
    if seconds > 120:
        seconds = -(-seconds // 60) * 60
    if seconds and seconds % 86400 == 0:
        return ngettext("{number} day", "{number} days", seconds // 86400).format(number=seconds // 86400)
    if seconds and seconds % 3600 == 0:
        return ngettext("{number} hour", "{number} hours", seconds // 3600).format(number=seconds // 3600)
    if seconds and seconds % 60 == 0:
        return ngettext("{number} minute", "{number} minutes", seconds // 60).format(number=seconds // 60)
    return ngettext("{number} second", "{number} seconds", seconds).format(number=seconds)


def is_grave(question: Question) -> bool:
    """Whether the problems suggest that the connection is intercepted."""
    return bool({"changed", "revoked"} & set(question.trust_problems))


def names(certificate: Certificate) -> str:
    """Returns the names that the certificate was issued for."""
    found = [escaping.host(name.partition(":")[2] or name) for name in certificate.names[:LIST_LIMIT]]
    return ", ".join(found + _rest(len(certificate.names))) or _("no name")


def issuers(question: Question) -> list[str]:
    """Returns the issuers whose certificates the server accepts."""
    found = [shown(name) for name in question.issuers[:LIST_LIMIT]]
    return found + _rest(len(question.issuers))


def _rest(count: int) -> list[str]:
    """Returns a line with the number of entries that a list leaves out, or nothing."""
    rest = count - LIST_LIMIT
    return [ngettext("and {number} more", "and {number} more", rest).format(number=rest)] if rest > 0 else []


def fingerprint(digest: str) -> str:
    """Formats a SHA-256 digest as pairs with colons in two lines, for comparison by eye."""
    pairs = [digest[index:index + 2].upper() for index in range(0, min(len(digest), 64), 2)]
    return "\n".join(":".join(pairs[index:index + 16]) for index in range(0, len(pairs), 16))


def date(text: str) -> str:
    """Formats an RFC 3339 time as a date in the local time zone."""
    try:
        day = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=datetime.timezone.utc).astimezone()
    except (ValueError, OverflowError):
        return shown(text)
    return day_of(day)


def day_of(moment: datetime.datetime) -> str:
    """Formats a day. The names of the months are ours, because the locale of the language need not be installed."""
    return _("{day} {month} {year}").format(day=moment.day, month=_(_MONTHS[moment.month - 1]), year=moment.year)


def validity(certificate: Certificate) -> str:
    """Returns the time in which a certificate is valid."""
    return _("{begin} to {end}").format(begin=date(certificate.not_before), end=date(certificate.not_after))


def strength(question: Question) -> str:
    """Returns how reliably the program is identified."""
    if question.requester.script:
        return _("Other programs that run as you can claim to be this script") if question.strength == "weak" else _(
            "The script can be changed, or be another one")
    return {
        "strong": _("Verified: other programs cannot use this name"),
        "weak": _("Other programs that run as you can imitate it"),
    }.get(question.strength, _("The actual program is unknown: this one can run other programs' code"))


def wanted(question: Question) -> str:
    """Returns the credential that the program would use, and where it is stored."""
    if question.source == "ambient":
        return _("Your Kerberos ticket")
    if question.space.method == "clientCertificate":
        what = _("Your client certificate")
    else:
        what = quoted(question.proposed_user) if question.proposed_user else _("A token")
    if question.source == "command":
        return _("{login}, supplied by the configured command").format(login=what)
    return saved(what, stored_place(question.source))


def scopes(login: BrowserLogin) -> str:
    """Returns the scopes that the login is for, or nothing."""
    return ", ".join([shown(one) for one in login.scopes[:LIST_LIMIT]] + _rest(len(login.scopes)))


def device_code(login: BrowserLogin) -> str:
    """Returns the code that the person types at the address of the login."""
    return shown(login.user_code)


def device_address(login: BrowserLogin) -> str:
    """Returns the address at which the person types the code, or opens the login page."""
    return escaping.url(login.url, ADDRESS_LIMIT)


def device_instruction() -> str:
    """Returns what to do with address and code."""
    return _("Open this address on any device, and enter the code:")


def device_warning() -> str:
    """Returns the warning against codes that come from others (RFC 8628 section 5.4)."""
    return _("Continue only if you started this. If someone sent you this code, cancel.")


def refused_address(login: BrowserLogin) -> str:
    """Returns why an address is not opened."""
    if login.user_code:
        return _("The address of this login is not opened, because it is not a valid https address: {address}").format(
            address=escaping.url(login.url))
    return _("The address of this login is not opened, because it is not one of this machine: {address}").format(
        address=escaping.url(login.url))


def time_left(login: BrowserLogin) -> str:
    """Returns how long the login is still possible."""
    seconds = login.expires_at - time.time()
    return _("Time left: {time}").format(time=span(int(seconds * 1000))) if seconds > 0 else _("The time for this login is over.")


def waiting(count: int) -> str:
    """Returns a line with the number of questions behind this one."""
    return ngettext("{number} more question", "{number} more questions", count).format(number=count) if count else ""


def user(question: Question) -> str:
    """Returns the proposed user, shortened so that a button does not widen the window."""
    return shown(question.proposed_user or "", 30)


def stored_place(source: str) -> str:
    """Returns where a saved login is stored."""
    return {"keyring": _("in the keyring"), "session": _("for this session"), "netrc": _("in the netrc file")}.get(source, shown(source))


def saved_entry(one: dict[str, Any]) -> str:
    """Returns a description of an entry of the broker's list."""
    if one.get("type") == "trust":
        return _("an accepted certificate of the server")
    if one.get("type") == "certificate":
        source = one.get("certificate")
        return _("your certificate {file}").format(file=quoted(source, 60)) if source else _("your certificate")
    return quoted(one["user"]) if one.get("user") else _("a token")


def entry_place(one: dict[str, Any]) -> str:
    """Returns where an entry of the broker's list is stored."""
    if one.get("type") == "trust" and one.get("persistence") == "permanent":
        return _("permanently")
    return stored_place(one.get("source", ""))


def known_user(known: KnownUser) -> str:
    """Returns the user of a saved login and where it is stored."""
    return saved(quoted(known.name), stored_place(known.source))


def saved(what: str, where: str) -> str:
    """Returns a login and where it is stored."""
    return _("{login}, saved {where}").format(login=what, where=where)


def known_users(question: Question) -> Optional[str]:
    """Returns all saved logins in one line, for fallbacks without a list."""
    names = ", ".join(quoted(one.name, 40) for one in question.known_users)
    return _("Saved logins: {names}. Type one of these names to use it.").format(names=names) if names else None


def place(space: Space) -> str:
    """Returns the server or proxy that a login is for."""
    return _("the proxy {address}").format(address=address(space)) if space.is_proxy else address(space)
