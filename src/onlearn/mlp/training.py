"""The state of one network, taken through examples in mini-batches.

Examples come in an order, and every ``batch`` of them make a step. Examples that do not fill a batch wait for the
next ones, so that it does not matter how a stream is cut up; what is handed out meanwhile is a copy that has learned
from them too, as from a short batch. The end of a pass makes a short batch of those that wait.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from onlearn.engine.base_training import BaseTraining
from onlearn.engine.csr import CSR
from onlearn.engine.loops import HIGHEST_LOSS, LOSS, UPDATES
from onlearn.engine.loops import MISTAKES as WRONG
from onlearn.engine.rows import Dense, Sparse
from onlearn.mlp import loops
from onlearn.mlp.batches import as_kind, below, copied_rows, dense_batch, flat, has_room, scaled
from onlearn.mlp.network import (
    ERROR,
    Layout,
    Workspace,
    backward,
    bound_of,
    draw,
    forward,
    initialise,
    judge_rows,
)
from onlearn.mlp.optimizers import LARGEST, MOMENTS, REMEMBERED, Rates, catch_up_rows, step_rows, take_step
from onlearn.mlp.scaling import Scaler
from onlearn.mlp.scoring import Design, Scorer

MOST = 512  # rows that room is made for from the start
STRETCH = 256  # single examples learned from at a time, at most


TRANSIENT = ("_space", "_gradient", "_slots", "_handed", "_scorer")  # what copies have anew


class Diverged(ValueError):  # noqa: N818  what happened, not who is to blame
    """Learning cannot go on. Every weight is still a number."""


NOT_FINITE = "the error is not a finite number"  # and was met before the step
TOO_LARGE = f"a weight would grow beyond {LARGEST:g}"


class NetworkTraining(BaseTraining):
    """One network's weights, the state of its optimizer, and the measures by which rows are scaled."""

    design: Design
    seed: int
    sparse: bool
    output: str | None
    classifies: bool
    features: int
    layout: Layout
    rates: Rates
    inputs: Scaler
    numbers: Scaler
    drawn_for: int

    def __init__(self, design: Design, features: int, outputs: int, seed: int, sparse: bool) -> None:
        super().__init__(features, outputs)
        self.design, self.seed, self.sparse = design, seed, sparse
        self.output = "classes" if outputs > 1 or design.loss == "regression" else None
        self.classifies = design.loss != "regression"
        self.unit: Any = design.activation
        self.layout = Layout((features, *design.hidden, outputs))
        w = np.empty(self.layout.size, design.dtype)
        initialise(self.unit, self.layout, w, seed)
        self.o: Any = design.optimizer.start(w)
        still = -1 if design.l2 == 0.0 else 0  # under l2 weights shrink that had no gradient yet
        kind = w.dtype
        self.rates = Rates(
            np.zeros(REMEMBERED, kind),
            np.zeros(1, np.int64),
            np.full(features, still, np.int64),
            np.array([design.l2], kind),
        )
        self.inputs = Scaler(features, centred=not sparse) if design.scaled else Scaler.none(features)
        self.numbers = Scaler(1, centred=True) if design.scaled and not self.classifies else Scaler.none(1)
        self.waiting: tuple[Any, np.ndarray, np.ndarray] | None = None  # rows, targets and weights of a batch to be
        self.drawn_for = features  # when the weights were drawn, which fewer features have larger ones of
        self.validation: list[float] = []  # scores on the rows held out, by pass
        self._forget()

    def _forget(self) -> None:
        """What copies have anew."""
        self._space: Workspace | None = None
        self._gradient: np.ndarray | None = None
        self._slots: np.ndarray | None = None
        self._handed: tuple[int, Any, np.ndarray] | None = None
        self._scorer: Scorer | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **dict.fromkeys(TRANSIENT)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self.rates.step[0])

    # ------------------------------------------------------------------ rows

    def as_kind(self, X: Any) -> Any:
        """Rows as this network keeps them: all dense, or all sparse."""
        return as_kind(X, self.sparse)

    def measured(self, X: Any) -> None:
        """All rows there are to learn from have come: measure them, once and for all."""
        if self.inputs.settled:
            return
        if self.sparse:
            self.inputs.measure_sparse(X.data[X.indptr[0] : X.indptr[-1]], X.indices[X.indptr[0] : X.indptr[-1]])
        else:
            self.inputs.measure(X)

    def measured_targets(self, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """All numbers to predict, scaled by the measures of some; classes are as they are."""
        y = np.ascontiguousarray(y, dtype=np.float64)
        if self.classifies:
            return y
        if not self.numbers.settled:
            self.numbers.measure(y[rows][:, None])
        return self.followed_targets(y)

    def scaled(self, X: Any) -> Any:
        """Rows as ``learn`` takes them, by measures that stay."""
        return scaled(X, self.sparse, self.inputs, self.design.dtype)

    def followed(self, X: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """The next rows of a stream and their targets, scaled by the measures so far."""
        y = self.followed_targets(y)
        if not self.sparse:
            out = np.empty(X.shape, self.design.dtype)
            self.inputs.follow(X, out)
            return out, y
        X = X.between(0, X.shape[0])
        return replace(X, data=self.inputs.follow_sparse(X.data, X.indices, self.design.dtype)), y

    def followed_targets(self, y: np.ndarray) -> np.ndarray:
        """Numbers to predict, scaled; classes are as they are."""
        y = np.ascontiguousarray(y, dtype=np.float64)
        if self.classifies:
            return y
        out = np.empty((len(y), 1))
        self.numbers.follow(y[:, None], out)
        return out[:, 0]

    # ------------------------------------------------------------------ learning

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray,
              stop: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        """Learn from scaled rows in the given order; the last of them may wait. Rows without weight are not there."""
        order = order[weight[order] > 0.0]
        self.count(len(order))
        tally = self._sums()
        try:
            self._learn_batches(X, y, weight, order, tally, stop)
        finally:
            self._take_down(tally)

    def _learn_batches(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, tally: np.ndarray,
                       stop: Callable[[], bool]) -> None:  # fmt: skip
        batch, start = self.design.batch, 0
        if batch == 1:
            return self._learn_singly(X, y, weight, order, tally, stop)
        if self.waiting is not None:
            start = batch - len(self.waiting[1])
            first = order[:start]
            X_first, y_first, weight_first = self.waiting
            together = below(X_first, copied_rows(X, first, self.design.dtype))
            some = together, np.append(y_first, y[first]), np.append(weight_first, weight[first])
            if len(some[1]) < batch:
                self.waiting = some
                return None
            self.waiting = None
            self._learn_batch(*some, np.arange(batch), tally)
        for at in range(start, len(order) - batch + 1, batch):
            if stop():
                return None
            self._learn_batch(X, y, weight, order[at : at + batch], tally)
        rest = order[start + (len(order) - start) // batch * batch :]
        if len(rest):
            self.waiting = copied_rows(X, rest, self.design.dtype), y[rest], weight[rest]
        return None

    def finish_batch(self) -> None:
        """Learn from the examples that wait, as from a short batch."""
        if self.waiting is None:
            return
        (X, y, weight), tally, self.waiting = self.waiting, self._sums(), None
        self._learn_batch(X, y, weight, np.arange(len(y)), tally)
        self._take_down(tally)

    def _sums(self) -> np.ndarray:
        """The sums that batches add to: summed in the order of the examples, however they come."""
        return self.tally[[LOSS, WRONG, UPDATES]]

    def _take_down(self, sums: np.ndarray) -> None:
        """What batches have added; examples were counted as they came."""
        self.tally[[LOSS, WRONG, UPDATES]] = np.minimum(sums, HIGHEST_LOSS)

    def end_pass(self) -> dict[str, float]:
        self.finish_batch()
        return super().end_pass()

    def _learn_batch(self, X: Any, y: np.ndarray, weight: np.ndarray, rows: np.ndarray, tally: np.ndarray) -> None:
        """One step with some rows."""
        space = self._workspace(len(rows))
        W, b = self.layout.views(self.o.w)
        if self._gradient is None:
            self._gradient = np.empty_like(self.o.w)
        dW, db = self.layout.views(self._gradient)
        dense = dense_batch(X, rows, self.sparse, space)
        touched = None
        if dense is None:
            touched = self._touch(X, rows)
            catch_up_rows(self.o, self.rates, touched, len(touched), self.layout.sizes[1])
            loops.first_layer(X.data, X.indices, X.indptr, rows, self.o.w, self.layout.sizes[1], flat(space.a[0]))
        else:
            self.catch_up()
        scores = forward(self.unit, W, b, dense, space)
        before = tally[ERROR]
        judge_rows(self.design.error, flat(scores), self.outputs, y[rows], weight[rows], tally)
        if not abs(tally[ERROR] - before) <= HIGHEST_LOSS:
            self._forget_slots(touched)
            tally[ERROR] = before
            raise Diverged(NOT_FINITE)
        d = backward(self.unit, W, dense, space, dW, db)
        self._step(X, rows, d, touched)

    def _step(self, X: Any, rows: np.ndarray, d: np.ndarray, touched: np.ndarray | None) -> None:
        """Change the weights by the gradient, in the first layer of those features only that the rows have."""
        layout, w = self.layout, self.o.w
        gradient: Any = self._gradient
        rate, l2, none = self._next_rate(), self.rates.l2[0], w.dtype.type(0)
        first = 0
        if touched is not None:
            width, first = layout.sizes[1], layout.sizes[0] * layout.sizes[1]
            rows_of = gradient[: len(touched) * width]  # where a dense one of the first layer would be
            rows_of[...] = 0
            loops.first_gradient(X.data, X.indices, X.indptr, rows, self._slots, flat(d), width, rows_of)
            self._forget_slots(touched)
            refused = step_rows(self.o, self.rates, touched, len(touched), width, rows_of, rate, l2)
        else:
            refused = 0.0
            self.rates.last.fill(self.steps)
        refused += take_step(self.o, first, layout.biases - first, gradient, first, rate, l2)
        refused += take_step(self.o, layout.biases, layout.size - layout.biases, gradient, layout.biases, rate, none)
        if refused:
            raise Diverged(TOO_LARGE)

    def _next_rate(self) -> Any:
        """The rate of the step that is taken now, counted; rates are kept as long as some weights need them."""
        now = self.steps + 1
        if now % REMEMBERED == 0:
            self.catch_up()
        rate = self.design.optimizer.rates(np.array([float(now)]), self.design.l2).astype(self.o.w.dtype)[0]
        self.rates.step[0] = now
        self.rates.past[now % REMEMBERED] = rate
        return rate

    def _learn_singly(self, X: Any, y: np.ndarray, weight: np.ndarray, order: np.ndarray, tally: np.ndarray,
                      stop: Callable[[], bool]) -> None:  # fmt: skip
        """A step for each example."""
        sizes, kind, layout = np.array(self.layout.sizes), self.o.w.dtype, self.layout
        places = np.cumsum([0, *layout.sizes[1:]])[:-1]
        a = np.zeros(sum(layout.sizes[1:]), kind)
        d, grad = np.zeros_like(a), np.zeros(max(layout.sizes[1:]), kind)
        start = 0
        while start < len(order) and not stop():
            now = self.steps + 1
            if now % REMEMBERED == 0:
                self.catch_up()
            some = order[start : start + min(STRETCH, REMEMBERED - now % REMEMBERED)]
            due = self.design.optimizer.rates(now + np.arange(float(len(some))), self.design.l2).astype(kind)
            if self.sparse:
                rows: Any = Sparse(X.data, X.indices, X.indptr, 0.0)
                turn = some
            else:
                space = self._workspace(len(some))
                made: Any = dense_batch(X, some, self.sparse, space)
                rows = Dense(flat(made), self.features, 0.0)
                turn = np.arange(len(some))
            steps = self.steps
            done = loops.learn_rows(rows, turn, y[some], weight[some], self.unit, self.design.error, self.o, self.rates,
                                    due, sizes, layout.starts, places, a, d, grad, tally)  # fmt: skip
            if done < len(some):
                raise Diverged(NOT_FINITE if steps == self.steps - done else TOO_LARGE)
            start += len(some)

    # ------------------------------------------------------------------ the parts of a batch

    def _workspace(self, rows: int) -> Workspace:
        if self._space is None or self._space.rows < rows:
            most = max(rows, min(self.design.batch, MOST))
            self._space = Workspace(self.layout, most, self.design.dtype, has_room(self.sparse, self.features))
        return self._space if self._space.rows == rows else self._space.part(rows)

    def _touch(self, X: CSR, rows: np.ndarray) -> np.ndarray:
        """The features of some rows, each with a slot."""
        if self._slots is None or len(self._slots) < self.features:
            self._slots = np.full(self.features, -1, np.int32)
        values = int((X.indptr[rows + 1] - X.indptr[rows]).sum())
        features = np.empty(min(values, self.features), np.int64)
        return features[: loops.distinct_features(X.indices, X.indptr, rows, self._slots, features)]

    def _forget_slots(self, touched: np.ndarray | None) -> None:
        if touched is not None:
            loops.forget_slots(self._slots, touched, len(touched))

    def catch_up(self) -> None:
        """Bring all weights up to date."""
        features = np.arange(self.features)
        catch_up_rows(self.o, self.rates, features, self.features, self.layout.sizes[1])

    # ------------------------------------------------------------------ what was learned

    def hand_out(self) -> np.ndarray:
        """All weights as they would be if learning ended here; this does not change them."""
        known = self._handed
        if known is None or known[0] != self.steps or known[1] is not self.waiting:
            late = (self.rates.last >= 0) & (self.rates.last < self.steps)
            moves = self.design.l2 > 0 or any(hasattr(self.o, name) for name in ("u", "m"))
            made = self
            if self.waiting is not None or (moves and late.any()):
                made = copy.copy(self)
                made._forget()
                made.o = type(self.o)(*(one.copy() for one in self.o))
                made.rates = Rates(*(one.copy() for one in self.rates))
                made.tally, made.doubling = self.tally.copy(), self.doubling.copy()
                with suppress(Diverged):
                    made.finish_batch()
                made.catch_up()
            known = self._handed = self.steps, self.waiting, made.o.w
        return known[2]

    def scorer(self) -> Scorer:
        """The network as it would be handed out now, whatever is learned later."""
        w = self.hand_out()
        if self._scorer is None or self._scorer.made_of is not w or self._scorer.steps != self.steps:
            measures = self.inputs, self.numbers if not self.classifies else None
            self._scorer = Scorer(self.design, self.layout, self.sparse, w, self.steps, *measures)
        return self._scorer

    snapshot = scorer

    def scores(self, X: Any) -> np.ndarray:
        """Scores of raw rows by output; in regression the numbers predicted."""
        return self.scorer().scores(X)

    def saved(self, weights: bool = True) -> dict[str, Any]:
        """What ``restore`` puts back; without the weights if they have not changed by then."""
        kept: dict[str, Any] = {name: getattr(self, name).copied() for name in ("inputs", "numbers")}
        kept |= {"tally": self.tally.copy(), "doubling": self.doubling.copy(), "since": list(self.since)}
        kept["waiting"] = self.waiting
        if weights:
            kept["o"] = type(self.o)(*(one.copy() for one in self.o))
            kept["rates"] = Rates(*(one.copy() for one in self.rates))
        return kept

    def restore(self, kept: dict[str, Any]) -> None:
        """Be again what was saved, but for the passes that were counted; in place, for there may be shallow copies."""
        for name, value in kept.items():
            if name in ("o", "rates"):
                for mine, saved in zip(getattr(self, name), value):
                    mine[...] = saved
            elif name in ("inputs", "numbers"):
                getattr(self, name).__dict__.update(value.copied().__dict__)
            elif isinstance(value, np.ndarray):
                getattr(self, name)[...] = value
            else:
                setattr(self, name, value)
        self._forget()

    # ------------------------------------------------------------------ growing, and the model file

    def grow(self, features: int, outputs: int) -> None:
        """Make room for features: their weights begin as they would have at first."""
        if outputs != self.outputs:
            raise ValueError("a network cannot take in new classes: train it anew, with all of them")
        if features <= self.features:
            return
        before, layout, first = self.layout, Layout((features, *self.layout.sizes[1:])), self.layout.sizes[1]
        more = (features - self.features) * first
        fresh = np.empty(features * first, self.o.w.dtype)
        words = np.random.SeedSequence([self.seed, 0]).generate_state(1, np.uint64)
        draw(fresh, words[0], bound_of(self.unit, self.drawn_for, first, hidden=before.layers > 1))
        at = self.features * first
        made = {name: np.insert(getattr(self.o, name), [at] * more, 0) for name in self.o._fields if name != "knobs"}
        made["w"][at : at + more] = fresh[at:]
        self.o = self.o._replace(**made)
        still = -1 if self.design.l2 == 0.0 else self.steps
        self.rates = self.rates._replace(last=np.append(self.rates.last, np.full(features - self.features, still)))
        self.inputs.grow(features)
        if self.waiting is not None:
            X, y, weight = self.waiting
            X = X.of_width(features) if self.sparse else np.pad(X, ((0, 0), (0, features - X.shape[1])))
            self.waiting = X, y, weight
        self.layout, self.features = layout, features
        self._forget()

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super().pack()
        facts |= {name: getattr(self, name) for name in FACTS}
        facts |= {"settled": self.inputs.settled, "numbers_settled": self.numbers.settled, "steps": self.steps}
        facts["centred"] = self.inputs.centred
        arrays |= {"w": self.o.w, "past": self.rates.past, "last": self.rates.last}
        arrays |= {name: getattr(self.o, name) for name in MOMENTS if hasattr(self.o, name)}
        arrays |= {**self.inputs.pack("inputs"), **self.numbers.pack("numbers")}
        if self.waiting is not None:
            X, y, weight = self.waiting
            arrays |= {"waiting.y": y, "waiting.weight": weight}
            parts = ("data", "indices", "indptr") if self.sparse else ()
            arrays |= {f"waiting.{name}": getattr(X, name) for name in parts} or {"waiting.rows": X}
        return facts, arrays


FACTS = ("sparse", "drawn_for", "validation")
