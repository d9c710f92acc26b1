"""Pictures of every window of the agent, in each variant: light and dark, at 100 and 200 %, in each language."""
import dataclasses
import pathlib

from PIL import Image, ImageDraw, ImageFont

from .broker import ROOT
from .desktop import Desktop
from .window_examples import WINDOWS

PO = ROOT / "contrib" / "agent" / "po"
PICTURES = ROOT / "contrib" / "agent" / "pictures"
LANGUAGES = ("en", "de", "he")
SCREEN = "1280x800"
FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
# The columns of a sheet, the width of a picture in it, and the number of colours of a committed picture.
COLUMNS, WIDTH, COLOURS = 7, 250, 112


@dataclasses.dataclass(frozen=True)
class Variant:
    """A look of the windows; `scheme` is light or dark."""

    scheme: str
    percent: int
    language: str

    @property
    def name(self):
        return f"{self.scheme}-{self.percent}-{self.language}"


VARIANTS = [Variant(scheme, percent, language) for scheme in ("light", "dark") for percent in (100, 200) for language in LANGUAGES]


def take(folder, variant, shower):
    """Shows every window, and returns the picture of each with its description; `shower` makes the program that shows them."""
    desktop = Desktop(folder, scheme=variant.scheme, size=SCREEN)
    try:
        words = [] if variant.language == "en" else [f"po={PO}/{variant.language}.po"]
        show = shower(desktop, *words, environment={"GDK_SCALE": str(variant.percent // 100)})
        found = {}
        for name, message in WINDOWS.items():
            show.send(message)
            # The buttons are enabled after the initial delay.
            window = show.send({"wait": True})
            path = pathlib.Path(folder) / f"{name}.png"
            assert desktop.run("scrot", "--overwrite", "--focused", str(path)).returncode == 0
            found[name] = (path, window)
        return found
    finally:
        desktop.end()


def small(picture):
    """Returns a picture with few colours, which compresses well."""
    return picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)


def sheet(pictures):
    """Returns one picture with all pictures, each below its name."""
    font = ImageFont.truetype(FONT, 12)
    scaled = {name: one.convert("RGB").resize((WIDTH, one.height * WIDTH // one.width), Image.Resampling.LANCZOS)
              for name, one in pictures.items()}
    names = list(scaled)
    rows = [names[start:start + COLUMNS] for start in range(0, len(names), COLUMNS)]
    heights = [max(scaled[name].height for name in row) + 30 for row in rows]
    whole = Image.new("RGB", (COLUMNS * (WIDTH + 10) + 10, sum(heights) + 10), "#808890")
    draw, top = ImageDraw.Draw(whole), 5
    for row, height in zip(rows, heights):
        for column, name in enumerate(row):
            left = 10 + column * (WIDTH + 10)
            draw.text((left, top), name, "white", font)
            whole.paste(scaled[name], (left, top + 20))
        top += height
    return whole


def save(picture, path):
    """Writes a committed picture."""
    path.parent.mkdir(exist_ok=True)
    small(picture).save(path, optimize=True)
