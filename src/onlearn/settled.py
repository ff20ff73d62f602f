"""What learning began with, and holds to: a state made by one rule or geometry means nothing to another."""

from __future__ import annotations

import copy
from typing import Any

CHOICES = ("rule", "geometry", "stabilizer")
FIXED = ("multiclass", "fit_intercept", "intercept_scaling", "init")


class Settled:
    """The part of an estimator that refuses to go on learning with other parameters than it began with."""

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
                if repr(now) == repr(before) and type(now) is not type(before):
                    raise ValueError(
                        f"the {name} {before!r} was defined anew since learning began: give the learner the one before "
                        "as an object, or fit anew (without warm_start)"
                    )
                raise ValueError(
                    f"{name} was {before!r} when learning began and cannot change to {now!r} now: set it back, "
                    "or fit anew (without warm_start)"
                )

    def _settings(self) -> dict[str, Any]:
        """The parameters that what is learned depends on, as objects of our own."""
        choices = self._choices()
        settings = {name: copy.copy(choices[name]) for name in CHOICES}
        return {**settings, **{name: getattr(self, name) for name in FIXED if hasattr(self, name)}}
