"""Additive or multiplicative: which family of learners suits data, by the mistake bounds and by running both.

For a target u with y u.x >= g the Perceptron makes at most M_p = |u|_2^2 max|x|_2^2 / g^2 mistakes, tuned normalised
Winnow at most M_w = 2 ln n |u|_1^2 max|x|_inf^2 / g^2 (J. Kivinen, M. Warmuth and P. Auer, The Perceptron algorithm
versus Winnow, 1997). So a target of few features among many favours multiplicative updates if rows have many active
features, and a target of many features favours additive ones if rows have few. Each bound is that of the best target
found: what the learners learned, also cut down to its heaviest weights; the maximum-margin separator; on small data the
target that linear programming finds for |u|_1. Where none separates the rows, the bounds are those for noisy data;
where the labels are a monotone disjunction, Winnow's bound counts as multiplicative, too. Bounds that promise little,
which is common, leave the advice to a run of both families, over the rows in random order: until a pass makes no
mistake, in ten passes at most, or one pass where no target separates the rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from onlearn.engine.learner import Learner
from onlearn.inert_text import facts_html, number
from onlearn.theory import bounds
from onlearn.theory.max_margin import maximum_margin
from onlearn.theory.separable import (
    Floats,
    as_rows,
    is_sparse,
    radii,
    scipy_rows,
    scores,
    separable,
    signs,
    simplex_margin,
)
from onlearn.theory.theorems import smallest_disjunction

VISITS = 1 << 27  # numbers of rows that each learner visits, at most
PASSES = 10  # or so many passes
RATES = (1.1, 1.5, 2.0)  # the factors alpha with which multiplicative learners are run
LARGEST = 1 << 22  # numbers in X up to which the maximum-margin separator is looked for
SMALL = 50_000  # numbers in X up to which linear programs are
LITTLE = 0.5  # of the examples: a bound above that promises little
ALIKE = 0.05  # of the mistakes: runs that differ by less are alike
JUDGED = 8  # targets that the noisy bounds are computed for: those that are wrong on the fewest rows


@dataclass(frozen=True)
class LearnerRun:
    """How a learner did: its family, and its mistakes in some passes over the rows, in random order."""

    learner: str
    family: str
    mistakes: int
    passes: int


@dataclass(frozen=True)
class Recommendation:
    """The advice ("additive" or "multiplicative"), why in one sentence, and the numbers behind it.

    `relevant` is |u|_1^2 / |u|_2^2 of the best target of few features, which is k for k equal weights; `active` the
    mean number of features in a row that are not 0. `additive_bound` and `multiplicative_bound` are M_p and M_w, or
    where no target was found that separates the rows (`noisy`) the bounds for noisy data, which are never above the
    number of examples. `separable` is None where it is not known. `runs` are those of each learner; `confirmed` says
    whether the family that was advised made no more mistakes in its best run than the other (5 % more are as many), and
    `by` whether the advice follows the "bounds" or, where these promise little, the "run".
    """

    advice: str
    why: str
    by: str
    confirmed: bool
    additive_bound: float
    multiplicative_bound: float
    noisy: bool
    separable: bool | None
    relevant: float
    active: float
    n_features: int
    n_examples: int
    runs: tuple[LearnerRun, ...]

    def best_run(self, family: str) -> LearnerRun:
        """The run with the fewest mistakes of a family."""
        return min((run for run in self.runs if run.family == family), key=lambda run: run.mistakes)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        facts = [
            ("advice", f"{self.advice}: {self.why}"),
            ("examples", number(self.n_examples)),
            ("features", number(self.n_features)),
            ("additive bound", number(self.additive_bound)),
            ("multiplicative bound", number(self.multiplicative_bound)),
        ]
        runs = [(run.learner, run.family, number(run.mistakes), number(run.passes)) for run in self.runs]
        return facts_html("Which family suits these data", facts, [("learner", "family", "mistakes", "passes"), *runs])

    def __str__(self) -> str:
        known = {True: "yes", False: "no", None: "not known"}[self.separable]
        form = "on noisy data" if self.noisy else "separable"
        lines = [
            f"{self.advice}: {self.why}",
            f"examples {self.n_examples}   features {self.n_features}   separable {known}",
            f"relevant features, about {self.relevant:.3g}   active in a row {self.active:.3g}",
            f"mistake bounds ({form}): additive {self.additive_bound:,.4g}, multiplicative "
            f"{self.multiplicative_bound:,.4g}",
        ]
        lines += [f"{run.mistakes:>9,} mistakes in {run.passes:>2} passes  {run.learner}" for run in self.runs]
        return "\n".join(lines)


class _Data(NamedTuple):
    """Rows with max|x|_inf = 1, labels -1 and +1, and a constant feature of size 1 or 0."""

    X: Any
    y: Floats
    constant: float
    radius: float  # max|x|_2 with the constant feature
    numbers: int


class _Judged(NamedTuple):
    """A target and y u.x of every row."""

    u: Floats
    signed: Floats


def recommend(X: Any, y: ArrayLike, *, fit_intercept: bool = True, random_state: int = 0) -> Recommendation:
    """Which family of learners suits two classes of rows, dense or sparse.

    >>> rng = np.random.default_rng(0)
    >>> X = (rng.random((2000, 200)) < 0.2).astype(float)
    >>> advice = recommend(X, X[:, :3].any(axis=1))  # a disjunction of 3 among 200 features
    >>> advice.advice, advice.confirmed
    ('multiplicative', True)
    >>> advice = recommend(np.eye(64), np.arange(64) % 2)  # every feature matters, and comes alone
    >>> advice.advice, advice.confirmed
    ('additive', True)
    """
    X = as_rows(X)
    labels, _ = signs(y, X.shape[0])
    data = _scaled(X, labels, fit_intercept)
    learned = _learn_all(data, random_state)
    judged = [_judge(data, u) for u in _targets(data, learned)]
    separating = [target for target in judged if target.signed.min() > 0.0]
    known: bool | None = True if separating else None
    if not separating and data.numbers <= SMALL:
        try:
            known = bool(separable(X, labels, fit_intercept))
        except ArithmeticError:
            known = None
    noisy = not separating
    if noisy:
        judged = sorted(judged, key=lambda target: int((target.signed <= 0.0).sum()))[:JUDGED]
    else:
        judged = separating
    runs = [one.run(first=noisy) for one in learned]
    limits = {"additive": min(_additive(data, target, noisy) for target in judged)}
    limits["multiplicative"], simplest = min(
        ((_multiplicative(data, target, noisy), n) for n, target in enumerate(judged)), key=lambda pair: pair[0]
    )
    u = judged[simplest].u
    literals = smallest_disjunction(X, labels > 0.0)
    if literals is not None:
        limits["multiplicative"] = min(limits["multiplicative"], bounds.winnow(X.shape[1], literals))
    own = u[: X.shape[1]] if data.numbers else u[:0]  # without the constant feature
    relevant = float(literals or np.abs(own).sum() ** 2 / (own @ own)) if own.any() else 0.0
    active = data.numbers / X.shape[0]
    made = {family: min(run.mistakes for run in runs if run.family == family) for family in limits}
    by_bounds, by_run = _smaller(limits), _smaller(made)
    alike = max(made.values()) * (1.0 - ALIKE) <= min(made.values())
    by = "bounds" if alike or min(limits.values()) <= LITTLE * X.shape[0] else "run"
    advice = by_bounds if by == "bounds" else by_run
    confirmed = alike or advice == by_run
    features = f"about {relevant:.3g} of {X.shape[1]:,} features matter and {active:.3g} are active in a row"
    return Recommendation(
        advice=advice,
        why=_why(advice, by, confirmed, alike, known, noisy, features, limits, made),
        by=by,
        confirmed=confirmed,
        additive_bound=limits["additive"],
        multiplicative_bound=limits["multiplicative"],
        noisy=noisy,
        separable=known,
        relevant=relevant,
        active=active,
        n_features=X.shape[1],
        n_examples=X.shape[0],
        runs=tuple(runs),
    )


def _smaller(of_family: dict[str, Any]) -> str:
    return "additive" if of_family["additive"] <= of_family["multiplicative"] else "multiplicative"


def _why(advice: str, by: str, confirmed: bool, alike: bool, known: bool | None, noisy: bool, features: str,
         limits: dict[str, float], made: dict[str, int]) -> str:  # fmt: skip
    """The advice in one sentence."""
    other = "multiplicative" if advice == "additive" else "additive"
    start = ""
    if noisy:
        start = "the rows are not separable; " if known is False else "no target was found that separates the rows; "
    run = f"{made[advice]:,} mistakes against {made[other]:,}"
    if by == "run":
        return f"{start}{features}; the bounds promise little, and running both families gives {run}"
    values = f"{limits[advice]:,.4g} against {limits[other]:,.4g}"
    smaller = f"the {advice} bound is the smaller one, {values}"
    if limits[advice] >= limits[other] * (1.0 - ALIKE):
        smaller = f"the bounds are about the same, {values}"
    verdict = "confirms it" if confirmed else "does not confirm it"
    if alike:
        verdict = "makes little difference"
    return f"{start}{features}; {smaller}, and running both families {verdict}: {run}"


def _scaled(X: Any, y: Floats, fit_intercept: bool) -> _Data:
    peak = radii(X)[1] or 1.0
    rows: Any
    if is_sparse(X):
        import scipy.sparse as sp

        rows = sp.csr_array(scipy_rows(X)).astype(np.float64)
        rows.data /= peak
        numbers = int(np.count_nonzero(rows.data))
    else:
        rows = np.asarray(X, dtype=np.float64) / peak
        numbers = int(np.count_nonzero(rows))
    constant = float(fit_intercept)
    return _Data(rows, y, constant, math.hypot(radii(rows)[0], constant), numbers)


class _Learned(NamedTuple):
    """What a learner learned, the weight of the constant feature last, and its mistakes by pass."""

    learner: str
    family: str
    u: Floats
    by_pass: list[int]

    def run(self, first: bool) -> LearnerRun:
        """Its run in all passes, or in the first alone."""
        counted = self.by_pass[:1] if first else self.by_pass
        return LearnerRun(self.learner, self.family, sum(counted), len(counted))


def _learn_all(data: _Data, seed: int) -> list[_Learned]:
    """Let each learner learn the rows."""
    passes = max(1, min(PASSES, VISITS // max(1, data.numbers)))
    values = data.X.data if is_sparse(data.X) else data.X
    multiplicative = ["BalancedWinnow"]
    if values.min(initial=0.0) >= 0.0:
        multiplicative.append("Winnow")
    intercept = {"fit_intercept": data.constant > 0.0}
    settings: list[tuple[str, str, dict[str, Any]]] = [("Perceptron", "additive", intercept)]
    for name in multiplicative:
        own = intercept if name == "BalancedWinnow" else {}  # Winnow has its threshold
        settings += [(name, "multiplicative", {"alpha": alpha, "stabilizer": "last", **own}) for alpha in RATES]
    learned = []
    for name, family, params in settings:
        model = Learner(name, epochs=None, max_epochs=passes, random_state=seed, **params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the passes were too few to converge
            model.fit(data.X, data.y)
        shown = f"{name}(alpha={params['alpha']:g})" if "alpha" in params else name
        by_pass = [int(entry["mistakes"]) for entry in model.history_["passes"]]
        learned.append(_Learned(shown, family, np.append(model.coef_[0], model.intercept_[0]), by_pass))
    return learned


def _targets(data: _Data, learned: list[_Learned]) -> Iterator[Floats]:
    """Candidates for u, the weight of the constant feature last."""
    best: dict[str, _Learned] = {}
    for one in sorted(learned, key=lambda one: sum(one.by_pass)):
        yield one.u
        best.setdefault(one.family, one)
    for one in best.values():
        yield from _pruned(data, one.u)
    if data.numbers <= LARGEST:
        found = maximum_margin(data.X, data.y, constant=data.constant)
        if found is not None:
            widest = found[1] if data.constant else np.append(found[1], 0.0)
            yield widest
            yield from _pruned(data, widest)
    if data.numbers <= SMALL:
        yield _simplest(data)


def _pruned(data: _Data, u: Floats) -> Iterator[Floats]:
    """u with only its 1, 2, 4, ... heaviest weights, and the intercept that suits them best."""
    order = np.argsort(-np.abs(u[:-1]), kind="stable")
    keep = 1
    while keep < np.count_nonzero(u[:-1]):
        cut = np.zeros(len(u))
        cut[order[:keep]] = u[order[:keep]]
        if data.constant:
            cut[-1] = _intercept(scores(data.X, cut[:-1]), data.y) / data.constant
        yield cut
        keep *= 2


def _intercept(s: Floats, y: Floats) -> float:
    """b for which y (s + b) > 0 fails on the fewest rows, half-way between the scores on both sides."""
    order = np.argsort(s, kind="stable")
    s, y = s[order], y[order]
    # Wrong with the cut before place n: positive ones below it, and negative ones from it on.
    wrong = np.concatenate([[0], np.cumsum(y > 0.0)]) + np.concatenate([np.cumsum((y < 0.0)[::-1])[::-1], [0]])
    inside = np.concatenate([[True], np.diff(s) > 0.0, [True]])  # equal scores cannot be cut apart
    n = int(np.argmin(np.where(inside, wrong, len(s) + 1)))
    gap = float(np.ptp(s)) or 1.0
    low = s[n - 1] if n > 0 else s[0] - gap
    high = s[n] if n < len(s) else s[-1] + gap
    return -float(low + high) / 2.0


def _simplest(data: _Data) -> Floats:
    """The u of |u|_1 = 1 with the largest margin."""
    import scipy.sparse as sp

    rows = sp.csr_array(scipy_rows(data.X))
    rows = sp.hstack([rows, np.full((rows.shape[0], 1), data.constant)], format="csr")
    _, both = simplex_margin(sp.hstack([rows, -rows], format="csr"), data.y)
    n = rows.shape[1]
    return np.asarray(both[:n] - both[n:])


def _judge(data: _Data, u: Floats) -> _Judged:
    u = u / (float(np.abs(u).max()) or 1.0)
    return _Judged(u, data.y * (scores(data.X, u[:-1]) + data.constant * u[-1]))


def _additive(data: _Data, target: _Judged, noisy: bool) -> float:
    norm = float(np.linalg.norm(target.u))
    if not noisy:
        return bounds.perceptron(data.radius, float(target.signed.min()) / norm)
    if norm == 0.0 or data.radius == 0.0:
        return float(len(target.signed))
    return bounds.perceptron_noisy_best(data.radius, target.signed / norm).value


def _multiplicative(data: _Data, target: _Judged, noisy: bool) -> float:
    norm = float(np.abs(target.u).sum())
    n = len(target.u) - (data.constant == 0.0)
    n *= 2 if (target.u < 0.0).any() else 1  # a weight for x and one for -x
    if not noisy:
        return bounds.normalized_winnow_simple(n, min(1.0, float(target.signed.min()) / norm))
    if norm == 0.0:
        return float(len(target.signed))
    return bounds.normalized_winnow_noisy_best(n, target.signed / norm).value
