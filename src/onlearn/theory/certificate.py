"""The certificate of a training run: radius of the data, learned margin, and the mistake bounds that apply.

Every bound holds for any target u, so it is stated for the best one at hand: the learned weights; for additive learners
the maximum-margin separator, if there is one; for multiplicative ones the target of norm |u|_1 = 1 with the largest
margin. Looking for those takes up to a second or two; on data too large for that the learned weights are what is at
hand. Each bound says which u it is for. The examples must be those trained on.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.inert_text import facts_html, number
from onlearn.theory.max_margin import maximum_margin
from onlearn.theory.separable import Floats, as_rows, is_sparse, radii, scipy_rows, simplex_margin
from onlearn.theory.theorems import ADDITIVE, LEARNED, ROUNDING, Bound, Mixing, Run, Target, judge, make_target

MAXIMUM_MARGIN = "maximum-margin separator"
SIMPLEX = "best target on the simplex"
LARGEST = 1 << 22  # numbers in X up to which the maximum-margin separator is looked for
LARGEST_PROGRAM = 50_000  # the same for the simplex, by linear programming
HOPELESS = 100.0  # times as many mistakes as examples seen: no bound worth looking for

__all__ = ["Bound", "Certificate", "Mixing", "certify", "certify_scores"]


@dataclass(frozen=True, repr=False)
class Certificate:
    """The numbers that the mistake bounds are stated in, and the bounds.

    `R` = max|x|_2 and `radius_inf` = max|x|_inf over the rows with their constant feature; `margin` = min y
    u.x / |u|_2 of the learned weights u, with that of the constant feature (not positive: they do not separate
    the rows); `norm1` and `norm2` of these u (a bound may be for a better one, and says so in `target`); the
    `mistakes` made in training on `n_examples`. In the feature space of a kernel there are no coordinates, and
    `radius_inf` and `norm1` are None. `n_seen` is how many examples training saw if these rows are not what it saw, so
    that no bound applies to them; else None. `mixing` says how the weights of shards were mixed, if they were.
    """

    R: float
    radius_inf: float | None
    margin: float
    norm1: float | None
    norm2: float
    mistakes: int
    n_examples: int
    bounds: tuple[Bound, ...]
    n_seen: int | None = None
    mixing: Mixing | None = None

    def holds(self) -> bool:
        """Whether the mistakes made are within every bound that applies."""
        return all(
            (self.mistakes if bound.counted is None else bound.counted) <= bound.value * (1.0 + ROUNDING)
            for bound in self.bounds
            if bound.applies
        )

    @property
    def best(self) -> Bound | None:
        """The smallest bound that applies; None if none does."""
        return min((bound for bound in self.bounds if bound.applies), key=lambda bound: bound.value, default=None)

    def beyond_theory(self, why: str) -> Certificate:
        """The same numbers for a run that no theorem applies to, for this reason."""
        return replace(self, bounds=tuple(replace(bound, applies=False, why=why) for bound in self.bounds))

    def of_other_rows(self, n_seen: int) -> Certificate:
        """The same numbers for rows that training, which saw ``n_seen`` examples, did not see in whole passes."""
        why = f"training saw {n_seen} examples, which is not a number of whole passes over these {self.n_examples} rows"
        return replace(self.beyond_theory(why), n_seen=n_seen)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON: an infinite value is null."""
        fields = asdict(self)
        if self.mixing is None:
            del fields["mixing"]
        for bound in fields["bounds"]:
            bound["value"] = bound["value"] if math.isfinite(bound["value"]) else None
            if bound["counted"] is None:
                del bound["counted"]
        fields["holds"] = self.holds()
        return fields

    def __str__(self) -> str:
        numbers = {
            "R": self.R,
            "max|x|_inf": self.radius_inf,
            "margin": self.margin,
            "|u|_1": self.norm1,
            "|u|_2": self.norm2,
        }
        values = "   ".join(f"{name} {value:.4g}" for name, value in numbers.items() if value is not None)
        rows = f"{self.n_examples} examples" if self.n_seen is None else f"{self.n_seen} examples, not on these rows"
        apart = "" if self.mixing is None else f" in {self.mixing.shards} shards"
        head = f"mistakes {self.mistakes} in training on {rows}{apart}\n{values}\n"
        table = [("bound", "value", "applies", "why")]
        table += [(b.name, f"{b.value:,.4g}", "yes" if b.applies else "no", b.why) for b in self.bounds]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        return head + "\n".join(
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {applies:<{widths[2]}}  {why}"
            for name, value, applies, why in table
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = f"{self.n_examples:,}" if self.n_seen is None else f"{self.n_seen:,}, not these rows"
        facts = [
            ("mistakes", number(self.mistakes)),
            ("examples", rows),
            *([] if self.mixing is None else [("shards", number(self.mixing.shards))]),
            ("R = max|x|", number(self.R)),
            ("margin", number(self.margin)),
            ("within every bound that applies", number(self.holds())),
        ]
        bounds = [(b.name, number(b.value), number(b.applies), b.why) for b in self.bounds]
        return facts_html("Certificate", facts, [("bound", "at most", "applies", "why"), *bounds])


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
    seen: int | None = None,
    mixing: Mixing | None = None,
) -> Certificate:
    """The certificate of a binary learner whose score is weights.x + intercept - threshold.

    - X, y: the rows (dense or sparse) and labels (-1, +1) trained on, seen `passes` times.
    - intercept: the weight of the constant feature times its size `bias`; bias 0: there is none.
    - mistakes: made in all of training, ties included.
    - rule, geometry: by name. The theorems know the rule "perceptron" and the geometries "additive",
      "winnow", "balanced" and "exponentiated".
    - init_zero: training began where the proofs do: at 0; multiplicative weights at 1, or all equal.
    - single_rate: every step had the same rate: no schedule, no sample or class weights, no l1 or l2.
    - threshold: fixed, for Winnow. alpha: factor of winnow and balanced. eta: rate of exponentiated.
    - seen: how many examples were seen, if that is not all rows in each pass.
    - mixing: how the weights of shards were mixed, if they learned apart.

    >>> X, y = [[0.0, 1.0], [1.0, 0.0]] * 2, [1, -1] * 2
    >>> certificate = certify(X, y, [-1.0, 1.0], mistakes=2, rule="perceptron", geometry="additive")
    >>> certificate.holds(), round(certificate.best.value, 6), certificate.best.formula
    (True, 2.0, '(R/g)^2')
    """
    X, labels = as_rows(X), np.asarray(y)
    u = _learned(X, labels, np.asarray(weights, dtype=np.float64).ravel(), float(intercept), float(bias), threshold)
    if mistakes < 0:
        raise ValueError(f"mistakes must not be negative, but it is {mistakes}.")
    # A pass that began counts as a whole one: the rows seen once more may be the worst.
    passes = max(1, math.ceil(passes))
    # A fixed threshold is the weight of a constant feature, too, of size 1.
    constant = abs(float(bias)) or float(threshold != 0.0)
    radius, peak = radii(X)
    R = math.hypot(radius, constant)
    learned = make_target(LEARNED, X, labels, u, constant)
    better: list[Target] = []
    if rule == "perceptron" and init_zero and single_rate and threshold == 0.0:
        if geometry == "additive":
            hopeless = R / math.sqrt(HOPELESS * passes * X.shape[0])
            better = _widest(X, labels, constant, max(learned.margin, hopeless))
        elif geometry in ("exponentiated", "balanced"):
            better = _simplest(X, labels, constant, geometry == "balanced")
    run = Run(
        targets=(learned, *better),
        radii=(R, max(peak, constant)),
        X=X,
        y=labels,
        bias=float(bias),
        rule=rule,
        geometry=geometry,
        passes=passes,
        init_zero=init_zero,
        single_rate=single_rate,
        threshold=float(threshold),
        alpha=alpha,
        eta=eta,
        seen=seen,
        mixing=mixing,
    )
    return Certificate(
        R=run.radii[0],
        radius_inf=run.radii[1],
        margin=learned.margin,
        norm1=learned.norm1,
        norm2=learned.norm2,
        mistakes=int(mistakes),
        n_examples=X.shape[0],
        bounds=judge(run),
        mixing=mixing,
    )


