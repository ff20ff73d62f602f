"""The learner of numbers with a kernel: ``DualLearner`` with the rules of regression (see ``regression``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlearn.dual.learner import DualLearner
from onlearn.dual.regression import (
    MEAN_LENGTH,
    MeanLength,
    at_most_whole,
    begin_at,
    first_level,
    mean_level,
    part_of_steps,
    relative_to_largest,
    square_lengths,
)
from onlearn.dual.settings import KERNEL_REGRESSOR
from onlearn.dual.training import DualTraining
from onlearn.engine.compositions import Composition
from onlearn.engine.tasks import check_regression_choices
from onlearn.model_schema import Arrays, Record

if TYPE_CHECKING:
    from typing_extensions import Self


class DualRegressor(DualLearner):
    """A regression in the feature space of a kernel.

    >>> X, y = np.array([[0.0], [1.0]]), np.array([2.0, 3.0])
    >>> DualRegressor(random_state=0).fit(X, y).predict(X).round(1)
    array([2., 3.])
    """

    kind: ClassVar[Composition] = KERNEL_REGRESSOR
    usual_passes = KERNEL_REGRESSOR.defaults["epochs"]

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        super().__init__(warning=warning, **params)
        self.mean_length = MeanLength()  # of the examples so far

    def check(self) -> None:
        super().check()
        check_regression_choices(self.choices, self.settings.epochs, self.settings.tol)
        if self.settings.budget is not None and self.choices["budget_policy"].name == "remove":
            raise ValueError(
                "in regression each support example is a part of every prediction, so none can be removed: "
                "use budget_policy='project' or 'merge'"
            )

    # ------------------------------------------------------------------ learning

    def _outputs(self) -> tuple[str | None, int]:
        return None, 1

    def _empty_training(self, *parts: Any) -> DualTraining:
        training = super()._empty_training(*parts)
        training.classifies = False
        training.audit.due[0] = 0  # nothing is calibrated
        return training

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> bool | None:
        return super()._pass_over(X, targets, self.begin_regression(X, targets, weight))

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        self._begin_at(first_level(targets, weight))
        if self._trained().rule.projects:
            weight = self._steps_to_make(X, at_most_whole(weight), "of_stream")
        super()._learn_once(X, targets, weight)

    def begin_regression(self, X: Any, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Begin with the mean of all numbers to learn, if ``init`` says so; the part of each row's step to make."""
        self._begin_at(mean_level(y, weight))
        if not self._trained().rule.projects:
            return weight
        return self._steps_to_make(X, relative_to_largest(weight), "of_all")

    def _begin_at(self, level: float) -> None:
        training = self._trained()
        if not training.n_seen and self.settings.init == "mean":
            begin_at(training, level)

    def _steps_to_make(self, X: Any, weight: np.ndarray, by: str) -> np.ndarray:
        """The part of each row's step that weight and ``damping`` leave."""
        damping, q = self.settings.damping, square_lengths(X, self._trained())
        if damping != "mean":
            return weight * part_of_steps(q, float(damping))
        self.mean_length, parts = getattr(self.mean_length, by)(q, weight)
        return weight * parts

    def renewed(self) -> Self:
        made = super().renewed()
        made.mean_length = MeanLength()
        return made

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super()._pack()
        return {**facts, "mean_length": list(self.mean_length)}, arrays

    FILED: ClassVar[Record] = Record({**DualLearner.FILED.facts, "mean_length": MEAN_LENGTH})

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        super()._unpack(facts, arrays)
        self.mean_length = MeanLength(*map(float, facts["mean_length"]))
        if self._trained().classifies:
            raise ValueError("the training is one of classes, but the learner predicts numbers")
