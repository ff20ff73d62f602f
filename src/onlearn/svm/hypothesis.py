"""What was learned: support vectors with their weights in each problem, and the intercepts; or weights of features.

f_c(x) = sum_s w_sc k(x_s, x) + b_c, with w_sc = a_s y_s of problem c. A support vector of several problems is kept once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onlearn.dual.collapse import collapse, reduce_supports, worth_collapsing
from onlearn.dual.examples import pick
from onlearn.dual.scores import staged_scores
from onlearn.dual.supports import SupportSet
from onlearn.dual.training import DualTraining, under
from onlearn.engine.geometry import Additive
from onlearn.engine.rules import Hinge
from onlearn.engine.scoring import linear_scores
from onlearn.engine.stabilizers import Last
from onlearn.model_file import check_array

UNKNOWN = -1  # the row of a support vector that is of no row of the last ``fit``


@dataclass(frozen=True)
class Hypothesis:
    """Support vectors and their weights; ``rows`` says which rows of the data set they are.

    In the primal there are no ``supports``, and ``coefs`` are the weights of the kernel's features.
    """

    kernel: Any
    coefs: np.ndarray  # support vectors (or features) x problems
    intercepts: np.ndarray
    supports: SupportSet | None = None
    rows: np.ndarray | None = None

    # what ``staged_scores`` reads besides
    bias = 1.0
    theta = 0.0

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

    def features_of_linear(self) -> np.ndarray:
        """The weights of the columns, problems x columns, where the kernel is linear."""
        if self.supports is None:
            return self.coefs.T.copy()
        return collapse(self._training()).weights()[1:].T

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
        return replace(self, coefs=coefs, supports=None, rows=None), verdict.reason

    def reduced(self, size: int) -> tuple[Hypothesis, float]:
        """At most ``size`` support vectors whose span is near, and the distance |w - w'| / |w|."""
        smaller, lost = reduce_supports(self._training(), size)
        weights = smaller.weights()
        rows = np.full(len(smaller.supports), UNKNOWN)
        return replace(self, coefs=weights[1:], intercepts=weights[0], supports=smaller.supports, rows=rows), lost

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {"coefs": self.coefs, "intercepts": self.intercepts}
        if self.supports is None:
            return {"supports": None}, arrays
        facts, more = self.supports.pack()
        return {"supports": facts}, {**arrays, "rows": self.rows, **{f"s.{key}": one for key, one in more.items()}}

    @classmethod
    def unpack(cls, kernel: Any, facts: dict[str, Any], arrays: dict[str, np.ndarray], problems: int) -> Hypothesis:
        coefs, intercepts = arrays["coefs"], arrays["intercepts"]
        check_array("intercepts", intercepts, "float64", (problems,))
        if facts["supports"] is None:
            check_array("coefs", coefs, "float64", (coefs.shape[0], problems))
            return cls(kernel, coefs, intercepts)
        supports = SupportSet.unpack(kernel, facts["supports"], under("s.", arrays))
        check_array("coefs", coefs, "float64", (len(supports), problems))
        check_array("rows", arrays["rows"], "int64", (len(supports),), low=UNKNOWN)
        return cls(kernel, coefs, intercepts, supports, arrays["rows"])


def of_examples(kernel: Any, raw: Any, points: Any, coefs: np.ndarray, intercepts: np.ndarray) -> Hypothesis:
    """The hypothesis with weights of all examples, examples x problems, of which only those not 0 are kept."""
    rows = np.flatnonzero((coefs != 0).any(axis=1))
    supports = SupportSet(kernel)
    if len(rows):
        supports.add(pick(raw, rows), points.take(rows))
    return Hypothesis(kernel, coefs[rows], intercepts, supports, rows)
