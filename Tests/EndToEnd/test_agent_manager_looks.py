"""The layout and the translation of the agent's manager, its dialogues, and the list of certificates."""
import json
import shutil

import pytest

from rig.desktop import Desktop
from test_agent_looks import EXAMPLES, GERMAN, KEEPING, LARGE, Shower
from test_agent_translations import check, pseudo, strings  # noqa: F401

pytestmark = pytest.mark.tier3("windows")

SPACE = {"protocol": "https", "host": "intranet.example", "port": 443, "realm": "Staff", "isProxy": False, "authenticationMethod": "httpBasic"}
LOGINS = [{"id": f"{source}:{user}", "type": "password", "source": source, "user": user, "protectionSpace": SPACE, "isDefault": user == "alice"}
          for source, user in [("keyring", "alice"), ("keyring", "bob"), ("session", "carol_" + "x" * 90)]]
GRANTS = [{"id": f"g{number}", "subject": {"id": subject}, "protectionSpace": SPACE, "user": "bob", "allow": allow}
          for number, (subject, allow) in enumerate([
              ("flatpak:org.example.Maps", "always"), ("exe:/opt/" + "very_long/" * 60 + "prog", "no"), ("unit:backup.service", "session")])]
VIEWS = {**{page: {"page": page} for page in ("saved", "permissions", "settings")},
         **{name: {"page": "saved", "dialogue": name} for name in ("add", "lock", "unlock")}}


def message(view):
    keyring = {"state": "locked", "reason": "the keyring is locked"}
    return {"saved": {"credentials": LOGINS, "keyring": keyring}, "events": [], "grants": GRANTS, **VIEWS[view]}


def certificate_question():
    example = json.loads((EXAMPLES / "auth.challenge/client-certificate.json").read_text())
    params = {**example["params"], **KEEPING}
    params["protectionSpace"] = {**params["protectionSpace"], "distinguishedNames": ["CN=Test authority"]}
    return {"id": 1, "method": example["method"], "params": params, "expand": False}


def with_certificates(desktop, certificates):
    """Puts certificates into ~/.pki of the desktop's user."""
    (desktop.folder / ".pki").mkdir()
    for name in ("client.pem", "client.key", "stranger.pem", "stranger.key", "expired-client.pem", "expired-client.key", "client.p12"):
        shutil.copy(certificates / name, desktop.folder / ".pki" / name)
    return desktop


@pytest.fixture(scope="module", params=["usual", *LARGE])
def shown(request, tmp_path_factory, certificates):
    """Windows in the usual size, and at 200 % by the scale of the display or the size of text, also in German."""
    words, environment = LARGE.get(request.param, ([], {}))
    desktop = Desktop(tmp_path_factory.mktemp("large"), size="1280x800", scheme="dark" if GERMAN in words else "light")
    yield request.param, with_certificates(desktop, certificates), Shower(desktop, *words, environment=environment)
    desktop.end()


def check_layout(shown, name, window):
    size, desktop, _ = shown
    desktop.picture(f"{size}-{name}")
    assert window["outside"] == [] and window["cut"] == [] and window["hyphenated"] == []
    width, height = window["screen"]
    assert window["width"] <= width and window["height"] <= height, window
    # A dialogue has its buttons twice: beside and below each other.
    keys = {tuple(one) for one in window["keys"]}
    assert len({letter for letter, _ in keys}) == len(keys), keys


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_cut_off_and_each_key_is_for_one_thing(shown, view):
    _, desktop, show = shown
    window = show.send(message(view))
    desktop.hear("", focused=True)
    check_layout(shown, view, window)


def test_the_list_of_certificates_fits(shown):
    _, desktop, show = shown
    window = show.send(certificate_question())
    desktop.hear("Alice Client", role="list item", focused=True)
    check_layout(shown, "certificates", window)


@pytest.fixture(scope="module")
def translated(tmp_path_factory, pseudo, certificates):  # noqa: F811
    desktop = Desktop(tmp_path_factory.mktemp("pseudo"))
    yield with_certificates(desktop, certificates), Shower(desktop, f"po={pseudo}")
    desktop.end()


@pytest.mark.parametrize("view", VIEWS)
def test_every_text_of_the_manager_is_translated(translated, view):
    desktop, show = translated
    # Shortened texts could not be told from untranslated ones.
    listed = {"saved": {**message(view)["saved"], "credentials": LOGINS[:2]}, "grants": [GRANTS[0], GRANTS[2]]}
    window = show.send({**message(view), **listed})
    place = str(desktop.folder / "config" / "watchword" / "config.toml")
    check(desktop, window, [*strings([LOGINS, GRANTS]), "https", "the keyring is locked", place])


def test_every_text_of_the_list_of_certificates_is_translated(translated):
    desktop, show = translated
    question = certificate_question()
    window = show.send(question)
    names = ["Alice Client", "Late Client", "Stranger Client", "client.p12", "Test authority", "Another authority",
             *(f"~/.pki/{name}" for name in ("client.pem", "stranger.pem", "expired-client.pem", "client.p12"))]
    check(desktop, window, [*strings(question["params"]), *names])
