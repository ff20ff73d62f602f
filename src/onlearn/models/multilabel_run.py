"""Training runs over files whose rows have several labels, and how such files are told from others."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.data.formats.json_spans import parsed_line
from onlearn.data.registry import EXTENSIONS, readers, sniff
from onlearn.data.sources import Source, Stream, first_lines, sources
from onlearn.data.table_roles import is_list, usual_target
from onlearn.engine import reserve
from onlearn.engine.csr import rows_at
from onlearn.engine.inputs import distinct, in_order, positions
from onlearn.engine.learner import Learner
from onlearn.engine.multilabel import LabelSets, MultilabelLearner, member_of
from onlearn.errors import PlanError
from onlearn.models.multilabel import MULTILABEL, add_labels, multilabel_learner
from onlearn.models.passes import Passes
from onlearn.models.plan import PASSES, takes_more_passes
from onlearn.models.run import Run
from onlearn.models.run_reading import Reading
from onlearn.models.threshold_choice import check_threshold
from onlearn.models.train_options import TrainOptions, as_list
from onlearn.models.trial import RATES, choose


class MultilabelReading(Reading):
    """Rows with the numbers of their label sets; set 0 is the empty one, and set n + 1 the reader's n-th."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sets: LabelSets = LabelSets()
        self._share_sets()

    def _share_sets(self) -> None:
        """The learner takes the sets of this run."""
        if isinstance(self.model.learner, MultilabelLearner):
            self.model.learner.sets = self.sets

    def choose_learner(self) -> Any:
        """The learner that is given, or one that suits the features, for each label."""
        try:
            member = member_of(super().choose_learner())
        except (TypeError, ValueError) as error:
            raise PlanError(str(error), "learner") from None
        if member._holds_out():
            raise PlanError(
                f"no rows are held out with task={MULTILABEL}: say online in place of holdout", "calibration"
            )
        return multilabel_learner(member, grow=self.plan.labels is None)

    def _choose_targets(self, batch: Batch) -> None:
        if self.start.fresh and (hint := separator_hint(batch.label_sets or [])) is not None:
            self.report.notes.append(hint)
        if self.start.fresh:
            names = sorted({label for one in batch.label_sets or () for label in one})
            self.model.labels = list(self.plan.labels or in_order(distinct(names)))
        if self.passes.wait:
            self.model.labels = list(self.plan.labels or [])

    def make_learner(self, rows: int) -> Any:
        """The learner, ready for the labels that these first rows have."""
        if not self.model.labels:
            raise DataError(f"none of the first {rows} rows has a label: name all labels with classes=")
        check_threshold(self.plan, self.model.labels, self.learner)
        made = self.learner.set_params(random_state=self.plan.seed)
        made.sets = self.sets
        return made

    def _targets(self, batch: Batch) -> np.ndarray:
        """The numbers of the label sets, whose labels may be new ones."""
        labels, sets = self.model.labels, batch.label_sets
        if batch.codes is None or sets is None or labels is None:
            return np.zeros(len(batch), dtype=np.int64)
        self._share_sets()
        for one in sets[len(self.sets) - 1 :]:
            if self.plan.labels is None and self._takes_labels():
                add_labels(labels, list(one))
            places = positions(list(one), labels, dots=False)
            if -1 in places:
                row = int(np.argmax(batch.codes == len(self.sets) - 1))
                advice = "name all labels with classes=" if self.start.fresh else "the model has decided them"
                raise DataError(
                    f"{batch.file}, line {batch.lines[row]}: the label {one[places.index(-1)]!r} is not one of the "
                    f"labels known ({', '.join(labels[:10])}); {advice}"
                )
            self.sets.append(sorted(set(places)))
        return batch.codes + 1

    def sort_labels(self) -> np.ndarray:
        """Put the labels in order when all are known; the numbers of sets stay as they are."""
        model = self.model
        if self.plan.labels is None and self.start.from_first_row and model.labels is not None:
            names = in_order(model.labels)
            places = {name: n for n, name in enumerate(names)}
            numbers = np.array([places[name] for name in model.labels], dtype=np.int64)
            self.sets.sets[:] = self.sets.renumbered(numbers).sets
            model.labels = names
        return np.arange(len(self.sets))


