"""Charts as static SVG: lines, steps and points over two axes, linear or logarithmic; and the heat map of a confusion.

Series differ by colour (those of M. Okabe and K. Ito, which colour-blind people tell apart), by dashes and by markers.
Colours are variables of the page's style sheet, so that a chart suits light and dark. The same series as numbers are
what the page's script draws again for those who hover and zoom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, Literal, NamedTuple

from onlearn.inert_text import inert, number

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 10, 46
COLOURS = 7  # of the style sheet: c0 to c6
DASHES = ("", "7 4", "2 3", "10 3 2 3", "1 4", "12 5", "5 2 1 2")
MARKED = 16  # points up to which each has a marker; of longer lines, so many have one
TINY = 1e-12  # the least number of a logarithmic axis


class Series(NamedTuple):
    """A line through points, steps between edges, points alone, or a guide: a thin line that is no measurement.

    ``place`` chooses colour, dashes and marker. Of ``steps``, ``x`` holds the left edges, and the last right one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: Literal["line", "steps", "points", "guide"] = "line"
    place: int = 0
    faint: bool = False  # one of many, behind those that matter


class Chart(NamedTuple):
    """Series over two axes; the description says in words what is to be seen."""

    id: str
    title: str
    description: str
    x_label: str
    y_label: str
    series: list[Series]
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    kind: str = "chart"

    @property
    def svg(self) -> str:
        """The chart as SVG."""
        return draw(self)

    @property
    def has_points(self) -> bool:
        """Whether some series is of points alone, which need room around them."""
        return any(one.style == "points" for one in self.series)

    @property
    def columns(self) -> list[str]:
        """The head of the table of its numbers."""
        return [self.x_label, *(one.name for one in self.series if one.style != "guide")]

    @property
    def rows(self) -> list[list[str]]:
        """The table of its numbers, at most 60 rows of it."""
        shown = [one for one in self.series if one.style != "guide"]
        xs = sorted({x for one in shown for x in one.x})
        values = [dict(zip(one.x, one.y)) for one in shown]
        if len(xs) > 60:
            xs = [xs[round(k * (len(xs) - 1) / 59)] for k in range(60)]
        return [[number(_short(x)), *(number(_short(mine.get(x))) for mine in values)] for x in xs]

    def data(self) -> dict[str, Any]:
        """What the script of the page draws: one list of x, and of each series its y there, or None."""
        uprights = [one for one in self.series if one.style == "guide" and len({*one.x}) == 1]
        lines = [one for one in self.series if one not in uprights]
        xs = sorted({x for one in lines for x in one.x})
        series = []
        for one in lines:
            ys: dict[float, float | None] = dict(zip(one.x, one.y))
            if one.style == "steps" and len(one.x) == len(one.y) + 1:
                ys[one.x[-1]] = one.y[-1]
            series.append(
                {
                    "name": inert(one.name),
                    "y": [_short(ys.get(x)) for x in xs],
                    "style": one.style,
                    "place": one.place % COLOURS,
                    "dash": [int(part) for part in DASHES[one.place % len(DASHES)].split()],
                    "faint": one.faint,
                }
            )
        low_x, high_x, low_y, high_y = ranges(self)
        return {
            "x": [_short(x) for x in xs],
            "series": series,
            "uprights": [_short(one.x[0]) for one in uprights],
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "xLog": self.x_log,
            "yLog": self.y_log,
            "xRange": [low_x, high_x],
            "yRange": [low_y, high_y],
        }


def _short(value: float | None) -> float | None:
    """A number of five digits: more are not seen, and take room."""
    if value is None or not math.isfinite(value):
        return None
    made = float(f"{value:.5g}") if abs(value) < 1e5 else float(round(value))
    return int(made) if made == int(made) else made


# ---------------------------------------------------------------------- axes


