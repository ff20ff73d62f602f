"""Contestants of a comparison: our learners, trained as ``onlearn train`` trains them, and peers.

Each learns from the training rows of a split and predicts its test rows; a ``Trial`` says how that went, row by row.
Seconds and memory are those from parsed rows to a trained learner, features included and compiling left out. All
learners get the same rows; peers get the features that ours have by default, as one matrix in random order, and in
regression targets of mean 0 and deviation 1, as ours.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn import data
from onlearn.compiler import compile_seconds
from onlearn.data import Batch, DataError
from onlearn.data.batch import as_public
from onlearn.engine.csr import stacked
from onlearn.engine.registry import spell_learner
from onlearn.models.evaluation import TINY, predictions
from onlearn.models.kept_rows import KeptRows
from onlearn.models.kernel_run import as_one_matrix
from onlearn.models.model import Model
from onlearn.models.peers import (
    Matrices,
    answers_of,
    as_taken,
    fit_peer,
    fresh_copy,
    interruptible,
    peer_bytes,
    peer_curve,
    refuse_other_task,
)
from onlearn.models.plan import Plan
from onlearn.models.resident_memory import MemoryGrowth
from onlearn.models.run import Run

Curve = list[dict[str, Any]]
MakeRun = Callable[[data.BadRows], Run]


class Trial(NamedTuple):
    """How one learner did on one split; of each test row whether it was right, its log-loss, or its error."""

    gold: np.ndarray  # class numbers, -1 for unknown ones; in regression numbers
    right: np.ndarray | None  # None in regression
    log_losses: np.ndarray | None  # nan for rows of unknown labels; None without probabilities, and in regression
    errors: np.ndarray | None  # predicted less true number; None in classification
    mistakes: int | None
    seconds: float
    memory_bytes: int | None
    model_bytes: int | None
    curve: Curve
    learner: str  # spelled in full


class Split:
    """Rows to learn from and rows to test on; what is made of them is made once."""

    def __init__(
        self, kept: KeptRows, train: np.ndarray | None, test: np.ndarray | KeptRows | list[str], plan: Plan, seed: int
    ) -> None:
        self.kept: KeptRows = kept
        self.train: np.ndarray | None = train
        self.test: np.ndarray | KeptRows | list[str] = test  # which rows, others, or the files that have them
        self.plan: Plan = plan  # of the features that peers get
        self.seed: int = seed
        self.bad: data.BadRows | None = None  # of the test files
        self._batches: list[Batch] | None = None
        self._matrices: tuple[Matrices, Model] | None = None

    def run(self, make: MakeRun) -> Run:
        """A training run over the training rows."""
        run = make(data.BadRows(limit=1.0))
        reader: Any = self.kept.part(self.train)
        run.reading.reader = reader
        return run

    def test_batches(self, model: Model) -> list[Batch]:
        """The rows to test on; files are read once, as a model's files are read."""
        if self._batches is None:
            if isinstance(self.test, np.ndarray):
                self._batches = self.kept.take(self.test)
            elif isinstance(self.test, KeptRows):
                self._batches = self.test.batches
            else:
                reader = model.read(self.test, labels="required", weight=None)
                self._batches, self.bad = list(reader), reader.bad
            if not self._batches:
                raise DataError("there are no rows to test on")
        return self._batches

    def matrices(self) -> tuple[Matrices, Model]:
        """The rows as features, and the model that has made them, which has learned nothing."""
        if self._matrices is None:
            began = perf_counter() - compile_seconds()
            with MemoryGrowth() as growth:
                run = self.run(lambda bad: Run(copy.deepcopy(self.plan), None, bad))
                run.passes.wait = True  # labels and features are final when all rows are read
                batches = list(run.reading.examples())
                numbers, model = run.reading.sort_labels(), run.model
                kept = run.reading.drop_rare_features() if run.plan.min_count > 1 else None
                X = as_one_matrix(batches, model.features.n_features_out_, kept, None)
            seconds = perf_counter() - compile_seconds() - began
            y = np.concatenate([y for _, y, _ in batches])
            weight = None if batches[0][2] is None else np.concatenate([weight for _, _, weight in batches])
            order = np.random.default_rng([self.seed, 3]).permutation(len(y))  # some peers learn rows as they come
            tests = stacked([model.numbered(batch) for batch in self.test_batches(model)])
            held = sum(array.nbytes for array in model.features.pack()[1].values())
            made = Matrices(
                X=as_public(X)[order],
                y=(y if model.labels is None else numbers[y])[order],
                weight=None if weight is None else weight[order],
                X_test=tests.toarray() if isinstance(X, np.ndarray) else as_public(tests),
                classes=len(model.labels or ()),
                seconds=seconds,
                memory_bytes=growth.peak,
                feature_bytes=int(held),
            )
            self._matrices = made, model
        return self._matrices


