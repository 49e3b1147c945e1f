"""Draws panels as inline SVG. Colours are the page's own, so that a drawing is right in
light and dark; marks differ in shape, fill and dash, never in colour alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from stats.charts import (
    BarPanel,
    DotPanel,
    LinePanel,
    Panel,
    Point,
    Unit,
    format_seconds,
    format_share,
)
from stats.readings import FEW

WIDTH = 360
LEFT, RIGHT, TOP, HEIGHT, BOTTOM = 48, 10, 22, 150, 22
ROW, LABEL_HEIGHT, LEGEND_GAP = 34, 15, 10
FEWEST_JOINED = 3  # cases of a rate or a time that a line goes through
# The tops of the axes of shares and of times, which end at a day and then at any value.
_MINUTE, _HOUR = 60.0, 3600.0
_TOPS = {
    Unit.SHARE: (0.05, 0.1, 0.25, 0.5, 1.0),
    Unit.SECONDS: (
        *(10.0, 20.0, 40.0, 60.0),
        *(_MINUTE * n for n in (2, 4, 10, 20, 40, 60)),
        *(_HOUR * n for n in (2, 4, 8, 12, 24)),
    ),
}
# How the lines of a panel differ, and how the parts of a bar do.
DASHES = ("none", "5 3", "2 2", "8 3 2 3")
FILLS = ("0.85", "0.5", "0.25", "0.1", "0")

_SVG = (
    '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-labelledby="{} {}"'
    ' font-size="11" fill="currentcolor"><title id="{}">{}</title>'
    '<desc id="{}">{}</desc>{}</svg>'
)
_TEXT = '<text x="{}" y="{}" text-anchor="{}"{}>{}</text>'
_GRID = '<path d="M{} {}H{}" stroke="var(--line)" fill="none"/>'
_GOAL = (
    '<path d="{}" stroke="var(--edge)" stroke-dasharray="1 3"'
    ' stroke-width="1.5" fill="none"/>'
)
_PATH = (
    '<path d="{}" stroke="currentcolor" stroke-width="1.5" stroke-dasharray="{}"'
    ' fill="none"/>'
)
_MARK = '<circle cx="{}" cy="{}" r="2.5" stroke="currentcolor" fill="{}"/>'
_DOTS = (
    '<path d="{}" stroke="{}" stroke-width="{}" stroke-linecap="round" fill="none"/>'
)
_RECT = (
    '<rect x="{}" y="{}" width="{}" height="{}" stroke="currentcolor"'
    ' stroke-width="0.75" fill-opacity="{}"/>'
)
_BAND = '<rect x="{}" y="{}" width="{}" height="{}" fill="var(--none-bg)"/>'
_RANGE = '<path d="M{} {}H{}" stroke="currentcolor" stroke-width="1.5" fill="none"/>'
_MUTED = format_html(' fill="var(--{})"', "muted")
FULL, HOLLOW = "currentcolor", "var(--bg)"


def draw_panel(panel: Panel, name: str, title: str, sentence: str) -> SafeString:
    """Draw a panel. `name` makes the ids of its title and description unique."""
    if isinstance(panel, LinePanel):
        height, parts = _draw_lines(panel)
    elif isinstance(panel, BarPanel):
        height, parts = _draw_bars(panel)
    else:
        height, parts = _draw_dots(panel)
    head, text = f"{name}-title", f"{name}-text"
    label = f"{title}: {panel.title}" if panel.title else title
    return format_html(
        _SVG,
        WIDTH,
        height,
        head,
        text,
        head,
        label,
        text,
        sentence,
        format_html_join("", "{}", ((part,) for part in parts)),
    )


def _write_text(
    x: float, y: float, label: object, anchor: str = "start", extra: str = ""
) -> SafeString:
    return format_html(_TEXT, round(x, 1), round(y, 1), anchor, extra, label)


def _draw_lines(panel: LinePanel) -> tuple[int, Iterator[SafeString]]:
    height = TOP + HEIGHT + BOTTOM
    return height, _list_line_parts(panel)


def _list_line_parts(panel: LinePanel) -> Iterator[SafeString]:
    top = _find_top(panel)
    # A level lasts until the next place begins, the last one as long as the others.
    place_x = _build_scale(len(panel.places) + panel.steps)

    def place_y(value: float) -> float:
        return TOP + HEIGHT * (1 - min(value / top, 1))

    for share in (0, 0.5, 1):
        y = place_y(top * share)
        yield format_html(_GRID, LEFT, round(y, 1), WIDTH - RIGHT)
        tick = _format_value(top * share, panel.unit)
        yield _write_text(LEFT - 4, y + 4, tick, "end", _MUTED)
    yield from _list_place_labels(panel.places, place_x)
    if panel.goal is not None and panel.goal <= top:
        y = round(place_y(panel.goal), 1)
        yield format_html(_GOAL, f"M{LEFT} {y}H{WIDTH - RIGHT}")
    fewest = 0 if panel.unit is Unit.COUNT else FEWEST_JOINED
    for number, line in enumerate(panel.lines):
        yield format_html(
            _PATH,
            _build_step_path(line.points, place_x, place_y)
            if panel.steps
            else _build_path(line.points, place_x, place_y, fewest),
            DASHES[number % len(DASHES)],
        )
        if not panel.steps:
            yield from _list_line_marks(line.points, place_x, place_y)
    yield from _list_line_legend(panel)


def _list_line_marks(
    points: Sequence[Point],
    place_x: Callable[[int], float],
    place_y: Callable[[float], float],
) -> Iterator[SafeString]:
    """All marks of a line: dots are ends of lines without length, in two paths instead
    of an element each. A hollow one has the page's colour over its middle."""
    dots: dict[bool, list[str]] = {False: [], True: []}
    for at, point in enumerate(points):
        if point.value is not None:
            dot = f"M{place_x(at):.1f} {place_y(point.value):.1f}h0"
            dots[point.total < FEW].append(dot)
    every, few = "".join(dots[False] + dots[True]), "".join(dots[True])
    if every:
        yield format_html(_DOTS, every, FULL, 6)
    if few:
        yield format_html(_DOTS, few, HOLLOW, 4)


