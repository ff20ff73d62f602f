"""What the theorems promise of one training run: the data's radius, the learned margin, and the bounds that apply.

Every bound here holds for any target u; the certificate takes the learned weights as u, so it needs nothing but the data.
The examples must be those trained on.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory import bounds
from onlearn.theory._rows import Floats, as_rows, radii, scores
from onlearn.theory.disjunction import smallest_disjunction

_ROUNDING = 1e-9  # (R/g)^2 is a rounded number: 0.9999999999999998 allows one mistake


@dataclass(frozen=True)
class Bound:
    """One mistake bound: its value (infinite: promises nothing), and whether and why it applies to the run."""

    name: str
    value: float
    formula: str
    applies: bool
    why: str


@dataclass(frozen=True, repr=False)
class Certificate:
    """The numbers that the mistake bounds are stated in, and the bounds.

    `R` = max|x|_2 and `radius_inf` = max|x|_inf over the rows with their constant feature; `margin` = min y u.x / |u|_2
    of the learned weights u, the constant feature's included (not positive: they don't separate the rows); `norm1` and
    `norm2` of u; the `mistakes` made in training on `n_examples`.
    """

    R: float
    radius_inf: float
    margin: float
    norm1: float
    norm2: float
    mistakes: int
    n_examples: int
    bounds: tuple[Bound, ...]

    def holds(self) -> bool:
        """Whether the mistakes made are within every bound that applies."""
        return all(self.mistakes <= bound.value * (1.0 + _ROUNDING) for bound in self.bounds if bound.applies)

    @property
    def best(self) -> Bound | None:
        """The smallest bound that applies; None if none does."""
        return min((bound for bound in self.bounds if bound.applies), key=lambda bound: bound.value, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON: an infinite value is null."""
        fields = asdict(self)
        fields["bounds"] = [
            {**bound, "value": bound["value"] if math.isfinite(bound["value"]) else None} for bound in fields["bounds"]
        ]
        fields["holds"] = self.holds()
        return fields

    def __str__(self) -> str:
        head = (
            f"mistakes {self.mistakes} in training on {self.n_examples} examples\n"
            f"R {self.R:.4g}   max|x|_inf {self.radius_inf:.4g}   margin {self.margin:.4g}"
            f"   |u|_1 {self.norm1:.4g}   |u|_2 {self.norm2:.4g}\n"
        )
        table = [("bound", "value", "applies", "why")]
        table += [(b.name, f"{b.value:,.4g}", "yes" if b.applies else "no", b.why) for b in self.bounds]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        return head + "\n".join(
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {applies:<{widths[2]}}  {why}" for name, value, applies, why in table
        )

    __repr__ = __str__


def certify(
    X: Any,
    y: ArrayLike,
    weights: ArrayLike,
    intercept: float = 0.0,
    bias: float = 0.0,
    mistakes: int = 0,
    *,
    rule: str,
    geometry: str,
    passes: float = 1,
    init_zero: bool = True,
    single_rate: bool = True,
    threshold: float = 0.0,
    alpha: float | None = None,
    eta: float | None = None,
) -> Certificate:
    """The certificate of a binary learner whose score is weights.x + intercept - threshold.

    X, y: the rows (dense or CSR) and labels (-1, +1) trained on; `passes`: how often each was seen (seen / rows).
    `intercept` = weight of the constant feature times its size `bias`; bias 0: no such feature.
    `mistakes`: made in all of training, ties included.
    `rule`, `geometry`: by name; the theorems know "perceptron" and "additive", "winnow", "balanced", "exponentiated".
    `init_zero`: training began where the proofs do: at 0; multiplicative weights at 1 or all equal.
    `single_rate`: every step had the same rate: no schedule, no sample or class weights, no l1 or l2.
    `threshold`: fixed, for Winnow. `alpha`: factor of winnow and balanced. `eta`: rate of exponentiated.

    >>> c = certify([[0, 1], [1, 0]], [1, -1], [-1.0, 1.0], mistakes=2, rule="perceptron", geometry="additive")
    >>> c.best.name, round(c.best.value, 6), c.holds()
    ('perceptron', 2.0, True)
    """
    run = _Run(
        as_rows(X), np.asarray(y), np.asarray(weights, dtype=np.float64).ravel(), float(intercept), float(bias),
        rule, geometry, float(passes), init_zero, single_rate, float(threshold), alpha, eta,
    )  # fmt: skip
    if mistakes < 0:
        raise ValueError(f"mistakes must not be negative, but it is {mistakes}.")
    return Certificate(
        R=run.radii[0],
        radius_inf=run.radii[1],
        margin=run.margin,
        norm1=run.norm1,
        norm2=run.norm2,
        mistakes=int(mistakes),
        n_examples=run.X.shape[0],
        bounds=tuple(bound(run) for bound in _BOUNDS),
    )


