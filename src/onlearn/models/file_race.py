"""The race of configurations over rows of files: their features are made once for all that share them.

The race has two parts. A sample of the rows goes through ``Race.run``: all configurations learn side by side, the worse
half is dropped at doubling counts of examples. The few that are left begin anew on all rows, some of which are held out
in turn, and make several passes (``Race.finals``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onlearn import data
from onlearn.data import Batch
from onlearn.engine.csr import select, stacked
from onlearn.models.model import tell_sources
from onlearn.models.plan import MOST, PASSES, default_passes
from onlearn.models.run import Run
from onlearn.tune.losses import Losses, of_numbers, of_probabilities, of_scores
from onlearn.tune.race import PASSES as JUDGED
from onlearn.tune.race import Race, reason

SAMPLE = 1 << 13  # rows from which on the first part of the race takes a sample of them
SHARE = 4  # the part of the rows in that sample: one in so many
FEW = 1 << 12  # rows up to which twice as many finalists are left
FINALISTS = 4
MOST_HELD = 20_000  # rows held out


class Matrix:
    """The rows of some batches as one configuration sees them: numbered features, targets and weights."""

    def __init__(self, run: Run, reader: data.Reader, batches: Sequence[Batch]) -> None:
        run.passes.wait = True  # labels and features are final when all rows are read
        rows, targets, weights = zip(*run.reading.examples_of(reader, batches), strict=True)
        numbers, features = run.reading.sort_labels(), run.model.features
        width = features.n_features_out_
        if run.plan.min_count > 1:
            kept = run.reading.drop_rare_features()
            rows = tuple(select(X, kept, features.n_features_out_) for X in rows)
        else:
            rows = tuple(X.of_width(width) for X in rows)
        self.X: Any = stacked(rows)
        y = np.concatenate(targets)
        self.y: np.ndarray = y if run.model.labels is None else numbers[y]
        self.weight: np.ndarray | None = None if weights[0] is None else np.concatenate(weights)
        self.classes: int = len(run.model.labels or ())
        self.values: int = run.reading.values
        self.model: Any = run.model

    def __len__(self) -> int:
        return len(self.y)


class FileContestant:
    """A learner that learns from rows of a matrix, which others share."""

    def __init__(self, run: Run, matrix: Matrix) -> None:
        self.matrix: Matrix = matrix
        self.learner: Any = copy.deepcopy(run.reading.learner)
        self._settle(run)
        self.seen: list[np.ndarray] = []  # of a learner that learns from all rows at once
        self.first: bool = True

    def _settle(self, run: Run) -> None:
        """Make the learner ready, as a run does."""
        matrix, learner = self.matrix, self.learner
        parameters = learner.composition.parameters
        seed = {"random_state": run.plan.seed} if "random_state" in parameters else {}
        progressive = {"progressive": False} if "progressive" in parameters else {}
        learner.set_params(**seed, **progressive)
        shown = copy.copy(matrix.model)
        shown.learner = learner
        tell_sources(shown)
        if not learner.whole:
            counts = np.zeros(0)
            if matrix.classes:
                counts = np.bincount(matrix.y, weights=matrix.weight, minlength=matrix.classes).astype(np.float64)
            learner._start(matrix.X.shape[1], counts, matrix.X.dtype)

    def learn(self, rows: np.ndarray) -> None:
        matrix = self.matrix
        if self.learner.whole:
            self.seen.append(rows)
            known = np.unique(np.concatenate(self.seen))
            weight = None if matrix.weight is None else matrix.weight[known]
            self.learner.fit(matrix.X.take(known), matrix.y[known], weight)
            return
        self.learner._learn_rows(matrix.X, matrix.y, matrix.weight, rows, first=False)

    def judge(self, rows: np.ndarray) -> Losses:
        X, y = self.matrix.X.take(rows), self.matrix.y[rows]
        if not self.matrix.classes:
            losses = of_numbers(self.learner.predict(X), y)
        elif self.learner.is_linear:
            losses = of_scores(self.learner.decision_function(X), y)
        else:
            losses = of_probabilities(self.learner.predict_proba(X), y)
        if self.matrix.weight is None:
            return losses
        weight = self.matrix.weight[rows]
        return Losses(losses.loss * weight, losses.mistakes * weight)


def race_over(
    reader: data.Reader,
    batches: list[Batch],
    runs: list[Callable[[], Run] | str],
    *,
    seed: int,
    over: Callable[[], bool],
    on_rung: Callable[[Race], None] | None = None,
    workers: int | None = None,
) -> Race:
    """Race configurations, of which ``runs`` makes new runs, over batches; a text is why one cannot take part."""
    total = sum(len(batch) for batch in batches)
    order = np.random.default_rng([seed, 0x7261]).permutation(total)
    sampled = total > SAMPLE
    some = picked(batches, np.sort(order[: max(SAMPLE // 2, total // SHARE)])) if sampled else batches
    matrices: dict[str, Matrix | str] = {}
    contestants: list[Any] = []
    for make in runs:
        late = len(contestants) > 0 and over()  # the default takes part in any case
        contestants.append("the time was over" if late else begin(make, reader, some, matrices))
    keep = 2 * FINALISTS if total <= FEW else FINALISTS
    race = Race(contestants, keep=keep, over=over, workers=workers, on_rung=on_rung)
    race.run(np.random.default_rng([seed, 0x7262]).permutation(sum(len(batch) for batch in some)))
    matrices = {} if sampled else matrices
    final: dict[int, tuple[Run, Matrix]] = {}
    for number in race.alive:
        if race.ended_early or over():
            race.ended_early = True
            return race
        found = entrant(runs[number], reader, batches, matrices)
        if isinstance(found, str):
            race.drop(number, found)
        else:
            final[number] = found
    race.finals(
        folds(total, seed),
        lambda number, fold: FileContestant(*final[number]),
        lambda number: judged_passes(*final[number]),
        lambda number: usual_passes(*final[number]),
        seed=seed,
    )
    return race


def begin(make: Callable[[], Run] | str, reader: data.Reader, batches: list[Batch], known: dict[str, Any]) -> Any:
    """A contestant, or why there can be none."""
    try:
        found = entrant(make, reader, batches, known)
        return found if isinstance(found, str) else FileContestant(*found)
    except Exception as error:  # whatever a configuration does, the race goes on without it
        return reason(error)


def entrant(
    make: Callable[[], Run] | str, reader: data.Reader, batches: list[Batch], known: dict[str, Any]
) -> tuple[Run, Matrix] | str:
    """A run that has decided about its learner, and its matrix, which runs of the same features share."""
    if isinstance(make, str):
        return make
    run = make()
    key = features_key(run)
    if key not in known:
        try:
            known[key] = Matrix(run, reader, batches)
        except Exception as error:  # options that do not suit the data
            known[key] = reason(error)
    found = known[key]
    if isinstance(found, str):
        return found
    if run.reading.learner is None:  # another run of the same features has made the matrix
        run.model.features = found.model.features
        run.reading.learner = run.reading.choose_learner()
    if run.reading.learner.positive_only and found.X.nnz and found.X.data.min() < 0:
        return f"ValueError: {run.reading.learner.name} takes no negative values"
    return run, found


def features_key(run: Run) -> str:
    """What the features of a run depend on."""
    plan, learner = run.plan, run.plan.learner
    usual = None if learner is None else learner.usual_features
    parts = (plan.roles, plan.text, plan.number, plan.category, plan.interactions, plan.max_names, plan.bits)
    return repr((type(run.reading), parts, plan.min_count, plan.per_class, usual))


def picked(batches: list[Batch], rows: np.ndarray) -> list[Batch]:
    """The rows at some positions, in order, among those of all batches."""
    made, start = [], 0
    for batch in batches:
        here = rows[(rows >= start) & (rows < start + len(batch))] - start
        if len(here):
            made.append(batch.take(here))
        start += len(batch)
    return made


def folds(rows: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows held out, several times if there are few."""
    order = np.random.default_rng([seed, 0x666F]).permutation(rows)
    count = 5 if rows < 3_000 else 3 if rows < 12_000 else 1
    size = min(MOST_HELD, rows // 5) if count < 5 else rows // count
    parts = [(order[k * size : (k + 1) * size] if k < 4 else order[4 * size :]) for k in range(count)]
    return [(np.setdiff1d(order, held, assume_unique=True), held) for held in parts if len(held)]


def usual_passes(run: Run, matrix: Matrix) -> int:
    """The passes that a run makes if nothing is said."""
    if run.plan.passes is not None:
        return run.plan.passes
    return 1 if run.reading.learner.whole else default_passes(
        run.reading.learner, run.model.features, len(matrix), matrix.values
    )  # fmt: skip


def judged_passes(run: Run, matrix: Matrix) -> list[int]:
    """The numbers of passes after which a finalist is judged: not many more than are usual."""
    usual = usual_passes(run, matrix)
    if run.plan.passes is not None or run.reading.learner.whole or run.reading.learner.usual_passes is not None:
        return [usual]
    return sorted({usual, *(one for one in JUDGED if one <= max(usual, PASSES + 2) and one <= MOST)})
