"""The race of configurations over rows of files: their features are made once for all that share them.

Large data are raced over in two parts. A sample of the rows goes through ``Race.run``: all configurations learn side by
side, the worse half is dropped at doubling counts of examples. Blocks of the sample are learned from several times, or
slow learners, and rich features, which later passes would favour, would be dropped too early. The few that are left
begin anew on all rows, some of which are held out in turn, and make several passes (``Race.finals``). Of small data all
configurations are finalists.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn import data
from onlearn.data import Batch
from onlearn.engine.csr import CSR, select, stacked
from onlearn.engine.learner import Learner
from onlearn.engine.scoring import hypothesis, linear_scores
from onlearn.errors import PlanError
from onlearn.models.plan import MOST, PASSES, default_passes, takes_more_passes
from onlearn.models.raw_rows import tell_sources
from onlearn.models.run import Run
from onlearn.models.trial import tried
from onlearn.tune.field import Field, reason
from onlearn.tune.losses import Losses, of_numbers, of_probabilities, of_scores
from onlearn.tune.race import PASSES as JUDGED
from onlearn.tune.race import SLOWEST, Race
from onlearn.tune.space import Options

SMALL = 2_000_000  # values that a pass learns from, times classes: up to so many, all are finalists
MEDIUM = 100_000_000  # likewise, where the default makes many passes:
WORTH = 6  # so many times those passes are worth while
SAMPLE = 1 << 12  # rows of the sample that larger data are raced over first, at least
SHARE = 8  # and the part of the rows in it: one in so many
SMALLEST = 1 << 11  # but so few, if memory has room for no more
REPEATS = 3  # times that contestants learn from a block of the sample, as later passes would
MEMORY = 2 << 30  # bytes that the weights of all contestants may need; for finalists, if that is more, four times one's
BYTES = 24  # for each weight: with its rate or its confidence, and its mean
MANY = 1 << 20  # weights from which on only those that rows need are looked at
EACH = 20  # examples of each class before the first rung, about
FINALISTS = 3  # besides the default
MOST_HELD = 20_000  # rows held out


class Rows(NamedTuple):
    """Rows to race over."""

    reader: data.Reader
    batches: list[Batch]
    first: Batch  # of the rows in the files, by which runs decide about features
    times: float = 1.0  # as many rows are learned from by the winner, about

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(len(batch) for batch in self.batches)

    def at(self, places: np.ndarray) -> Rows:
        """Some of them, by their places, which rise."""
        return self._replace(batches=picked(self.batches, places), times=self.times * self.total / max(1, len(places)))


class MatrixRows(NamedTuple):
    """Rows of numbered features, with the numbers of their classes, or their targets, and their weights."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    counts: np.ndarray  # of the labels, weighted; none in regression

    @property
    def classes(self) -> int:
        """How many labels there are; 0 in regression."""
        return len(self.counts)


class Matrix:
    """Rows as one configuration sees them: numbered features, targets and weights."""

    def __init__(self, run: Run, given: Rows) -> None:
        run.passes.wait = True  # labels and features are final when all rows are read
        examples = run.reading.examples_of(given.reader, given.batches, given.first)
        rows, targets, weights = zip(*examples, strict=True)
        if not isinstance(rows[0], CSR):
            raise PlanError("a learner that compares texts as they are takes no part in races")
        numbers, features = run.reading.sort_labels(), run.model.features
        width = features.n_features_out_
        if run.plan.min_count > 1:
            kept = run.reading.drop_rare_features()
            rows = tuple(select(X, kept, features.n_features_out_) for X in rows)
        else:
            rows = tuple(X.of_width(width) for X in rows)
        y, classes = np.concatenate(targets), len(run.model.labels or ())
        y = y if run.model.labels is None else numbers[y]
        weight = None if weights[0] is None else np.concatenate(weights)
        counts = np.bincount(y, weights=weight, minlength=classes) if classes else np.zeros(0)
        self.rows: MatrixRows = MatrixRows(stacked(rows), y, weight, counts.astype(np.float64))
        self.values: int = run.reading.values
        self.times: float = given.times
        self.model: Any = run.model

    def __len__(self) -> int:
        return len(self.rows.y)

    @property
    def classes(self) -> int:
        """How many labels there are; 0 in regression."""
        return self.rows.classes

    @property
    def needs(self) -> int:
        """The bytes of a learner's weights, about."""
        return int(self.rows.X.shape[1]) * (self.classes if self.classes > 2 else 1) * BYTES


