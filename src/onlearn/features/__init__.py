"""Features: what is made of raw rows before learning, named, numbered and weighed."""

from onlearn.features.extractors import Category, Number, feature
from onlearn.features.feature_map import Features
from onlearn.features.interactions import Interaction
from onlearn.features.pruning import Counts, prune, prune_weights
from onlearn.features.roles import Role, extractors_for, guess_roles
from onlearn.features.text import Text
from onlearn.features.vocabulary import Vocabulary

__all__ = [
    "Category",
    "Counts",
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
