"""Learning of structured outputs: the engine's rules, geometries and stabilizers for any decoder.

With f the features of an output, the example that is learned from is the difference of the right output y and of its
rival r, and its label is always +1:

    d = f(x, y) - f(x, r);   s = score(x, y) - score(x, r) - cost(r) + 1;   t = rule(s, +1, |d|^2);   w += t d

A cost of 1 makes s the margin. If r is the output of the highest score plus cost, the hinge loss max(0, 1 - s) is the
structured one, max_r (cost(r) + score(x, r)) - score(x, y). Where the rival is the right output itself, nothing is to
be learned, but the hypothesis has lived through one more example.

Collins (2002) has the perceptron, Taskar, Guestrin and Koller (2003) and Tsochantaridis et al. (2005) margins that grow
with the cost, Crammer et al. (2006) passive-aggressive steps.
"""

from __future__ import annotations

import copy
import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.compiler.inlining import Loop
from onlearn.engine import rules
from onlearn.engine.compositions import refuse_changes, seed_of
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.loops import HIGHEST_LOSS, LONGEST_STEP, LOSS, MISTAKES, SEEN, UPDATES, remember, tame
from onlearn.engine.passes import shuffled
from onlearn.engine.protocol import catch_up, live, scale, settle, stride, tick, weigh
from onlearn.engine.rows import Sparse, score, sqnorm, step
from onlearn.engine.rules import RULES
from onlearn.engine.stabilizers import STABILIZERS
from onlearn.engine.training import Training
from onlearn.sequence.decoder import Decoder, Pair, as_pair, difference

if TYPE_CHECKING:
    from typing_extensions import Self


