"""``stream``: predict, score, learn, one row after another.

Progressive validation: each row is predicted before the model has learned from it, so that the scores are those of a
model in use, and no row is kept back for testing.
"""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, NamedTuple

from onlearn.engine.number_names import label_name
from onlearn.engine.spec import did_you_mean
from onlearn.models.model import Model
from onlearn.streaming.drift_policies import (
    POLICIES,
    ClassificationLoss,
    DriftWarning,
    DriftWatch,
    RegressionLoss,
    parse_detector,
)
from onlearn.streaming.items import FileItems, Item, as_rows, open_items
from onlearn.streaming.metrics import Means, Metric, parse_metrics
from onlearn.streaming.record import StreamRecord
from onlearn.streaming.terminal_line import TerminalLine, is_terminal

FIRST = 100  # rows by which a model that has learned nothing chooses its features
MOST = 1000  # if the first have only one label


def stream(
    source: Any,
    model: Any,
    metrics: Any = None,
    every: int = 1000,
    delay: int | str = 0,
    window: int = 1000,
    fading: float = 0.999,
    drift: Any = None,
    on_drift: str = "warn",
    progress: bool | None = None,
    max_pending: int = 1_000_000,
    **reading: Any,
) -> Iterator[StreamRecord]:
    """Take a model through a stream by progressive validation, and tell how it stands.

    Each row is predicted, then scored, then learned from. Nothing happens until the records are asked for; between two
    of them the model may be used and saved. If a row is refused, the error names its number (from 1), and the model is
    as it was after the row before. Ctrl-C is raised as usual, and the model is whole then, too.

    :param source: an iterable of (x, y) or (x, y, weight); or a path, a pattern, ``"-"`` or a reader of
        ``onlearn.data``, whose options, such as ``target=``, are given by name
    :param model: an estimator or ``onlearn.Model``: anything with ``learn_one`` and ``predict_one``. A ``Model`` that
        has learned nothing chooses its features by the first 100 rows, which are not scored
    :param metrics: a list of "accuracy", "error", "log_loss", "brier", for regression "absolute_error",
        "squared_error", of functions of (y, prediction), and of pairs (name, function)
    :param every: rows from one record to the next; there is one at the end, too
    :param delay: the label of a row is known only after so many further rows were predicted; at the end of the stream
        those still missing come at once. Or the name of a field that identifies a row: then an item whose y is None
        is a question, and a later item with the same value and a y its answer
    :param window: the latest scored rows, for the means of ``record.window``
    :param fading: the factor by which a row counts less with every later one, for the means of ``record.faded``
    :param drift: a detector of ``onlearn.drift`` that watches the loss, or its spelling
    :param on_drift: "warn"; "reset": the model starts anew; "replace": a challenger that has learned from the rows
        since a first suspicion takes its place. In either case ``model`` stays the same object
    :param progress: whether a line in the terminal shows how things stand; None: if stderr is a terminal
    :param max_pending: the most questions that wait for an answer; beyond, the oldest is forgotten

    >>> from onlearn import LogisticRegression
    >>> rows = [([n % 2, 1.0], n % 2) for n in range(100)]
    >>> model = LogisticRegression(grow=True, random_state=0)
    >>> *_, last = stream(rows, model, every=50)
    >>> last.rows, last.learned, last.window["accuracy"] > 0.9
    (100, 100, True)
    """
    for name, value, least in (("every", every, 1), ("window", window, 1), ("max_pending", max_pending, 1)):
        _check_whole(name, value, least)
    if not isinstance(delay, str):
        _check_whole("delay", delay, 0, " or the name of a field")
    if not isinstance(fading, Real) or not 0.0 < fading <= 1.0:
        raise ValueError(f"fading must be a number above 0 and at most 1, not {fading!r}")
    if on_drift not in POLICIES:
        raise ValueError(f"there is no on_drift {on_drift!r}{did_you_mean(str(on_drift), list(POLICIES))}")
    task = task_of(model)
    watch = None if drift is None else DriftWatch(model, parse_detector(drift), on_drift)
    found = parse_metrics(metrics, task)
    means = Means([metric.name for metric in found], int(window), float(fading))
    items = open_items(source, model, task, delay if isinstance(delay, str) else None, reading)
    run = Progressive(model, task, items, found, means, delay, watch, int(max_pending))
    line = TerminalLine(is_terminal() if progress is None else bool(progress))
    return _records(run, int(every), line)


