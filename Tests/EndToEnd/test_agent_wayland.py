"""The agent's windows on Wayland, at 200 % on a screen of 1280x800. They are read and operated as with a screen reader."""

import pytest

from rig.bodies import eventually
from rig.desktop import WaylandDesktop
from rig.window_examples import WINDOWS
from test_agent_looks import Shower
from test_agent_windows import asked, started  # noqa: F401

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


def looks_right(desktop, title):
    """Checks that the window is on the screen, whole and drawn, which may take a moment."""
    def is_drawn():
        # Most of a light window is light, and its texts and icons have other colours.
        colours = desktop.colours(title)
        return len(colours) > 16 and min(colours.most_common(1)[0][0]) > 200

    eventually(lambda: title in desktop.windows() and desktop.is_inside(title), desktop.windows)
    eventually(is_drawn, lambda: desktop.colours(title).most_common(3))
    desktop.picture(title.replace(" ", "-").lower())


def test_a_login_is_typed_and_sent(stage, asked, desktop):  # noqa: F811
    server, password = stage.protected()
    agent, client, fetch = asked(server.url, "Log In")
    looks_right(desktop, "Log In")
    desktop.hear("The server says: “Staff”")
    desktop.operate("User", "bob", role="text")
    desktop.operate("Password", password, role="password text")
    desktop.operate("Save the login: Do Not Save", **BUTTON)
    desktop.hear("Save the login: Do Not Save", pressed=True)
    desktop.operate("Log In", **BUTTON)
    assert client.wait(fetch)["result"]["status"] == 200
    agent.no_window("Log In")
    assert client.call("credential/list")["result"]["credentials"] == []


def test_consent_is_given_and_the_login_is_listed_and_forgotten(stage, started, desktop, start_agent):  # noqa: F811
    server, password = stage.protected()
    broker = stage.broker()
    agent, friend = started(broker), stage.client(delivery=None)
    friend.store(server, "bob", password, realm="Staff", authenticationMethod="httpBasic")
    sandbox = stage.sandbox(broker)
    sandbox.send({"id": 1, "method": "fetch/run", "params": {"url": server.url, "auth": {"interaction": "agent"}}})
    agent.window("Permission")
    looks_right(desktop, "Permission")
    desktop.hear("Login: “bob”, saved for this session")
    desktop.operate("Allow", **BUTTON)
    assert sandbox.read()["result"]["status"] == 200
    agent.no_window("Permission")
    listing = start_agent(broker, desktop, "--list")
    listing.window("Saved Logins")
    looks_right(desktop, "Saved Logins")
    desktop.operate(f"Forget “bob” at http://127.0.0.1:{server.port}", **BUTTON)
    desktop.hear("Forget This Login?", role="dialog")
    looks_right(desktop, "Forget This Login?")
    desktop.operate("Forget", **BUTTON, window="Forget This Login?")
    eventually(lambda: friend.call("credential/list")["result"]["credentials"] == [], "the login was not forgotten")


@pytest.mark.parametrize("expand", [False, True], ids=["closed", "expanded"])
@pytest.mark.parametrize("name", WINDOWS)
def test_every_window_is_on_the_screen(desktop, show, name, expand):
    window = show.send({**WINDOWS[name], "expand": expand})
    assert window["outside"] == [] and window["cut"] == []
    looks_right(desktop, window["title"])