@dataclass(frozen=True, eq=False)
class _Run:
    """A training run as the theorems see it. u is the learned weights, the constant feature's last."""

    X: Any
    y: Any
    weights: Floats
    intercept: float
    bias: float
    rule: str
    geometry: str
    passes: float
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
        if not self.passes >= 1:
            raise ValueError(f"passes must be at least 1, but it is {self.passes}.")

    @cached_property
    def constant(self) -> float:
        """The constant feature's size. A fixed threshold is the weight of one too, of size 1 if there's no other."""
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
    def signed(self) -> Floats:
        """y u.x of every row."""
        return np.asarray(self.y * (scores(self.X, self.weights) + (self.intercept - self.threshold)))

    @cached_property
    def g(self) -> float:
        return float(self.signed.min())

    @cached_property
    def norm1(self) -> float:
        return float(np.abs(self.u).sum())

    @cached_property
    def norm2(self) -> float:
        return float(np.linalg.norm(self.u))

    @cached_property
    def margin(self) -> float:
        return self.g / self.norm2 if self.norm2 > 0.0 else 0.0

    @cached_property
    def margin1(self) -> float:
        """The margin in the multiplicative learners' norms, min y u.x / (|u|_1 max|x|_inf), at most 1."""
        size = self.norm1 * self.radii[1]
        return min(1.0, self.g / size) if size > 0.0 else 0.0

    @cached_property
    def n_weights(self) -> int:
        """How many weights a multiplicative learner needs for u: two for a feature where some weight is negative."""
        signed = self.geometry == "balanced" or bool((self.u < 0.0).any())
        return len(self.u) * (2 if signed else 1)

    @cached_property
    def step(self) -> float | None:
        """The rate of a multiplicative update w_j *= e^(step y x_j)."""
        if self.geometry == "balanced":
            return math.log(self.alpha) if self.alpha is not None and self.alpha > 1.0 else None
        return self.eta

    def mistake_driven(self) -> list[tuple[bool, str]]:
        """What all of the theorems ask."""
        return [
            (self.rule == "perceptron", f"the rule is {self.rule}, the theorem is for a plain step on each mistake"),
            (self.init_zero, "training did not begin where the proof does"),
            (self.single_rate, "the steps were not all of one rate"),
        ]

    def separates(self) -> list[tuple[bool, str]]:
        return [(self.g > 0.0, f"the learned weights do not separate the rows, their margin is {self.margin:.4g}")]

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


def _perceptron(run: _Run) -> Bound:
    value = bounds.perceptron(run.radii[0], run.margin) if run.margin > 0.0 else math.inf
    why = "the learned weights separate the rows"
    return _judge("perceptron", "(R/g)^2", value, run.additive() + run.separates(), why)


def _perceptron_noisy(run: _Run) -> Bound:
    R, _ = run.radii
    if R > 0.0 and run.norm2 > 0.0:
        best = bounds.perceptron_noisy_best(R, run.signed / run.norm2, run.passes)
        value, at = best.value, f"smallest at g = {best.margin:.4g}, D2 = {best.D2:.4g}"
    else:
        value, at = run.passes * len(run.signed), "with no separator to speak of"
    why = f"for the rows seen {run.passes:g} times, {at}"
    return _judge("perceptron_noisy", "((R + D2)/g)^2", value, run.additive(), why)


