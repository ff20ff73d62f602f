"""Dask collections as shards: each partition of a data frame, each block of rows of an array, each part of a bag.

Partitions stay where Dask has them; tasks get them as arguments. They must be the same whenever Dask makes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import Batch, DataError
from onlearn.models.kept_rows import RowsAtHand

FIRST = 4096  # rows of the first partition that decide about features


class Collection(NamedTuple):
    """A Dask collection, cut into parts that make rows, labels and weights."""

    kind: str  # "frame", "array" or "bag"
    parts: list[Any]  # futures
    targets: list[Any] | None = None  # futures of the labels of arrays
    columns: list[str] | None = None


def is_collection(data: Any) -> bool:
    """Whether data are a Dask collection, or arrays of Dask's."""
    first = data[0] if isinstance(data, tuple) and data else data
    return hasattr(first, "__dask_graph__")


def rows_and_labels(part: Any, target: str | None, weight: str | None) -> tuple[Any, Any, np.ndarray | None]:
    """Rows, labels and weights of one part."""
    if isinstance(part, tuple):  # of arrays
        X, y = part[:2]
        return as_matrix(X), np.asarray(y), None if len(part) < 3 else np.asarray(part[2], dtype=np.float64)
    import pyarrow as pa

    table = pa.Table.from_pylist(part) if isinstance(part, list) else pa.table(part)
    for name in (target, weight):
        if name is not None and name not in table.column_names:
            raise DataError(f"a part of the data has no column {name!r}")
    labels = table.column(target).to_pylist()
    weights = None if weight is None else np.asarray(table.column(weight).to_pylist(), dtype=np.float64)
    return table.drop_columns([target] if weight is None else [target, weight]), labels, weights
