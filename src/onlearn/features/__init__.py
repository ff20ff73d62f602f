"""Features: what is made of raw rows before learning, named, numbered and weighed.

``Features`` is imported on first use, for it is a scikit-learn transformer, and nothing else here needs scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlearn.features.extractors import Category, Number, feature
from onlearn.features.feature_map import FeatureMap
from onlearn.features.interactions import Interaction
from onlearn.features.roles import Role, extractors_for, guess_roles
from onlearn.features.text import Text
from onlearn.features.vocabulary import Counts, Vocabulary, prune, prune_weights

if TYPE_CHECKING:
    from onlearn.estimators.features import Features

__all__ = [
    "Category",
    "Counts",
    "FeatureMap",
    "Features",
    "Interaction",
    "Number",
    "Role",
    "Text",
    "Vocabulary",
    "extractors_for",
    "feature",
    "guess_roles",
    "prune",
    "prune_weights",
]


def __getattr__(name: str) -> Any:
    if name != "Features":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from onlearn.estimators.features import Features

    return Features
