"""The agent's windows: their Alt keys, that they fit on a screen, that nothing is cut off at 200 %, what a screen reader gets of them, and
the notifications of unfocused ones."""
import collections
import contextlib
import json
import re
import subprocess
import sys
import threading

import pytest

from rig.broker import PROGRAMS, ROOT
from rig.desktop import Desktop
from rig.waiting import is_ready
from rig.window_examples import FULL, LONG_STATES, STATES, WINDOWS

sys.path.insert(0, str(ROOT / "contrib" / "agent"))

from watchword_agent.fallbacks.dialogue import Stopper, Withdrawn  # noqa: E402
from watchword_agent.fallbacks.zenity import Zenity  # noqa: E402

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
    """Shows windows without a broker, with programs/agent_windows.py. `shower("trust")` shows that window, and returns its description. The
    screen reader takes longer for each window that this program has closed."""

    def __init__(self, desktop, *words, environment=None):
        self.desktop = desktop
        self.process = desktop.start(
            "/usr/bin/python3", str(PROGRAMS / "agent_windows.py"), *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            environment=environment)

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
def showing(desktop):
    """A program for one window."""
    showing = Shower(desktop)
    yield showing
    showing.close()


def roles_of(types):
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


def widgets(desktop, showing, name, expand):
    """Shows a window; returns its widgets, and its controls as the program knows them."""
    window = showing.send({**{**WINDOWS, **STATES}[name], "expand": expand})
    desktop.hear("", role="push button", sensitive=True)
    title = next(one["window"] for one in desktop.heard() if one["role"] in ("dialog", "frame") and one["name"] == window["title"])
    return [one for one in desktop.heard() if one["window"] == title], window["controls"]


@pytest.mark.parametrize("expand", [False, True], ids=["closed", "expanded"])
@pytest.mark.parametrize("name", [*WINDOWS, *STATES])
def test_every_widget_has_a_name_and_the_role_of_its_kind(desktop, showing, name, expand):
    heard, controls = widgets(desktop, showing, name, expand)
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


class Service:
    """The notification service of a desktop; see programs/notifications.py."""

    def __init__(self, desktop):
        # Without a buffer: `is_ready` does not see lines that are already read.
        self.process = desktop.start("/usr/bin/python3", str(PROGRAMS / "notifications.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        assert self.next() == {"ready": True}

    def next(self):
        assert is_ready(self.process.stdout, 20), "no notification"
        return json.loads(self.process.stdout.readline())

    def click(self, number):
        self.process.stdin.write(f"{number}\n".encode())
        self.process.stdin.flush()


@pytest.fixture(scope="module")
def service(desktop):
    return Service(desktop)


@pytest.fixture(scope="module")
def behind(desktop, service):
    """Shows windows without the focus."""
    return Shower(desktop, "behind")


def test_an_unfocused_question_has_a_notification_until_it_is_answered(service, behind):
    behind("login-ntlm-saved")
    shown = service.next()
    assert (shown["summary"], shown["body"]) == ("Log in to intranet.example", "Asked by mytool")
    assert shown["actions"] == ["default", "Answer"]
    behind("trust-changed")
    # The first is withdrawn once its number is known.
    closed, following = sorted([service.next(), service.next()], key=lambda said: "shown" in said)
    assert closed == {"closed": shown["shown"]}
    shown = following
    assert shown["summary"] == "Is this really intranet.example?"
    service.click(shown["shown"])
    assert service.next() == {"closed": shown["shown"]}, "the window came to the front"


def test_the_program_name_is_escaped_in_a_notification(service, behind):
    behind("login-ntlm-saved", requester={"name": "x", "pid": 7, "subject": "exe:/tmp/<b>&Bank"})
    assert service.next()["body"] == "Asked by &lt;b&gt;&amp;Bank"


def test_a_window_with_the_focus_causes_no_notification(tmp_path):
    desktop = Desktop(tmp_path / "front")
    try:
        service, show = Service(desktop), Shower(desktop)
        show("login-ntlm-saved")
        desktop.hear("Password", role="password text", focused=True)
        desktop.hear("Log In", role="push button", sensitive=True)
        # The initial delay has passed. The next call of the service is the test's own.
        desktop.run("gdbus", "call", "--session", "--dest", "org.freedesktop.Notifications", "--object-path",
                    "/org/freedesktop/Notifications", "--method", "org.freedesktop.Notifications.CloseNotification", "77")
        assert service.next() == {"closed": 77}
    finally:
        desktop.end()
