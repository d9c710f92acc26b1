"""The agent's translations: the catalogues are complete, and every text that a window shows is translated; and pictures of every window in
every variant, which are saved in the folder of the test."""
import gettext
import os
import re
import shutil
import subprocess

import pytest
from PIL import Image

from programs.catalogues import compiled
from rig.broker import ROOT
from rig.window_examples import FULL, PICTURES, PO, STATES, VARIANTS, WINDOWS, save, sheet, take
from test_agent import question
from test_agent_looks import Shower
from test_agent_texts import KINDS, hostile

from watchword_agent import messages, texts  # noqa: E402
from watchword_agent.fallbacks import conversation  # noqa: E402

CATALOGUES = sorted(PO.glob("*.po"))
#: The widgets of GTK itself, which it translates.
OF_GTK = ("Close", "Maximize", "Minimize", "Caps Lock is on", "Search…", "Clear entry", "(None)")


@pytest.fixture(scope="module")
def pseudo(tmp_path_factory):
    """A catalogue that puts each message into brackets."""
    folder = tmp_path_factory.mktemp("po")
    english, marked = folder / "en.po", folder / "pseudo.po"
    subprocess.run(["msginit", "--no-translator", "--locale=en", f"--input={PO}/watchword-agent.pot", f"--output-file={english}"], check=True)
    subprocess.run(["msgfilter", "--keep-header", f"--input={english}", f"--output-file={marked}", "sed", "-z", "s/^/⟦/; s/$/⟧/"], check=True)
    return marked


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the agent's sources with compiled catalogues."""
    copy = shutil.copytree(PO.parent, tmp_path_factory.mktemp("tree") / "agent", ignore=shutil.ignore_patterns(".build-locale"))
    subprocess.run([copy / "po" / "update"], check=True)
    return copy


def strings(value):
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, (list, tuple)):
        return [text for one in value for text in strings(one)]
    return [value.strip(), value.rpartition("/")[2], *re.split("[:=\n]", value)] if isinstance(value, str) else []


def untranslated(text, data):
    """Returns the rest of a text without translations, the data of the question, and fingerprints."""
    while (inner := re.sub("⟦[^⟦⟧]*⟧", "", text)) != text:
        text = inner
    for one in sorted(filter(None, data), key=len, reverse=True):
        text = text.replace(one, "")
    return re.sub(r"\b([0-9A-F]{2}[:\s]?){32}\b", "", text)


def check(desktop, window, data):
    """Checks the texts of the widgets, and what a screen reader gets of them."""
    desktop.hear("⟦")
    said = [*window["texts"], *(one["name"] for one in desktop.heard() if one["name"] not in OF_GTK)]
    left = {text: rest for text in said if text not in OF_GTK and re.search("[^\\W\\d_]", rest := untranslated(text, data))}
    assert left == {} and sum("⟦" in text for text in said) > 4, (left, said)


def test_the_template_is_up_to_date():
    subprocess.run([PO / "update", "--check"], check=True)


def test_a_new_message_makes_the_catalogues_out_of_date(tree, tmp_path):
    copy = shutil.copytree(tree, tmp_path / "agent")
    with open(copy / "watchword_agent" / "texts.py", "a") as texts_file:
        texts_file.write('_("a new message")\n')
    checked = subprocess.run([copy / "po" / "update", "--check"], capture_output=True, text=True)
    assert checked.returncode == 1 and "out of date; run contrib/agent/po/update: de.po" in checked.stderr
    subprocess.run([copy / "po" / "update"], check=True)
    assert all('msgid "a new message"' in file.read_text() for file in (copy / "po").glob("*.po*"))


