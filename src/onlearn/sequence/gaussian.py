"""Gaussian emissions of a hidden Markov model: each label has a mean and a variance of each number of a token.

    log P(x | t) = -1/2 sum_d ((x_d - mean_td)^2 / variance_td + log(2 pi variance_td))

Means and variances are those of maximum likelihood; variances have a floor. Of labelled tokens they are updated token
by token (Welford 1962), so they are the same however the tokens are cut into calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.model_schema import Arrays, check_array
from onlearn.threads import over_rows

LARGEST = 1e100  # the largest number: its square is still one
LOWEST = -1e200  # of logarithms of densities


class VectorSequences:
    """Tokens that are rows of numbers; sequence k has the tokens ``offsets[k]`` to ``offsets[k + 1]``."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self.values = values
        self.offsets = offsets

    def __len__(self) -> int:
        return len(self.offsets) - 1


def as_vectors(X: Any) -> VectorSequences:
    """Sequences of numbers: a list with one array (tokens, numbers) for each sequence."""
    if isinstance(X, VectorSequences):
        return X
    if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
        raise ValueError("emissions='gaussian' needs a list of arrays, one for each sequence: a row for each token")
    made: list[np.ndarray] = []
    for s, one in enumerate(X):
        try:
            array = np.asarray(one, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"X[{s}] is not an array of numbers, which emissions='gaussian' needs") from None
        if array.size == 0 and array.ndim < 2:
            array = array.reshape(0, 0)
        if array.ndim != 2:
            raise ValueError(
                f"X[{s}] has the shape {array.shape}, and should have a row for each token and a column for each "
                "number: give one sequence as [X], single numbers as columns of width 1"
            )
        if not (np.abs(array) <= LARGEST).all():  # which NaN is not, either
            raise ValueError(f"X[{s}] holds numbers that are missing, infinite or beyond {LARGEST:g}")
        made.append(array)
    widths = {array.shape[1] for array in made if len(array)}
    if len(widths) > 1:
        raise ValueError(f"the sequences of X have rows of different widths, such as {min(widths)} and {max(widths)}")
    width = max(widths, default=0)
    offsets = np.zeros(len(made) + 1, dtype=np.int64)
    np.cumsum([len(array) for array in made], out=offsets[1:])
    values = np.concatenate([array for array in made if len(array)]) if widths else np.empty((0, width))
    return VectorSequences(np.ascontiguousarray(values), offsets)


