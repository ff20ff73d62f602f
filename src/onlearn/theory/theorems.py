"""One function for each theorem: the value of its mistake bound for a training run, and whether it applies.

A new bound is one more function in `THEOREMS`. Winnow's bound needs the number of literals of a disjunction
that explains the labels. A feature active in a negative example is in no such disjunction. A few of the others
must cover the positive examples: set cover, which the greedy algorithm solves within a factor of
ln(positives) + 1 (D. Haussler, Quantifying inductive bias, 1988).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlearn.theory import bounds
from onlearn.theory.separable import Floats, blocks, radii, scores, stored
from onlearn.theory.set_cover import greedy_cover

ROUNDING = 1e-9  # (R/g)^2 is a rounded number: 0.9999999999999998 allows one mistake


@dataclass(frozen=True)
class Bound:
    """One mistake bound: its value (infinite if it promises nothing), whether it applies to the run, and why."""

    name: str
    value: float
    formula: str
    applies: bool
    why: str


@dataclass(frozen=True, eq=False)
class Run:
    """The facts of a training run that the theorems need. u is the learned weights, the constant feature last."""

    X: Any
    y: Any
    weights: Floats
    intercept: float
    bias: float
    rule: str
    geometry: str
    passes: int
    init_zero: bool
    single_rate: bool
    threshold: float
    alpha: float | None
    eta: float | None

    def __post_init__(self) -> None:
        n_rows, n_columns = self.X.shape
        if self.y.shape != (n_rows,) or not np.isin(self.y, (-1, 1)).all():
            raise ValueError(f"y must hold -1 or +1 for each of the {n_rows} rows.")
        if self.weights.shape != (n_columns,) or not np.isfinite(self.weights).all():
            raise ValueError(f"weights must be finite, one for each of the {n_columns} columns.")
        if self.intercept != 0.0 and self.bias == 0.0:
            raise ValueError("An intercept needs the size of its constant feature, but bias is 0.")
        if not math.isfinite(self.intercept - self.threshold):
            raise ValueError("intercept and threshold must be finite.")

    @cached_property
    def constant(self) -> float:
        """The size of the constant feature. A fixed threshold is the weight of such a feature, too, of size 1."""
        return abs(self.bias) or float(self.threshold != 0.0)

    @cached_property
    def u(self) -> Floats:
        if self.constant == 0.0:
            return self.weights
        return np.append(self.weights, (self.intercept - self.threshold) / self.constant)

    @cached_property
    def radii(self) -> tuple[float, float]:
        radius, peak = radii(self.X)
        return math.hypot(radius, self.constant), max(peak, self.constant)

    @cached_property
    def norm1(self) -> float:
        return float(np.abs(self.u).sum())

    @cached_property
    def norm2(self) -> float:
        top = float(np.abs(self.u).max())
        return top * float(np.linalg.norm(self.u / top)) if top > 0.0 else 0.0  # so that no square overflows

    @cached_property
    def signed(self) -> Floats:
        """y u.x / |u|_2 of every row."""
        size = self.norm2 or 1.0
        line = scores(self.X, self.weights / size) + (self.intercept - self.threshold) / size
        return np.asarray(self.y * line, dtype=np.float64)

    @cached_property
    def margin(self) -> float:
        return float(self.signed.min())

    @cached_property
    def margin1(self) -> float:
        """The margin in the norms of multiplicative learners, min y u.x / (|u|_1 max|x|_inf), at most 1."""
        if self.norm2 == 0.0 or self.radii[1] == 0.0:
            return 0.0
        return min(1.0, self.margin / self.radii[1] / (self.norm1 / self.norm2))

    @cached_property
    def n_weights(self) -> int:
        """The number of weights that a multiplicative learner needs for u: two a feature if some weight is negative."""
        signed = self.geometry == "balanced" or bool((self.u < 0.0).any())
        return len(self.u) * (2 if signed else 1)

    @cached_property
    def step(self) -> float | None:
        """The rate of a multiplicative update w_j *= e^(step y x_j)."""
        if self.geometry == "balanced":
            return math.log(self.alpha) if self.alpha is not None and self.alpha > 1.0 else None
        return self.eta

    def mistake_driven(self) -> list[tuple[bool, str]]:
        """The conditions of all theorems."""
        return [
            (self.rule == "perceptron", f"the rule is {self.rule}, not a plain step on each mistake"),
            (self.init_zero, "training did not begin at the start that the proof assumes"),
            (self.single_rate, "not all steps had the same rate"),
        ]

    def separates(self) -> list[tuple[bool, str]]:
        return [(self.margin > 0.0, f"the learned weights do not separate the rows (margin {self.margin:.4g})")]

    def additive(self) -> list[tuple[bool, str]]:
        return [
            (self.geometry == "additive", f"for comparison: the geometry is {self.geometry}, not additive"),
            (self.threshold == 0.0, "the threshold is fixed, not learned"),
            *self.mistake_driven(),
        ]

    def multiplicative(self) -> list[tuple[bool, str]]:
        known = self.geometry in ("exponentiated", "balanced")
        return [
            (known, f"for comparison: the geometry is {self.geometry}, not exponentiated or balanced"),
            (self.threshold == 0.0, "the score has a fixed threshold, the theorem is for none"),
            *self.mistake_driven(),
            (self.geometry != "exponentiated" or bool((self.u >= 0.0).all()), "a learned weight is negative"),
            *self.separates(),
            (self.step is not None, "the rate is not known"),
        ]


def _judge(name: str, formula: str, value: float, conditions: list[tuple[bool, str]], holds: str) -> Bound:
    failed = [why for met, why in conditions if not met]
    return Bound(name, value, formula, not failed, failed[0] if failed else holds)


def _perceptron(run: Run) -> Bound:
    value = bounds.perceptron(run.radii[0], run.margin) if run.margin > 0.0 else math.inf
    why = "the learned weights separate the rows"
    return _judge("perceptron", "(R/g)^2", value, run.additive() + run.separates(), why)


def _perceptron_noisy(run: Run) -> Bound:
    R, _ = run.radii
    value = float(run.passes * len(run.signed))
    why = "one mistake for each example seen: no margin gives less"
    if R > 0.0 and run.norm2 > 0.0:
        best = bounds.perceptron_noisy_best(R, run.signed, run.passes)
        if math.isfinite(best.margin):
            value = best.value
            why = f"smallest at g = {best.margin:.4g}, D2 = {best.D2:.4g} (passes: {run.passes})"
    return _judge("perceptron_noisy", "((R + D2)/g)^2", value, run.additive(), why)


def _winnow(run: Run) -> Bound:
    n = run.X.shape[1] + (run.bias != 0.0)
    textbook = run.alpha == 2.0 and run.threshold == n
    formula = "3k(log2 n + 1) + 2" if textbook else "(1 + a)k(log_a theta + 1) + n a/((a - 1) theta)"
    conditions = [
        (run.geometry == "winnow", f"the geometry is {run.geometry}, not winnow"),
        *run.mistake_driven(),
        (run.alpha is not None and 1.0 < run.alpha < math.inf, "alpha is not above 1"),
        (run.threshold >= 1.0, "the threshold is below 1"),
        (run.bias in (0.0, 1.0), "the constant feature is not 0 or 1"),
    ]
    # The disjunction takes long to find, so it is looked for only where the bound can apply.
    k = smallest_disjunction(run.X, run.y > 0) if all(met for met, _ in conditions) else None
    conditions.append((k is not None, "the labels are not a monotone disjunction of 0/1 features"))
    value = math.inf if k is None else bounds.winnow(n, k, run.alpha or 2.0, run.threshold)
    greedy = " (found greedily: fewer may do)" if k and k > 2 else ""  # greedy is optimal up to two
    why = f"a disjunction of k = {k}{greedy} of n = {n} features, a = {run.alpha}, theta = {run.threshold:g}"
    return _judge("winnow", formula, value, conditions, why)


def _normalized_winnow(run: Run) -> Bound:
    p, g = run.n_weights, run.margin1 * run.radii[1]  # for |u|_1 = 1 and x unscaled
    within = run.radii[1] <= 1.0
    value = bounds.normalized_winnow(p, min(1.0, g), run.step) if g > 0.0 and within else math.inf
    conditions = [
        *run.multiplicative(),
        (within, f"max|x|_inf is {run.radii[1]:.4g}, above 1"),
        (math.isfinite(value), f"eta = {run.step or 0.0:.4g} is too large for the margin {g:.4g}"),
    ]
    why = f"p = {p}, g = {g:.4g} at |u|_1 = 1, eta = {run.step or 0.0:.4g}"
    return _judge("normalized_winnow", "ln p/(eta g + ln(2/(e^eta + e^-eta)))", value, conditions, why)


def _normalized_winnow_simple(run: Run) -> Bound:
    p, g = run.n_weights, run.margin1 * run.radii[1]
    within = run.radii[1] <= 1.0
    value = bounds.normalized_winnow_simple(p, min(1.0, g)) if g > 0.0 and within else math.inf
    conditions = [
        *run.multiplicative(),
        (within, f"max|x|_inf is {run.radii[1]:.4g}, above 1"),
        _rate_is_good(min(1.0, g), run.step),
    ]
    why = f"p = {p}, g = {g:.4g} at |u|_1 = 1, and eta is near enough to its best"
    return _judge("normalized_winnow_simple", "2 ln p/g^2", value, conditions, why)


def _additive(run: Run) -> Bound:
    # With g = |u|_2 margin it is the bound of the perceptron in other terms.
    value = bounds.perceptron(run.radii[0], run.margin) if run.margin > 0.0 else math.inf
    why = "the learned weights separate the rows"
    return _judge("additive", "|u|_2^2 max|x|_2^2/g^2", value, run.additive() + run.separates(), why)


def _multiplicative(run: Run) -> Bound:
    n, g, peak = run.n_weights, run.margin1, run.radii[1]
    value = bounds.normalized_winnow_simple(n, g) if g > 0.0 else math.inf  # of x / max|x|_inf
    # Dividing the rows by max|x|_inf multiplies the rate by it.
    conditions = [*run.multiplicative(), _rate_is_good(g, None if run.step is None else run.step * peak)]
    why = f"n = {n} weights, and eta is near enough to its best"
    return _judge("multiplicative", "2 ln n |u|_1^2 max|x|_inf^2/g^2", value, conditions, why)


def _rate_is_good(g: float, eta: float | None) -> tuple[bool, str]:
    """The simple form is for the best rate; it holds for any rate whose exact bound is no larger."""
    if eta is None or g <= 0.0:
        return False, "the rate is not known"
    good = bounds.normalized_winnow(2, g, eta) <= bounds.normalized_winnow_simple(2, g) * (1.0 + ROUNDING)
    return good, f"eta is too far from its best, {bounds.best_eta(g):.4g} for rows within 1"


THEOREMS = (
    _perceptron,
    _perceptron_noisy,
    _winnow,
    _normalized_winnow,
    _normalized_winnow_simple,
    _additive,
    _multiplicative,
)

ADDITIVE = (_perceptron, _perceptron_noisy, _additive)  # need no coordinates, so they hold in any feature space


# -- monotone disjunctions


def smallest_disjunction(X: Any, positive: NDArray[np.bool_]) -> int | None:
    """How many literals a monotone disjunction needs, by greedy cover (never fewer than the fewest), or None.

    None: a value is not 0 or 1, or no disjunction gives these labels.

    >>> smallest_disjunction(np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]]), np.array([True, True, False]))
    2
    """
    harmless = np.ones(X.shape[1], dtype=bool)
    for start, block in blocks(X):
        row, column, value = stored(block)
        if not ((value == 0.0) | (value == 1.0)).all():
            return None
        harmless[column[~positive[start + row] & (value != 0.0)]] = False
    covered, covering = [], []
    for start, block in blocks(X):
        row, column, value = stored(block)
        useful = positive[start + row] & harmless[column] & (value != 0.0)
        covered.append(start + row[useful])
        covering.append(column[useful])
    taken = greedy_cover(np.concatenate(covered), np.concatenate(covering), X.shape, int(positive.sum()))
    return None if taken is None else len(taken)
