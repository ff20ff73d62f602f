"""Whether a sum of examples in feature space is zero, without rounding: the proof that a cycle in the dual gives.

sum_i a_i phi(x_i) = 0 is certain in three cases: the multipliers of all examples that are equal add up to zero; the
kernel is linear, and the sum of the rows is zero in whole numbers; the kernel is a polynomial of rows of whole numbers,
and K a = 0 in whole numbers, which makes the squared length a.K a of the sum zero. In all others a kernel value may be
rounded, and nothing is certain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlearn.dual.examples import pick
from onlearn.dual.supports import SupportSet
from onlearn.engine.csr import is_sparse
from onlearn.engine.cycles import is_zero_sum
from onlearn.kernels.vectors import Linear, Polynomial

MOST = 500  # support examples of which products are formed in whole numbers
LARGEST = 2.0**53  # up to which a float64 holds every whole number


def cancel(steps: np.ndarray, supports: SupportSet, bias: float) -> bool:
    """Whether sum_i steps_ik (phi(x_i), bias) is surely zero for every output k, and the steps are not all zero."""
    some = np.flatnonzero(steps.any(axis=1))
    if not len(some) or not np.isfinite(steps).all():
        return False
    if bias != 0.0 and any(math.fsum(of_output) != 0.0 for of_output in steps.T):
        return False
    steps, rows = steps[some], pick(supports.examples(), some)
    if all(math.fsum(of_output[same]) == 0.0 for same in equal_examples(rows) for of_output in steps.T):
        return True
    if isinstance(supports.kernel, Linear):
        return is_zero_sum(steps, rows, bias)
    gram = None if (steps % 1).any() else exact_gram(supports.kernel, rows)
    return gram is not None and not (gram @ whole_numbers(steps)).any()


def equal_examples(rows: Any) -> list[np.ndarray]:
    """The places of the examples that are equal, for each that there is."""
    places: dict[Any, list[int]] = {}
    for n in range(rows.shape[0] if hasattr(rows, "shape") else len(rows)):
        places.setdefault(_key(rows, n), []).append(n)
    return [np.array(same) for same in places.values()]


def _key(rows: Any, n: int) -> Any:
    if is_sparse(rows):
        held = slice(int(rows.indptr[n]), int(rows.indptr[n + 1]))
        return rows.data[held].tobytes(), rows.indices[held].tobytes()
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        return rows[n].tobytes()
    return rows[n] if isinstance(rows[n], str) else id(rows[n])


def exact_gram(kernel: Any, rows: Any) -> np.ndarray | None:
    """Kernel values as whole numbers of Python, where they are such: a polynomial of rows of whole numbers; else None.

    >>> from onlearn.kernels import Polynomial
    >>> exact_gram(Polynomial(2), np.array([[1.0, 0.0], [1.0, 2.0]]))
    array([[4, 4],
           [4, 36]], dtype=object)
    """
    count = rows.shape[0] if hasattr(rows, "shape") else 0
    if not isinstance(kernel, Polynomial) or kernel.gamma % 1 or kernel.coef0 % 1 or not 0 < count <= MOST:
        return None
    dense = np.asarray(rows.toarray() if is_sparse(rows) else rows, dtype=np.float64)
    if (dense % 1).any() or (np.abs(dense) @ np.abs(dense).T).max() > LARGEST:
        return None
    products = whole_numbers(dense @ dense.T)
    return np.asarray((products * int(kernel.gamma) + int(kernel.coef0)) ** int(kernel.degree))


def whole_numbers(values: np.ndarray) -> np.ndarray:
    """Floats that hold whole numbers, as those of Python, which never overflow."""
    return np.vectorize(int, otypes=[object])(values)
