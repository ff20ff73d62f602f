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

    @property
    def shape(self) -> tuple[int]:
        """The number of rows; how many features there are, a vocabulary knows."""
        return (len(self.indptr) - 1,)

    def name(self, k: int) -> str:
        """The full name of the feature at position k."""
        start = int(self.starts[k])
        raw = self.text[start : start + int(self.lengths[k])].tobytes()
        return self.prefixes[int(self.groups[k])] + raw.decode("utf-8", "replace")
