"""The update rules: how large a step one example deserves.

A rule is one scalar function ``step(score, y, sqnorm, params)``. It sees the score ``s`` before
learning, the label ``y`` (-1 or +1, or a number in regression), the squared length ``|x|^2`` of the
example and the rule's own parameters, and returns the step ``t`` along ``x``; 0 leaves the hypothesis
as it is. ``s*y <= 0`` is a mistake, ties included. Beside each step stands the loss it descends.

The same function drives binary, multiclass (the score is then the margin over the best rival and
y = +1) and later the kernel and sequence learners: it never learns where its numbers come from.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Protocol

import numpy as np

from onlearn.compiler import INTERPRETED, pointer
from onlearn.engine.spec import Family, choice, param


class Rule(Protocol):
    """How large a step one example deserves. ``step`` and ``loss`` are plain functions, compiled as they stand."""

    name: str

    classification: bool = True  # whether it learns classes
    regression: bool = False  # whether it learns numbers
    multiclass: str = "true"  # how three or more classes are learned unless it is said
    own_probabilities: bool = False  # whether its scores are log-odds
    smooth: bool = False  # whether its loss has a derivative everywhere, and its step is minus that
    projects: bool = False  # whether a step of a number's learner goes as far as the example asks, and no further
    written: Any = None  # what the user wrote, of a user-defined rule (see ``user_rules``)

    def values(self) -> list[Any]:
        """The parameters as its compiled functions get them."""
        return [*self.get_params().values()]  # type: ignore[attr-defined]


RULES = Family("rule", Rule)

SIGNATURE = "float64", ("float64", "float64", "float64", "float64[]")  # of a step and a loss


@choice(RULES, "perceptron")
class Perceptron:
    """Step y on a mistake (Rosenblatt 1958)."""

    def step(s, y, sqnorm, p):
        return y if s * y <= 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, -s * y)


@choice(RULES, "margin")
class Margin:
    """Thick separator: step y on a mistake or when the score lies within the margin of its side."""

    m_plus: float = param(1.0, "thickness on the positive side", at_least=0)
    m_minus: float | None = param(None, "thickness on the negative side; None: as m_plus", at_least=0, words=(None,))

    def values(self):
        return [self.m_plus, self.m_plus if self.m_minus is None else self.m_minus]

    def step(s, y, sqnorm, p):
        thickness = p[0] if y > 0.0 else p[1]
        return y if s * y < thickness or s * y <= 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, (p[0] if y > 0.0 else p[1]) - s * y)


@choice(RULES, "aggressive")
class Aggressive:
    """On a mistake, the step that brings the score exactly to y*m: t = (y m - s) / |x|^2."""

    m: float = param(1.0, "the score asked for after the step", above=0)

    def step(s, y, sqnorm, p):
        return (y * p[0] - s) / sqnorm if s * y <= 0.0 and sqnorm > 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, p[0] - s * y) if s * y <= 0.0 else 0.0


@choice(RULES, "pa1")
class PA1:
    """Passive-aggressive I (Crammer et al. 2006): t = y min(C, max(0, 1 - y s) / |x|^2)."""

    aggressiveness: float = param(1.0, "C, the largest step", above=0)

    def step(s, y, sqnorm, p):
        return y * min(p[0], max(0.0, 1.0 - s * y) / sqnorm) if sqnorm > 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, 1.0 - s * y)


@choice(RULES, "pa2")
class PA2:
    """Passive-aggressive II (Crammer et al. 2006): t = y max(0, 1 - y s) / (|x|^2 + 1/(2C))."""

    aggressiveness: float = param(1.0, "C, the smaller the gentler", above=0)

    def step(s, y, sqnorm, p):
        return y * max(0.0, 1.0 - s * y) / (sqnorm + 0.5 / p[0])

    def loss(s, y, sqnorm, p):
        return max(0.0, 1.0 - s * y)


@choice(RULES, "lms")
class LMS:
    """Least mean squares, Adaline, Widrow-Hoff: t = y - s. In regression with l2 ridge, with l1 lasso."""

    regression = True
    multiclass = "one-vs-all"
    smooth = True

    def step(s, y, sqnorm, p):
        return y - s

    def loss(s, y, sqnorm, p):
        return 0.5 * (y - s) ** 2


@choice(RULES, "hinge")
class Hinge:
    """Subgradient of the hinge loss max(0, 1 - y s): the soft-margin SVM. No step where y s > 1, else y."""

    def step(s, y, sqnorm, p):
        return y if s * y <= 1.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, 1.0 - s * y)


@choice(RULES, "squared_hinge")
class SquaredHinge:
    """Gradient of max(0, 1 - y s)^2: t = 2 y max(0, 1 - y s)."""

    smooth = True

    def step(s, y, sqnorm, p):
        return 2.0 * y * max(0.0, 1.0 - s * y)

    def loss(s, y, sqnorm, p):
        return max(0.0, 1.0 - s * y) ** 2


@choice(RULES, "logistic")
class Logistic:
    """Gradient of log(1 + e^(-y s)): t = y / (1 + e^(y s)). Its scores are log-odds as they stand."""

    multiclass = "softmax"
    own_probabilities = True
    smooth = True

    def step(s, y, sqnorm, p):
        return y / (1.0 + np.exp(s * y))

    def loss(s, y, sqnorm, p):
        m = s * y
        return np.log(1.0 + np.exp(-abs(m))) - min(m, 0.0)  # exact enough for a sum, and twice as fast as log1p


@choice(RULES, "epsilon")
class Epsilon:
    """Epsilon-insensitive regression: step sign(y - s) when the error is larger than epsilon."""

    regression = True
    classification = False
    epsilon: float = param(0.1, "errors up to this size cost nothing", at_least=0)

    def step(s, y, sqnorm, p):
        return np.sign(y - s) if abs(y - s) > p[0] else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, abs(y - s) - p[0])


@choice(RULES, "nlms")
class NLMS:
    """Normalised least mean squares (Nagumo and Noda 1967): t = (y - s) / |x|^2, after which the score is y."""

    regression = True
    classification = False
    projects = True

    def step(s, y, sqnorm, p):
        return (y - s) / sqnorm if sqnorm > 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return 0.5 * (y - s) ** 2


@choice(RULES, "pa_epsilon")
class PAEpsilon:
    """Passive-aggressive regression (Crammer et al. 2006): t = sign(y - s) min(C, loss / |x|^2)."""

    regression = True
    classification = False
    projects = True
    epsilon: float = param(0.1, "errors up to this size cost nothing", at_least=0)
    aggressiveness: float | None = param(None, "C, the largest step; None: any", above=0, words=(None,))

    def values(self):
        return [self.epsilon, np.inf if self.aggressiveness is None else self.aggressiveness]

    def step(s, y, sqnorm, p):
        return np.sign(y - s) * min(p[1], max(0.0, abs(y - s) - p[0]) / sqnorm) if sqnorm > 0.0 else 0.0

    def loss(s, y, sqnorm, p):
        return max(0.0, abs(y - s) - p[0])


def values(rule: Any) -> np.ndarray:
    """The parameters a rule's compiled function is called with."""
    return np.array([*map(float, rule.values())], dtype=np.float64)


