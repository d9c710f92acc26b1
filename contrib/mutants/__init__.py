"""The guards that contrib/mutate removes, one at a time: where each stands, what stands there instead, and which tests must
go red.

A guard is (name, file, exact text, replacement, tests). The text stands in its file exactly once. The tests are a filter for
`swift test`, or a file for pytest. A replacement has to compile without a warning.
"""

from .connections import ADDRESSES, BROKER, CONNECTIONS, KEYRING, MEMORY, MESSAGES, NTLM, SERVICE_MANAGER
from .consent import CONSENT, HANDING_OUT
from .credentials import CREDENTIALS
from .fetches import CHALLENGES, REDIRECTS, REQUESTS, SESSION
from .handlers import HANDLERS
from .helper import ARGUMENTS, CURL, DISPLAY, INSTALLATION, PLANTED_FILES
from .logins import LOGINS
from .netrc import NETRC
from .waiting import WAITING

GROUPS = {
    "redirects": REDIRECTS, "requests": REQUESTS, "challenges": CHALLENGES, "session": SESSION,
    "connections": CONNECTIONS, "keyring": KEYRING, "messages": MESSAGES, "memory": MEMORY, "broker": BROKER,
    "consent": CONSENT, "handing-out": HANDING_OUT, "service-manager": SERVICE_MANAGER, "waiting": WAITING,
    "credentials": CREDENTIALS, "display": DISPLAY, "planted-files": PLANTED_FILES, "installation": INSTALLATION,
    "ntlm": NTLM, "addresses": ADDRESSES, "arguments": ARGUMENTS, "curl": CURL, "logins": LOGINS, "handlers": HANDLERS,
    "ntlm": NTLM, "addresses": ADDRESSES,
    "credentials": CREDENTIALS,
    "ntlm": NTLM,
    "credentials": CREDENTIALS, "display": DISPLAY,
    "planted-files": PLANTED_FILES, "installation": INSTALLATION, "arguments": ARGUMENTS, "curl": CURL,
    "logins": LOGINS, "netrc": NETRC,
}