def _list_line_legend(panel: LinePanel) -> Iterator[SafeString]:
    x = float(LEFT)
    for number, line in enumerate(panel.lines):
        dash = DASHES[number % len(DASHES)]
        yield format_html(_PATH, f"M{x:.0f} 8h18", dash)
        yield _write_text(x + 22, 12, line.label)
        x += 34 + 6 * len(line.label)
    if panel.goal is not None:
        yield format_html(_GOAL, f"M{x:.0f} 8h18")
        yield _write_text(x + 22, 12, panel.goal_label)
    points = [point for line in panel.lines for point in line.points]
    if not panel.steps and any(0 < point.total < FEW for point in points):
        yield format_html(_MARK, WIDTH - RIGHT - 28, 8, HOLLOW)
        yield _write_text(WIDTH - RIGHT, 12, "few", "end")


def _build_path(
    points: Sequence[Point],
    place_x: Callable[[int], float],
    place_y: Callable[[float], float],
    fewest: int,
) -> str:
    """The path through the values of at least so many cases. A day without one is a
    gap: joined, single cases would be a zigzag from 0 to 100 %."""
    path, drawing = [], False
    for at, point in enumerate(points):
        if point.value is None or point.total < fewest:
            drawing = False
            continue
        x, y = round(place_x(at), 1), round(place_y(point.value), 1)
        path.append(f"{'L' if drawing else 'M'}{x} {y}")
        drawing = True
    return "".join(path)


def _build_step_path(
    points: Sequence[Point],
    place_x: Callable[[int], float],
    place_y: Callable[[float], float],
) -> str:
    """The path along all levels, each as wide as its place; a place without one is a
    gap."""
    path, drawing = [], False
    for at, point in enumerate(points):
        if point.value is None:
            drawing = False
            continue
        x, end = round(place_x(at), 1), round(place_x(at + 1), 1)
        y = round(place_y(point.value), 1)
        path.append(f"V{y}H{end}" if drawing else f"M{x} {y}H{end}")
        drawing = True
    return "".join(path)


def _build_scale(count: int) -> Callable[[int], float]:
    room = WIDTH - LEFT - RIGHT - 8
    step = room / max(count - 1, 1)
    return lambda at: LEFT + 4 + (at * step if count > 1 else room / 2)


