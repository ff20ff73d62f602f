"""The trace of a learner: which examples it learned from, and its hypothesis after each of them.

The loop that learns pauses after each step, and what the step set anew is taken down. It is the same compiled loop, so
the weights are those of a run without a trace to the last bit; and a trace takes the space of the examples that were
learned from. Under l1 or l2 a step is all weights that changed since the step before, which may be all of them.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.compiler import compiled
from onlearn.compiler.inlining import Loop
from onlearn.engine.geometry.exponentiated import ExponentiatedState
from onlearn.engine.loops import MISTAKES, SEEN, UPDATES, hand_out
from onlearn.engine.protocol import scale
from onlearn.engine.replay import Changes, Hypotheses, Replay, Shape
from onlearn.engine.rows import ONE, Sparse, column, span
from onlearn.engine.stabilizers import Last

Callback = Callable[["Trace"], Any]
WAITING = 1 << 12  # values to add to an array at a time


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
    seen : int
        How many examples ``fit`` saw in all.
    """

    def __init__(self, training: Any, shape: Shape) -> None:
        """An empty trace, of what the training learns from now on."""
        base, norms = present(training)
        self._shape, self._geometry, self._outputs = shape, training.geometry, training.outputs
        self._base, self._now = base.copy(), base.copy()
        self._count, self.seen = 0, 0  # steps, examples
        self._rows, self._passes, self._steps, self._start = (Column(np.int64) for _ in range(4))
        self._mistakes = Column(np.bool_)
        self._norms = Column(np.float64, parts=True)
        self._changed = np.zeros(1, np.int64)  # how many changes of weights there are, of which
        self._at, self._value = np.empty(16, np.int64), np.empty(16)
        self._start.add(0)  # of the first hypothesis, which has no changes
        self._start.add(0)
        self._norms.add(norms)
        self._latest: Replay | None = None

    @property
    def rows(self) -> np.ndarray:
        return _to_read(self._rows.array())

    @property
    def passes(self) -> np.ndarray:
        return _to_read(self._passes.array())

    @property
    def steps(self) -> np.ndarray:
        return _to_read(self._steps.array())

    @property
    def mistakes(self) -> np.ndarray:
        return _to_read(self._mistakes.array())

    @property
    def votes(self) -> np.ndarray:
        return np.diff(np.concatenate([[1], self.steps, [self.seen + 1]]))

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
            before, count = self._latest, int(self._changed[0])
            self._latest = Replay(self._base, self._at[:count], self._value[:count], self._start.array(), norms)
            if before is not None:
                self._latest.latest = before.latest
        return self._latest

    def _checked(self, k: int) -> int:
        k = operator.index(k)
        if not 0 <= k <= len(self):
            raise IndexError(f"there are hypotheses after 0 to {len(self)} steps, not after {k}")
        return k

    # ------------------------------------------------------------------ taking down

    def reserve(self, changes: int) -> bool:
        """Make room for so many changes of weights; whether that took other arrays."""
        need = int(self._changed[0]) + changes
        if need <= len(self._at):
            return False
        more = max(need, 2 * len(self._at)) - len(self._at)
        self._at = np.concatenate([self._at, np.empty(more, np.int64)])
        self._value = np.concatenate([self._value, np.empty(more)])
        return True

    def bind(self, w: np.ndarray, rows: Any, order: np.ndarray, pause: np.ndarray) -> Callable[[], Any]:
        """A call that takes down which of the weights w the step before ``pause`` changed, where there is room."""
        outputs = np.uint64(self._outputs)
        arguments = rows, order, pause, w, self._now, outputs, self._at, self._value, self._changed
        return take_down.bind(*arguments)

    def compare(self, values: np.ndarray) -> None:
        """Take down all weights that are others than before."""
        places = np.flatnonzero(values != self._now)
        self.reserve(len(places))
        first = int(self._changed[0])
        end = first + len(places)
        self._at[first:end] = places
        self._now[places] = self._value[first:end] = values[places]
        self._changed[0] = end

    def add(self, row: int, t: int, mistake: bool, passes: int, norms: np.ndarray) -> None:
        """A step was made, on a row of X, as example t of a pass; which weights it changed was taken down."""
        self._count += 1
        self._start.add(int(self._changed[0]))
        self._norms.add(norms)
        self._passes.add(passes)
        self._steps.add(t)
        self._mistakes.add(mistake)
        self._rows.add(row)

    def see(self, count: int) -> None:
        """So many examples were seen."""
        self.seen = count


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


def _to_read(array: np.ndarray) -> np.ndarray:
    """A view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view


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


@Loop
def take_down(
    rows: Any, order: Any, pause: Any, w: Any, now: Any, outputs: Any, at: Any, value: Any, changed: Any
) -> None:
    """Append which weights of the features of a row are others than ``now``, and make them those of now."""
    start, stop = span(rows, order[pause[0] - 1])
    m = changed[0]
    for c in range(outputs):
        if w[c] != now[c]:
            at[m], value[m], now[c] = c, w[c], w[c]
            m += 1
    for p in range(start, stop):
        first = (column(rows, p, start) + ONE) * outputs
        for j in range(first, first + outputs):
            if w[j] != now[j]:
                at[m], value[m], now[j] = j, w[j], w[j]
                m += 1
    changed[0] = m


class Recorder:
    """Runs the loop of a training from step to step, and takes the steps down."""

    def __init__(self, training: Any, shape: Shape, callback: Callback | None) -> None:
        self.trace, self.callback = Trace(training, shape), callback
        self._seen_before: int = training.n_seen

    def run(self, training: Any, rows: Any, order: np.ndarray, at: np.ndarray, y: np.ndarray,
            weight: np.ndarray) -> int | None:  # fmt: skip
        """Learn from rows, which are the rows ``at`` of X; returns the place of an example the rule failed on."""
        trace, tally, pause = self.trace, training.tally, np.array([0, 1])
        loop = training.pausing_loop(rows, order, y, weight, pause)
        take, longest = trace.bind(training.g.w, rows, order, pause), longest_row(rows, order) * training.outputs
        steps, mistakes, units = tally[UPDATES], tally[MISTAKES], formed(training.g)
        while pause[0] < len(order):
            done = pause[0] = loop()
            step, mistake = tally[UPDATES] > steps, tally[MISTAKES] > mistakes  # of the last example
            if done < len(order) and not (step or mistake):
                return int(done)
            steps, mistakes = tally[UPDATES], tally[MISTAKES]
            trace.see(int(tally[SEEN]) - self._seen_before)
            if not step:
                continue
            before, units = units, formed(training.g)
            w, norms = present(training)
            if w is not training.g.w or units != before:
                trace.compare(w)
            else:
                if trace.reserve(longest):
                    take = trace.bind(w, rows, order, pause)
                take()
            trace.add(at[done - 1], trace.seen, mistake and training.classifies, training.passes, norms)
            if self.callback is not None:
                self.callback(trace)
        return None


def longest_row(rows: Any, order: np.ndarray) -> int:
    """The most features that a row has, the constant one included."""
    if isinstance(rows, Sparse):
        return int((rows.indptr[order + 1] - rows.indptr[order]).max(initial=0)) + 1
    return int(rows.width) + 1


def formed(g: Any) -> Any:
    """What changes when stored weights are formed anew, also those that no step has touched."""
    return g.origin.tobytes() if isinstance(g, ExponentiatedState) else None
