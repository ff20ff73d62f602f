"""Parameters of choices and kernels as parameters of the estimator that has them: ``rule__aggressiveness``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from onlearn.kernels.formula import copied

KERNEL: dict[str, Any] = {"kernel": SimpleNamespace(get=copied)}  # a parameter that is a kernel, as a choice is


def with_nested(params: dict[str, Any], families: dict[str, Any]) -> dict[str, Any]:
    """Parameters by name, and those of the choices among them as ``name__parameter``."""
    made = dict(params)
    for name in families.keys() & params.keys():
        try:
            owned = families[name].get(params[name]).get_params()
        except (TypeError, ValueError):  # a wrong spelling is reported by fit
            continue
        made.update({f"{name}__{key}": value for key, value in owned.items()})
    return made


def take_nested(params: dict[str, Any], families: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take the parameters of choices out of ``params``: by the name of the choice."""
    nested: dict[str, dict[str, Any]] = {}
    for key in list(params):
        name, inside, own = key.partition("__")
        if inside and name in families:
            nested.setdefault(name, {})[own] = params.pop(key)
    return nested


def set_nested(estimator: Any, nested: dict[str, dict[str, Any]], families: dict[str, Any]) -> None:
    """Change parameters of choices; what was learned keeps the choices it has."""
    for name, values in nested.items():
        if name not in estimator.get_params(deep=False):
            raise ValueError(f"{type(estimator).__name__} has no parameter {name!r}")
        setattr(estimator, name, families[name].get(getattr(estimator, name)).set_params(**values))
