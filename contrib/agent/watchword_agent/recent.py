"""Recent use: reads the audit log and describes its events."""
import collections
import datetime
import json
import pathlib
from typing import Any, Iterable, Optional

from . import escaping, texts
from .escaping import PATH_LIMIT, quoted, shown
from .messages import N_, _, ngettext
from .question import Space

Event = dict[str, Any]
#: The number of events that are shown, and the number of bytes that are read from the end of each file.
EVENT_LIMIT, READ_LIMIT_BYTES = 60, 256 << 10

_SOURCES = {
    "session": N_("from this session"), "keyring": N_("from the keyring"), "ambient": N_("by Kerberos ticket"),
    "explicit": N_("supplied by the program"), "url": N_("from its URL"), "client": N_("answered by the program"),
    "agent": N_("typed into a prompt"), "netrc": N_("from the netrc file"),
    "command": N_("from the configured command")}
_PLACES = {"session": N_("for this session"), "keyring": N_("in the keyring")}
_TRUSTED = {
    "none": N_("Trusted the certificate of {place} for one request"),
    "forSession": N_("Trusted the certificate of {place} for this session"),
    "permanent": N_("Trusted the certificate of {place} permanently")}
_CONSENTS = {
    "once": N_("allowed once"), "session": N_("allowed for this session"), "always": N_("always allowed"), "no": N_("not allowed")}
_ANSWERS = {
    "credential": N_("answered"), "continue": N_("continued without a login"), "cancel": N_("cancelled"), "reject": N_("rejected")}
_PROMPT_ANSWERS = {"answer": N_("answered"), "allow": N_("allowed"), "cancel": N_("cancelled")}
# Each sentence without a user, and with one.
_SENTENCES = {
    "credentialUsed": (N_("Login at {place}"), N_("Login at {place} as {user}")),
    "credentialRefused": (N_("Refused by {place}"), N_("Refused by {place} as {user}")),
    "certificateUsed": (N_("Client certificate sent to {place}"),) * 2,
    "certificateRefused": (N_("Client certificate refused by {place}"),) * 2,
    "credentialStored": (N_("Stored a login for {place}"), N_("Stored a login for {place} as {user}")),
    "credentialForgotten": (N_("Forgot a login for {place}"), N_("Forgot a login for {place} as {user}")),
    "credentialDefaultChanged": (N_("New default login at {place}"), N_("New default login at {place} as {user}")),
    "credentialHandedOut": (N_("Received the password for {place}"), N_("Received the password for {place} as {user}")),
    "promptsStopped": (N_("Stopped prompts for {program}"),) * 2, "promptsResumed": (N_("Resumed prompts for {program}"),) * 2,
    "locked": (N_("Locked the broker"),) * 2, "unlocked": (N_("Unlocked the broker"),) * 2,
    "challengeUnanswered": (N_("{place} asked: no answer"),) * 2}


def read(file: pathlib.Path) -> list[Event]:
    """Returns the last events of the log, newest first. Lines that are not JSON are skipped: a crash can truncate one."""
    found: collections.deque[Event] = collections.deque(maxlen=EVENT_LIMIT)
    for path in (file.with_name("audit.1.jsonl"), file.with_name("audit.0.jsonl"), file):
        try:
            with open(path, "rb") as stream:
                stream.seek(max(0, path.stat().st_size - READ_LIMIT_BYTES))
                lines = stream.read(READ_LIMIT_BYTES).splitlines()
        except FileNotFoundError:
            continue
        found.extend(filter(is_of_interest, _events(lines)))
    return list(reversed(found))


def is_of_interest(event: Event) -> bool:
    """Whether to show the event. Questions are not shown: their answers say the same and more."""
    return event.get("kind") not in ("challengeAsked", "consentAsked", "promptAsked", None)


