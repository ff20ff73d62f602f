"""Boolean instances and their labels, checked: rows of 0 and 1, dense or sparse, labels 0/1 or -1/+1.

Attribute j of the literature is column j - 1. A literal is the number of an attribute, negative if it is negated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bools = NDArray[np.bool_]


def as_instance(x: ArrayLike, n: int) -> Bools:
    """One instance of n attributes.

    >>> as_instance([1, 0, 1], 3).tolist()
    [True, False, True]
    """
    bits = _as_bools(x, "An instance")
    if bits.shape != (n,):
        raise ValueError(f"An instance must have {n} attributes, but its shape is {bits.shape}.")
    return bits


def as_instances(X: Any, n: int | None = None) -> Any:
    """Rows of n attributes, or of any number: a Boolean array, or SciPy's compressed sparse rows."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        _as_bools(X.data, "X")
    else:
        X = _as_bools(X, "X")
    if len(X.shape) != 2 or n not in (None, X.shape[1]):
        raise ValueError(f"X must have rows of {n or 'some'} attributes, but its shape is {X.shape}.")
    return X


def each_instance(X: Any) -> Iterator[Bools]:
    """The rows of checked instances, one Boolean array after the other."""
    if isinstance(X, np.ndarray):
        yield from X
        return
    for start, stop in zip(X.indptr[:-1], X.indptr[1:]):
        row = np.zeros(X.shape[1], dtype=bool)
        row[X.indices[start:stop]] = X.data[start:stop] != 0
        yield row


def as_labels(y: ArrayLike, rows: int) -> Bools:
    """Labels 0 and 1, or -1 and +1, as Booleans.

    >>> as_labels([-1, 1], 2).tolist()
    [False, True]
    """
    labels = np.asarray(y)
    if labels.shape != (rows,):
        raise ValueError(f"y must hold a label for each of the {rows} rows, but its shape is {labels.shape}.")
    if labels.dtype.kind not in "biuf" or not (np.isin(labels, (0, 1)).all() or np.isin(labels, (-1, 1)).all()):
        raise ValueError("Labels must be 0 and 1, or -1 and +1.")
    return np.asarray(labels > 0)


def as_label(y: Any) -> bool:
    """One label: 0, 1, -1 or a Boolean."""
    return bool(as_labels(np.asarray(y).reshape(-1), 1)[0])


def as_literals(literals: Iterable[int], n: int) -> tuple[int, ...]:
    """Literals in the order of their attributes, each of them once.

    >>> as_literals([3, -1, 3], 5)
    (-1, 3)
    """
    found = list(literals)
    for literal in found:
        if not isinstance(literal, Integral) or isinstance(literal, bool) or not 1 <= abs(literal) <= n:
            raise ValueError(
                f"A literal must be a number from 1 to {n}, or minus such a number where it is negated, "
                f"but one is {literal!r}."
            )
    return tuple(sorted({int(literal) for literal in found}, key=lambda literal: (abs(literal), -literal)))


def as_count(name: str, value: Any, least: int = 0) -> int:
    """A whole number that is not too small."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but it is {value!r}.")
    return int(value)


def _as_bools(values: ArrayLike, name: str) -> Bools:
    array = np.asarray(values)
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf" or not ((array == 0) | (array == 1)).all():
        raise ValueError(f"{name} must hold 0 and 1 only.")
    return array.astype(bool)
