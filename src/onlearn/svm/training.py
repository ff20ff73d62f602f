"""The state of a support vector machine: its hypothesis, the curves of its probabilities, and the report."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from onlearn import kernels
from onlearn.dual.collapse import Reduction
from onlearn.dual.learner import REDUCTION
from onlearn.engine.base_training import BaseTraining
from onlearn.model_schema import NESTED, Arrays, OrMissing, Record, check_array, check_facts, one_of, whole
from onlearn.svm.hypothesis import Hypothesis
from onlearn.svm.multiclass import KINDS, problem_count
from onlearn.svm.report import IN_WORDS, Report

NO_CURVES = np.empty((0, 2))


class SVMTraining(BaseTraining):
    """What was learned; replaced as a whole when more is learned."""

    classes: int
    kind: str
    output: str | None
    stopped: str | None = None

    def __init__(self, features: int, classes: int, kind: str) -> None:
        super().__init__(features, classes if classes > 2 else 1)
        self.classes, self.kind = classes, kind  # 0 classes in regression
        self.output = "classes" if classes > 2 else None
        self.hypothesis: Hypothesis | None = None
        self.curves: np.ndarray = NO_CURVES  # A and B of each problem
        self.report: Report | None = None
        self.reduction: Reduction | None = None

    @property
    def problems(self) -> int:
        return problem_count(self.classes, self.kind)

    def learned(self, hypothesis: Hypothesis, curves: np.ndarray, report: Report) -> None:
        """Take over what was learned."""
        self.hypothesis, self.curves, self.report = hypothesis, curves, report
        self.stopped = None if report.stopped == "tol" else IN_WORDS[report.stopped]

    def known(self) -> Hypothesis:
        """The hypothesis; there is one once something was learned."""
        if self.hypothesis is None:
            raise AttributeError("nothing was learned yet")
        return self.hypothesis

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super().pack()
        hypothesis, report = self.known(), self.report
        facts["kind"], facts["classes"] = self.kind, self.classes
        facts["kernel"], of_kernel = kernels.pack(hypothesis.kernel)
        facts["hypothesis"], more = hypothesis.pack()
        facts["report"] = None if report is None else report.pack()
        facts["reduction"] = None if self.reduction is None else self.reduction._asdict()
        return facts, {**arrays, **of_kernel, **more, "curves": self.curves}

    FILED: ClassVar[Record] = Record(
        {
            **BaseTraining.FILED.facts,
            "classes": whole(0, (1 << 31) - 1),
            "kind": one_of(*KINDS),
            "kernel": NESTED,
            "hypothesis": NESTED,
            "report": OrMissing(NESTED),
            "reduction": OrMissing(REDUCTION),
        }
    )

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Arrays, features: int) -> SVMTraining:
        check_facts(facts, cls.FILED, "training")
        classes, kind = facts["classes"], facts["kind"]
        if classes == 1:
            raise ValueError("the header does not say which classes the problems are of")
        made = cls(features, classes, kind)
        made.take_counts(facts, arrays)
        kernel = kernels.unpack(facts["kernel"], arrays)
        made.hypothesis = Hypothesis.unpack(kernel, facts["hypothesis"], arrays, made.problems, classes)
        curves = arrays["curves"]
        check_array("curves", curves, "float64", (made.problems if curves.size else 0, 2))
        if not (curves[:, 0] >= 0).all():
            raise ValueError("curves hold what they cannot hold: probabilities that fall with the score")
        made.curves = curves
        report, reduced = facts.get("report"), facts.get("reduction")
        made.report = None if report is None else Report.unpack(report)
        made.reduction = None if reduced is None else Reduction(*(reduced[name] for name in REDUCTION.facts))
        return made
