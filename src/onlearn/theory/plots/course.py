"""The course of learning: the hypothesis after every mistake, of the Perceptron and of Winnow, and Novikoff's proof.

A mistake of the Perceptron adds y x to w, with y w.x <= 0 and y u.x >= g for the unit target u, so after
k mistakes

    |w|^2 <= k R^2        and        w.u >= k g.

As w.u <= |w| the second grows faster than the first until they meet, at k = (R / g)^2: there is no later mistake.
A. Novikoff, On convergence proofs for perceptrons, 1962. Winnow's weights are multiplied by alpha or 1 / alpha: those
of the relevant attributes rise to the threshold in a few steps. N. Littlestone, 1988.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlearn.theory import bounds
from onlearn.theory.plots.canvas import BLUE, GREEN, GREY, PURPLE, RED, Look, axes_of, classes, lines, picture
from onlearn.theory.separable import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PASSES = 1000  # no more passes are made over data that turn out not to be separable
PANELS = 12  # mistakes that are drawn
MINUS = "\N{MINUS SIGN}"


class Course(NamedTuple):
    """The row of each mistake; weights and intercept after k mistakes, from k = 0, the start."""

    rows: NDArray[np.int64]
    weights: Floats
    intercepts: Floats


class PerceptronInAction(NamedTuple):
    """Points of the plane, their labels -1 and +1, and the Perceptron's course on them."""

    X: Floats
    y: NDArray[np.int64]
    course: Course


class WinnowWeights(NamedTuple):
    """Winnow's course on a monotone disjunction of the given columns; the threshold and the mistakes' labels."""

    relevant: NDArray[np.int64]
    course: Course
    threshold: float
    promotions: NDArray[np.bool_]
    bound: float


class Potential(NamedTuple):
    """Both sides of the proof after k mistakes, k = 0, 1, ...: |w|^2 and (w.u)^2, with R^2 and the margin g of u."""

    squared_length: Floats
    squared_progress: Floats
    R2: float
    margin: float

    @property
    def bound(self) -> float:
        return bounds.perceptron(math.sqrt(self.R2), self.margin)


# ----------------------------------------------------------------------------------------------------
# Learning, written plainly.


Move = Callable[[Floats, Floats, int], Floats]  # the weights after a mistake on a row with that label


def course_of(X: Floats, y: NDArray[np.int64], w: Floats, b: float, move: Move, bias: float) -> Course:
    """Pass over the rows until a pass makes no mistake; the intercept moves by the square of the constant feature."""
    rows: list[int] = []
    weights, intercepts = [w], [b]
    for _ in range(PASSES):
        before = len(rows)
        for i, (x, label) in enumerate(zip(X, y.tolist(), strict=True)):
            if label * (w @ x + b) <= 0.0:
                w, b = move(w, x, label), b + label * bias**2
                rows.append(i)
                weights.append(w)
                intercepts.append(b)
        if len(rows) == before:
            break
    return Course(np.array(rows, np.int64), np.array(weights), np.array(intercepts))


def perceptron_course(X: Floats, y: NDArray[np.int64], bias: float = 0.0) -> Course:
    """The Perceptron's course on rows with labels -1 and +1; ``bias`` is the size of the constant feature.

    >>> perceptron_course(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([1, -1])).weights.tolist()
    [[0.0, 0.0], [2.0, 0.0], [2.0, -1.0]]
    """
    return course_of(X, y, np.zeros(X.shape[1]), 0.0, lambda w, x, label: w + label * x, bias)


def winnow_course(X: Floats, y: NDArray[np.int64], alpha: float = 2.0) -> Course:
    """Winnow's course; the intercept is minus the threshold, the number of features.

    >>> winnow_course(np.eye(2), np.array([1, -1])).weights.tolist()
    [[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]
    """
    n = X.shape[1]
    return course_of(X, y, np.ones(n), -float(n), lambda w, x, label: w * alpha ** (label * x), 0.0)


# ----------------------------------------------------------------------------------------------------
# Data.


