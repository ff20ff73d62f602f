"""Mistake-driven learning at hardware speed: every classic online learner from one small engine.

Everything below is imported on first use, so that ``import onlearn`` costs next to nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, which takes longer to import than all that is here

__version__ = "0.1.0"

_HOMES = {
    "onlearn.dual.classifier": ["KernelClassifier", "KernelPerceptron"],
    "onlearn.approx.hasher": ["FeatureHasher"],
    "onlearn.approx.nystroem": ["Nystroem"],
    "onlearn.approx.projection": ["RandomProjection"],
    "onlearn.approx.sinks": ["RandomKitchenSinks"],
    "onlearn.features": ["Features", "feature"],
    "onlearn.linear": ["OnlineClassifier"],
    "onlearn.regression": ["OnlineRegressor"],
    "onlearn.learners": [
        "Perceptron",
        "AveragedPerceptron",
        "VotedPerceptron",
        "MarginPerceptron",
        "AggressivePerceptron",
        "PassiveAggressive",
        "Winnow",
        "BalancedWinnow",
        "NormalizedWinnow",
        "Adaline",
        "LinearSVM",
        "LogisticRegression",
        "AdaGrad",
        "AROW",
        "FTRL",
    ],
    "onlearn.pipeline": ["Model"],
    "onlearn.ownrules": ["rule"],
    "onlearn.store": ["load"],
}
_MODULES = ["calibrate", "data", "features", "geometry", "kernels", "reproduce", "rules", "stabilizers", "theory"]
_NAMES = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_NAMES), *_MODULES]

if TYPE_CHECKING:
    from typing import Any

    from onlearn import calibrate, data, features, geometry, kernels, reproduce, rules, stabilizers, theory  # noqa: F401
    from onlearn.approx.hasher import FeatureHasher  # noqa: F401
    from onlearn.approx.nystroem import Nystroem  # noqa: F401
    from onlearn.approx.projection import RandomProjection  # noqa: F401
    from onlearn.approx.sinks import RandomKitchenSinks  # noqa: F401
    from onlearn.dual.classifier import KernelClassifier, KernelPerceptron  # noqa: F401
    from onlearn.features import Features, feature  # noqa: F401
    from onlearn.learners import *  # noqa: F403
    from onlearn.linear import OnlineClassifier  # noqa: F401
    from onlearn.ownrules import rule  # noqa: F401
    from onlearn.pipeline import Model  # noqa: F401
    from onlearn.regression import OnlineRegressor  # noqa: F401
    from onlearn.store import load  # noqa: F401


def __getattr__(name: str) -> Any:
    import importlib

    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = importlib.import_module(f"onlearn.{name}")
    else:
        raise AttributeError(f"module 'onlearn' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
