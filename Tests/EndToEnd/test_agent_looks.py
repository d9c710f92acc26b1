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
WINDOWS = {
    "log-in": ("auth.challenge/ntlm", {**KEEPING, **PROPOSED}), "token": ("auth.challenge/bearer", {**KEEPING, **PROPOSED}),
    "certificate": ("auth.challenge/client-certificate", KEEPING), "trust": ("auth.challenge/server-trust-changed", KEEPING),
    "proxy": ("auth.challenge/proxy", KEEPING), "consent": ("auth.confirm/sandbox", {"allows": ["once", "session", "always"]})}
SCREEN = (1024, 600)


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

    def one(kind):
        name, changes = WINDOWS[kind]
        example = json.loads((EXAMPLES / f"{name}.json").read_text())
        message = {"id": 1, "method": example["method"], "params": {**example["params"], **changes}}
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