def uses_sqnorm(rule: Any) -> bool:
    """Whether the step looks at |x|^2; when it does not, nobody computes it."""
    return _reads_third(type(rule).written.function if is_custom(rule) else type(rule).step)


@cache
def _reads_third(function: Callable[..., float]) -> bool:
    if function.__code__.co_argcount < 3:
        return False
    name = function.__code__.co_varnames[2]
    read = (i.argval for i in dis.get_instructions(function) if i.opname.startswith("LOAD_FAST"))
    return any(name == arg or (isinstance(arg, tuple) and name in arg) for arg in read)


@cache
def _pointer(function: Callable[..., float], ours: bool) -> Any:
    return function if INTERPRETED else pointer(function, *SIGNATURE, keep=ours)


def compile_step(rule: Any) -> Any:
    """The step as a first-class function: one type for all rules, so a loop compiles once for all."""
    return _compiled(rule, "step")


def compile_loss(rule: Any, classifies: bool = True) -> Any:
    """The loss, likewise; a user's rule that came without one has another in regression."""
    return _compiled(rule, "loss" if classifies or not is_custom(rule) else "error")


def _compiled(rule: Any, what: str) -> Any:
    home = type(rule).written if is_custom(rule) else type(rule)
    return _pointer(getattr(home, what), not is_custom(rule))


def is_custom(rule: Any) -> bool:
    """Whether the rule was written by the user (see ``user_rules``); such a rule may do anything."""
    return type(rule).written is not None


def filed(spelling: str) -> Any:
    """The rule that a model file names; one of the user's own must be known by now, for files hold no code."""
    name = spelling.partition("(")[0]
    if name not in RULES:
        raise ValueError(
            f"unknown rule {name!r}, which is none of onlearn's: if it is one of your own, define it with "
            "@onlearn.rule before loading"
        )
    return RULES.get(spelling)


def complaint(rule: Any, params: np.ndarray) -> str:
    """What a rule did at which a loop stopped that was called with these parameters; raises if its loss failed."""
    return (type(rule).written.complaint(params) if is_custom(rule) else None) or "returned NaN"


# ----------------------------------------------------------------------------------------------------
# Pickling of user-defined rules: another process does not know the name that a learner calls one by.


def with_rule(state: dict[str, Any], rule: Any) -> dict[str, Any]:
    """What is pickled of a learner, with the class of its rule if the user wrote that; ``rule`` may be a spelling."""
    with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
        kind = type(RULES.get(rule))
        if kind.written is not None and _can_be_found(kind):
            return {**state, "_own": kind}
    return dict(state)


def without_rule(state: dict[str, Any]) -> dict[str, Any]:
    """The state that was pickled; the rule that came with it is known by its name from now on."""
    kind = state.pop("_own", None)
    if kind is not None and kind.name not in RULES:  # one that has the name here was defined here
        RULES.add(kind.name, kind)
    return state


def _can_be_found(kind: type) -> bool:
    """Whether pickle, too, finds a class: else it would refuse an estimator that has no more than the name."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind
