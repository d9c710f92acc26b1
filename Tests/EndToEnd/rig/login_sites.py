"""An authorization server with a resource, the broker's configuration for them, and logins as a person's browser does them."""
import contextlib
import json
import queue
import socket

import pytest

from . import tiny_browser
from .authorization_server import AuthorizationServer, ProtectedResource
from .bodies import eventually
from .scripted import ScriptedServer, response


class Site:
    """An authorization server and a resource, and the configuration of the broker for them."""

    def __init__(self, stage, server=None, resource=None, at="", **options):
        self.stage = stage
        self.server = server or stage.server(AuthorizationServer(issuer_path="/tenant"))
        self.resource = stage.server(resource(self.server) if resource else ProtectedResource(self.server))
        self.options = {"issuer": self.server.issuer, "client-id": "watchword", **options}
        self.configured_url = self.resource.url + at
        self.url = self.resource.url + self.resource.path

    def configuration(self, **changes):
        # TOML writes these values like JSON.
        options = {name: json.dumps(value) for name, value in {**self.options, **changes}.items() if value is not None}
        return f'[oauth."{self.configured_url}"]\n' + "".join(f"{name} = {value}\n" for name, value in options.items())

    def broker(self, *options, text="", **more):
        return self.stage.configured(text + self.configuration(), *options, **more)

    def logged_in(self, *options, **more):
        """Returns a client of a new broker, whose person has logged in for it."""
        client = self.stage.client(broker=self.broker(*options, **more))
        logged_in(client, self)
        return client

    def space(self, **more):
        """The protection space of the resource, for requests about stored credentials."""
        return {"protocol": "http", "host": "127.0.0.1", "port": self.resource.port, **more}

    def sent_tokens(self):
        return [token for _, token in self.resource.presented]

    def token_requests(self):
        return self.server.requests_to("/token")


@pytest.fixture
def site(stage):
    return Site(stage)


@pytest.fixture
def client(stage, site):
    """A client of a broker that is configured for the site."""
    return stage.client(broker=site.broker())


@pytest.fixture
def user(site, client):
    """The client after a login of its person."""
    logged_in(client, site)
    return client


def log_in(client, **more):
    """Waits for the challenge, and logs in as its browser would; returns the challenge and the last page."""
    challenge = client.challenges.get(timeout=30)
    return challenge, tiny_browser.open_login(login_url(challenge), **more)


def login_url(challenge):
    return challenge["params"]["login"]["url"]


def started(client, url, count=1, **params):
    return [client.start("fetch/run", {"url": url, **params}) for _ in range(count)]


def statuses(client, calls):
    return [client.wait(call).get("result", {}).get("status") for call in calls]


def is_closed(url):
    with contextlib.suppress(OSError):
        return not tiny_browser.request(url)
    return True


def held_login(client, url, **params):
    """Starts a fetch, and logs in up to the redirect back to the broker; returns the call, the challenge and the redirect."""
    call = client.start("fetch/run", {"url": url, **params})
    challenge = client.challenges.get(timeout=30)
    return call, challenge, tiny_browser.hold_redirect(login_url(challenge))


def failure(client, call, kind="loginFailed", seconds=40):
    reply = client.wait(call, seconds)
    assert reply.get("error", {}).get("data", {}).get("kind") == kind, reply
    return reply["error"]["message"]


def stranger(stage):
    """A server that no token, code or secret is for; `stage` searches all that it received."""
    return stage.server(ScriptedServer(lambda request: response(200, b"{}", "Content-Type: application/json")))


def fetching(stage, broker, url):
    """Returns a sandboxed program that has begun to fetch, with the id 99, and answers challenges itself."""
    program = stage.sandbox(broker)
    program.call("initialize", {
        "client": {"name": "confined"}, "protocolVersion": 1, "capabilities": {"challenge": {"delivery": "request"}}})
    program.send({"id": 99, "method": "fetch/run", "params": {"url": url}})
    return program


def own_address():
    """Returns an address of this machine that is not loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        # Connecting a datagram socket sends nothing (TEST-NET-3, RFC 5737).
        probe.connect(("203.0.113.1", 9))
        address = probe.getsockname()[0]
        return None if address.startswith("127.") else address


def logged_in(client, site):
    """Fetches the page of the site with a login."""
    call = started(client, site.url)
    log_in(client)
    assert statuses(client, call) == [200]


def quiet(client, seconds=0.3):
    """Whether no challenge arrives for a while."""
    try:
        challenge = client.challenges.get(timeout=seconds)
    except queue.Empty:
        return True
    client.challenges.put(challenge)
    return False


def is_asked(client, call):
    """Waits for the reply or for a question; returns whether it is a question."""
    eventually(lambda: call in client.replies or not client.challenges.empty(), "a reply or a question")
    return not client.challenges.empty()


def forgotten(client, site):
    """Whether the next fetch needs a person."""
    return is_asked(client, client.start("fetch/run", {"url": site.url}))
