"""A scripted OAuth authorization server, correct by default, and broken or hostile where a test wants; and a resource for its tokens."""
import base64
import collections
import dataclasses
import json
import re
import secrets
import time
import types
import urllib.parse

from cryptography.hazmat.primitives.asymmetric import ec

from .oauth_answers import Refusal, Site, altered, dated, error, hash_of, json_answer, page, redirect, signed, with_query

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
GRANTS = {"authorization_code": "_code", "refresh_token": "_refresh", "client_credentials": "_credentials", DEVICE_GRANT: "_device"}
ENDPOINTS = {"authorization_endpoint": "authorize", "token_endpoint": "token", "device_authorization_endpoint": "device_authorization",
             "revocation_endpoint": "revoke", "jwks_uri": "jwks"}
CHALLENGE, VERIFIER = re.compile(r"[A-Za-z0-9\-_]{43}"), re.compile(r"[A-Za-z0-9\-._~]{43,128}")
SCOPES, LIFETIME = ("openid", "offline_access", "read", "write"), 3600
#: The parameters that may occur only once, and only in the body.
SINGLE = {"grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier", "refresh_token", "scope", "device_code",
          "token", "token_type_hint"}


#: A registered client; public without a secret.
Client = collections.namedtuple("Client", "name secret")


def revoke(tokens):
    for token in tokens:
        token.revoked = True


@dataclasses.dataclass
class Grant:
    """The scopes and resources granted by a user, or to a client for itself. All its tokens are a family: reuse of a refresh token
    kills them all."""
    client: Client
    scopes: tuple
    resources: tuple = ()
    nonce: str | None = None
    jkt: str | None = None
    tokens: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Token:
    """An access or refresh token. `expires` is in seconds of the server's clock; `used` is set for a refresh token that was
    exchanged; `jkt` is the thumbprint of the key to which it is bound."""
    value: str
    kind: str
    grant: Grant
    scopes: tuple
    expires: float | None
    resources: tuple = ()
    jkt: str | None = None
    revoked: bool = False
    used: bool = False


@dataclasses.dataclass
class Code:
    """The code of a login, with its redirect URI and challenge, or of a device, with the code for its user."""
    value: str
    grant: Grant
    expires: float
    redirect_uri: str | None = None
    challenge: str | None = None
    user_code: str | None = None
    is_approved: bool = False
    used: bool = False


def resources_of(pairs):
    return tuple(value for name, value in pairs if name == "resource")


