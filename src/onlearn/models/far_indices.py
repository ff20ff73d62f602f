"""Indices of svmlight files that are too large to have a weight each.

Column k of a matrix has the weight k up to ``WIDEST`` columns. An index beyond is hashed to one of ``2**bits`` buckets,
which lie behind all those columns: it may share a weight with others like it, but never with a column.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np

from onlearn.data.batch import HALF, ODD, OTHER
from onlearn.engine.csr import CSR, summed
from onlearn.errors import PlanError
from onlearn.features import hash_table
from onlearn.features.tables import fixed
from onlearn.features.vocabulary import collisions
from onlearn.model_schema import COUNT, Arrays, Record, check_facts, one_of, whole

WIDEST = 1 << 24  # columns of a matrix that get a weight each


class FarIndices(Protocol):
    """What becomes of indices too large to be a column; by default nothing is done and nothing is counted."""

    way: ClassVar[str]  # its name in model files
    values: int = 0  # with such an index, that were learned from

    def unfitted(self) -> FarIndices:
        """The same before anything was counted."""
        return self

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        """A matrix of the columns that have weights; with ``learn``, far indices are counted."""
        return X

    def include(self, other: FarIndices) -> None:
        """Add what was counted in other rows."""
        return

    def name_of(self, column: int) -> str | None:
        """The name of a bucket; None for a column."""
        return None

    def collisions(self) -> dict[str, float] | None:
        """Estimates of how many far indices there are, and how many share a bucket; None if there are none."""
        return None

    def note(self) -> str | None:
        """A sentence about the far indices that were learned from; None if there are none."""
        return None

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Facts and arrays for the model file."""
        return {"way": self.way}, {}


class AllColumns(FarIndices):
    """Every index is a column: for a learner that was trained on a matrix in Python, however wide."""

    way = "plain"


class FoldedFar(FarIndices):
    """Far indices hashed into the columns, as in models of earlier versions, which had no buckets."""

    way = "folded"

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        if X.shape[1] <= WIDEST:
            return X
        indices = X.indices.astype(np.uint64)
        beyond = indices >= WIDEST
        mixed = indices[beyond] * ODD
        indices[beyond] = (mixed ^ (mixed >> HALF)) % np.uint64(WIDEST)
        return _summed(X, indices.astype(np.int32), WIDEST)


class HashedFar(FarIndices):
    """Far indices hashed into buckets behind the columns; those learned from are counted."""

    way = "behind"

    def __init__(self, bits: int = 22) -> None:
        self.bits: int = bits
        self.values: int = 0
        self.seen: np.ndarray = np.zeros(0, np.uint64)  # a bit for each bucket, once one is in use

    def unfitted(self) -> HashedFar:
        return HashedFar(self.bits)

    def narrow(self, X: CSR, learn: bool = False) -> CSR:
        """A matrix of columns and, if any index is far, of buckets; with ``learn`` they are counted."""
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

    def include(self, other: FarIndices) -> None:
        if not isinstance(other, HashedFar) or other.bits != self.bits:
            raise PlanError(f"far indices with {self.bits} bits cannot be merged with others: use the same bits=")
        if other.values:
            self.seen = self.seen | other.seen if self.values else other.seen.copy()
            self.values += other.values

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
    def unpack(cls, facts: dict[str, Any], arrays: Arrays) -> HashedFar:
        check_facts(facts, Record(bits=whole(1, 30), values=COUNT), "far")
        self = cls(facts["bits"])
        self.values = facts["values"]
        if self.values:
            self.seen = arrays["seen"].copy()
            if self.seen.shape != (self._words(),) or self.seen.dtype != np.uint64:
                raise ValueError("the buckets of far indices have another number than the model says")
        return self


FAR = Record(way=one_of(HashedFar.way, FoldedFar.way, AllColumns.way))
UNSAID = {"way": "folded"}  # of model files without this fact


def unpack(facts: dict[str, Any], arrays: Arrays) -> FarIndices:
    """The treatment of far indices from the facts and arrays of a model file."""
    check_facts(facts, FAR, "far")
    if facts["way"] == HashedFar.way:
        return HashedFar.unpack(facts, arrays)
    ways: dict[str, type[FarIndices]] = {kind.way: kind for kind in (FoldedFar, AllColumns)}
    return ways[facts["way"]]()


def hashed(indices: np.ndarray) -> np.ndarray:
    """Indices spread over 64 bits."""
    made = indices * ODD
    made ^= made >> HALF
    made *= OTHER
    return np.asarray(made ^ (made >> HALF))


def _summed(X: CSR, indices: np.ndarray, width: int) -> CSR:
    """A copy of X with other indices; values of a row with the same index are summed."""
    indptr = X.indptr.astype(indices.dtype) if X.nnz < 1 << 31 else X.indptr
    return summed(CSR(X.data, indices, indptr, (X.shape[0], width), finite=X.finite))
