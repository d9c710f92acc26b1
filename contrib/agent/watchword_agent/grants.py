"""The texts of recorded permissions of programs."""
from . import recent, texts
from .connection import Message
from .escaping import PATH_LIMIT, quoted, shown
from .messages import N_, _
from .question import Requester

_ALLOWED = {
    "once": N_("allowed once"), "session": N_("allowed for this session"), "always": N_("always allowed"),
    "no": N_("not allowed for this session")}


def program(grant: Message) -> str:
    """Returns the name of the program."""
    subject = (grant.get("subject") or {}).get("id")
    return texts.program(Requester(None, 0, subject if isinstance(subject, str) else "", False))


def login(grant: Message) -> str:
    """Returns the login that the permission is for."""
    user, place = grant.get("user"), recent.site(grant)
    if isinstance(user, str) and user:
        return _("{login} at {place}").format(login=quoted(user, 40), place=place)
    return _("a login at {place}").format(place=place)


def facts(grant: Message) -> str:
    """Returns what the permission says, and the subject as the broker names it."""
    allow = str(grant.get("allow"))
    parts = [login(grant), _(_ALLOWED[allow]) if allow in _ALLOWED else shown(allow)]
    return f"{' · '.join(parts)}\n{shown((grant.get('subject') or {}).get('id'), PATH_LIMIT)}"
