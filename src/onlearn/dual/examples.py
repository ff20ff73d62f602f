"""Collections of examples: dense rows, sparse rows, or lists of strings, trees and other objects.

Sparse rows are a ``CSR``, or the SciPy matrix that a user passed in; what is made of them is of the same type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR, is_sparse
from onlearn.kernels.base import listed
from onlearn.kernels.products import numeric
from onlearn.kernels.trees import read_tree

MATCH_ROWS = 1024  # rows whose zeros are dropped together: one by one takes long, all at once takes memory
LARGEST_EXACT = 2**53  # up to here a double holds every whole number


class Examples:
    """A data set, both as the user passed it in (``raw``) and as the kernel prepares it (``points``)."""

    raw: Any
    points: Any
    shape: tuple[int, int]
    dtype: np.dtype

    def __init__(self, raw: Any, points: Any, width: int) -> None:
        self.raw, self.points = raw, points
        self.shape, self.dtype = (len(points), width), np.dtype(points.dtype)

    def __getitem__(self, rows: np.ndarray) -> Examples:
        return Examples(pick(self.raw, rows), self.points.take(rows), self.shape[1])


def check_examples(X: Any, kernel: Any) -> Any:
    """Examples for a kernel that need not be of numbers: a matrix if X is one, else a list."""
    if kernel.data == "any" and len(getattr(X, "shape", ())) == 2:
        if hasattr(X, "tocsr"):
            raw = X.tocsr()
        else:
            raw = X if isinstance(X, (np.ndarray, CSR)) else numeric(X, kernel)
    else:
        raw = listed(X, str(kernel), "examples" if kernel.data == "any" else kernel.data)
    if not count(raw):
        raise ValueError("X is empty: there are no examples to learn from or to predict")
    return raw


def count(raw: Any) -> int:
    """The number of examples; None holds none."""
    return int(raw.shape[0]) if hasattr(raw, "shape") else len(raw or [])


def pick(raw: Any, rows: np.ndarray) -> Any:
    """Some examples, in the given order."""
    if isinstance(raw, CSR):
        return raw.take(rows)
    return raw[rows] if isinstance(raw, np.ndarray) or is_sparse(raw) else [raw[int(i)] for i in rows]


def concatenate(parts: list[Any]) -> Any:
    """The examples of several collections in one; dense rows beside sparse ones become sparse."""
    like = next((part for part in parts if is_sparse(part)), None)
    if like is not None:
        data, indices, lengths = zip(*(_sparse_parts(part) for part in parts), strict=True)
        shape = (sum(map(len, lengths)), like.shape[1])
        return make_sparse(like, np.concatenate(data), np.concatenate(indices), np.concatenate(lengths), shape)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [example for part in parts for example in part]


def _sparse_parts(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values and columns of the entries of X, row after row, and the number of entries in each row."""
    if not is_sparse(X):
        rows, columns = np.nonzero(X)
        return X[rows, columns], columns.astype(np.int32), np.bincount(rows, minlength=len(X))
    held = slice(int(X.indptr[0]), int(X.indptr[-1]))
    return X.data[held], X.indices[held], np.diff(X.indptr)


def make_sparse(like: Any, data: np.ndarray, indices: np.ndarray, lengths: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix of the type of another one, from its entries and the number of entries in each row."""
    index = np.int32 if max(len(data), *shape) <= np.iinfo(np.int32).max else np.int64
    indices, indptr = indices.astype(index, copy=False), np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    return (
        CSR(data, indices, indptr, shape) if isinstance(like, CSR) else type(like)((data, indices, indptr), shape=shape)
    )


# Which rows of a data set are support examples already: ``fit`` with ``warm_start`` visits the same rows again.
#
# Rows are compared by content, however it is stored: numbers by those that are not zero, trees by their nodes, other
# objects by equality. Only objects without a hash (a list, say) must be identical.


def match_rows(rows: Any, examples: Any, data: str = "any") -> np.ndarray:
    """The number of each row among the examples, or -1; of several equal rows, each gets an example of its own.

    ``data`` is the kind of examples that the kernel takes.
    """
    found = np.full(count(rows), -1, dtype=np.int64)
    if examples is None:
        return found
    free: dict[Any, list[int]] = {}
    for number, key in enumerate(_keys(examples, data)):
        free.setdefault(key, []).append(number)
    for numbers in free.values():
        numbers.reverse()  # so that the first one is popped first
    for row, key in enumerate(_keys(rows, data)):
        if free.get(key):
            found[row] = free[key].pop()
    return found


def _keys(examples: Any, data: str) -> Iterable[Any]:
    """A hashable key for each example, equal for equal examples only."""
    if data == "trees":
        return map(_tree_key, examples)
    if is_sparse(examples) or (isinstance(examples, np.ndarray) and examples.dtype.kind in "biufc"):
        return _number_keys(examples)
    if isinstance(examples, np.ndarray):  # iterating makes new row objects, so their items are compared
        return (tuple(map(_object_key, row.tolist())) for row in examples)
    return map(_object_key, examples)


def _number_keys(matrix: Any) -> Iterator[tuple[bytes, bytes]]:
    size = count(matrix)
    for first in range(0, size, MATCH_ROWS):
        block = np.arange(first, min(first + MATCH_ROWS, size))
        row, column, value = _entries(pick(matrix, block))
        ends = np.searchsorted(row, np.arange(len(block) + 1))
        column, value = column.astype(np.int64), _as_double(value)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            yield column[start:stop].tobytes(), value[start:stop].tobytes()


def _entries(block: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and value of all numbers that are not zero, by row and column."""
    if not is_sparse(block):
        row, column = np.nonzero(block)
        return row, column, block[row, column]
    value, column, lengths = _sparse_parts(block)
    row = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = (row[1:] != row[:-1]) | (column[1:] != column[:-1])
    if not first.all():  # entries of one place are summed
        sums = np.zeros(np.count_nonzero(first), value.dtype)
        np.add.at(sums, np.cumsum(first) - 1, value)
        row, column, value = row[first], column[first], sums
    kept = value != 0
    return row[kept], column[kept], value[kept]


def _as_double(values: np.ndarray) -> np.ndarray:
    """The values in double precision, where that changes none of them: 1 is 1.0."""
    if values.dtype.kind == "c":
        return (values.astype(np.complex128) if values.itemsize <= 16 else values) + 0.0  # no part is -0
    if (
        values.dtype.kind in "iu"
        and values.itemsize == 8
        and ((values > LARGEST_EXACT) | (values < -LARGEST_EXACT)).any()
    ):
        return values
    return values.astype(np.float64) if values.itemsize <= 8 else values


def _tree_key(tree: Any) -> Any:
    """The nodes, whether the tree is text, tuples or lists."""
    nodes = read_tree(tree)
    return tuple(nodes.productions), tuple(map(tuple, nodes.children))


def _object_key(item: Any) -> Any:
    if isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
        return item.shape, _as_double(item + 0).tobytes()
    try:
        hash(item)
    except TypeError:
        return "the object", id(item)  # which its collection keeps alive
    return item
