"""Which rows of a data set are support examples already: ``fit`` with ``warm_start`` goes over the same rows again.

They are known by what is in them, however it is stored: numbers by those that are not zero, trees by their nodes, other
things by being equal. Only what Python cannot look up by its contents (a list, say) must be the same object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.trees_parse import read_tree

AT_ONCE = 1024  # rows whose zeros are left out together: one by one takes long, all at once takes memory
WHOLE = 2**53  # up to here a double holds every whole number


def places(rows: Any, examples: Any, data: str = "any") -> np.ndarray:
    """Of each row its number among the examples, or -1; of several that are equal, each gets one of its own.

    ``data`` is what the kernel takes them for.
    """
    found = np.full(rows.shape[0] if hasattr(rows, "shape") else len(rows), -1, dtype=np.int64)
    if examples is None:
        return found
    free: dict[Any, list[int]] = {}
    for number, key in enumerate(_keys(examples, data)):
        free.setdefault(key, []).append(number)
    for numbers in free.values():
        numbers.reverse()  # the first one is taken from the end
    for row, key in enumerate(_keys(rows, data)):
        if free.get(key):
            found[row] = free[key].pop()
    return found


def _keys(some: Any, data: str) -> Iterable[Any]:
    """Something of each row that is equal where the rows are, and nowhere else."""
    if data == "trees":
        return map(_tree, some)
    if sp.issparse(some) or (isinstance(some, np.ndarray) and some.dtype.kind in "biufc"):
        return _of_numbers(some)
    if isinstance(some, np.ndarray):  # its rows are made when they are looked at, but what is in them stays
        return (tuple(map(_one, row.tolist())) for row in some)
    return map(_one, some)


def _of_numbers(matrix: Any) -> Iterator[tuple[bytes, bytes]]:
    for first in range(0, matrix.shape[0], AT_ONCE):
        row, column, value = _entries(matrix[first : first + AT_ONCE])
        ends = np.searchsorted(row, np.arange(min(AT_ONCE, matrix.shape[0] - first) + 1))
        column, value = column.astype(np.int64), _in_double(value)
        for start, stop in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            yield column[start:stop].tobytes(), value[start:stop].tobytes()


def _entries(block: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and value of all numbers but zeros, by row and column."""
    if not sp.issparse(block):
        row, column = np.nonzero(block)
        return row, column, block[row, column]
    block = block.tocsr(copy=True)
    block.sum_duplicates()
    row = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    some = block.data != 0
    return row[some], block.indices[some], block.data[some]


def _in_double(values: np.ndarray) -> np.ndarray:
    """In double precision, where that changes nothing: 1 is 1.0."""
    if values.dtype.kind == "c":
        return (values.astype(np.complex128) if values.itemsize <= 16 else values) + 0.0  # no part is -0
    if values.dtype.kind in "iu" and values.itemsize == 8 and ((values > WHOLE) | (values < -WHOLE)).any():
        return values
    return values.astype(np.float64) if values.itemsize <= 8 else values


def _tree(tree: Any) -> Any:
    """The nodes, be the tree text, tuples or lists."""
    nodes = read_tree(tree)
    return tuple(nodes.productions), tuple(map(tuple, nodes.children))


def _one(item: Any) -> Any:
    if isinstance(item, np.ndarray) and item.dtype.kind in "biufc":
        return item.shape, _in_double(item + 0).tobytes()
    try:
        hash(item)
    except TypeError:
        return "the object", id(item)  # which its collection keeps alive
    return item