class AuthorizationServer(Site):
    """The client "watchword" is public, with any literal loopback redirect URI; `client` adds others.

    `tokens`, `codes` and `devices` contain all, oldest first. `authorizations` are the queries of all authorization requests,
    `revocations` pairs of hint and token, `registrations` the documents of clients. `resources` are the servers that may receive
    access tokens.

    Settings that `config` changes: `metadata`, `token_response` and `id_token` are dictionaries of changes, as of oauth_answers.altered.
    `dpop` is off or required. `registration` is whether clients can register (RFC 7591). The user grants SCOPES; others are left out
    silently, and `read` is granted if none is requested.
    """
    authorizations = ()  # instead of the fields of that name

    def __init__(self, certificates=None, issuer_path=""):
        self.settings = types.SimpleNamespace(metadata={}, token_response={}, id_token={}, dpop="off", registration=False)
        self.issuer_path, self.key = issuer_path, ec.generate_private_key(ec.SECP256R1())
        self.clients, self.tokens, self.codes, self.devices = {}, [], [], []
        self.authorizations, self.revocations, self.registrations, self.resources = [], [], [], []
        self.client("watchword")
        super().__init__(certificates)
        self.issuer = self.url + issuer_path

    def client(self, name, secret=None):
        """Registers a client; returns it. It is confidential with a secret."""
        self.clients[name] = Client(name, secret)
        return self.clients[name]

    def endpoint(self, name):
        return f"{self.url}{self.issuer_path}/{name}"

    @property
    def access_tokens(self):
        return [token for token in self.tokens if token.kind == "access"]

    @property
    def refresh_tokens(self):
        return [token for token in self.tokens if token.kind == "refresh"]

    def revoke_access(self):
        """Revokes all access tokens; refresh tokens remain valid."""
        revoke(self.access_tokens)

    def revoke_all(self):
        revoke(self.tokens)

    def token(self, value, kind=None):
        return next((token for token in self.tokens if token.value == value and kind in (None, token.kind)), None)

    def is_valid(self, token):
        return not token.revoked and (token.expires is None or time.time() < token.expires)

    def valid_token(self, value):
        """Returns the access token with this value, or None if there is none or it is not valid."""
        with self.turn:
            token = self.token(value, "access")
            return token if token and self.is_valid(token) else None

    def approve(self):
        self.devices[-1].is_approved = True

    def issued_secrets(self):
        """Returns the values of all tokens, codes and verifiers, with whether the `resources` may receive them."""
        verifiers = [request.form["code_verifier"] for request in self.requests_to("/token") if len(request.form.get("code_verifier", "")) > 16]
        return {**{token.value: token.kind == "access" for token in self.tokens},
                **dict.fromkeys([*verifiers, *(code.value for code in self.codes + self.devices)], False)}

    def metadata(self):
        """The correct metadata, without the changes of the settings."""
        document = {"issuer": self.issuer, **{name: self.endpoint(place) for name, place in ENDPOINTS.items()},
                    "response_types_supported": ["code"], "grant_types_supported": list(GRANTS),
                    "code_challenge_methods_supported": ["S256"], "scopes_supported": SCOPES,
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"],
                    "authorization_response_iss_parameter_supported": True}
        if self.settings.registration:
            document["registration_endpoint"] = self.endpoint("register")
        if self.settings.dpop != "off":
            document["dpop_signing_alg_values_supported"] = ["ES256"]
        return document

    def _place(self, request):
        return "metadata" if "/.well-known/" in request.path else request.path.removeprefix(self.issuer_path)

    def _refuse(self, request, refusal):
        if self._place(request) != "/authorize":
            return error(refusal.code, refusal.description, *self.proofs.fields())
        self.authorizations.append(request.query)
        return self._redirect(request.query, {"error": refusal.code, "error_description": refusal.description})

    def _violation(self, code, why):
        self.problems.append(why)
        return Refusal(code, why)

    def _answer(self, request):
        place, settings = self._place(request), self.settings
        if request.target == f"/.well-known/oauth-authorization-server{self.issuer_path}":
            return json_answer(200, altered(self.metadata(), settings.metadata))
        if place == "/authorize":
            return self._authorize(request)
        if place == "/register" and settings.registration and request.method == "POST":  # RFC 7591 section 3
            self.registrations.append(json.loads(request.body))
            return json_answer(201, {**self.registrations[-1], "client_id": self.client(f"dyn{secrets.token_urlsafe(9)}").name})
        actions = {"/token": self._token, "/device_authorization": self._device_authorization, "/revoke": self._revocation}
        if place not in actions:
            return page(404, "not found")
        if request.method != "POST":
            return dated(405, b"", "Allow: POST")
        return actions[place](request, request.form, self._client(request))

    def granted(self, scope):
        scopes = tuple(one for one in (scope or "read").split() if one in SCOPES)
        if not scopes:
            raise Refusal("invalid_scope")
        return scopes

    # authorization

    def _authorize(self, request):
        query = request.query
        client, uri = self.clients.get(query.get("client_id")), urllib.parse.urlsplit(query.get("redirect_uri", ""))
        # Without a known client and a loopback redirect URI (RFC 8252 section 7.3), nothing may be redirected (RFC 6749 section 4.1.2.1).
        if client is None or uri.scheme != "http" or uri.hostname not in ("127.0.0.1", "::1") or uri.fragment:
            self.problems.append(f"refused the redirect URI {uri.geturl()!r} of the client {query.get('client_id')!r}")
            return page(400, "unknown client or redirect URI")
        names = [name for name, _ in request.query_pairs if name != "resource"]
        if len(names) != len(set(names)) or not query.get("state"):
            raise self._violation("invalid_request", f"state is missing, or a parameter is repeated: {names}")
        if query.get("response_type") != "code":
            raise Refusal("unsupported_response_type")
        if query.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(query.get("code_challenge", "")):
            raise self._violation("invalid_request", f"the code challenge is {query.get('code_challenge_method')} {query.get('code_challenge')}")
        grant = Grant(client, self.granted(query.get("scope")), resources_of(request.query_pairs), query.get("nonce"), query.get("dpop_jkt"))
        self.codes.append(Code(f"co{secrets.token_urlsafe(24)}", grant, time.time() + 60, query["redirect_uri"], query["code_challenge"]))
        self.authorizations.append(query)
        return self._redirect(query, {"code": self.codes[-1].value})

    def _redirect(self, query, parameters):
        parameters = {**parameters, "state": query.get("state"), "iss": self.issuer}
        return redirect(302, with_query(query["redirect_uri"], parameters))

    # tokens

    def _client(self, request):
        """Checks the form, and RFC 6749 section 2.3: one way of authentication per request."""
        kind = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise self._violation("invalid_request", f"the content type is {kind!r}")
        names, form, said = [name for name, _ in request.form_pairs], request.form, request.authorization or ""
        if repeated := {name for name in SINGLE if names.count(name) > 1} | set(request.query) & SINGLE:
            raise self._violation("invalid_request", f"repeated parameters, or in the query: {sorted(repeated)}")
        name, secret = form.get("client_id"), None
        if "client_secret" in form:
            raise self._violation("invalid_request" if said else "invalid_client", "a client secret in the body")
        if said.lower().startswith("basic "):
            name, secret = map(urllib.parse.unquote_plus, base64.b64decode(said[6:]).decode().split(":", 1))
        client = self.clients.get(name)
        if client is None or client.secret != secret or form.get("client_id", name) != name:
            raise Refusal("invalid_client")
        return client

    def _token(self, request, form, client):
        if form.get("grant_type") not in GRANTS:
            raise Refusal("unsupported_grant_type")
        jkt = None if self.settings.dpop == "off" else self.proofs.check(request, self.endpoint("token"))
        if jkt is None and self.settings.dpop == "required":
            raise Refusal("invalid_dpop_proof", "a proof is required")
        grant, scopes, bound = getattr(self, GRANTS[form["grant_type"]])(form, client)
        if bound not in (None, jkt):
            raise Refusal("invalid_dpop_proof", "another key than before")
        # RFC 8707 section 2.2: a token request may name some of the resources of the grant.
        resources = resources_of(request.form_pairs)
        if grant.resources and not set(resources) <= set(grant.resources):
            raise Refusal("invalid_target")
        if form["grant_type"] == "refresh_token":
            self.token(form["refresh_token"]).used = True
        return self._issue(grant, jkt, resources or grant.resources, scopes, form["grant_type"] != "client_credentials")

    # Each checks a grant; returns it, its scopes, and the thumbprint of the key to which it is bound.

    def _code(self, form, client):
        code = self._pending(self.codes, form.get("code"), client)
        verifier = form.get("code_verifier", "")
        if code.used:
            revoke(code.grant.tokens)
        is_late, code.used = code.used or time.time() >= code.expires, True
        if is_late or form.get("redirect_uri") != code.redirect_uri:
            raise Refusal("invalid_grant", "the code was used before, has expired, or is for another redirect URI")
        if not VERIFIER.fullmatch(verifier) or hash_of(verifier) != code.challenge:
            raise Refusal("invalid_grant", "the verifier does not fit")
        return code.grant, code.grant.scopes, code.grant.jkt

    def _pending(self, codes, value, client):
        code = next((one for one in codes if one.value == value), None)
        if code is None or code.grant.client is not client:
            raise Refusal("invalid_grant", "unknown code")
        return code

    def _refresh(self, form, client):
        token = self.token(form.get("refresh_token"), "refresh")
        if token is None or token.grant.client is not client:
            raise Refusal("invalid_grant", "unknown refresh token")
        if token.used:
            revoke(token.grant.tokens)
        if token.used or not self.is_valid(token):
            raise Refusal("invalid_grant", "the refresh token was used before, or is not valid")
        scopes = tuple(form["scope"].split()) if "scope" in form else token.scopes
        if not set(scopes) <= set(token.grant.scopes):
            raise Refusal("invalid_scope")
        return token.grant, scopes, token.jkt

    def _credentials(self, form, client):
        if client.secret is None:
            raise Refusal("unauthorized_client")
        grant = Grant(client, self.granted(form.get("scope")))
        return grant, grant.scopes, None

    def _device(self, form, client):
        device = self._pending(self.devices, form.get("device_code"), client)
        if device.used or time.time() >= device.expires or not device.is_approved:
            raise Refusal("invalid_grant" if device.used else "expired_token" if time.time() >= device.expires else "authorization_pending")
        device.used = True
        return device.grant, device.grant.scopes, None

    def _issue(self, grant, jkt, resources, scopes, renewed):
        settings, now = self.settings, time.time()

        def new(kind, expires, bound):
            token = Token(f"{kind[0]}t{secrets.token_urlsafe(24)}", kind, grant, scopes, expires, resources, bound)
            grant.tokens.append(token)
            self.tokens.append(token)
            return token.value

        answer = {"access_token": new("access", now + LIFETIME, jkt), "token_type": "DPoP" if jkt else "Bearer",
                  "expires_in": LIFETIME, "scope": " ".join(scopes)}
        if renewed:
            # A confidential client is authenticated by its secret; its refresh tokens are not bound (RFC 9449 section 5).
            answer["refresh_token"] = new("refresh", None, None if grant.client.secret else jkt)
        if "openid" in scopes:
            claims = {"iss": self.issuer, "sub": "ann", "aud": grant.client.name, "exp": int(now) + 600, "iat": int(now)}
            claims |= {"nonce": grant.nonce} if grant.nonce else {}
            answer["id_token"] = signed({"alg": "ES256", "kid": "1"}, altered(claims, settings.id_token), self.key)
        return json_answer(200, altered(answer, settings.token_response), "Pragma: no-cache", *self.proofs.fields())

    # devices and revocation

    def _device_authorization(self, request, form, client):
        letters = "".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8))
        grant, uri = Grant(client, self.granted(form.get("scope")), resources_of(request.form_pairs)), self.endpoint("device")
        device = Code(f"dc{secrets.token_urlsafe(24)}", grant, time.time() + 600, user_code=f"{letters[:4]}-{letters[4:]}")
        self.devices.append(device)
        return json_answer(200, {
            "device_code": device.value, "user_code": device.user_code, "verification_uri": uri,
            "verification_uri_complete": with_query(uri, {"user_code": device.user_code}), "expires_in": 600, "interval": 1})

    def _revocation(self, request, form, client):
        """RFC 7009: an unknown token is not an error."""
        if "token" not in form:
            raise Refusal("invalid_request")
        token = self.token(form["token"])
        if token and token.grant.client is not client:
            raise Refusal("unauthorized_client")
        if token:
            token.revoked = True
            if token.kind == "refresh":
                revoke(token.grant.tokens)
        self.revocations.append((form.get("token_type_hint"), token))
        return dated(200)


