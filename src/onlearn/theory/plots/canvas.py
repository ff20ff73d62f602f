"""Figures: colours that colour-blind people tell apart, lines that differ without colour, and one fixed style.

The colours are of M. Okabe and K. Ito, Color universal design, 2008. A line has a marker or a pattern of its own as
well. Figures are drawn with Matplotlib's defaults, whatever the settings of the user, and without its global state:
``pyplot`` is never imported, so a figure that nobody keeps is gone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, ORANGE, PURPLE, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#666666"
SHADES = ("#FBE6D8", "#D6E8F5")  # of the negative and the positive side of a boundary
STYLE = {
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "figure.titlesize": 12.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "svg.hashsalt": "onlearn",  # else the names of parts are drawn by lot
    "svg.fonttype": "none",  # letters stay letters: small files, and text that can be searched and read aloud
}


class Look(NamedTuple):
    """How a line looks: colour, marker, pattern, and whether the markers are filled."""

    colour: str
    marker: str
    pattern: Any
    filled: bool = True


@contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults and ours, until the end of the block."""
    try:
        import matplotlib.style
    except ImportError:
        raise ImportError("pictures need Matplotlib, which is missing: pip install 'onlearn[plot]'") from None
    with matplotlib.style.context(["default", STYLE]):
        yield


Draw = TypeVar("Draw", bound="Callable[..., Figure]")


def picture(draw: Draw) -> Draw:
    """Have a function draw in our style; then places are fixed, which would move a little each time it is saved."""

    @functools.wraps(draw)
    def styled(*args: Any, **kwargs: Any) -> Figure:
        with style():
            figure = draw(*args, **kwargs)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
            return figure

    return styled  # type: ignore[return-value]


def axes_of(
    title: str, *, panels: int = 1, rows: int = 1, width: float = 6.4, height: float = 4.2, **options: Any
) -> tuple[Figure, Any]:
    """A figure with a title, and its axes: one, or an array of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title)
    return figure, figure.subplots(rows, panels, **options)


def lines(
    axes: Axes,
    x: ArrayLike,
    by_name: Mapping[str, ArrayLike],
    looks: Mapping[str, Look],
    every: int = 1,
) -> None:
    """A line for each name, with a marker at every so many points."""
    for name, y in by_name.items():
        look = looks[name]
        inside = look.colour if look.filled else "white"
        axes.plot(x, y, label=name, color=look.colour, marker=look.marker, ls=look.pattern, markevery=every, mfc=inside)


def classes(axes: Any, X: Any, y: Any, size: float = 40.0) -> None:
    """Points of two classes: blue + where y is above 0, red circles elsewhere."""
    plus, round = y > 0, y <= 0
    axes.scatter(X[plus, 0], X[plus, 1], s=1.4 * size, c=BLUE, marker="+", linewidths=1.8, zorder=3, label="positive")
    rim = dict(edgecolors=RED, linewidths=1.5)
    axes.scatter(X[round, 0], X[round, 1], s=0.7 * size, c="none", marker="o", zorder=3, label="negative", **rim)
