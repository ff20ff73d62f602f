"""What is learned, and how often, when nothing is said or not all: what does well in benchmarks/raw_to_model.py."""

from __future__ import annotations

import math
from typing import Any

from onlearn.features import Features, Text
from onlearn.geometry import GEOMETRIES
from onlearn.linear import OnlineClassifier
from onlearn.regression import OnlineRegressor
from onlearn.rules import RULES

# Gradients of a loss, whose steps never end: they want rates that shrink. Other rules say how far to step themselves.
GRADIENTS = ("logistic", "hinge", "squared_hinge", "lms", "epsilon")
MULTIPLICATIVE = ("winnow", "balanced", "exponentiated")

PASSES = 3  # at least
AVERAGED = {"rule": "logistic", "geometry": "adagrad", "stabilizer": "averaged"}  # for this learner more, up to
MOST = 20  # as long as
EXAMPLES = 400_000  # are visited at most, with
VALUES = 20_000_000  # that are not zero


def default_learner(task: str, features: Features, choices: dict[str, Any] | None = None) -> Any:
    """A learner that suits the task and the kind of features, with the given choices laid over it.

    Text has many rare words, of which a single example should teach all there is to learn: AROW, not averaged. Columns
    of a table, and features of unknown kind, are learned by logistic regression, whose probabilities are its own.
    """
    choices = choices or {}
    if task == "regress":
        return OnlineRegressor(**laid_over({"rule": "lms", "geometry": "adagrad(0.5)"}, choices, "averaged"))
    if is_text(features):
        return OnlineClassifier(**laid_over({"rule": "pa2(0.5)", "geometry": "arow(1.0)"}, choices, "last"))
    return OnlineClassifier(**laid_over({"rule": "logistic", "geometry": "adagrad(0.1)"}, choices, "averaged"))


def laid_over(usual: dict[str, Any], choices: dict[str, Any], stabilizer: str) -> dict[str, Any]:
    """The choices, and for those that are not given what suits them; that is the usual wherever it can be.

    ``stabilizer`` is the usual one of the usual geometry.
    """
    rule, geometry = choices.get("rule"), choices.get("geometry")
    if rule is None and choices.get("multiclass") == "softmax":
        rule = "logistic"  # no other has it
    if rule is not None and geometry is None:
        geometry = geometry_for(rule, usual)
    elif geometry is not None and rule is None:
        rule = rule_for(geometry, usual)
    made = {**usual, **{name: one for name, one in (("rule", rule), ("geometry", geometry)) if one is not None}}
    kind = GEOMETRIES.get(made["geometry"]).name
    if kind == "ftrl":
        made["stabilizer"] = "last"  # a mean of weights has no zeros left
    else:
        made["stabilizer"] = stabilizer if kind == GEOMETRIES.get(usual["geometry"]).name else "averaged"
    return {**made, **choices}


def geometry_for(rule: Any, usual: dict[str, Any]) -> Any:
    """The usual geometry for a rule of the usual kind; else one that makes steps smaller, if the rule does not."""
    kind = RULES.get(rule).name
    if kind == RULES.get(usual["rule"]).name:
        return usual["geometry"]
    if kind not in GRADIENTS:
        return "additive"
    return usual["geometry"] if GEOMETRIES.get(usual["geometry"]).name == "adagrad" else "adagrad(0.1)"


def rule_for(geometry: Any, usual: dict[str, Any]) -> Any:
    """The usual rule, but to classify with a geometry that has one of its own, as the named learners do, that one."""
    chosen = GEOMETRIES.get(geometry)
    if RULES.get(usual["rule"]).name == "lms":
        return usual["rule"]
    if chosen.name in MULTIPLICATIVE:
        return "perceptron"
    if chosen.name == "arow":
        return f"pa2({1 / (2 * chosen.r)!r})"
    return "logistic" if chosen.name == "ftrl" else usual["rule"]


def default_passes(learner: Any, features: Features, rows: int, values: int) -> int:
    """How often to go over data of so many rows, which have so many values that are not zero.

    Averaged AdaGrad is far from its end after three passes over a small file, and gets better for long, at little cost.
    """
    chosen = {name: made.name for name, made in learner._choices().items() if name in AVERAGED}
    if chosen != AVERAGED or is_text(features):
        return PASSES
    enough = min(EXAMPLES / max(1, rows), VALUES / max(1, values))
    return min(max(PASSES, math.ceil(enough)), MOST)


def is_text(features: Features) -> bool:
    """Whether there is a column of text among the features."""
    given = features.extractors
    return not isinstance(given, str) and any(isinstance(one, Text) for one in given)
