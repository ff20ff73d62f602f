"""What learning in the dual began with, and holds to: a kernel's feature space means nothing in another's."""

from __future__ import annotations

from typing import Any

from onlearn import kernels
from onlearn.kernels.owned import own
from onlearn.settled import Settled

FIXED = ("representation", "keep_stages")


class SettledKernel(Settled):
    """The part of a kernel classifier that refuses to go on learning with other parameters than it began with."""

    kernel: Any
    budget: int | None

    def _settings(self) -> dict[str, Any]:
        settings = {"kernel": own(kernels.get(self.kernel)), "budget": self.budget, **super()._settings()}
        if self.budget is not None:
            settings["budget_policy"] = self._choices()["budget_policy"]
        return {**settings, **{name: getattr(self, name) for name in FIXED}}
