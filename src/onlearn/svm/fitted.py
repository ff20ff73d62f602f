"""A support vector machine that has learned: its examples, what it tells, predictions, smaller forms, its file."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import kernels
from onlearn.dual.collapse import Reduction, check_kernel
from onlearn.dual.examples import Examples, check_examples
from onlearn.dual.learner import ON_NUMBERS
from onlearn.engine.base_learner import BaseLearner, Contributions
from onlearn.kernels.formula import copied
from onlearn.kernels.products import in_precision, refuse_strings
from onlearn.model_schema import Arrays
from onlearn.svm.explanation import class_weights, explained
from onlearn.svm.hypothesis import Hypothesis
from onlearn.svm.multiclass import class_scores
from onlearn.svm.report import Report
from onlearn.svm.training import SVMTraining

if TYPE_CHECKING:
    from typing_extensions import Self


class FittedMachine(BaseLearner):
    """What is the same whatever was learned, and however."""

    training: SVMTraining | None

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        super().__init__(warning=warning, **params)
        self.kernel: Any = None  # the kernel that it learns with, once learning has begun

    @property
    def _kind(self) -> str:
        """How several classes are learned."""
        return "one-vs-one"

    def _new_training(self) -> SVMTraining:
        return SVMTraining(self.features, self._classes, self._kind)

    @property
    def _classes(self) -> int:
        """How many classes there are; 0 in regression."""
        return len(self.task.classes) if self.task.classifies else 0

    # ------------------------------------------------------------------ examples

    def takes_objects(self) -> bool:
        return kernels.get(self.settings.kernel).data not in ON_NUMBERS

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        """``Examples``; in the primal, rows as they are."""
        if first:
            self.kernel = copied(self.settings.kernel)
        kernel = self.kernel
        if kernel.data in ON_NUMBERS:
            refuse_strings(X, kernel)
            raw = super()._rows(X, first, True, names, width)
        else:
            raw = check_examples(X, kernel)
        if first:
            return self._first_examples(raw)
        if getattr(raw, "dtype", None) in (np.float32, np.float64):
            raw = in_precision(raw, self.dtype)  # that of the examples learned from
        if self._trained().hypothesis is not None and self._trained().known().supports is None:
            return raw
        return self._examples(raw)

    def _first_examples(self, raw: Any) -> Examples:
        kernel = self.kernel
        if kernel.data == "matrix" and raw.shape[0] != raw.shape[1]:
            raise ValueError(
                f"{kernel}: X has {raw.shape[0]} rows and {raw.shape[1]} columns, but the matrix to learn "
                "from must be square, with a column for each row's example"
            )
        made = self._examples(raw)
        check_kernel(kernel, made.points)
        return made

    def _examples(self, raw: Any) -> Examples:
        return Examples(raw, self.kernel.quick_points(raw), raw.shape[1] if hasattr(raw, "shape") else 1)

    # ------------------------------------------------------------------ what was learned

    @property
    def n_features_in_(self) -> int:
        self._trained()
        if self.kernel.data not in ON_NUMBERS:
            raise AttributeError("strings and trees have no columns")
        return self.features

    def _dual(self, name: str) -> Hypothesis:
        hypothesis = self._trained().known()
        if hypothesis.supports is None:
            raise AttributeError(f"there is no {name} in the primal, where nothing is kept but weights of features")
        return hypothesis

    @property
    def report_(self) -> Report:
        """What solving did."""
        report = self._trained().report
        if report is None:
            raise AttributeError("there is no report: nothing was solved")
        return report

    @property
    def stopped_(self) -> str | None:
        """Why learning stopped before it converged, if it did."""
        return self._trained().stopped

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, in all problems."""
        return self.report_.iterations

    @property
    def support_(self) -> np.ndarray:
        """The rows of the support vectors in the data set of ``fit``; -1 if they are of another one."""
        return np.array(self._dual("support_").rows)

    @property
    def support_examples_(self) -> Any:
        """The support vectors as they were passed in; None if there are none."""
        supports = self._dual("support_examples_").supports
        return None if supports is None else supports.examples()

    def kept_examples(self) -> Any:
        return None if self.training is None or self.training.hypothesis is None else self.support_examples_

    @property
    def n_support_(self) -> np.ndarray:
        """How many support vectors there are of each class; in regression in all."""
        hypothesis = self._dual("n_support_")
        if not self._classes or not hypothesis.weight.size:
            return np.array([len(hypothesis.rows)])
        return np.bincount(hypothesis.targets.astype(np.int64), minlength=self._classes)

    @property
    def dual_coef_(self) -> np.ndarray:
        """a_i y_i of the support vectors, problems x support vectors."""
        return np.array(self._dual("dual_coef_").coefs.T)

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept of each problem."""
        return np.array(self._trained().known().intercepts)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns: problems x columns, in regression (columns,); of a linear kernel or in the primal."""
        hypothesis = self._trained().known()
        if hypothesis.supports is not None and self.kernel.name != "linear":
            raise AttributeError(
                f"with the kernel {self.kernel} there are weights of examples, dual_coef_; coef_ is for the linear one"
            )
        weights = hypothesis.feature_weights(self.features)
        return weights if self._classes else weights[0]

    def described(self) -> dict[str, Any]:
        hypothesis, report = self._trained().known(), self._trained().report
        made: dict[str, Any] = {"kernel": str(self.kernel)}
        if hypothesis.supports is not None:
            made["support_vectors"] = len(hypothesis.rows)
        if report is None:
            return made
        several = {"problems": len(report.problems)} if len(report.problems) > 1 else {}
        return {**made, **several, **report.described()}

    def example_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        return class_weights(self._trained().known(), self._classes, self._kind)

    def contributions(self, X: Any) -> Contributions:
        return explained(self._dual("explanation"), self._rows(X, first=False).points, self._classes, self._kind)

    # ------------------------------------------------------------------ predicting

    def _decisions(self, X: Any, training: Any = None) -> np.ndarray:
        """The scores of all problems."""
        hypothesis = (training or self._trained()).known()
        points = X.points if isinstance(X, Examples) else None
        return hypothesis.decisions(X.raw if isinstance(X, Examples) else X, points)

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        return class_scores(self._decisions(X, training), self._classes, self._kind)

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> Self:
        """The same with weights of the kernel's features, if that is smaller or faster; else an error.

        With ``force`` it is made in any case.
        """
        hypothesis = self._trained().known()
        if hypothesis.supports is None:
            return copy.copy(self)
        made, _ = hypothesis.to_primal(self.features if self.kernel.data in ON_NUMBERS else 1, force)
        return self._copy_with(made, None)

    def reduce(self, n: int, by: str = "projection") -> Self:
        """A machine with at most n support vectors whose hypothesis is near this one.

        They are chosen and weighed anew "by" projection, or those of the largest "weight" are kept as they are.
        """
        hypothesis = self._dual("reduce")
        if isinstance(n, bool) or not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n must be a whole number of at least 1, not {n!r}")
        smaller, lost = hypothesis.reduced(int(n), by)
        return self._copy_with(smaller, Reduction(len(hypothesis.rows), len(smaller.rows), lost, None, None, by))

    def _copy_with(self, hypothesis: Hypothesis, reduction: Reduction | None) -> Self:
        made = copy.copy(self)
        made.training = copy.copy(self._trained())
        made.training.hypothesis, made.training.reduction = hypothesis, reduction
        return made

    # ------------------------------------------------------------------ the model file

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> SVMTraining:
        training = SVMTraining.unpack(facts, arrays, features)
        if bool(training.classes) != self.task.classifies or training.kind != self._kind:
            raise ValueError("the problems of the file are not those of this learner")
        supports = training.known().supports
        if supports is not None and not supports.are_of_width(features):
            raise ValueError(f"the support vectors are not rows of {features} columns")
        self.kernel = training.known().kernel
        if kernels.get(self.settings.kernel) != self.kernel:
            self.set_params(kernel=copied(self.kernel))
        return training
