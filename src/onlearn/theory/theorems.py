"""One function for each theorem: the value of its mistake bound for a training run, and whether it applies.

A new bound is one more function in `THEOREMS`. Winnow's bound needs the number of literals of a disjunction
that explains the labels. A feature active in a negative example is in no such disjunction. A few of the others
must cover the positive examples: set cover, which the greedy algorithm solves within a factor of
ln(positives) + 1 (D. Haussler, Quantifying inductive bias, 1988).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlearn.theory import bounds
from onlearn.theory.separable import Floats, blocks, scores, stored
from onlearn.theory.set_cover import greedy_cover

LEARNED = "learned weights"
BEYOND = 1e-7  # a score may be beyond the length of its row by so much
ROUNDING = 1e-9  # (R/g)^2 is a rounded number: 0.9999999999999998 allows one mistake


@dataclass(frozen=True)
class Bound:
    """One mistake bound: its value (infinite if it promises nothing), whether it applies to the run, and why.

    ``target`` says which u the value is for: the learned weights, or a better one that was found. ``counted`` is the
    count that the value limits, where that is not the number of all mistakes.
    """

    name: str
    value: float
    formula: str
    applies: bool
    why: str
    target: str = LEARNED
    counted: float | None = None


@dataclass(frozen=True)
class Mixing:
    """What theorems need to know of a run in which shards learned apart in each round, and their weights were mixed.

    ``mistakes`` are those of all rounds, each times the share of its shard; if the shares were ``equal``, all mistakes
    are ``shards`` times as many. ``share`` is the largest share of a shard, on average over the passes.
    """

    shards: int
    mistakes: float
    share: float
    equal: bool


@dataclass(frozen=True, eq=False)
class Target:
    """A target u: its name, y u.x / |u|_2 of every row, its norms, how many weights it has, and if some are negative.

    The constant feature is part of x and u.
    """

    name: str
    signed: Floats
    norm1: float
    norm2: float
    n_weights: int
    negative: bool

    @cached_property
    def margin(self) -> float:
        return float(self.signed.min())

    def margin1(self, peak: float) -> float:
        """The margin in the norms of multiplicative learners, min y u.x / (|u|_1 max|x|_inf), at most 1."""
        if self.norm2 == 0.0 or peak == 0.0:
            return 0.0
        return min(1.0, self.margin / peak / (self.norm1 / self.norm2))


def make_target(name: str, X: Any, y: Any, u: Floats, constant: float) -> Target:
    """A target of rows that end in a constant feature, unless that is 0."""
    top = float(np.abs(u).max())
    norm2 = top * float(np.linalg.norm(u / top)) if top > 0.0 else 0.0  # so that no square overflows
    unit = u / (norm2 or 1.0)
    line = scores(X, unit[: X.shape[1]]) + (unit[-1] * constant if constant else 0.0)
    return Target(
        name, np.asarray(y * line, dtype=np.float64), float(np.abs(u).sum()), norm2, len(u), bool((u < 0.0).any())
    )


@dataclass(frozen=True, eq=False)
class Run:
    """The facts of a training run that the theorems need. The first of the targets is the learned weights."""

    targets: tuple[Target, ...]
    radii: tuple[float, float]  # max|x|_2 and max|x|_inf, with the constant feature
    X: Any
    y: Any
    bias: float
    rule: str
    geometry: str
    passes: int
    init_zero: bool
    single_rate: bool
    threshold: float
    alpha: float | None
    eta: float | None
    seen: int | None = None  # examples, if they are not those of whole passes
    mixing: Mixing | None = None

    @property
    def examples(self) -> float:
        """How many examples were seen: no learner errs more often."""
        return float(self.passes * len(self.targets[0].signed) if self.seen is None else self.seen)

    @cached_property
    def widest(self) -> Target:
        """The target with the largest margin at |u|_2 = 1."""
        return max(self.targets, key=lambda target: target.margin)

    @cached_property
    def simplest(self) -> Target:
        """The target with the largest margin at |u|_1 = 1 of those that a multiplicative learner can reach."""
        reachable = [t for t in self.targets if self.geometry != "exponentiated" or not t.negative]
        return max(reachable or self.targets[:1], key=lambda target: target.margin1(self.radii[1]))

    def n_weights(self, target: Target) -> int:
        """The number of weights that a multiplicative learner needs for u: two a feature if some weight is negative."""
        return target.n_weights * (2 if self.geometry == "balanced" or target.negative else 1)

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

    def separates(self, target: Target) -> list[tuple[bool, str]]:
        who = f"the {LEARNED} do not separate" if target.name == LEARNED else f"not even the {target.name} separates"
        return [(target.margin > 0.0, f"{who} the rows (margin {target.margin:.4g})")]

    def additive(self) -> list[tuple[bool, str]]:
        return [
            (self.geometry == "additive", f"for comparison: the geometry is {self.geometry}, not additive"),
            (self.threshold == 0.0, "the threshold is fixed, not learned"),
            *self.mistake_driven(),
        ]

    def multiplicative(self, target: Target) -> list[tuple[bool, str]]:
        known = self.geometry in ("exponentiated", "balanced")
        return [
            (known, f"for comparison: the geometry is {self.geometry}, not exponentiated or balanced"),
            (self.threshold == 0.0, "the score has a fixed threshold, the theorem is for none"),
            *self.mistake_driven(),
            (self.geometry != "exponentiated" or not target.negative, "a learned weight is negative"),
            (self.step is not None, "the rate is not known"),
        ]


def _judge(
    name: str, formula: str, value: float, conditions: list[tuple[bool, str]], holds: str, target: str = LEARNED
) -> Bound:
    failed = [why for met, why in conditions if not met]
    return Bound(name, value, formula, not failed, failed[0] if failed else holds, target)


def _perceptron(run: Run) -> Bound:
    u = run.widest
    value = bounds.perceptron(run.radii[0], u.margin) if u.margin > 0.0 else math.inf
    why = f"u: {u.name}, g = {u.margin:.4g} at |u|_2 = 1"
    return _judge("perceptron", "(R/g)^2", value, run.additive() + run.separates(u), why, u.name)


def _perceptron_noisy(run: Run) -> Bound:
    value, why, name = _least_noisy(run, run.radii[0])
    return _judge("perceptron_noisy", "((R + D2)/g)^2", value, run.additive(), why, name)


def _least_noisy(run: Run, R: float) -> tuple[float, str, str]:
    """The smallest ((R + D2)/g)^2 over all margins and targets, where it is, and for which target; R may be larger."""
    value = run.examples
    why, name = "one mistake for each example seen: no margin gives less", LEARNED
    for target in run.targets:
        # Of a function that is no kernel, scores may be beyond what lengths allow.
        if R > 0.0 and target.norm2 > 0.0 and np.abs(target.signed).max() <= R * (1.0 + BEYOND):
            best = bounds.perceptron_noisy_best(R, target.signed, run.passes)
            if math.isfinite(best.margin) and best.value <= value and (best.value < value or target.name == LEARNED):
                value, name = best.value, target.name
                why = f"u: {name}, smallest at g = {best.margin:.4g}, D2 = {best.D2:.4g} (passes: {run.passes})"
    return value, why, name


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
    return _judge("winnow", formula, value, conditions, why, LEARNED if k is None else "a disjunction")


def _normalized_winnow(run: Run) -> Bound:
    u, peak = run.simplest, run.radii[1]
    p, g = run.n_weights(u), u.margin1(peak) * peak  # for |u|_1 = 1 and x unscaled
    value = bounds.normalized_winnow(p, min(1.0, g), run.step) if g > 0.0 and peak <= 1.0 else math.inf
    conditions = [
        *run.multiplicative(u),
        *run.separates(u),
        (peak <= 1.0, f"max|x|_inf is {peak:.4g}, above 1"),
        (math.isfinite(value), f"eta = {run.step or 0.0:.4g} is too large for the margin {g:.4g}"),
    ]
    why = f"u: {u.name}, p = {p}, g = {g:.4g} at |u|_1 = 1, eta = {run.step or 0.0:.4g}"
    return _judge("normalized_winnow", "ln p/(eta g + ln(2/(e^eta + e^-eta)))", value, conditions, why, u.name)


def _normalized_winnow_noisy(run: Run) -> Bound:
    u, peak = run.simplest, run.radii[1]
    p, value = run.n_weights(u), run.examples
    why = "one mistake for each example seen: no margin gives less"
    if 0.0 < peak <= 1.0 and u.norm1 > 0.0 and run.step is not None:
        at_norm1 = u.signed * (u.norm2 / u.norm1)
        best = bounds.normalized_winnow_noisy_best(p, at_norm1, run.passes, run.step)
        if math.isfinite(best.margin) and best.value <= value:
            value = best.value
            why = f"u: {u.name}, smallest at g = {best.margin:.4g}, D1 = {best.D1:.4g} (passes: {run.passes})"
    conditions = [*run.multiplicative(u), (peak <= 1.0, f"max|x|_inf is {peak:.4g}, above 1")]
    formula = "(ln p + eta D1)/(eta g + ln(2/(e^eta + e^-eta)))"
    return _judge("normalized_winnow_noisy", formula, value, conditions, why, u.name)


def _normalized_winnow_simple(run: Run) -> Bound:
    u, peak = run.simplest, run.radii[1]
    p, g = run.n_weights(u), u.margin1(peak) * peak
    value = bounds.normalized_winnow_simple(p, min(1.0, g)) if g > 0.0 and peak <= 1.0 else math.inf
    conditions = [
        *run.multiplicative(u),
        *run.separates(u),
        (peak <= 1.0, f"max|x|_inf is {peak:.4g}, above 1"),
        _rate_is_good(min(1.0, g), run.step),
    ]
    why = f"u: {u.name}, p = {p}, g = {g:.4g} at |u|_1 = 1, and eta is near enough to its best"
    return _judge("normalized_winnow_simple", "2 ln p/g^2", value, conditions, why, u.name)


def _additive(run: Run) -> Bound:
    # With g = |u|_2 margin it is the bound of the perceptron in other terms.
    return replace(_perceptron(run), name="additive", formula="|u|_2^2 max|x|_2^2/g^2")


def _multiplicative(run: Run) -> Bound:
    u, peak = run.simplest, run.radii[1]
    n, g = run.n_weights(u), u.margin1(peak)
    value = bounds.normalized_winnow_simple(n, g) if g > 0.0 else math.inf  # of x / max|x|_inf
    # Dividing the rows by max|x|_inf multiplies the rate by it.
    rate = None if run.step is None else run.step * peak
    conditions = [*run.multiplicative(u), *run.separates(u), _rate_is_good(g, rate)]
    why = f"u: {u.name}, n = {n} weights, and eta is near enough to its best"
    return _judge("multiplicative", "2 ln n |u|_1^2 max|x|_inf^2/g^2", value, conditions, why, u.name)


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
    _normalized_winnow_noisy,
    _normalized_winnow_simple,
    _additive,
    _multiplicative,
)

ADDITIVE = (_perceptron, _perceptron_noisy, _additive)  # need no coordinates, so they hold in any feature space


def judge(run: Run, theorems: tuple[Callable[[Run], Bound], ...] = THEOREMS) -> tuple[Bound, ...]:
    """The bounds of a run. Theorems on one sequence of examples do not apply where shards learned apart."""
    found = tuple(theorem(run) for theorem in theorems)
    if run.mixing is None:
        return found
    why = f"weights of {run.mixing.shards} shards were mixed after each round, not learned from one sequence of rows"
    others = (replace(bound, applies=False, why=why) for bound in found)
    return (*others, _perceptron_mixed(run, run.mixing), _perceptron_mixed_noisy(run, run.mixing))


# -- shards whose weights are mixed


def _perceptron_mixed(run: Run, mixing: Mixing) -> Bound:
    one = _perceptron(run)
    if not mixing.equal:
        return _weighted(replace(one, name="perceptron_mixed"), mixing)
    value = mixing.shards * one.value
    return replace(one, name="perceptron_mixed", formula="S (R/g)^2", value=value, why=_of_shards(one, mixing))


def _perceptron_mixed_noisy(run: Run, mixing: Mixing) -> Bound:
    # With D2 over all shards and rounds, D^2 is at most c D2^2 for the largest share c, so that the bound on the
    # weighted mistakes, ((R + sqrt(c) D2)/g)^2, is c times that of one learner for rows of the length R/sqrt(c).
    c = mixing.share
    value, why, name = _least_noisy(run, run.radii[0] / math.sqrt(c))
    one = _judge("perceptron_mixed_noisy", "((R + sqrt(c) D2)/g)^2", c * value, run.additive(), why, name)
    if one.applies:
        one = replace(one, why=f"{one.why}, c = {c:.4g}")
    if not mixing.equal:
        return _weighted(one, mixing)
    value = mixing.shards * one.value
    return replace(one, formula=f"S {one.formula}", value=value, why=_of_shards(one, mixing))


def _of_shards(one: Bound, mixing: Mixing) -> str:
    return f"{one.why}, S = {mixing.shards}" if one.applies else one.why


def _weighted(one: Bound, mixing: Mixing) -> Bound:
    """A bound on mistakes that are multiplied by the shares of their shards."""
    told = f"limits the {mixing.mistakes:.4g} mistakes weighted by the shares of their shards"
    return replace(one, counted=mixing.mistakes, why=f"{one.why}; {told}" if one.applies else one.why)


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