def perceptron_in_action_data(points: int = 24, seed: int = 7) -> PerceptronInAction:
    """Points of the plane around a line that misses the origin, and the Perceptron with an intercept on them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (4 * points, 2))
    side = X @ np.array([0.6, 0.8]) - 0.15
    X, side = X[np.abs(side) > 0.15][:points], side[np.abs(side) > 0.15][:points]
    y = np.where(side > 0.0, 1, -1)
    return PerceptronInAction(X, y, perceptron_course(X, y, bias=1.0))


def winnow_weights_data(n: int = 64, examples: int = 300, seed: int = 0) -> WinnowWeights:
    """Winnow on a disjunction of three of n attributes; a fifth of the others are on."""
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], examples)
    X = (rng.random((examples, n)) < 0.2).astype(np.float64)
    relevant = np.sort(rng.choice(n, 3, replace=False))
    X[:, relevant] = 0.0
    X[np.arange(examples), relevant[rng.integers(0, 3, examples)]] = y > 0
    course = winnow_course(X, y)
    return WinnowWeights(relevant, course, float(n), y[course.rows] > 0, bounds.winnow(n, 3))


def potential_data(n: int = 20, points: int = 200, seed: int = 4) -> Potential:
    """The Perceptron without an intercept on rows of length up to 1 beside a plane through the origin, the target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(points, n))
    X[:, 0] = 0.0
    X /= np.linalg.norm(X, axis=1)[:, None]
    y = rng.choice([-1, 1], points)
    X[:, 0] = y * rng.uniform(0.2, 0.4, points)  # u is the first axis
    w = perceptron_course(X, y).weights
    return Potential((w**2).sum(axis=1), w[:, 0] ** 2, float((X**2).sum(axis=1).max()), float(np.abs(X[:, 0]).min()))


# ----------------------------------------------------------------------------------------------------
# Drawing.


def _boundary(axes: Any, w: Floats, b: float, reach: float, **look: Any) -> None:
    """The line w.x + b = 0, if w is one."""
    size = float(np.linalg.norm(w))
    if size > 0.0:
        foot, along = -b * w / size**2, np.array([-w[1], w[0]]) / size * 3.0 * reach
        axes.plot(*np.column_stack([foot - along, foot + along]), **look)


@picture
def perceptron_in_action(data: PerceptronInAction | None = None, *, seed: int = 7) -> Figure:
    """The boundary and the weight vector of the Perceptron after every mistake, in the plane."""
    X, y, course = perceptron_in_action_data(seed=seed) if data is None else data
    made = len(course.rows)
    shown = min(made, PANELS)
    across = min(4, max(1, shown))
    down = max(1, math.ceil(shown / across))
    title = f"The Perceptron in action: {made} mistakes" + (f", the first {shown} of them" if shown < made else "")
    figure, grid = axes_of(
        title, panels=across, rows=down, width=2.5 * across + 0.4, height=2.8 * down + 1.0, squeeze=False
    )
    figure.set_layout_engine("constrained", h_pad=0.08)
    reach = 1.15 * float(np.abs(X).max())
    for k, axes in enumerate(grid.flat, start=1):
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        axes.set_visible(k <= shown)
        if k > shown:
            continue
        row = course.rows[k - 1]
        w, b = course.weights[k], float(course.intercepts[k])
        classes(axes, X, y, size=22.0)
        axes.scatter(*X[row], s=130.0, c="none", marker="o", edgecolors="black", linewidths=1.3, label="mistake")
        _boundary(axes, course.weights[k - 1], float(course.intercepts[k - 1]), reach, color=GREY, ls="--", lw=1.2,
                  label="boundary before")  # fmt: skip
        _boundary(axes, w, b, reach, color="black", lw=1.6, label="boundary after")
        size = float(np.linalg.norm(w))
        if size > 0.0:
            foot = np.clip(-b * w / size**2, -reach, reach)
            arrow = dict(arrowstyle="-|>", color=GREEN, lw=2.0, shrinkA=0, shrinkB=0)
            axes.annotate("", foot + 0.45 * reach * w / size, foot, arrowprops=arrow, annotation_clip=False)
        numbers = f"w = ({w[0]:.2f}, {w[1]:.2f}), b = {b:g}".replace("-", MINUS)
        axes.set_title(f"mistake {k}: row {row + 1}, {'+' if y[row] > 0 else MINUS}\n{numbers}")
    for axes in grid[:, 0]:
        axes.set_ylabel("x₂")
    for axes in grid[-1]:
        axes.set_xlabel("x₁")
    _legend_below(figure, grid.flat[min(1, shown - 1)] if shown else grid.flat[0], "direction of w")
    return figure


