"""A token service of a container registry, as the registry's token specification describes it, and the registry."""
import base64
import dataclasses
import pathlib
import secrets
import time

from .field_servers import Registry
from .oauth_answers import altered, error, json_answer
from .oauth_site import Site


@dataclasses.dataclass
class Settings:
    """The settings that `config` changes. `lifetime` is that of the tokens, in seconds, and `expires_in` what the response says
    about it, or None to omit it, which means 60."""
    lifetime: int = 60
    expires_in: int | None = 60
    #: What each user may do; "" is without a login, and None requires one.
    rights: dict = dataclasses.field(default_factory=lambda: {"": ("pull",)})
    #: Changes of the response, as those of the authorization server; `token` and `access_token` are the same.
    response: dict = dataclasses.field(default_factory=dict)
    #: Whether a user with a right password gets refresh tokens on request.
    refresh_tokens: bool = True


class TokenService(Site):
    """Issues tokens at /token by GET, with Basic or without a login, and by POST. Users may push and pull.

    `registry` is a docker-registry that accepts them. `asked` are triples of user, service and scopes for each token request.
    Other places: fail("/token", …) and so on, as at the authorization server.
    """

    def __init__(self, folder, users):
        self.users, self.settings, self.asked, self.resources = users, Settings(), [], []
        self._issued, self._refresh = {}, {}
        super().__init__()
        folder = pathlib.Path(folder)
        self.realm = self.url + "/token"
        self.registry = Registry(folder, self.realm)
        self.resources.append(self.registry)

    def stop(self):
        self.registry.stop()

    def issued_secrets(self):
        """Returns the values of all tokens, with whether the registry may receive them."""
        return {**{value: True for value in self._issued}, **{value: False for value in self._refresh}}

    def revoke_refresh(self):
        self._refresh = dict.fromkeys(self._refresh)

    def _place(self, request):
        return request.path

    def _refuse(self, request, refusal):
        return error(refusal.code, None, refusal.description)

    def _answer(self, request):
        if request.path != "/token" or request.method not in ("GET", "POST"):
            return json_answer(404, {"errors": [{"code": "NOT_FOUND"}]})
        if request.method == "GET":
            return self._get(request)
        return self._post(request.form)

    def _unauthorized(self):
        value = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
        return json_answer(401, value, 'WWW-Authenticate: Basic realm="token service"')

    def _get(self, request):
        said, user = request.authorization or "", ""
        if said:
            user, _, password = base64.b64decode(said.removeprefix("Basic ")).decode().partition(":")
            if not said.startswith("Basic ") or self.users.get(user) != password:
                return self._unauthorized()
        elif self.settings.rights.get("") is None:
            return self._unauthorized()
        query = request.query
        scopes = [scope for name, value in request.query_pairs if name == "scope" for scope in value.split()]
        offline = query.get("offline_token") == "true" or query.get("access_type") == "offline"
        return self._issue(user, query.get("service"), scopes, offline)

    def _post(self, form):
        """The registry's OAuth 2 form of the request."""
        if not form.get("service") or not form.get("client_id"):
            return error("invalid_request")
        if form.get("grant_type") == "refresh_token":
            user = self._refresh.get(form.get("refresh_token"))
        elif form.get("grant_type") == "password":
            user = form.get("username") if self.users.get(form.get("username"), "") == form.get("password") else None
        else:
            return error("unsupported_grant_type")
        if not user:
            return error("invalid_grant", 401)
        return self._issue(user, form["service"], form.get("scope", "").split(), form.get("access_type") == "offline")

    def _issue(self, user, service, scopes, offline):
        self.asked.append((user, service, scopes))
        rights, granted = self.settings.rights.get(user, ("pull", "push", "delete", "*")), []
        for scope in scopes:
            head, _, actions = scope.rpartition(":")
            granted.append(f"{head}:" + ",".join(one for one in actions.split(",") if one in rights))
        token = self.registry.token(*granted, user=user, lifetime=self.settings.lifetime, audience=service or "")
        self._issued[token] = granted
        value = {"token": token, "access_token": token, "expires_in": self.settings.expires_in,
                 "issued_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        if user and offline and self.settings.refresh_tokens:
            value["refresh_token"] = "rt" + secrets.token_urlsafe(18)
            self._refresh[value["refresh_token"]] = user
        value = {name: one for name, one in value.items() if one is not None}
        return json_answer(200, altered(value, self.settings.response))
