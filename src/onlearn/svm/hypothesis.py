"""What was learned: support vectors with their weights in each problem, and the intercepts; or weights of features.

f_c(x) = sum_s w_sc k(x_s, x) + b_c with w_sc = a_s y_s of problem c. A support vector of several problems is kept once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from onlearn.dual.collapse import collapse, reduce_supports, worth_collapsing
from onlearn.dual.examples import pick
from onlearn.dual.scores import staged_scores
from onlearn.dual.supports import SupportSet
from onlearn.dual.training import DualTraining
from onlearn.engine.geometry import Additive
from onlearn.engine.rules import Hinge
from onlearn.engine.scoring import linear_scores
from onlearn.engine.stabilizers import Last
from onlearn.model_schema import NESTED, Arrays, Record, check_array, check_facts, either, under

UNKNOWN = -1  # the row of a support vector that is no row of the last ``fit``
NONE = np.empty(0)


@dataclass(frozen=True)
class Hypothesis:
    """Support vectors and their weights. In the primal there are none, and the weights are of the kernel's features."""

    kernel: Any
    coefs: np.ndarray  # support vectors (or features) x problems
    intercepts: np.ndarray
    supports: SupportSet | None = None
    rows: np.ndarray = field(default_factory=lambda: NONE)  # of the data set; ``UNKNOWN``: none of them
    targets: np.ndarray = field(default_factory=lambda: NONE)  # numbers of classes, or numbers
    weight: np.ndarray = field(default_factory=lambda: NONE)  # C_i / C; empty after ``reduced``

    # what ``staged_scores`` reads besides
    bias: ClassVar[float] = 1.0
    theta: ClassVar[float] = 0.0

    @property
    def outputs(self) -> int:
        return int(self.coefs.shape[1])

    def weights(self) -> np.ndarray:
        """The intercepts, and below them the weights."""
        return np.vstack([self.intercepts, self.coefs])

    def decisions(self, examples: Any, points: Any = None) -> np.ndarray:
        """f of each problem for examples, given with their ``points`` in the dual."""
        if self.supports is None:
            return linear_scores(self.kernel.features(examples), self.coefs, self.intercepts)[0]
        return staged_scores(self, points, [self.weights()])[0]

    def feature_weights(self, width: int) -> np.ndarray:
        """The weights of the kernel's features, problems x features."""
        if self.supports is None or not len(self.supports):
            return self.coefs.T.copy() if self.supports is None else np.zeros((self.outputs, width))
        return np.ascontiguousarray(collapse(self._training()).weights()[1:].T)

    # ------------------------------------------------------------------ other forms

    def _training(self) -> DualTraining:
        """The same as the state of a learner in the dual, which can be reduced and collapsed."""
        assert self.supports is not None
        count, outputs = self.coefs.shape
        made = DualTraining(Hinge(), Additive(), Last(), "one-vs-all" if outputs > 1 else None, count, outputs, 1.0)
        made.attach(self.supports)
        made.g.w[: (count + 1) * outputs] = self.weights().reshape(-1)
        return made

    def to_primal(self, width: int, force: bool) -> tuple[Hypothesis, str]:
        """The same with weights of the kernel's features, and why it is smaller or faster; else an error."""
        training = self._training()
        verdict = worth_collapsing(training, width)
        if verdict.name == "dual" and not force:
            raise ValueError(f"weights of features would be {verdict.reason}; force=True collapses nevertheless")
        coefs = collapse(training).weights()[1:]
        return Hypothesis(self.kernel, coefs, self.intercepts), verdict.reason

    def reduced(self, size: int, by: str) -> tuple[Hypothesis, float]:
        """A hypothesis with at most ``size`` support vectors that is near, and the distance |w - w'| / |w|."""
        smaller, lost = reduce_supports(self._training(), size, by)
        weights = smaller.weights()
        rows = np.full(len(smaller.supports), UNKNOWN)
        return Hypothesis(self.kernel, weights[1:], weights[0], smaller.supports, rows), lost

    def elsewhere(self) -> Hypothesis:
        """The same, of a data set whose rows are not at hand any more."""
        return replace(self, rows=np.full(len(self.rows), UNKNOWN))

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"coefs": self.coefs, "intercepts": self.intercepts}
        if self.supports is None:
            return {"supports": None}, arrays
        facts, more = self.supports.pack()
        arrays.update(rows=self.rows, targets=self.targets, weight=self.weight)
        return {"supports": facts}, {**arrays, **{f"support.{key}": one for key, one in more.items()}}

    @classmethod
    def unpack(cls, kernel: Any, facts: dict[str, Any], arrays: Arrays, problems: int,
               classes: int) -> Hypothesis:  # fmt: skip
        """What ``pack`` described, of so many classes (0 in regression)."""
        check_facts(facts, Record(supports=either(None, NESTED)), "hypothesis")
        coefs, intercepts = arrays["coefs"], arrays["intercepts"]
        check_array("intercepts", intercepts, "float64", (problems,))
        if facts["supports"] is None:
            check_array("coefs", coefs, "float64", (len(coefs) if coefs.ndim else 0, problems))
            return cls(kernel, coefs, intercepts)
        supports = SupportSet.unpack(kernel, facts["supports"], under("support.", arrays))
        count = len(supports)
        check_array("coefs", coefs, "float64", (count, problems))
        check_array("rows", arrays["rows"], "int64", (count,), low=UNKNOWN)
        kept = count if arrays["weight"].size else 0
        low, high = (0.0, classes - 1.0) if classes else (-np.inf, np.inf)
        check_array("targets", arrays["targets"], "float64", (kept,), low, high, whole=bool(classes))
        check_array("weight", arrays["weight"], "float64", (kept,), low=0)
        return cls(kernel, coefs, intercepts, supports, arrays["rows"], arrays["targets"], arrays["weight"])


def of_examples(kernel: Any, raw: Any, points: Any, coefs: np.ndarray, intercepts: np.ndarray, targets: np.ndarray,
                weight: np.ndarray) -> Hypothesis:  # fmt: skip
    """The hypothesis with weights of all examples, examples x problems, of which only those not 0 are kept."""
    rows = np.flatnonzero((coefs != 0).any(axis=1))
    supports = SupportSet(kernel)
    if len(rows):
        supports.add(pick(raw, rows), points.take(rows))
    kept = targets[rows].astype(np.float64), weight[rows].astype(np.float64)
    return Hypothesis(kernel, coefs[rows], intercepts, supports, rows, *kept)
