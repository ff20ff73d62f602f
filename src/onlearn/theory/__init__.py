"""Learning theory: mistake bounds, separability, certificates; and their pictures, imported on first use."""

from __future__ import annotations

from typing import Any

from onlearn.theory import bounds
from onlearn.theory.certificate import Bound, Certificate, certify
from onlearn.theory.separable import Separability, separable, simplex_margin

__all__ = ["Bound", "Certificate", "Separability", "bounds", "certify", "plots", "separable", "simplex_margin"]


def __getattr__(name: str) -> Any:
    if name == "plots":  # it runs learners, which are made of what is here
        from importlib import import_module

        return import_module("onlearn.theory.plots")
    raise AttributeError(f"module 'onlearn.theory' has no attribute {name!r}")
