"""SVG elements of plots: axes and marks."""
import math
from xml.sax.saxutils import escape

INK, PALE, TARGET = "#1f2933", "#d6dde4", "#c2410c"
COLOURS = ["#2563a8", "#b45309", "#4d7c0f", "#7c3aed"]
ROW = 22


def text(x, y, words, anchor="start", size=12, colour=INK):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'


def line(x1, y1, x2, y2, colour=INK, width=1.0, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dashes}/>'


def rectangle(x, y, width, height, fill, opacity=1.0):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" fill="{fill}" fill-opacity="{opacity}"/>'


def polyline(points, colour):
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="1.8"/>'


def band(points, colour):
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{joined}" fill="{colour}" fill-opacity="0.15"/>'


def picture(width, height, title, marks):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" role="img"><title>{escape(title)}</title>{rectangle(0, 0, width, height, "#ffffff")}\n'
            + "\n".join([text(16, 26, title, size=15), *marks]) + "\n</svg>\n")


class Axis:
    """Maps values from `low` to `high` to pixels from `start` to `end`, by their logarithms if `is_log`."""

    def __init__(self, low, high, start, end, is_log=False):
        self.is_log, self.start, self.end = is_log, start, end
        self.low, self.high = low, high if high > low else low + 1

    def __call__(self, value):
        low, high, at = (math.log(max(number, 1e-9)) if self.is_log else number for number in [self.low, self.high, value])
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    @property
    def ticks(self):
        if self.is_log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = [1] if last - first > 3 else [1, 2, 5]
            return [tick for power in range(first, last + 1) for step in steps if self.low <= (tick := step * 10 ** power) <= self.high]
        raw = (self.high - self.low) / 6
        power = 10 ** math.floor(math.log10(raw))
        step = next(power * factor for factor in [1, 2, 5, 10] if power * factor >= raw)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]
