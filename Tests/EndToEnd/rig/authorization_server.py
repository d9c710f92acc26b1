"""A scripted OAuth authorization server: correct by default, and broken or hostile where a test wants.

    server = AuthorizationServer()
    server.config(expires_in=2, redirect={"iss": "https://other.example"})
    server.refuse("/token", "invalid_grant", grant="refresh_token")

rig.protected_resource has the resource that accepts its tokens, and rig.tiny_browser the person's browser.
"""
import dataclasses
import json
import re
import secrets

from cryptography.hazmat.primitives.asymmetric import ec

from .oauth_answers import altered, error, json_answer, page, redirect, with_query
from .oauth_grants import ALL_GRANTS, Client, Code, Grant, Memory, is_loopback
from .oauth_site import Site
from .token_endpoint import TokenEndpoint

ENDPOINTS = {"authorization_endpoint": "authorize", "token_endpoint": "token", "device_authorization_endpoint": "device_authorization",
             "revocation_endpoint": "revoke", "jwks_uri": "jwks"}
CHALLENGE = re.compile(r"[A-Za-z0-9\-_]{43}")


@dataclasses.dataclass
class Settings:
    """The settings that `config` changes. A dictionary of changes maps a name to its value, to None (left out), or to a function of the
    correct value."""
    #: Changes of the metadata.
    metadata: dict = dataclasses.field(default_factory=dict)
    #: Changes of the parameters `code`, `state` and `iss` of the redirect.
    redirect: dict = dataclasses.field(default_factory=dict)
    #: Scopes that the user grants; others are left out silently. `read` is granted if none is requested.
    scopes: tuple = ("openid", "offline_access", "read", "write")
    #: Tokens: the lifetime of access tokens in seconds, and changes of the response.
    expires_in: int = 3600
    token_response: dict = dataclasses.field(default_factory=dict)
    id_token: dict = dataclasses.field(default_factory=dict)
    #: DPoP: off, offered or required. `server.new_dpop_nonce()` requires a nonce.
    dpop: str = "off"
    #: Whether clients can register (RFC 7591).
    registration: bool = False


