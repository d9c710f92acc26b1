"""The endpoints of a scripted authorization server that a client calls by POST: token, device authorization and revocation."""
import base64
import hashlib
import re
import secrets
import urllib.parse

from .dpop import BadProof, encoded, signed
from .oauth_answers import altered, dated, error, json_answer, with_query
from .oauth_grants import DEVICE_GRANT, Device, Grant, Token

VERIFIER = re.compile(r"[A-Za-z0-9\-._~]{43,128}")
SINGLE = {"grant_type", "client_id", "client_secret", "code", "redirect_uri", "code_verifier", "refresh_token", "scope", "device_code",
          "token", "token_type_hint"}


class Refused(Exception):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer


def refused(code, why=None, status=None, *headers):
    return Refused(error(code, status, why, *headers))


class TokenEndpoint:
    def __init__(self, server):
        self.server, self.memory, self.settings = server, server.memory, server.settings

    def answer(self, request, action):
        try:
            if request.method != "POST":
                return dated(405, b"", "Allow: POST")
            self._check_form(request)
            return action(request)
        except Refused as problem:
            return problem.answer

    def _check_form(self, request):
        kind = (request.header("Content-Type") or "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise self._violation("invalid_request", f"the content type is {kind!r}")
        names = [name for name, _ in request.form_pairs]
        if repeated := {name for name in SINGLE if names.count(name) > 1}:
            raise self._violation("invalid_request", f"repeated parameters: {sorted(repeated)}")
        if set(request.query) & SINGLE:
            raise self._violation("invalid_request", f"parameters in the query: {sorted(request.query)}")

    def _violation(self, code, why):
        self.server.problems.append(why)
        return refused(code, why)

    def _client(self, request):
        """RFC 6749 section 2.3: one way of authentication per request."""
        form, said = request.form, request.authorization or ""
        if said.lower().startswith("basic "):
            if "client_secret" in form:
                raise self._violation("invalid_request", "a client secret in the header and in the body")
            user, _, password = base64.b64decode(said[6:]).decode().partition(":")
            name, secret = urllib.parse.unquote_plus(user), urllib.parse.unquote_plus(password)
        else:
            name, secret = form.get("client_id"), form.get("client_secret")
            if secret is not None:
                raise self._violation("invalid_client", "a client secret in the body")
        client = self.memory.clients.get(name)
        if client is None or client.secret != secret or form.get("client_id", name) != name:
            raise refused("invalid_client")
        return client

    # token

    def token(self, request):
        form, client = request.form, self._client(request)
        kind = form.get("grant_type")
        actions = {"authorization_code": self._code, "refresh_token": self._refresh, "client_credentials": self._credentials,
                   DEVICE_GRANT: self._device}
        if kind not in actions:
            raise refused("unsupported_grant_type")
        jkt = self._proof(request)
        return actions[kind](request, form, client, jkt)

    def _proof(self, request):
        if self.settings.dpop == "off":
            return None
        try:
            jkt = self.memory.proofs.check(request, self.server.endpoint("token"))
        except BadProof as problem:
            raise refused(problem.code, problem.why, None, *self.memory.proofs.fields()) from None
        if jkt is None and self.settings.dpop == "required":
            raise refused("invalid_dpop_proof", "a proof is required")
        return jkt

    def _dead(self, why):
        """A code or refresh token that is not valid."""
        return refused("invalid_grant", why)

    def _code(self, request, form, client, jkt):
        code = next((one for one in self.memory.codes if one.value == form.get("code")), None)
        if code is None or code.grant.client is not client:
            raise self._dead("unknown code")
        if code.used:
            code.grant.revoke()
            raise self._dead("the code was used before")
        code.used = True
        if self.memory.now() >= code.expires:
            raise self._dead("the code has expired")
        if form.get("redirect_uri") != code.redirect_uri:
            raise self._dead("another redirect URI")
        verifier = form.get("code_verifier", "")
        if not VERIFIER.fullmatch(verifier) or encoded(hashlib.sha256(verifier.encode()).digest()) != code.challenge:
            raise self._dead("the verifier does not fit")
        if code.grant.jkt not in (None, jkt):
            raise refused("invalid_dpop_proof", "another key than dpop_jkt")
        return self.issue(code.grant, jkt, self._targets(request, code.grant.resources))

    def _targets(self, request, allowed):
        """RFC 8707 section 2.2: a token request may name some of the resources of the grant."""
        wanted = tuple(value for name, value in request.form_pairs if name == "resource")
        if allowed and not set(wanted) <= set(allowed):
            raise refused("invalid_target")
        return wanted or allowed

    def _refresh(self, request, form, client, jkt):
        token = self.memory.token(form.get("refresh_token"), "refresh")
        if token is None or token.grant.client is not client:
            raise self._dead("unknown refresh token")
        if token.used:
            token.grant.revoke()
            raise self._dead("the refresh token was used before")
        if not self.memory.is_valid(token):
            raise self._dead("the refresh token is not valid")
        if token.jkt not in (None, jkt):
            raise refused("invalid_dpop_proof", "another key than before")
        scopes = tuple(form["scope"].split()) if "scope" in form else token.scopes
        if not set(scopes) <= set(token.grant.scopes):
            raise refused("invalid_scope")
        targets = self._targets(request, token.grant.resources)
        token.used = True
        return self.issue(token.grant, jkt, targets, scopes)

    def _credentials(self, request, form, client, jkt):
        if client.secret is None:
            raise refused("unauthorized_client")
        grant = Grant(client, self.server.granted(form.get("scope")) or self._no_scope())
        return self.issue(grant, jkt, self._targets(request, ()), renewed=False)

    def _no_scope(self):
        raise refused("invalid_scope")

    def issue(self, grant, jkt, resources, scopes=None, renewed=True):
        settings, now = self.settings, self.memory.now()
        scopes = grant.scopes if scopes is None else scopes

        def new(kind, lifetime, bound):
            token = Token(f"{kind[0]}t{secrets.token_urlsafe(24)}", kind, grant, scopes, lifetime and now + lifetime, resources, bound)
            grant.tokens.append(token)
            self.memory.tokens.append(token)
            return token.value

        answer = {"access_token": new("access", settings.expires_in, jkt), "token_type": "DPoP" if jkt else "Bearer",
                  "expires_in": settings.expires_in, "scope": " ".join(scopes)}
        if renewed:
            # A confidential client is authenticated by its secret; its refresh tokens are not bound (RFC 9449 section 5).
            answer["refresh_token"] = new("refresh", None, None if grant.client.secret else jkt)
        if "openid" in scopes:
            claims = {"iss": self.server.issuer, "sub": "ann", "aud": grant.client.name, "exp": int(now) + 600, "iat": int(now)}
            claims |= {"nonce": grant.nonce} if grant.nonce else {}
            answer["id_token"] = signed({"alg": "ES256", "kid": "1"}, altered(claims, settings.id_token), self.server.key)
        return json_answer(200, altered(answer, settings.token_response), "Pragma: no-cache", *self.memory.proofs.fields())

    # device authorization

    def device_authorization(self, request):
        form, client = request.form, self._client(request)
        letters = "".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(8))
        resources = tuple(value for name, value in request.form_pairs if name == "resource")
        grant = Grant(client, self.server.granted(form.get("scope")) or self._no_scope(), resources)
        device = Device(f"dc{secrets.token_urlsafe(24)}", f"{letters[:4]}-{letters[4:]}", grant, self.memory.now() + 600)
        self.memory.devices.append(device)
        uri = self.server.endpoint("device")
        answer = {"device_code": device.code, "user_code": device.user_code, "verification_uri": uri,
                  "verification_uri_complete": with_query(uri, {"user_code": device.user_code}),
                  "expires_in": 600, "interval": 1}
        return json_answer(200, answer)

    def _device(self, request, form, client, jkt):
        device = next((one for one in self.memory.devices if one.code == form.get("device_code")), None)
        if device is None or device.grant.client is not client or device.used:
            raise self._dead("unknown device code")
        if self.memory.now() >= device.expires:
            raise refused("expired_token")
        if not device.is_approved:
            raise refused("authorization_pending")
        device.used = True
        return self.issue(device.grant, jkt, self._targets(request, device.grant.resources))

    # revocation

    def revoke(self, request):
        """RFC 7009: an unknown token is not an error."""
        form, client = request.form, self._client(request)
        if "token" not in form:
            raise refused("invalid_request")
        token = self.memory.token(form["token"])
        if token and token.grant.client is not client:
            raise refused("unauthorized_client")
        if token:
            token.revoked = True
            if token.kind == "refresh":
                token.grant.revoke()
        self.server.revocations.append((form.get("token_type_hint"), token))
        return dated(200)
