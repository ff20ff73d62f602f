"""Learning from files: one pass as the rows are read, further passes over what was kept of them.

An unfinished run can be taken up again. Everything about a run is decided by its plan and seed, so it is run anew from
the start, but for the learning of the examples that the learner has learned from already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data.batch import Sentences, rows_in
from onlearn.data.cache import Cache
from onlearn.engine.csr import CSR, all_finite, check_positive, select, stacked, without_duplicates
from onlearn.engine.labels import distinct, in_order, positions
from onlearn.engine.loops import SEEN
from onlearn.errors import PlanError
from onlearn.features import Counts
from onlearn.features.feature_map import MATRIX
from onlearn.features.vocabulary import prune_weights
from onlearn.models import run_checks
from onlearn.models.far_indices import Behind
from onlearn.models.model import Model, as_learner, name_of
from onlearn.models.plan import MOST, PASSES, Plan, default_learner, default_passes
from onlearn.models.run_checks import Namespaces, held_out, looks_sorted, refuse_other_kind, unknown_columns
from onlearn.models.run_report import Telling, Watch, go_back, keep_or_not, remember, unfinished
from onlearn.models.train_options import BITS

# ----------------------------------------------------------------------------------------------------
# Features that a run leaves out: rare ones before it learns, those with small weights after it.


def leave_out_rare(features: Any, often: np.ndarray, min_count: int, per_class: bool) -> tuple[np.ndarray, str]:
    """Keep the features that are in enough rows; returns the new number of each (-1: none), and a note about it."""
    before = features.n_features_out_
    _refuse_hashed(features, "min_count")
    if not len(often):
        rows = "rows of one class" if per_class else "rows"
        raise PlanError(f"there are no features that are in {min_count} {rows}: choose a smaller min_count=")
    rows = "rows of every class" if per_class else "rows"
    columns = features.keep(often)
    kept = np.full(before, -1, dtype=np.int64)
    kept[columns] = np.arange(len(columns))
    return kept, f"{before - len(columns):,} of {before:,} features are in fewer than {min_count} {rows}: left out"


def let_go_of_small(model: Any, size: float) -> str:
    """Have a model forget the features that weigh no more than ``size``; returns a note about it."""
    before = model.features.n_features_out_
    _refuse_hashed(model.features, "prune_weights")
    kept = prune_weights(model.features, model.weights()[0], size)
    if not len(kept):
        raise PlanError(f"no feature weighs more than {size:g}: choose a smaller prune_weights=")
    model.learner.keep_features(kept)
    return f"{before - len(kept):,} of {before:,} features weigh no more than {size:g}: let go"


def _refuse_hashed(features: Any, parameter: str) -> None:
    if features.vocabulary_.state == "hash":
        raise PlanError(f"{parameter}= cannot tell features apart that share a weight: raise max_names=")


def sound_rows(X: CSR, learner: Any) -> CSR:
    """The matrix without duplicates and infinities; what the learner cannot take is refused."""
    X = without_duplicates(X)
    if not all_finite(X.data):  # a number too large for the matrix: as large as it can be
        most = np.finfo(X.dtype).max
        X = replace(X, data=np.clip(X.data, -most, most))
    X = replace(X, finite=True)
    if learner.choices["geometry"].positive_only:
        check_positive(X, name_of(learner))
    return X


def learn_from(model: Model, X: CSR, y: np.ndarray, weight: Any) -> None:
    """Have the learner of a model learn from rows, in their order; new features and classes are taken in."""
    learner, labels = model.learner, model.labels
    if learner.training is not None:
        learner.take_in(X.shape[1], len(labels or ()))
        learner.partial_fit(X, y, sample_weight=weight)
    else:
        first = {} if labels is None else {"classes": np.arange(len(labels))}
        learner.partial_fit(X, y, sample_weight=weight, **first)


def in_one_batch(batches: list[Any]) -> list[Any]:
    """Batches of rows, labels and weights as one batch, so that the order is one over all rows."""
    rows, labels, weights = zip(*batches)
    return [(stacked(rows), np.concatenate(labels), None if weights[0] is None else np.concatenate(weights))]


EVERY = 1 << 16  # examples between two looks at the clock and the keyboard


class Run(Telling):
    """One training run; ``go`` does it. Whatever stops it, ``model`` is what was learned until then."""

    def __init__(self, plan: Plan, model: Model | None = None, bad: data.BadRows | None = None) -> None:
        self.plan = plan
        self.model = Model() if model is None else model
        self.model.learner = as_learner(self.model.learner)
        self.bad = data.BadRows() if bad is None else bad
        self.notes: list[str] = []
        before = {} if model is None else model.trained
        self.decided = before.get("decided", before.get("notes", []))  # when the model began
        self.warnings: list[str] = []
        self.namespaces = Namespaces()
        self.began = perf_counter()
        self.rows = 0  # of this run's data
        self.learned = 0  # examples in this run
        self.skip = 0  # examples that an earlier part of this run has learned from
        self.reader: data.Reader | None = None
        self.fresh = model is None
        self.chosen: Any = self.model.learner  # what learns; by the first rows at the latest
        if self.fresh:
            self.model.far = Behind(plan.bits)
        self.passes = plan.passes or 1
        self.ended = self.ended_before = 0  # passes of this run, and those of its earlier part
        resumed = model is not None and unfinished(model, plan.sources)
        if model is not None and resumed:
            self.skip, self.ended_before = int(model.trained["unfinished"]), int(model.trained["ended"])
            for name, value in model.trained["plan"].items():
                setattr(plan, name, value)
            self.notes.append(f"the model is of an unfinished run; going on after its {self.skip:,} examples")
            self.passes = plan.passes or 1
        elif model is not None:
            if model.trained.get("unfinished") is not None:
                self.notes.append("the model is of an unfinished run over other data, which is not gone on with")
            if model.learner.n_seen_ > model.learner.training.since[SEEN]:
                model.learner.end_pass()  # that was cut short, or it would run on in this run's first
            remember(model)
        self.passes_before = len(self._history()) - self.ended_before
        # features are learned from the start
        self.anew = model is None or (resumed and not go_back(model))
        self.waits = self.anew and plan.min_count > 1  # until all rows are read, before any is learned from
        self.counts = Counts()
        self.kept: np.ndarray | None = None  # the new numbers of features, after pruning
        self.order: np.ndarray | None = None  # the new numbers of labels, once all are known
        self.batches: list[Any] | None = None
        self.tally_before = None if self.fresh else self.model.learner.training.tally.copy()
        self.lesson = EVERY  # examples learned from at a time
        self.label_counts = np.zeros(0, dtype=np.int64)  # rows of each label, in the order in which labels came
        self.learning = False  # inside compiled code, which Ctrl-C must not leave
        self.stop = False  # when that is over

    def interrupt(self) -> None:
        """Ctrl-C: stop at once, or as soon as what is being learned is learned. The second time it is at once."""
        if not self.learning or self.stop:
            raise KeyboardInterrupt
        self.stop = True

    # ------------------------------------------------------------------ the run

    def go(
        self,
        watch: Watch | None = None,
        checkpoint: Callable[[], None] | None = None,
        every: int = 0,
        on_decided: Callable[[list[str], str], None] | None = None,
    ) -> Model:
        """Learn; ``checkpoint`` is called every so many examples, when the model is fit to be saved.

        ``on_decided`` is called once, before anything is learned, with notes about the data and a
        sentence about the learner.
        """
        self.watch, self.checkpoint, self.every, self.next = watch, checkpoint, every, every
        self.on_decided = on_decided
        try:
            with self._rows_kept() as cache:
                examples = values = 0
                for X, y, weight in self._first_reading():
                    examples += len(y)
                    values += X.nnz if isinstance(X, CSR) else 0
                    if not self.waits:
                        self._learn(X, y, weight, None, 0)
                    elif self.plan.min_count > 1:
                        self.counts.add(X, y if self.plan.per_class else None)
                    if self.passes > 1 or self.waits:
                        cache.append(X, y, weight)
                cache.finish()
                if self.model.features.n_features_out_ == 0:
                    raise data.DataError("there are no features to learn from")
                if self.anew and self.plan.passes is None:
                    self.passes = default_passes(self.chosen, self.model.features, examples, values)
                if self.waits:
                    self._begin_late(cache)
                else:
                    self._end_of_pass(0)
                for turn in range(0 if self.waits else 1, self.passes):
                    for X, y, weight, order in self._shuffled(cache, turn):
                        self._learn(X, y, weight, order, turn)
                    self._end_of_pass(turn)
            self._finish()
        except BaseException:
            self._tell(max(self.learned, self.skip))
            raise
        return self.model

    def _rows_kept(self) -> Any:
        """Where rows are kept for later passes."""
        return Cache(memory=self.plan.memory)

    def _first_reading(self) -> Iterator[tuple[Any, np.ndarray, np.ndarray | None]]:
        """The data as they are read, as numbered features and targets."""
        plan, model = self.plan, self.model
        options = {**model.reading, **plan.reading, "task": plan.task}
        asked_id = self.fresh or "id" in plan.reading
        asked_table = self.fresh or not plan.reading.keys().isdisjoint({"delimiter", "header"})
        required: dict[str, Any] = {"id_required": asked_id, "table_required": asked_table}
        with data.read(plan.sources, bad=self.bad, cache=plan.cache, **required, **options) as reader:
            self.reader = reader
            keep_or_not(reader, plan, (plan.passes or PASSES) if self.anew else self.passes)
            for batch in reader:
                rows = batch.parsed
                if isinstance(rows, Sentences):
                    raise data.DataError(f"{batch.file} holds tagged sentences, and no learner here learns from those")
                if self.rows == 0:
                    plan.check_columns(rows, reader.found())
                if self.rows == 0 and self.anew:
                    self._begin(batch, rows, options)
                if self.rows == 0 and not self.fresh and (new := unknown_columns(model, rows)) is not None:
                    self.notes.append(f"{batch.file}: {new}")
                if self.rows == 0 and self.on_decided is not None:
                    self.on_decided([*reader.notes, *self.notes], self._learning())
                held = held_out(self.rows, len(batch), plan.holdout, plan.seed) if plan.holdout else None
                self.rows += len(batch)
                if held is not None:
                    taught = np.flatnonzero(~held)
                    batch = batch.take(taught)
                    rows = batch.parsed
                reader.after_parse = model.features.look_up
                if len(batch):
                    refuse_other_kind(batch.file, rows, model.features, self.fresh)
                    rows = model.far.narrow(rows, learn=True) if isinstance(rows, CSR) else rows
                    self.namespaces.meet(rows, model.features)
                    y = self._targets(batch)
                    try:
                        X = model.features.learn_transform(rows, ordered=False)
                    except TypeError as error:  # such as lists in a column of numbers
                        raise data.DataError(f"{batch.file} cannot be used with this model: {error}") from error
                    yield self._sound(X), y, batch.weight
                    if reader.bytes_total:
                        model.features.expect(reader.bytes_read / reader.bytes_total)
        if not self.rows:
            raise data.DataError(f"none of the rows could be read; {self.bad.first()}")
        if model.features.kind_ is None:
            raise data.DataError("all rows are held out, so there is nothing to learn from")

    def _sound(self, X: Any) -> Any:
        return sound_rows(X, self.chosen)

    def _begin(self, batch: data.Batch, rows: Any, options: dict[str, Any]) -> None:
        """Decide about features, labels and learner by the first rows."""
        plan, model = self.plan, self.model
        found = self.reader.found() if self.reader is not None else {}
        named: dict[str, Any] = {
            role: found[role] for role in ("target", "weight", "id") if role in found
        }  # not by position
        plan.taken = {str(column): role for role, column in named.items()}
        model.task, model.reading = plan.task, {**found, **options, **named}
        del model.reading["task"]
        if self.fresh:
            model.features, decided = self._features(rows)
            self.notes += decided
            self.chosen = as_learner(plan.learner) or default_learner(plan.task, model.features, plan.choices)
        else:
            model.features, model.far = model.features.unfitted(), model.far.afresh()
        self.passes = plan.passes or PASSES  # or more, when all rows are read
        size = self.reader.bytes_total if self.reader is not None else None
        if self.passes > 1 and size is not None and size < plan.small:
            self.waits = True  # they will be in memory for the other passes anyway; then the width is known
        if plan.task == "classify":
            if self.fresh and plan.labels is None and not plan.certain:
                run_checks.refuse_amounts(batch)
            names = in_order(distinct(batch.label_names or []))
            if plan.labels is None and self.passes > 1 and not self.waits and looks_sorted(batch.codes):
                self.waits = True
                self.notes.append("the labels come in an order, so all rows are read before any is learned from")
            elif self.fresh:
                model.labels = list(plan.labels or names)
        elif batch.y is not None and self.fresh:
            model.target = float(np.mean(batch.y)), float(np.std(batch.y)) or 1.0
        if self.waits:
            self.sample = rows
            model.labels = [] if plan.task == "classify" and plan.labels is None else plan.labels
        elif self.fresh:
            model.learner = self._learner(rows)

    def _learning(self) -> str:
        """What learns, and how often, as far as that is known before all rows are read."""
        passes = f"{self.passes} pass{'es' if self.passes > 1 else ''}"
        if self.anew and self.plan.passes is None and default_passes(self.chosen, self.model.features, 1, 1) > PASSES:
            passes = f"{PASSES} to {MOST} passes, by the number of rows"
        what = " ".join(repr(self.chosen).split())
        return f"{'classification' if self.plan.task == 'classify' else 'regression'} by {what}, {passes}"

    @property
    def majority(self) -> float | None:
        """The share of the most common label among the rows that were learned from."""
        return int(self.label_counts.max()) / int(self.label_counts.sum()) if self.label_counts.any() else None

    def _features(self, rows: Any) -> tuple[Any, list[str]]:
        """Features for rows such as these, and what was decided about them."""
        return self.plan.features(rows)

    def _learner(self, rows: Any) -> Any:
        """The learner that was asked for, or that suits the rows."""
        plan, model = self.plan, self.model
        classes = len(model.labels or ())
        if plan.task == "classify":
            run_checks.refuse_one(model.labels or [], self.rows or rows_in(rows), plan.holdout > 0)
        return self.chosen.set_params(random_state=plan.seed, **self._settings(classes))

    def _settings(self, classes: int) -> dict[str, Any]:
        """What the run decides about its learner."""
        return {"grow": "features" if classes == 2 else True}

    def _begin_late(self, cache: Cache) -> None:
        """All rows have been read, and none learned from."""
        model, plan = self.model, self.plan
        self.order = np.arange(len(model.labels or ()))
        if model.labels is not None and plan.labels is None and self.anew:
            names = in_order(model.labels)
            places = {name: place for place, name in enumerate(names)}
            self.order = np.array([places[name] for name in model.labels], dtype=np.int64)
            model.labels = names
        if plan.min_count > 1:
            often = self.counts.often(plan.min_count, plan.per_class)
            self.kept, note = leave_out_rare(model.features, often, plan.min_count, plan.per_class)
            self.notes.append(note)
        if self.fresh:
            model.learner = self._learner(self.sample)
            counts = np.zeros(len(model.labels or ()))
            for _, y, weight in cache if model.labels is not None else ():
                counts += np.bincount(self.order[y], weights=weight, minlength=len(counts))
            model.learner.start(model.features.n_features_out_, counts, model.features.dtype)

    def _targets(self, batch: data.Batch) -> np.ndarray:
        model = self.model
        if model.labels is None:
            return (np.asarray(batch.y, dtype=np.float64) - model.target[0]) / model.target[1]
        names = batch.label_names or []
        if self.plan.labels is None and ((self.waits and self.anew) or model.learner.settings.grow is True):
            met = set(run_checks.met(batch))
            places = positions(names, model.labels, dots=False)
            new = distinct([name for k, name in enumerate(names) if places[k] < 0 and k in met])
            model.labels += new
            if new and self.fresh and not self.plan.certain:
                run_checks.refuse_many_numbers(model.labels)
        table = np.array([*positions(names, model.labels, dots=False), -1], dtype=np.int64)
        codes = table[batch.codes] if batch.codes is not None else np.full(len(batch), -1)
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            label = batch.y[row] if batch.y is not None else None
            advice = "name all labels with classes=" if self.fresh else "the model has decided them: train anew"
            raise data.DataError(
                f"{batch.file}, line {batch.lines[row]}: the label {label!r} is not one of the labels seen before "
                f"({', '.join(model.labels[:10])}); {advice}"
            )
        counts = np.bincount(codes, minlength=len(self.label_counts))
        counts[: len(self.label_counts)] += self.label_counts
        self.label_counts = counts
        return codes

    # ------------------------------------------------------------------ learning

    def _learn(self, X: Any, y: np.ndarray, weight: Any, order: np.ndarray | None, turn: int) -> None:
        """Learn from rows in the given order, or as they are read, but for those that were learned from before."""
        read = order is None
        order = np.arange(X.shape[0]) if order is None else order
        passed = min(max(self.skip - self.learned, 0), len(order))
        self.learned += passed
        order = order[passed:]
        while len(order):
            while self.every and self.next <= self.learned:
                self.next += self.every
            size = self._lesson()
            part, order = order[:size], order[size:]
            self.learning = True
            if read:
                rows = slice(int(part[0]), int(part[-1]) + 1)
                some = X if len(part) == X.shape[0] else X.between(rows.start, rows.stop)
                learn_from(self.model, some, y[rows], None if weight is None else weight[rows])
            else:
                self.model.learner.learn_rows(X, y, weight, part, first=turn == 0)
            self.learned += len(part)
            self.learning = False
            if self.stop:
                raise KeyboardInterrupt
            self._report(turn)
            if self.every and self.learned >= self.next and self.checkpoint is not None:
                self._tell(self.learned)
                self.checkpoint()

    def _lesson(self) -> int:
        """How many examples are learned from next, at most."""
        return min(self.lesson, self.next - self.learned) if self.every else self.lesson

    def _end_of_pass(self, turn: int) -> None:
        learner, told = self.model.learner, self.model.trained
        self.ended += 1
        if self.ended <= self.ended_before:  # it was over already when the run was left off
            return
        learner.end_pass()
        if turn == 0 and self.passes > 1:
            told["first_size"] = learner.training.size()

    def _shuffled(self, cache: Cache, turn: int) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """What was kept, in an order of this pass's own: batches, and rows within each."""
        width = self.model.features.n_features_out_
        rng = np.random.default_rng([self.plan.seed, turn])
        if self.batches is None:
            self.batches = list(cache)
            if len(self.batches) > 1 and cache.nbytes <= self.plan.memory:
                self.batches = in_one_batch(self.batches)
        for place in rng.permutation(len(self.batches)):
            X, y, weight = self.batches[place]
            X = X.of_width(width) if self.kept is None else select(X, self.kept, width)
            y = y if self.order is None or self.model.labels is None else self.order[y]
            yield X, y, weight, rng.permutation(X.shape[0])

    def held_out_batches(self) -> Iterator[data.Batch]:
        """The rows that were not learned from, read again."""
        row = 0
        for batch in self.model.read(self.plan.sources, labels="required", bad=data.BadRows(limit=1.0)):
            held = np.flatnonzero(held_out(row, len(batch), self.plan.holdout, self.plan.seed))
            row += len(batch)
            if len(held):
                yield batch.take(held)

    # ------------------------------------------------------------------ the end

    def _finish(self) -> None:
        model, size = self.model, self.plan.prune_weights
        first = model.trained.pop("first_size", 0.0)
        if self.passes > 1 and first:  # scores kept for calibration are of the first pass, when weights were smaller
            training = model.learner.training
            training.rescale_audit(training.size() / first)
        if not model.learner.n_seen_:
            raise data.DataError("every row has weight 0, so nothing was learned")
        if size > 0:
            self.notes.append(let_go_of_small(model, size))
        self.warnings += self.namespaces.lacking(model.features) if self.anew else []
        told = model.far.note()
        self.notes += [told] if told is not None else []
        if self.fresh and told is None and model.features.kind_ == MATRIX and self.plan.bits != BITS:
            self.warnings.append("bits= has no use here: each index has a weight of its own")
        model.before = None
        self._tell(None)