def _list_place_labels(
    places: Sequence[str], place_x: Callable[[int], float]
) -> Iterator[SafeString]:
    if not places:
        return
    for at in sorted({0, (len(places) - 1) // 2, len(places) - 1}):
        anchor = "start" if at == 0 else "end" if at == len(places) - 1 else "middle"
        x = LEFT if at == 0 else WIDTH - RIGHT if anchor == "end" else place_x(at)
        yield _write_text(x, TOP + HEIGHT + 16, places[at], anchor, _MUTED)


def _find_top(panel: LinePanel) -> float:
    """The top of the axis: a round value above all others."""
    values = [p.value for line in panel.lines for p in line.points if p.value]
    if panel.unit in _TOPS:
        tops = _TOPS[panel.unit]
        most = max([*values, panel.goal or 0])
        return next((top for top in tops if top >= most), max(most, tops[-1]))
    most = max([*values, panel.goal or 0, 1])
    digits = 10.0 ** math.floor(math.log10(most))
    steps = (step * digits for step in (1.0, 2.0, 4.0, 6.0))
    # Half of an even number, the middle of the axis, is a whole number.
    return next((n for n in steps if n >= most and n % 2 == 0), 10 * digits)


def _format_value(value: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return f"{value * 100:g} %"
    return format_seconds(value) if unit is Unit.SECONDS else f"{value:,.4g}"


def _draw_bars(panel: BarPanel) -> tuple[int, Iterator[SafeString]]:
    lines = _wrap_legend(panel.legend) if len(panel.legend) > 1 else []
    begin = 6 + LABEL_HEIGHT * len(lines) + (LEGEND_GAP if lines else 0)
    return begin + ROW * len(panel.bars) + 4, _list_bar_parts(panel, lines, begin)


def _list_bar_parts(
    panel: BarPanel, lines: Sequence[Sequence[tuple[int, str]]], begin: int
) -> Iterator[SafeString]:
    for row, line in enumerate(lines):
        x, y = 0.0, 6 + LABEL_HEIGHT * row
        for number, label in line:
            yield format_html(_RECT, x + 1, y, 9, 9, FILLS[number % len(FILLS)])
            yield _write_text(x + 14, y + 9, label)
            x += _measure_legend(label)
    most = max((sum(bar.parts) for bar in panel.bars), default=0)
    for row, bar in enumerate(panel.bars):
        total, y = sum(bar.parts), begin + ROW * row
        few = ", few" if panel.whole and total < FEW else ""
        yield _write_text(0, y + 10, bar.label)
        yield _write_text(WIDTH, y + 10, f"{total:,}{few}", "end", _MUTED)
        full = (WIDTH - 2) / ((total if panel.whole else most) or 1)
        x = 1.0
        for number, part in enumerate(bar.parts):
            fill = FILLS[number % len(FILLS)]
            if part:
                width = round(part * full, 1)
                yield format_html(_RECT, round(x, 1), y + 15, width, 10, fill)
                x += part * full


def _measure_legend(label: str) -> float:
    return 26 + 5.6 * len(label)


def _wrap_legend(legend: Sequence[str]) -> list[list[tuple[int, str]]]:
    lines: list[list[tuple[int, str]]] = [[]]
    room = float(WIDTH)
    for number, label in enumerate(legend):
        if lines[-1] and room < _measure_legend(label):
            lines.append([])
            room = float(WIDTH)
        lines[-1].append((number, label))
        room -= _measure_legend(label)
    return lines


def _draw_dots(panel: DotPanel) -> tuple[int, Iterator[SafeString]]:
    bottom = ROW * len(panel.dots) + 4
    if panel.goal_label or panel.band_label:
        bottom += LABEL_HEIGHT
    return bottom + TOP + 4, _list_dot_parts(panel, bottom)


def _list_dot_parts(panel: DotPanel, bottom: int) -> Iterator[SafeString]:
    left, right = 6, WIDTH - 6

    def place_x(share: float) -> float:
        return round(left + (right - left) * share, 1)

    if panel.band:
        low, high = (place_x(edge) for edge in panel.band)
        yield format_html(_BAND, low, 0, round(high - low, 1), bottom)
        yield _write_text(low + 3, bottom - 4, panel.band_label, "start", _MUTED)
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        yield _write_text(
            place_x(share), bottom + 16, format_share(share), anchor, _MUTED
        )
    yield format_html(_GRID, left, bottom, right)
    if panel.goal is not None:
        yield from _list_goal_parts(panel, place_x(panel.goal), bottom)
    for row, dot in enumerate(panel.dots):
        y = ROW * row + 24
        few = ", few" if dot.rate.few and dot.rate.total else ""
        yield _write_text(0, y - 12, dot.label)
        label = f"{format_share(dot.rate.share)} of {dot.rate.total:,}{few}"
        yield _write_text(WIDTH, y - 12, label, "end", _MUTED)
        yield from _list_dot_marks(dot.rate.share, dot.rate.interval, few, place_x, y)


def _list_goal_parts(panel: DotPanel, x: float, bottom: int) -> Iterator[SafeString]:
    """The line of the goal, beside each dot and not through the labels, and its own
    label below the last dot, on the side that has room."""
    rows = [f"M{x} {ROW * row + 17}v15" for row in range(len(panel.dots))]
    yield format_html(_GOAL, "".join([*rows, f"M{x} {bottom - 14}V{bottom}"]))
    anchor, gap = ("end", -3) if x > WIDTH * 0.8 else ("start", 3)
    yield _write_text(x + gap, bottom - 4, panel.goal_label, anchor, _MUTED)


def _list_dot_marks(
    share: float | None,
    interval: tuple[float, float] | None,
    few: str,
    place_x: Callable[[float], float],
    y: float,
) -> Iterable[SafeString]:
    if share is None or interval is None:
        return
    low, high = interval
    yield format_html(_RANGE, place_x(low), y, place_x(high))
    yield format_html(_MARK, place_x(share), y, HOLLOW if few else FULL)
