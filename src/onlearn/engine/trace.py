"""The trace of a learner: which examples it learned from, and its hypothesis after each of them.

The loop that learns pauses after each step, and what the step set anew is taken down. It is the same compiled loop, so
the weights are those of a run without a trace to the last bit; and a trace takes the space of the examples that were
learned from. Under l1 or l2 a step is all weights that changed since the step before, which may be all of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.compiler import compiled
from onlearn.engine.geometry.exponentiated import ExponentiatedState
from onlearn.engine.loops import MISTAKES, UPDATES, hand_out
from onlearn.engine.protocol import scale
from onlearn.engine.replay import Changes, Hypotheses, Replay, Shape
from onlearn.engine.rows import Sparse
from onlearn.engine.stabilizers import Last

Callback = Callable[["Trace"], Any]
WAITING = 1 << 12  # values to add to an array at a time
NEVER: np.ndarray = np.zeros(0)


class Trace:
    """The steps that ``fit`` made, in order, and the hypotheses 0 to ``len(trace)`` before, between and after them.

    Attributes
    ----------
    rows : array of (steps,)
        The row of X that each step was made on.
    passes : array of (steps,)
        Its pass, as a place in ``history_["passes"]``.
    steps : array of (steps,)
        t: how many examples ``fit`` had seen, this one included.
    mistakes : array of (steps,)
        True: the example was misclassified; False: it was right, by too small a margin. All are False in regression.
    votes : array of (steps + 1,)
        How many examples each hypothesis survived, the one that made it included.
    """

    def __init__(self, training: Any, shape: Shape) -> None:
        """An empty trace, of what the training learns from now on."""
        base, norms = present(training)
        self._shape, self._geometry, self._outputs = shape, training.geometry, training.outputs
        self._base, self._now = base.copy(), base.copy()
        self._count, self._changed, self._seen = 0, 0, 0  # steps, changes of weights, examples
        self._rows, self._passes, self._steps, self._start = (Column(np.int64) for _ in range(4))
        self._mistakes = Column(np.bool_)
        self._at, self._value = Column(np.int64, parts=True), Column(np.float64, parts=True)
        self._norms = Column(np.float64, parts=True)
        self._start.add(0)  # of the first hypothesis, which has no changes
        self._start.add(0)
        self._norms.add(norms)
        self._latest: Replay | None = None

    @property
    def rows(self) -> np.ndarray:
        return self._rows.array()

    @property
    def passes(self) -> np.ndarray:
        return self._passes.array()

    @property
    def steps(self) -> np.ndarray:
        return self._steps.array()

    @property
    def mistakes(self) -> np.ndarray:
        return self._mistakes.array()

    @property
    def votes(self) -> np.ndarray:
        return np.diff(np.concatenate([[1], self.steps, [self._seen + 1]]))

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<trace of {len(self)} steps, {int(self.mistakes.sum())} of them on mistakes>"

    def weights(self, k: int) -> np.ndarray:
        """The weights after k steps, (features,), or (classes, features) with more than two; 0 is the start."""
        return self._shape.split(self._replay().weights(self._checked(k)))[0]

    def intercept(self, k: int) -> Any:
        """The intercept after k steps, less the threshold if there is one; (classes,) with more than two."""
        return self._shape.split(self._replay().weights(self._checked(k)))[1]

    def changes(self, k: int) -> Changes:
        """The weights that step k set anew, from 1 to ``len(trace)``: columns, class numbers and values.

        The intercept is not among them. Of normalised weights, the others are all divided by the same number.
        """
        if self._checked(k) == 0:
            raise IndexError("the start has no changes: steps are counted from 1")
        made = self._replay().changes(k)
        features = made.columns >= 0
        return Changes(made.columns[features], made.outputs[features], made.values[features])

    def hypotheses(self) -> Hypotheses:
        """The list of (v_i, c_i): all hypotheses, and how many examples each survived."""
        return Hypotheses(self._replay(), self.votes, self._shape)

    def divergence(self, u: ArrayLike) -> np.ndarray:
        """KL(u || w_k) = sum u_j ln(u_j / w_kj) after 0, 1, ... steps of normalised Winnow: its proof's potential.

        ``u`` is a distribution over the features; one number more, at the end, is the part of the constant feature.
        """
        features = self._shape.features
        if not self._geometry.normalised or self._outputs != 1:
            raise ValueError("the divergence is of weights that sum to 1: those of 'exponentiated', with two classes")
        target = np.asarray(u, dtype=np.float64)
        if target.shape not in ((features,), (features + 1,)):
            raise ValueError(f"u has the shape {target.shape}, but there are {features} features")
        if not (np.isfinite(target).all() and (target >= 0).all() and abs(target.sum() - 1.0) <= 1e-6):
            raise ValueError("u must be a distribution: not negative, with a sum of 1")
        placed = np.zeros(len(self._base))
        placed[1 : 1 + features] = target[:features]
        placed[0] = target[-1] if len(target) > features else 0.0
        logarithms = np.empty(len(self) + 1)
        replay = self._replay()
        sum_logarithms(replay.base.copy(), replay.at, replay.value, replay.start, placed, logarithms)
        some = target[target > 0]
        return np.asarray(some @ np.log(some) - logarithms + target.sum() * np.log(replay.norms[:, 0]))

    def _replay(self) -> Replay:
        """The hypotheses so far."""
        if self._latest is None or len(self._latest.norms) != len(self) + 1:
            norms = self._norms.array().reshape(-1, self._outputs)
            before = self._latest
            self._latest = Replay(self._base, self._at.array(), self._value.array(), self._start.array(), norms)
            if before is not None:
                self._latest.latest = before.latest
        return self._latest

    def _checked(self, k: int) -> int:
        if not 0 <= k <= len(self):
            raise IndexError(f"there are hypotheses after 0 to {len(self)} steps, not after {k}")
        return int(k)

    # ------------------------------------------------------------------ taking down

    def add(self, training: Any, row: int, t: int, mistake: bool, places: np.ndarray | None) -> None:
        """A step was made, on a row of X, as example t; it may have changed weights at these places (None: at any)."""
        values, norms = present(training)
        places = np.arange(len(values)) if places is None else places
        values = values[places]
        changed = values != self._now[places]
        places, values = places[changed], values[changed]
        self._now[places] = values
        self._count += 1
        self._changed += len(places)
        self._at.add(places)
        self._value.add(values)
        self._start.add(self._changed)
        self._norms.add(norms)
        self._passes.add(training.passes)
        self._steps.add(t)
        self._mistakes.add(mistake and training.classifies)
        self._rows.add(row)

    def see(self, count: int) -> None:
        """So many examples were seen."""
        self._seen = count


class Column:
    """An array that grows at its end, by single values or by ``parts``; what was added lately waits in a list."""

    def __init__(self, dtype: Any, parts: bool = False) -> None:
        self.room: np.ndarray = np.empty(16, dtype)
        self.filled, self.parts = 0, parts
        self.waiting: list[Any] = []

    def add(self, value: Any) -> None:
        """A value, or an array of them that does not change any more."""
        self.waiting.append(value)
        if len(self.waiting) == WAITING:
            self.array()

    def array(self) -> np.ndarray:
        """All that was added."""
        if self.waiting:
            added = np.concatenate(self.waiting) if self.parts else self.waiting
            self.waiting = []
            size = self.filled + len(added)
            if size > len(self.room):
                more = np.empty(max(size, len(self.room)), self.room.dtype)
                self.room = np.concatenate([self.room[: self.filled], more])
            self.room[self.filled : size] = added
            self.filled = size
        return self.room[: self.filled]


def present(training: Any) -> tuple[np.ndarray, np.ndarray]:
    """The weights that the learner predicts with while it learns, and what they are to be divided by, by output."""
    g, outputs = training.g, training.outputs
    if training.geometry.drifts:
        return last_weights(training, len(g.w)), np.ones(outputs)
    if isinstance(g, ExponentiatedState):
        return g.w, g.total.copy()  # as it is, for the loops divide, and do not multiply by 1 / total
    usual = scale.is_usual(type(g))
    return g.w, np.ones(outputs) if usual else np.array([1.0 / scale(g, c) for c in range(outputs)])


def last_weights(training: Any, size: int) -> np.ndarray:
    """The last hypothesis, whatever the stabilizer hands out: the first weights, flat."""
    g, made = training.g, np.empty(size)
    g = copy.deepcopy(g) if training.geometry.drifts else g  # bringing weights up to date would change what is learned
    hand_out(g, Last().start(g.w, training.outputs), training.outputs, made)
    return made


@compiled
def sum_logarithms(w: Any, at: Any, value: Any, start: Any, u: Any, sums: Any) -> None:
    """sums[k] = sum of u_j ln w_j after k steps, by what each step changed; w too small for a number is the least."""
    least, total = 5e-324, 0.0
    for j in range(len(w)):
        if u[j] != 0.0:
            total += u[j] * np.log(max(w[j], least))
    sums[0] = total
    for k in range(1, len(sums)):
        for n in range(start[k], start[k + 1]):
            j = at[n]
            if u[j] != 0.0:
                total += u[j] * (np.log(max(value[n], least)) - np.log(max(w[j], least)))
            w[j] = value[n]
        sums[k] = total


class Recorder:
    """Runs the loop of a training from step to step, and takes the steps down."""

    def __init__(self, training: Any, shape: Shape, callback: Callback | None) -> None:
        self.trace, self.callback = Trace(training, shape), callback
        self._seen_before: int = training.n_seen
        self._formed: np.ndarray = formed(training.g)

    def run(self, training: Any, rows: Any, order: np.ndarray, at: np.ndarray, y: np.ndarray,
            weight: np.ndarray) -> int | None:  # fmt: skip
        """Learn from rows, which are the rows ``at`` of X; returns the place of an example the rule failed on."""
        done, tally = 0, training.tally
        while done < len(order):
            steps, mistakes = tally[UPDATES], tally[MISTAKES]
            count = training.run_loop(rows, order[done:], y[done:], weight[done:])
            step, mistake = bool(tally[UPDATES] > steps), bool(tally[MISTAKES] > mistakes)  # of the last example
            if count is not None and not (step or mistake):
                return done + int(count)
            done = len(order) if count is None else done + count
            seen = training.n_seen - self._seen_before
            if step:
                places = self._places(training, rows, order[done - 1])
                self.trace.add(training, int(at[done - 1]), seen, mistake, places)
            self.trace.see(seen)
            if step and self.callback is not None:
                self.callback(self.trace)
        return None

    def _places(self, training: Any, rows: Any, i: int) -> np.ndarray | None:
        """The weights that a step along row i may have changed; None: all."""
        before, self._formed = self._formed, formed(training.g)
        if training.geometry.drifts or not isinstance(rows, Sparse) or (before != self._formed).any():
            return None
        columns = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        features = np.zeros(len(columns) + 1, np.int64)  # the constant feature first
        np.add(columns, 1, out=features[1:], casting="unsafe")
        if training.outputs == 1:
            return features
        return (features[:, None] * training.outputs + np.arange(training.outputs)).ravel()


def formed(g: Any) -> np.ndarray:
    """What changes when stored weights are formed anew, also those that no step has touched."""
    return g.origin.copy() if isinstance(g, ExponentiatedState) else NEVER
