"""Dask collections as shards: each partition of a data frame, each block of rows of arrays, each part of a bag.

Partitions stay where Dask has them; tasks get them as arguments. They have to be the same whenever they are made anew.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import BadRows, Batch, DataError
from onlearn.data.bad_rows import Bad
from onlearn.data.batch import as_parsed, rows_at, rows_in
from onlearn.data.formats.columnar import as_text
from onlearn.data.table_roles import flat, usual_target
from onlearn.engine.csr import CSR
from onlearn.engine.number_names import label_name
from onlearn.engine.spec import did_you_mean
from onlearn.errors import PlanError
from onlearn.features.tables import as_source
from onlearn.models.raw_rows import as_in_files

FIRST = 4096  # rows of the first part that decide about features, at most
ROWS = 1 << 16  # of a batch


class Columns(NamedTuple):
    """The columns of a part that are not features."""

    target: str | None
    weight: str | None = None


def is_collection(data: Any) -> bool:
    """Whether data are a Dask collection, or a tuple of arrays of Dask's; if not, they have to name files."""
    first = data[0] if isinstance(data, tuple) and data else data
    if hasattr(type(first), "to_delayed"):  # a Delayed would say yes to any attribute
        return True
    several = isinstance(data, Collection) and not (isinstance(data, str) or hasattr(data, "shape"))
    for one in data if several else [data]:  # an array or a table is one
        if not isinstance(one, (str, os.PathLike)):
            raise PlanError(
                "data are files, a Dask data frame or bag, or a pair (X, y) of Dask arrays, not of type "
                f"{type(one).__name__}; dask.array.from_array and dask.dataframe.from_pandas make collections"
            )
    return False


def columns_of(data: Any, options: Any) -> Columns:
    """The columns of a data frame or a bag that are not features."""
    names = [str(name) for name in data.columns] if hasattr(data, "columns") else None
    target = None if options.target is None else str(options.target)
    if target is None and names is not None:
        target = usual_target(names)
    if target is None:
        raise PlanError("say which column is to be predicted", "target")
    if names is not None and target not in names:
        raise PlanError(f"there is no column {target!r}{did_you_mean(target, names)}", "target")
    return Columns(target, None if options.weight is None else str(options.weight))


def parts_of(data: Any, count: int | None) -> list[Any]:
    """The parts of a collection, to be computed."""
    from dask.delayed import delayed as task_of

    if isinstance(data, tuple):
        delayed = _blocks(data, count)
    elif hasattr(data, "to_delayed") and hasattr(data, "npartitions"):
        if count is not None and count != data.npartitions:
            data = data.repartition(npartitions=count)
        delayed = list(data.to_delayed())
    else:
        raise PlanError(
            f"data are files, a Dask data frame or bag, or a pair (X, y) of Dask arrays, not {type(data).__name__}"
        )
    if not delayed:
        raise DataError("the collection has no partitions")
    return [task_of(one) if isinstance(one, tuple) else one for one in delayed]


def _blocks(arrays: tuple[Any, ...], count: int | None) -> list[Any]:
    """Blocks of rows of X, y and perhaps weights."""
    from dask.delayed import delayed

    if len(arrays) not in (2, 3) or any(not hasattr(one, "chunks") for one in arrays):
        raise PlanError("arrays are a pair (X, y), or (X, y, weights), of Dask arrays")
    X, *others = arrays
    if getattr(X, "ndim", 0) != 2 or any(one.ndim != 1 for one in others):
        raise PlanError("X must have two dimensions, and y one")
    if any(np.isnan(size) for one in arrays for size in one.shape):
        raise PlanError("X and y have blocks of unknown sizes: call compute_chunk_sizes() on each of them first")
    if any(one.shape[0] != X.shape[0] for one in others):
        raise DataError(f"X has {X.shape[0]} rows but y has {others[0].shape[0]} entries")
    rows = X.chunks[0] if count is None else tuple(map(len, np.array_split(np.arange(X.shape[0]), count)))
    X = X.rechunk({0: rows, 1: -1})
    columns = [X.to_delayed()[:, 0], *(one.rechunk({0: rows}).to_delayed() for one in others)]
    return [delayed(tuple)(list(block)) for block in zip(*columns)]


