"""The learners by name: each a composition of a rule, a geometry and a stabilizer, and nothing else.

A composition says which parameters of its choices it shows flat; their defaults, ranges and meanings are the choices'
own. Estimators, commands and the model file know the learners from ``COMPOSITIONS``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from onlearn.engine import geometry, rules, stabilizers
from onlearn.engine.settings import FAMILIES, ONLY_CLASSES, PARAMETERS
from onlearn.engine.spec import Parameter, parameters

WIDTH = 100  # of a docstring's lines


@dataclass(frozen=True)
class Composition:
    """What a learner of some name is.

    A part given as a class shows its parameters flat; one given as an object is fixed; a function makes it of the
    parameters; a part not given stays a parameter. ``defaults`` changes defaults of parameters, ``fixed`` has values of
    those that are not shown. ``own`` are parameters that other learners do not have, or have otherwise, and
    ``families`` those of the choices among them.
    """

    name: str
    summary: str
    parts: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    task: str = "classify"
    fixed: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Parameter] = field(default_factory=dict)
    families: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order in which they are written: first those that are flat."""
        flat = {name: one for made in self._flat().values() for name, one in parameters(made).items()}
        hidden = {*self.parts, *self.fixed, *(("rule", "geometry") if self.parts else ())}
        hidden |= {*ONLY_CLASSES} if self.task == "regress" else set()
        shared = {name: one for name, one in PARAMETERS.items() if name not in hidden}
        every = {**flat, **shared, **self.own}
        return {name: one._replace(default=self.defaults.get(name, one.default)) for name, one in every.items()}

    def _flat(self) -> dict[str, type]:
        return {part: made for part, made in self.parts.items() if isinstance(made, type)}

    def choices(self, values: dict[str, Any]) -> dict[str, Any]:
        """The choices that these values of the parameters mean, as objects."""
        families = {**FAMILIES, **self.families}
        made = {name: family.get(values[name]) for name, family in families.items() if name in values}
        for part, kind in self._flat().items():
            made[part] = kind(**{name: values[name] for name in parameters(kind)})
        for part, kind in self.parts.items():
            if part not in made:
                made[part] = kind(values) if isinstance(kind, _Made) else kind
        return made

    def docstring(self) -> str:
        """What the learner is, and all its parameters."""
        lines = [self.summary, "", "Parameters", "----------"]
        for name, one in self.parameters.items():
            kind = one.rules["kind"]
            allowed = f"{kind} or its spelling" if kind in FAMILIES else one.allowed
            lines.append(f"{name} : {allowed}, by default {one.default!r}")
            lines += textwrap.wrap(f"{one.meaning[:1].upper()}{one.meaning[1:]}.", WIDTH, initial_indent=4 * " ",
                                   subsequent_indent=4 * " ")  # fmt: skip
        return "\n".join(lines)


@dataclass(frozen=True)
class _Made:
    """A part that is made of the learner's parameters."""

    make: Callable[[dict[str, Any]], Any]

    def __call__(self, values: dict[str, Any]) -> Any:
        return self.make(values)


ADDITIVE = geometry.Additive()
PERCEPTRON = rules.Perceptron()

NAMED = {
    one.name: one
    for one in (
        Composition(
            "Perceptron",
            "Rosenblatt's Perceptron: on a mistake, w += y x.",
            dict(rule=PERCEPTRON, geometry=ADDITIVE, stabilizer=stabilizers.Last()),
        ),
        Composition(
            "AveragedPerceptron",
            "The Perceptron, handing out the mean of all its hypotheses.",
            dict(rule=PERCEPTRON, geometry=ADDITIVE, stabilizer=stabilizers.Averaged()),
        ),
        Composition(
            "VotedPerceptron",
            "The Perceptron, predicting by a vote of all its hypotheses (Freund & Schapire 1999).",
            dict(rule=PERCEPTRON, geometry=ADDITIVE, stabilizer=stabilizers.Voted()),
        ),
        Composition(
            "MarginPerceptron",
            "The Perceptron with a thick separator: examples within the margin count as mistakes.",
            dict(rule=rules.Margin, geometry=ADDITIVE),
        ),
        Composition(
            "AggressivePerceptron",
            "The Perceptron whose step corrects each mistake at once.",
            dict(rule=rules.Aggressive, geometry=ADDITIVE),
        ),
        Composition(
            "PassiveAggressive",
            "Passive-aggressive I: the smallest step that makes the margin 1, but none longer than C.",
            dict(rule=rules.PA1, geometry=ADDITIVE),
        ),
        Composition(
            "Winnow",
            "Winnow: multiplies the weights of the features of a mistake. Features must not be negative.",
            dict(rule=PERCEPTRON, geometry=geometry.Winnow),
            dict(fit_intercept=False),
        ),
        Composition(
            "BalancedWinnow",
            "Winnow with two weights a feature, so that their difference may be negative.",
            dict(rule=PERCEPTRON, geometry=geometry.BalancedWinnow),
            dict(alpha=1.1),
        ),
        Composition(
            "NormalizedWinnow",
            "Winnow whose weights stay on the simplex (exponentiated gradient).",
            dict(rule=PERCEPTRON, geometry=geometry.Exponentiated),
            dict(fit_intercept=False),
        ),
        Composition(
            "Adaline",
            "Least mean squares on -1 and +1: w += r (y - s) x.",
            dict(rule=rules.LMS(), geometry=geometry.Additive),
            dict(rate=0.01),
        ),
        Composition(
            "LinearSVM",
            'The soft-margin SVM by stochastic subgradients; ``schedule="1/(lambda t)"`` is Pegasos.',
            dict(rule=rules.Hinge(), geometry=geometry.Additive),
            dict(schedule="1/sqrt(t)", l2=1e-4),
        ),
        Composition(
            "LogisticRegression",
            "Logistic regression, multinomial with several classes, by AdaGrad.",
            dict(rule=rules.Logistic(), geometry=geometry.AdaGrad),
            dict(rate=0.1),
        ),
        Composition(
            "AdaGrad",
            "Hinge loss with a rate for each feature, r / sqrt(its sum of squared gradients).",
            dict(rule=rules.Hinge(), geometry=geometry.AdaGrad),
            dict(rate=0.1),
        ),
        Composition(
            "AROW",
            "Adaptive regularisation of weights: a confidence for each weight (Crammer et al. 2009).",
            dict(rule=_Made(lambda values: rules.PA2(1 / (2 * values["r"]))), geometry=geometry.AROW),  # type: ignore[call-arg]
        ),
        Composition(
            "FTRL",
            "Follow the regularised leader: logistic regression with exactly zero weights under l1.",
            dict(rule=rules.Logistic(), geometry=geometry.FTRL, stabilizer=stabilizers.Last()),
        ),
        Composition(
            "ScInOL",
            "Logistic regression without a learning rate, for features of any scale (Kempka et al. 2019).",
            dict(rule=rules.Logistic(), geometry=geometry.ScInOL),
            dict(stabilizer="last"),  # better than the mean on most sets of benchmarks/no_rate.py
        ),
    )
}

COMPOSITIONS = {
    "OnlineClassifier": Composition("OnlineClassifier", "Learns a linear classifier from examples one at a time."),
    "OnlineRegressor": Composition(
        "OnlineRegressor",
        "Learns a linear regression from examples one at a time.",
        defaults=dict(rule="lms", geometry="adagrad"),
        task="regress",
    ),
    **NAMED,
}
