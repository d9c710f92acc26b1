"""The agent's windows on Wayland, at 200 % on a screen of 1280x800. They are read and operated as with a screen reader."""
import os

import pytest

from rig.agents import RunningAgent
from rig.bodies import eventually
from rig.subjects import Relay, flatpak
from rig.tls import PASSPHRASE
from rig.tokens import bearer_server
from rig.wayland import WaylandDesktop
from rig.window_examples import WINDOWS
from test_agent_looks import Shower
from test_agent_windows import ask, started  # noqa: F401

pytestmark = pytest.mark.tier3("windows")

BUTTON = {"role": "push button"}


@pytest.fixture(scope="module")
def desktop(tmp_path_factory):
    desktop = WaylandDesktop(tmp_path_factory.mktemp("wayland"))
    yield desktop
    desktop.end()


@pytest.fixture(scope="module")
def show(desktop):
    return Shower(desktop)


def seen(desktop, agent, title):
    """Waits for the window, and checks that it is on the screen, whole and drawn."""
    agent.window(title)
    looks_right(desktop, title)
    desktop.picture(title.replace(" ", "-").lower())


def looks_right(desktop, title):
    eventually(lambda: title in desktop.windows(), desktop.windows)
    assert desktop.is_inside(title), desktop.windows()
    colours = desktop.colours(title)
    # Most of a light window is light, and its texts and icons have other colours.
    assert len(colours) > 16 and min(colours.most_common(1)[0][0]) > 200, colours.most_common(3)


def test_a_login_is_typed_and_sent(stage, started, desktop):  # noqa: F811
    server, password = stage.protected()
    agent, client = started(), stage.client(delivery=None)
    fetch = ask(client, server.url)
    seen(desktop, agent, "Log In")
    desktop.hear("The server says: “Staff”")
    desktop.operate("User", "bob", role="text")
    desktop.operate("Password", password, role="password text")
    desktop.operate("Save the login: Do Not Save", **BUTTON)
    desktop.hear("Save the login: Do Not Save", pressed=True)
    desktop.operate("Log In", **BUTTON)
    assert client.wait(fetch)["result"]["status"] == 200
    agent.no_window("Log In")
    assert client.call("credential/list")["result"]["credentials"] == []


def test_a_token_is_typed_and_sent(stage, started, desktop):  # noqa: F811
    token = stage.secret()
    server = stage.server(bearer_server(token))
    stage.allow(token, server)
    agent, client = started(), stage.client(delivery=None)
    fetch = ask(client, server.url)
    seen(desktop, agent, "Token")
    desktop.operate("Token", token, role="password text")
    desktop.operate("Send", **BUTTON)
    assert client.wait(fetch)["result"]["status"] == 200


def test_a_client_certificate_is_named(stage, started, desktop, certificates, client_nginx):  # noqa: F811
    server = client_nginx()
    agent = started(stage.broker("--ca-file", str(certificates / "ca.pem")))
    client = stage.client(delivery=None)
    fetch = ask(client, f"{server.url}/page.txt")
    seen(desktop, agent, "Client Certificate")
    desktop.operate("Certificate: PEM, PKCS#12 or pkcs11: URI", str(certificates / "client.pem"), role="text")
    desktop.operate("Private key, if it is in another file", str(certificates / "client-locked.key"), role="text")
    desktop.operate("Passphrase or PIN, if there is one", PASSPHRASE, role="password text")
    desktop.operate("Use Certificate", **BUTTON)
    assert client.wait(fetch)["result"]["body"]["value"] == "page for you\n"


def test_a_server_is_trusted(stage, started, desktop, tls_server):  # noqa: F811
    server = tls_server("wrong-name")
    agent, client = started(), stage.client(delivery=None)
    fetch = ask(client, server.url)
    seen(desktop, agent, "Server Identity")
    desktop.hear("It was issued for another name: elsewhere.test.")
    desktop.operate("Trust", **BUTTON)
    assert client.wait(fetch)["result"]["status"] == 200


def test_consent_is_given_and_the_login_is_listed_and_forgotten(stage, started, desktop):  # noqa: F811
    server, password = stage.protected()
    broker = stage.broker()
    agent, friend = started(broker), stage.client(delivery=None)
    place = {"protocol": "http", "host": "127.0.0.1", "port": server.port, "realm": "Staff", "authenticationMethod": "httpBasic"}
    credential = {"type": "password", "user": "bob", "password": password, "persistence": "forSession"}
    assert "result" in friend.call("credential/store", {"protectionSpace": place, "credential": credential})
    command, info = flatpak()
    sandbox = Relay(broker.socket, *command, pass_fds=[info])
    os.close(info)
    try:
        sandbox.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
        seen(desktop, agent, "Permission")
        desktop.hear("Login: “bob”, saved for this session")
        desktop.operate("Allow", **BUTTON)
        assert sandbox.read()["result"]["status"] == 200
    finally:
        sandbox.close()
    agent.no_window("Permission")
    listing = RunningAgent(stage.folder, broker, desktop, "--list")
    try:
        seen(desktop, listing, "Saved Logins")
        desktop.operate(f"Forget “bob” at http://127.0.0.1:{server.port}", **BUTTON)
        desktop.hear("Forget This Login?", role="dialog")
        desktop.picture("forget")
        looks_right(desktop, "Forget This Login?")
        desktop.operate("Forget", **BUTTON, window="Forget This Login?")
        eventually(lambda: friend.call("credential/list")["result"]["credentials"] == [], "the login was not forgotten")
    finally:
        listing.end()


@pytest.mark.parametrize("expand", [False, True], ids=["closed", "expanded"])
@pytest.mark.parametrize("name", WINDOWS)
def test_every_window_is_on_the_screen(desktop, show, name, expand):
    window = show.send({**WINDOWS[name], "expand": expand})
    desktop.picture(f"{name}{'-details' if expand else ''}")
    assert window["outside"] == [] and window["cut"] == []
    looks_right(desktop, window["title"])
