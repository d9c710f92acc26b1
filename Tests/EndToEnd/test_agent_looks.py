"""How the agent's windows look: their keys, and that they fit on a small screen."""
import json
import pathlib
import subprocess

import pytest

from rig.broker import ROOT
from rig.desktop import Desktop
from rig.waiting import is_ready

EXAMPLES = ROOT / "Protocol" / "examples"
KEEPING = {"persistenceAllowed": ["none", "forSession", "permanent"]}
PROPOSED = {
    "proposedCredential": {"user": "bob_the_builder", "hasPassword": True, "source": "keyring"}, "previousFailureCount": 0}
#: As many as a challenge lists, with names of every length.
KNOWN = [{"id": f"session:{number}", "user": f"user_{number}_" + "x" * (number * 16), "domain": "CORP" if number % 2 else "",
          "source": "session" if number % 3 else "keyring"} for number in range(16)]
WINDOWS = {
    "log-in": ("auth.challenge/ntlm", {**KEEPING, **PROPOSED}), "token": ("auth.challenge/bearer", {**KEEPING, **PROPOSED}),
    "known": ("auth.challenge/known-users", {**KEEPING, "knownUsers": KNOWN}),
    "certificate": ("auth.challenge/client-certificate", KEEPING), "trust": ("auth.challenge/server-trust-changed", KEEPING),
    "proxy": ("auth.challenge/proxy", KEEPING), "consent": ("auth.confirm/sandbox", {"allows": ["once", "session", "always"]})}
SCREEN = (1024, 600)
#: 253 characters, the most that a name has.
LONG_HOST = "www.mybank.example-login." + ".".join(letter * 63 for letter in "abc") + "." + "d" * 23 + ".evil.example"


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    desktop = Desktop(tmp_path_factory.mktemp("small"), size="x".join(map(str, SCREEN)))
    yield desktop
    desktop.end()


@pytest.fixture(scope="module")
def show(screen):
    """`show("trust")` shows that window; what is known of it."""
    shower = screen.start(
        "/usr/bin/python3", str(pathlib.Path(__file__).parent / "rig" / "agent_windows.py"), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE)

    def one(kind, row=None, **more):
        name, changes = WINDOWS[kind]
        example = json.loads((EXAMPLES / f"{name}.json").read_text())
        params = {**example["params"], **changes}
        params["protectionSpace"] = {**params["protectionSpace"], **more.pop("space", {})}
        message = {"row": row} if row else {"id": 1, "method": example["method"], "params": {**params, **more}}
        shower.stdin.write(json.dumps(message).encode() + b"\n")
        shower.stdin.flush()
        assert is_ready(shower.stdout, 20), screen.log("python3")
        return json.loads(shower.stdout.readline())

    return one


@pytest.mark.parametrize("kind", WINDOWS)
def test_every_key_of_a_window_is_for_one_thing_and_the_window_fits_on_a_small_screen(screen, show, kind):
    window = show(kind)
    letters = [letter for letter, _ in window["keys"]]
    assert len(letters) > 3 and len(set(letters)) == len(letters), window["keys"]
    screen.hear("", role="push button", sensitive=True)
    screen.picture(f"small-{kind}")
    # Less the bars of a desktop.
    assert window["width"] <= SCREEN[0] and window["height"] <= SCREEN[1] - 40, window


def test_what_is_below_is_reached_by_tab(screen, show):
    """The contents scroll to what has the focus; the buttons stay."""
    show("trust")
    screen.hear("Trust", role="push button", sensitive=True)
    screen.key("alt+a")
    screen.hear("Always", role="push button", pressed=True)
    before = screen.picture("small-trust-above").read_bytes()
    screen.key("Tab")
    for _ in range(8):
        if screen.hear("", focused=True)["name"].endswith(("Always", "This Time", "Until I Log Out")):
            break
        screen.key("Tab")
    else:
        raise AssertionError(screen.summary())
    assert screen.picture("small-trust-below").read_bytes() != before


def test_an_underscore_in_a_name_marks_no_key(screen, show):
    titles = [title for _, title in show("log-in")["keys"]]
    assert "Use the Stored Log-In of bob_the_builder" in titles


def test_known_users_are_gone_through_with_the_arrows(screen, show):
    show("known")
    screen.hear("Log In", role="push button")
    screen.key("alt+a")
    screen.hear("“user_0_”, kept in the keyring", role="list item", focused=True)
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
    window = show(kind, **long)
    screen.hear(LONG_HOST)
    screen.picture(f"long-{kind}")
    assert window["cut"] == [] and window["hyphenated"] == []
    assert window["width"] <= 560 and window["height"] <= SCREEN[1] - 40, window


def test_a_long_host_is_whole_among_the_saved_ones(screen, show):
    window = show("log-in", row=[f"https://{LONG_HOST}", "“bob”, kept in the keyring"])
    screen.hear(LONG_HOST)
    screen.picture("long-row")
    assert window["cut"] == [] and window["hyphenated"] == []
