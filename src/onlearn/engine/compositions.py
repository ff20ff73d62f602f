"""The learners by name: each a composition of a rule, a geometry and a stabilizer; and the parameters they share.

Parameters are stated once, with default, range and meaning: those of a choice by the choice, those of all linear
learners in ``Settings``. A composition says which parameters of its choices it shows flat. Estimators, commands and the
model file know the learners from ``COMPOSITIONS``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np

from onlearn.engine import geometry, rules, stabilizers
from onlearn.engine.calibration import CALIBRATIONS
from onlearn.engine.csr import radius
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.loops import OUTPUTS
from onlearn.engine.rules import RULES
from onlearn.engine.spec import Parameter, param, parameters
from onlearn.engine.stabilizers import STABILIZERS

FAMILIES = {"rule": RULES, "geometry": GEOMETRIES, "stabilizer": STABILIZERS, "calibration": CALIBRATIONS}

MULTICLASS = f"'auto', {', '.join(map(repr, OUTPUTS))}"
WEIGHTS = "a dict of weights, 'balanced' or None"


class Settings:
    """The parameters of ``OnlineClassifier``; those of other learners are some of them."""

    rule: Any = param("perceptron", "how large a step an example deserves", kind="rule")
    geometry: Any = param("additive", "how a step changes the weights", kind="geometry")
    stabilizer: Any = param("averaged", "which hypothesis is handed out", kind="stabilizer")
    multiclass: str = param(
        "auto",
        "how three or more classes are learned; 'auto' is what suits the rule",
        kind="other",
        allowed=MULTICLASS,
    )
    fit_intercept: bool = param(True, "whether there is a constant feature of size intercept_scaling", kind="truth")
    epochs: int | None = param(
        5,
        "passes over the data; None: until a pass makes no mistake, at most max_epochs",
        kind="whole",
        at_least=1,
        words=(None,),
    )
    max_epochs: int = param(1000, "the most passes if epochs is None", kind="whole", at_least=1)
    shuffle: bool = param(True, "whether fit visits the rows in a new random order each pass", kind="truth")
    tol: float | None = param(
        None,
        "stop when the mean loss of a pass is not at least so much below that of the pass before",
        kind="number",
        words=(None,),
    )
    class_weight: Any = param(None, "multiplies the steps of the examples of a class", kind="other", allowed=WEIGHTS)
    init: str = param("zeros", "the weights to begin with", words=("zeros", "random"))
    grow: bool | str = param(
        False,
        "whether partial_fit takes in classes and features it has not seen before; 'features': features only",
        kind="truth",
        words=("features",),
    )
    random_state: Any = param(
        None, "what the order of the rows depends on", kind="other", allowed="a whole number, a RandomState or None"
    )
    warm_start: bool = param(False, "whether fit goes on from where the last one ended", kind="truth")
    verbose: int = param(0, "above 0: show progress", kind="whole", at_least=0)
    intercept_scaling: float | str = param(
        1.0,
        "size of the constant feature; 'radius' is max |x|, so that a mistake moves b by r y R^2",
        kind="number",
        above=0,
        words=("radius",),
    )
    calibration: Any = param("auto", "where probabilities come from", kind="calibration")
    max_names: int = param(
        1 << 21,
        "with grow, the names of features that learn_one takes in; names beyond share as many columns by their hash",
        kind="whole",
        at_least=1,
    )


PARAMETERS: dict[str, Parameter] = parameters(dataclass(Settings))
ONLY_CLASSES = ("multiclass", "class_weight", "calibration")  # have no meaning in regression


def check_settings(values: dict[str, Any], own: dict[str, Parameter]) -> None:
    """Refuse values that parameters cannot have, shared ones or a learner's own; choices are checked where made."""
    for name, parameter in {**PARAMETERS, **own}.items():
        if name in values and parameter.rules["kind"] not in FAMILIES:
            parameter.check(values[name])
    weights = values.get("class_weight")
    if weights is not None and weights != "balanced" and not isinstance(weights, dict):
        raise ValueError(f"class_weight must be {WEIGHTS}, not {weights!r}")


def seed_of(random_state: Any) -> int:
    """The seed that a parameter ``random_state`` means; one is drawn from a generator, or from NumPy's global one."""
    if isinstance(random_state, Integral):
        if not 0 <= int(random_state) < 1 << 32:
            raise ValueError(f"random_state must be from 0 to 2**32 - 1, not {random_state}")
        return int(random_state)
    if random_state is None or random_state is np.random:
        return int(np.random.randint(2**31 - 1))  # noqa: NPY002  whose seed the user may have set
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(f"{random_state!r} cannot be used to seed a numpy.random.RandomState instance")


def constant_feature(settings: Any, X: Any, sees_all: bool) -> float:
    """The size of the feature whose weight is the intercept; 0: there is none."""
    if not settings.fit_intercept:
        return 0.0
    if settings.intercept_scaling != "radius":
        return float(settings.intercept_scaling)
    if not sees_all:
        raise ValueError("intercept_scaling='radius' needs fit, which sees all the data; for partial_fit give a number")
    return radius(X) or 1.0


# ----------------------------------------------------------------------------------------------------
# What learning began with: the state made by one rule or geometry means nothing to another.


CHOICES = ("rule", "geometry", "stabilizer")
FIXED = ("multiclass", "fit_intercept", "intercept_scaling", "init", "max_names")


def what_learning_depends_on(choices: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The parameters that must not change while learning goes on."""
    made = {name: choices[name] for name in CHOICES}
    return {**made, **{name: values[name] for name in FIXED if name in values}}


def refuse_changes(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Refuse parameters that were changed since learning began, and that would have no effect."""
    for name, value in now.items():
        old = before[name]
        if value != old:
            if repr(value) == repr(old) and type(value) is not type(old):
                raise ValueError(
                    f"the {name} {old!r} was defined anew since learning began: give the learner the one before "
                    "as an object, or fit anew (without warm_start)"
                )
            raise ValueError(
                f"{name} was {old!r} when learning began and cannot change to {value!r} now: set it back, "
                "or fit anew (without warm_start)"
            )


# ----------------------------------------------------------------------------------------------------
# Compositions.


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
    shared: tuple[str, ...] | None = None  # parameters of linear learners that it has; None: all that are not fixed

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All parameters, in the order in which they are written: first those that are flat."""
        flat = {name: one for made in self._flat().values() for name, one in parameters(made).items()}
        hidden = {*self.parts, *self.fixed, *(("rule", "geometry") if self.parts else ())}
        hidden |= {*ONLY_CLASSES} if self.task == "regress" else set()
        known = PARAMETERS if self.shared is None else {name: PARAMETERS[name] for name in self.shared}
        shared = {name: one for name, one in known.items() if name not in hidden}
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
