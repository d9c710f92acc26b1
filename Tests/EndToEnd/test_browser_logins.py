"""Logins in a browser for Bearer: the broker gets the token, at a scripted authorization server and resource."""
import contextlib
import threading
import time

import pytest

from rig import tiny_browser
from rig.authorization_server import AuthorizationServer
from rig.bodies import eventually
from rig.protected_resource import ProtectedResource


class Site:
    """An authorization server and a resource, and the configuration of the broker for them."""

    def __init__(self, stage, **options):
        self.stage = stage
        self.server = stage.server(AuthorizationServer(issuer_path="/tenant"))
        self.resource = stage.server(ProtectedResource(self.server))
        self.options = {"issuer": self.server.issuer, "client-id": "watchword", **options}
        self.url = self.resource.url + "/api"

    def configuration(self, **changes):
        options = {**self.options, **changes}
        texts = {str: lambda value: f'"{value}"', bool: lambda value: str(value).lower(), int: str,
                 list: lambda value: "[" + ", ".join(f'"{one}"' for one in value) + "]"}
        lines = [f"{name} = {texts[type(value)](value)}" for name, value in options.items() if value is not None]
        return f'[oauth."{self.resource.url}"]\n' + "\n".join(lines) + "\n"

    def broker(self, *options, text="", **more):
        return self.stage.configured(text + self.configuration(), *options, **more)

    def sent_tokens(self):
        return [token for _, token in self.resource.presented]


@pytest.fixture
def site(stage):
    return Site(stage)


def log_in(client, **more):
    """Waits for the challenge, and logs in as its browser would; returns the challenge and the last page."""
    challenge = client.challenges.get(timeout=30)
    return challenge, tiny_browser.open_login(challenge["params"]["login"]["url"], **more)


def test_a_login_in_the_browser_answers_the_challenge(stage, site):
    client = stage.client(broker=site.broker())
    fetch = client.start("fetch/run", {"url": site.url})
    challenge, page = log_in(client)
    result = client.wait(fetch)["result"]
    assert result["status"] == 200 and result["body"]["value"] == "for the bearer\n"
    login = challenge["params"]["login"]
    assert (login["flow"], login["issuer"], login["clientId"], login["scopes"]) == ("browser", site.server.issuer, "watchword", ["read"])
    assert challenge["params"]["protectionSpace"]["authenticationMethod"] == "bearer" and challenge["params"]["accepts"] == ["token"]
    assert page.status == 200 and b"logged in" in page.body and page.header("Cache-Control") == "no-store"
    cancelled = client.notifications.get(timeout=10)
    assert cancelled["method"] == "$/cancelRequest" or cancelled["params"].get("reason") == "answered", cancelled
    # The next request sends the token unasked, and nobody is asked.
    assert client.fetch(site.url)["result"]["exchanges"] == 1
    assert site.sent_tokens() == [None, site.server.access_tokens[0].value, site.server.access_tokens[0].value]
    assert not site.server.problems and not site.resource.problems
