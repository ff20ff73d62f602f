"""What the model file holds of a kernel classifier, besides what it holds of every learner."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn import kernels
from onlearn.dual.budget import BudgetTraining
from onlearn.dual.collapse import Reduction
from onlearn.dual.inpasses import ON_NUMBERS
from onlearn.dual.policies import POLICIES
from onlearn.dual.slots import Slots
from onlearn.dual.supports import Supports
from onlearn.dual.training import DualTraining
from onlearn.kernels.owned import own
from onlearn.training import Training


class Filed:
    """The part of a kernel classifier that writes it to a model file, and reads it back."""

    kernel: Any
    budget: int | None
    budget_policy: Any
    representation_: str
    representation_reason_: str
    _kernel: Any
    _training: Any
    _settle: Any
    _pack_standing: Any
    _left_off: Any

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        mine: dict[str, Any] = {"representation": self.representation_, "reason": self.representation_reason_}
        missing = object()
        width = self.__dict__.get("n_features_in_", missing)
        if width is missing:  # strings and trees have no columns
            self.__dict__["n_features_in_"] = 0
        try:
            facts, arrays = super()._pack()  # type: ignore[misc]
        finally:
            if width is missing:
                del self.__dict__["n_features_in_"]
        mine["kernel"], more = kernels.pack(self._kernel)
        mine["kernel_as_text"] = isinstance(self.kernel, str)
        mine["stopped"] = self._training.stopped
        if "reduction_" in self.__dict__:
            mine["reduction"] = self.__dict__["reduction_"]._asdict()
        arrays.update(more)
        if self.representation_ == "dual":
            mine["support"], more = self._training.supports.pack()
            arrays.update({f"support.{key}": array for key, array in more.items()})
            if self._training.stages is not None:
                mine["stages"] = len(self._training.stages)
                arrays.update({f"stage.{n}": stage for n, stage in enumerate(self._training.stages)})
            if isinstance(self._training, BudgetTraining):
                mine["budget"], more = self._training.pack_more()
                arrays.update(more)
            if (left := self._pack_standing()) is not None:
                mine["standing"], more = left
                arrays.update({f"standing.{key}": array for key, array in more.items()})
        return {**facts, "dual": mine}, arrays

    def _training_class(self) -> type[Training]:
        dual = BudgetTraining if self.budget is not None else DualTraining
        return dual if self.representation_ == "dual" else Training

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        mine = facts["dual"]
        self.representation_, self.representation_reason_ = mine["representation"], mine["reason"]
        self._kernel = kernels.unpack(mine["kernel"], arrays)
        if not mine.get("kernel_as_text") or kernels.get(self.kernel) != self._kernel:
            self.kernel = own(self._kernel)
        limit = mine.get("budget")
        if self.representation_ == "dual":  # what was set since learning began was never learned with
            self.budget = None if limit is None else int(limit["budget"])
        super()._unpack(facts, arrays)  # type: ignore[misc]
        self._training.stopped = mine.get("stopped")
        if mine.get("reduction") is not None:
            self.__dict__["reduction_"] = Reduction(**mine["reduction"])
        if self.representation_ == "dual":
            kept = _under("support.", arrays)
            if self.budget is None:
                self._training.attach(Supports.unpack(self._kernel, mine["support"], kept))
            else:
                some = None if mine["support"]["kind"] == "none" else kernels.unpack_data(mine["support"], kept)
                self._training.attach(Slots(self._kernel, int(self.budget), some))
                self._training.unpack_more(limit, arrays)
                if POLICIES.get(self.budget_policy) != self._training.policy:
                    self.budget_policy = self._training.policy
            if mine.get("stages") is not None:
                self._training.stages = _stages(self._training, [arrays[f"stage.{n}"] for n in range(mine["stages"])])
            if "standing" in mine:
                self._left_off = mine["standing"], _under("standing.", arrays)
        if self._kernel.data not in ON_NUMBERS:
            del self.__dict__["n_features_in_"]
        self._settle()


def _stages(training: Any, stages: list[np.ndarray]) -> list[np.ndarray]:
    """The hypotheses after each pass, of which none has more support examples than there are now."""
    most = training.features + 1
    for stage in stages:
        if (
            stage.dtype != np.float64
            or stage.ndim != 2
            or not (1 <= len(stage) <= most and stage.shape[1] == training.outputs)
        ):
            raise ValueError("the hypothesis after a pass does not have the shape that this learner has")
    return stages


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
