"""Batches of rows: some rows of one file with their labels and their places in the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from onlearn.data.arrow import from_numpy
from onlearn.data.named_rows import NamedRows
from onlearn.engine.csr import CSR


@dataclass(slots=True)
class Sentences:
    """The tokens of several sentences, by column; sentence i has the tokens ``offsets[i]`` to ``offsets[i + 1]``."""

    columns: dict[str, np.ndarray]  # object arrays of str, one entry for each token
    offsets: np.ndarray  # int64

    @property
    def words(self) -> np.ndarray:
        """The column ``form``, or else the first."""
        return self.columns["form"] if "form" in self.columns else next(iter(self.columns.values()))

    def __len__(self) -> int:
        return len(self.offsets) - 1


class Batch:
    """Rows in the order of their file.

    ``rows`` is a ``csr_matrix``, ``NamedRows``, a ``pyarrow.Table`` or ``Sentences``; ``parsed`` is the same with a
    ``CSR`` instead of a ``csr_matrix``. ``y`` holds the labels as written (str; None for a row without a label), or
    float64 for regression. ``codes`` are positions in ``label_names``, a list that only grows from batch to batch; -1
    is a row without a label. Training on codes creates no strings. ``Sentences`` have a label for each token.
    """

    __slots__ = ("_rows", "_y", "codes", "file", "groups", "ids", "label_names", "lines", "parsed", "weight")

    def __init__(
        self,
        rows: Any,
        y: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        ids: np.ndarray | None = None,
        groups: np.ndarray | None = None,
        file: str = "",
        lines: np.ndarray | None = None,
        codes: np.ndarray | None = None,
        label_names: list[str] | None = None,
    ) -> None:
        self.parsed: Any = as_parsed(rows)
        self._rows = None if isinstance(rows, CSR) else rows  # converted on first use
        self._y = y
        self.weight: np.ndarray | None = weight
        self.ids: np.ndarray | None = ids
        self.groups: np.ndarray | None = groups
        self.file: str = file
        self.lines: np.ndarray = np.arange(1, len(self) + 1) if lines is None else lines
        self.codes: np.ndarray | None = codes
        self.label_names: list[str] | None = label_names

    @property
    def rows(self) -> Any:
        """The rows, as users get them."""
        if self._rows is None:
            self._rows = as_public(self.parsed)
        return self._rows

    @property
    def y(self) -> np.ndarray | None:
        """The labels."""
        if self._y is None and self.codes is not None and self.label_names is not None:
            names = np.empty(len(self.label_names) + 1, dtype=object)  # the last entry, for code -1, is None
            names[:-1] = self.label_names
            self._y = names[self.codes]
        return self._y

    def __len__(self) -> int:
        return rows_in(self.parsed)

    def __repr__(self) -> str:
        return f"<Batch of {len(self)} rows ({type(self.parsed).__name__}) from {self.file or 'memory'}>"

    def slice(self, start: int, stop: int) -> Batch:
        """The rows ``start`` to ``stop``."""

        def part(array: np.ndarray | None, rows: slice) -> np.ndarray | None:
            return None if array is None else array[rows]

        here = slice(start, stop)
        targets = here
        if isinstance(self.parsed, Sentences):
            targets = slice(int(self.parsed.offsets[start]), int(self.parsed.offsets[stop]))
        return Batch(
            rows_between(self.parsed, start, stop),
            part(self._y, targets),
            part(self.weight, here),
            part(self.ids, here),
            part(self.groups, here),
            self.file,
            self.lines[here],
            part(self.codes, targets),
            self.label_names,
        )

    def take(self, keep: np.ndarray) -> Batch:
        """The rows at some positions; not for sentences."""

        def part(array: np.ndarray | None) -> np.ndarray | None:
            return None if array is None else array[keep]

        return Batch(
            rows_at(self.parsed, keep),
            part(self._y),
            part(self.weight),
            part(self.ids),
            part(self.groups),
            self.file,
            self.lines[keep],
            part(self.codes),
            self.label_names,
        )

    def split(self, most: int) -> Iterator[Batch]:
        """Split the batch into parts of at most ``most`` rows."""
        for start in range(0, len(self), most):
            yield self.slice(start, min(start + most, len(self)))


def is_table(rows: Any) -> bool:
    """Whether rows are a PyArrow table, without importing PyArrow."""
    return hasattr(rows, "column_names")


def as_parsed(rows: Any) -> Any:
    """Rows in the internal form: a SciPy matrix becomes a ``CSR``."""
    return CSR.of(rows) if hasattr(rows, "tocsr") else rows


def as_public(rows: Any) -> Any:
    """Rows in the public form: a ``CSR`` becomes a SciPy matrix."""
    return rows.to_scipy() if isinstance(rows, CSR) else rows


def rows_in(rows: Any) -> int:
    """The number of rows."""
    if isinstance(rows, NamedRows):
        return len(rows.indptr) - 1
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def rows_between(rows: Any, start: int, stop: int) -> Any:
    """The rows ``start`` to ``stop``, of any kind."""
    if isinstance(rows, (CSR, NamedRows)):
        return rows.between(start, stop)
    if isinstance(rows, Sentences):
        first, last = int(rows.offsets[start]), int(rows.offsets[stop])
        columns = {name: column[first:last] for name, column in rows.columns.items()}
        return Sentences(columns, rows.offsets[start : stop + 1] - first)
    if is_table(rows):
        return rows.slice(start, stop - start)
    return rows[start:stop]


def rows_at(rows: Any, keep: np.ndarray) -> Any:
    """The rows at some positions, of any kind but sentences."""
    if isinstance(rows, NamedRows):
        counts = np.diff(rows.indptr)
        mask = np.zeros(len(counts), dtype=bool)
        mask[keep] = True
        indptr = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts[mask])])
        return rows.with_features(indptr, np.repeat(mask, counts))
    if isinstance(rows, CSR):
        return rows.take(keep)
    return rows.take(from_numpy(keep)) if is_table(rows) else rows[keep]
