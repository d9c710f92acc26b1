"""The guards that contrib/mutate removes, one at a time, with their replacements and the tests that must fail.

A guard is marked in the code by `// guard: NAME` (`#` in Python and shell) at the end of its line, or on a line of its own above it;
several names are separated by commas. Its entry is (name, text, replacement, tests). The text occurs once in the marked line;
STATEMENT means the whole statement that starts there. The tests are a filter for `swift test`, or a file for pytest. The result
must compile without warnings. For a file format without comments, a fifth element names the file.
"""

from .connections import ADDRESSES, BROKER, CONNECTIONS, KEYRING, MEMORY, MESSAGES, NTLM, SERVICE_MANAGER
from .consent import CONSENT, RELEASE
from .credentials import CREDENTIALS
from .fetches import CHALLENGES, REDIRECTS, REQUESTS, SESSION
from .front import FRONT
from .handlers import HANDLERS
from .helper import ARGUMENTS, CURL, DISPLAY, INSTALLATION, PLANTED_FILES
from .logins import LOGINS
from .netrc import NETRC
from .oauth import OAUTH, OAUTH_CONFIGURATION
from .prompts import PROMPTS
from .upstreams import UPSTREAMS
from .waiting import WAITING
from .statement import STATEMENT

GROUPS = {
    "redirects": REDIRECTS, "requests": REQUESTS, "challenges": CHALLENGES, "session": SESSION, "connections": CONNECTIONS,
    "keyring": KEYRING, "messages": MESSAGES, "memory": MEMORY, "broker": BROKER, "consent": CONSENT, "release": RELEASE,
    "service-manager": SERVICE_MANAGER, "waiting": WAITING, "credentials": CREDENTIALS, "display": DISPLAY,
    "planted-files": PLANTED_FILES, "installation": INSTALLATION, "ntlm": NTLM, "addresses": ADDRESSES, "arguments": ARGUMENTS,
    "curl": CURL, "logins": LOGINS, "handlers": HANDLERS, "netrc": NETRC, "front": FRONT, "prompts": PROMPTS,
    "upstreams": UPSTREAMS, "oauth-configuration": OAUTH_CONFIGURATION, "oauth": OAUTH,
}
