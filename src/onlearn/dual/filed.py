"""What the model file holds of a kernel classifier, besides what it holds of every learner."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from onlearn import kernels
from onlearn.dual.budget import BudgetTraining
from onlearn.dual.inpasses import ON_NUMBERS
from onlearn.dual.policies import POLICIES
from onlearn.dual.slots import Slots
from onlearn.dual.supports import Supports
from onlearn.dual.training import DualTraining
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
        arrays.update(more)
        if self.representation_ == "dual":
            mine["support"], more = self._training.supports.pack()
            arrays.update({f"support.{key}": array for key, array in more.items()})
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
            self.kernel = copy.copy(self._kernel)
        limit = mine.get("budget")
        if self.representation_ == "dual":  # what was set since learning began was never learned with
            self.budget = None if limit is None else int(limit["budget"])
        super()._unpack(facts, arrays)  # type: ignore[misc]
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
            if "standing" in mine:
                self._left_off = mine["standing"], _under("standing.", arrays)
        if self._kernel.data not in ON_NUMBERS:
            del self.__dict__["n_features_in_"]
        self._settle()


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
