"""Recent use, from what the broker has written down: one event as words for people."""
import collections
import datetime
import json
import pathlib
from typing import Any, Iterable, Optional

from . import escaping, texts
from .escaping import PATH_LIMIT, quoted, shown
from .question import Space

Event = dict[str, Any]
#: As many as are shown, and as much as is read of the file for them.
EVENT_LIMIT, READ_LIMIT_BYTES = 60, 256 << 10

_SOURCES = {
    "session": "from this session", "keyring": "from the keyring", "ambient": "by Kerberos ticket", "explicit": "its own",
    "url": "from its URL", "client": "answered by the program", "agent": "answered by you",
    "netrc": "from the netrc file"}
_PLACES = {"session": "in this session", "keyring": "in the keyring"}
_KEEPING = {"none": "for one request", "forSession": "for the session", "permanent": "for good"}
_CONSENTS = {"once": "allowed once", "session": "allowed for the session", "always": "allowed always", "no": "not allowed"}


def read(file: pathlib.Path) -> list[Event]:
    """The last events of the file, the newest first; what is not JSON is passed over (a crash may leave half a line)."""
    found: collections.deque[Event] = collections.deque(maxlen=EVENT_LIMIT)
    for path in (file.with_name("audit.1.jsonl"), file):
        try:
            with open(path, "rb") as stream:
                stream.seek(max(0, path.stat().st_size - READ_LIMIT_BYTES))
                lines = stream.read(READ_LIMIT_BYTES).splitlines()
        except FileNotFoundError:
            continue
        found.extend(filter(is_of_interest, _events(lines)))
    return list(reversed(found))


def is_of_interest(event: Event) -> bool:
    """Questions are followed by their answers, which say the same and more."""
    return event.get("kind") not in ("challengeAsked", "consentAsked", None)


def what(event: Event) -> str:
    """What happened."""
    kind, action = event.get("kind"), event.get("action")
    place = site(event)
    user = f" as {quoted(event['user'], 40)}" if isinstance(event.get("user"), str) else ""
    if kind == "consentAnswered":
        return f"Use of a log-in{user} at {place}: {_CONSENTS.get(str(action), 'nobody answered')}"
    if kind == "challengeAnswered":
        answer = {"credential": "logged in", "continue": "went on without", "cancel": "cancelled"}.get(str(action), "left open")
        return f"{place} asked: {answer}"
    if kind == "trustAccepted":
        return f"Trusted the certificate of {place} {_KEEPING.get(str(event.get('persistence')), '')}".rstrip()
    if kind == "sessionCleared":
        return "Forgot the log-ins of the session"
    sentences = {
        "credentialUsed": f"Log-in at {place}{user}", "credentialRefused": f"Refused by {place}{user}",
        "certificateUsed": f"Client certificate shown to {place}", "certificateRefused": f"Client certificate refused by {place}",
        "credentialStored": f"Stored a log-in for {place}{user}", "credentialForgotten": f"Forgot a log-in for {place}{user}",
        "credentialDefaultChanged": f"Another log-in comes first at {place}{user}",
        "credentialHandedOut": f"Was given the password for {place}{user}", "grantRevoked": "Took permissions back",
        "promptsStopped": f"Stopped the questions of {shown(event.get('subject'), PATH_LIMIT)}",
        "promptsResumed": f"Lets {shown(event.get('subject'), PATH_LIMIT)} ask again",
        "locked": "Locked", "unlocked": "Unlocked", "denied": f"Denied: {shown(event.get('reason')) or 'something'}",
        "challengeUnanswered": f"{place} asked: nobody answered", "eventsLost": f"{event.get('count', 'Some')} events are missing here"}
    return sentences.get(str(kind), shown(kind))


def who(event: Event) -> str:
    """When, which program, and where the log-in came from."""
    client = event.get("client") or {}
    path = client.get("executable")
    unknown = "an unknown program" if client else "the broker"
    program = shown(path, PATH_LIMIT) if path else shown(client.get("name")) or unknown
    parts = [when(event.get("time")), f"{program}, process {client['pid']}" if "pid" in client else program]
    is_about_keeping = event.get("kind") in ("credentialStored", "credentialForgotten", "credentialDefaultChanged")
    sources = _PLACES if is_about_keeping else _SOURCES
    parts.append(sources.get(str(event.get("source")), ""))
    if isinstance(event.get("count"), int) and event.get("kind") == "credentialUsed":
        parts.append(f"{event['count']} times")
    return " · ".join(part for part in parts if part)


def when(text: object, now: Optional[datetime.datetime] = None) -> str:
    """In this machine's time; without the day if it was today."""
    try:
        moment = datetime.datetime.fromisoformat(str(text).replace("Z", "+00:00")).astimezone()
    except ValueError:
        return ""
    today = (now or datetime.datetime.now().astimezone()).date()
    return f"{moment:%H:%M:%S}" if moment.date() == today else f"{moment.day} {moment:%B %H:%M}"


def site(event: Event) -> str:
    """The server or the proxy."""
    space = event.get("protectionSpace")
    if not isinstance(space, dict):
        return escaping.url(event.get("origin")) or "a server"
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
