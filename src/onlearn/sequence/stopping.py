"""Early stopping: sequences are held out, and the weights that label most of their tokens right are kept."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.sequence.token_rows import TokenRows

if TYPE_CHECKING:
    from onlearn.sequence.linear import LinearSequenceLearner


def take_sequences(rows: TokenRows, codes: np.ndarray, which: np.ndarray) -> tuple[TokenRows, np.ndarray]:
    """Some sequences, in the given order."""
    starts, lengths = rows.offsets[which], np.diff(rows.offsets)[which]
    tokens = _ranges(starts, lengths)
    at, counts = rows.indptr[tokens], np.diff(rows.indptr)[tokens]
    places = _ranges(at, counts)
    values = rows.values[places] if len(rows.values) else rows.values
    taken = TokenRows(_sums(lengths), _sums(counts), rows.indices[places], values)
    return taken, codes[tokens]


def _sums(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of several ranges, one after another."""
    ends = _sums(lengths)
    return np.arange(ends[-1]) + np.repeat(starts - ends[:-1], lengths)


def split_sequences(
    learner: LinearSequenceLearner, rows: TokenRows, codes: np.ndarray
) -> tuple[TokenRows, np.ndarray, EarlyStopping]:
    """The sequences to learn from, and those held out, drawn by the learner's seed."""
    count = len(rows.offsets) - 1
    held = round(learner.settings.validation_fraction * count)
    if not 0 < held < count:
        raise ValueError(f"early_stopping would hold out {held} of {count} sequences: give more, or switch it off")
    drawn = np.random.default_rng([learner.seed, count, 7]).permutation(count)
    kept, out = np.sort(drawn[held:]), np.sort(drawn[:held])
    stopping = EarlyStopping(learner, *take_sequences(rows, codes, out))
    return (*take_sequences(rows, codes, kept), stopping)


class EarlyStopping:
    """Looks after each pass how many held-out tokens are labelled right, and keeps the best state."""

    def __init__(self, learner: LinearSequenceLearner, rows: TokenRows, codes: np.ndarray) -> None:
        self.learner, self.rows, self.codes = learner, rows, codes
        self.scores: list[float] = []
        self._best: Any = None

    def is_over(self) -> bool:
        """Whether the last ``patience`` passes brought nothing; to be asked once after each pass."""
        path = self.learner.decode(self.rows)
        self.scores.append(float(np.mean(path == self.codes)) if len(path) else 0.0)
        best = int(np.argmax(self.scores))
        if best == len(self.scores) - 1:
            self._best = copy.deepcopy(self.learner.training)
        return len(self.scores) - 1 - best >= self.learner.settings.patience

    def restore(self) -> None:
        """Go back to the best weights."""
        self.learner.training = self._best
        self.learner._decoding = None
