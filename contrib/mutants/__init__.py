"""The guards that contrib/mutate removes, one at a time, with their replacements and the tests that must fail.

A guard is marked in the code by `// guard: NAME` (`#` in Python and shell) at the end of its line, or on a line of its own above it;
several names are separated by commas. Its entry is (name, text, replacement, tests). The text occurs once in the marked line;
STATEMENT means the whole statement that starts there, and BODY all that is in the function or property that is declared there. The
tests are a filter for the unit tests, or a file or test for pytest if only end-to-end tests reach the code. The result must compile without
warnings. For a file format without comments, a fifth element names the file.

A guard is here if its removal breaks a security rule or a promise of SEMANTICS.md, SECURITY.md or README, once for each rule and
place. Limits have tables of tests instead: LimitTests, and those of the quotas.
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
from .statement import BODY, STATEMENT

GROUPS = {
    "redirects": REDIRECTS, "requests": REQUESTS, "challenges": CHALLENGES, "session": SESSION, "connections": CONNECTIONS,
    "keyring": KEYRING, "messages": MESSAGES, "memory": MEMORY, "broker": BROKER, "consent": CONSENT, "release": RELEASE,
    "service-manager": SERVICE_MANAGER, "waiting": WAITING, "credentials": CREDENTIALS, "display": DISPLAY,
    "planted-files": PLANTED_FILES, "installation": INSTALLATION, "ntlm": NTLM, "addresses": ADDRESSES, "arguments": ARGUMENTS,
    "curl": CURL, "logins": LOGINS, "handlers": HANDLERS, "netrc": NETRC, "front": FRONT, "prompts": PROMPTS,
    "upstreams": UPSTREAMS, "oauth-configuration": OAUTH_CONFIGURATION, "oauth": OAUTH,
}
