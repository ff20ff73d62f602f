"""Decoders: what the learner of structured outputs asks of a problem, in four verbs; and sequences as one decoder.

An output y of an input x (a label sequence, a matching, an order, a tree) has features f(x, y) and the score w.f(x, y).
A decoder finds the output of the highest score, and the rival that the right one is compared with. It knows nothing of
learning: ``StructuredLearner`` learns w for any decoder.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Union

import numpy as np

from onlearn.sequence.lattice import Lattice
from onlearn.sequence.token_rows import TokenRows

Features = Union[Mapping[int, float], "tuple[Any, Any]", np.ndarray]

MOST_FEATURES = 1 << 31  # of which each has a weight


class Decoder(Protocol):
    """What a problem must be able to do. ``best`` and ``features`` are its own; the others have usual bodies.

    ``w`` holds the present weights, an array that is not to be changed. It has ``size`` entries, if the decoder says
    how many features there are; else as many as features were met so far, and a weight beyond its end is 0.
    """

    size: int | None = None  # how many features there are; None: as many as are met

    @abstractmethod
    def best(self, x: Any, w: np.ndarray) -> Any:
        """The output of the highest score."""

    @abstractmethod
    def features(self, x: Any, output: Any) -> Features:
        """The features of an output: an array of ``size`` numbers; or {feature: value}, or (features, values).

        Features are numbered from 0. In a pair, the values of a feature that comes more than once are added.
        """

    def rival(self, x: Any, gold: Any, w: np.ndarray) -> tuple[Any, float]:
        """The output that the right one is compared with, and its cost: how far the right one should win.

        The usual one is the best output, at a cost of 1: of the rules only those that learn from mistakes alone see all
        that they should. For a margin it should be the output of the highest score plus cost (cost-augmented decoding),
        or the best one besides ``gold``.
        """
        return self.best(x, w), 1.0

    def score(self, x: Any, output: Any, w: np.ndarray) -> float:
        """The score of an output, w.f(x, y); a decoder may have a faster way, or add what is not learned."""
        pair = as_pair(self.features(x, output), getattr(self, "size", None))
        known = pair.features < len(w)
        return float(np.dot(w[pair.features[known]], pair.values[known]))


# ----------------------------------------------------------------------------------------------------
# Features as decoders give them.


class Pair(NamedTuple):
    """Features by number, and their values."""

    features: np.ndarray  # int64
    values: np.ndarray  # float64


def as_pair(found: Any, size: int | None) -> Pair:
    """Features that a decoder gave, checked; what is wrong with them is said in a sentence without a beginning."""
    if isinstance(found, Mapping):
        found = list(found.keys()), list(found.values())
    if isinstance(found, tuple):
        if len(found) != 2:
            raise ValueError(f"a tuple of {len(found)} instead of the two (features, values)")
        numbers, values = np.asarray(found[0]), _floats(found[1])
        if not numbers.size:
            numbers = numbers.astype(np.int64)
        if numbers.ndim != 1 or numbers.shape != values.shape:
            raise ValueError(f"features of shape {numbers.shape} with values of shape {values.shape}")
        if not np.issubdtype(numbers.dtype, np.integer):
            raise ValueError(f"features that are not numbered by whole numbers but of type {numbers.dtype}")
    else:
        values = _floats(found)
        if values.ndim != 1 or (size is not None and len(values) != size):
            wanted = "one dimension" if size is None else f"{size} numbers"
            raise ValueError(f"an array of shape {values.shape} instead of {wanted}")
        numbers = np.arange(len(values))
    if numbers.size:
        most = MOST_FEATURES if size is None else size
        if numbers.min() < 0:
            raise ValueError(f"feature {numbers.min()}, and there is none below 0")
        if numbers.max() >= most:
            raise ValueError(f"feature {numbers.max()}, and there may be {most}, from 0 to {most - 1}")
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"the value {values[at]} for feature {numbers[at]}, and values must be finite")
    return Pair(numbers.astype(np.int64), values)


def _floats(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{type(values).__name__} instead of numbers") from None


def difference(a: Pair, b: Pair) -> Pair:
    """The features of a less those of b, in order, without those that are equal."""
    numbers, place = np.unique(np.concatenate([a.features, b.features]), return_inverse=True)
    # Each summed by itself before they are subtracted, so that equal features leave exactly 0.
    mine = np.bincount(place[: len(a.features)], a.values, len(numbers))
    other = np.bincount(place[len(a.features) :], b.values, len(numbers))
    change = mine - other
    kept = np.flatnonzero(change)
    return Pair(numbers[kept], change[kept])


# ----------------------------------------------------------------------------------------------------
# Sequences.


class SequenceDecoder(Decoder):
    """Label sequences: x is the ``TokenRows`` of one sequence, an output the number of the label of each token.

    Of L labels, the weights of beginnings are the first L, of ends the next L, of transitions the next L x L (from
    label i to j at 2 L + i L + j); then L follow for each attribute. The rival is the best other path, by score plus
    ``cost`` for each wrong label (Hamming); with ``cost`` 0 the rule sees the plain margin.
    """

    def __init__(self, labels: int, cost: float = 0.0) -> None:
        if labels < 1:
            raise ValueError(f"labels must be a whole number of at least 1, not {labels!r}")
        if not 0.0 <= cost < np.inf:
            raise ValueError(f"cost must be a number of at least 0, not {cost!r}")
        self.labels, self.cost = labels, float(cost)
        self.size = None  # attributes that are new have new weights

    def parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The weights of attributes (attributes x labels), of transitions, beginnings and ends."""
        n = self.labels
        short = max(n * (n + 2) - len(w), -len(w) % n)
        w = np.concatenate([w, np.zeros(short)]) if short else w
        initial, final, transitions, emissions = np.split(w, [n, 2 * n, n * (n + 2)])
        return emissions.reshape(-1, n), transitions.reshape(n, n), initial, final

    def best(self, x: TokenRows, w: np.ndarray) -> np.ndarray:
        emissions, lattice = self._lattice(x, w)
        return lattice.best(emissions, [0, x.tokens])[0]

    def rival(self, x: TokenRows, gold: Any, w: np.ndarray) -> tuple[np.ndarray, float]:
        gold = self._checked(x, gold)
        emissions, lattice = self._lattice(x, w)
        bonus = np.full(emissions.shape, self.cost)
        bonus[np.arange(x.tokens), gold] = 0.0
        two = lattice.k_best(emissions + bonus, [0, x.tokens], 2)[0]
        path = two[1] if np.array_equal(two[0], gold) else two[0]
        if not len(path) or path[0] < 0:  # there is no other
            return gold, 0.0
        return path, self.cost * float(np.count_nonzero(path != gold)) if self.cost else 1.0

    def features(self, x: TokenRows, output: Any) -> tuple[np.ndarray, np.ndarray]:
        path, n = self._checked(x, output), self.labels
        token = np.repeat(np.arange(x.tokens), np.diff(x.indptr))
        numbers = [
            path[:1],
            n + path[-1:],
            2 * n + n * path[:-1] + path[1:],
            n * (n + 2) + n * x.indices.astype(np.int64) + path[token],
        ]
        values = np.ones(sum(map(len, numbers)))
        if len(x.values):
            values[len(values) - len(x.values) :] = x.values
        return np.concatenate(numbers), values

    def _lattice(self, x: TokenRows, w: np.ndarray) -> tuple[np.ndarray, Lattice]:
        """The emissions of a sequence, and the lattice of these weights."""
        weights, transitions, initial, final = self.parts(w)
        known = x.indices < len(weights)
        token = np.repeat(np.arange(x.tokens), np.diff(x.indptr))[known]
        emissions = np.zeros((x.tokens, self.labels))
        values = x.values[known, None] if len(x.values) else 1.0
        np.add.at(emissions, token, weights[x.indices[known]] * values)
        return emissions, Lattice(transitions, initial, final)

    def _checked(self, x: TokenRows, output: Any) -> np.ndarray:
        path = np.asarray(output)
        if not path.size:
            path = path.astype(np.int64)
        if path.shape != (x.tokens,) or not np.issubdtype(path.dtype, np.integer):
            raise ValueError(f"an output must be the number of a label for each of {x.tokens} tokens, not {output!r}")
        if path.size and not (path.min() >= 0 and path.max() < self.labels):
            raise ValueError(f"labels go from 0 to {self.labels - 1}, but an output has those of {output!r}")
        return path.astype(np.int64)


def one_by_one(rows: TokenRows) -> list[TokenRows]:
    """The rows of each sequence by themselves, as ``SequenceDecoder`` takes them."""
    parts = []
    for first, last in zip(rows.offsets[:-1], rows.offsets[1:]):
        start, stop = rows.indptr[first], rows.indptr[last]
        values = rows.values[start:stop] if len(rows.values) else rows.values
        indptr = rows.indptr[first : last + 1] - start
        parts.append(TokenRows(np.array([0, last - first]), indptr, rows.indices[start:stop], values))
    return parts
