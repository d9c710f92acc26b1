"""Pictures of every window in every variant, which are saved in the folder of the test, and the page that shows them."""
import gettext
import re

import pytest
from PIL import Image

from rig.broker import ROOT
from rig.catalogues import compiled
from rig.window_examples import PICTURES, PO, VARIANTS, WINDOWS, save, sheet, take
from test_agent_looks import Shower

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