class StructuredLearner:
    """Learns the weights of a decoder from right outputs.

    Parameters
    ----------
    decoder : Decoder
        The problem: how the best output is found, and what its features are.
    rule, geometry, stabilizer : choices or their spelling
        As those of ``OnlineClassifier``: how large a step an example deserves, how it changes the weights, and which
        hypothesis is handed out. The geometry must allow weights of either sign; all stabilizers but 'voted' will do.
    epochs : a whole number of at least 1, by default 5
        Passes of ``fit`` over the examples.
    shuffle : True or False, by default True
        Whether ``fit`` visits the examples in a new random order each pass.
    random_state : a whole number, a RandomState or None
        What the order depends on.

    Attributes
    ----------
    weights_ : the weights of the hypothesis handed out, one a feature
    n_seen_, n_mistakes_, n_updates_ : examples visited; those whose rival scored no less than the right output; steps
    history_ : mistakes and mean loss by pass, and at doubling counts of examples

    >>> class Larger(Decoder):  # which of two numbers is wanted: the larger one, as it will find out
    ...     size = 1
    ...
    ...     def best(self, x, w):
    ...         return 0 if w[0] * x[0] >= w[0] * x[1] else 1
    ...
    ...     def features(self, x, output):
    ...         return np.array([x[output]])
    >>> learner = StructuredLearner(Larger(), epochs=2, shuffle=False).fit([(1, 3), (2, 1), (0, 5)], [1, 0, 1])
    >>> learner.predict([(7, 9), (4, 2)]), learner.weights_, learner.n_mistakes_
    ([1, 0], array([2.]), 1)
    """

    PARAMETERS = ("decoder", "rule", "geometry", "stabilizer", "epochs", "shuffle", "random_state")

    def __init__(self, decoder: Decoder, rule: Any = "perceptron", geometry: Any = "additive",
                 stabilizer: Any = "averaged", epochs: int = 5, shuffle: bool = True,
                 random_state: Any = None) -> None:  # fmt: skip
        self.decoder: Any = decoder
        self.rule, self.geometry, self.stabilizer = rule, geometry, stabilizer
        self.epochs, self.shuffle, self.random_state = epochs, shuffle, random_state
        self._training: Training | None = None
        self._began_with: dict[str, Any] = {}

    # ------------------------------------------------------------------ parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self.PARAMETERS}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        for name, value in params.items():
            if name not in self.PARAMETERS:
                raise ValueError(f"StructuredLearner has no parameter {name!r}; it has {', '.join(self.PARAMETERS)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        usual = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        changed = [f"{name}={one!r}" for name, one in self.get_params().items() if repr(one) != repr(usual[name])]
        return f"StructuredLearner({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        return rules.with_rule(self.__dict__, self.rule)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(rules.without_rule(state))

    def _choices(self) -> dict[str, Any]:
        """Rule, geometry and stabilizer as objects; those that cannot learn differences are refused."""
        rule, geometry = RULES.get(self.rule), GEOMETRIES.get(self.geometry)
        stabilizer = STABILIZERS.get(self.stabilizer)
        if not rule.classification:
            raise ValueError(f"the rule {rule.name!r} learns numbers, not outputs: use 'perceptron', 'pa1' or 'hinge'")
        if geometry.positive_weights or geometry.undecided:
            raise ValueError(f"{geometry!r} cannot learn from differences, which have either sign: use 'additive'")
        if getattr(geometry, "threshold", 0.0):
            raise ValueError(f"{geometry!r} has a threshold, and the difference of two outputs has none: set it to 0")
        if stabilizer.every_hypothesis:
            raise ValueError("stabilizer 'voted' would decode once for every hypothesis: use 'averaged' or 'survivor'")
        return {"rule": rule, "geometry": geometry, "stabilizer": stabilizer}

    def _check(self) -> None:
        for name in ("best", "features"):
            if not callable(getattr(self.decoder, name, None)):
                raise ValueError(f"the decoder {self.decoder!r} has no method {name!r}: write best and features")
        whole = isinstance(self.epochs, (int, np.integer)) and not isinstance(self.epochs, bool)
        if not whole or self.epochs < 1:
            raise ValueError(f"epochs must be a whole number of at least 1, not {self.epochs!r}")
        if not isinstance(self.shuffle, (bool, np.bool_)):
            raise ValueError(f"shuffle must be True or False, not {self.shuffle!r}")

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from all examples, anew; Y has the right output of each input of X."""
        self._check()
        choices, seed = self._choices(), seed_of(self.random_state)
        inputs, outputs = _examples(X, Y)
        training = self._start(choices)
        for _ in range(int(self.epochs)):
            order = shuffled(len(inputs), seed, training.passes) if self.shuffle else np.arange(len(inputs))
            training.begin_pass()
            for k in order.tolist():
                self._learn_one(training, inputs[k], outputs[k], k)
            training.end_pass()
        self._training, self._began_with = training, choices
        return self

    def partial_fit(self, X: Any, Y: Any) -> Self:
        """Learn from examples once, in their order, and go on from what was learned before.

        In one call or in many, the same is learned. A call that fails leaves the learner as it was.
        """
        self._check()
        choices = self._choices()
        inputs, outputs = _examples(X, Y)
        if self._training is None:
            training = self._start(choices)
        else:
            refuse_changes(self._began_with, choices)
            training = copy.deepcopy(self._training)
        for k, (x, y) in enumerate(zip(inputs, outputs)):
            self._learn_one(training, x, y, k)
        self._training, self._began_with = training, choices
        return self

    def _start(self, choices: dict[str, Any]) -> Training:
        size = self._size()
        return Training(choices["rule"], choices["geometry"], choices["stabilizer"], None, size or 0, 1, 0.0)

    def _size(self) -> int | None:
        """How many features the decoder says there are."""
        size = getattr(self.decoder, "size", None)
        if size is None:
            return None
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"the size of a decoder must be a whole number of at least 1, or None, not {size!r}")
        return int(size)

    def _verb(self, name: str) -> Any:
        """A verb of the decoder, or its usual body for a decoder that does not derive from ``Decoder``."""
        own = getattr(self.decoder, name, None)
        return partial(getattr(Decoder, name), self.decoder) if own is None else own

    def _learn_one(self, training: Training, x: Any, gold: Any, k: int) -> None:
        """Learn from one example, which is number k of those given."""
        size = self._size()
        if size is not None and size > training.features:
            training.grow(size, 1)
        w = _present(training)
        rival, cost = _rival_and_cost(self._verb("rival")(x, gold, w), k)
        right = self._features(x, gold, k, "the right output")
        change = difference(right, self._features(x, rival, k, "the rival"))
        if len(change.features) and change.features[-1] >= training.features:
            training.grow(int(change.features[-1]) + 1, 1)
        margin, scored = 0.0, _has_own_score(self.decoder)
        if scored:
            margin = float(self._verb("score")(x, gold, w)) - float(self._verb("score")(x, rival, w))
            if not np.isfinite(margin):
                raise ValueError(f"example {k}: the decoder gave a score that is not finite")
        if not _learn(training, change, cost, margin, scored):
            raise ValueError(f"example {k}: the rule {training.rule.name!r} {training._complaint}; nothing was learned")

    def _features(self, x: Any, output: Any, k: int, whose: str) -> Pair:
        found = self._verb("features")(x, output)
        try:
            return as_pair(found, self._size())
        except ValueError as error:
            raise ValueError(f"example {k}: as the features of {whose} the decoder gave {error}") from None

    # ------------------------------------------------------------------ predicting

    def predict(self, X: Any) -> list[Any]:
        """The best output of each input."""
        w = self.weights_
        return [self._verb("best")(x, w) for x in X]

    def decision_function(self, X: Any, Y: Any = None) -> np.ndarray:
        """The score of an output of each input: of those given, or of the best ones."""
        w = self.weights_
        inputs, outputs = _examples(X, self.predict(X) if Y is None else Y)
        return np.array([self._verb("score")(x, y, w) for x, y in zip(inputs, outputs)], dtype=np.float64)

    def score(self, X: Any, Y: Any) -> float:
        """The share of inputs whose best output is right: has the same features as the one given."""
        inputs, outputs = _examples(X, Y)
        if not inputs:
            raise ValueError("there are no examples to score: X is empty")
        found = self.predict(inputs)
        right = 0
        for k, (x, gold, best) in enumerate(zip(inputs, outputs, found)):
            given = self._features(x, gold, k, "the right output")
            right += not len(difference(given, self._features(x, best, k, "the best output")).features)
        return right / len(inputs)

    # ------------------------------------------------------------------ what it has learned

    def _trained(self) -> Training:
        if self._training is None:
            raise ValueError("this StructuredLearner has not learned anything yet: call fit first")
        return self._training

    @property
    def weights_(self) -> np.ndarray:
        """The weights of the hypothesis handed out, one a feature."""
        handed = self._trained().weights()[1:, 0].copy()
        handed.flags.writeable = False
        return handed

    @property
    def n_seen_(self) -> int:
        """How many examples were visited, each pass counted."""
        return self._trained().n_seen

    @property
    def n_mistakes_(self) -> int:
        """How often the rival scored no less than the right output."""
        return self._trained().n_mistakes

    @property
    def n_updates_(self) -> int:
        """How many steps were taken."""
        return self._trained().n_updates

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        """Mistakes and mean loss by pass, and at doubling counts of examples."""
        return self._trained().history


# ----------------------------------------------------------------------------------------------------
# Input, and what decoders give.


def _examples(X: Any, Y: Any) -> tuple[list[Any], list[Any]]:
    inputs, outputs = list(X), list(Y)
    if len(inputs) != len(outputs):
        raise ValueError(f"there are {len(inputs)} inputs and {len(outputs)} outputs: each input has one right output")
    return inputs, outputs


def _rival_and_cost(found: Any, k: int) -> tuple[Any, float]:
    if not isinstance(found, tuple) or len(found) != 2:
        raise ValueError(f"example {k}: the decoder's rival must be a tuple of an output and its cost, not {found!r}")
    try:
        cost = float(found[1])
    except (TypeError, ValueError):
        cost = np.nan
    if not 0.0 <= cost < np.inf:
        raise ValueError(f"example {k}: the cost of a rival must be a number of at least 0, not {found[1]!r}")
    return found[0], cost


def _has_own_score(decoder: Any) -> bool:
    """Whether scores are more than the weights of the features; else they need not be computed twice."""
    own = getattr(type(decoder), "score", None)
    return own is not None and own is not Decoder.score


# ----------------------------------------------------------------------------------------------------
# The state of the engine: present weights, and one example.


def _present(training: Training) -> np.ndarray:
    """The weights of the present hypothesis, not to be written to."""
    g, st = training.g, training.st
    if scale.is_usual(type(g)) and catch_up.is_usual(type(g), type(st)):
        w = g.w[1 : training.features + 1]  # as they are stored
    else:
        w = np.empty(training.features)
        present_weights(g, st, w)
    w = w.view()
    w.flags.writeable = False
    return w


def _learn(training: Training, change: Pair, cost: float, margin: float, scored: bool) -> bool:
    """Learn from one difference; False if the rule failed."""
    training._handed = None
    training._own()
    rule = training.rule
    params, measured = rules.values(rule), training.geometry.measures or rules.uses_sqnorm(rule)
    rows = Sparse(change.values, change.features, np.array([0, len(change.features)]), 0.0)
    done = learn_difference(rows, rules.compile_step(rule), rules.compile_loss(rule), params, measured, cost, margin,
                            scored, training.g, training.st, training.tally, training.doubling)  # fmt: skip
    training._complaint = rules.complaint(rule, params)
    return bool(done)


@Loop
def learn_difference(rows, rule, loss, params, measured, cost, margin, scored, g, st, tally, doubling):
    """One example: row 0 of the rows is the difference of features; ``margin`` is that of the scores, if ``scored``.

    Returns 0 if the rule gave what is not a number, else 1.
    """
    differs, t, q, s = len(rows.data) > 0, 0.0, 1.0, 1.0
    mistake = False
    if differs:
        if not scored:
            margin = score(rows, 0, g, st, np.uint64(0)) * scale(g, 0)
        s = tame(margin - cost + 1.0)
        q = sqnorm(g, rows, 0, 1, 0) if measured else 1.0
        t = rule(s, 1.0, q, params)
        if t != t:
            return 0
        mistake = margin <= 0.0
        tally[MISTAKES] += mistake
        tally[LOSS] += min(loss(s, 1.0, q, params), HIGHEST_LOSS)
    tally[SEEN] += 1.0
    live(st, g, mistake, t != 0.0)
    if t != 0.0:
        tally[UPDATES] += 1.0
        t = min(max(t, -LONGEST_STEP), LONGEST_STEP)
        step(rows, 0, g, st, stride(g, t, 0), q)
    settle(g, st)
    tick(st, g)
    remember(tally, doubling)
    return 1


@Loop
def present_weights(g, st, w):
    """Bring all weights up to date, and copy them."""
    for k in range(len(w)):
        w[k] = scale(g, 0) * weigh(g, st, np.uint64(k + 1))
    return 0