def _learned(X: Any, y: Any, weights: Floats, intercept: float, bias: float, threshold: float) -> Floats:
    """The learned weights, that of the constant feature last; or what is wrong with them."""
    n_rows, n_columns = X.shape
    if y.shape != (n_rows,) or not np.isin(y, (-1, 1)).all():
        raise ValueError(f"y must hold -1 or +1 for each of the {n_rows} rows.")
    if weights.shape != (n_columns,) or not np.isfinite(weights).all():
        raise ValueError(f"weights must be finite, one for each of the {n_columns} columns.")
    if intercept != 0.0 and bias == 0.0:
        raise ValueError("An intercept needs the size of its constant feature, but bias is 0.")
    if not math.isfinite(intercept - threshold):
        raise ValueError("intercept and threshold must be finite.")
    constant = abs(bias) or float(threshold != 0.0)
    return np.append(weights, (intercept - threshold) / constant) if constant else weights


def _numbers(X: Any) -> int:
    return int(X.nnz) if is_sparse(X) else int(X.size)


def _widest(X: Any, y: Any, constant: float, above: float) -> list[Target]:
    """The maximum-margin separator, if its margin is above what is known."""
    found = maximum_margin(X, y, constant=constant, above=above) if _numbers(X) <= LARGEST else None
    return [] if found is None else [make_target(MAXIMUM_MARGIN, X, y, found[1], constant)]