class FileContestant:
    """A learner that learns from rows of a matrix, which others share."""

    def __init__(self, run: Run, matrix: Matrix, repeats: int = 1) -> None:
        """It learns so many times from rows that it is given once, but not more than its run makes passes."""
        self.repeats: int = min(repeats, usual_passes(run, matrix))
        self.rows: MatrixRows = matrix.rows
        self.learner: Any = copy.deepcopy(run.reading.learner)
        self.has_kernel: bool = "kernel" in self.learner.composition.parameters
        self.begun: bool = False
        self._settle(run, matrix)
        self.seen: list[np.ndarray] = []  # of a learner that learns from all rows at once

    def _settle(self, run: Run, matrix: Matrix) -> None:
        """Make the learner ready, as a run does; its weights are made when it begins to learn."""
        learner = self.learner
        parameters = learner.composition.parameters
        seed = {"random_state": run.plan.seed} if "random_state" in parameters else {}
        progressive = {"progressive": False} if "progressive" in parameters else {}
        learner.set_params(**seed, **progressive)
        shown = copy.copy(matrix.model)
        shown.learner = learner
        tell_sources(shown)

    def learn(self, rows: np.ndarray) -> None:
        X, y, weight, counts = self.rows
        if self.learner.whole:
            self.seen.append(rows)
            known = np.unique(np.concatenate(self.seen))
            self.learner.fit(X.take(known), y[known], None if weight is None else weight[known])
            return
        if not self.begun and not self.has_kernel:
            self.learner._start(X.shape[1], counts, X.dtype)
        for _ in range(self.repeats):
            if self.has_kernel:
                self._partial_fit(rows)
            else:
                self.learner._learn_rows(X, y, weight, rows, first=False)
        self.begun = True

    def _partial_fit(self, rows: np.ndarray) -> None:
        X, y, weight, _ = self.rows
        begins = self.learner.training is None and self.rows.classes > 0
        classes = {"classes": np.arange(self.rows.classes)} if begins else {}
        weight = None if weight is None else weight[rows]
        self.learner.partial_fit(X.take(rows), y[rows], sample_weight=weight, **classes)

    def judge(self, rows: np.ndarray) -> Losses:
        X, y, weight, _ = self.rows
        X, y = X.take(rows), y[rows]
        weight = None if weight is None else weight[rows]
        if not self.rows.classes:
            return of_numbers(self.learner.predict(X), y, weight)
        if self.learner.is_linear:
            return of_scores(self._scores(X), y, weight)
        if self.has_kernel:
            return of_scores(self.learner.decision_function(X), y, weight)
        return of_probabilities(self.learner.predict_proba(X), y, weight)

    def _scores(self, X: Any) -> np.ndarray:
        """Scores; of many features, only the weights of those in the rows are looked at."""
        learner = self.learner
        every = learner.training.stabilizer.every_hypothesis if isinstance(learner, Learner) else True
        if every or X.shape[1] * learner.training.outputs < MANY:
            return np.asarray(learner.decision_function(X))
        there = np.zeros(X.shape[1], dtype=bool)
        there[X.indices] = True
        columns = np.flatnonzero(there)
        numbers = np.full(X.shape[1], -1, dtype=np.int64)
        numbers[columns] = np.arange(len(columns))
        w, b = hypothesis(learner.training)
        scores, _ = linear_scores(select(X, numbers, len(columns)), w[columns], b)
        return np.asarray(learner.task.shaped(scores))