def what(event: Event) -> str:
    """Returns what happened, as a phrase."""
    kind, action = str(event.get("kind")), str(event.get("action"))
    place, count = site(event), event.get("count")
    user = quoted(event["user"], 40) if isinstance(event.get("user"), str) else ""
    if kind in _SENTENCES:
        sentence = _SENTENCES[kind][1 if user else 0]
        return _(sentence).format(place=place, user=user, program=shown(event.get("subject"), PATH_LIMIT))
    if kind == "consentAnswered":
        words = _("Use of a login as {user} at {place}: {answer}") if user else _("Use of a login at {place}: {answer}")
        return words.format(user=user, place=place, answer=_(_CONSENTS[action]) if action in _CONSENTS else _("not answered"))
    if kind == "challengeAnswered":
        answer = _(_ANSWERS[action]) if action in _ANSWERS else _("not decided")
        return _("{place} asked: {answer}").format(place=place, answer=answer)
    if kind == "promptAnswered":
        answer = _(_PROMPT_ANSWERS[action]) if action in _PROMPT_ANSWERS else _("no answer")
        caller = quoted(event.get("program"), 40) if event.get("program") else _("a program")
        return _("Prompt of {program}: {answer}").format(program=caller, answer=answer)
    if kind == "trustAccepted":
        return _(_TRUSTED.get(str(event.get("persistence")), N_("Trusted the certificate of {place}"))).format(place=place)
    if kind == "sessionCleared":
        origin = event.get("origin")
        return _("Forgot this session's logins for {place}").format(place=escaping.url(origin)) if origin else _(
            "Forgot logins of this session")
    if kind == "denied":
        reason = shown(event.get("reason"))
        return _("Denied: {reason}").format(reason=reason) if reason else _("Denied a request")
    if kind == "grantRevoked":
        return ngettext("Revoked {number} permission", "Revoked {number} permissions", count).format(number=count) if isinstance(
            count, int) else _("Revoked permissions")
    if kind == "eventsLost":
        return ngettext("{number} event is missing here", "{number} events are missing here", count).format(
            number=count) if isinstance(count, int) else _("Some events are missing here")
    if kind == "frontRequest":
        words = _("A front refused the request {method} to {place}") if event.get("reason") else _(
            "Request {method} to {place} through a front")
        return words.format(method=shown(action, 20), place=place)
    return shown(kind)


def who(event: Event) -> str:
    """Returns the time, the program, and the source of the login."""
    client = event.get("client") or {}
    path = client.get("executable")
    unknown = _("an unknown program") if client else _("the broker")
    program = shown(path, PATH_LIMIT) if path else shown(client.get("name")) or unknown
    if client.get("script"):
        program = _("{script}, run by {program}").format(script=shown(client["script"], PATH_LIMIT), program=program)
    parts = [when(event.get("time")), _("{program}, process {pid}").format(program=program, pid=client["pid"]) if "pid" in client else program]
    is_about_keeping = event.get("kind") in ("credentialStored", "credentialForgotten", "credentialDefaultChanged")
    sources = _PLACES if is_about_keeping else _SOURCES
    source = str(event.get("source"))
    parts.append(_(sources[source]) if source in sources else "")
    if isinstance(event.get("count"), int) and event.get("kind") == "credentialUsed":
        parts.append(ngettext("{number} time", "{number} times", event["count"]).format(number=event["count"]))
    return " · ".join(part for part in parts if part)


def when(text: object, now: Optional[datetime.datetime] = None) -> str:
    """Formats a time in the local time zone, without the day if that is today."""
    try:
        moment = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone()
    except ValueError:
        return ""
    today = (now or datetime.datetime.now().astimezone()).date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{texts.day_of(moment)} {moment:%H:%M}"


def site(event: Event) -> str:
    """Returns the server or proxy of an event."""
    space = event.get("protectionSpace")
    if not isinstance(space, dict):
        return escaping.url(event.get("origin")) or _("a server")
    port = space.get("port")
    return texts.place(Space(
        str(space.get("protocol")), str(space.get("host")), port if isinstance(port, int) else 0, None, "",
        space.get("isProxy") is True, True))


def _events(lines: Iterable[bytes]) -> Iterable[Event]:
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