class MultilabelPasses(Passes):
    """Passes that keep rows back for calibration, which the learner of every label scores."""

    def _keeps_back(self) -> bool:
        learner = self.model.learner
        return self.count > 1 and isinstance(learner, MultilabelLearner) and learner.member.keeps_back()

    def _held_out_share(self) -> None:
        return None

    def keep_back(self, rows: Any) -> None:
        """Choose the rows to keep back, however rare their sets of labels are."""
        if self._keeps_back():
            batches = self._all_batches(rows)
            kept = reserve.in_the_end(sum(len(y) for _, y, _ in batches))
            weights = [np.ones(len(y)) if weight is None else weight for _, y, weight in batches]
            self._kept = kept[np.concatenate(weights)[kept] > 0]

    def _learn_kept(self, turn: int) -> None:
        assert self._kept is not None
        assert self._batches is not None
        learner, lessons = self.model.learner, self.lessons
        parts = list(self._rows_at(self._batches, self._kept))
        if parts and lessons.skip <= lessons.learned:  # else an earlier part of this run has scored them
            learner.take_reserve([(rows_at(X, order), y[order]) for X, y, _, order in parts])
        for X, y, weight, order in parts:
            lessons.learn(X, y, weight, order, turn)


class MultilabelRun(Run):
    """A run whose targets are numbers of label sets."""

    reading_type = MultilabelReading
    passes_type = MultilabelPasses
    reading: MultilabelReading

    def _class_counts(self, rows: Any, numbers: np.ndarray) -> np.ndarray:
        """The weight of all rows, and of those with each label."""
        labels = len(self.model.labels or ())
        counts = np.zeros(labels + 1)
        for _, y, weight in rows:
            truth = self.reading.sets.indicator(y, labels)
            weights = np.ones(len(y)) if weight is None else weight
            counts += np.concatenate([[weights.sum()], weights @ truth])
        return counts

    def _try_passes(self, rows: Any) -> None:
        """Choose passes and rate, as for one label, by the label that tells most: the one nearest to half the rows."""
        plan, model, most = self.plan, self.model, self.passes.count
        learner, labels = model.learner, len(model.labels or ())
        member = learner.member
        tried = self.start.fresh and plan.passes is None and takes_more_passes(member, model.features)
        if not tried or most <= PASSES:
            return
        X, codes, weight = self.passes.numbered(rows)
        truth = self.reading.sets.indicator(codes, labels)
        y = truth[:, int(np.argmin(np.abs(truth.mean(axis=0) - 0.5)))].astype(np.int64)
        usual, free = member.choices["geometry"], plan.learner is None and "geometry" not in plan.choices

        def spelled(rate: float) -> dict[str, Any]:
            changed = {"geometry": type(usual)(**{**usual.get_params(), "rate": rate})} if free else {}
            return {**member.get_params(), "random_state": plan.seed, **changed}

        def make(rate: float) -> Any:
            made = Learner(member.name, **spelled(rate))
            made._start(model.features.n_features_out_, np.bincount(y, minlength=2), model.features.dtype)
            return made

        found = choose(make, (X, y, weight), usual.rate, most, plan.seed, RATES if free else ())
        if found is None:
            return
        if found.rate != usual.rate:
            given = Learner(member.name, **{**spelled(found.rate), "random_state": None})
            model.learner = self.reading.learner = learner.renewed().set_params(learner=given)
            model.learner.sets = self.reading.sets
            counts = self._class_counts(rows, np.arange(len(self.reading.sets)))
            model.learner._start(model.features.n_features_out_, counts, model.features.dtype)
        plan.passes = self.passes.count = found.passes
        rate = f"the rate {found.rate:g} and " if free else ""
        self.report.notes.append(f"{rate}{found.passes} passes do best on rows held out for a trial")

    def _finish(self) -> None:
        super()._finish()
        self.model.learner.sets = LabelSets()  # of this run


