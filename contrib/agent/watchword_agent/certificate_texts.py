"""The texts of a client certificate in the list."""
import datetime
import os

from . import texts, x509
from .certificate_choices import Choice
from .escaping import PATH_LIMIT, quoted, shown
from .messages import _


def title(choice: Choice) -> str:
    """Returns the name of the certificate's subject, or that of the file if only the passphrase reveals it."""
    return shown(choice.summary.name if choice.summary else os.path.basename(choice.certificate))


def facts(choice: Choice, now: datetime.datetime) -> str:
    """Returns issuer and expiry."""
    summary = choice.summary
    if summary is None:
        return _("PKCS#12 file: only its passphrase reveals name and expiry")
    issuer, day = shown(x509.short_name(summary.issuer)), texts.date(summary.not_after)
    if summary.has_expired(now):
        return _("Issued by {issuer} · expired on {date}").format(issuer=issuer, date=day)
    return _("Issued by {issuer} · valid until {date}").format(issuer=issuer, date=day)


def place(choice: Choice) -> str:
    """Returns the token or the path."""
    if choice.token:
        return _("On the token {name}").format(name=quoted(choice.token, 40))
    home = os.path.expanduser("~")
    path = choice.certificate
    return shown("~" + path[len(home):] if path.startswith(home + "/") else path, PATH_LIMIT)
