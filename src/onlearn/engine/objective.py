"""The objective of a linear learner over all rows, and its minimum.

    F(w) = sum_i h_i loss(w.x_i, y_i) / sum_i h_i + l2/2 |w|_2^2 + l1 |w|_1    (intercepts free of both penalties)

This is what the steps of ``additive`` and ``adagrad`` go down one example at a time, where the weights h of examples
are 1 on average. The sums over i, and their gradients, can be made of shards of the rows and added up. Agarwal,
Chapelle, Dudik & Langford (2014) do so after a few passes on-line, which come near the minimum; L-BFGS, which finds it,
begins there. Each evaluation of F is one round over all shards.

A rule states whether its loss is ``smooth``, and its step is minus the derivative: so the step along a row is what
the row adds to the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler.inlining import Loop, Verb
from onlearn.engine import loops, rules
from onlearn.engine.csr import check_finite, row_batches
from onlearn.engine.learner import Learner
from onlearn.engine.loops import OneVsAll, Softmax, decide, take_steps
from onlearn.engine.protocol import Weights, move
from onlearn.engine.quasi_newton import Descent, dot
from onlearn.engine.rows import look_ahead, score, scores, soon, step
from onlearn.engine.stabilizers import Last
from onlearn.engine.training import Training

WHOLE = 1 << 62
LEAST = 1e-3  # of the median of a diagonal: what is added to all of it, for features that were hardly met
PERIOD = 5  # iterations over which the objective must fall by the part ``tol``

Sums = Callable[[np.ndarray], "tuple[float, np.ndarray, float]"]  # of losses, their gradient, and the weights of rows


class Problem(NamedTuple):
    """What losses depend on besides rows and weights; a ``Training`` is one, but large."""

    rule: Any
    output: str | None
    outputs: int
    bias: float

    @classmethod
    def of(cls, training: Training) -> Problem:
        return cls(training.rule, training.output, training.outputs, training.bias)


# ----------------------------------------------------------------------------------------------------
# Sums over rows.


class GradientState(NamedTuple):
    """The state of a geometry whose steps change no weight: they are summed up."""

    w: Weights
    steps: Weights


@move.on(GradientState)
def _(g: Any, j: Any, x: Any, t: Any, sqnorm: Any) -> Any:
    g.steps[j] += t * x
    return 0.0


@Verb
def whole_loss(out: Any, gold: Any, cost: Any, loss: Any, params: Any) -> Any:
    """The loss of all outputs, where ``decide`` found ``cost``."""


@whole_loss.on(Softmax)
def _(out: Any, gold: Any, cost: Any, loss: Any, params: Any) -> Any:
    return cost


@whole_loss.on(OneVsAll)
def _(out: Any, gold: Any, cost: Any, loss: Any, params: Any) -> Any:
    total = 0.0
    for c in range(len(out.s)):
        total += loss(out.s[c], 1.0 if c == gold else -1.0, 1.0, params)
    return total


@Loop
def sum_output(rows: Any, order: Any, y: Any, weight: Any, rule: Any, loss: Any, params: Any, g: Any, st: Any) -> Any:
    """One output: the sum of losses; the steps go to ``g``."""
    total = 0.0
    for n in range(len(order)):
        far = soon(rows, order, n)
        i, gold, h = order[n], y[n], weight[n]
        if h != 0.0:
            s = score(rows, i, g, st, far)
            total += h * loss(s, gold, 1.0, params)
            t = h * rule(s, gold, 1.0, params)
            if t != 0.0:
                step(rows, i, g, st, t, 1.0)
    return total


@Loop
def sum_outputs(
    rows: Any, order: Any, y: Any, weight: Any, out: Any, rule: Any, loss: Any, params: Any, g: Any, st: Any
) -> Any:
    """Several outputs: the sum of losses; the steps go to ``g``."""
    total, outputs = 0.0, len(out.s)
    for c in range(outputs):
        out.q[c] = 1.0
    for n in range(len(order)):
        look_ahead(rows, order, n)
        i, gold, h = order[n], y[n], weight[n]
        if h != 0.0:
            scores(rows, i, g, st, out.s)
            _margin, cost = decide(out, gold, 1.0, rule, loss, params, False, g, rows, i)
            total += h * whole_loss(out, gold, cost, loss, params)
            for c in range(outputs):
                out.t[c] *= h
            take_steps(out, rows, i, g, st)
    return total


def loss_and_gradient(
    problem: Problem | Training, X: Any, y: np.ndarray, weight: np.ndarray, w: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """The sum of h_i loss_i over the rows of X at the weights w, its gradient, and the sum of h_i.

    y and the weights h are those that ``Training.learn`` takes, w is (1 + columns) x outputs, flat. The sums of shards
    add up to those of all rows. One thread does the work, without Python's lock.
    """
    w = np.ascontiguousarray(w, dtype=np.float64).ravel()
    if w.size != (1 + X.shape[1]) * problem.outputs:
        raise ValueError(
            f"{w.size} weights do not go with {X.shape[1]} columns and {problem.outputs} outputs: there must be "
            f"{(1 + X.shape[1]) * problem.outputs}"
        )
    g, st = GradientState(w, np.zeros(w.size)), Last().start(w, problem.outputs)
    functions = rules.compile_step(problem.rule), rules.compile_loss(problem.rule), rules.values(problem.rule)
    weight, total = np.ascontiguousarray(weight, dtype=np.float64), 0.0
    for rows, order, at in row_batches(X, np.arange(X.shape[0]), problem.bias, WHOLE):
        mine = rows, order, y[at], weight[at]
        if problem.output is None:
            total += sum_output(*mine, *functions, g, st)
        else:
            total += sum_outputs(*mine, loops.start(problem.output, problem.outputs), *functions, g, st)
    if not np.isfinite(total):
        check_finite(X)  # else the weights are too large, which a minimiser will see
    return float(total), np.negative(g.steps, out=g.steps), float(weight.sum())


# ----------------------------------------------------------------------------------------------------
# The minimum.


class Objective:
    """Mean loss + l2/2 |w|^2, as a function of the weights and with its gradient; l1 is the business of ``Descent``.

    ``sums(w)`` adds up what ``loss_and_gradient`` returns for each shard, always in the same order.
    """

    def __init__(self, sums: Sums, outputs: int, l1: float = 0.0, l2: float = 0.0) -> None:
        self.sums, self.outputs, self.l1, self.l2 = sums, outputs, float(l1), float(l2)

    @classmethod
    def of(cls, training: Training, sums: Sums) -> Objective:
        """With the penalties that the geometry of a learner states."""
        return cls(sums, training.outputs, *training.geometry.penalties)

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient, weight = self.sums(w)
        if not weight > 0.0:
            raise ValueError("the weights of all examples are zero, so that there is nothing to minimise")
        free = self.outputs
        gradient = gradient / weight
        gradient[free:] += self.l2 * w[free:]
        return loss / weight + 0.5 * self.l2 * float(dot(w[free:], w[free:])), gradient

    def begin(self, w: np.ndarray, scale: np.ndarray | None = None) -> Descent:
        """A minimisation that begins at w; see ``scale_of``."""
        descent = Descent(self, np.array(w, dtype=np.float64).ravel(), self.l1, self.outputs, scale)
        if not np.isfinite(descent.value):
            raise ValueError("the objective is not a finite number where L-BFGS begins: scale the features")
        return descent

    def resume(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Descent:
        """The minimisation that ``Descent.pack`` took apart."""
        return Descent.resume(self, self.l1, self.outputs, facts, arrays)


def run(descent: Descent, iterations: int, tol: float = 1e-5, watch: Callable[[Descent], object] | None = None) -> str:
    """Make up to so many iterations in all; returns why the last was the last: "iterations", "tol" or "minimum".

    With "tol" the latest iterations lowered the objective by less than this part, and with "minimum" there is no lower
    place that rounding lets one see. ``watch`` is called after each iteration: it may look at ``values``,
    ``slope_size()`` and ``evaluations``, or keep ``pack()``.
    """
    while descent.iterations < iterations:
        if not descent.advance():
            return "minimum"
        if watch is not None:
            watch(descent)
        values = descent.values
        if len(values) > PERIOD and values[-1 - PERIOD] - values[-1] <= tol * abs(values[-1]):
            return "tol"
    return "iterations"


def scale_of(training: Training) -> np.ndarray | None:
    """How far weights may be expected to go, from AdaGrad's sums of squared gradients; None: there are none.

    The mean square of a gradient is about the diagonal of the Hessian of the mean loss. Words of a text differ by
    orders of magnitude in it, and so do columns that were not scaled: there a minimisation takes a fraction of the
    iterations.
    """
    squares = getattr(training.g, "squares", None)
    if squares is None or training.geometry.penalties is None or not training.n_seen:
        return None
    diagonal = squares[: (training.features + 1) * training.outputs] / training.n_seen
    least = LEAST * float(np.median(diagonal[diagonal > 0.0])) if diagonal.any() else 1.0
    return np.asarray(1.0 / np.sqrt(diagonal + training.geometry.penalties[1] + least))


def install(training: Training, w: np.ndarray) -> None:
    """Make the minimum what a learner has learned: weights handed out are w, and learning goes on from there."""
    w = np.asarray(w, dtype=np.float64)
    if w.size != (training.features + 1) * training.outputs or not np.isfinite(w).all():
        raise ValueError(f"the weights must be {(training.features + 1) * training.outputs} finite numbers")
    training.resume_at(w)


# ----------------------------------------------------------------------------------------------------
# What has such an objective.


def why_not(learner: Any) -> str | None:
    """Why a learner's objective cannot be minimised over all rows, in a sentence; None: it can.

    With three or more classes it also depends on their outputs, which are known when learning has begun.
    """
    if type(learner) is not Learner:
        return f"{learner.name} has no single smooth objective over all rows: use a linear learner"
    choices, training = learner.choices, learner.training
    rule, geometry, stabilizer = choices["rule"], choices["geometry"], choices["stabilizer"]
    if not rule.smooth:
        smooth = " or ".join(_smooth_rules(learner.task.classifies))
        return f"the loss of the rule {rule!r} is not smooth, as L-BFGS needs: use {smooth}"
    if geometry.penalties is None:
        return f"{geometry!r} states no objective that L-BFGS could minimise: use 'additive' or 'adagrad'"
    if stabilizer.every_hypothesis:
        return f"stabilizer {stabilizer!r} needs the hypotheses on the way, and L-BFGS hands out one: use 'last'"
    if training is not None and training.output not in (None, "one-vs-all", "softmax"):
        use = "'softmax'" if rule.name == "logistic" else "'one-vs-all'"
        return f"the margin of multiclass={training.output!r} is not smooth, as L-BFGS needs: use multiclass={use}"
    return None


def _smooth_rules(classifies: bool) -> list[str]:
    kinds: dict[str, Any] = dict(rules.RULES.members)
    task = "classification" if classifies else "regression"
    return [repr(name) for name, kind in kinds.items() if kind.smooth and getattr(kind, task)]