def ranges(chart: Chart) -> tuple[float, float, float, float]:
    """Where the axes begin and end."""
    xs = [x for one in chart.series for x in one.x if math.isfinite(x) and (x > 0 or not chart.x_log)]
    ys = [y for one in chart.series for y in one.y if y is not None and math.isfinite(y) and (y > 0 or not chart.y_log)]
    low_x, high_x = chart.x_range or _padded(xs, chart.x_log, 0.05 if chart.has_points else 0.0)
    low_y, high_y = chart.y_range or _padded(ys, chart.y_log, 0.06)
    return low_x, high_x, low_y, high_y


def _padded(values: list[float], log: bool, pad: float) -> tuple[float, float]:
    if not values:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(values), max(values)
    if log:
        low, high = max(low, TINY), max(high, TINY)
    if high - low <= 1e-9 * max(abs(low), abs(high), TINY):
        half = max(abs(low), TINY if log else 1e-6) / 2 if low else 0.5
        return (low / 2, high * 2) if log else (low - half, high + half)
    if log:
        factor = float((high / low) ** pad)
        return low / factor, high * factor
    room = pad * (high - low)
    # A range that begins near zero begins at zero: heights can then be compared.
    return (0.0 if 0 <= low < 0.4 * high else low - room), high + room


def ticks(low: float, high: float, log: bool, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``: powers of ten, or multiples of 1, 2 or 5.

    >>> ticks(0, 1, False), ticks(1, 40000, True)
    ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [1.0, 10.0, 100.0, 1000.0, 10000.0])
    """
    if log:
        first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
        if last - first >= 2:
            every = max(1, math.ceil((last - first + 1) / most))
            return [float(10.0**k) for k in range(first, last + 1, every)]
        whole = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
        found = [float(f"{tick:.6g}") for tick in whole if low * 0.999 <= tick <= high * 1.001]
        return found if len(found) > 1 else ticks(low, high, False, 4)
    size = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(size)) if size > 0 else 1.0
    step = next((m * power for m in (1, 2, 5, 10) if m * power >= size * 0.999), 10 * power)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.10g}") for k in range(first, last + 1)]


def tick_text(value: float) -> str:
    """A tick in short: 20k, 3M, 0.05.

    >>> [tick_text(value) for value in (0, 0.05, 1000, 25000, 3e6, 1e-7)]
    ['0', '0.05', '1k', '25k', '3M', '1e-07']
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


class _Frame(NamedTuple):
    low_x: float
    high_x: float
    low_y: float
    high_y: float
    x_log: bool
    y_log: bool

    def x(self, value: float) -> float:
        part = _part(value, self.low_x, self.high_x, self.x_log)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        part = _part(value, self.low_y, self.high_y, self.y_log)
        return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM)


def _part(value: float, low: float, high: float, log: bool) -> float:
    if log:
        value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
    return min(max((value - low) / (high - low), -0.02), 1.02)


# ---------------------------------------------------------------------- drawing


def draw(chart: Chart) -> str:
    """The chart as SVG."""
    frame = _Frame(*ranges(chart), chart.x_log, chart.y_log)
    parts = [_open(chart.id, chart.title, chart.description, WIDTH, HEIGHT), *_axes(chart, frame)]
    parts.append(f'<clipPath id="{chart.id}-clip"><rect x="{LEFT}" y="{TOP - 4}" width="{WIDTH - LEFT - RIGHT + 6}" '
                 f'height="{HEIGHT - TOP - BOTTOM + 8}"/></clipPath><g clip-path="url(#{chart.id}-clip)">')  # fmt: skip
    for one in sorted(chart.series, key=lambda one: (not one.faint, one.style != "guide")):
        parts.append(_series(one, frame))
    parts.append("</g></svg>")
    return "".join(parts)


def _open(id: str, title: str, description: str, width: float, height: float, more: str = "") -> str:
    title, description = escape(inert(title, 200)), escape(inert(description, 600))
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}"{more} role="img" aria-labelledby="{id}-t {id}-d" class="static">'
        f'<title id="{id}-t">{title}</title><desc id="{id}-d">{description}</desc>'
    )


def _axes(chart: Chart, frame: _Frame) -> list[str]:
    bottom, parts = HEIGHT - BOTTOM, []
    for tick in ticks(frame.low_x, frame.high_x, chart.x_log):
        x = f"{frame.x(tick):.1f}"
        parts.append(f'<path class="grid" d="M{x} {TOP}V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x}" y="{bottom + 17}" text-anchor="middle">{tick_text(tick)}</text>')
    for tick in ticks(frame.low_y, frame.high_y, chart.y_log, 5):
        y = frame.y(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{tick_text(tick)}</text>')
    middle = (TOP + bottom) / 2
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>')
    parts.append(f'<text class="label" x="{(LEFT + WIDTH - RIGHT) / 2:g}" y="{HEIGHT - 8}" text-anchor="middle">'
                 f"{escape(chart.x_label)}</text>")  # fmt: skip
    parts.append(f'<text class="label" transform="translate(13 {middle:g}) rotate(-90)" text-anchor="middle">'
                 f"{escape(chart.y_label)}</text>")  # fmt: skip
    return parts


def _series(one: Series, frame: _Frame) -> str:
    colour = "guide" if one.style == "guide" else f"c{one.place % COLOURS}"
    faint = " faint" if one.faint else ""
    if one.style == "steps":
        return f'<path class="line {colour}{faint}" {_dashes(one)}d="{_stairs(one, frame)}"/>'
    points = [(frame.x(x), frame.y(y)) for x, y in zip(one.x, one.y) if y is not None and _seen(x, y, frame)]
    marks = "" if one.style == "guide" or one.faint else _markers(one, points)
    if one.style == "points":
        return f'<g class="{colour}">{marks}</g>'
    path = "".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(points))
    return f'<path class="line {colour}{faint}" {_dashes(one)}d="{path}"/><g class="{colour}">{marks}</g>'


def _seen(x: float, y: float, frame: _Frame) -> bool:
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    return (x > 0 or not frame.x_log) and (y > 0 or not frame.y_log)


def _stairs(one: Series, frame: _Frame) -> str:
    path = f"M{frame.x(one.x[0]):.1f} {frame.y(0.0 if not frame.y_log else frame.low_y):.1f}"
    for right, y in zip(one.x[1:], one.y):
        path += f"V{frame.y(y or 0.0):.1f}H{frame.x(right):.1f}"
    return path + f"V{frame.y(0.0 if not frame.y_log else frame.low_y):.1f}"


def _dashes(one: Series) -> str:
    dashes = "4 4" if one.style == "guide" else DASHES[one.place % len(DASHES)]
    return f'stroke-dasharray="{dashes}" ' if dashes else ""


def _markers(one: Series, points: list[tuple[float, float]]) -> str:
    if one.style == "points" or len(points) <= MARKED:
        chosen = points
    else:  # spread over the line, each series from a place of its own
        step = len(points) / MARKED
        chosen = [points[min(len(points) - 1, int((k + (one.place % 4) / 4) * step))] for k in range(MARKED)]
    size = 3.4 if one.style != "points" else 2.4 if len(points) > 3 else 5.0
    return "".join(marker(one.place, x, y, size) for x, y in chosen)


def marker(place: int, x: float, y: float, size: float) -> str:
    """The marker of a series: circle, square, diamond, triangle, cross and so on."""
    kind, s, d = place % 5, size, 1.4 * size
    if kind == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{s:g}"/>'
    paths = {
        1: f"M{x - s:.1f} {y - s:.1f}h{2 * s:g}v{2 * s:g}h{-2 * s:g}z",
        2: f"M{x:.1f} {y - d:.1f}l{d:.2f} {d:.2f}l{-d:.2f} {d:.2f}l{-d:.2f} {-d:.2f}z",
        3: f"M{x:.1f} {y - 1.2 * s:.1f}l{1.2 * s:.2f} {2.1 * s:.2f}h{-2.4 * s:.2f}z",
        4: f"M{x:.1f} {y + 1.2 * s:.1f}l{1.2 * s:.2f} {-2.1 * s:.2f}h{-2.4 * s:.2f}z",
    }
    return f'<path d="{paths[kind]}"/>'


def swatch(one: Series) -> str:
    """The key of a series in a legend: its line with its marker."""
    colour = "guide" if one.style == "guide" else f"c{one.place % COLOURS}"
    line = "" if one.style == "points" else f'<path class="line {colour}" {_dashes(one)}d="M1 7H33"/>'
    mark = "" if one.style in ("guide", "steps") else f'<g class="{colour}">{marker(one.place, 17, 7, 3.4)}</g>'
    return f'<svg class="swatch" viewBox="0 0 34 14" aria-hidden="true">{line}{mark}</svg>'


# ---------------------------------------------------------------------- the heat map


class HeatMap(NamedTuple):
    """The confusion of labels: rows are the true labels, columns the predicted ones."""

    id: str
    title: str
    description: str
    labels: list[str]
    counts: list[list[int]]
    kind: str = "heat"

    @property
    def svg(self) -> str:
        """The heat map as SVG; the shade of a cell is its share of the row."""
        labels = [inert(name, 18) for name in self.labels]
        size, longest = len(labels), max((len(name) for name in labels), default=1)
        cell = max(22, min(64, 420 // max(1, size)))
        left, top = 14 + min(150, 8 * longest), 30 + min(110, 6 * longest if size > 4 else 14)
        right = 14 + (min(90, 5 * longest) if size > 4 else 0)  # slanted names lean over the edge
        width, height = left + cell * size + right, top + cell * size + 10
        parts = [_open(self.id, self.title, self.description, width, height, f' width="{width}"')]
        parts.append(f'<text class="label" x="{left:.0f}" y="13">predicted</text>')
        for k, name in enumerate(labels):
            middle = (k + 0.5) * cell
            turn = f' transform="rotate(-45 {left + middle:.1f} {top - 8:.1f})"' if size > 4 else ""
            anchor = "start" if size > 4 else "middle"
            parts.append(f'<text class="tick bidi" x="{left + middle:.1f}" y="{top - 8:.1f}" '
                         f'text-anchor="{anchor}"{turn}>{escape(name)}</text>')  # fmt: skip
            parts.append(f'<text class="tick bidi" x="{left - 8:.1f}" y="{top + middle + 4:.1f}" text-anchor="end">'
                         f"{escape(name)}</text>")  # fmt: skip
        parts.append(f'<rect class="cell" x="{left}" y="{top}" width="{cell * size}" height="{cell * size}"/>')
        for i, row in enumerate(self.counts):
            whole = max(1, sum(row))
            for j, count in enumerate(row):
                if count:
                    parts.append(self._cell(i, j, count, count / whole, (left + j * cell, top + i * cell), cell))
        return "".join([*parts, "</svg>"])

    def _cell(self, i: int, j: int, count: int, share: float, at: tuple[int, int], cell: int) -> str:
        x, y = at
        told = f"{inert(self.labels[i], 30)} predicted as {inert(self.labels[j], 30)}: {count:,} ({100 * share:.1f} %)"
        text = ""
        if cell >= 26 or (count < 1000 and cell >= 20):
            strong = " strong" if share > 0.55 else ""
            shown = str(count) if len(str(count)) * 7.5 < cell else compact(count)
            text = (f'<text class="count{strong}" x="{x + cell // 2}" y="{y + cell // 2 + 4}" '
                    f'text-anchor="middle">{shown}</text>')  # fmt: skip
        return (
            f'<g><title>{escape(told)}</title><path class="{"right" if i == j else "wrong"}" '
            f'd="M{x} {y}h{cell - 1}v{cell - 1}h{1 - cell}z" fill-opacity="{0.06 + 0.94 * share:.2f}"/>{text}</g>'
        )


def compact(count: int) -> str:
    """A count in at most five characters.

    >>> compact(12), compact(12345), compact(3_200_000)
    ('12', '12k', '3.2M')
    """
    if count < 10_000:
        return f"{count}"
    return f"{count / 1000:.0f}k" if count < 1_000_000 else f"{count / 1e6:.1f}M"
