"""What is learned, and how often, when nothing is said."""

from __future__ import annotations

from typing import Any

from onlearn.features import Features, Text


def default_learner(task: str, features: Features, rows: Any, classes: int) -> Any:
    """A learner that suits the task and the kind of features."""
    from onlearn import OnlineClassifier, OnlineRegressor

    if task == "regress":
        return OnlineRegressor(rule="lms", geometry="adagrad(0.5)", stabilizer="averaged")
    return OnlineClassifier(rule="logistic", geometry="adagrad(0.5)", stabilizer="averaged")


def default_passes(learner: Any) -> int:
    """How often to go over the data."""
    return 3


def is_text(features: Features) -> bool:
    """Whether there is a column of text among the features."""
    given = features.extractors
    return not isinstance(given, str) and any(isinstance(one, Text) for one in given)
