"""Passes of a network over a data set: their order, rows held out, and when they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from onlearn.engine.csr import rows_at
from onlearn.engine.passes import shuffled
from onlearn.mlp.training import Diverged, NetworkTraining

HELD_OUT = 1 << 40  # the key of the order by which rows are held out, which no pass has

# Why learning ended.
EPOCHS, TOL, VALIDATION, TIME, INTERRUPTED, DIVERGED = (
    "epochs",
    "tol",
    "validation",
    "time_limit",
    "interrupted",
    "diverged",
)


class EpochSettings(Protocol):
    """What a learner's settings say about passes."""

    epochs: int
    tol: float
    patience: int
    early_stopping: bool
    validation_fraction: float
    time_limit: float | None
    shuffle: bool


def run_epochs(training: NetworkTraining, X: Any, y: np.ndarray, weight: np.ndarray, settings: EpochSettings, seed: int,
               pressed: Callable[[], bool], progress: Callable[[int], None] | None = None) -> str:  # fmt: skip
    """Pass over the data until one of the reasons above holds, and say which.

    The network is then the last one; with rows held out the one that was best on them; and if it diverged, that of the
    last pass which ended well. ``pressed`` says whether somebody has asked to stop.
    """
    began = time.perf_counter()
    X = training.as_kind(X)
    present = np.flatnonzero(weight > 0)
    held = np.zeros(0, np.int64)
    if settings.early_stopping:
        held = held_out(y[present], settings.validation_fraction, seed, training.classifies)
    rows = np.delete(present, held)
    held = present[held]
    some = rows_at(X, rows) if len(rows) < len(y) else X
    training.measured(some)
    target = training.measured_targets(y, rows)
    scaled = training.scaled(X)

    def stop() -> bool:
        late = settings.time_limit is not None and time.perf_counter() - began > settings.time_limit
        return late or pressed()

    lowest, best, highest, stale, reason = np.inf, None, -np.inf, 0, EPOCHS
    for done in range(settings.epochs):
        sound = training.saved()
        training.begin_pass()
        order = rows[shuffled(len(rows), seed, training.passes)] if settings.shuffle else rows
        try:
            training.learn(scaled, target, weight, order, stop)
            if not stop():
                loss = training.end_pass()["loss"]
        except Diverged:
            training.restore(sound)
            if done == 0:
                raise
            reason = DIVERGED
            break
        if stop():
            reason = INTERRUPTED if pressed() else TIME
            training.finish_batch()
            break
        if progress is not None:
            progress(len(rows))
        if settings.early_stopping:
            score = score_of(training, rows_at(X, held), y[held], weight[held])
            training.validation.append(score)
            stale = stale + 1 if score < highest + settings.tol else 0
            if score > highest:
                highest, best = score, training.saved()
        else:
            stale = stale + 1 if loss > lowest - settings.tol else 0
            lowest = min(lowest, loss)
        if stale >= settings.patience:
            reason = VALIDATION if settings.early_stopping else TOL
            break
    if best is not None:
        counts = training.saved(weights=False)
        training.restore({**best, **{name: counts[name] for name in ("tally", "doubling", "since")}})
    return reason


def held_out(y: np.ndarray, fraction: float, seed: int, classifies: bool) -> np.ndarray:
    """Which examples are held out: a part of all, or of each class, of which one at least stays."""
    order = shuffled(len(y), seed, HELD_OUT)
    if not classifies:
        chosen = order[: max(1, round(fraction * len(y)))]
    else:
        of_class = [order[y[order] == c] for c in np.unique(y)]
        chosen = np.concatenate([some[: min(round(fraction * len(some)), len(some) - 1)] for some in of_class])
    if not 0 < len(chosen) < len(y):
        raise ValueError(
            f"early_stopping cannot hold out validation_fraction={fraction:g} of {len(y)} examples: there are too few"
        )
    return np.sort(chosen)


def score_of(training: NetworkTraining, X: Any, y: np.ndarray, weight: np.ndarray) -> float:
    """Accuracy, or in regression the part of the variance that is explained (R^2)."""
    scores = training.scores(X)
    if not training.classifies:
        mean = np.average(y, weights=weight)
        unexplained, all_there_is = weight @ (scores[:, 0] - y) ** 2, weight @ (y - mean) ** 2
        return float(1.0 - unexplained / all_there_is) if all_there_is > 0 else 0.0
    said = scores[:, 0] > 0 if scores.shape[1] == 1 else np.argmax(scores, axis=1)
    return float(weight @ (said == y) / weight.sum())
