"""The parameters that all linear learners share: default, range and meaning, stated once.

The estimators, the named learners and the commands read them from here. What learning began with is kept, too: the
state made by one rule or geometry means nothing to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

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
# What learning began with.


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
