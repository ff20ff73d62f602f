"""Indices of svmlight files that are too large to have a weight each.

Column k of a matrix has the weight k up to ``WIDEST`` columns. An index beyond is hashed to one of ``2**bits`` buckets,
which lie behind all those columns: it may share a weight with others like it, but never with a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.named_rows import HALF, ODD, OTHER
from onlearn.engine.csr import CSR, summed
from onlearn.features import hash_table
from onlearn.features.tables import fixed
from onlearn.features.vocabulary import collisions

WIDEST = 1 << 24  # columns of a matrix that get a weight each


class Plain:
    """Every index is a column: of a learner that was taught a matrix in Python, however wide."""

    way = "plain"
    values = 0  # that had an index too far to be a column

    def afresh(self) -> Plain:
        """The same before anything was counted."""
        return self

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        """A matrix of the columns that have weights; with ``learn``, what is far is counted."""
        return X

    def name_of(self, column: int) -> str | None:
        """What a bucket is called; None for a column."""
        return None

    def collisions(self) -> dict[str, float] | None:
        """How many far indices there seem to be, and how many share a bucket; None if none was counted."""
        return None

    def note(self) -> str | None:
        """A sentence about the far indices that were learned from."""
        return None

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the model file keeps of it."""
        return {"way": self.way}, {}


class Folded(Plain):
    """Far indices hashed into the columns, as models were taught before there were buckets for them."""

    way = "folded"

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        if X.shape[1] <= WIDEST:
            return X
        indices = X.indices.astype(np.uint64)
        beyond = indices >= WIDEST
        mixed = indices[beyond] * ODD
        indices[beyond] = (mixed ^ (mixed >> HALF)) % np.uint64(WIDEST)
        return _summed(X, indices.astype(np.int32), WIDEST)


class Behind(Plain):
    """Far indices in buckets behind the columns; what was learned from is counted."""

    way = "behind"

    def __init__(self, bits: int = 22) -> None:
        self.bits = bits
        self.values = 0  # that had such an index
        self.seen = np.zeros(0, np.uint64)  # a bit for each bucket, once one is in use

    def afresh(self) -> Behind:
        return Behind(self.bits)

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        """A matrix of columns and, if any index is that far, buckets; with ``learn`` they are counted."""
        if X.shape[1] <= WIDEST:
            return X
        beyond = X.indices >= WIDEST
        far = X.indices[beyond].astype(np.uint64)
        if learn and len(far):
            if not len(self.seen):
                self.seen = np.zeros(self._words(), np.uint64)
            self.values += len(far)
        buckets = np.full(len(far), -1, np.int32)
        with np.errstate(over="ignore"):  # should it run interpreted
            mask = np.uint64((1 << self.bits) - 1)
            hash_table.to_buckets(fixed(hashed(far)), buckets, WIDEST, mask, self.seen, learn)
        indices = X.indices.copy()
        indices[beyond] = buckets
        return _summed(X, indices.astype(np.int32), WIDEST + ((1 << self.bits) if len(far) else 0))

    def name_of(self, column: int) -> str | None:
        return f"an index beyond {WIDEST - 1}, bucket {column - WIDEST}" if column >= WIDEST else None

    def collisions(self) -> dict[str, float] | None:
        return collisions(1 << self.bits, self.seen) if self.values else None

    def note(self) -> str | None:
        found = self.collisions()
        if found is None:
            return None
        return (
            f"{self.values:,} values have an index beyond {WIDEST - 1:,}: about {found['features']:,.0f} such indices "
            f"share {1 << self.bits:,} weights behind the others, with about {found['collisions']:,.0f} collisions"
        )

    def _words(self) -> int:
        return max(1, (1 << self.bits) // 64)

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts = {"way": self.way, "bits": self.bits, "values": self.values}
        return facts, {"seen": self.seen.copy()} if self.values else {}

    @classmethod
    def unpack(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Behind:
        self = cls(int(facts["bits"]))
        self.values = int(facts["values"])
        if not 1 <= self.bits <= 30 or self.values < 0:
            raise ValueError("what the model says about far indices contradicts itself")
        if self.values:
            self.seen = arrays["seen"].copy()
            if self.seen.shape != (self._words(),) or self.seen.dtype != np.uint64:
                raise ValueError("the buckets of far indices have another number than the model says")
        return self


BEFORE = {"way": "folded"}  # what a model file that says nothing means


def unpack(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Plain:
    """What was packed, whichever way it was."""
    if facts["way"] == Behind.way:
        return Behind.unpack(facts, arrays)
    ways = {kind.way: kind for kind in (Folded, Plain)}
    if facts["way"] not in ways:
        raise ValueError(f"far indices are treated in an unknown way, {facts['way']!r}")
    return ways[facts["way"]]()


def hashed(indices: np.ndarray) -> np.ndarray:
    """Indices spread over 64 bits."""
    made = indices * ODD
    made ^= made >> HALF
    made *= OTHER
    return np.asarray(made ^ (made >> HALF))


def _summed(X: CSR, indices: np.ndarray, width: int) -> CSR:
    """X with other indices, of which a row may have two that are the same; X stays as it is."""
    indptr = X.indptr.astype(indices.dtype) if X.nnz < 1 << 31 else X.indptr
    return summed(CSR(X.data, indices, indptr, (X.shape[0], width), finite=X.finite))