def _simplest(X: Any, y: Any, constant: float, balanced: bool) -> list[Target]:
    """The target on the simplex with the largest margin; if ``balanced``, it has a weight for x and one for -x."""
    if _numbers(X) * (1 + balanced) > LARGEST_PROGRAM:
        return []
    import scipy.sparse as sp

    rows = sp.csr_array(scipy_rows(X)).astype(np.float64)
    if constant:
        rows = sp.hstack([rows, np.full((X.shape[0], 1), constant)], format="csr")
    try:
        _, u = simplex_margin(sp.hstack([rows, -rows], format="csr") if balanced else rows, y)
    except ArithmeticError:
        return []
    n = rows.shape[1]
    return [make_target(SIMPLEX, X, y, u[:n] - u[n:] if balanced else u, constant)]


def certify_scores(
    signed: ArrayLike,
    *,
    radius: float,
    norm: float,
    mistakes: int,
    rule: str,
    passes: float = 1,
    single_rate: bool = True,
    widest: ArrayLike | None = None,
    mixing: Mixing | None = None,
) -> Certificate:
    """The certificate of an additive learner in a feature space of which only scores are known.

    `signed` holds y times the score of each example, `radius` is max|x| and `norm` is |u| in that space. `widest` holds
    y u.x of each example for the maximum-margin separator u, |u| = 1, if it is known. `mixing` as for `certify`.

    >>> certify_scores([1.0, 1.0], radius=1.0, norm=1.0, mistakes=1, rule="perceptron").best.value
    1.0
    """
    along = np.asarray(signed, dtype=np.float64).ravel() / (norm or 1.0)
    learned = Target(LEARNED, along, math.nan, norm, 0, False)
    better: list[Target] = []
    if widest is not None:
        better = [Target(MAXIMUM_MARGIN, np.asarray(widest, dtype=np.float64).ravel(), math.nan, 1.0, 0, False)]
    run = Run(
        targets=(learned, *better),
        radii=(radius, math.nan),
        X=None,
        y=None,
        bias=0.0,
        rule=rule,
        geometry="additive",
        passes=max(1, math.ceil(passes)),
        init_zero=True,
        single_rate=single_rate,
        threshold=0.0,
        alpha=None,
        eta=None,
        mixing=mixing,
    )
    return Certificate(
        R=radius,
        radius_inf=None,
        margin=learned.margin,
        norm1=None,
        norm2=norm,
        mistakes=int(mistakes),
        n_examples=len(along),
        bounds=judge(run, ADDITIVE),
        mixing=mixing,
    )
