"""The state of one network, taken through examples in mini-batches.

Examples come in an order, and every ``batch`` of them make a step. Examples that do not fill a batch wait for the next
ones, so that it does not matter how a stream is cut up; what is handed out meanwhile is a copy that has learned from them
too, as from a short batch. The end of a pass makes a short batch of those that wait.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.base_learner import BaseTraining
from onlearn.engine.csr import CSR, is_sparse, stacked, without_duplicates
from onlearn.engine.inputs import HEAVIEST
from onlearn.engine.loops import HIGHEST_LOSS, HIGHEST_SCORE, LOSS, UPDATES
from onlearn.engine.loops import MISTAKES as WRONG
from onlearn.engine.rows import Dense, Sparse
from onlearn.mlp import loops
from onlearn.mlp.network import (
    ERROR,
    LOSSES,
    REGRESSION,
    UNITS,
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
from onlearn.mlp.scaling import FAR, Scaler
from onlearn.model_file import COUNT, TRUTH, a_list, check_array, check_facts, is_number

DENSE = 6  # a sparse batch with more than one value in so many places is learned from as a dense one,
WIDEST = 1 << 14  # unless it has more columns
BLOCK = 512  # rows scored at a time
STRETCH = 256  # single examples learned from at a time, at most


TRANSIENT = ("_space", "_gradient", "_slots", "_handed", "_scoring", "_wide")  # what copies have anew


class Design(NamedTuple):
    """What a network is, and how it learns."""

    hidden: tuple[int, ...]
    unit: str
    loss: str  # of LOSSES, or "regression"
    optimizer: Any
    l2: float
    batch: int
    dtype: str
    scaled: bool

    @property
    def error(self) -> Any:
        return REGRESSION if self.loss == "regression" else LOSSES[self.loss]


class Diverged(ValueError):
    """Learning cannot go on. Every weight is still a number."""


NOT_FINITE = "the error is not a finite number"  # and was met before the step
TOO_LARGE = f"a weight would grow beyond {LARGEST:g}"


class Unscaled(NamedTuple):
    """Dense rows in C order, that are scaled when a batch of them is made."""

    rows: np.ndarray
    scaler: Scaler


def _flat(matrix: np.ndarray) -> np.ndarray:
    return matrix.reshape(-1)


def _below(X: Any, more: Any) -> Any:
    """The rows of both."""
    return np.concatenate([X, more]) if isinstance(X, np.ndarray) else stacked([X, more])


class NetworkTraining(BaseTraining):
    """One network's weights, the state of its optimizer, and the measures by which rows are scaled."""

    def __init__(self, design: Design, features: int, outputs: int, seed: int, sparse: bool) -> None:
        super().__init__(features, outputs)
        self.design, self.seed, self.sparse = design, seed, sparse
        self.output = "classes" if outputs > 1 or design.loss == "regression" else None
        self.classifies = design.loss != "regression"
        self.unit: Any = UNITS[design.unit]
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
        self._scoring: Workspace | None = None
        self._wide: tuple[int, np.ndarray, np.ndarray] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **dict.fromkeys(TRANSIENT)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def _has_room(self) -> bool:
        """Whether sparse rows may be spread out."""
        return not self.sparse or self.features <= WIDEST

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return int(self.rates.step[0])

    # ------------------------------------------------------------------ rows

    def as_kind(self, X: Any) -> Any:
        """Rows as this network keeps them: all dense, or all sparse."""
        if self.sparse:
            return X if isinstance(X, CSR) else CSR.of(X)
        X = X.toarray() if is_sparse(X) else X
        return np.ascontiguousarray(X)

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

    def scaled(self, X: Any, dtype: Any = None) -> Any:
        """Rows as ``learn`` takes them, by measures that stay."""
        if not self.sparse:
            return Unscaled(X, self.inputs)
        X = X.between(0, X.shape[0])
        return replace(X, data=self.inputs.apply_sparse(X.data, X.indices, dtype or self.design.dtype))

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
            together = _below(X_first, self._copied(X, first))
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
            self.waiting = self._copied(X, rest), y[rest], weight[rest]
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
        dense = self._dense(X, rows, space)
        touched = None
        if dense is None:
            touched = self._touch(X, rows)
            catch_up_rows(self.o, self.rates, touched, len(touched), self.layout.sizes[1])
            loops.first_layer(X.data, X.indices, X.indptr, rows, self.o.w, self.layout.sizes[1], _flat(space.a[0]))
        else:
            self.catch_up()
        scores = forward(self.unit, W, b, dense, space)
        before = tally[ERROR]
        judge_rows(self.design.error, _flat(scores), self.outputs, y[rows], weight[rows], tally)
        if not abs(tally[ERROR] - before) <= HIGHEST_LOSS:
            self._forget_slots(touched)
            tally[ERROR] = before
            raise Diverged(NOT_FINITE)
        d = backward(self.unit, W, dense, space, dW, db)
        self._step(X, rows, d, touched)

    def _step(self, X: Any, rows: np.ndarray, d: np.ndarray, touched: np.ndarray | None) -> None:
        """Change the weights by the gradient, in the first layer of those features only that the rows have."""
        layout, w, gradient = self.layout, self.o.w, self._gradient
        rate, l2, none = self._next_rate(), self.rates.l2[0], w.dtype.type(0)
        first = 0
        if touched is not None:
            width, first = layout.sizes[1], layout.sizes[0] * layout.sizes[1]
            rows_of = np.zeros(len(touched) * width, w.dtype)
            loops.first_gradient(X.data, X.indices, X.indptr, rows, self._slots, _flat(d), width, rows_of)
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
                rows = Dense(_flat(self._dense(X, some, space)), self.features, 0.0)  # type: ignore[arg-type]
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
            most = max(rows, min(self.design.batch, BLOCK))
            self._space = Workspace(self.layout, most, self.design.dtype, self._has_room())
        return self._space if self._space.rows == rows else self._space.part(rows)

    def _dense(self, X: Any, rows: np.ndarray, space: Workspace) -> np.ndarray | None:
        """Some rows as a dense batch; None if they are better left sparse."""
        if not self.sparse:
            if isinstance(X, Unscaled):
                X.scaler.apply(X.rows, rows, space.x)
            else:
                np.take(X, rows, axis=0, out=space.x, mode="clip")
            return space.x
        if self.features > WIDEST:
            return None
        values = int((X.indptr[rows + 1] - X.indptr[rows]).sum())
        if values * DENSE < len(rows) * self.features:
            return None
        space.x[...] = 0
        loops.spread(X.data, X.indices, X.indptr, rows, self.features, _flat(space.x))
        return space.x

    def _copied(self, X: Any, rows: np.ndarray) -> Any:
        """Some scaled rows, to be kept."""
        if self.sparse:
            return X.take(rows)
        if isinstance(X, Unscaled):
            out = np.empty((len(rows), self.features), self.design.dtype)
            X.scaler.apply(X.rows, rows, out)
            return out
        return X[rows]

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

    def scores(self, X: Any) -> np.ndarray:
        """Scores of raw rows by output; in regression the numbers predicted.

        In double precision, whatever that of learning: so a row has the same score among others as by itself.
        """
        X, rows = self.as_kind(X), X.shape[0]
        W, b = self._doubles()
        out = np.empty((rows, self.outputs))
        X = self.scaled(X, np.float64)
        for start in range(0, rows, BLOCK):
            some = np.arange(start, min(start + BLOCK, rows))
            if self._scoring is None or self._scoring.rows < len(some):
                self._scoring = Workspace(self.layout, len(some), np.float64, self._has_room())
            space = self._scoring.part(len(some))
            dense = self._dense(X, some, space)
            if dense is None:
                loops.first_layer(X.data, X.indices, X.indptr, some, _flat(W[0]), self.layout.sizes[1], _flat(space.a[0]))
            with np.errstate(over="ignore", invalid="ignore"):
                out[start : start + len(some)] = forward(self.unit, W, b, dense, space)
        if not self.classifies:
            shift, factor = self.numbers.factors
            out = np.where(factor > 0, out / np.where(factor > 0, factor, 1.0), 0.0) + shift
        return out if np.isfinite(out).all() else np.nan_to_num(out, nan=0.0, posinf=HIGHEST_SCORE, neginf=-HIGHEST_SCORE)

    def _doubles(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The weights that are handed out, in double precision."""
        w = self.hand_out()
        known = self._wide
        if known is None or known[0] != self.steps or known[1] is not w:
            known = self._wide = self.steps, w, w.astype(np.float64)
        return self.layout.views(known[2])

    def gradient_of(self, row: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of a combination of scores by the columns of a raw dense row, and what columns are counted from."""
        W, b = self._doubles()
        shift, factor = self.inputs.factors
        space = Workspace(self.layout, 1, np.float64)
        x = np.clip((row - shift) * factor, -FAR, FAR)
        forward(self.unit, W, b, x, space)
        space.a[-1][...] = wanted
        d = backward(self.unit, W, x, space, [np.empty_like(one) for one in W], [np.empty_like(one) for one in b])
        unit = 1.0
        if not self.classifies:
            size = self.numbers.factors[1][0]
            unit = 1.0 / size if size > 0 else 0.0
        return (d @ W[0].T)[0] * factor * unit, shift

    def saved(self, weights: bool = True) -> dict[str, Any]:
        """What ``restore`` puts back; without the weights if they have not changed by then."""
        kept = {name: copy.deepcopy(getattr(self, name)) for name in ("inputs", "numbers", "tally", "doubling", "since")}
        kept["waiting"] = self.waiting
        if weights:
            kept["o"] = type(self.o)(*(one.copy() for one in self.o))
            kept["rates"] = Rates(*(one.copy() for one in self.rates))
        return kept

    def restore(self, kept: dict[str, Any]) -> None:
        """Be again what was saved, but for the passes, which stay counted. In place, for there may be shallow copies."""
        for name, value in kept.items():
            if name in ("o", "rates"):
                for mine, saved in zip(getattr(self, name), value):
                    mine[...] = saved
            elif name in ("inputs", "numbers"):
                getattr(self, name).__dict__.update(copy.deepcopy(value).__dict__)
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

    @classmethod
    def unpack(cls, design: Design, features: int, seed: int, facts: dict[str, Any],
               arrays: dict[str, np.ndarray]) -> NetworkTraining:  # fmt: skip
        """What ``pack`` took apart; refuses what could not have come from it."""
        check_facts(facts, CHECKED)
        outputs, kind = facts["outputs"], design.dtype
        layout = Layout((features, *design.hidden, outputs))
        check_array("w", arrays["w"], kind, (layout.size,), -LARGEST, LARGEST)  # before memory for as many is asked for
        made = cls(design, features, outputs, seed, facts["sparse"])
        made.take_counts(facts, arrays)
        for name in FACTS:
            setattr(made, name, facts[name])
        most = {"v": LARGEST * LARGEST, "s": LARGEST * LARGEST}
        for name in MOMENTS:
            if hasattr(made.o, name):
                low = 0.0 if name in most else -LARGEST
                check_array(name, arrays[name], kind, (layout.size,), low, most.get(name, LARGEST))
        made.o = made.o._replace(**{name: arrays[name].copy() for name in ("w", *MOMENTS) if hasattr(made.o, name)})
        steps = facts["steps"]
        check_array("past", arrays["past"], kind, (REMEMBERED,), 0.0)
        check_array("last", arrays["last"], "int64", (features,), -1, steps)
        if ((arrays["last"] >= 0) & (arrays["last"] < steps - REMEMBERED)).any():
            raise ValueError("some weights have waited longer than steps are remembered")
        made.rates = Rates(arrays["past"].copy(), np.array([steps], np.int64), arrays["last"].copy(), made.rates.l2)
        made.inputs = Scaler.unpack("inputs", features, facts["centred"], facts["settled"], arrays)
        made.numbers = Scaler.unpack("numbers", 1, made.numbers.centred, facts["numbers_settled"], arrays)
        if "waiting.y" in arrays:
            made.waiting = made._unpack_waiting(arrays)
        return made

    def _unpack_waiting(self, arrays: dict[str, np.ndarray]) -> tuple[Any, np.ndarray, np.ndarray]:
        y, weight, kind = arrays["waiting.y"], arrays["waiting.weight"], self.design.dtype
        count = len(y) if y.ndim == 1 else 0
        if not 0 < count < self.design.batch:
            raise ValueError(f"{count} examples cannot wait for a batch of {self.design.batch}")
        classes = max(2, self.outputs)
        check_array("waiting.y", y, "float64", (count,), *((0, classes - 1, True) if self.classifies else ()))
        check_array("waiting.weight", weight, "float64", (count,), 0.0, HEAVIEST)
        if not self.sparse:
            check_array("waiting.rows", arrays["waiting.rows"], kind, (count, self.features))
            return arrays["waiting.rows"], y, weight
        data, indices, indptr = (arrays[f"waiting.{name}"] for name in ("data", "indices", "indptr"))
        check_array("waiting.data", data, kind, (len(data),))
        check_array("waiting.indices", indices, "int32 int64", (len(data),), 0, self.features - 1)
        check_array("waiting.indptr", indptr, "int32 int64", (count + 1,), 0, len(data))
        return without_duplicates(CSR(data, indices, indptr, (count, self.features))), y, weight


FACTS = ("sparse", "drawn_for", "validation")
CHECKED = {
    **dict.fromkeys(("sparse", "settled", "numbers_settled", "centred"), TRUTH),
    **dict.fromkeys(("outputs", "drawn_for", "steps"), COUNT),
    "validation": a_list(is_number, "numbers"),
}
