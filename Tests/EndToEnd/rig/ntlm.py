"""The server's side of NTLM, computed by pyspnego: a handler for ScriptedServer and ForwardProxy.

NTLM authenticates a connection and not a request. Therefore `served` records, for each accepted request, the number of its
connection, its target, and the user of the connection.
"""
import base64
import contextlib
import os
import pathlib
import sys
import threading
import unittest.mock

from .forwarding import ForwardProxy
from .scripted import ScriptedServer, response
from .servers import INSTALL

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / ".build-python"))
try:
    import spnego
    from spnego.exceptions import SpnegoError
except ImportError:
    spnego = None

DOMAIN = "TESTDOM"
_environment = threading.Lock()


class NtlmCheck:
    """`users` are name → password, all of DOMAIN. With `proxy` it responds with 407.

    `handler` answers accepted requests. A connection stays authenticated until it is closed or a new login begins on it.
    """

    def __init__(self, folder, users, proxy=False, handler=None):
        assert spnego, f"pyspnego is missing; run {INSTALL}"
        self.path = pathlib.Path(folder) / f"ntlm-users-{id(self)}"
        self.path.write_text("".join(f"{DOMAIN}:{user}:{password}\n" for user, password in users.items()))
        self.proxy = proxy
        self.handler = handler or (lambda request: response(200, f"hello {self.user_of(request)}\n".encode()))
        self.contexts, self.users, self.served, self.refused = {}, {}, [], []

    @contextlib.contextmanager
    def _users_known(self):
        # The only way to tell pyspnego the users.
        with _environment, unittest.mock.patch.dict(os.environ, NTLM_USER_FILE=str(self.path)):
            yield

    def user_of(self, request):
        return self.users.get(request.connection)

    def _ask(self, request, token=None):
        status, field = (407, "Proxy-Authenticate") if self.proxy else (401, "WWW-Authenticate")
        more = f" {base64.b64encode(token).decode()}" if token else ""
        # A response to HEAD has no body (RFC 9110 section 9.3.2).
        body = b"" if request.method == "HEAD" else b"please log in"
        return response(status, body, f"{field}: NTLM{more}")

    def __call__(self, request):
        said = request.header("Proxy-Authorization" if self.proxy else "Authorization")
        scheme, _, text = (said or "").partition(" ")
        if scheme.lower() != "ntlm":
            return self._let_through(request) if request.connection in self.users else self._ask(request)
        try:
            token = base64.b64decode(text, validate=True)
        except ValueError:
            return self._ask(request)
        if b"NTLMSSP\0\1\0\0\0" in token:
            self.users.pop(request.connection, None)
            with self._users_known():
                self.contexts[request.connection] = spnego.server(protocol="ntlm", options=spnego.NegotiateOptions.use_ntlm)
        context = self.contexts.get(request.connection)
        if context is None:
            return self._ask(request)
        try:
            with self._users_known():
                answer = context.step(token)
        except (SpnegoError, KeyError) as problem:
            self.refused.append((request.connection, str(problem)))
            del self.contexts[request.connection]
            return self._ask(request)
        if not context.complete:
            return self._ask(request, answer)
        self.users[request.connection] = context.client_principal
        return self._let_through(request)

    def _let_through(self, request):
        self.served.append((request.connection, request.target, self.users[request.connection]))
        return self.handler(request)


def ntlm_proxy(folder, users, **more):
    """A proxy that requires NTLM, for CONNECT and for plain requests."""
    return ForwardProxy(NtlmCheck(folder, users, proxy=True, handler=lambda request: None, **more))


def ntlm_server(folder, users, **more):
    """A server that requires NTLM for every request; `server.handler` is its NtlmCheck."""
    return ScriptedServer(NtlmCheck(folder, users, **more))
