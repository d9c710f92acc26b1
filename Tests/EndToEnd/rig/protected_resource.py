"""A scripted resource that requires the tokens of a scripted authorization server (RFC 6750, RFC 9449 and RFC 9728)."""
import types

from .dpop import Proofs
from .oauth_answers import Refusal, Site, altered, dated, json_answer, page, redirect


class ProtectedResource(Site):
    """`authorization` is a server with `issuer`, `resources` and `valid_token`, such as AuthorizationServer and Glewlwyd.

    PATH and everything below require a token with the scope read; below PATH/w, write. `PATH/redirect?to=URL` redirects with
    a valid token. Everything else is open.

    `presented` are the pairs of scheme and token of all requests, (None, None) without a token.

    Settings that `config` changes: `resource_metadata` is True (the right URL), None (left out) or another URL; `scope` is a parameter
    of the challenge, left out if None; `metadata` are changes of the metadata; `checks_audience` is whether a token must have been
    requested for this resource (RFC 8707); `insufficient_status` is the status of insufficient_scope, for which registries use 401;
    `dpop` is whether challenges and metadata offer DPoP.
    """

    def __init__(self, authorization, certificates=None, path="/api", body=b"for the bearer\n"):
        self.authorization, self.path, self.body = authorization, path, body
        self.settings = types.SimpleNamespace(
            resource_metadata=True, scope="read", metadata={}, checks_audience=False, insufficient_status=403, dpop=False)
        self.presented, self.proofs = [], Proofs()
        authorization.resources.append(self)
        super().__init__(certificates)
        self.identifier = self.url + path
        self.metadata_url = f"{self.url}/.well-known/oauth-protected-resource{path}"

    def new_dpop_nonce(self):
        """Requires this nonce in proofs from now on; returns it."""
        return self.proofs.new_nonce()

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
        metadata = self.metadata_url if settings.resource_metadata is True else settings.resource_metadata
        parameters = {"realm": "api", "resource_metadata": metadata, "scope": scope or settings.scope, "error": code}
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