class Contestant(Protocol):
    """What takes part in a comparison."""

    name: str
    is_peer: bool

    def compete(self, split: Split, curves: bool) -> Trial:
        """Learn, and predict the test rows."""


class OurLearner:
    """A learner of ours, by what makes its training runs."""

    is_peer = False

    def __init__(self, name: str, make: MakeRun) -> None:
        self.name: str = name
        self.make: MakeRun = make

    def compete(self, split: Split, curves: bool) -> Trial:
        run = split.run(self.make)
        with MemoryGrowth() as growth:
            began = perf_counter() - compile_seconds()
            model = run.go()
            seconds = perf_counter() - compile_seconds() - began
        batches = split.test_batches(model)
        gold = np.concatenate([gold_of(model, batch) for batch in batches])
        found = [predictions(model, batch, proba=model.labels is not None) for batch in batches]
        proba = [one.proba for one in found if one.proba is not None]
        curve = first_pass(model.learner) if model.learner.is_progressive else []
        return Trial(
            **marks(gold, np.concatenate([one.answers for one in found]), np.vstack(proba) if proba else None),
            mistakes=curve[-1].get("mistakes") if curve else None,
            seconds=seconds,
            memory_bytes=growth.peak,
            model_bytes=file_bytes(model),
            curve=curve if curves else [],
            learner=spell_learner(model.learner),
        )


class PeerLearner:
    """An estimator of another package."""

    is_peer = True

    def __init__(self, name: str, estimator: Any) -> None:
        self.name: str = name
        self.estimator: Any = estimator

    def compete(self, split: Split, curves: bool) -> Trial:
        rows, model = split.matrices()
        return interruptible(lambda: self._trial(split, rows, model, curves))

    def _trial(self, split: Split, rows: Matrices, model: Model, curves: bool) -> Trial:
        refuse_other_task(self.estimator, rows.classes)
        with MemoryGrowth() as growth:
            rows = as_taken(self.estimator, rows)
            fitted, seconds = fit_peer(fresh_copy(self.estimator, split.seed), rows)
        found = answers_of(fitted, rows.X_test, rows.classes)
        predicted = found.predicted if rows.classes else model.named(found.predicted)
        gold = np.concatenate([gold_of(model, batch) for batch in split.test_batches(model)])
        curve = peer_curve(self.estimator, rows, split.seed) if curves else []
        own = peer_bytes(fitted)
        return Trial(
            **marks(gold, predicted, found.proba),
            mistakes=curve[-1].get("mistakes") if curve else None,
            seconds=rows.seconds + seconds,
            memory_bytes=None if growth.peak is None else growth.peak + (rows.memory_bytes or 0),
            model_bytes=None if own is None else own + rows.feature_bytes,
            curve=curve,
            learner=" ".join(repr(fitted).split()),
        )


def gold_of(model: Model, batch: Batch) -> np.ndarray:
    """The classes of a batch's rows by a model's numbers, -1 for unknown ones; in regression the numbers."""
    return np.asarray(batch.y, dtype=np.float64) if model.labels is None else model.encode(batch)


def marks(gold: np.ndarray, predicted: np.ndarray, proba: np.ndarray | None) -> dict[str, Any]:
    """How good the prediction of each row is."""
    if gold.dtype.kind == "f":
        return {"gold": gold, "right": None, "log_losses": None, "errors": predicted - gold}
    losses = None
    if proba is not None:
        chances = np.clip(proba[np.arange(len(gold)), gold], TINY, 1.0)
        losses = np.where(gold >= 0, -np.log(chances), np.nan)
    return {"gold": gold, "right": gold == predicted, "log_losses": losses, "errors": None}


def first_pass(learner: Any) -> Curve:
    """Mistakes and mean loss before learning, at doubling counts of examples and at the end of the first pass."""
    history = learner.history_
    whole = history["passes"][0] if history["passes"] else None
    rows = np.inf if whole is None else whole["seen"]
    points = [one for one in history["doubling"] if one["seen"] < rows] + ([] if whole is None else [whole])
    return [
        {"seen": int(one["seen"]), "loss": one["loss"]}
        | ({"mistakes": int(one["mistakes"])} if "mistakes" in one else {})
        for one in points
    ]


def file_bytes(model: Model) -> int:
    """The size of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onl")
        model.save(path)
        return path.stat().st_size