class GaussianEmissions:
    """How many tokens each label has, their means, and the sums of the squared distances from these."""

    def __init__(self, labels: int, floor: float) -> None:
        self.floor = floor
        self.seen: np.ndarray = np.zeros(labels)
        self.means: np.ndarray = np.zeros((0, labels))  # (numbers, labels), for the inner loop is over labels
        self.squares: np.ndarray = np.zeros((0, labels))

    @property
    def numbers(self) -> int:
        """The numbers of a token."""
        return len(self.means)

    def __repr__(self) -> str:
        return f"<{self.numbers} numbers>"

    def check(self, sentences: VectorSequences) -> None:
        """Refuse sentences of other numbers."""
        self.fits(sentences)

    def fits(self, sentences: VectorSequences) -> np.ndarray:
        """The numbers of all tokens, if they are as many as those learned from."""
        values = sentences.values
        if not len(values):
            return np.empty((0, self.numbers))
        if values.shape[1] != self.numbers:
            raise ValueError(f"X has {values.shape[1]} numbers in each token, and this HMM knows {self.numbers}")
        return values

    # ------------------------------------------------------------------ counting

    def take_in(self, sentences: VectorSequences, labels: int) -> np.ndarray:
        """The numbers of all tokens, room made for them."""
        if not self.numbers and len(sentences.values):
            self.means, self.squares = np.zeros((2, sentences.values.shape[1], len(self.seen)))
        values, more = self.fits(sentences), labels - len(self.seen)
        if more:
            self.seen = np.pad(self.seen, (0, more))
            self.means, self.squares = (np.pad(one, ((0, 0), (0, more))) for one in (self.means, self.squares))
        return values

    def add(self, sentences: VectorSequences, codes: np.ndarray, labels: int) -> None:
        """Learn from tokens with their labels; -1 is one without."""
        update_moments(self.take_in(sentences, labels), codes, self.seen, self.means, self.squares)

    def expect(self, data: np.ndarray, marginals: np.ndarray) -> None:
        """Take the moments that the marginals mean instead of those before."""
        self.seen = marginals.sum(axis=0)
        some = self.seen > 0  # a label without any tokens stays as it is
        means = np.where(some, data.T @ marginals / np.where(some, self.seen, 1.0), self.means)

        def work(start: int, stop: int) -> np.ndarray:
            squares = np.zeros_like(means)
            add_squares(data[start:stop], marginals[start:stop], means, squares)
            return squares

        squares = np.zeros_like(means)
        for one in over_rows(work, len(data), data.size * len(self.seen)):
            squares += one
        self.means, self.squares = means, squares

    # ------------------------------------------------------------------ Baum-Welch

    def begin(self, data: np.ndarray, codes: np.ndarray, rng: np.random.Generator, max_suffix: int) -> None:
        """Moments to begin with: of the labelled tokens, or random tokens far from each other as means."""
        if (codes >= 0).any():
            return
        labels = len(self.seen)
        spread = np.maximum(data.var(axis=0), self.floor)
        chosen = [int(rng.integers(len(data)))]
        nearest = np.full(len(data), np.inf)
        for _ in range(labels - 1):  # as k-means++ (Arthur and Vassilvitskii 2007) begins
            nearest = np.minimum(nearest, ((data - data[chosen[-1]]) ** 2 / spread).sum(axis=1))
            total = nearest.sum()
            odds = nearest / total if total > 0 else None
            chosen.append(int(rng.choice(len(data), p=odds)))
        self.seen[:] = len(data) / labels
        self.means = np.ascontiguousarray(data[chosen].T)
        self.squares = np.repeat(spread[:, np.newaxis], labels, axis=1) * self.seen

    def likelihoods(self, data: np.ndarray) -> np.ndarray:
        """The logarithm of the density of each token given each label."""
        means, variances = self.moments()
        weights, made = 0.5 / variances, np.empty((len(data), len(self.seen)))
        constants = -0.5 * np.log(2 * np.pi * variances).sum(axis=0)
        over_rows(
            lambda start, stop: log_densities(data, start, stop, means, weights, constants, made),
            len(data),
            data.size * len(self.seen),
        )
        return np.maximum(made, LOWEST, out=made)

    # ------------------------------------------------------------------ what was learned

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances; a label without tokens has those of all tokens."""
        total, some = self.seen.sum(), self.seen > 0
        if not total:
            return self.means, np.maximum(self.squares, self.floor)
        mean = (self.means @ self.seen / total)[:, np.newaxis]
        spread = (self.squares + self.seen * (self.means - mean) ** 2).sum(axis=1, keepdims=True) / total
        variances = np.where(some, self.squares / np.where(some, self.seen, 1.0), spread)
        return np.where(some, self.means, mean), np.maximum(variances, self.floor)

    def pack(self) -> dict[str, np.ndarray]:
        return {"seen": self.seen, "means": self.means, "squares": self.squares}

    @classmethod
    def unpack(cls, arrays: Arrays, labels: int, floor: float) -> GaussianEmissions:
        made = cls(labels, floor)
        numbers = len(arrays["means"]) if arrays["means"].ndim else 0
        check_array("seen", arrays["seen"], "float64", (labels,), 0)
        check_array("means", arrays["means"], "float64", (numbers, labels), -LARGEST, LARGEST)
        check_array("squares", arrays["squares"], "float64", (numbers, labels), 0)
        made.seen, made.means, made.squares = arrays["seen"], arrays["means"], arrays["squares"]
        return made


@compiled
def update_moments(values, codes, seen, means, squares):
    for t in range(len(values)):
        label = codes[t]
        if label < 0:
            continue
        seen[label] += 1.0
        for d in range(values.shape[1]):
            before = values[t, d] - means[d, label]
            means[d, label] += before / seen[label]
            squares[d, label] += before * (values[t, d] - means[d, label])


@compiled
def add_squares(values, marginals, means, squares):
    for t in range(len(values)):
        for d in range(values.shape[1]):
            for j in range(marginals.shape[1]):
                away = values[t, d] - means[d, j]
                squares[d, j] += marginals[t, j] * away * away


@compiled
def log_densities(values, start, stop, means, weights, constants, made):
    for t in range(start, stop):
        for j in range(len(constants)):
            made[t, j] = constants[j]
        for d in range(values.shape[1]):
            for j in range(len(constants)):
                away = values[t, d] - means[d, j]
                made[t, j] -= away * away * weights[d, j]
