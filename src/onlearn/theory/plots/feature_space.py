"""Made separable: features that turn a curve into a straight boundary, and kernels that do so without computing them.

No threshold on x separates points inside an interval from those outside; a line in the plane of (x, x^2) does. No line
separates the inside of an ellipse around the origin from its outside; in the plane of (x1^2, x2^2) the ellipse
x1^2 / a^2 + x2^2 / b^2 = 1 is a line. A kernel k(x, z) = phi(x).phi(z) learns such a line from products alone: the
Perceptron's w is a sum of examples, so w.phi(x) is a sum of kernel values. M. Aizerman, E. Braverman and L. Rozonoer,
Theoretical foundations of the potential function method, 1964.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlearn.dual.learner import DualLearner
from onlearn.engine.learner import Learner
from onlearn.theory.plots.canvas import GREY, SHADES, axes_of, classes, picture
from onlearn.theory.separable import Floats, separable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELLS = 120  # along each side of a plane in which a score is computed
KERNELS = {"linear": "linear", "polynomial of degree 3": "polynomial(3)", "Gaussian of width 0.4": "gaussian(0.4)"}


class Mapped(NamedTuple):
    """Examples as they are and as features, labels -1 and +1; a separator of the features, if the rows have none."""

    X: Floats
    Z: Floats
    y: NDArray[np.int64]
    weights: Floats
    intercept: float
    separable_before: bool


class Boundary(NamedTuple):
    """A kernel's scores on a grid, ``scores[row, column]`` at (side[column], side[row]), and errors on the examples."""

    name: str
    scores: Floats
    errors: int
    supports: NDArray[np.int64]


class KernelBoundaries(NamedTuple):
    """Examples of the plane, labels -1 and +1, and the boundary of each kernel."""

    X: Floats
    y: NDArray[np.int64]
    side: Floats
    boundaries: list[Boundary]


# ----------------------------------------------------------------------------------------------------
# Data.


