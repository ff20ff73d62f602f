"""What learning began with, and holds to: weights in the feature space of one kernel mean nothing in another's."""

from __future__ import annotations

import copy
from typing import Any

from onlearn import kernels

FIXED = ("multiclass", "fit_intercept", "intercept_scaling", "representation", "keep_stages")


class Settled:
    """The part of a kernel classifier that refuses to go on learning with other parameters than it began with."""

    kernel: Any
    budget: int | None
    _choices: Any
    _settled: dict[str, Any]

    def _settle(self) -> None:
        """Learning begins: remember with what."""
        self._settled = self._settings()

    def _hold_to_settings(self) -> None:
        """Refuse parameters that were changed since learning began, and that would have no effect."""
        for name, now in self._settings().items():
            before = self._settled[name]
            if now != before:
                raise ValueError(
                    f"{name} was {before!r} when learning began and cannot change to {now!r} now: set it back, "
                    "or fit anew (without warm_start)"
                )

    def _settings(self) -> dict[str, Any]:
        """The parameters that what is learned depends on, as objects."""
        choices = self._choices()
        settings = {"kernel": copy.copy(kernels.get(self.kernel)), "budget": self.budget}
        settings.update({name: choices[name] for name in ("rule", "stabilizer", "geometry")})
        if self.budget is not None:
            settings["budget_policy"] = choices["budget_policy"]
        return {**settings, **{name: getattr(self, name) for name in FIXED}}