@pytest.mark.parametrize("file", CATALOGUES, ids=lambda file: file.stem)
def test_a_catalogue_is_complete_and_has_the_placeholders_and_alt_keys_of_the_messages(file):
    assert "de" in [one.stem for one in CATALOGUES]
    checked = subprocess.run(["msgfmt", "--check", "--check-accelerators=_", "--statistics", "--output-file=/dev/null", file],
                             capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
    assert checked.returncode == 0 and re.fullmatch(r"\d+ translated messages\.\n", checked.stderr), checked.stderr


@pytest.mark.parametrize("environment, found", [
    ({"LANG": "de_AT.UTF-8"}, "_Passwort"), ({"LANG": "de_DE", "LC_ALL": "C"}, "_Password"), ({}, "_Password"),
    ({"LANG": "en_GB.UTF-8", "LANGUAGE": "fr:de_DE@euro"}, "_Passwort"), ({"LC_MESSAGES": "ar_EG.UTF-8", "LANG": "de_DE"}, "_Password"), ({"LANG": "he_IL.UTF-8"}, "_סיסמה")])
def test_the_language_is_that_of_the_environment(tree, environment, found):
    """Without a catalogue the texts are English."""
    said = subprocess.run(["/usr/bin/python3", "-c", "from watchword_agent.messages import _; print(_('_Password'))"], cwd=tree,
                          capture_output=True, text=True, env={"PYTHONDONTWRITEBYTECODE": "1", **environment})
    assert said.stdout == f"{found}\n", said


@pytest.fixture
def use():
    yield messages.use
    messages.use(gettext.NullTranslations())


def test_counts_dates_and_quotations_are_those_of_the_language(use):
    use(compiled(PO / "de.po"))
    assert [texts.waiting(count) for count in (0, 1, 2)] == ["", "1 weitere Frage", "2 weitere Fragen"]
    assert texts.date("2026-03-21T10:21:24Z") == "21. März 2026"
    assert texts.heading(question("auth.challenge/proxy")).startswith("Beim Proxy ")
    # A quotation cannot be ended from inside in any language.
    assert texts.quoted("Staff“ und „sicher") == "„Staff' und 'sicher“"


@pytest.mark.parametrize("name", KINDS)
def test_the_fallbacks_have_no_text_that_is_not_translated(use, pseudo, name):
    use(compiled(pseudo))
    for asked in (question(name), hostile(name)):
        for line in conversation._lines(asked):
            data = [f"  {issuer}" for issuer in texts.issuers(asked)] + [texts.fingerprint(one.sha256) for one in asked.chain]
            assert not line.text or "⟦" in line.text or line.text in data, line


@pytest.mark.tier3("windows")
@pytest.mark.parametrize("name", [*WINDOWS, *STATES, *FULL])
def test_every_text_of_a_window_is_translated(desktop, pseudo, name):
    show = Shower(desktop, f"po={pseudo}")
    window = show(name, expand=True)
    message = {**WINDOWS, **STATES, **FULL}[name]
    data = strings([message.get(part, []) for part in ("params", "changes", "certificates", "saved", "events", "grants", "configuration")])
    desktop.picture(f"pseudo-{name}")
    check(desktop, window, [*data, "CORP\\", "https", "CN", str(desktop.folder / "config" / "watchword" / "config.toml")])
    show.close()


@pytest.mark.parametrize("language", [file.stem for file in CATALOGUES])
def test_the_desktop_files_are_translated(language):
    for file in (ROOT / "contrib" / "desktop" / "io.watchword.Watchword.desktop", PO.parent / "watchword-agent.desktop"):
        keys = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
        texts_of_file = [key for key in ("GenericName", "Comment", "Keywords") if key in keys]
        assert texts_of_file and all(keys[f"{key}[{language}]"] not in ("", keys[key]) for key in texts_of_file)
    about = (ROOT / "contrib" / "desktop" / "io.watchword.Watchword.metainfo.xml").read_text()
    for tag in ("summary", "p", "li"):
        assert about.count(f'<{tag} xml:lang="{language}">') == about.count(f"<{tag}>") > 0


PAGE = ROOT / "contrib" / "docs" / "windows.md"


@pytest.mark.tier3("twelve times all windows, about five minutes")
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
def test_every_window_is_whole_in_every_variant(tmp_path, variant):
    taken = take(tmp_path / "desktop", variant, Shower)
    opened = {name: Image.open(path).convert("RGB") for name, (path, _) in taken.items()}
    save(sheet(opened), tmp_path / f"{variant.name}.png")
    assert list(taken) == list(WINDOWS)
    for name, (_, window) in taken.items():
        assert (window["cut"], window["outside"]) == ([], []), name
        # A dialogue of libadwaita contains its buttons twice, for two layouts.
        keys = [key for key, _ in {tuple(pair) for pair in window["keys"]}]
        assert len(set(keys)) == len(keys), (name, window["keys"])
        assert window["is_right_to_left"] == (variant.language == "he"), name
        width, height = opened[name].size
        # The frame of the window manager is around the window.
        assert width >= window["width"] * variant.percent // 100 and height >= window["height"] * variant.percent // 100, name
        most = max(opened[name].getcolors(width * height))[1]
        assert (min(most) > 200) if variant.scheme == "light" else (max(most) < 80), (name, most)
        letters = re.search("[\u05d0-\u05ea]", "".join(window["texts"]))
        assert bool(letters) == (variant.language == "he"), name


def test_the_page_shows_every_window_and_every_variant():
    shown = set(re.findall(r"\.\./agent/pictures/([\w/-]+)\.png", PAGE.read_text()))
    assert shown == {*WINDOWS, *(f"sheets/{one.name}" for one in VARIANTS)}
    assert {str(one.relative_to(PICTURES).with_suffix("")) for one in PICTURES.rglob("*.png")} == shown
    assert sum(one.stat().st_size for one in PICTURES.rglob("*.png")) < 13 << 18


@pytest.mark.parametrize("count, found", [(1, "עוד שאלה אחת (1)"), (2, "עוד שתי שאלות (2)"), (3, "עוד 3 שאלות"), (11, "עוד 11 שאלות")])
def test_hebrew_has_a_form_for_two(count, found):
    translations = compiled(PO / "he.po")
    assert translations.ngettext("{number} more question", "{number} more questions", count).format(number=count) == found


@pytest.mark.parametrize("file", sorted(PO.glob("*.po")), ids=lambda one: one.stem)
def test_data_does_not_change_the_order_of_a_sentence_from_right_to_left(file):
    """In such a language, a sentence has to begin in its direction, and has to isolate the address in it."""
    translations = compiled(file)
    if translations.gettext("default:LTR") != "default:RTL":
        assert "\u2069" not in file.read_text()
        return
    assert isinstance(translations, gettext.GNUTranslations)
    for message in ("Log in to {host}", "{host} requests your certificate", "Login at {place} as {user}", "Asked by {program}"):
        text = translations.gettext(message)
        assert len(re.findall("[\u2066\u2068]{\\w+}\u2069", text)) == message.count("{"), text
        assert re.match("[\u200f\u05d0-\u05ea]", text), text
