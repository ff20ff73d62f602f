"""The certificate of a training run: radius of the data, learned margin, and the mistake bounds that apply.

Every bound holds for any target u. The certificate takes the learned weights as u, so it needs only the data.
The examples must be those trained on.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory.separable import as_rows
from onlearn.theory.theorems import ADDITIVE, ROUNDING, THEOREMS, Bound, Run

__all__ = ["Bound", "Certificate", "certify", "certify_scores"]


@dataclass(frozen=True, repr=False)
class Certificate:
    """The numbers that the mistake bounds are stated in, and the bounds.

    `R` = max|x|_2 and `radius_inf` = max|x|_inf over the rows with their constant feature; `margin` = min y
    u.x / |u|_2 of the learned weights u, with that of the constant feature (not positive: they do not separate
    the rows); `norm1` and `norm2` of u; the `mistakes` made in training on `n_examples`. In the feature space of a
    kernel there are no coordinates, and `radius_inf` and `norm1` are None. `n_seen` is how many examples training saw
    if these rows are not what it saw, so that no bound applies to them; else None.
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

    def holds(self) -> bool:
        """Whether the mistakes made are within every bound that applies."""
        return all(self.mistakes <= bound.value * (1.0 + ROUNDING) for bound in self.bounds if bound.applies)

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
        fields["bounds"] = [
            {**bound, "value": bound["value"] if math.isfinite(bound["value"]) else None} for bound in fields["bounds"]
        ]
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
        head = f"mistakes {self.mistakes} in training on {rows}\n{values}\n"
        table = [("bound", "value", "applies", "why")]
        table += [(b.name, f"{b.value:,.4g}", "yes" if b.applies else "no", b.why) for b in self.bounds]
        widths = [max(len(row[column]) for row in table) for column in range(3)]
        return head + "\n".join(
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {applies:<{widths[2]}}  {why}"
            for name, value, applies, why in table
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

    - X, y: the rows (dense or sparse) and labels (-1, +1) trained on, seen `passes` times.
    - intercept: the weight of the constant feature times its size `bias`; bias 0: there is none.
    - mistakes: made in all of training, ties included.
    - rule, geometry: by name. The theorems know the rule "perceptron" and the geometries "additive",
      "winnow", "balanced" and "exponentiated".
    - init_zero: training began where the proofs do: at 0; multiplicative weights at 1, or all equal.
    - single_rate: every step had the same rate: no schedule, no sample or class weights, no l1 or l2.
    - threshold: fixed, for Winnow. alpha: factor of winnow and balanced. eta: rate of exponentiated.

    >>> X, y = [[0.0, 1.0], [1.0, 0.0]] * 2, [1, -1] * 2
    >>> certificate = certify(X, y, [-1.0, 1.0], mistakes=2, rule="perceptron", geometry="additive")
    >>> certificate.holds(), round(certificate.best.value, 6), certificate.best.formula
    (True, 2.0, '(R/g)^2')
    """
    run = Run(
        X=as_rows(X),
        y=np.asarray(y),
        weights=np.asarray(weights, dtype=np.float64).ravel(),
        intercept=float(intercept),
        bias=float(bias),
        rule=rule,
        geometry=geometry,
        # A pass that began counts as a whole one: the rows seen once more may be the worst.
        passes=max(1, math.ceil(passes)),
        init_zero=init_zero,
        single_rate=single_rate,
        threshold=float(threshold),
        alpha=alpha,
        eta=eta,
    )
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
        bounds=tuple(theorem(run) for theorem in THEOREMS),
    )


def certify_scores(
    signed: ArrayLike,
    *,
    radius: float,
    norm: float,
    mistakes: int,
    rule: str,
    passes: float = 1,
    single_rate: bool = True,
) -> Certificate:
    """The certificate of an additive learner in a feature space of which only scores are known.

    `signed` holds y times the score of each example, `radius` is max|x| and `norm` is |u| in that space. The theorems
    need lengths and angles of each example and u only, so each example is drawn in the plane of the two.

    >>> certify_scores([1.0, 1.0], radius=1.0, norm=1.0, mistakes=1, rule="perceptron").best.value
    1.0
    """
    along = np.asarray(signed, dtype=np.float64).ravel() / (norm or 1.0)
    across = np.sqrt(np.maximum(0.0, radius**2 - along**2))
    run = Run(
        X=np.column_stack([along, across]),
        y=np.ones(len(along)),
        weights=np.array([norm, 0.0]),
        intercept=0.0,
        bias=0.0,
        rule=rule,
        geometry="additive",
        passes=max(1, math.ceil(passes)),
        init_zero=True,
        single_rate=single_rate,
        threshold=0.0,
        alpha=None,
        eta=None,
    )
    return Certificate(
        R=radius,
        radius_inf=None,
        margin=run.margin,
        norm1=None,
        norm2=norm,
        mistakes=int(mistakes),
        n_examples=len(along),
        bounds=tuple(theorem(run) for theorem in ADDITIVE),
    )
