"""The named learners: each a composition of a rule, a geometry and a stabilizer, and nothing else.

A class here says which parameters of its choices it shows flat; their defaults, ranges and meanings are the
choices' own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from onlearn.engine import geometry, rules, stabilizers
from onlearn.estimators.linear import OnlineClassifier

PARTS = ("rule", "geometry", "stabilizer")
KEPT = inspect.signature(OnlineClassifier.__init__).parameters


def named(*, defaults: dict[str, Any] | None = None, **parts: Any) -> Callable[[type], type]:
    """Give a subclass of OnlineClassifier the signature of a composition.

    A part given as a class shows its parameters flat; one given as an object or a name is fixed;
    a stabilizer not given stays a parameter. ``defaults`` changes defaults of the other parameters.
    """
    defaults = defaults or {}

    def decorate(cls: type) -> type:
        flat = {f.name: part for part, made in parts.items() if isinstance(made, type) for f in fields(made)}
        shown = [
            inspect.Parameter(f.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=defaults.get(f.name, f.default))
            for made in parts.values()
            if isinstance(made, type)
            for f in fields(made)
        ]
        rest = [
            p.replace(default=defaults.get(p.name, p.default))
            for p in KEPT.values()
            if p.name not in (*parts, "rule", "geometry")
        ]
        signature = inspect.Signature([rest[0].replace(default=inspect.Parameter.empty), *shown, *rest[1:]])

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            for name, value in list(bound.arguments.items())[1:]:
                setattr(self, name, value)

        def _choices(self: Any) -> dict[str, Any]:
            made = {}
            for part, kind in parts.items():
                own = {name: getattr(self, name) for name, owner in flat.items() if owner == part}
                made[part] = kind(**own) if isinstance(kind, type) else kind(self) if callable(kind) else kind
            return {**OnlineClassifier._choices(self), **made}

        __init__.__signature__ = signature  # type: ignore[attr-defined]
        cls.__init__, cls._choices = __init__, _choices  # type: ignore[misc,attr-defined]
        return cls

    return decorate


@named(rule=rules.Perceptron(), geometry=geometry.Additive(), stabilizer=stabilizers.Last())
class Perceptron(OnlineClassifier):
    """Rosenblatt's Perceptron: on a mistake, w += y x."""


@named(rule=rules.Perceptron(), geometry=geometry.Additive(), stabilizer=stabilizers.Averaged())
class AveragedPerceptron(OnlineClassifier):
    """The Perceptron, handing out the mean of all its hypotheses."""


@named(rule=rules.Perceptron(), geometry=geometry.Additive(), stabilizer=stabilizers.Voted())
class VotedPerceptron(OnlineClassifier):
    """The Perceptron, predicting by a vote of all its hypotheses (Freund & Schapire 1999)."""


@named(rule=rules.Margin, geometry=geometry.Additive())
class MarginPerceptron(OnlineClassifier):
    """The Perceptron with a thick separator: examples within the margin count as mistakes."""


@named(rule=rules.Aggressive, geometry=geometry.Additive())
class AggressivePerceptron(OnlineClassifier):
    """The Perceptron whose step corrects each mistake at once."""


@named(rule=rules.PA1, geometry=geometry.Additive())
class PassiveAggressive(OnlineClassifier):
    """Passive-aggressive I: the smallest step that makes the margin 1, but none longer than C."""


@named(rule=rules.Perceptron(), geometry=geometry.Winnow, defaults={"fit_intercept": False})
class Winnow(OnlineClassifier):
    """Winnow: multiplies the weights of the features of a mistake. Features must not be negative."""


@named(rule=rules.Perceptron(), geometry=geometry.BalancedWinnow, defaults={"alpha": 1.1})
class BalancedWinnow(OnlineClassifier):
    """Winnow with two weights a feature, so that their difference may be negative."""


@named(rule=rules.Perceptron(), geometry=geometry.Exponentiated, defaults={"fit_intercept": False})
class NormalizedWinnow(OnlineClassifier):
    """Winnow whose weights stay on the simplex (exponentiated gradient)."""


@named(rule=rules.LMS(), geometry=geometry.Additive, defaults={"rate": 0.01})
class Adaline(OnlineClassifier):
    """Least mean squares on -1 and +1: w += r (y - s) x."""


@named(rule=rules.Hinge(), geometry=geometry.Additive, defaults={"schedule": "1/sqrt(t)", "l2": 1e-4})
class LinearSVM(OnlineClassifier):
    """The soft-margin SVM by stochastic subgradients; ``schedule="1/(lambda t)"`` is Pegasos."""


@named(rule=rules.Logistic(), geometry=geometry.AdaGrad, defaults={"rate": 0.1})
class LogisticRegression(OnlineClassifier):
    """Logistic regression, multinomial with several classes, by AdaGrad."""


@named(rule=rules.Hinge(), geometry=geometry.AdaGrad, defaults={"rate": 0.1})
class AdaGrad(OnlineClassifier):
    """Hinge loss with a rate for each feature, r / sqrt(its sum of squared gradients)."""


@named(rule=lambda self: rules.PA2(1 / (2 * self.r)), geometry=geometry.AROW)  # type: ignore[call-arg]
class AROW(OnlineClassifier):
    """Adaptive regularisation of weights: a confidence for each weight (Crammer et al. 2009)."""


@named(rule=rules.Logistic(), geometry=geometry.FTRL, stabilizer=stabilizers.Last())
class FTRL(OnlineClassifier):
    """Follow the regularised leader: logistic regression with exactly zero weights under l1."""


NAMED = {
    cls.__name__: cls
    for cls in list(globals().values())
    if isinstance(cls, type) and issubclass(cls, OnlineClassifier) and cls is not OnlineClassifier
}
