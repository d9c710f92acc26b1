"""The layout of the agent's windows: their Alt keys, that they fit on a screen, and that nothing is cut off at 200 %."""
import json
import pathlib
import subprocess

import pytest

from rig.broker import ROOT
from rig.desktop import Desktop
from rig.waiting import is_ready
from rig.window_examples import FULL, LONG_STATES, STATES, WINDOWS

pytestmark = pytest.mark.tier3("windows")

ALL = {**WINDOWS, **STATES, **FULL, **LONG_STATES}
#: Pages without data, in which alone a hyphen would be wrong.
WITHOUT_DATA = ("saved-nothing", "recent-nothing", "permissions-nothing", "locked", "no-broker")
SCREEN = (1024, 600)
GERMAN = f"po={ROOT}/contrib/agent/po/de.po"
#: The screen, the arguments and the environment of the program that shows the windows; 200 % by the display or by the size of text.
LOOKS = {
    "small": ("1024x600", [], {}), "display": ("1280x800", [], {"GDK_SCALE": "2"}), "text": ("1280x800", ["text=2"], {}),
    "rtl": ("1280x800", ["rtl"], {"GDK_SCALE": "2"}), "german": ("1280x800", [GERMAN], {"GDK_SCALE": "2"}),
    "german-text": ("1280x800", ["text=2", GERMAN], {})}
#: 253 characters, the maximum for a name (RFC 1035).
LONG_HOST = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 23 + ".evil.example"


class Shower:
    """Shows windows without a broker, with rig/agent_windows.py. `shower("trust")` shows that window, and returns its description. The
    screen reader takes longer for each window that this program has closed."""

    def __init__(self, desktop, *words, environment=None):
        self.desktop = desktop
        self.process = desktop.start(
            "/usr/bin/python3", str(pathlib.Path(__file__).parent / "rig" / "agent_windows.py"), *words, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, environment=environment)

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        assert is_ready(self.process.stdout, 20), self.desktop.log("python3")
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)

    def __call__(self, name, expand=False, space=None, **params):
        """`params` and `space` replace parameters of a question, and members of its protection space."""
        message = {**ALL[name], "expand": expand}
        if space:
            params["protectionSpace"] = {**message["params"]["protectionSpace"], **space}
        return self.send({**message, "params": {**message["params"], **params}} if params else message)


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    desktop = Desktop(tmp_path_factory.mktemp("small"), size="x".join(map(str, SCREEN)))
    yield desktop
    desktop.end()


@pytest.fixture(scope="module")
def show(screen):
    return Shower(screen)


@pytest.fixture(scope="module", params=LOOKS)
def looks(request, tmp_path_factory):
    size, words, environment = LOOKS[request.param]
    desktop = Desktop(tmp_path_factory.mktemp("looks"), size=size, scheme="dark" if GERMAN in words else "light")
    yield request.param, desktop, Shower(desktop, *words, environment=environment)
    desktop.end()


@pytest.mark.parametrize("name, expand", [
    (name, expand) for name, message in ALL.items() for expand in ([False, True] if "method" in message else [False])])
def test_every_window_is_whole_and_each_key_is_for_one_thing(looks, name, expand):
    look, desktop, show = looks
    window = show(name, expand)
    desktop.picture(f"{look}-{name}{'-details' if expand else ''}")
    assert window["outside"] == [] and window["cut"] == []
    assert window["hyphenated"] == [] or name in WITHOUT_DATA
    assert not window["heading_scrolls"], "the host is always visible"
    # Questions fit on the screen without the panels of a desktop.
    is_question, (width, height) = "method" in ALL[name], window["screen"]
    assert window["width"] <= width and window["height"] <= height - (is_question and (40 if look == "small" else 32)), window
    # A dialogue of libadwaita has its buttons twice, beside and below each other, or no keys.
    keys = {tuple(one) for one in window["keys"]}
    assert len({letter for letter, _ in keys}) == len(keys) >= 2 * is_question, keys


def test_widgets_below_are_reached_by_tab(screen, show):
    """The contents scroll to the widget with the focus; the buttons stay visible."""
    show("trust-changed")
    screen.hear("Trust", role="push button", sensitive=True)
    screen.key("alt+a")
    screen.hear("Always", role="push button", pressed=True)
    before = screen.picture("small-trust-above").read_bytes()
    screen.key("Tab")
    for _ in range(8):
        if screen.hear("", focused=True)["name"].endswith(("Always", "This Time", "For This Session")):
            break
        screen.key("Tab")
    else:
        raise AssertionError(screen.summary())
    assert screen.picture("small-trust-below").read_bytes() != before


def test_an_underscore_in_a_name_is_not_a_mnemonic(screen, show):
    proposed = {"user": "bob_the_builder", "hasPassword": True, "source": "keyring"}
    titles = [title for _, title in show("login-saved", proposedCredential=proposed)["keys"]]
    assert "Use the Saved Login of bob_the_builder" in titles


def test_known_users_are_selected_with_the_arrow_keys(screen, show):
    show("login-many-users")
    screen.hear("Saved logins: choose one, or type another", role="list", sensitive=True)
    screen.key("alt+a")
    screen.hear("“user_0_”, saved in the keyring", role="list item", focused=True)
    above = screen.picture("known-above").read_bytes()
    for _ in range(15):
        screen.key("Down")
    screen.hear("“CORP\\user_15_xxx", role="list item", focused=True)
    assert screen.picture("known-below").read_bytes() != above
    screen.key("Tab")
    screen.hear("User", role="text", focused=True)


@pytest.mark.parametrize("name", [name for name, message in WINDOWS.items() if "protectionSpace" in message.get("params", {})])
def test_a_long_host_is_whole_without_hyphens_and_makes_no_window_wider(screen, show, name):
    params = WINDOWS[name]["params"]
    long = {
        "url": f"https://{LONG_HOST}/{'x' * 3000}", "space": {"host": LONG_HOST, "realm": "Realm_" * 50},
        "requester": {"name": "My Bank " * 20, "pid": 4711, "subject": "exe:/opt/" + "very_long/" * 60 + "prog", "restricted": True}}
    if name == "login-saved":
        long["proposedCredential"] = {**params["proposedCredential"], "user": "bob_" * 40}
    if login := params.get("login"):
        long["login"] = {**login, "issuer": f"https://{LONG_HOST}/", "scopes": ["scope_" * 50] * 20}
        if "userCode" in login:
            long["login"].update(url=f"https://{LONG_HOST}/{'x' * 3000}", userCode="WDJB-" * 50)
    window = show(name, **long)
    screen.hear(f"Log in at {LONG_HOST}" if login else LONG_HOST)
    screen.picture(f"long-{name}")
    assert window["cut"] == [] and window["hyphenated"] == []
    assert window["width"] <= 560 and window["height"] <= SCREEN[1] - 40, window


def test_a_long_host_is_whole_among_the_saved_ones(screen, show):
    window = show.send({"row": [f"https://{LONG_HOST}", "“bob”, saved in the keyring"]})
    screen.hear(LONG_HOST)
    screen.picture("long-row")
    assert window["cut"] == [] and window["hyphenated"] == []
