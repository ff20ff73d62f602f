"""The support examples: those on which steps were made, in the order of their first step."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.dual.recognising import places
from onlearn.kernels import pack_data, unpack_data
from onlearn.kernels.given import by_columns
from onlearn.kernels.pairwise import listed
from onlearn.kernels.vectors import numeric

PIECE = 512  # examples; adding some copies no more than that


class Supports:
    """A growing list of examples, both as they were given and as the kernel wants to see them."""

    def __init__(self, kernel: Any, raw: Any = None, points: Any = None) -> None:
        self.kernel = kernel
        self.raw: list[Any] = []
        self.pieces: list[Any] = []
        self.starts: list[int] = []
        self.count = 0
        self.stored_matrix: str | None = None  # of a model file: the digest of the matrix whose rows they are
        if raw is not None and _count(raw):
            self.add(raw, kernel.points(raw) if points is None else points)

    def __len__(self) -> int:
        return self.count

    def add(self, raw: Any, points: Any) -> None:
        """Take in more examples."""
        if not len(points):
            return
        self.raw.append(raw)
        if self.pieces and len(self.pieces[-1]) < PIECE:
            points = self.pieces.pop().join([points])
            self.count = self.starts.pop()
        for first in range(0, len(points), PIECE):
            piece = points.take(slice(first, first + PIECE)) if len(points) > PIECE else points
            self.pieces.append(piece.lasts())
            self.starts.append(self.count)
            self.count += len(self.pieces[-1])

    def examples(self) -> Any:
        """All of them, as they were given."""
        if len(self.raw) > 1:
            self.raw = [stack(self.raw)]
        return self.raw[0] if self.raw else None

    def products(self, points: Any, first: int = 0, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """Kernel values of the points with the support examples from ``first`` on; ``safe`` as in ``Kernel.block``."""
        if out is None:
            out = np.empty((len(points), self.count - first), dtype=points.dtype)
        for start, piece in zip(self.starts, self.pieces, strict=True):
            low, high = max(first, start), start + len(piece)
            if low < high:
                part = piece if low == start else piece.take(slice(low - start, None))
                self.kernel.block(points, part, out[:, low - first : high - first], safe)
        return out

    def take(self, which: np.ndarray) -> Any:
        """Some of them, as points."""
        which = np.asarray(which)
        parts = []
        for start, piece in zip(self.starts, self.pieces, strict=True):
            mine = which[(which >= start) & (which < start + len(piece))]
            if len(mine):
                parts.append(piece.take(mine - start))
        return parts[0].join(parts[1:]) if len(parts) > 1 else parts[0]

    def every(self) -> Any:
        """All of them, as points."""
        return self.pieces[0].join(self.pieces[1:])

    def places(self, data: Any) -> np.ndarray:
        """Of each row of a data set its number among them, or -1."""
        if self.kernel.data != "matrix" or not self.count:
            return places(data.raw, self.examples(), self.kernel.data)
        found = np.full(data.shape[0], -1, dtype=np.int64)
        found[self.columns()] = np.arange(self.count)
        return found

    def columns(self) -> np.ndarray:
        """Which columns of a precomputed matrix they are."""
        return np.concatenate([piece["matrix"].rows for piece in self.pieces])

    def found_in(self, points: Any) -> Supports:
        """The same rows of the precomputed matrix as it is now: of a model file's they were but numbers."""
        if not self.count:
            return self
        matrix, before, columns = points["matrix"], self.pieces[0]["matrix"].X, self.columns()
        matrix.refuse_new_examples()
        if before.size:
            same = before is matrix.X or np.array_equal(before, matrix.X)
        else:
            same = self.stored_matrix in (None, matrix.digest())  # None: in files of earlier versions
        if not same:
            raise ValueError("precomputed: the training matrix must be what it was, but its numbers differ")
        made = Supports(self.kernel)
        made.add(matrix.X[columns], points.take(columns))
        return made

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All of them as plain facts and arrays."""
        if not self.count:
            return {"kind": "none"}, {}
        if self.kernel.data == "matrix":
            if len(self.pieces[0].views) > 1:
                raise ValueError(
                    f"{self.kernel} cannot be saved: it looks at whole rows of a precomputed matrix, and a model file "
                    "holds only which rows the support examples are"
                )
            matrix = self.pieces[0]["matrix"]
            digest = matrix.digest() if matrix.X.size else self.stored_matrix
            return {"kind": "columns", "matrix": digest}, {"columns": self.columns()}
        facts, arrays = pack_data(self.examples())
        # Products of rows with and without their zeros are not rounded alike.
        return ({**facts, "thin": True} if self.pieces[0].thin else facts), arrays

    @classmethod
    def unpack(cls, kernel: Any, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Supports:
        if facts["kind"] == "none":
            return cls(kernel)
        if facts["kind"] == "columns":
            self, columns = cls(kernel), arrays["columns"]
            if kernel.data != "matrix" or columns.ndim != 1 or columns.dtype.kind != "i" or (columns < 0).any():
                raise ValueError("the support examples are not columns of a precomputed matrix")
            self.add(np.empty((len(columns), 0)), by_columns(columns))
            self.stored_matrix = facts.get("matrix")
            return self
        raw = unpack_data(facts, arrays)
        points = kernel.points(raw)
        return cls(kernel, raw, points.thinned(surely=True) if facts.get("thin") else points)


def as_given(X: Any, kernel: Any) -> Any:
    """Examples for a kernel that need not be of numbers: a matrix if they are one, else a list."""
    if kernel.data == "any" and len(getattr(X, "shape", ())) == 2:
        table = not sp.issparse(X) and not isinstance(X, np.ndarray)
        raw = numeric(X, kernel) if table else X.tocsr() if sp.issparse(X) else X
    else:
        raw = listed(X, str(kernel), "examples" if kernel.data == "any" else kernel.data)
    if not _count(raw):
        raise ValueError("X is empty: there are no examples to learn from or to predict")
    return raw


def stack(parts: list[Any]) -> Any:
    """Examples of several collections in one: dense or sparse matrices, or lists of objects."""
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [example for part in parts for example in part]


def pick(raw: Any, rows: np.ndarray) -> Any:
    """Some rows of a matrix or a list."""
    return raw[rows] if isinstance(raw, np.ndarray) or sp.issparse(raw) else [raw[int(i)] for i in rows]


def _count(raw: Any) -> int:
    return int(raw.shape[0]) if hasattr(raw, "shape") else len(raw or [])
