"""The substring kernel: the number of substrings that two strings share, with repetitions.

    k(x, z) = sum over strings u of decay^(2 |u|) * (occurrences of u in x) * (occurrences of u in z)

``Substrings()`` counts substrings of all lengths; with ``min_length = max_length = n`` it is the n-spectrum kernel
(Leslie, Eskin and Noble 2002); with a decay, long ones count less (Vishwanathan and Smola, "Fast kernels for string and
tree matching", 2003). ``string_pairs`` computes it pair by pair, ``MergedStrings`` for a model in one walk over x, and
``Vocabulary`` lists its features.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from typing import Any

import numpy as np

from onlearn.engine.spec import param
from onlearn.kernels.base import Pairwise, Points, share
from onlearn.kernels.family import kernel
from onlearn.kernels.string_pairs import BYTES, WALK, StringPoints, diagonal, encode, fill, running_sums, same_kind
from onlearn.kernels.suffix import automaton, walk
from onlearn.kernels.tiles import Tile

MOST = 50_000_000  # substrings, with repetitions, that can be listed


@kernel("substrings")
class Substrings(Pairwise):
    """k(x, z) = sum over strings u of decay^(2 |u|) * (occurrences of u in x) * (occurrences of u in z)

    over all u with min_length <= |u| <= max_length: contiguous substrings, overlapping occurrences included. The
    feature of u is decay^|u| times how often it occurs. x and z are str, compared by code points, or bytes.

    >>> from onlearn.kernels import Substrings
    >>> float(Substrings()(["abab"], ["ab"])[0, 0])  # a twice, b twice, ab twice
    6.0
    >>> float(Substrings(min_length=2, decay=0.5)(["abab"], ["ab"])[0, 0])
    0.125
    """

    min_length: int = param(1, "the shortest substrings that count", at_least=1)
    max_length: int | None = param(
        None, "the longest substrings that count; None: of any length", at_least=1, words=(None,)
    )
    decay: float = param(1.0, "the factor of a feature for each character of the substring", above=0)

    data = "strings"

    def check(self) -> None:
        if self.max_length is None:
            return
        if self.max_length != int(self.max_length):
            raise ValueError(f"substrings: max_length must be None or a whole number, not {self.max_length!r}")
        self.max_length = int(self.max_length)
        if self.max_length < self.min_length:
            raise ValueError(
                f"substrings: max_length={self.max_length} is below min_length={self.min_length}: no substring counts"
            )

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "strings" not in views:
            views["strings"] = encode(X, str(self))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["strings"], tile.Q["strings"]
        fill(P, Q, self.weights(min(P.longest, Q.longest)), out)

    def diagonal(self, P: Points) -> np.ndarray:
        strings: StringPoints = P["strings"]
        return diagonal(strings, self.weights(strings.longest))

    def merged(self, P: Points, coefs: Any) -> MergedStrings:
        """The function x -> sum_i coefs[i] k(x, p_i), at a cost that does not depend on the number of p_i.

        ``coefs`` has a row for each string, and a column for each output if there are several.
        """
        strings: StringPoints = P["strings"]
        return MergedStrings(strings, coefs, self.weights(strings.longest), str(self))

    def vocabulary(self, X: Any) -> Vocabulary:
        """The substrings of X that count, which are the features."""
        strings = encode(X, str(self))
        return Vocabulary(strings, self.weights(strings.longest), self.min_length, str(self))

    def features(self, X: Any, vocabulary: Vocabulary | None = None) -> Any:
        """A SciPy matrix (CSR) with a column for each substring of a vocabulary: that of X, unless one is given.

        Substrings that are not in the vocabulary v have no column: ``features(X, v) @ features(Z, v).T == k(X, Z)`` if
        v is the vocabulary of X, of Z, or of more.
        """
        if vocabulary is None:
            vocabulary = self.vocabulary(X)
        return vocabulary.features(encode(X, str(self)))

    def weights(self, longest: int) -> np.ndarray:
        """``weights[n]`` is the weight of a shared substring of length n, up to the longest that can be shared."""
        most = longest if self.max_length is None else min(longest, self.max_length)
        with np.errstate(over="ignore", under="ignore"):
            weights = self.decay ** (2.0 * np.arange(most + 1))
        weights[: self.min_length] = 0.0
        return weights


class MergedStrings:
    """x -> sum_i coefs[i] k(x, s_i) for each column (output) of ``coefs``, by one suffix automaton of all s_i."""

    def __init__(self, strings: StringPoints, coefs: Any, weights: np.ndarray, who: str) -> None:
        coefs = np.asarray(coefs, dtype=np.float64)
        coefs = coefs.reshape(-1, 1) if coefs.ndim == 1 else coefs
        if coefs.ndim != 2 or len(coefs) != len(strings):
            raise ValueError(f"{who}: coefs must have a row for each of the {len(strings)} strings, not {coefs.shape}")
        if not np.isfinite(coefs).all():
            raise ValueError(f"{who}: coefs must be finite")
        self.who = who
        self.n_outputs: Any = coefs.shape[1]
        self.empty: StringPoints = StringPoints(strings.text[:0], strings.starts[:1], strings.kind)  # for its kind only
        self.upto: np.ndarray = running_sums(weights)
        self.automaton = automaton(strings.text, strings.starts, coefs, self.upto)

    def scores(self, P: Any) -> np.ndarray:
        """The outputs for each of the points, ``len(P) x n_outputs``."""
        strings: StringPoints = P["strings"]
        same_kind(self.empty, strings)
        out = np.empty((len(strings), self.n_outputs))
        rows = np.arange(len(strings))
        work = partial(walk, strings.text, strings.starts, rows, *self.automaton, self.upto, out)
        share(work, len(strings), (WALK + self.n_outputs) * strings.starts[-1])
        if not np.isfinite(out).all():
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise OverflowError(f"{self.who} is too large for float64 at string {row}: choose a smaller decay")
        return out


class Vocabulary:
    """The substrings of some strings, numbered by length and then in the order of their characters.

    Substrings of length n are numbered by those of length n - 1 and the character that follows: the pair is a number,
    and the sorted pairs that occur are the vocabulary of length n. Nothing is hashed, so no two substrings share a
    column.
    """

    def __init__(self, strings: StringPoints, weights: np.ndarray, min_length: int, who: str) -> None:
        lengths, most = strings.lengths, len(weights) - 1
        entries = int(sum(np.maximum(lengths - n, 0).sum() for n in range(min_length - 1, most)))
        if entries > MOST:
            raise ValueError(
                f"{who}: {len(strings):,} strings have {entries:,} substrings; choose a max_length, or use "
                "the kernel itself"
            )
        self.strings: StringPoints = StringPoints(
            strings.text[:0], strings.starts[:1], strings.kind
        )  # for its kind only
        self.min_length = min_length
        self.factors: np.ndarray = np.sqrt(weights)
        self.letters: np.ndarray = np.unique(strings.text)
        self.known: list[np.ndarray] = []  # by length: the sorted pairs (number of all but the last, last character)
        for _, pairs, _ in self._pairs(strings, most):
            self.known.append(np.unique(pairs))
        sizes = [len(pairs) for pairs in self.known]
        self.first: np.ndarray = np.cumsum([0, *(size if n + 1 >= min_length else 0 for n, size in enumerate(sizes))])

    def __len__(self) -> int:
        """The number of features."""
        return int(self.first[-1])

    def features(self, strings: StringPoints) -> Any:
        """decay^|u| times the occurrences of u for each string and each u of the vocabulary, as a SciPy matrix."""
        import scipy.sparse as sp

        same_kind(self.strings, strings)
        rows, columns, values = [], [], []
        for n, pairs, row in self._pairs(strings, len(self.known)):
            if n >= self.min_length:
                rows.append(row)
                columns.append(self.first[n - 1] + pairs)
                values.append(np.full(len(row), self.factors[n]))
        shape = (len(strings), len(self))
        if not rows:
            return sp.csr_matrix(shape)
        places = np.concatenate(rows), np.concatenate(columns)
        return sp.coo_matrix((np.concatenate(values), places), shape=shape).tocsr()

    def _pairs(self, strings: StringPoints, most: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """For each length: all occurrences of substrings of that length, and the strings they occur in.

        Of a length that the vocabulary knows they are numbers (without unknown substrings), of the next one pairs.
        """
        ends = np.repeat(strings.starts[1:], strings.lengths)
        owner = np.repeat(np.arange(len(strings)), strings.lengths)
        place = np.arange(len(strings.text))
        number = np.zeros(len(place), dtype=np.int64)
        for n in range(1, most + 1):
            inside = place + n - 1 < ends[place]
            place, number = place[inside], number[inside]
            letter = np.searchsorted(self.letters, strings.text[place + n - 1])
            letter[letter == len(self.letters)] = 0
            pairs = number * np.int64(len(self.letters)) + letter
            fresh = len(self.known) < n
            if fresh:
                yield n, pairs, owner[place]
            found = np.searchsorted(self.known[n - 1], pairs)
            found[found == len(self.known[n - 1])] = 0
            good = self.letters[letter] == strings.text[place + n - 1] if len(self.letters) else inside[:0]
            good &= self.known[n - 1][found] == pairs
            place, number = place[good], found[good]
            if not fresh:
                yield n, number, owner[place]

    def names(self) -> list[str] | list[bytes]:
        """The substring of each column."""
        letters = [bytes([c]) if self.strings.kind == BYTES else chr(c) for c in self.letters.tolist()]
        names: list = []
        before: list = [b"" if self.strings.kind == BYTES else ""]
        for n, pairs in enumerate(self.known, 1):
            before = [before[head] + letters[last] for head, last in zip(*np.divmod(pairs, len(letters)), strict=True)]
            if n >= self.min_length:
                names += before
        return names