def parabola_data(points: int = 24, seed: int = 0) -> Mapped:
    """Points of a line, negative in the interval (-1, 1) and positive outside; their features are (x, x^2).

    >>> data = parabola_data()
    >>> data.separable_before, bool((data.y * (data.Z @ data.weights + data.intercept) > 0).all())
    (False, True)
    """
    rng = np.random.default_rng(seed)
    inside = rng.uniform(-0.85, 0.85, points // 2)
    outside = rng.choice([-1.0, 1.0], points - points // 2) * rng.uniform(1.15, 2.0, points - points // 2)
    outside[:2] = -1.6, 1.6  # some on either side
    x = np.concatenate([inside, outside])
    y = np.where(np.abs(x) > 1.0, 1, -1)
    return _mapped(x[:, None], np.column_stack([x, x**2]), y, rng)


def squares_data(points: int = 60, seed: int = 0) -> Mapped:
    """Points of the plane, positive inside an ellipse around the origin; their features are (x1^2, x2^2)."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.0, 2.0 * np.pi, points)
    inside = np.arange(points) % 2 == 0
    size = np.where(inside, rng.uniform(0.1, 0.85, points), rng.uniform(1.15, 1.8, points))
    X = np.column_stack([1.4 * size * np.cos(angle), 0.9 * size * np.sin(angle)])
    return _mapped(X, X**2, np.where(inside, 1, -1), rng)


def _mapped(X: Floats, Z: Floats, y: NDArray[np.int64], rng: np.random.Generator) -> Mapped:
    """With the separator that the Perceptron with a margin has found, which is well between the classes."""
    learner = Learner(
        "OnlineClassifier", rule="margin(10)", stabilizer="last", epochs=2000, random_state=int(rng.integers(2**31))
    )
    learner.fit(Z, y)
    return Mapped(X, Z, y, learner.coef_[0], float(learner.intercept_[0]), bool(separable(X, y)))


def kernel_boundaries_data(
    points: int = 120, kernels: Sequence[str] = tuple(KERNELS.values()), seed: int = 0
) -> KernelBoundaries:
    """Two half moons, and the averaged kernel Perceptron on them with each kernel, on a grid around them."""
    rng = np.random.default_rng(seed)
    angle, lower = np.pi * rng.random(points), np.arange(points) % 2 == 1
    X = np.column_stack([np.cos(angle) - 0.5, np.sin(angle) - 0.25])
    X[lower] *= -1.0
    X += rng.normal(0.0, 0.15, X.shape)
    y = np.where(lower, -1, 1)
    side = np.linspace(-2.2, 2.2, CELLS)
    grid = np.array([[a, b] for b in side for a in side])
    boundaries = []
    for kernel in kernels:
        learner = DualLearner(kernel=kernel, epochs=20, random_state=seed, representation="dual").fit(X, y)
        scores = np.asarray(learner.decision_function(grid)).reshape(CELLS, CELLS)
        errors = int(np.count_nonzero(learner.predict(X) != y))
        boundaries.append(Boundary(kernel, scores, errors, _supports(learner, X)))
    return KernelBoundaries(X, y, side, boundaries)


def _supports(learner: DualLearner, X: Floats) -> NDArray[np.int64]:
    kept = np.asarray(learner.kept_examples())
    return np.flatnonzero((X[:, None, :] == kept[None]).all(axis=2).any(axis=1))


# ----------------------------------------------------------------------------------------------------
# Drawing.


def _line(axes: Any, w: Floats, b: float) -> None:
    """The line w.z + b = 0 through the frame as it is."""
    x, y = axes.get_xlim(), axes.get_ylim()
    if abs(w[1]) * (y[1] - y[0]) >= abs(w[0]) * (x[1] - x[0]):
        ends = np.array(x)
        axes.plot(ends, -(w[0] * ends + b) / w[1], color="black", label="separator")
    else:
        ends = np.array(y)
        axes.plot(-(w[1] * ends + b) / w[0], ends, color="black", label="separator")
    axes.set(xlim=x, ylim=y)


@picture
def parabola(data: Mapped | None = None, *, seed: int = 0) -> Figure:
    """x -> (x, x^2): points of a line that no threshold separates, and a line that separates their features."""
    data = parabola_data(seed=seed) if data is None else data
    figure, (left, right) = axes_of("x → (x, x²) makes an interval separable", panels=2, width=8.6, height=3.8)
    classes(left, np.column_stack([data.X[:, 0], np.zeros(len(data.y))]), data.y)
    left.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    a, b = data.weights
    inside = np.sort(np.roots([b, a, data.intercept]).real)
    left.vlines(inside, -0.3, 0.3, color="black", label="separator")
    left.set(title="it takes two thresholds on x", xlabel="x", yticks=[], ylim=(-1.0, 1.0))
    left.spines["left"].set_visible(False)
    curve = np.linspace(-2.1, 2.1, 100)
    right.plot(curve, curve**2, color=GREY, lw=0.8, ls=":")
    classes(right, data.Z, data.y)
    _line(right, data.weights, data.intercept)
    right.set(title="a line separates (x, x²)", xlabel="x", ylabel="x²")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


@picture
def squares(data: Mapped | None = None, *, seed: int = 0) -> Figure:
    """(x1, x2) -> (x1^2, x2^2): an ellipse becomes a line."""
    data = squares_data(seed=seed) if data is None else data
    figure, (left, right) = axes_of("(x₁, x₂) → (x₁², x₂²) makes an ellipse a line", panels=2, width=8.6)
    classes(left, data.X, data.y)
    reach = 1.1 * float(np.abs(data.X).max())
    side = np.linspace(-reach, reach, CELLS)
    scores = data.weights[0] * side[None, :] ** 2 + data.weights[1] * side[:, None] ** 2 + data.intercept
    left.contour(side, side, scores, levels=[0.0], colors="black")
    left.set(title="no line separates (x₁, x₂)", xlabel="x₁", ylabel="x₂", aspect="equal")
    classes(right, data.Z, data.y)
    right.set(xlim=(0.0, None), ylim=(0.0, None))
    _line(right, data.weights, data.intercept)
    right.set(title="a line separates (x₁², x₂²)", xlabel="x₁²", ylabel="x₂²")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


@picture
def kernel_boundaries(data: KernelBoundaries | None = None, *, seed: int = 0) -> Figure:
    """The boundaries of the averaged kernel Perceptron with a linear, a polynomial and a Gaussian kernel."""
    data = kernel_boundaries_data(seed=seed) if data is None else data
    names = {spelling: name for name, spelling in KERNELS.items()}
    count = len(data.boundaries)
    figure, grid = axes_of("One learner, three kernels" if count == 3 else "One learner, several kernels",
                           panels=count, width=3.4 * count, height=4.7, squeeze=False)  # fmt: skip
    for axes, one in zip(grid[0], data.boundaries, strict=True):
        axes.contourf(data.side, data.side, one.scores, levels=[-np.inf, 0.0, np.inf], colors=SHADES)
        axes.contour(data.side, data.side, one.scores, levels=[0.0], colors="black", linewidths=1.4)
        classes(axes, data.X, data.y, size=22.0)
        rings = dict(s=60.0, c="none", marker="o", edgecolors="0.35", linewidths=0.7)
        axes.scatter(*data.X[one.supports].T, zorder=2, label="support example", **rings)
        counts = f"errors: {one.errors}, support examples: {len(one.supports)}"
        axes.set_title(f"{names.get(one.name, one.name)}\n{counts}")
        axes.set(xlabel="x₁", aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])
    grid[0, 0].set_ylabel("x₂")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    from matplotlib.lines import Line2D

    handles.append(Line2D([], [], color="black"))
    figure.legend(handles, [*labels, "boundary"], loc="outside lower center", ncols=4)
    return figure
