"""A token service of a container registry, as the registry's token specification describes it, and the registry."""
import pathlib

from .field_servers import Registry
from .oauth_answers import Site, json_answer
from .scripted import basic


class TokenService(Site):
    """Issues tokens at /token: without a login for pulling, with Basic for everything.

    `registry` is a docker-registry that accepts them. `asked` are triples of user, service and scopes for each token request.
    """

    def __init__(self, folder, users):
        self.users, self.asked, self._issued = users, [], []
        super().__init__()
        self.registry = Registry(pathlib.Path(folder), self.url + "/token")
        self.resources = [self.registry]

    def stop(self):
        self.registry.stop()

    def issued_secrets(self):
        """Returns the values of all tokens, which the registry may receive."""
        return dict.fromkeys(self._issued, True)

    def _answer(self, request):
        if request.path != "/token" or request.method != "GET":
            return json_answer(404, {"errors": [{"code": "NOT_FOUND"}]})
        said, user = request.authorization or "", ""
        if said:
            user = next((user for user, password in self.users.items() if said == basic(user, password)), None)
            if user is None:
                value = {"errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}]}
                return json_answer(401, value, 'WWW-Authenticate: Basic realm="token service"')
        service = request.query.get("service")
        scopes = [scope for name, value in request.query_pairs if name == "scope" for scope in value.split()]
        self.asked.append((user, service, scopes))
        granted = []
        for scope in scopes:
            head, _, actions = scope.rpartition(":")
            granted.append(f"{head}:" + ",".join(one for one in actions.split(",") if user or one == "pull"))
        token = self.registry.token(*granted, user=user, lifetime=60, audience=service or "")
        self._issued.append(token)
        return json_answer(200, {"token": token, "access_token": token, "expires_in": 60})