def first_rows(part: Any) -> Any:
    """The first rows of a part, to decide by."""
    if isinstance(part, tuple):
        return tuple(one[:FIRST] for one in part)
    return part.head(FIRST) if hasattr(part, "head") else part[:FIRST]


def batches_of(part: Any, name: str, columns: Columns, task: str, extractors: Any, bad: BadRows) -> Iterator[Batch]:
    """The rows of one part in batches; rows without a label are bad."""
    if not isinstance(part, tuple) and not len(part):  # a list of no dicts tells no columns
        return
    rows, labels, weight = _rows_and_labels(part, columns, extractors)
    fit = np.flatnonzero(~_missing(labels))
    for row in np.setdiff1d(np.arange(len(labels)), fit).tolist():
        bad.add(name, Bad(row + 1, 0, "the label is missing", _as_text(part, row)))
    bad.seen(len(fit))
    if len(fit) < len(labels):
        rows, labels, weight = rows_at(rows, fit), labels[fit], None if weight is None else weight[fit]
    if not len(fit):
        return
    if task == "regress":
        whole = Batch(rows, np.asarray(labels, dtype=np.float64), weight, file=name, lines=fit + 1)
    else:
        written = [one if isinstance(one, str) else label_name(one) for one in labels.tolist()]
        places = {label: n for n, label in enumerate(dict.fromkeys(written))}
        codes = np.array([places[one] for one in written], dtype=np.int64)
        whole = Batch(rows, None, weight, file=name, lines=fit + 1, codes=codes, label_names=list(places))
    yield from whole.split(ROWS)


def _rows_and_labels(part: Any, columns: Columns, extractors: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, labels and weights of a part."""
    if isinstance(part, tuple):
        X, y, *weights = part
        parsed = as_parsed(X) if hasattr(X, "tocsr") else CSR.of(np.asarray(X))
        if not np.isfinite(parsed.data).all():
            raise DataError("X has a value that is missing or infinite: replace it, or leave the row out")
        weight = np.asarray(weights[0], dtype=np.float64) if weights else None
        return parsed, np.asarray(y), _sound(weight)
    table = flat(as_source(part))
    for name in columns:
        if name is not None and name not in table.column_names:
            raise PlanError(f"there is no column {name!r} in the data: there are {', '.join(table.column_names[:10])}")
    labels = np.empty(rows_in(table), dtype=object)
    labels[:] = table.column(columns.target).to_pylist()
    weight = None
    if columns.weight is not None:
        weight = np.asarray(table.column(columns.weight).to_numpy(zero_copy_only=False), dtype=np.float64)
    table = table.drop_columns([name for name in columns if name is not None])
    return as_in_files(table, extractors, []), labels, _sound(weight)


def _as_text(part: Any, row: int) -> bytes:
    """One row of a part, for the file of bad rows: of arrays as in an svmlight file, without its label."""
    if not isinstance(part, tuple):
        return as_text(flat(as_source(part)).slice(row, 1))
    X = part[0][[row]]
    found = as_parsed(X) if hasattr(X, "tocsr") else CSR.of(np.asarray(X))
    return " ".join(f"{j + 1}:{value:g}" for j, value in zip(found.indices, found.data)).encode()


def _sound(weight: np.ndarray | None) -> np.ndarray | None:
    """Weights, none of which is missing or negative."""
    if weight is not None and not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise DataError("a weight is missing, negative or infinite: weights are numbers of at least 0")
    return weight


def _missing(labels: np.ndarray) -> np.ndarray:
    """Which labels are None or NaN."""
    if labels.dtype.kind == "f":
        return np.isnan(labels)
    if labels.dtype != object:
        return np.zeros(len(labels), dtype=bool)
    return np.array([one is None or one != one for one in labels.tolist()], dtype=bool)
