"""``load``: a whole file at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.data.batch import Sentences
from onlearn.data.reading import read
from onlearn.named import NamedRows


def load(source: Any, **options: Any) -> tuple[Any, np.ndarray | None]:
    """All rows and labels of one or more files: X and y. Takes what ``read`` takes.

    X is a ``csr_matrix`` for svmlight, a ``pyarrow.Table`` for tables and text, ``NamedRows`` for Vowpal Wabbit and
    ``Sentences`` for CoNLL.
    """
    batches = list(read(source, **options))
    kinds = {type(batch.rows) for batch in batches}
    if len(kinds) > 1:
        raise ValueError("files of different kinds cannot be loaded together: read them one by one")
    labels = [batch.y for batch in batches if batch.y is not None]
    y = np.concatenate(labels) if len(labels) == len(batches) else None
    return together([batch.rows for batch in batches]), y


def together(parts: list[Any]) -> Any:
    """Rows of one kind, one after another."""
    first = parts[0]
    if isinstance(first, NamedRows):
        return named_together(parts)
    if isinstance(first, Sentences):
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns}
        return Sentences(columns, offsets_together([part.offsets for part in parts]))
    if hasattr(first, "column_names"):
        import pyarrow as pa

        return pa.concat_tables(parts, promote_options="permissive")
    import scipy.sparse as sp

    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize(part.shape[0], width)
    return sp.vstack(parts, format="csr") if len(parts) > 1 else first


def named_together(parts: list[NamedRows]) -> NamedRows:
    prefixes = list(dict.fromkeys(prefix for part in parts for prefix in part.prefixes))
    if len(prefixes) > 1 << 16:
        raise ValueError("there are too many namespaces to load at once: read the file in batches")
    shifts = np.cumsum([0, *(len(part.text) for part in parts)])
    groups = [
        np.array([prefixes.index(prefix) for prefix in part.prefixes], dtype=np.uint16)[part.groups] for part in parts
    ]
    return NamedRows(
        offsets_together([part.indptr for part in parts]),
        np.concatenate([part.hashes for part in parts]),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.starts + shift for part, shift in zip(parts, shifts)]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate(groups),
        np.concatenate([part.text for part in parts]),
        tuple(prefixes),
    )


def offsets_together(parts: list[np.ndarray]) -> np.ndarray:
    ends = np.cumsum([0, *(part[-1] for part in parts)])
    return np.concatenate([parts[0][:1], *(part[1:] + end for part, end in zip(parts, ends))])
