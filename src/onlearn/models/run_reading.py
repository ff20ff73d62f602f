"""Reading for a training run: rows of files become numbered features and targets, and unfit rows are refused.

The first rows decide about features, labels, learner and the number of passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.data import Batch, DataError
from onlearn.data.batch import Sentences, rows_in
from onlearn.engine.csr import CSR
from onlearn.engine.inputs import distinct, in_order, positions
from onlearn.errors import PlanError
from onlearn.features import Counts, Number, Text
from onlearn.features.roles import LOOK_AT
from onlearn.features.value_effects import CLASSES, indicators
from onlearn.models.evaluation import Observer, add_batches
from onlearn.models.model import Model, as_learner
from onlearn.models.plan import PASSES, Plan, default_learner
from onlearn.models.raw_rows import sound_rows
from onlearn.models.run_checks import (
    Namespaces,
    refuse_amounts,
    refuse_hashed,
    refuse_many_numbers,
    refuse_one_label,
    refuse_other_kind,
    unknown_columns,
    used_labels,
)
from onlearn.models.threshold_choice import check_threshold

if TYPE_CHECKING:
    from onlearn.models.passes import Passes
    from onlearn.models.run_report import RunReport

RUNNING = ("standard", "log-standard", "max-abs")  # scales that depend on all numbers of a column
Examples = tuple[Any, np.ndarray, np.ndarray | None]  # rows in numbered features, their targets, their weights


class Start(NamedTuple):
    """How a run starts: from nothing, from a model, or where an earlier part of the same run ended."""

    fresh: bool  # there is no model to continue
    from_first_row: bool  # the features are learned from the first row on; else the model has some already
    skip: int = 0  # examples that an earlier part of this run has learned from
    ended: int = 0  # passes that it has ended


class Reading:
    """The rows of a run, as ``examples`` reads them; ``rows`` counts them."""

    def __init__(
        self, plan: Plan, model: Model, bad: data.BadRows, start: Start, passes: Passes, report: RunReport
    ) -> None:
        self.plan: Plan = plan
        self.model: Model = model
        self.bad: data.BadRows = bad
        self.start: Start = start
        self.passes: Passes = passes
        self.report: RunReport = report
        self.reader: data.Reader | None = None
        self.rows: int = 0
        self.values: int = 0  # in the rows that are learned from, zeros left out
        self.learner: Any = model.learner  # what learns; decided by the first rows at the latest
        self.label_counts: np.ndarray = np.zeros(0, dtype=np.int64)  # in the order in which labels came
        self.feature_counts: Counts = Counts()  # for min_count
        self.namespaces: Namespaces = Namespaces()
        self._waiting: list[Batch] = []  # for the scales of numbers
        self.on_start: Callable[[], None] = lambda: None  # called when the first rows are read, before any is learned

    @property
    def examples_a_pass(self) -> int:
        """Examples that each pass learns from, about; at least 1."""
        return max(1, self.rows if not self.plan.holdout else int(self.rows * (1 - self.plan.holdout)))

    @property
    def majority(self) -> float | None:
        """The share of the most common label among the rows that are learned from."""
        return int(self.label_counts.max()) / int(self.label_counts.sum()) if self.label_counts.any() else None

    def examples(self) -> Iterator[Examples]:
        """Read the data."""
        model = self.model
        with self.open() if self.reader is None else self.reader as reader:
            self.reader = reader
            self._limit_row_cache(reader)
            for batch in reader:
                self.begin_with(batch)
                batch = self._without_held_out(batch)
                reader.after_parse = model.features.look_up
                if not len(batch):
                    continue
                if self._scales_first():
                    self._learn_features(batch)
                    continue
                yield from self._scaled()
                yield self._numbered(batch)
                if reader.bytes_total:
                    model.features.expect(reader.bytes_read / reader.bytes_total)
        yield from self._scaled()
        if not self.rows:
            raise DataError(f"none of the rows could be read; {self.bad.first()}")
        if model.features.kind_ is None:
            raise DataError("all rows are held out, so there is nothing to learn from")
        if model.features.n_features_out_ == 0:
            raise DataError("there are no features to learn from")

    def open(self) -> data.Reader:
        """A reader of the data."""
        plan = self.plan
        required: dict[str, Any] = {
            "id_required": self.start.fresh or "id" in plan.reading,
            "table_required": self.start.fresh or not plan.reading.keys().isdisjoint({"delimiter", "header"}),
        }
        return data.read(plan.sources, bad=self.bad, cache=plan.cache, **required, **self.reading_options())

    def reading_options(self) -> dict[str, Any]:
        """Options of ``onlearn.data.read``, as the model and the plan have them."""
        return {**self.model.reading, **self.plan.reading, "task": self.plan.task}

    def examples_of(self, reader: data.Reader, batches: Iterable[Batch], first: Batch) -> Iterator[Examples]:
        """Examples of some of the rows that a reader has read; the rows that came ``first`` decide as usual."""
        self.reader = reader
        self.begin_with(first)
        scales_first = self._waits_for_all(reader, first)
        for batch in batches:
            self.rows += len(batch)
            if scales_first and self._scales_first():
                self._learn_features(batch)
                continue
            yield from self._scaled()
            yield self._numbered(batch)
        yield from self._scaled()

    def _waits_for_all(self, reader: data.Reader, first: Batch) -> bool:
        """Whether a run over all that the reader has would read all rows before it learns from any."""
        if self.plan.min_count > 1 or self.learner.waits or self.learner.whole or self.learner._holds_out():
            return True
        small = reader.bytes_total is not None and reader.bytes_total < self.plan.small
        in_order = self.plan.task == "classify" and self.plan.labels is None and looks_sorted(first.codes)
        return self.passes.count > 1 and (small or in_order)

    def begin_with(self, batch: Batch) -> None:
        """Decide by the first rows, if these are the first."""
        if isinstance(batch.parsed, Sentences):
            raise DataError(f"{batch.file} holds tagged sentences: say task=tag to learn from those")
        if not self.rows and self.reader is not None:
            self._begin(self.reader, batch, self.reading_options())

    def held_out_batches(self) -> Iterator[Batch]:
        """The rows that are not learned from, read again."""
        for batch, held in self._read_again():
            if held.any():
                yield batch.take(np.flatnonzero(held))

    def add_held_out(self, evaluation: Any, observer: Observer | None = None) -> None:
        """Predict the rows that are not learned from, and add them to an evaluation."""
        add_batches(evaluation, self.model, self.held_out_batches(), observer=observer)

    def learned_batches(self) -> Generator[Batch, None, None]:
        """The rows that are learned from, read again."""
        for batch, held in self._read_again():
            if not held.all():
                yield batch.take(np.flatnonzero(~held)) if held.any() else batch

    def _read_again(self) -> Iterator[tuple[Batch, np.ndarray]]:
        """The batches of the data, read again, and which of their rows are held out."""
        row = 0
        with self.model.read(self.plan.sources, labels="required", bad=data.BadRows(limit=1.0)) as reader:
            for batch in reader:
                yield batch, held_out(row, len(batch), self.plan.holdout, self.plan.seed)
                row += len(batch)

    def _limit_row_cache(self, reader: data.Reader) -> None:
        """Write no parsed rows beside files that are small or are passed over once; kept rows are used all the same."""
        plan = self.plan
        usual = PASSES if plan.learner is None else as_learner(plan.learner).usual_passes or PASSES
        passes = (plan.passes or usual) if self.start.from_first_row else self.passes.count
        small = passes < 2 or (reader.bytes_total or 0) < plan.small
        if reader.kept is not None and plan.cache is True and small:
            reader.kept.writable = False

    def _without_held_out(self, batch: Batch) -> Batch:
        """Count the rows, and leave those out that are kept for testing."""
        start, self.rows = self.rows, self.rows + len(batch)
        if not self.plan.holdout:
            return batch
        return batch.take(np.flatnonzero(~held_out(start, len(batch), self.plan.holdout, self.plan.seed)))

    def _scales_first(self) -> bool:
        """Whether rows wait until the scales of all numbers are known, which those of a sorted file change a lot.

        Only if nothing is learned from before all rows are read anyway, and as long as there is memory for them.
        """
        given = self.model.features.extractors
        if not (self.passes.wait and self.start.from_first_row) or isinstance(given, str):
            return False
        scaled = any(isinstance(one, Number) and one.scale in RUNNING for one in given)
        texts = any(isinstance(one, Text) for one in given)  # which would take long to cut into words twice
        return scaled and not texts and sum(one.parsed.nbytes for one in self._waiting) <= self.plan.memory // 4

    def _learn_features(self, batch: Batch) -> None:
        """Learn names and scales of a batch, which waits for those of others."""
        refuse_other_kind(batch.file, batch.parsed, self.model.features, self.start.fresh)
        with naming_file(batch.file):
            self.model.features.learn(batch.parsed)
        self._waiting.append(batch)

    def _scaled(self) -> Iterator[Examples]:
        """The batches that waited, by the scales that are known now."""
        waiting, self._waiting = self._waiting, []
        for batch in waiting:
            yield self._numbered(batch, learn=False)

    def _numbered(self, batch: Batch, learn: bool = True) -> Examples:
        """A batch as examples; the features are learned, unless they have been."""
        model, rows = self.model, batch.parsed
        refuse_other_kind(batch.file, rows, model.features, self.start.fresh)
        rows = model.far.narrow(rows, learn=True) if isinstance(rows, CSR) else rows
        self.namespaces.add(rows, model.features)
        y = self._targets(batch)
        with naming_file(batch.file):
            X = model.features.learn_transform(rows, ordered=False) if learn else model.features.transform(rows)
        X = self._checked(X)
        self.values += X.nnz if isinstance(X, CSR) else 0
        if self.passes.wait and self.plan.min_count > 1:
            self.feature_counts.add(X, y if self.plan.per_class else None)
        return X, y, batch.weight

    def _checked(self, X: Any) -> Any:
        """Rows that the learner can take."""
        return sound_rows(X, self.learner)

    # ------------------------------------------------------------------ decisions by the first rows

    def _begin(self, reader: data.Reader, batch: Batch, options: dict[str, Any]) -> None:
        """Decide about features, labels, learner and passes by the first rows."""
        rows = batch.parsed
        self.plan.check_columns(rows, reader.found())
        if batch.groups is not None and not self.plan.certain and self.start.fresh:
            raise PlanError(
                "the rows have groups (qid): say task=rank to learn their order within each group, or task=classify or "
                "task=regress to learn from each row by itself"
            )
        if self.start.from_first_row:
            self._choose_features(batch, reader.found(), options)
            self._choose_passes(reader.bytes_total)
            self._choose_targets(batch)
            if self.start.fresh and not self.passes.wait:
                self.model.learner = self.make_learner(rows_in(rows))
        labels_to_come = self.start.from_first_row and self.passes.wait
        if not self.start.fresh and self.model.labels is not None and not labels_to_come:
            check_threshold(self.plan, self.model.labels, self.learner)
        if not self.start.fresh and (new := unknown_columns(self.model, rows)) is not None:
            self.report.notes.append(f"{batch.file}: {new}")
        self.on_start()

    def _choose_features(self, batch: Batch, found: dict[str, Any], options: dict[str, Any]) -> None:
        plan, model = self.plan, self.model
        named: dict[str, Any] = {
            role: found[role] for role in ("target", "weight", "group", "id") if role in found
        }  # not by position
        plan.taken = {str(column): role for role, column in named.items()}
        model.task, model.reading = plan.task, {**found, **options, **named}
        del model.reading["task"]
        if not self.start.fresh:
            model.features, model.far = model.features.unfitted(), model.far.unfitted()
            return
        model.features, notes = self._features(batch)
        self.report.notes += notes
        self.learner = self.choose_learner()

    def choose_learner(self) -> Any:
        """The learner that is given, or one that suits the features."""
        plan = self.plan
        return as_learner(plan.learner) or default_learner(plan.task, self.model.features, plan.choices)

    def _features(self, batch: Batch) -> tuple[Any, list[str]]:
        """Features for rows such as these, and notes about what was decided."""
        learner = as_learner(self.plan.learner)
        usual, linear = (None, True) if learner is None else (learner.usual_features, learner.is_linear)
        sample = sample_of(batch)
        rows = np.arange(min(len(batch), LOOK_AT)) if sample is None else sample
        targets = first_targets(batch, self.plan.task, rows)
        if targets is not None and self.plan.holdout:
            targets[held_out(0, len(batch), self.plan.holdout, self.plan.seed)[rows]] = np.nan
        return self.plan.features(batch.parsed, usual, targets, linear, sample)

    def _choose_passes(self, size: int | None) -> None:
        """The number of passes, which may rise when all rows are read, and whether to read all before learning."""
        self.passes.count = self.plan.passes or self.learner.usual_passes or PASSES
        if self.learner._holds_out():
            self.passes.wait = True  # rows are held out of all of them
        if self.passes.count > 1 and size is not None and size < self.plan.small:
            self.passes.wait = True  # the other passes need them in memory anyway, and then the width is known

    def _choose_targets(self, batch: Batch) -> None:
        plan, model, passes = self.plan, self.model, self.passes
        if plan.task == "classify":
            if self.start.fresh and plan.labels is None and not plan.certain:
                refuse_amounts(batch)
            names = in_order(distinct(batch.label_names or []))
            if plan.labels is None and passes.count > 1 and not passes.wait and looks_sorted(batch.codes):
                passes.wait = True
                self.report.notes.append("the labels come in an order, so all rows are read before any is learned from")
            elif self.start.fresh:
                model.labels = list(plan.labels or names)
        elif batch.y is not None and self.start.fresh:
            model.target = float(np.mean(batch.y)), float(np.std(batch.y)) or 1.0
        if passes.wait:
            model.labels = [] if plan.task == "classify" and plan.labels is None else plan.labels

    def make_learner(self, rows: int) -> Any:
        """The learner, ready for the labels that these first rows have."""
        classes = self.model.labels or []
        if self.plan.task == "classify":
            refuse_one_label(classes, rows, self.plan.holdout > 0)
            check_threshold(self.plan, classes, self.learner)
        seed = {"random_state": self.plan.seed} if "random_state" in self.learner.composition.parameters else {}
        return self.learner.set_params(**seed, **self._settings(len(classes)))

    def _settings(self, classes: int) -> dict[str, Any]:
        """Parameters of the learner that the run decides."""
        parameters = self.learner.composition.parameters
        grow = {"grow": "features" if classes == 2 else True} if "grow" in parameters else {}
        return {**grow, **({"progressive": True} if "progressive" in parameters else {})}

    # ------------------------------------------------------------------ targets

    def _targets(self, batch: Batch) -> np.ndarray:
        """The numbers of the labels, which may be new ones; in regression the scaled target."""
        model = self.model
        if model.labels is None:
            return (np.asarray(batch.y, dtype=np.float64) - model.target[0]) / model.target[1]
        names = batch.label_names or []
        if self.plan.labels is None and self._takes_labels():
            self._add_labels(model.labels, names, used_labels(batch))
        numbers = np.array([*positions(names, model.labels, dots=False), -1], dtype=np.int64)
        codes = numbers[batch.codes] if batch.codes is not None else np.full(len(batch), -1)
        if codes.min(initial=0) < 0:
            row = int(np.argmin(codes))
            label = batch.y[row] if batch.y is not None else None
            advice = "name all labels with classes=" if self.start.fresh else "the model has decided them: train anew"
            raise DataError(
                f"{batch.file}, line {batch.lines[row]}: the label {label!r} is not one of the labels seen before "
                f"({', '.join(model.labels[:10])}); {advice}"
            )
        counts = np.bincount(codes, minlength=len(self.label_counts))
        counts[: len(self.label_counts)] += self.label_counts
        self.label_counts = counts
        return codes

    def _takes_labels(self) -> bool:
        """Whether new labels are added: none is learned from yet, or the learner takes new classes."""
        waiting = self.passes.wait and self.start.from_first_row
        return waiting or self.model.learner.takes_classes()

    def _add_labels(self, labels: list[str], names: list[str], used: list[int]) -> None:
        places = positions(names, labels, dots=False)
        new = distinct([names[k] for k in used if places[k] < 0])
        labels += new
        if new and self.start.fresh and not self.plan.certain:
            refuse_many_numbers(labels)

    def sort_labels(self) -> np.ndarray:
        """Put the labels in order when all are known; the new number of each."""
        model = self.model
        if model.labels is None or self.plan.labels is not None or not self.start.from_first_row:
            return np.arange(len(model.labels or ()))
        names = in_order(model.labels)
        places = {name: place for place, name in enumerate(names)}
        numbers = np.array([places[name] for name in model.labels], dtype=np.int64)
        model.labels = names
        return numbers

    def drop_rare_features(self) -> np.ndarray:
        """Keep the features that are in at least ``min_count`` rows; the new number of each, -1 for those dropped."""
        plan, features = self.plan, self.model.features
        frequent = self.feature_counts.often(plan.min_count, plan.per_class)
        before = features.n_features_out_
        refuse_hashed(features, "min_count")
        if not len(frequent):
            rows = "rows of one class" if plan.per_class else "rows"
            raise PlanError(f"there are no features that are in {plan.min_count} {rows}: choose a smaller min_count=")
        rows = "rows of every class" if plan.per_class else "rows"
        columns = features.keep(frequent)
        numbers = np.full(before, -1, dtype=np.int64)
        numbers[columns] = np.arange(len(columns))
        self.report.notes.append(
            f"{before - len(columns):,} of {before:,} features are in fewer than {plan.min_count} {rows}: left out"
        )
        return numbers


@contextmanager
def naming_file(file: str) -> Iterator[None]:
    """Name the file of rows of a wrong type, such as lists in a column of numbers, or with a text in one."""
    try:
        yield
    except (DataError, PlanError):
        raise
    except (TypeError, ValueError) as error:
        raise DataError(f"{file} cannot be used with this model: {error}") from error


def sample_of(batch: Batch) -> np.ndarray | None:
    """Rows from all over a batch, if labels come in order: the roles of columns are guessed by their targets.

    None: by those of the first rows.
    """
    if len(batch) <= LOOK_AT or not looks_sorted(batch.codes):
        return None
    return np.linspace(0, len(batch) - 1, LOOK_AT).astype(np.int64)


def first_targets(batch: Batch, task: str, rows: np.ndarray) -> np.ndarray | None:
    """The targets of these rows, by which the roles of columns are guessed; None if some are unknown."""
    if task in ("regress", "rank"):
        return None if batch.y is None else np.asarray(batch.y, dtype=np.float64)[rows][:, None]
    codes = None if batch.codes is None else batch.codes[rows] + int(task == "multilabel")  # a set may be empty
    return None if codes is None or not len(codes) or codes.min() < 0 else indicators(codes)


def set_indicators(codes: np.ndarray, sets: list[tuple[str, ...]]) -> np.ndarray:
    """One column of 0 and 1 for each of the most common labels, of rows that may have several."""
    names = [*sets, ()]  # code -1: no label
    rows = [names[code] for code in codes.tolist()]
    counts = Counter(label for labels in rows for label in labels)
    common = [label for label, _ in counts.most_common(CLASSES)]
    return np.array([[label in labels for label in common] for labels in rows], dtype=np.float64).reshape(len(rows), -1)


def held_out(start: int, count: int, part: float, seed: int) -> np.ndarray:
    """Which of the rows from ``start`` on are kept for testing: chosen by their number, the same ones in every pass."""
    numbers = np.arange(start, start + count, dtype=np.uint64)
    numbers += np.uint64(seed * 0x517CC1B727220A95 % 2**64)
    for factor in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93):
        numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(factor)
    return (numbers >> np.uint64(32)).astype(np.float64) < part * 2.0**32


def looks_sorted(codes: np.ndarray | None) -> bool:
    """Whether labels change much more seldom from row to row than by chance."""
    if codes is None or len(codes) < 2:
        return False
    share = np.bincount(codes + 1) / len(codes)
    by_chance = (len(codes) - 1) * (1 - float(share @ share))
    return int(np.count_nonzero(np.diff(codes))) < 0.5 * by_chance - 3 or len(np.unique(codes)) == 1