class AuthorizationServer(Site):
    """The client "watchword" is public, with any literal loopback redirect URI; `client` adds others.

    `memory` contains clients, grants, codes, devices and tokens. `authorizations` are the queries of all authorization requests,
    `revocations` pairs of hint and token, `registrations` the documents of clients. `resources` are the servers that may receive
    access tokens.
    """

    def __init__(self, certificates=None, issuer_path=""):
        self.settings, self.memory, self.issuer_path = Settings(), Memory(), issuer_path
        self.authorizations, self.revocations, self.registrations, self.resources = [], [], [], []
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.client("watchword")
        self.calls = TokenEndpoint(self)
        super().__init__(certificates)
        self.issuer = self.url + issuer_path

    # for tests

    def client(self, name, secret=None):
        """Registers a client; returns it. It is confidential with a secret."""
        self.memory.clients[name] = Client(name, secret)
        return self.memory.clients[name]

    def endpoint(self, name):
        """Returns the URL of `token`, `authorize`, `device` and so on."""
        return f"{self.url}{self.issuer_path}/{name}"

    @property
    def tokens(self):
        """All tokens, oldest first: `value`, `kind`, `scopes`, `resources`, `expires`, `jkt`, `revoked`, `used`, `grant`."""
        return list(self.memory.tokens)

    @property
    def access_tokens(self):
        return [token for token in self.tokens if token.kind == "access"]

    @property
    def refresh_tokens(self):
        return [token for token in self.tokens if token.kind == "refresh"]

    def revoke_access(self):
        """Revokes all access tokens; refresh tokens remain valid."""
        self._revoke(self.access_tokens)

    def revoke_all(self):
        self._revoke(self.tokens)

    def _revoke(self, tokens):
        with self.lock:
            for token in tokens:
                token.revoked = True

    def advance(self, seconds):
        """Advances the clock by which tokens, codes and device codes expire."""
        self.memory.offset += seconds

    def new_dpop_nonce(self):
        """Requires this nonce in proofs from now on; returns it. Resources have nonces of their own."""
        return self.memory.proofs.new_nonce()

    def valid_token(self, value):
        """Returns the access token with this value, or None if there is none or it is not valid."""
        with self.lock:
            token = self.memory.token(value, "access")
            return token if token and self.memory.is_valid(token) else None

    @property
    def devices(self):
        """All device authorizations, oldest first: `code`, `user_code`, `is_approved` and so on."""
        return list(self.memory.devices)

    def approve(self):
        """As the user, approves the last device."""
        self.devices[-1].is_approved = True

    def issued_secrets(self):
        """Returns the values of all tokens, codes and verifiers, none of which may leak, with whether the `resources` may receive
        them."""
        memory = self.memory
        verifiers = [request.form["code_verifier"] for request in self.requests_to("/token") if len(request.form.get("code_verifier", "")) > 16]
        return {**{token.value: token.kind == "access" for token in memory.tokens},
                **dict.fromkeys([*verifiers, *(code.value for code in memory.codes), *(device.code for device in memory.devices)], False)}

    # endpoints

    def metadata(self):
        """The correct metadata, without the changes of the settings."""
        settings = self.settings
        document = {"issuer": self.issuer, **{name: self.endpoint(place) for name, place in ENDPOINTS.items()},
                    "response_types_supported": ["code"], "grant_types_supported": list(ALL_GRANTS),
                    "code_challenge_methods_supported": ["S256"], "scopes_supported": list(settings.scopes),
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
                    "authorization_response_iss_parameter_supported": True}
        if settings.registration:
            document["registration_endpoint"] = self.endpoint("register")
        if settings.dpop != "off":
            document["dpop_signing_alg_values_supported"] = ["ES256"]
        return document

    def _place(self, request):
        return "metadata" if "/.well-known/" in request.path else request.path.removeprefix(self.issuer_path)

    def _refuse(self, request, refusal):
        if self._place(request) == "/authorize":
            self.authorizations.append(request.query)
            return self._redirect(request.query, {"error": refusal.code, "error_description": refusal.description})
        return error(refusal.code, None, refusal.description)

    def _answer(self, request):
        calls = {"/token": self.calls.token, "/device_authorization": self.calls.device_authorization, "/revoke": self.calls.revoke}
        pages = {"metadata": self._metadata, "/authorize": self._authorize, "/register": self._register}
        place = self._place(request)
        if place in calls:
            return self.calls.answer(request, calls[place])
        return pages[place](request) if place in pages else page(404, "not found")

    def _metadata(self, request):
        if request.target != f"/.well-known/oauth-authorization-server{self.issuer_path}":
            return page(404, "not found")
        return json_answer(200, altered(self.metadata(), self.settings.metadata))

    def granted(self, scope):
        return tuple(one for one in (scope or "read").split() if one in self.settings.scopes)

    def _authorize(self, request):
        query = request.query
        client = self.memory.clients.get(query.get("client_id"))
        # Without a known client and a loopback redirect URI, nothing may be redirected (RFC 6749 section 4.1.2.1).
        if client is None or not is_loopback(query.get("redirect_uri", "")):
            self.problems.append(f"refused the redirect URI {query.get('redirect_uri')!r} of the client {query.get('client_id')!r}")
            return page(400, "unknown client or redirect URI")
        self.authorizations.append(query)
        code = self._problem(request, query, client)
        if code:
            return self._redirect(query, {"error": code})
        grant = Grant(client, self.granted(query.get("scope")), self._resources(request), query.get("nonce"), query.get("dpop_jkt"))
        made = Code(f"co{secrets.token_urlsafe(24)}", grant, query["redirect_uri"], query["code_challenge"], self.memory.now() + 60)
        self.memory.codes.append(made)
        return self._redirect(query, {"code": made.value})

    def _problem(self, request, query, client):
        """Returns the code of the error of an authorization request, or None."""
        names = [name for name, _ in request.query_pairs if name != "resource"]
        if len(names) != len(set(names)) or not query.get("state"):
            self.problems.append(f"state is missing, or a parameter is repeated: {names}")
            return "invalid_request"
        if query.get("response_type") != "code":
            return "unsupported_response_type"
        if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(query.get("code_challenge", "")):
            self.problems.append(f"the code challenge is {query.get('code_challenge_method')} {query.get('code_challenge')}")
            return "invalid_request"
        return None if self.granted(query.get("scope")) else "invalid_scope"

    def _resources(self, request):
        return tuple(value for name, value in request.query_pairs if name == "resource")

    def _redirect(self, query, parameters):
        parameters = {**parameters, "state": query.get("state"), "iss": self.issuer}
        return redirect(302, with_query(query["redirect_uri"], altered(parameters, self.settings.redirect)))

    def _register(self, request):
        """RFC 7591 section 3."""
        if not self.settings.registration or request.method != "POST":
            return page(404, "not found")
        document = json.loads(request.body)
        self.registrations.append(document)
        return json_answer(201, {**document, "client_id": self.client(f"dyn{secrets.token_urlsafe(9)}").name})
