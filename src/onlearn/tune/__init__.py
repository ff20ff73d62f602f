"""Tuning: a search space of configurations, and a race between them in which the worse half is dropped again and again.

``space`` says which configurations there are, ``losses`` measures them by one yardstick, ``race`` drops the worse;
``Tuner`` is an estimator that races others. ``cross_validate`` scores an estimator by k folds, and ``search`` tries
parameters of learners that cannot race. The names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlearn.tune.cross_validation import CrossValidation, cross_validate
    from onlearn.tune.optuna_search import Search, search
    from onlearn.tune.space import Log, Space, Uniform, Whole
    from onlearn.tune.tuner import Tuner

__all__ = ["CrossValidation", "Log", "Search", "Space", "Tuner", "Uniform", "Whole", "cross_validate", "search"]

_HOMES = {
    "cross_validation": ("CrossValidation", "cross_validate"),
    "optuna_search": ("Search", "search"),
    "space": ("Log", "Space", "Uniform", "Whole"),
    "tuner": ("Tuner",),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"onlearn.tune.{home}"), name)
    raise AttributeError(f"module 'onlearn.tune' has no attribute {name!r}")
