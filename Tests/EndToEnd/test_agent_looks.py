"""The layout of the agent's windows: their Alt keys, and that they fit on a small screen."""
import json
import pathlib
import subprocess

import pytest

from rig.broker import ROOT
from rig.desktop import Desktop
from rig.waiting import is_ready

pytestmark = pytest.mark.tier3("windows")

EXAMPLES = ROOT / "Protocol" / "examples"
KEEPING = {"persistenceAllowed": ["none", "forSession", "permanent"]}
PROPOSED = {
    "proposedCredential": {"user": "bob_the_builder", "hasPassword": True, "source": "keyring"}, "previousFailureCount": 0}
#: The number of logins that a challenge can list, with names of every length.
KNOWN = [{"id": f"session:{number}", "user": f"user_{number}_" + "x" * (number * 16), "domain": "CORP" if number % 2 else "",
          "source": "session" if number % 3 else "keyring"} for number in range(16)]
WINDOWS = {
    "login": ("auth.challenge/ntlm", {**KEEPING, **PROPOSED}), "token": ("auth.challenge/bearer", {**KEEPING, **PROPOSED}),
    "browser-login": ("auth.challenge/browser-login", {}), "device-login": ("auth.challenge/device-login", {}),
    "known": ("auth.challenge/known-users", {**KEEPING, "knownUsers": KNOWN}),
    "certificate": ("auth.challenge/client-certificate", KEEPING), "trust": ("auth.challenge/server-trust-changed", KEEPING),
    "proxy": ("auth.challenge/proxy", KEEPING), "consent": ("auth.confirm/sandbox", {"allows": ["once", "session", "always"]}),
    "script": ("auth.confirm/script", {})}
SCREEN = (1024, 600)
GERMAN = f"po={ROOT}/contrib/agent/po/de.po"
LARGE = {"display": ([], {"GDK_SCALE": "2"}), "text": (["text=2"], {}), "rtl": (["rtl"], {"GDK_SCALE": "2"}),
         "german": ([GERMAN], {"GDK_SCALE": "2"}), "german-text": (["text=2", GERMAN], {})}
#: 253 characters, the maximum for a name (RFC 1035).
LONG_HOST = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 23 + ".evil.example"


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    desktop = Desktop(tmp_path_factory.mktemp("small"), size="x".join(map(str, SCREEN)))
    yield desktop
    desktop.end()


class Shower:
    """Shows windows without a broker, with rig/agent_windows.py. `shower("trust")` shows that window, and returns its description."""

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

    def __call__(self, kind, row=None, expand=False, **more):
        name, changes = WINDOWS[kind]
        example = json.loads((EXAMPLES / f"{name}.json").read_text())
        params = {**example["params"], **changes}
        params["protectionSpace"] = {**params["protectionSpace"], **more.pop("space", {})}
        message = {"row": row} if row else {"id": 1, "method": example["method"], "params": {**params, **more}, "expand": expand}
        return self.send(message)


@pytest.fixture(scope="module")
def show(screen):
    return Shower(screen)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    desktop = Desktop(tmp_path_factory.mktemp("german"), scheme="dark")
    yield desktop, Shower(desktop, GERMAN)
    desktop.end()


@pytest.fixture(scope="module", params=LARGE)
def large(request, tmp_path_factory):
    """Windows at 200 %, by the scale of the display or the size of text."""
    words, environment = LARGE[request.param]
    desktop = Desktop(tmp_path_factory.mktemp("large"), size="1280x800")
    yield request.param, desktop, Shower(desktop, *words, environment=environment)
    desktop.end()


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_key_of_a_window_is_for_one_thing_and_the_window_fits_on_a_small_screen(screen, show, kind):
    window = show(kind)
    letters = [letter for letter, _ in window["keys"]]
    assert len(letters) > 3 and len(set(letters)) == len(letters), window["keys"]
    screen.hear("", role="push button", sensitive=True)
    screen.picture(f"small-{kind}")
    # The size of the screen without the panels of a desktop.
    assert window["width"] <= SCREEN[0] and window["height"] <= SCREEN[1] - 40, window


@pytest.mark.parametrize("expand", [False, True], ids=["closed", "expanded"])
@pytest.mark.parametrize("kind", WINDOWS)
def test_nothing_is_cut_off_at_200_percent(large, kind, expand):
    name, desktop, show = large
    window = show(kind, expand=expand)
    desktop.picture(f"{name}-{kind}{'-details' if expand else ''}")
    assert window["outside"] == [] and window["cut"] == []
    assert not window["heading_scrolls"], "the host is always visible"
    width, height = window["screen"]
    assert window["width"] <= width and window["height"] <= height - 32, window


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_key_is_for_one_thing_in_german_too(german, kind):
    desktop, show = german
    window = show(kind, expand=True)
    letters = [letter for letter, _ in window["keys"]]
    assert len(letters) > 3 and len(set(letters)) == len(letters), window["keys"]
    desktop.hear("", role="push button", sensitive=True)
    desktop.picture(f"german-{kind}")


def test_widgets_below_are_reached_by_tab(screen, show):
    """The contents scroll to the widget with the focus; the buttons stay visible."""
    show("trust")
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
    titles = [title for _, title in show("login")["keys"]]
    assert "Use the Saved Login of bob_the_builder" in titles


def test_known_users_are_selected_with_the_arrow_keys(screen, show):
    show("known")
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


@pytest.mark.parametrize("kind", WINDOWS)
def test_a_long_host_is_whole_without_hyphens_and_makes_no_window_wider(screen, show, kind):
    long = {
        "url": f"https://{LONG_HOST}/{'x' * 3000}", "space": {"host": LONG_HOST, "realm": "Realm_" * 50},
        "requester": {"name": "My Bank " * 20, "pid": 4711, "subject": "exe:/opt/" + "very_long/" * 60 + "prog", "restricted": True}}
    if "proposedCredential" in WINDOWS[kind][1]:
        long["proposedCredential"] = {**PROPOSED["proposedCredential"], "user": "bob_" * 40}
    login = json.loads((EXAMPLES / f"{WINDOWS[kind][0]}.json").read_text())["params"].get("login")
    if login:
        long["login"] = {**login, "issuer": f"https://{LONG_HOST}/", "scopes": ["scope_" * 50] * 20}
        if "userCode" in login:
            long["login"].update(url=f"https://{LONG_HOST}/{'x' * 3000}", userCode="WDJB-" * 50)
    window = show(kind, **long)
    screen.hear(f"Log in at {LONG_HOST}" if login else LONG_HOST)
    screen.picture(f"long-{kind}")
    assert window["cut"] == [] and window["hyphenated"] == []
    assert window["width"] <= 560 and window["height"] <= SCREEN[1] - 40, window


def test_a_long_host_is_whole_among_the_saved_ones(screen, show):
    window = show("login", row=[f"https://{LONG_HOST}", "“bob”, saved in the keyring"])
    screen.hear(LONG_HOST)
    screen.picture("long-row")
    assert window["cut"] == [] and window["hyphenated"] == []