def _check_whole(name: str, value: Any, least: int, more: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}{more}, not {value!r}")


def task_of(model: Any) -> str:
    """ "classify" or "regress"; of models that are not ours, those with probabilities classify."""
    if isinstance(model, Model):
        if model.task not in ("classify", "regress"):
            raise ValueError(
                f"a stream has one label or number a row, which a model of task={model.task} does not take"
            )
        return model.task
    composition = getattr(model, "composition", getattr(model, "_composition", None))  # of a learner, an estimator
    if composition is not None:
        return str(composition.task)
    return "classify" if hasattr(model, "predict_proba_one") else "regress"


def has_begun(model: Any) -> bool:
    """Whether a model has learned anything, without which it predicts nothing."""
    if isinstance(model, Model):
        return model.learner is not None
    return getattr(model, "training", getattr(model, "_training", model)) is not None  # of a learner, an estimator


class Question(NamedTuple):
    """A row that was predicted; the predictions are None if the model had learned nothing yet."""

    row: int
    x: Any
    weight: float | None
    predicted: Any
    probabilities: Any


class Progressive:
    """A model in the course of a stream."""

    model: Any
    task: str
    items: Any
    metrics: list[Metric]
    means: Means
    delay: int | str
    watch: DriftWatch | None
    max_pending: int
    rows: int
    scored: int
    learned: int
    forgotten: int

    def __init__(self, model: Any, task: str, items: Any, metrics: list[Metric], means: Means, delay: int | str,
                 watch: DriftWatch | None, max_pending: int) -> None:  # fmt: skip
        self.model, self.task, self.items, self.metrics, self.means = model, task, items, metrics, means
        self.delay, self.watch, self.max_pending = delay, watch, max_pending
        self.rows = self.scored = self.learned = self.forgotten = 0
        self.notes: list[str] = []
        self.news: list[str] = []  # warnings to be given
        self._loss: Any = ClassificationLoss() if task == "classify" else RegressionLoss()
        self._probabilities = any(metric.of_probabilities for metric in metrics)
        self._begun = has_begun(model)
        self._first: list[Item] | None = [] if isinstance(model, Model) and not self._begun else None
        self._varied = False  # whether these have more than one label
        self._waiting: deque[tuple[Question, Any]] = deque()  # with their labels, which the model must not know yet
        self._asked: dict[Any, Question] = {}  # by key, the oldest first
        self._row = 0  # the one at hand, for errors
        self._started = time.perf_counter()

    # ------------------------------------------------------------------ rows

    def take(self, raw: Any) -> None:
        """The next item of the stream."""
        self.rows += 1
        self._row = self.rows
        try:
            item = self.items.parse(raw)
            if isinstance(self.delay, str):
                self._keyed(item)
                return
            if item.y is None:
                raise ValueError("it has no label; questions without one need delay='the name of their key'")
            self._waiting.append((self._ask(item), item.y))
            if len(self._waiting) > self.delay:
                self._answer(*self._waiting.popleft())
        except (TypeError, ValueError) as error:
            raise self._named(error) from error

    def _keyed(self, item: Item) -> None:
        """A question, or an answer."""
        asked = self._asked.pop(item.key, None)
        if item.y is not None:
            question = self._ask(item) if asked is None else asked
            self._answer(question if item.weight is None else question._replace(weight=item.weight), item.y)
            return
        self._asked[item.key] = self._ask(item)  # one that is asked again stands for the later question
        if len(self._asked) > self.max_pending:
            del self._asked[next(iter(self._asked))]
            self.forgotten += 1

    def finish(self) -> None:
        """The end of the source: labels that were delayed come now; questions stay without an answer."""
        try:
            while self._waiting:
                self._answer(*self._waiting.popleft())
            if self._first:
                self._begin(self._first)
        except (TypeError, ValueError) as error:
            raise self._named(error) from error

    def _ask(self, item: Item) -> Question:
        """Predict."""
        predicted = probabilities = None
        if self._begun:
            predicted = self.model.predict_one(item.x)
            if self._probabilities:
                probabilities = self.model.predict_proba_one(item.x)
        return Question(self.rows, item.x, item.weight, predicted, probabilities)

    def _answer(self, question: Question, y: Any) -> None:
        """Score what was predicted, then learn."""
        self._row = question.row
        if isinstance(self.model, Model) and self.task == "classify" and not isinstance(y, str):
            y = label_name(y)
        if question.predicted is not None:
            self._score(question, y)
        self._learn(Item(question.x, y, question.weight))

    def _score(self, question: Question, y: Any) -> None:
        weight = 1.0 if question.weight is None else float(question.weight)
        self.means.add(
            [
                float(metric.value(y, question.probabilities if metric.of_probabilities else question.predicted))
                for metric in self.metrics
            ],
            weight,
        )
        self.scored += 1
        if self.watch is None:
            return
        drifted = self.watch.observe(self._loss(y, question.predicted), self.rows)
        if drifted and self.watch.policy.warns:
            self.news.append(f"drift: the mean loss has risen, as detected at row {self.rows} of the stream")

    def _learn(self, item: Item) -> None:
        if self._first is not None:
            self._first.append(item)
            varied = self.task != "classify" or item.y != self._first[0].y
            self._varied = self._varied or varied
            if len(self._first) >= (FIRST if self._varied else MOST):
                self._begin(self._first)
            return
        example = (item.x, item.y) if item.weight is None else (item.x, item.y, item.weight)
        self.model.learn_one(*example)
        if self.watch is not None:
            self.watch.policy.learn(*example)
        self.learned += 1
        self._begun = self._begun or has_begun(self.model)

    def _begin(self, first: list[Item]) -> None:
        """A model that has learned nothing chooses its features and its learner by the first rows."""
        weights = None
        if any(item.weight is not None for item in first):
            weights = [1.0 if item.weight is None else item.weight for item in first]
        self.model.partial_fit(as_rows([item.x for item in first]), [item.y for item in first], weights)
        if isinstance(self.items, FileItems):
            self.model.reading = self.items.reading()
        self.notes.append(f"the features were chosen by the first {len(first)} rows, which were not scored")
        self.learned += len(first)
        self._first, self._begun = None, True

    def _named(self, error: Exception) -> Exception:
        """An error about a row, with the row's number."""
        kind = TypeError if isinstance(error, TypeError) else ValueError
        place = self.items.place() if self._row == self.rows else ""
        return kind(f"row {self._row} of the stream{place}: {error}")

    # ------------------------------------------------------------------ how it stands

    def record(self) -> StreamRecord:
        """How the stream stands."""
        return StreamRecord(
            rows=self.rows,
            scored=self.scored,
            learned=self.learned,
            pending=len(self._waiting) + len(self._asked),
            forgotten=self.forgotten,
            mean=self.means.mean(),
            window=self.means.windowed(),
            faded=self.means.faded(),
            drifts=() if self.watch is None else tuple(self.watch.drifts),
            warnings=() if self.watch is None else tuple(self.watch.policy.warnings),
            seconds=time.perf_counter() - self._started,
            notes=tuple(self.notes),
        )

    def restart_clock(self) -> None:
        """Count the seconds from now on."""
        self._started = time.perf_counter()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens meanwhile takes none of the stream's time."""
        before = time.perf_counter()
        yield
        self._started += time.perf_counter() - before


def _records(run: Progressive, every: int, line: TerminalLine) -> Iterator[StreamRecord]:
    def tell() -> StreamRecord:
        record = run.record()
        line.write(record.line())
        return record

    told = -1
    run.restart_clock()
    try:
        for item in run.items:
            run.take(item)
            while run.news:  # from here, so that a warning names the line of the caller
                warnings.warn(run.news.pop(0), DriftWarning, stacklevel=2)
            line.update(lambda: run.record().line())
            if run.rows % every == 0:
                told = run.learned + run.rows
                with run.paused():
                    yield tell()
        run.finish()
        while run.news:
            warnings.warn(run.news.pop(0), DriftWarning, stacklevel=2)
        if told != run.learned + run.rows:
            with run.paused():
                yield tell()
    finally:
        line.close()
        run.items.close()
