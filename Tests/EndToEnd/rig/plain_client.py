"""A plain OAuth client, to test the rig's authorization servers and to compare with the broker."""
import base64
import hashlib
import json
import secrets
import urllib.parse

from . import tiny_browser
from .oauth_answers import with_query
from .oauth_grants import DEVICE_GRANT as DEVICE
from .scripted import ScriptedServer, response


class PlainClient:
    """A client with PKCE. `redirect_uri` is a loopback server that answers every request, on `port` or any. With `prover`, it sends
    DPoP proofs."""

    def __init__(self, server, name="watchword", secret=None, prover=None, port=0):
        self.server, self.name, self.secret, self.prover = server, name, secret, prover
        self.listener = ScriptedServer(lambda request: response(200, b"done"), port)
        self.redirect_uri = self.listener.url + "/callback"
        self.verifier = secrets.token_urlsafe(32)

    def login_url(self, **changes):
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {"response_type": "code", "client_id": self.name, "redirect_uri": self.redirect_uri, "state": "st", "scope": "read",
                      "code_challenge": challenge, "code_challenge_method": "S256"}
        return with_query(self.server.endpoint("authorize"), {**parameters, **changes})

    def log_in(self, **changes):
        """Returns the parameters of the redirect."""
        redirect = tiny_browser.hold_redirect(self.login_url(**changes))
        assert redirect.follow().status == 200
        return redirect.parameters

    def post(self, place, nonce=None, **form):
        """Returns the status and the JSON object, None without one; `last` is the whole response."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = self.server.endpoint(place)
        if self.secret is None:
            form.setdefault("client_id", self.name)
        else:
            headers["Authorization"] = "Basic " + base64.b64encode(f"{self.name}:{self.secret}".encode()).decode()
        if self.prover:
            headers["DPoP"] = self.prover.proof("POST", url, nonce=nonce)
        answer = tiny_browser.request(url, "POST", headers, urllib.parse.urlencode(form).encode())
        self.last = answer
        return answer.status, json.loads(answer.body) if answer.body else None

    def exchange(self, code, **changes):
        return self.post("token", **{"grant_type": "authorization_code", "code": code, "redirect_uri": self.redirect_uri,
                                     "code_verifier": self.verifier, **changes})

    def tokens(self, **changes):
        """Logs in; returns the token response."""
        status, answer = self.exchange(self.log_in(**changes)["code"])
        assert status == 200, answer
        return answer

    def refresh(self, token, **more):
        return self.post("token", grant_type="refresh_token", refresh_token=token, **more)

    def poll(self, device):
        return self.post("token", grant_type=DEVICE, device_code=device["device_code"])

    def close(self):
        self.listener.close()


def get(url, token=None, scheme="Bearer", **headers):
    return tiny_browser.request(url, headers={**({"Authorization": f"{scheme} {token}"} if token else {}), **headers})
