"""The training driver: the state of one learner, and taking it through examples.

A ``Training`` knows nothing of scikit-learn. It holds everything that further learning depends on, as
arrays and plain numbers, so that it can be saved whole; and it visits examples in the order given, so that
examples in one call or in many leave the same state, bit for bit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from onlearn.engine import loops, rules
from onlearn.engine.csr import check_finite, row_batches
from onlearn.engine.cycles import count_steps, is_zero_sum
from onlearn.engine.geometry import GEOMETRIES
from onlearn.engine.loops import (
    DOUBLINGS,
    DUE,
    HIGHEST_SCORE,
    KEPT,
    LOSS,
    MISTAKES,
    OUTPUTS,
    SEEN,
    UPDATES,
    Audit,
    hand_out,
    learn_output,
    learn_outputs,
)
from onlearn.engine.protocol import layout
from onlearn.engine.stabilizers import STABILIZERS
from onlearn.model_schema import (
    COUNT,
    FINITE,
    NUMBER,
    TEXT,
    TRUTH,
    Arrays,
    ListOf,
    OrMissing,
    Plain,
    Record,
    as_arrays,
    check_array,
    check_facts,
    is_finite,
    one_of,
)

# ----------------------------------------------------------------------------------------------------
# What happened while a learner learned: examples, mistakes and losses, by pass and at doubling counts.


# An entry of the history as files have it; a loss may be infinite.
PASS = Plain(
    lambda value: (
        isinstance(value, dict)
        and {"seen", "loss"} <= value.keys()
        and all(is_finite(one) or (name == "loss" and isinstance(one, float)) for name, one in value.items())
    ),
    "what was seen and lost in a pass",
)
PLACES = 6  # of a tally


class Chronicle:
    """The counts that the loops keep, and the entries made of them."""

    passes: int

    def __init__(self) -> None:
        self.tally: np.ndarray = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self.doubling: np.ndarray = np.zeros(4 * DOUBLINGS)
        self.passes = 0
        self.by_pass: list[dict[str, float]] = []
        self.since: list[float] = [0.0] * len(self.tally)  # the tally when the present pass began
        self.classifies: bool = True

    @property
    def history(self) -> dict[str, list[dict[str, float]]]:
        """What happened, by pass and at doubling counts of examples."""
        kept = self.doubling.reshape(-1, 4)[: int(self.tally[KEPT])]
        return {"passes": self.by_pass, "doubling": [self.record(np.zeros(4), now) for now in kept]}

    def record(self, before: np.ndarray, now: np.ndarray | None = None) -> dict[str, float]:
        """An entry of the history: what happened since a tally was taken, until another (or the present one) was."""
        now = (self.tally if now is None else now)[: SEEN + 1] - before[: SEEN + 1]
        seen = float(now[SEEN])
        entry = {"seen": seen, "loss": float(now[LOSS]) / seen if seen else 0.0}
        return {"mistakes": float(now[MISTAKES]), **entry} if self.classifies else entry

    def begin_pass(self) -> None:
        self.since = self.tally.tolist()

    def end_pass(self) -> dict[str, float]:
        """Count a pass, and take down what happened in it."""
        entry = self.record(np.array(self.since))
        self.by_pass.append(entry)
        self.passes += 1
        self.begin_pass()
        return entry

    def count_round(self, counts: np.ndarray) -> dict[str, float]:
        """Count a pass in which so much happened, as a tally has it, without being met one example at a time here."""
        self.begin_pass()
        self.tally[: SEEN + 1] += counts
        if self.tally[SEEN] >= self.tally[DUE]:
            kept = int(self.tally[KEPT])
            self.doubling[4 * kept : 4 * kept + 4] = self.tally[: SEEN + 1]
            self.tally[KEPT] += 1.0
            self.tally[DUE] = 2.0 ** np.floor(np.log2(self.tally[SEEN]) + 1.0)
        return self.end_pass()

    def reopen_pass(self, since: list[float]) -> dict[str, float]:
        """Take back that the last pass, which began with that tally, has ended: more of it follows."""
        self.passes, self.since = self.passes - 1, since
        return self.by_pass.pop()

    @property
    def n_mistakes(self) -> int:
        return int(self.tally[MISTAKES])

    @property
    def n_updates(self) -> int:
        return int(self.tally[UPDATES])

    @property
    def n_seen(self) -> int:
        return int(self.tally[SEEN])

    def saw_passes_of(self, rows: int) -> bool:
        """Whether so many rows may be all that was learned from: every pass, and what was not one, saw all of them.

        Where examples were chosen one by one, a pass says among how many.
        """
        kept_back = sum(int(entry.get("kept_back", 0)) for entry in self.by_pass)
        others = all(
            entry.get("chosen_of", entry["seen"] + entry.get("kept_back", 0)) == rows for entry in self.by_pass
        )
        return others and (self.n_seen + kept_back - self.n_chosen) % rows == 0

    @property
    def n_chosen(self) -> int:
        """Examples that were chosen one by one, and not seen in a pass over all of them."""
        return sum(int(entry["seen"]) for entry in self.by_pass if "chosen_of" in entry)

    FILED: ClassVar[Record] = Record(
        passes=COUNT, by_pass=ListOf(PASS, "passes, each with what was seen and lost"),
        since=ListOf(FINITE, "numbers", length=PLACES),
    )  # fmt: skip

    def pack_chronicle(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What happened so far, for the model file."""
        return {name: getattr(self, name) for name in Chronicle.FILED.facts}, {
            "tally": self.tally,
            "doubling": self.doubling,
        }

    def take_chronicle(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """What ``pack_chronicle`` gave; the facts were checked."""
        tally, doubling = arrays["tally"], arrays["doubling"]
        check_array("tally", tally, "float64", (PLACES,), low=0)
        check_array("doubling", doubling, "float64", (4 * DOUBLINGS,))
        # The count at which the next entry is due doubles with each, and so there are no more than have a place.
        kept, due = tally[KEPT], tally[DUE]
        if not (kept == int(kept) < DOUBLINGS and 2.0**kept <= due < 2.0**DOUBLINGS):
            raise ValueError("the counters contradict each other")
        for name in Chronicle.FILED.facts:
            setattr(self, name, facts[name])
        self.tally, self.doubling = tally, doubling

    def visits(self, rows: int) -> float:
        """How often any of so many rows was seen at most; one that is chosen may have been chosen every time."""
        kept_back = sum(int(entry.get("kept_back", 0)) for entry in self.by_pass)
        return (self.n_seen + kept_back - self.n_chosen) / rows + self.n_chosen


SEGMENT = 1 << 18  # examples between two looks at the clock, the keyboard and the progress bar
ROOM = 1 << 10  # examples to make room for at a time, where every change is kept
AUDITED = 1024  # scores kept for calibration
STRAIGHT_ON = np.zeros(2, dtype=np.int64)  # from the first example on, without a pause
LARGEST_CONSTANT = 1e100  # times the largest weight, and times the sum of very many, it is finite


class Training(Chronicle):
    """One learner's state. ``output`` is None for one output, or a kind of multiclass."""

    rule: Any
    geometry: Any
    stabilizer: Any
    output: str | None
    features: int
    outputs: int
    bias: float

    FEWEST = 1  # features

    def __init__(self, rule: Any, geometry: Any, stabilizer: Any, output: str | None, features: int, outputs: int,
                 bias: float) -> None:  # fmt: skip
        if geometry.drifts and stabilizer.every_hypothesis:
            raise ValueError(
                f"stabilizer 'voted' cannot be used with {geometry!r}: under l1 or l2 every example makes a new "
                "hypothesis; use 'averaged', or set l1 and l2 to 0"
            )
        if geometry.lazy and stabilizer.fades:
            raise ValueError(
                f"stabilizer {stabilizer!r} cannot be used with {geometry!r}: its penalty is taken off when a weight "
                "is next looked at, and a window counts time otherwise; use 'averaged', 'last', or no such penalty"
            )
        if not 0.0 <= bias <= LARGEST_CONSTANT:
            raise ValueError(
                f"the constant feature of the intercept would be {bias:g}, but must be at most {LARGEST_CONSTANT:g}: "
                "give a smaller intercept_scaling, or scale the features"
            )
        self.rule, self.geometry, self.stabilizer, self.output = rule, geometry, stabilizer, output
        self.features, self.outputs, self.bias = features, outputs, bias
        self.capacity: int = features
        self.g: Any = self._start(features + 1, outputs)
        self.st: Any = stabilizer.start(self.g.w, outputs)
        size = 128 if stabilizer.every_hypothesis else AUDITED
        self.audit: Audit = Audit(np.zeros(size * outputs), np.zeros(size), np.zeros(outputs), np.array([1, 1, 0]))
        Chronicle.__init__(self)
        self.checked: bool = True  # whether rows were searched for NaN and infinity; else they are when one shows
        self.own_start: bool = False  # it began at weights of the user's choice, which no theorem assumes
        self.even: bool = True  # all examples so far had the same weight
        self.deadline: float | None = None  # by the monotonic clock
        self.stopped: str | None = None  # why learning stopped early, if it did
        self.reserved: int = 0  # scores of rows kept back that were put into the audit
        self.recorder: Any = None  # takes down every step, while a trace is made
        self._complaint = ""  # what the rule did when the loop stopped last
        self._handed: tuple[np.ndarray, float] | None = None
        self.calibrated: tuple[Any, int, Any, Any] | None = (
            None  # what was fitted to the scores, for as long as it holds
        )

    def _start(self, features: int, outputs: int) -> Any:
        """The state of the geometry before the first example."""
        g = self.geometry.start(features, outputs)
        if self.bias == 0.0:
            self.geometry.without_constant(g)
        return g

    # ------------------------------------------------------------------ learning

    @property
    def may_fail(self) -> bool:
        """Whether learning may fail halfway, at something the user wrote."""
        return rules.is_custom(self.rule)

    def randomize(self, rng: np.random.Generator) -> None:
        """Start from small random weights instead of zero."""
        if not self.geometry.signed:
            raise ValueError(
                f"init='random' needs an additive geometry, not {self.geometry!r}: its weights must start alike"
            )
        self.g.w[:] = rng.normal(scale=1 / np.sqrt(self.features + 1), size=self.g.w.size)
        self.st = self.stabilizer.start(self.g.w, self.outputs)

    def begin_at(self, w: np.ndarray) -> None:
        """Start from given weights, (1 + features) x outputs, instead of the usual ones."""
        self.geometry.begin_at(self.g, np.ascontiguousarray(w, dtype=np.float64).ravel())
        self.st = self.stabilizer.start(self.g.w, self.outputs)
        self.own_start = True

    def resume_at(self, w: np.ndarray) -> None:
        """Have weights, (1 + features) x outputs, in place of those that were learned, and learn on from there.

        What is handed out is exactly these. Examples, mistakes and passes stay counted, and rates are what they have
        come to; means and runs of hypotheses begin anew, and so does the audit, whose scores were by others.
        """
        g, outputs = self._start(self.capacity + 1, self.outputs), self.outputs
        whole = np.zeros(g.w.size)
        whole[: (self.features + 1) * outputs] = np.asarray(w, dtype=np.float64).ravel()
        hand_out(self.g, self.st, outputs, np.empty(g.w.size))  # all weights are up to date
        self.geometry.begin_at(g, whole)
        self.geometry.keep_rates(self.g, g)
        size = AUDITED
        audit = Audit(np.zeros(size * outputs), np.zeros(size), np.zeros(outputs), np.array([1, 1, 0]))
        self.g, self.st, self.audit = g, self.stabilizer.start(g.w, outputs), audit
        self.own_start, self.reserved, self._handed, self.calibrated = True, 0, None, None

    @property
    def theta(self) -> float:
        return float(self.geometry.theta(self.g))

    returning = "weights"  # what ``course`` is made of

    def course(self, X: Any) -> bytes:
        """All that decides how learning goes on over these rows in a given order, by a rule of scores alone."""
        return np.trim_zeros(self.g.w + 0.0, "b").tobytes()  # without room made ahead; + 0.0: -0 is 0

    def example_weights(self) -> np.ndarray | None:
        """The weights of examples, if the hypothesis is made of such."""
        return None

    def proves_inseparable(self, X: Any, y: np.ndarray, weight: np.ndarray, passes: int,
                           earlier: np.ndarray | None) -> bool:  # fmt: skip
        """Whether the steps of the last passes, which led back to where they began, add up to zero exactly.

        ``earlier`` is what ``example_weights`` were when they began.
        """
        w = self.g.w[: (self.features + 1) * self.outputs].reshape(-1, self.outputs)
        counts = count_steps(w, X, y, weight, self.bias, self.geometry.rate, passes, self.output)
        return counts is not None and is_zero_sum(counts * weight[:, None], X, self.bias)

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, *, audit: bool = True,
              progress: Callable[[int], None] | None = None, gathered: bool = False) -> None:  # fmt: skip
        """Learn from the rows of X in the given order.

        y holds -1 and +1, numbers, or class indices; y and weight go with the rows of X, or if they are
        ``gathered`` with those of the order. Should a user's rule fail, the state is that of the examples before;
        estimators put back what they had.
        """
        self._handed = None
        self._own()
        self.even = self.even and bool(((weight == 1.0) | (weight == 0.0)).all())
        due = int(self.audit.due[0])
        if not audit:
            self.audit.due[0] = 0
        try:
            self._visit(X, y, weight, order, progress, gathered)
        finally:
            if not audit:
                self.audit.due[0] = due

    def _own(self) -> None:
        """Copy what cannot be written to: arrays of a learner that was mapped from a file, or sent to another process.

        Each is asked, for joblib maps the large ones only.
        """
        for part in PARTS:
            state = getattr(self, part)
            owned = _writable(state)
            if owned is not state:
                setattr(self, part, owned)
        for name in ("tally", "doubling"):
            if not getattr(self, name).flags.writeable:
                setattr(self, name, np.array(getattr(self, name)))

    def _visit(
        self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, progress: Any, gathered: bool
    ) -> None:
        """Run the compiled loop over segments of the order."""
        done = 0
        longest = ROOM if self.stabilizer.every_hypothesis else SEGMENT
        alike = bool((weight == weight[:1]).all())  # then any of them will do, and they need not be gathered
        for rows, sub, at in row_batches(X, order, self.bias, longest):
            self.stopped = self._why_stop()
            if self.stopped:
                break
            mine = slice(done, done + len(sub)) if gathered else at
            done += len(sub)
            self._batch(X, rows, sub, at, y[mine], weight[: len(sub)] if alike else weight[mine])
            if progress is not None:
                progress(len(sub))

    def _batch(self, X: Any, rows: Any, order: np.ndarray, at: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from some rows, which are the rows ``at`` of X."""
        failed = self._segment(rows, order, at, y, weight)
        if failed is not None and not self.checked:
            check_finite(X)
            self.checked = True  # only large
            at = at[failed:]
            failed = self._segment(rows, order[failed:], at, y[failed:], weight[failed:])
        if failed is not None:
            self._refuse_step(at[failed])

    def _refuse_step(self, row: int) -> None:
        """Say what the rule did with an example at which the loop stopped."""
        raise ValueError(
            f"the rule {self.rule.name!r} {self._complaint} for the example in row {row}; nothing was learned"
        )

    def _why_stop(self) -> str | None:
        """Why learning should not go on, if it should not."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        return "the time limit was reached" if late else None

    def _segment(self, rows: Any, order: np.ndarray, at: np.ndarray, y: np.ndarray, weight: np.ndarray) -> int | None:
        """Learn from some rows, which are the rows ``at`` of X; returns the place of an example the rule failed on."""
        if self.stabilizer.every_hypothesis:
            changes = _entries(rows, order) * self.outputs
            self.st = self.stabilizer.make_room(self.st, changes, len(order))
        if self.recorder is not None:
            return self.recorder.run(self, rows, order, at, y, weight)
        return self._run_loop(rows, order, y, weight)

    def _run_loop(self, rows: Any, order: np.ndarray, y: np.ndarray, weight: np.ndarray) -> int | None:
        """Run the compiled loop; returns the place at which it stopped before the end."""
        params = rules.values(self.rule)
        loop, arguments = self._call(rows, order, y, weight, params, self.checked)
        done = loop(*arguments)
        self._complaint = rules.complaint(self.rule, params)
        return None if done == len(order) else int(done)

    def pausing_loop(
        self, rows: Any, order: np.ndarray, y: np.ndarray, weight: np.ndarray, pause: np.ndarray
    ) -> Callable[[], int]:
        """A call that learns from ``pause[0]`` up to the next step or mistake; returns the place that it came to."""
        params = rules.values(self.rule)
        loop, arguments = self._call(rows, order, y, weight, params, self.checked, pause)
        if not rules.is_custom(self.rule):
            self._complaint = rules.complaint(self.rule, params)
            bound: Callable[[], int] = loop.bind(*arguments)
            return bound

        def call() -> int:
            done = int(loop(*arguments))
            self._complaint = rules.complaint(self.rule, params)
            return done

        return call

    def _call(self, rows: Any, order: np.ndarray, y: np.ndarray, weight: np.ndarray, params: np.ndarray, checked: bool,
              pause: np.ndarray = STRAIGHT_ON) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
        """The loop for this learner's kind of output, and its arguments."""
        measured = self.geometry.measures or rules.uses_sqnorm(self.rule)
        step, loss = rules.compile_step(self.rule), rules.compile_loss(self.rule, self.classifies)
        state = self.theta, self.g, self.st, self.audit, self.tally, self.doubling
        shared = step, loss, params, measured, *state, checked, pause
        if self.output is None:
            return learn_output, (rows, order, y, weight, *shared)
        return learn_outputs, (rows, order, y, weight, self._room(), *shared)

    def bind(self, rows: Any, order: np.ndarray, y: np.ndarray, weight: np.ndarray) -> Callable[[], int]:
        """A call that learns from whatever these few rows hold at the time, in the present state's arrays.

        It returns how many rows were learned from; it stops before a row whose score is not finite. For built-in rules,
        and stabilizers that need no room.
        """
        self._own()
        loop, arguments = self._call(rows, order, y, weight, rules.values(self.rule), checked=False)
        return loop.bind(*arguments)

    def _room(self) -> Any:
        """Room for the scores and steps of one example, of the type that says what is learned from them."""
        return loops.start(str(self.output), self.outputs)

    # ------------------------------------------------------------------ growing

    def grow(self, features: int, outputs: int) -> None:
        """Make room for more features and outputs; what is new starts as if it had been there, unused."""
        if features <= self.capacity and outputs == self.outputs:
            self.features, self._handed = features, None
            return
        # room ahead, so that growing is seldom; but not on a simplex, where it would have its share
        ahead = 1.0 if self.geometry.normalised else 1.5
        capacity = max(features, int(ahead * self.capacity)) if features > self.capacity else self.capacity
        old, new_shape = (self.capacity + 1, self.outputs), (capacity + 1, outputs)
        fresh = self._start(*new_shape)
        g = _writable(_enlarged(self.g, fresh, old, new_shape))
        st = _writable(_enlarged(self.st, self.stabilizer.start(fresh.w, outputs), old, new_shape))
        self.geometry.mend(g)
        new = np.ones(new_shape, dtype=bool)
        new[: old[0], : old[1]] = False
        st, audit = self.stabilizer.mend(st, g, new), self.audit
        if outputs != self.outputs:
            scores = np.zeros((audit.gold.size, outputs))
            scores[:, : self.outputs] = audit.scores.reshape(-1, self.outputs)
            audit = audit._replace(scores=scores.reshape(-1), now=np.zeros(outputs))
        # All at once, so that Ctrl-C comes before or after it.
        self._handed = self.calibrated = None
        self.g, self.st, self.audit, self.features, self.outputs, self.capacity = (
            g,
            st,
            audit,
            features,
            outputs,
            capacity,
        )

    def select(self, kept: np.ndarray) -> None:
        """Keep some features only, in the given order."""
        if self.stabilizer.every_hypothesis:
            raise ValueError("a voted learner cannot let go of features: its hypotheses are kept as changes of weights")
        self.g, self.st = self.copied_weights(np.asarray(kept))
        self._own()
        self.geometry.mend(self.g)
        self.features = self.capacity = len(kept)
        self._handed = self.calibrated = None

    def copied_weights(self, columns: np.ndarray) -> tuple[Any, Any]:
        """The states of geometry and stabilizer for the constant feature and some columns alone; copies."""
        rows = np.concatenate([[0], columns.astype(np.int64) + 1])
        made = []
        for state in (self.g, self.st):
            chosen = {
                name: np.ascontiguousarray(getattr(state, name).reshape(-1, self.outputs)[rows]).reshape(-1)
                for name, holds in layout(type(state)).items()
                if holds == "weights"
            }
            made.append(state._replace(**chosen))
        return made[0], made[1]

    # ------------------------------------------------------------------ the hypothesis

    def weights(self) -> np.ndarray:
        """The hypothesis handed out, (1 + features) x outputs; row 0 belongs to the constant feature."""
        return self._hand_out()[0]

    def size(self) -> float:
        """|w| of the hypothesis handed out."""
        return float(np.sqrt(self._hand_out()[1]))

    def largest_weight(self) -> float:
        """The largest absolute stored weight."""
        return float(max(self.g.w.max(initial=0.0), -self.g.w.min(initial=0.0)))

    def _hand_out(self) -> tuple[np.ndarray, float]:
        """The hypothesis handed out, and its |w|^2; made once for as long as nothing is learned."""
        if self._handed is None:
            handed = np.empty((self.features + 1) * self.outputs)
            # Lazy ones on copies: bringing weights up to date now would change the rounding of what is learned later.
            state = copy.deepcopy((self.g, self.st)) if self.geometry.drifts else (self.g, self.st)
            squares = hand_out(*state, self.outputs, handed)
            self._handed = handed.reshape(-1, self.outputs), squares
        return self._handed

    def snapshot(self) -> Training:
        """A copy that predicts as this does now, whatever this learns later; itself where there is none."""
        if self.stabilizer.every_hypothesis:
            return self
        self._hand_out()
        return copy.copy(self)

    def copied(self) -> Training:
        """A training in the same state, which learns for itself."""
        made = copy.copy(self)
        made.g, made.st, made.audit = copy.deepcopy((self.g, self.st, self.audit))
        made.tally, made.doubling = self.tally.copy(), self.doubling.copy()
        made.by_pass, made.since = [dict(entry) for entry in self.by_pass], list(self.since)
        made.recorder = made._handed = made.calibrated = None
        return made

    def settled(self) -> tuple[Any, Any]:
        """The states of geometry and stabilizer with all weights up to date; copies where they are lazy."""
        if not self.geometry.lazy:
            return self.g, self.st
        g, st = copy.deepcopy((self.g, self.st))
        hand_out(g, st, self.outputs, np.empty(g.w.size))
        return g, st

    def separator(self) -> tuple[np.ndarray, float]:
        """What certificates speak of: weights and intercept (threshold apart) for two classes.

        For voted learners, which hand out no single one, it is the last hypothesis.
        """
        handed = self.weights()
        line = handed[:, 0] if self.outputs == 1 else handed[:, 1] - handed[:, 0]
        return line[1:], float(line[0] * self.bias)

    def audited(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores of examples before they were learned from (the later ones), and their labels."""
        taken, size = int(self.audit.due[2]), self.audit.gold.size
        if self.audits_last:
            taken = self.reserved  # until there are as many others, of which each would change the curve a little
            return self.audit.scores.reshape(size, self.outputs)[:taken], self.audit.gold[:taken]
        # the later ones; more so for several classes, each of which says something about the scale of the scores
        first = max(taken - size, taken // 4) if self.outputs == 1 else max(taken - size // 4, taken // 2)
        places = np.arange(first, taken) % size
        return self.audit.scores.reshape(size, self.outputs)[places], self.audit.gold[places]

    @property
    def audits_last(self) -> bool:
        """Whether most scores of the audit are by the last hypothesis, or one that came soon before."""
        return bool(self.reserved) and int(self.audit.due[2]) <= 2 * self.reserved

    def take_reserve(self, scores: np.ndarray, gold: np.ndarray) -> None:
        """Audit the scores by the last hypothesis of rows kept back, in place of those from the first pass."""
        count, due = len(gold), self.audit.due.copy()
        size = max(AUDITED, 2 * count)  # so that those of rows that follow do not replace them at once
        ring, labels = np.zeros((size, self.outputs)), np.zeros(size)
        ring[:count], labels[:count] = np.clip(scores.astype(float), -HIGHEST_SCORE, HIGHEST_SCORE), gold
        due[2] = self.reserved = count
        self.audit = Audit(ring.reshape(-1), labels, np.zeros(self.outputs), due)
        self.calibrated = None

    def rescale_audit(self, factor: float) -> None:
        """The hypothesis grew by a factor on examples that are not audited: so would its scores have.

        But not those of voted learners, which are shares of the votes whatever the size of the hypotheses.
        """
        if np.isfinite(factor) and not self.stabilizer.every_hypothesis:
            with np.errstate(over="ignore"):
                self.audit.scores[:] = np.clip(self.audit.scores * factor, -HIGHEST_SCORE, HIGHEST_SCORE)
            self.calibrated = None

    # ------------------------------------------------------------------ saving

    FACTS: tuple[str, ...] = ("output", "features", "outputs", "bias", "capacity", "classifies", "even")
    FILED: ClassVar[Record] = Record(
        {
            **Chronicle.FILED.facts,
            **dict.fromkeys(("features", "outputs", "capacity"), COUNT),
            **dict.fromkeys(("classifies", "even"), TRUTH),
            **dict.fromkeys(("rule", "geometry", "stabilizer"), TEXT),
            "output": one_of(None, *OUTPUTS),
            "bias": NUMBER,
            "own_start": OrMissing(TRUTH),
            "reserved": OrMissing(COUNT),
        }
    )

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything, as plain facts and arrays; without the room made ahead."""
        facts, counts = self.pack_chronicle()
        facts.update({name: getattr(self, name) for name in self.FACTS})
        facts.update({name: repr(getattr(self, name)) for name in ("rule", "geometry", "stabilizer")})
        facts.update({"own_start": True} if self.own_start else {})
        facts.update({"reserved": self.reserved} if self.reserved else {})
        parts = {part: getattr(self, part)._asdict() for part in PARTS}
        if self.capacity > self.features and not self.stabilizer.every_hypothesis:
            facts["capacity"], size = self.features, (self.features + 1) * self.outputs
            for part, state in (("g", self.g), ("st", self.st)):
                weights = [name for name, holds in layout(type(state)).items() if holds == "weights"]
                parts[part].update({name: parts[part][name][:size] for name in weights})
        arrays = {f"{part}.{name}": array for part, state in parts.items() for name, array in state.items()}
        return facts, {**arrays, **counts}

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> Training:
        """What ``pack`` took apart; refuses what could not have come from it."""
        check_facts(facts, cls.FILED, "training")
        arrays = as_arrays(arrays)
        rule = rules.filed(facts["rule"])
        geometry, stabilizer = GEOMETRIES.get(facts["geometry"]), STABILIZERS.get(facts["stabilizer"])
        capacity, outputs = facts["capacity"], facts["outputs"]
        if (
            not cls.FEWEST <= facts["features"] <= capacity
            or outputs < 1
            or arrays["g.w"].size != (capacity + 1) * outputs
        ):
            raise ValueError("the weights do not have the shape that the header says")
        self = cls(rule, geometry, stabilizer, facts["output"], capacity, outputs, float(facts["bias"]))
        for part in PARTS:
            fresh = getattr(self, part)
            earlier = {name: getattr(fresh, name) for name in fresh._fields if name in ADDED}
            found = {name: arrays.get(f"{part}.{name}", earlier.get(name)) for name in fresh._fields}
            for name, array in found.items():
                if array is None:
                    raise ValueError(f"the array {arrays.prefix}{part}.{name} is missing")
                like = getattr(fresh, name)
                free = name in ("scores", "gold") if part == "audit" else layout(type(fresh))[name] == "ledger"
                if array.dtype != like.dtype or array.ndim != 1 or (array.size != like.size and not free):
                    raise ValueError(f"{part}.{name} does not have the shape or type that this learner has")
            setattr(self, part, type(fresh)(**found))
        for choice, state in ((geometry, self.g), (stabilizer, self.st)):
            if not choice.sound(state):
                raise ValueError(f"the state of {choice!r} contradicts itself")
        for name in cls.FACTS:
            setattr(self, name, facts[name])
        self.own_start = bool(facts.get("own_start"))
        self.reserved, size = facts.get("reserved") or 0, self.audit.gold.size
        usual = AUDITED if not stabilizer.every_hypothesis else 128
        if 2 * self.reserved > size or (size != usual and not self.reserved):
            raise ValueError("audit.gold does not have the shape or type that this learner has")
        if self.audit.scores.size != size * outputs:
            raise ValueError("audit.scores does not have the shape or type that this learner has")
        if self.classifies:
            lowest, highest = (-1, 1) if self.output is None else (0, outputs - 1)
            check_array("audit.gold", self.audit.gold, "float64", self.audit.gold.shape, lowest, highest, whole=True)
        due = self.audit.due
        check_array("audit.due", due, "int64", due.shape, -MOST_AUDITED, MOST_AUDITED)
        if due[1] < 1 or due[2] < 0:
            raise ValueError("the audit has no next example, or took less than none")
        self.take_chronicle(facts, arrays)
        if self.tally[DUE] <= self.tally[SEEN]:
            raise ValueError("the counters contradict each other")
        return self


PARTS = ("g", "st", "audit")
MOST_AUDITED = 1 << 48  # examples until the next one, and taken so far: more than there will ever be
# Fields of l1 that files of earlier versions lack: there the penalties so far count as none.
ADDED = ("held", "most")


def _entries(rows: Any, order: np.ndarray) -> int:
    """How many weights an output has that these rows touch, counted with repetition."""
    if hasattr(rows, "indptr"):
        return int((rows.indptr[order + 1].astype(np.int64) - rows.indptr[order]).sum()) + len(order)
    return (rows.width + 1) * len(order)


def _writable(state: Any) -> Any:
    """A state with copies of those arrays that cannot be written to."""
    fixed = {name: np.array(a) for name, a in state._asdict().items() if not a.flags.writeable}
    return state._replace(**fixed) if fixed else state


def _enlarged(old: Any, fresh: Any, shape: tuple[int, int], new_shape: tuple[int, int]) -> Any:
    """A fresh state of the new size that holds what the old one knows."""
    fields = {}
    for name, holds in layout(type(old)).items():
        before, after = getattr(old, name), getattr(fresh, name)
        if holds == "weights":
            after.reshape(new_shape)[: shape[0], : shape[1]] = before.reshape(shape)
        elif holds == "outputs":
            after[: shape[1]] = before
        else:
            after = before
        fields[name] = after
    return type(old)(**fields)
