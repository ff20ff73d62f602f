"""The state of a support vector machine: its hypothesis, the curves of its probabilities, and the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn import kernels
from onlearn.dual.collapse import Reduction
from onlearn.engine.base_training import BaseTraining
from onlearn.model_file import check_array
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

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray], features: int) -> SVMTraining:
        classes, kind = facts["classes"], facts["kind"]
        if kind not in KINDS or not (isinstance(classes, int) and 0 <= classes < 1 << 31 and classes != 1):
            raise ValueError("the header does not say which classes the problems are of")
        made = cls(features, classes, kind)
        made.take_counts(facts, arrays)
        kernel = kernels.unpack(facts["kernel"], arrays)
        made.hypothesis = Hypothesis.unpack(kernel, facts["hypothesis"], arrays, made.problems, classes)
        curves = arrays["curves"]
        check_array("curves", curves, "float64", (made.problems if len(curves) else 0, 2))
        if not (curves[:, 0] >= 0).all():
            raise ValueError("curves hold what they cannot hold: probabilities that fall with the score")
        made.curves = curves
        made.report = None if facts["report"] is None else Report.unpack(facts["report"])
        made.reduction = None if facts["reduction"] is None else Reduction(**facts["reduction"])
        return made
