"""Training in the dual: the loops of the linear learners over rows of kernel values, a block of examples at a time.

The examples of a block are learned from in their order, so the hypothesis is that of the serial algorithm. A step needs
the example's column of kernel values with the rest of the block. The columns are computed together, for all examples on
which the present hypothesis would make a step. If another example turns out to need a step, the loop stops before it,
its column is computed, and the loop continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

import numpy as np

from onlearn.dual.cancellation import cancel
from onlearn.dual.examples import Examples, pick
from onlearn.dual.gram import GramScores, fits
from onlearn.dual.rows import KernelRows, survey_many, survey_one
from onlearn.dual.scores import CurrentScores
from onlearn.dual.supports import SupportSet
from onlearn.engine import loops, rules
from onlearn.engine.geometry.additive import SMALLEST, DecayedState, restart
from onlearn.engine.loops import UPDATES
from onlearn.engine.passes import first_ctrl_c
from onlearn.engine.training import Training
from onlearn.model_schema import COUNT, FINITE, NESTED, Arrays, OrMissing, Record, check_facts, under

SMALL, LARGE = 64, 8192  # examples in a block
STEPS = 40  # desired number of steps in a block: columns of kernel values are computed for little else
REGRESSION_STEPS = 512  # there most examples need a step, so that their columns are not computed in vain
VALUES = 1 << 22  # kernel values of a block that are computed before it is learned from, about
SAMPLE = 256  # support examples on which the size of a hypothesis is measured


@contextmanager
def stop_on_ctrl_c(training: DualTraining) -> Iterator[None]:
    """Let a first Ctrl-C end the training after the current block, with all it has learned; a second one interrupts."""
    with first_ctrl_c() as pressed:
        training.interrupted = pressed
        try:
            yield
        finally:
            training.interrupted = never


def never() -> bool:
    """The answer of ``interrupted`` where Ctrl-C is not watched."""
    return False


class TrainingSet(Protocol):
    """A data set prepared for passes, with what a learner keeps of it between blocks."""

    data: Examples
    passes: int  # that have begun

    def find_supports(self) -> None:
        """Find the rows that are support examples already."""

    def begin_pass(self) -> None:
        """Prepare for another pass."""

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All but the data and what follows from them, as plain facts and arrays."""

    def restore(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Restore what ``pack`` described."""


class DualTraining(Training):
    """The state of a learner whose features are its support examples."""

    FEWEST = 0
    FACTS = (*Training.FACTS, "step_rate")
    FILED: ClassVar[Record] = Record({**Training.FILED.facts, "step_rate": FINITE})

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.supports: SupportSet
        self.step_rate = 1.0  # recent number of steps per example
        self.interrupted: Callable[[], bool] = never
        self.after_block: Callable[[int], None] | None = None  # called with the number of examples of each block
        self.explicit_passes = False  # whether the caller begins each pass, which may take several calls of ``learn``
        self.stages: list[np.ndarray] | None = None  # the hypothesis after each pass, if stages are kept

    returning = "scores of all rows"

    def course(self, X: Any) -> bytes:
        """The scores of all rows: weights of examples only grow, while the hypothesis that they make may come back."""
        if not X.passes and len(self.supports):
            return b"before the first pass"  # the sums are not there yet
        X.settle()
        return (X.sums + 0.0).tobytes() + (self.g.w[: self.outputs] + 0.0).tobytes()

    def example_weights(self) -> np.ndarray:
        return self.g.w[: (self.features + 1) * self.outputs].reshape(-1, self.outputs).copy()

    def proves_inseparable(self, X: Any, y: np.ndarray, weight: np.ndarray, passes: int,
                           earlier: np.ndarray | None) -> bool:  # fmt: skip
        """Whether the steps of the last passes add up to zero exactly: how far the weights of examples moved.

        The features of a kernel are not known, but those of equal examples are equal. So the steps add up to zero if
        they do over all examples that are equal, or if the features are the numbers of the rows or their polynomials.
        """
        if earlier is None:
            return False
        steps = self.example_weights()
        steps[: len(earlier)] -= earlier
        steps = steps[1:]
        if (weight == weight[:1]).all():
            steps = np.rint(steps / (self.geometry.rate * weight[0]))  # as many as there were, without rounding
        return cancel(steps, self.supports, self.bias)

    def attach(self, supports: SupportSet) -> DualTraining:
        """Set the support examples, as many as there are features."""
        if len(supports) != self.features:
            raise ValueError(f"{len(supports)} support examples do not fit {self.features} weights")
        self.supports = supports
        return self

    @property
    def may_fail(self) -> bool:
        return super().may_fail or not self.supports.kernel.always_psd  # which may be a function of the user

    def snapshot(self) -> DualTraining:
        """Itself: support examples are many, so that learning waits for predictions."""
        return self

    def end_pass(self) -> dict[str, float]:
        if self.stages is not None:
            self.stages.append(self.weights().copy())
        return super().end_pass()

    def prepare(self, data: Examples, cache_bytes: int, stored: dict[str, Any] | None = None) -> TrainingSet:
        """Prepare a data set for one pass or several; in the form of the ``stored`` facts, if given."""
        if self.supports.kernel.data == "matrix":
            self.supports = self.supports.located_in(data.points)
        weights = self.g.w[: (self.features + 1) * self.outputs].reshape(-1, self.outputs)[1:]
        room = fits(data.shape[0], data.dtype.itemsize, cache_bytes)
        if stored is not None and stored.get("form") == "gram" and not room:
            raise ValueError(
                "the run began with a Gram matrix, and goes on with one: give it as large a cache_mb again"
            )
        if room and (stored is None or stored.get("form") == "gram"):
            return GramScores(data, self.supports, weights)
        return CurrentScores(data, self.supports, weights, cache_bytes)

    def resume(self, data: Examples, cache_bytes: int, make_points: Callable[[Any], Any], packed: Any) -> TrainingSet:
        """Prepare a data set in the middle of passes, from what ``pack`` described of it."""
        facts, arrays = packed
        self._rebuild_supports(data, arrays["place"], make_points)
        dataset = self.prepare(data, cache_bytes, facts)
        dataset.restore(facts, arrays)
        return dataset

    def _rebuild_supports(self, data: Examples, support_of: np.ndarray, make_points: Callable[[Any], Any]) -> None:
        """Prepare the support examples for the kernel as before: first those of other data, then rows of these data.

        Prepared otherwise, their kernel values might be rounded differently.
        """
        rows = np.flatnonzero(support_of >= 0)
        rows = rows[np.argsort(support_of[rows])]
        first = len(self.supports) - len(rows)
        if first < 0 or not np.array_equal(support_of[rows], np.arange(first, len(self.supports))):
            raise ValueError("the support examples are not those of the rows")
        older = pick(self.supports.examples(), np.arange(first)) if first else None
        self.supports = SupportSet(self.supports.kernel, older, make_points(older) if first else None)
        self.supports.add(pick(data.raw, rows), data.points.take(rows))

    def _visit(
        self, X: TrainingSet, y: np.ndarray, weight: np.ndarray, order: np.ndarray, progress: Any, gathered: bool
    ) -> None:
        if not gathered:
            y, weight = y[order], weight[order]
        there = weight != 0.0
        order, y, weight = order[there], y[there], weight[there]
        if not self.explicit_passes:
            X.begin_pass()
        done = 0
        while done < len(order):
            self.stopped: str | None = self._why_stop()
            if self.stopped:
                break
            some = slice(done, done + self._block_size(X))
            rows = order[some]
            if isinstance(X, GramScores) and X.passes > 1:
                self._gram_block(X, rows, y[some], weight[some])
            else:
                self._block(X, rows, y[some], weight[some])
            done += len(rows)
            if self.after_block is not None:
                self.after_block(len(rows))
            if progress is not None:
                progress(len(rows))

    def _why_stop(self) -> str | None:
        return "interrupted" if self.interrupted() else super()._why_stop()

    def _block_size(self, scores: Any) -> int:
        if isinstance(scores, GramScores):
            size = LARGE if scores.passes > 1 and not scores.mirrored else self._size_by_steps()
        else:
            size = max(1, min(self._size_by_steps(), VALUES // (scores.pending() + 1)))
        if not isinstance(self.g, DecayedState):
            return size
        # Weights that decay are stored in units of M; the block must end before M is so small that the units change.
        if self.g.m[0] < np.sqrt(SMALLEST):
            factor = float(self.g.m[0])
            restart(self.g, self.st)
            scores.rescale(factor)
        t = self.g.steps[0] + 1.0 + np.arange(size)
        shrunk = self.g.m[0] / np.cumprod(1.0 + self.g.knobs[3] * self.g.knobs[0] / t ** self.g.knobs[1])
        return max(1, int(np.count_nonzero(shrunk > SMALLEST)))

    def _size_by_steps(self) -> int:
        """The size of a block with about as many steps as are desired."""
        steps = STEPS if self.classifies else REGRESSION_STEPS
        return int(np.clip(steps / max(self.step_rate, 1e-9), SMALL, LARGE))

    def _block(self, scores: Any, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from a block of rows."""
        points, count, size = scores.data.points.take(rows), len(self.supports), len(rows)
        audited = self._audited_rows(size)
        scores.update(rows, points)
        self._make_room(count, size)
        audit_row = np.full(size, -1)
        audit_row[audited] = np.arange(len(audited))
        seen = np.zeros((len(audited), count + size), dtype=points.dtype)
        if len(audited):
            seen[:, :count] = scores.seen_values(rows, points, audited)
        block = KernelRows(
            data=seen.reshape(-1),
            audit_row=audit_row,
            width=count + size,
            sums=scores.sums[rows].reshape(-1),
            sqnorms=scores.diagonal[rows] + self.bias**2,
            columns=np.empty(0, dtype=points.dtype),
            column_of=np.full(size, -1),
            support_of=scores.support_of[rows],
            admitted=np.zeros(size, dtype=np.int64),
            changed=np.zeros(size * self.outputs, dtype=np.int64),
            changes=np.zeros(size * self.outputs),
            counts=np.array([count, 0, 0]),
            first=0,
            changes_in=np.zeros(size, dtype=np.int64),
            bias=self.bias,
        )
        before = self.tally[UPDATES]
        block = self._learn_block(scores, rows, points, block, y, weight)
        fresh = block.admitted[: block.counts[2]]
        self.supports.add(pick(scores.data.raw, rows[fresh]), points.take(fresh))
        self.features: int = len(self.supports)
        count = int(block.counts[1])
        block.changes_in[block.first :] = count
        changes = block.changed[:count], block.changes[:count]
        scores.record_block(rows, block.sums.reshape(size, -1), fresh, changes, block.changes_in)
        self.step_rate = 0.5 * self.step_rate + 0.5 * (self.tally[UPDATES] - before) / size

    def _gram_block(self, scores: GramScores, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from some rows of a data set, all of whose rows are the block: a step changes the sums of all."""
        every, count, size = scores.data.shape[0], len(self.supports), len(rows)
        audited = self._audited_rows(size)
        self._make_room(count, size)
        audit_row = np.full(every, -1)
        audit_row[rows[audited]] = np.arange(len(audited))
        seen = np.zeros((len(audited), count + size), dtype=scores.data.dtype)
        if len(audited):
            seen[:, :count] = scores.values(rows[audited])
        block = KernelRows(
            data=seen.reshape(-1),
            audit_row=audit_row,
            width=count + size,
            sums=scores.sums.reshape(-1),
            sqnorms=scores.diagonal + self.bias**2,
            columns=scores.lines.reshape(-1),
            column_of=scores.line_of,
            support_of=scores.support_of,
            admitted=np.zeros(size, dtype=np.int64),
            changed=np.zeros(size * self.outputs, dtype=np.int64),
            changes=np.zeros(size * self.outputs),
            counts=np.array([count, 0, 0]),
            first=0,
            changes_in=np.zeros(0, dtype=np.int64),
            bias=self.bias,
        )
        before, start = self.tally[UPDATES], 0
        while start < size:
            left = slice(start, None)
            missing = self._missing_columns(block, self._survey(block, rows[left], y[left], weight[left]))
            if len(missing):
                scores.make_lines(missing[: scores.together])
            failed = self._run_loop(block, rows[left], y[left], weight[left])
            if failed is None:
                break
            start += failed
            if scores.line_of[rows[start]] >= 0:  # the loop stopped because the rule failed
                self._refuse_step(rows[start])
        fresh = block.admitted[: block.counts[2]]
        self.supports.add(pick(scores.data.raw, fresh), scores.data.points.take(fresh))
        self.features = len(self.supports)
        self.step_rate = 0.5 * self.step_rate + 0.5 * (self.tally[UPDATES] - before) / size

    def _make_room(self, count: int, size: int) -> None:
        """Make room for so many steps and new support examples."""
        self.grow(count + size, self.outputs)
        self.features = count
        if hasattr(self.stabilizer, "make_room"):
            self.st: Any = self.stabilizer.make_room(self.st, 2 * size * self.outputs, size)

    def _learn_block(self, scores: Any, rows: np.ndarray, points: Any, block: Any, y: np.ndarray,
                     weight: np.ndarray) -> Any:  # fmt: skip
        """Learn from the rows of a block in their order, computing columns of kernel values as steps need them."""
        start, size = 0, len(rows)
        while start < size:
            left = np.arange(start, size)
            missing = self._missing_columns(block, self._survey(block, left, y[start:], weight[start:]))
            if len(missing):
                block = self._add_columns(scores, rows, points, block, start, missing)
            failed = self._run_loop(block, left, y[start:], weight[start:])
            if failed is None:
                break
            start += failed
            if not len(self._missing_columns(block, np.array([start]))):  # the loop stopped because the rule failed
                self._refuse_step(rows[start])
        return block

    def _add_columns(self, scores: Any, rows: np.ndarray, points: Any, block: Any, start: int,
                     missing: np.ndarray) -> Any:  # fmt: skip
        """The block with the missing columns, for rows from ``start`` on only if there are many rows before it.

        The sums of those before are left as they are; the next pass begins by adding all later changes at once.
        """
        if start - block.first >= SMALL:
            block.changes_in[block.first : start] = block.counts[1]
            block = block._replace(first=start)
        there = int(block.column_of.max()) + 1
        order, columns = scores.columns(rows, points, missing, block.first, there)
        block.column_of[order] = there + np.arange(len(order))
        return block._replace(columns=columns)

    def _missing_columns(self, block: Any, wanted: np.ndarray) -> np.ndarray:
        """The wanted rows whose column of kernel values is needed for a step and not computed yet."""
        return wanted[block.column_of[wanted] < 0]

    def _survey(self, block: Any, order: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Those of the rows that the present hypothesis would make a step on."""
        steps = np.zeros(len(y), dtype=np.bool_)
        rule, params = rules.compile_step(self.rule), rules.values(self.rule)
        if self.output is None:
            survey_one(block, order, y, weight, rule, params, self.theta, self.g, self.st, steps)
        else:
            room, loss = loops.start(self.output, self.outputs), rules.compile_loss(self.rule)
            survey_many(block, order, y, weight, room, rule, loss, params, self.theta, self.g, self.st, steps)
        return order[steps]

    def _audited_rows(self, size: int) -> np.ndarray:
        """Which of the next examples the loop will audit."""
        wait, between, taken = (int(n) for n in self.audit.due)
        rows, at = [], wait - 1
        while 0 <= at < size:
            rows.append(at)
            taken += 1
            if taken % len(self.audit.gold) == 0:
                between *= 2
            at += between
        return np.array(rows, dtype=np.int64)

    # ------------------------------------------------------------------ the model file

    def pack_supports(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The support examples and the stages as plain facts and arrays, in addition to ``pack``."""
        facts: dict[str, Any] = {}
        facts["support"], arrays = self.supports.pack()
        arrays = {f"support.{key}": array for key, array in arrays.items()}
        if self.stages is not None:
            facts["stages"] = len(self.stages)
            arrays.update({f"stage.{n}": stage for n, stage in enumerate(self.stages)})
        return facts, arrays

    SUPPORTS: ClassVar[Record] = Record(support=NESTED, stages=OrMissing(COUNT))

    def unpack_supports(self, kernel: Any, facts: dict[str, Any], arrays: Arrays) -> None:
        """Restore what ``pack_supports`` described."""
        check_facts(facts, self.SUPPORTS, "dual")
        self.attach(SupportSet.unpack(kernel, facts["support"], under("support.", arrays)))
        if facts.get("stages") is None:
            return
        self.stages = [arrays[f"stage.{n}"] for n in range(facts["stages"])]
        for stage in self.stages:  # none has more support examples than there are now
            fits = stage.dtype == np.float64 and stage.ndim == 2 and stage.shape[1] == self.outputs
            if not (fits and 1 <= len(stage) <= self.features + 1):
                raise ValueError("the hypothesis after a pass does not have the shape that this learner has")

    # ------------------------------------------------------------------ the hypothesis

    def size(self) -> float:
        """The root mean square of the scores of some support examples."""
        if not self.features:
            return 0.0
        some = self.supports.take(np.arange(min(SAMPLE, self.features)))
        scores = self.supports.products(some) @ self.weights()[1:]
        most = float(np.abs(scores).max())  # whose square may overflow
        return most * float(np.sqrt(np.mean(np.square(scores / most)))) if most else 0.0
