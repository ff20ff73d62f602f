"""Which rows of a data set are support examples already: ``fit`` with ``warm_start`` goes over the same rows again.

They are known by what is in them, bit for bit; objects that are neither numbers nor strings, by being the same object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp


def places(rows: Any, examples: Any) -> np.ndarray:
    """Of each row its number among the examples, or -1; of several that are equal, each gets one of its own."""
    found = np.full(rows.shape[0] if hasattr(rows, "shape") else len(rows), -1, dtype=np.int64)
    if examples is None:
        return found
    free: dict[Any, list[int]] = {}
    for number, key in enumerate(_keys(examples)):
        free.setdefault(key, []).append(number)
    for numbers in free.values():
        numbers.reverse()  # the first one is taken from the end
    for row, key in enumerate(_keys(rows)):
        if free.get(key):
            found[row] = free[key].pop()
    return found


def _keys(some: Any) -> Iterator[Any]:
    """Something of each row that is equal where the rows are."""
    if sp.issparse(some):
        for start, stop in zip(some.indptr[:-1], some.indptr[1:], strict=True):
            yield some.indices[start:stop].tobytes(), some.data[start:stop].tobytes()
    elif isinstance(some, np.ndarray) and some.dtype.kind in "biuf":
        yield from (row.tobytes() for row in some)
    else:
        yield from (item if isinstance(item, (str, bytes)) else id(item) for item in some)
