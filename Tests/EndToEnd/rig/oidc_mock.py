"""oidc-provider-mock, which accepts every client and every redirect URI, for logins with ephemeral ports."""
import json
import os
import pathlib
import sys
import urllib.parse

from . import tiny_browser
from .servers import INSTALL, Server, free_port

PACKAGES = pathlib.Path(__file__).resolve().parents[3] / ".build-oidc"


#: Its own command needs a newer websockets than Debian's.
PROGRAM = """
import datetime, json, sys
from oidc_provider_mock import User, app
port, user, seconds = json.loads(sys.argv[1])
lifetime = datetime.timedelta(seconds=seconds)
app(access_token_max_age=lifetime, user_claims=[User(sub=user, claims={"email": user})]).run("127.0.0.1", port)
"""


class OIDCMock(Server):
    """The server, whose issuer is its URL. Its clients need a secret, which it does not check, and it verifies no PKCE.
    `expires_in` is the lifetime of the access tokens in seconds."""

    USER = "ann"

    def __init__(self, folder, expires_in):
        assert PACKAGES.exists(), f"oidc-provider-mock is missing; run {INSTALL}"
        port = free_port()
        self.url = self.issuer = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "HOME": str(folder), "AUTHLIB_INSECURE_TRANSPORT": "1"}
        super().__init__([sys.executable, "-c", PROGRAM, json.dumps([port, self.USER, expires_in])],
                         port, pathlib.Path(folder) / "oidc.log", cwd=folder, env=environment)

    def endpoint(self, name):
        """Returns the URL of `userinfo` and so on."""
        return json.loads(tiny_browser.request(self.url + "/.well-known/openid-configuration").body)[f"{name}_endpoint"]

    def approve(self, url):
        """Logs in at the URL of an authorization request, and follows the redirect; returns the program's page."""
        form = urllib.parse.urlencode({"sub": self.USER}).encode()
        page = tiny_browser.request(url, "POST", {"Content-Type": "application/x-www-form-urlencoded"}, form)
        return tiny_browser.request(page.location)

    def revoke_all(self):
        """Revokes all tokens of the user."""
        page = tiny_browser.request(f"{self.url}/users/{self.USER}/revoke-tokens", "POST", body=b"")
        assert page.status in (200, 204), (page.status, page.body)

    def token_requests(self):
        """Returns how many requests for a token were answered."""
        return pathlib.Path(self.output.name).read_text().count('"POST /oauth2/token ')
