"""Rules of one's own on their way to another process, which knows nothing of the name that a learner calls one by."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from onlearn.rules import RULES, is_custom


class CarriesOwnRule:
    """The part of an estimator that takes the rule its user wrote along when it is pickled."""

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        kind = self._own_rule()
        if kind is not None and _can_be_found(kind):
            return {**state, "_own": kind}
        return dict(state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        kind = state.pop("_own", None)
        if kind is not None and kind.name not in RULES:  # one that has the name here was defined here
            RULES.add(kind.name, kind)
        super().__setstate__(state)  # type: ignore[misc]

    def _own_rule(self) -> type | None:
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit, and named learners have theirs
            rule = RULES.get(getattr(self, "rule", None))
            return type(rule) if is_custom(rule) else None
        return None


def _can_be_found(kind: type) -> bool:
    """Whether pickle, too, finds a class: else it would refuse an estimator that has no more than the name."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind
