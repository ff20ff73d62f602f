"""Sparse rows whose features are known by name: what a parser or a tokeniser makes of its input.

A vocabulary turns them into rows whose features are numbered. Names are not copied: each is a stretch of a text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class NamedRows(NamedTuple):
    indptr: np.ndarray  # int64: row i has the features indptr[i] to indptr[i + 1]
    hashes: np.ndarray  # uint64: of prefix and name, by ``hashing.hash_bytes``
    values: np.ndarray  # float64
    starts: np.ndarray  # int64: where in the text the name starts
    lengths: np.ndarray  # int64: its bytes
    groups: np.ndarray  # uint16: the namespace or column a feature is of
    text: np.ndarray  # uint8
    prefixes: tuple[str, ...]  # of each group; the full name is the prefix and the name
    known: np.ndarray | None = None  # int32: the numbers that a vocabulary had given them when it was asked; -1: none

    @property
    def shape(self) -> tuple[int]:
        """The number of rows; how many features there are, a vocabulary knows."""
        return (len(self.indptr) - 1,)

    def between(self, start: int, stop: int) -> NamedRows:
        """Some of the rows, over the same memory."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return self.with_features(self.indptr[start : stop + 1] - first, slice(first, last))

    def with_features(self, indptr: np.ndarray, features: slice | np.ndarray) -> NamedRows:
        """Rows that have some of the features only."""
        return self._replace(
            indptr=indptr,
            hashes=self.hashes[features],
            values=self.values[features],
            starts=self.starts[features],
            lengths=self.lengths[features],
            groups=self.groups[features],
            known=None if self.known is None else self.known[features],
        )

    def name(self, k: int) -> str:
        """The full name of the feature at position k."""
        start = int(self.starts[k])
        raw = self.text[start : start + int(self.lengths[k])].tobytes()
        return self.prefixes[int(self.groups[k])] + raw.decode("utf-8", "replace")
