"""The examples that k nearest neighbours keep: rows with their targets, their weights and their numbers.

Rows come in parts. Parts of like size are joined, so that there are few of them and a row is seldom copied. A ``Table``
is all rows kept at some time, which does not change any more; the search index of it is made when it is first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from onlearn.dual.examples import pick
from onlearn.engine.base_training import BaseTraining
from onlearn.engine.csr import CSR, of_width, stacked
from onlearn.kernels.formula import pack_data, unpack_rows
from onlearn.model_schema import COUNT, NESTED, Arrays, OrMissing, Record, check_array, under
from onlearn.neighbors.votes import KPath


class Objects:
    """Examples that are not rows of numbers, with the facts that rows have."""

    dtype: np.dtype = np.dtype(np.float64)
    items: list[Any]
    shape: tuple[int, int]

    def __init__(self, items: list[Any]) -> None:
        self.items, self.shape = items, (len(items), 1)


class Table:
    """Rows (a dense array, CSR, or a list of objects) with targets, weights of their votes, and numbers.

    Rows are numbered as they were met, from 0, those without weight and those forgotten since included.
    """

    rows: Any
    targets: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray

    def __init__(self, rows: Any, targets: np.ndarray, weights: np.ndarray, numbers: np.ndarray) -> None:
        self.rows, self.targets, self.weights, self.numbers = rows, targets, weights, numbers
        self.made_by: Any = None  # the parameters that the index depends on
        self.make_index: Callable[[Table], Any] | None = None
        self.path: KPath | None = None
        self.path_by: Any = None  # the parameters that it depends on

    def __len__(self) -> int:
        return len(self.targets)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("index", "make_index", "made_by")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, make_index=None, made_by=None)

    @cached_property
    def index(self) -> Any:
        """The rows, ready for search."""
        assert self.make_index is not None
        return self.make_index(self)

    def take(self, rows: np.ndarray) -> Table:
        return Table(pick(self.rows, rows), self.targets[rows], self.weights[rows], self.numbers[rows])

    def widened(self, width: int) -> Table:
        """The same rows with columns of zeros added."""
        if isinstance(self.rows, list) or self.rows.shape[1] == width:
            return self
        return Table(of_width(self.rows, width), self.targets, self.weights, self.numbers)


def joined(tables: Sequence[Table]) -> Table:
    """The rows of several tables in one; dense rows beside sparse ones become sparse."""
    if len(tables) == 1:
        return tables[0]
    rows: list[Any] = [table.rows for table in tables]
    together: Any
    if isinstance(rows[0], list):
        together = [item for some in rows for item in some]
    elif any(isinstance(some, CSR) for some in rows):
        together = stacked([some if isinstance(some, CSR) else CSR.of(some) for some in rows])
    else:
        together = np.concatenate(rows)
    columns = zip(*((table.targets, table.weights, table.numbers) for table in tables))
    return Table(together, *(np.concatenate(arrays) for arrays in columns))


class Neighbourhood(BaseTraining):
    """All that was learned: the latest rows."""

    features: int
    outputs: int
    parts: tuple[Table, ...] = ()
    met: int = 0  # rows, also those without weight
    window: int | None = None

    def add(self, X: Any, targets: np.ndarray, weights: np.ndarray) -> None:
        """Take in rows; of all, the latest ``window`` are kept."""
        numbers = self.met + np.arange(len(targets))
        rows = X.items if isinstance(X, Objects) else X
        table = Table(rows, targets, weights, numbers)
        if not weights.all():
            table = table.take(np.flatnonzero(weights))
        self.met += len(targets)
        self.count(len(targets))
        if not len(table):
            return
        parts = [*self.parts, table]
        while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):
            parts[-2:] = [joined([part.widened(self.features) for part in parts[-2:]])]
        if self.window is not None:
            while len(parts) > 1 and sum(map(len, parts[1:])) >= self.window:
                parts = parts[1:]
        self.parts = tuple(parts)

    def snapshot(self) -> Table:
        """All rows that are kept now."""
        if not self.parts:
            return Table(np.zeros((0, self.features)), np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))
        table = joined([part.widened(self.features) for part in self.parts])
        if self.window is not None and len(table) > self.window:
            table = table.take(np.arange(len(table) - self.window, len(table)))
        if len(self.parts) > 1 or table is not self.parts[0]:
            self.parts = (table,)
        return table

    def grow(self, features: int, outputs: int) -> None:
        self.features, self.outputs = max(features, self.features), max(outputs, self.outputs)

    # ------------------------------------------------------------------ the model file

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super().pack()
        table = self.snapshot()
        kind, rows = pack_data(table.rows)
        arrays |= {f"rows.{name}": array for name, array in rows.items()}
        arrays |= {"targets": table.targets, "weights": table.weights, "numbers": table.numbers}
        if table.path is not None:
            arrays["errors"] = table.path.errors
            facts["scored"] = table.path.rows
        return {**facts, "rows": kind, "met": self.met}, arrays

    FILED: ClassVar[Record] = Record(
        {**BaseTraining.FILED.facts, "rows": NESTED, "met": COUNT, "scored": OrMissing(COUNT)}
    )

    def take_rows(self, facts: dict[str, Any], arrays: Arrays, objects: bool, dtype: np.dtype) -> None:
        """The rows that ``pack`` took apart; refuses what could not have come from it."""
        rows = unpack_rows(facts["rows"], under("rows.", arrays))
        if isinstance(rows, list) != objects or (not objects and rows.shape[1] != self.features):
            raise ValueError("the examples kept are not such as this learner compares")
        if not objects:
            if rows.dtype != dtype:
                raise ValueError("the examples kept are not of the precision that the header says")
            rows = rows.with_sorted_columns() if isinstance(rows, CSR) else rows
        count = len(rows) if objects else rows.shape[0]
        whole = self.classifies
        low, high = (0, self.outputs - 1) if whole else (-np.inf, np.inf)
        check_array("targets", arrays["targets"], "int64" if whole else "float64", (count,), low, high)
        check_array("weights", arrays["weights"], "float64", (count,), low=0)
        check_array("numbers", arrays["numbers"], "int64", (count,), 0, facts["met"] - 1)
        if (np.diff(arrays["numbers"]) <= 0).any() or not arrays["weights"].all():
            raise ValueError("the examples kept are not in the order in which they came")
        self.met = facts["met"]
        table = Table(rows, arrays["targets"], arrays["weights"], arrays["numbers"])
        if facts.get("scored") is not None:
            errors = arrays["errors"]
            check_array("errors", errors, "float64", (errors.size,), low=0)
            table.path = KPath(errors, facts["scored"])
        self.parts = (table,) if count else ()
