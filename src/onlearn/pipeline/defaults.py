"""What is learned, and how often, when nothing is said: what does well in benchmarks/raw_to_model.py."""

from __future__ import annotations

from typing import Any

from onlearn.features import Features, Text
from onlearn.linear import OnlineClassifier
from onlearn.regression import OnlineRegressor


def default_learner(task: str, features: Features) -> Any:
    """A learner that suits the task and the kind of features.

    Text has many rare words, of which a single example should teach all there is to learn: AROW, not averaged. Columns
    of a table, and features of unknown kind, are learned by logistic regression, whose probabilities are its own.
    """
    if task == "regress":
        return OnlineRegressor(rule="lms", geometry="adagrad(0.5)", stabilizer="averaged")
    if is_text(features):
        return OnlineClassifier(rule="pa2(0.5)", geometry="arow(1.0)", stabilizer="last")
    return OnlineClassifier(rule="logistic", geometry="adagrad(0.1)", stabilizer="averaged")


def default_passes(learner: Any) -> int:
    """How often to go over the data."""
    return 3


def is_text(features: Features) -> bool:
    """Whether there is a column of text among the features."""
    given = features.extractors
    return not isinstance(given, str) and any(isinstance(one, Text) for one in given)
