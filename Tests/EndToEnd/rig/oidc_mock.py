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
port, user, seconds, options = json.loads(sys.argv[1])
lifetime = datetime.timedelta(seconds=seconds)
app(access_token_max_age=lifetime, user_claims=[User(sub=user, claims={"email": user})], **options).run("127.0.0.1", port)
"""


class OIDCMock(Server):
    """The server, whose issuer is its URL. Its clients need a secret, which it does not check, and it verifies no PKCE.
    `expires_in` is the lifetime of the access tokens in seconds. Other options are `issue_refresh_token`, `require_nonce` and
    `require_client_registration`."""

    def __init__(self, folder, user="ann", expires_in=3600, **options):
        assert PACKAGES.exists(), f"oidc-provider-mock is missing; run {INSTALL}"
        self.user, port = user, free_port()
        self.url = self.issuer = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "PYTHONPATH": str(PACKAGES), "HOME": str(folder), "AUTHLIB_INSECURE_TRANSPORT": "1"}
        super().__init__([sys.executable, "-c", PROGRAM, json.dumps([port, user, expires_in, options])],
                         port, pathlib.Path(folder) / "oidc.log", cwd=folder, env=environment)

    def endpoint(self, name):
        """Returns the URL of `authorize`, `token`, `userinfo` or `jwks`."""
        metadata = json.loads(tiny_browser.request(self.url + "/.well-known/openid-configuration").body)
        return metadata["jwks_uri" if name == "jwks" else f"{'authorization' if name == 'authorize' else name}_endpoint"]

    def hold(self, url, action=None):
        """Logs in at the URL of an authorization request; returns the redirect to the program, not yet followed. The action
        "deny" declines."""
        form = urllib.parse.urlencode({"sub": self.user, **({"action": action} if action else {})}).encode()
        page = tiny_browser.request(tiny_browser.reach(url, self), "POST", {"Content-Type": "application/x-www-form-urlencoded"}, form)
        assert page.location, (page.status, page.body)
        return tiny_browser.Redirect(page.location)

    def approve(self, url):
        """Logs in, and follows the redirect; returns the program's page."""
        return self.hold(url).follow()

    def revoke_all(self):
        """Revokes all tokens of the user."""
        page = tiny_browser.request(f"{self.url}/users/{self.user}/revoke-tokens", "POST", body=b"")
        assert page.status in (200, 204), (page.status, page.body)

    def token_requests(self):
        """Returns how many requests for a token were answered."""
        return pathlib.Path(self.output.name).read_text().count('"POST /oauth2/token ')