def _winnow(run: _Run) -> Bound:
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
    # Looking for the disjunction is the dear part: only where it can matter.
    k = smallest_disjunction(run.X, run.y > 0) if all(met for met, _ in conditions) else None
    conditions.append((k is not None, "the labels are not a monotone disjunction of 0/1 features"))
    value = math.inf if k is None else bounds.winnow(n, k, run.alpha or 2.0, run.threshold)
    why = f"the labels are a disjunction of k = {k} of n = {n} features, a = {run.alpha}, theta = {run.threshold:g}"
    return _judge("winnow", formula, value, conditions, why)


def _normalized_winnow(run: _Run) -> Bound:
    p, g = run.n_weights, run.margin1 * run.radii[1]  # |u|_1 = 1, but x as it came
    within = run.radii[1] <= 1.0
    value = bounds.normalized_winnow(p, min(1.0, g), run.step) if g > 0.0 and within else math.inf
    conditions = [
        *run.multiplicative(),
        (within, f"max|x|_inf is {run.radii[1]:.4g}, above 1"),
        (math.isfinite(value), f"eta = {run.step or 0.0:.4g} is too large for the margin {g:.4g}"),
    ]
    why = f"p = {p}, g = {g:.4g} at |u|_1 = 1, eta = {run.step or 0.0:.4g}"
    return _judge("normalized_winnow", "ln p/(eta g + ln(2/(e^eta + e^-eta)))", value, conditions, why)


def _normalized_winnow_simple(run: _Run) -> Bound:
    p, g = run.n_weights, run.margin1 * run.radii[1]
    within = run.radii[1] <= 1.0
    value = bounds.normalized_winnow_simple(p, min(1.0, g)) if g > 0.0 and within else math.inf
    conditions = [
        *run.multiplicative(),
        (within, f"max|x|_inf is {run.radii[1]:.4g}, above 1"),
        _rate_is_good(min(1.0, g), run.step),
    ]
    why = f"p = {p}, g = {g:.4g} at |u|_1 = 1, and eta is near enough its best"
    return _judge("normalized_winnow_simple", "2 ln p/g^2", value, conditions, why)


def _additive(run: _Run) -> Bound:
    value = (run.norm2 * run.radii[0] / run.g) ** 2 if run.g > 0.0 else math.inf
    why = "the learned weights separate the rows"
    return _judge("additive", "|u|_2^2 max|x|_2^2/g^2", value, run.additive() + run.separates(), why)


def _multiplicative(run: _Run) -> Bound:
    n, g, peak = run.n_weights, run.margin1, run.radii[1]
    value = bounds.normalized_winnow_simple(n, g) if g > 0.0 else math.inf  # of x / max|x|_inf
    # Scaling the rows down by max|x|_inf scales the rate up.
    conditions = [*run.multiplicative(), _rate_is_good(g, None if run.step is None else run.step * peak)]
    why = f"n = {n} weights, and eta is near enough its best"
    return _judge("multiplicative", "2 ln n |u|_1^2 max|x|_inf^2/g^2", value, conditions, why)


def _rate_is_good(g: float, eta: float | None) -> tuple[bool, str]:
    """The simple form is for the best rate; it holds for any whose exact bound is no larger."""
    if eta is None or g <= 0.0:
        return False, "the rate is not known"
    good = bounds.normalized_winnow(2, g, eta) <= bounds.normalized_winnow_simple(2, g) * (1.0 + _ROUNDING)
    return good, f"eta is too far from its best, {bounds.best_eta(g):.4g} for rows within 1"


_BOUNDS = (
    _perceptron,
    _perceptron_noisy,
    _winnow,
    _normalized_winnow,
    _normalized_winnow_simple,
    _additive,
    _multiplicative,
)
