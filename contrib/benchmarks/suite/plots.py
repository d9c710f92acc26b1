"""Plots of a report: targets, ratios with their spread for each group, and curves for scaling."""
from . import svg
from .targets import TARGETS

WIDTH, LABELS, RIGHT = 1000, 480, 30
LINES = {"cpu": "CPU per fetch", "rate": "fetches/s"}
PANEL = 250
SPREAD = ["min", "q1", "median", "q3", "max"]
# The largest factor by which a figure is drawn better than its limit.
FARTHEST = 4


def write(report, folder):
    """Writes targets.svg, and GROUP.svg for each group of `report` (as in its JSON) that has ratios."""
    folder.mkdir(parents=True, exist_ok=True)
    groups = {}
    for found in report["measurements"]:
        if found["unit"] == "ratio":
            groups.setdefault(found["key"].partition(".")[0], []).append(found)
    if shares := shares_of_limits(report):
        (folder / "targets.svg").write_text(boxes("targets", shares, "measured figure / limit; reached from 1"))
    for name, measurements in groups.items():
        draw = curves if "x" in measurements[0] else boxes
        (folder / f"{name}.svg").write_text(draw(name, measurements))


def shares_of_limits(report):
    """Returns the measurements of all targets, scaled so that the limit is 1 and more is better."""
    latest = {found["key"]: found for found in report["measurements"]}
    shares = []
    for target in (target for target in TARGETS if target.key in latest):
        def share(value):
            return value / target.limit if target.is_minimum else target.limit / max(value, target.limit / FARTHEST)

        ends = sorted([share(latest[target.key][name]) for name in SPREAD])
        shares.append({"key": "", "title": f"{target.name}: {target.wanted.partition(' (')[0]}", **dict(zip(SPREAD, ends))})
    return shares


def boxes(name, measurements, what="ratios, with quartiles and extremes"):
    """Draws a row for each ratio: extremes, quartiles, median, and the target as a dashed line."""
    targets = {target.key: target for target in TARGETS}
    limits = [targets[found["key"]].limit for found in measurements if found["key"] in targets]
    high = max([found["max"] for found in measurements] + limits + [1.0])
    low = min([found["min"] for found in measurements] + limits + [1.0])
    is_log = high / max(low, 1e-6) > 8
    axis = svg.Axis(low * 0.9 if is_log else 0, high * 1.05, LABELS, WIDTH - RIGHT, is_log)
    bottom = 44 + len(measurements) * svg.ROW
    marks = []
    for tick in axis.ticks:
        marks += [svg.line(axis(tick), 40, axis(tick), bottom, svg.PALE), svg.text(axis(tick), bottom + 16, f"{tick:g}", "middle", 11)]
    marks.append(svg.line(axis(1), 40, axis(1), bottom))
    for row, found in enumerate(measurements):
        middle = 44 + (row + 0.5) * svg.ROW
        marks += [
            svg.text(LABELS - 10, middle + 4, found["title"].replace("`", ""), "end", 11),
            svg.line(axis(found["min"]), middle, axis(found["max"]), middle, svg.COLOURS[0]),
            svg.rectangle(axis(found["q1"]), middle - 6, axis(found["q3"]) - axis(found["q1"]), 12, svg.COLOURS[0], 0.45),
            svg.line(axis(found["median"]), middle - 7, axis(found["median"]), middle + 7, svg.COLOURS[0], 2.5)]
        if found["key"] in targets:
            target = targets[found["key"]]
            at = axis(target.limit)
            arrow = svg.text(at + 4, middle - 1, "→", size=11, colour=svg.TARGET) if target.is_minimum else svg.text(
                at - 4, middle - 1, "←", "end", 11, svg.TARGET)
            marks += [svg.line(at, middle - 10, at, middle + 10, svg.TARGET, 2, "3,2"), arrow]
    title = f"{name}: {what}" + ("; dashed: target" if limits else "")
    return svg.picture(WIDTH, bottom + 28, title, marks)


def curves(name, measurements):
    """Draws a panel for each scaled quantity: the ratios over its number, with the quartiles as a band."""
    panels = {}
    for found in measurements:
        _, what, line = found["key"].split(".")
        panels.setdefault(what, {}).setdefault(line, []).append(found)
    marks = []
    for number, (what, lines) in enumerate(panels.items()):
        left, top = 60 + number % 2 * (WIDTH // 2), 60 + number // 2 * (PANEL + 60)
        marks += panel(lines, left, top, WIDTH // 2 - 90)
    height = 60 + (len(panels) + 1) // 2 * (PANEL + 60)
    return svg.picture(WIDTH, height, f"{name}: ratios with quartiles", marks)


def panel(lines, left, top, width):
    every = [found for points in lines.values() for found in points]
    first = next(iter(lines.values()))
    across = svg.Axis(min(found["x"] for found in every), max(found["x"] for found in every), left, left + width, is_log=True)
    up = svg.Axis(0, max([found["q3"] for found in every] + [1.2]) * 1.1, top + PANEL - 40, top + 10)
    # The title without the leading number, such as "idle connections, CPU per fetch / with none".
    title = first[0]["title"].partition(" ")[2]
    marks = [svg.text(left, top, title.partition(",")[0] + " /" + title.partition(" /")[2], size=12)]
    for tick in up.ticks:
        marks += [svg.line(left, up(tick), left + width, up(tick), svg.PALE), svg.text(left - 6, up(tick) + 4, f"{tick:g}", "end", 11)]
    for found in first:
        marks.append(svg.text(across(found["x"]), top + PANEL - 24, f"{found['x']:,}", "middle", 10))
    marks.append(svg.line(left, up(1), left + width, up(1)))
    for number, (line, points) in enumerate(lines.items()):
        colour = svg.COLOURS[number]
        outline = [(across(found["x"]), up(found["q1"])) for found in points] + [
            (across(found["x"]), up(found["q3"])) for found in reversed(points)]
        marks += [svg.band(outline, colour), svg.polyline([(across(found["x"]), up(found["median"])) for found in points], colour)]
        marks.append(svg.text(left + number * 130, top + PANEL - 4, LINES[line], size=11, colour=colour))
    return marks
