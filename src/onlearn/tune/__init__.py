"""Tuning: cross-validation, and searches for the best learner of many. The names are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onlearn.tune.cross_validation import CrossValidation, cross_validate
    from onlearn.tune.optuna_search import Search, search
    from onlearn.tune.tuner import Tuner

__all__ = ["CrossValidation", "Search", "Tuner", "cross_validate", "search"]

_HOMES = {
    "cross_validation": ("CrossValidation", "cross_validate"),
    "optuna_search": ("Search", "search"),
    "tuner": ("Tuner",),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"onlearn.tune.{home}"), name)
    raise AttributeError(f"module 'onlearn.tune' has no attribute {name!r}")
