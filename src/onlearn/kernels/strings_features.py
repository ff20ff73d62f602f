"""The features of the substring kernel written down: a column for each substring of some strings.

Substrings of length n are numbered from those of length n-1 and the character that follows: the pair is a number, and
the sorted pairs that occur are the vocabulary of length n. So nothing is hashed, and no two substrings share a column.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.strings_points import BYTES, StringPoints, same_kind

MOST = 50_000_000  # substrings, with repetitions, that are worth writing down


class Vocabulary:
    """The substrings of some strings, numbered by length and then in the order of their characters."""

    def __init__(self, strings: StringPoints, weights: np.ndarray, min_length: int, who: str) -> None:
        lengths, most = strings.lengths, len(weights) - 1
        entries = int(sum(np.maximum(lengths - n, 0).sum() for n in range(min_length - 1, most)))
        if entries > MOST:
            raise ValueError(
                f"{who}: {len(strings):,} strings have {entries:,} substrings; choose a max_length, or use "
                "the kernel itself"
            )
        self.strings = StringPoints(strings.text[:0], strings.starts[:1], strings.kind)  # to know the kind by
        self.min_length = min_length
        self.factors = np.sqrt(weights)
        self.letters = np.unique(strings.text)
        self.known: list[np.ndarray] = []  # by length: the sorted pairs (number of all but the last, last character)
        for _, pairs, _ in self._pairs(strings, most):
            self.known.append(np.unique(pairs))
        sizes = [len(pairs) for pairs in self.known]
        self.first = np.cumsum([0, *(size if n + 1 >= min_length else 0 for n, size in enumerate(sizes))])

    def __len__(self) -> int:
        """How many features there are."""
        return int(self.first[-1])

    def features(self, strings: StringPoints) -> sp.csr_matrix:
        """decay^|u| times the occurrences of u, for each string and each u of the vocabulary."""
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
        """For each length: the substrings of that length, one an occurrence, and whose they are.

        A length that the vocabulary knows already comes as numbers (unknown substrings left out), the next as pairs.
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