def separator_hint(sets: list[tuple[str, ...]]) -> str | None:
    """A sentence if no row has several labels, but many labels look like several; None otherwise.

    >>> separator_hint([("a;b",), ("a",), ("b;c",)])
    "no row has several labels: say label_separator= if those such as 'a;b' are several"
    """
    if any(len(one) > 1 for one in sets):
        return None
    labels = [one[0] for one in sets if one]
    for separator in (";", "|", ","):
        several = [label for label in labels if separator in label]
        if len(several) > len(labels) / 4:
            return f"no row has several labels: say label_separator= if those such as {several[0]!r} are several"
    return None


# ---------------------------------------------------------------------- which files have several labels a row

FEW = 200  # lines
SEVERAL = re.compile(rb"\s*__label__\S+\s+__label__")
NUMBERS = re.compile(rb"\s*\d+(,\d+)+(\s|$)")  # 1,3 5:0.2 or 1,3 | a b


def several_labels(options: TrainOptions) -> str | None:
    """Why the rows of the first file are taken to have several labels, if the task is left open; None: they have one.

    The first lines tell: several ``__label__``, a list in the target, or numbers with commas between. Standard
    input is not looked at.
    """
    if options.task is not None or options.resume:
        return None
    if options.label_separator is not None:
        return "there is a separator of labels"
    try:
        first = sources(as_list(options.sources))[0]
        if first.path is None or not first.path.is_file():
            return None
        stream = Stream(first)
        try:
            return _why_several(stream, first, options)
        finally:
            stream.close()
    except (DataError, OSError, ValueError):  # the reader says what is wrong with it
        return None


def _why_several(stream: Stream, source: Source, options: TrainOptions) -> str | None:
    readers()  # which fills EXTENSIONS
    format = options.format or next((EXTENSIONS[end] for end in source.extensions[:1] if end in EXTENSIONS), None)
    if format is None or (format == "fasttext" and options.format is None):
        format = sniff(stream, format)[0]
    if format in ("parquet", "arrow"):
        return _list_column(source, format, options)
    for number, line in enumerate(first_lines(stream)[:FEW], 1):
        if format == "fasttext" and SEVERAL.match(line):
            return f"line {number} of {source.name} has several __label__"
        if format in ("svmlight", "vw") and NUMBERS.match(line):
            return f"line {number} of {source.name} has several numbers for a label"
        if format == "jsonl" and line.strip():
            try:
                row = parsed_line(line)
            except (ValueError, RecursionError):  # a bad row tells nothing
                continue
            target = options.target if options.target is not None else usual_target(list(row))
            if isinstance(row.get(str(target)), list):
                return f"the target, {target!r}, is a list in line {number} of {source.name}"
    return None


def _list_column(source: Source, format: str, options: TrainOptions) -> str | None:
    """Whether the target of a Parquet or Arrow file is a column of lists."""
    import pyarrow as pa

    if source.compression is not None:
        return None
    try:
        if format == "parquet":
            from pyarrow import parquet

            schema = parquet.read_schema(str(source.path))
        else:
            try:
                schema = pa.ipc.open_file(pa.OSFile(str(source.path))).schema
            except pa.ArrowInvalid:
                schema = pa.ipc.open_stream(pa.OSFile(str(source.path))).schema
    except pa.ArrowException:  # the reader says what is wrong with it
        return None
    target = options.target if options.target is not None else usual_target(schema.names)
    if any(field.name == target and is_list(field.type) for field in schema):
        return f"the target, {target!r}, is a column of lists in {source.name}"
    return None


def check_multilabel(options: TrainOptions) -> None:
    """Refuse options that have no use where rows have several labels."""
    for name in ("multiclass", "per_class", "kernel", "positive", "calibrate"):
        if options.is_given(name):
            raise PlanError(f"{name}= has no use with task={MULTILABEL}")
