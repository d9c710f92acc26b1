"""The names and roles of all widgets of the agent, as a screen reader gets them."""
import collections
import contextlib
import re
import sys
import threading

import pytest

from rig.broker import ROOT
from rig.window_examples import STATES, WINDOWS
from test_agent_looks import Shower

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from watchword_agent.fallbacks.dialogue import Stopper, Withdrawn  # noqa: E402
from watchword_agent.fallbacks.zenity import Zenity  # noqa: E402

pytestmark = pytest.mark.tier3("windows")

#: The roles that the kinds of widgets may have. GTK 4.8 reports a toggle button as a push button with the state "pressed".
ROLES = {
    "AdwViewSwitcherButton": {"page tab"}, "GtkToggleButton": {"push button", "toggle button"},
    "GtkExpander": {"push button", "toggle button"}, "GtkLinkButton": {"link"}, "GtkCheckButton": {"check box", "radio button"},
    "GtkSwitch": {"check box", "toggle button", "switch"}, "GtkDropDown": {"combo box"}, "AdwComboRow": {"combo box"},
    "GtkSpinButton": {"spin button"}, "GtkSearchEntry": {"entry"}, "GtkPasswordEntry": {"password text"}, "GtkEntry": {"text"},
    "GtkMenuButton": {"push button", "toggle button"}, "GtkButton": {"push button"}, "GtkListBox": {"list"},
    "GtkListBoxRow": {"list item"}, "GtkScrolledWindow": {"scroll pane"}, "GtkLabel": {"label"}}
#: The names that a screen reader derives for widgets without an accessible name.
NAMELESS = re.compile(r"\s*|(Gtk|Adw)\w*")
#: The dialogues of libadwaita, which contain their buttons twice: side by side, and below each other.
WITH_TWO_LAYOUTS = ("Forget This Login?", "Lock Saved Logins?", "Unlock Saved Logins")
#: The buttons for the same as a button of the title bar with the same name, by the title of the window.
SAME_AS_ABOVE = (("Prompt", "Close"), ("Saved Logins", "Unlock"))
#: The widgets of zenity that are read with their contents: it gives them no names.
OF_ZENITY = ("scroll pane", "table")


@pytest.fixture
def show(desktop):
    """A program for one window."""
    show = Shower(desktop)
    yield show
    show.close()


def roles_of(types):
    """Returns the roles that a widget with these types may have."""
    found = next((ROLES[name] for name in types if name in ROLES), None)
    assert found, f"no role is known for {types[0]}: add its kind to ROLES"
    return found


def problems(heard, controls):
    """Returns the problems of the widgets of a window that is `heard`; it has these `controls`."""
    operated = [one for one in heard if one["focusable"]]
    found = [f"{one['role']} {one['name']!r} has no name" for one in heard
             if NAMELESS.fullmatch(one["name"]) and (one["focusable"] or one["name"])]
    found += [f"{one['role']} {one['name']!r} has a mnemonic in its name" for one in operated if "_" in one["name"]]
    same = collections.Counter((one["role"], one["name"]) for one in operated if one["role"] not in ("scroll pane", "page tab")
                               and one["window"] not in WITH_TWO_LAYOUTS and (one["window"], one["name"]) not in SAME_AS_ABOVE)
    found += [f"{count} widgets are a {role} {name!r}" for (role, name), count in same.items() if count > 1]
    if len(operated) != len(controls):
        return [*found, f"{len(operated)} widgets are reported, {len(controls)} exist: {operated} {controls}"]
    return found + [f"{one['name']!r} is a {one['role']}, but a {types[0]}" for one, types in zip(operated, controls)
                    if one["role"] not in roles_of(types)]


def widgets(desktop, show, name, expand):
    """Shows a window; returns its widgets, and its controls as the program knows them."""
    window = show.send({**{**WINDOWS, **STATES}[name], "expand": expand})
    desktop.hear("", role="push button", sensitive=True)
    title = next(one["window"] for one in desktop.heard() if one["role"] in ("dialog", "frame") and one["name"] == window["title"])
    return [one for one in desktop.heard() if one["window"] == title], window["controls"]


@pytest.mark.parametrize("expand", [False, True], ids=["closed", "expanded"])
@pytest.mark.parametrize("name", [*WINDOWS, *STATES])
def test_every_widget_has_a_name_and_the_role_of_its_kind(desktop, show, name, expand):
    heard, controls = widgets(desktop, show, name, expand)
    assert heard[0]["role"] == ("frame" if heard[0]["name"] == "Saved Logins" else "dialog") and len(controls) > 2
    assert problems(heard, controls) == []


ZENITY = {
    "line": (lambda zenity: zenity.line("Log in to a.example", "User", ""), "text", ["OK", "Cancel"]),
    "secret": (lambda zenity: zenity.secret("Log in to a.example", "Password"), "password text", ["OK", "Cancel"]),
    "yes or no": (lambda zenity: zenity.choose("Trust it?", [("yes", "Trust")], "No"), "label", ["Trust", "No"]),
    "list": (lambda zenity: zenity.choose("How long?", [("a", "Once"), ("b", "Always")], "No"), "table cell", ["OK", "No", "Once", "Always"])}


@pytest.mark.parametrize("kind", ZENITY)
def test_zenity_names_what_it_asks_for(desktop, monkeypatch, kind):
    for name, value in desktop.environment.items():
        monkeypatch.setenv(name, value)
    asked, role, names = ZENITY[kind]
    stopper = Stopper()

    def ask():
        with contextlib.suppress(Withdrawn):
            asked(Zenity(stopper))

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        desktop.hear(names[-1], focusable=True)
        heard = [one for one in desktop.heard() if one["focusable"] and one["role"] not in OF_ZENITY]
        assert all(one["name"] or any(one["labels"]) for one in heard), heard
        assert role in [one["role"] for one in heard] and set(names) <= {one["name"] for one in heard}
    finally:
        stopper.stop()
        thread.join(20)
        stopper.close()