def _legend_below(figure: Any, axes: Any, arrow: str) -> None:
    from matplotlib.lines import Line2D

    handles, labels = axes.get_legend_handles_labels()
    handles.append(Line2D([], [], color=GREEN, marker=">", lw=2.0))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / 1.6)))
    figure.legend(handles, [*labels, arrow], loc="outside lower center", ncols=columns)


@picture
def winnow_weights(data: WinnowWeights | None = None, *, seed: int = 0) -> Figure:
    """Winnow's weights after every mistake: relevant attributes rise to the threshold, the others stay or fall."""
    data = winnow_weights_data(seed=seed) if data is None else data
    weights, k = data.course.weights, np.arange(len(data.course.weights))
    n = weights.shape[1]
    figure, axes = axes_of(f"Winnow's weights: {len(k) - 1} mistakes, at most {data.bound:.0f} by its bound", width=7.6)
    others = np.setdiff1d(np.arange(n), data.relevant)
    # Weights are powers of two, and many the same: each has its own small shift, as a share of a power.
    shift = 2.0 ** np.linspace(-0.18, 0.18, len(others))
    axes.step(k, weights[:, others] * shift, where="post", color="0.7", lw=0.8)
    axes.plot([], [], color="0.7", lw=0.8, label=f"{len(others)} other attributes")
    looks = zip(data.relevant, (BLUE, RED, PURPLE), ("o", "s", "^"), strict=True)
    for column, colour, marker in looks:
        axes.step(k, weights[:, column], where="post", color=colour, marker=marker, lw=1.8, label=f"x{column + 1}")
    axes.axhline(data.threshold, color="black", ls="--", lw=1.2, label=f"threshold n = {n}")
    axes.set_yscale("log", base=2)
    low = float(weights.min()) / 4.0
    for promoted, marker, colour, name in ((True, "^", GREEN, "promotion"), (False, "v", GREY, "demotion")):
        at = 1 + np.flatnonzero(data.promotions == promoted)
        axes.plot(at, np.full(len(at), low), ls="", marker=marker, color=colour, label=name)
    axes.set(xlabel="mistakes", ylabel="weight, in powers of two")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


@picture
def potential(data: Potential | None = None, *, seed: int = 4) -> Figure:
    """|w|^2 and (w.u)^2 after every mistake, between the two lines of the proof, which meet at the bound."""
    data = potential_data(seed=seed) if data is None else data
    figure, axes = axes_of("Why the Perceptron stops: two sides of Novikoff's proof", width=7.6)
    k = np.arange(len(data.squared_length))
    last = max(1.25 * data.bound, k[-1] + 1.0)
    line = np.linspace(0.0, last, 200)
    limits = {"k R², at least |w|²": line * data.R2, "(k g)², at most (w·u)²": (line * data.margin) ** 2}
    sides = {"|w|² after k mistakes": data.squared_length, "(w·u)² after k mistakes": data.squared_progress}
    lines(axes, line, limits, dict(zip(limits, (Look(BLUE, "", (0, (6, 3))), Look(RED, "", (0, (2, 2)))), strict=True)))
    lines(axes, k, sides, dict(zip(sides, (Look(BLUE, "o", "-"), Look(RED, "s", "-", filled=False)), strict=True)))
    top = 1.15 * max(data.bound * data.R2, float(data.squared_length.max()))
    axes.axvline(data.bound, color=GREY, lw=1.0, ls=":")
    axes.annotate(f"bound (R/g)² = {data.bound:.1f}", (data.bound, 0.02 * top), xytext=(-4, 0),
                  textcoords="offset points", ha="right", color="0.3")  # fmt: skip
    axes.annotate(f"last mistake: {k[-1]}", (k[-1], float(data.squared_progress[-1])), xytext=(10, -24),
                  textcoords="offset points", color="0.3")  # fmt: skip
    axes.set(xlabel="mistakes k", ylabel="squared length (units of x, squared)", xlim=(0.0, last), ylim=(0.0, top))
    axes.legend(loc="upper left")
    return figure