class ProtectedResource(Site):
    """`authorization` is a server with `issuer`, `resources` and `valid_token`, such as AuthorizationServer and Glewlwyd.

    PATH and everything below require a token with the scope read; below PATH/w, write. `PATH/redirect?to=URL` redirects with
    a valid token. Everything else is open.

    `presented` are the pairs of scheme and token of all requests, (None, None) without a token.

    Settings that `config` changes: `scope` is a parameter of the challenge, left out if None; `metadata` are changes of the metadata;
    `checks_audience` is whether a token must have been requested for this resource (RFC 8707); `insufficient_status` is the status of
    insufficient_scope, for which registries use 401; `dpop` is whether challenges and metadata offer DPoP.
    """

    def __init__(self, authorization, certificates=None, path="/api", body=b"for the bearer\n"):
        self.authorization, self.path, self.body = authorization, path, body
        self.settings = types.SimpleNamespace(
            scope="read", metadata={}, checks_audience=False, insufficient_status=403, dpop=False)
        self.presented = []
        authorization.resources.append(self)
        super().__init__(certificates)
        self.identifier = self.url + path
        self.metadata_url = f"{self.url}/.well-known/oauth-protected-resource{path}"

    def metadata(self):
        """The correct metadata, without the changes of the settings."""
        document = {"resource": self.identifier, "authorization_servers": [self.authorization.issuer],
                    "scopes_supported": ["read", "write"], "bearer_methods_supported": ["header"]}
        return {**document, **({"dpop_signing_alg_values_supported": ["ES256"]} if self.settings.dpop else {})}

    def _place(self, request):
        return "metadata" if "/.well-known/" in request.path else request.path

    def _refuse(self, request, refusal):
        return self._challenge(401, refusal.code)

    def _challenge(self, status, code=None, scope=None):
        settings = self.settings
        parameters = {"realm": "api", "resource_metadata": self.metadata_url, "scope": scope or settings.scope, "error": code}
        text = ", ".join(f'{name}="{value}"' for name, value in parameters.items() if value)
        offers = [f"Bearer {text}", *[f'DPoP {text}, algs="ES256"'] * settings.dpop]
        return dated(status, b"please log in", *(f"WWW-Authenticate: {one}" for one in offers), *self.proofs.fields())

    def _answer(self, request):
        if self._place(request) == "metadata":
            is_there = request.target == f"/.well-known/oauth-protected-resource{self.path}"
            return json_answer(200, altered(self.metadata(), self.settings.metadata)) if is_there else page(404, "not found")
        if not (request.path + "/").startswith(self.path + "/"):
            return page(200, "open")
        if "access_token" in request.query or "access_token" in request.form:
            self.problems.append("a token in the query or in the body")
        fields = [value for name, value in request.headers if name.lower() == "authorization"]
        if len(fields) > 1:
            self.problems.append("two Authorization fields")
        scheme, _, value = (fields or [""])[0].partition(" ")
        self.presented.append((scheme or None, value or None))
        if not fields:
            return self._challenge(401)
        token = self.authorization.valid_token(value)
        self._check(request, scheme.lower(), value, token)
        needed = "write" if (request.path + "/").startswith(self.path + "/w/") else "read"
        if needed not in token.scopes:
            return self._challenge(self.settings.insufficient_status, "insufficient_scope", " ".join(dict.fromkeys(["read", needed])))
        return redirect(302, request.query["to"]) if request.path == self.path + "/redirect" else dated(200, self.body)

    def _check(self, request, scheme, value, token):
        if token is None or self.settings.checks_audience and self.identifier not in token.resources:
            raise Refusal("invalid_token")
        if scheme != ("dpop" if token.jkt else "bearer"):
            self.problems.append(f"the scheme {scheme} for a token that is {'bound' if token.jkt else 'not bound'}")
            raise Refusal("invalid_token")
        jkt = self.proofs.check(request, self.url + request.path, value) if token.jkt else None
        if jkt != token.jkt:
            raise Refusal("invalid_dpop_proof" if jkt is None else "invalid_token")