def race_over(
    reader: data.Reader,
    batches: list[Batch],
    runs: list[Callable[[], Run] | str],
    *,
    seed: int,
    over: Callable[[], bool],
    on_rung: Callable[[Race], None] | None = None,
    field: Field | None = None,
    first: Batch | None = None,
    times: float = 1.0,
) -> tuple[Race, dict[int, tuple[Run, Matrix]]]:
    """Race configurations, of which ``runs`` makes new runs, over batches; a text is why one cannot take part.

    Batches may be a sample: ``first`` are the rows that decide about features, by default the first batch, and the
    winner learns from about ``times`` as many rows. The second result has the finalists.
    """
    matrices: dict[str, Any] = {}
    rows = Rows(reader, batches, batches[0] if first is None else first, times)
    race = Race([make if isinstance(make, str) else None for make in runs], over=over, field=field, on_rung=on_rung)
    if not is_small(begin(runs[0], rows._replace(batches=batches[:1]), matrices), rows, len(runs)):
        race = _preliminaries(rows, runs, race, seed)
    matrices = matrices if len(batches) == 1 else {}
    final: dict[int, tuple[Run, Matrix]] = {}
    room = 0
    for number in [0, *(n for n in race.order if n != 0)]:
        if number and (race.ended_early or over()):
            race.ended_early = True
            break
        found = begin(runs[number], rows, matrices)
        if not isinstance(found, str):
            room = room or max(MEMORY, 4 * found[1].needs)
            if found[1].needs + sum(matrix.needs for _, matrix in final.values()) > room:
                found = f"memory: it needs {found[1].needs >> 20:,} MB"
        if isinstance(found, str):
            race.drop(number, found)
        else:
            final[number] = found
    if race.ended_early:
        return race, {}
    usual = {number: usual_passes(*one) for number, one in final.items()}
    if 0 in final:
        usual[0] = try_default(*final[0])
    needed = sum(matrix.needs for _, matrix in final.values())
    race.finals(
        folds(rows.total, seed, most=max(1, room // max(1, needed))),
        lambda number, fold: FileContestant(*final[number]),
        lambda number: judged_passes(final[number][0], usual[number]),
        lambda number: usual[number],
        seed=seed,
    )
    return race, final


def raced_options(race: Race, number: int, run: Run, matrix: Matrix) -> Options:
    """The passes, and the rate, of a finalist, as far as a run of its options would not come to them by itself.

    A run chooses its passes, and a rate that is free, by a trial if neither is given. The default has raced with what
    its trial chose; others have raced without one, and what was not raced shall not be trained.
    """
    passes, usual = race.standings[number].passes, race.usual_passes(number)
    has_trial = run.plan.passes is None and takes_more_passes(run.reading.learner, run.model.features)
    if passes is None or usual is None or (passes == usual and (number == 0 or not has_trial or usual <= PASSES)):
        return {}
    raced, plain = run.reading.learner.choices.get("geometry"), run.reading.choose_learner().choices.get("geometry")
    if not has_trial or raced.rate == plain.rate:
        return {"passes": passes}
    return {"geometry": f"{raced.name}({raced.rate!r})", "passes": passes}


def _preliminaries(rows: Rows, runs: Sequence[Callable[[], Run] | str], race: Race, seed: int) -> Race:
    """Race over a sample of the rows, as many as memory has room for."""
    order = np.random.default_rng([seed, 0x7261]).permutation(rows.total)
    size = max(SAMPLE, rows.total // SHARE)
    while True:
        some, matrices = rows.at(np.sort(order[:size])), dict[str, Any]()
        found = begin(runs[0], some, matrices)
        if isinstance(found, str) or size <= SMALLEST or found[1].needs * len(runs) <= MEMORY:
            break
        size //= 2
    contestants: list[Any] = []
    for make in runs:
        late = len(contestants) > 0 and race.over()  # the default takes part in any case
        found = "the time was over" if late else begin(make, some, matrices)
        contestants.append(found if isinstance(found, str) else FileContestant(found[0], found[1], REPEATS))
    classes = max((one.classes for one in matrices.values() if isinstance(one, Matrix)), default=0)
    made = Race(contestants, keep=FINALISTS, first=EACH * classes, over=race.over, field=race.field,
                on_rung=race.on_rung)  # fmt: skip
    del contestants
    made.run(np.random.default_rng([seed, 0x7262]).permutation(some.total))
    return made


def is_small(found: Any, rows: Rows, contestants: int) -> bool:
    """Whether all may be finalists: little is to be learned, or the default makes so many passes that few more count.

    ``found`` is the default's run with a matrix of its first rows.
    """
    if isinstance(found, str):
        return True
    run, matrix = found
    part = rows.total / max(1, len(matrix))
    work = matrix.values * part * max(1, matrix.classes - 1)
    learned_from, values = round(rows.total * rows.times), round(matrix.values * part * rows.times)
    passes = default_passes(run.reading.learner, run.model.features, learned_from, values)
    return work <= SMALL or (work <= MEDIUM and contestants * SLOWEST <= WORTH * passes)


def begin(make: Callable[[], Run] | str, rows: Rows, known: dict[str, Any]) -> Any:
    """A run that has decided about its learner, and its matrix; or why there can be none."""
    try:
        return entrant(make, rows, known)
    except Exception as error:  # whatever a configuration does, the race goes on without it
        return reason(error)


def entrant(make: Callable[[], Run] | str, rows: Rows, known: dict[str, Any]) -> tuple[Run, Matrix] | str:
    """A run that has decided about its learner, and its matrix, which runs of the same features share."""
    if isinstance(make, str):
        return make
    run = make()
    key = features_key(run)
    if key not in known:
        try:
            known[key] = Matrix(run, rows)
        except Exception as error:  # options that do not suit the data
            known[key] = reason(error)
    found = known[key]
    if isinstance(found, str):
        return found
    if run.reading.learner is None:  # another run of the same features has made the matrix
        run.model.features = found.model.features
        run.reading.learner = run.reading.choose_learner()
    return run, found


def features_key(run: Run) -> str:
    """What the features of a run depend on."""
    plan, learner = run.plan, run.plan.learner
    usual = {} if learner is None else dict(learner.usual_features)
    parts = (plan.roles, plan.text, plan.number, plan.category, plan.interactions, plan.max_names, plan.bits)
    kind = (True, False) if learner is None else (learner.is_linear, learner.positive_only)
    return repr((type(run.reading), parts, plan.min_count, plan.per_class, usual, kind))


def picked(batches: list[Batch], rows: np.ndarray) -> list[Batch]:
    """The rows at some positions, in order, among those of all batches."""
    made, start = [], 0
    for batch in batches:
        here = rows[(rows >= start) & (rows < start + len(batch))] - start
        if len(here):
            made.append(batch.take(here))
        start += len(batch)
    return made


def folds(rows: int, seed: int, most: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows held out, a fifth; up to five times if there are few."""
    order = np.random.default_rng([seed, 0x666F]).permutation(rows)
    times = min(most, 5 if rows < 3_000 else 3 if rows < 12_000 else 1)
    size = min(MOST_HELD, rows // 5)
    parts = [order[k * size : (k + 1) * size] if k < 4 else order[4 * size :] for k in range(times)]
    return [(np.setdiff1d(order, held, assume_unique=True), held) for held in parts if len(held)]


def usual_passes(run: Run, matrix: Matrix) -> int:
    """The passes that a run over all rows makes if nothing is said."""
    if run.plan.passes is not None:
        return run.plan.passes
    if run.reading.learner.whole:
        return 1
    rows, values = round(len(matrix) * matrix.times), round(matrix.values * matrix.times)
    return default_passes(run.reading.learner, run.model.features, rows, values)


def try_default(run: Run, matrix: Matrix) -> int:
    """The passes of the default, which with its rate are chosen by a trial, as they will be when it learns."""
    usual, learner = usual_passes(run, matrix), run.reading.learner
    if not matrix.classes or learner.whole:
        return usual
    X, y, weight, counts = matrix.rows
    made = tried(run.plan, learner, run.model.features, lambda: (X, y, weight), counts, usual)
    if made is None:
        return usual
    run.reading.learner, passes = made
    return passes


def judged_passes(run: Run, usual: int) -> list[int]:
    """The numbers of passes after which a finalist is judged: not many more than are usual."""
    if run.plan.passes is not None or run.reading.learner.whole or run.reading.learner.usual_passes is not None:
        return [usual]
    return sorted({usual, *(one for one in JUDGED if one <= max(usual, PASSES + 2) and one <= MOST)})
