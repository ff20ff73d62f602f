"""Training in the dual: the loops of the linear learners over rows of kernel values, a block at a time.

Within a block the examples are learned from in their order, so the hypothesis is that of the serial algorithm. A step
needs the example's kernel values with the rest of the block; they are computed together, for all examples that look as
if they would need them. Should another need them after all, the loop stops before it and goes on when it has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlearn.dual.rows import KernelRows, survey_many, survey_one
from onlearn.dual.scores import CurrentScores, Examples
from onlearn.dual.supports import SupportSet, pick
from onlearn.engine import loops, rules
from onlearn.engine.geometry.penalties import SMALLEST, restart
from onlearn.engine.interrupts import first_ctrl_c
from onlearn.engine.loops import UPDATES
from onlearn.engine.training import Training

# ----------------------------------------------------------------------------------------------------
# Ctrl-C during a long fit: the block at hand is finished, and what was learned is kept.


@contextmanager
def stop_on_ctrl_c(training: Any) -> Iterator[None]:
    """While this lasts, a first Ctrl-C asks the training to stop; a second one is as usual."""
    with first_ctrl_c() as pressed:
        training.interrupted = pressed
        try:
            yield
        finally:
            training.interrupted = never


def never() -> bool:
    return False


SMALL, LARGE = 64, 8192  # examples in a block
STEPS = 40  # of a block, aimed at: columns of kernel values are computed for little else
VALUES = 1 << 22  # kernel values of a block that are computed before it is learned from, about
SAMPLE = 256  # examples that tell the size of a hypothesis


class DualTraining(Training):
    """The state of a learner whose features are its support examples."""

    FEWEST = 0
    FACTS = (*Training.FACTS, "step_rate")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.supports: SupportSet
        self.step_rate = 1.0  # steps an example, of late
        self.interrupted: Callable[[], bool] = never
        self.on_block: Callable[[int], None] | None = None  # told how many examples there were in each block
        self.explicit_passes = False  # a pass comes in several calls, and whoever makes them says when one begins
        self.stages: list[np.ndarray] | None = None  # the hypothesis after each pass, if that is to be kept

    def reach(self, X: Any) -> np.ndarray:
        """A step adds to the weight of its own example only."""
        return np.ones(1)

    def attach(self, supports: SupportSet) -> DualTraining:
        """Give the training its support examples; there are as many as features."""
        if len(supports) != self.features:
            raise ValueError(f"{len(supports)} support examples do not go with {self.features} weights")
        self.supports = supports
        return self

    @property
    def may_fail(self) -> bool:
        return super().may_fail or not self.supports.kernel.always_psd  # the user's own function may be one of these

    def end_pass(self) -> dict[str, float]:
        if self.stages is not None:
            self.stages.append(self.weights().copy())
        return super().end_pass()

    def prepare(self, data: Examples, cache_bytes: int) -> CurrentScores:
        """A data set, ready to be learned from in one pass or more."""
        if self.supports.kernel.data == "matrix":
            self.supports = self.supports.located_in(data.points)
        weights = self.g.w[: (self.features + 1) * self.outputs].reshape(-1, self.outputs)[1:]
        return CurrentScores(data, self.supports, weights, cache_bytes)

    def resume(self, data: Examples, cache_bytes: int, prepare: Callable[[Any], Any], told: Any) -> Any:
        """A data set that was being learned from, as ``pack`` of what ``stand`` made told of it."""
        facts, arrays = told
        self._take_supports_from(data, arrays["place"], prepare)
        standing = self.prepare(data, cache_bytes)
        standing.restore(facts, arrays)
        return standing

    def _take_supports_from(self, data: Examples, place: np.ndarray, prepare: Callable[[Any], Any]) -> None:
        """Support examples are prepared for the kernel as they were: those of other data, then rows of these."""
        rows = np.flatnonzero(place >= 0)
        rows = rows[np.argsort(place[rows])]
        first = len(self.supports) - len(rows)
        if first < 0 or not np.array_equal(place[rows], np.arange(first, len(self.supports))):
            raise ValueError("the support examples are not those of the rows")
        older = pick(self.supports.examples(), np.arange(first)) if first else None
        self.supports = SupportSet(self.supports.kernel, older, prepare(older) if first else None)
        self.supports.add(pick(data.raw, rows), data.points.take(rows))

    def _visit(
        self, X: CurrentScores, y: np.ndarray, weight: np.ndarray, order: np.ndarray, progress: Any, gathered: bool
    ) -> None:
        if not gathered:
            y, weight = y[order], weight[order]
        there = weight != 0.0
        order, y, weight = order[there], y[there], weight[there]
        if not self.explicit_passes:
            X.begin_pass()
        done = 0
        while done < len(order):
            self.stopped = self._why_stop()
            if self.stopped:
                break
            some = slice(done, done + self._block_size(X))
            rows = order[some]
            self._block(X, rows, y[some], weight[some])
            done += len(rows)
            if self.on_block is not None:
                self.on_block(len(rows))
            if progress is not None:
                progress(len(rows))

    def _why_stop(self) -> str | None:
        return "interrupted" if self.interrupted() else super()._why_stop()

    def _block_size(self, standing: CurrentScores) -> int:
        size = max(1, min(self._size_by_steps(), VALUES // (standing.pending() + 1)))
        if not hasattr(self.g, "m"):
            return size
        # Weights that shrink are stored in units of M; the block must end before M is so small that the units change.
        if self.g.m[0] < np.sqrt(SMALLEST):
            factor = float(self.g.m[0])
            restart(self.g, self.st)
            standing.rescale(factor)
        t = self.g.steps[0] + 1.0 + np.arange(size)
        shrunk = self.g.m[0] / np.cumprod(1.0 + self.g.knobs[3] * self.g.knobs[0] / t ** self.g.knobs[1])
        return max(1, int(np.count_nonzero(shrunk > SMALLEST)))

    def _size_by_steps(self) -> int:
        """The size of a block in which about ``STEPS`` steps are made."""
        return int(np.clip(STEPS / max(self.step_rate, 1e-9), SMALL, LARGE))

    def _block(self, standing: CurrentScores, rows: np.ndarray, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from a block of rows."""
        points, count, size = standing.data.points.take(rows), len(self.supports), len(rows)
        audited = self._audited_rows(size)
        values = standing.update(rows, points)
        self.grow(count + size, self.outputs)
        self.features = count
        if hasattr(self.stabilizer, "make_room"):
            self.st = self.stabilizer.make_room(self.st, 2 * size * self.outputs, size)
        seat = np.full(size, -1)
        seat[audited] = np.arange(len(audited))
        seen = np.zeros((len(audited), count + size), dtype=points.dtype)
        if len(audited):  # in a first pass, where most values are at hand
            few = points.take(audited)
            seen[:, :count] = values[audited] if values.shape[1] == count else self.supports.products(few)
        block = KernelRows(
            data=seen.reshape(-1),
            seat=seat,
            width=count + size,
            standing=standing.sums[rows].reshape(-1),
            length=standing.lengths[rows] + self.bias**2,
            columns=np.empty(0, dtype=points.dtype),
            slot=np.full(size, -1),
            place=standing.place[rows],
            admitted=np.zeros(size, dtype=np.int64),
            at=np.zeros(size * self.outputs, dtype=np.int64),
            change=np.zeros(size * self.outputs),
            used=np.array([count, 0, 0]),
            first=0,
            upto=np.zeros(size, dtype=np.int64),
            bias=self.bias,
        )
        before = self.tally[UPDATES]
        block = self._resolve(standing, rows, points, block, y, weight)
        fresh = block.admitted[: block.used[2]]
        self.supports.add(pick(standing.data.raw, rows[fresh]), points.take(fresh))
        self.features = len(self.supports)
        changed = int(block.used[1])
        block.upto[block.first :] = changed
        changes = block.at[:changed], block.change[:changed]
        standing.record_block(rows, block.standing.reshape(size, -1), fresh, changes, block.upto)
        self.step_rate = 0.5 * self.step_rate + 0.5 * (self.tally[UPDATES] - before) / size

    def _resolve(self, standing: Any, rows: np.ndarray, points: Any, block: Any, y: np.ndarray,
                 weight: np.ndarray) -> Any:  # fmt: skip
        """Go through the block in its order, fetching columns of kernel values as they turn out to be needed."""
        start, size = 0, len(rows)
        while start < size:
            lacking = self._lacking(block, self._survey(block, start, y, weight))
            if len(lacking):
                block = self._fetch(standing, rows, points, block, start, lacking)
            failed = self._run_loop(block, np.arange(start, size), y[start:], weight[start:])
            if failed is None:
                break
            start += failed
            if not len(self._lacking(block, np.array([start]))):  # so the rule failed
                self._refuse_step(rows[start])
        return block

    def _fetch(self, standing: Any, rows: np.ndarray, points: Any, block: Any, start: int,
               lacking: np.ndarray) -> Any:  # fmt: skip
        """The block with columns of the rows that lack them. Those before ``start`` are done with, if there are many.

        The sums of these are left as they are until the next pass, when all that changed since is computed at once.
        """
        if start - block.first >= SMALL:
            block.upto[block.first : start] = block.used[1]
            block = block._replace(first=start)
        there = int(block.slot.max()) + 1
        order, columns = standing.columns(rows, points, lacking, block.first, there)
        block.slot[order] = there + np.arange(len(order))
        return block._replace(columns=columns)

    def _lacking(self, block: Any, wanted: np.ndarray) -> np.ndarray:
        """Those of the wanted rows whose column of kernel values has not been computed but is needed for a step."""
        return wanted[block.slot[wanted] < 0]

    def _survey(self, block: Any, start: int, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """The rows from ``start`` on that would be learned from as the hypothesis is now."""
        steps = np.zeros(len(y), dtype=np.bool_)
        rule, params = rules.compile_step(self.rule), rules.values(self.rule)
        if self.output is None:
            survey_one(block, start, y, weight, rule, params, self.theta, self.g, self.st, steps)
        else:
            room, loss = loops.start(self.output, self.outputs), rules.compile_loss(self.rule)
            survey_many(block, start, y, weight, room, rule, loss, params, self.theta, self.g, self.st, steps)
        return np.flatnonzero(steps)

    def _audited_rows(self, size: int) -> np.ndarray:
        """Which of the next examples will be audited."""
        wait, between, taken = (int(n) for n in self.audit.due)
        rows, at = [], wait - 1
        while 0 <= at < size:
            rows.append(at)
            taken += 1
            if taken % len(self.audit.gold) == 0:
                between *= 2
            at += between
        return np.array(rows, dtype=np.int64)

    # ------------------------------------------------------------------ the hypothesis

    def size(self) -> float:
        """How large the scores of the hypothesis are, on some support examples."""
        if not self.features:
            return 0.0
        some = self.supports.take(np.arange(min(SAMPLE, self.features)))
        scores = self.supports.products(some) @ self.weights()[1:]
        most = float(np.abs(scores).max())  # whose square may be beyond all numbers
        return most * float(np.sqrt(np.mean(np.square(scores / most)))) if most else 0.0
