"""What is in one column of a table, added up batch by batch."""

from __future__ import annotations

from typing import Any

from onlearn.data.tables import tellable

DISTINCT = 1000  # values of a column that are told apart


class Column:
    """Type, missing and distinct values, and the range of numbers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.type = ""
        self.rows = self.missing = self.own_name = 0
        self.values: set[Any] = set()
        self.sum = 0.0
        self.low: float | None = None
        self.high: float | None = None

    def add(self, values: Any) -> None:
        """Some cells, as an Arrow array."""
        import pyarrow as pa
        import pyarrow.compute as pc

        kind = values.type
        self.rows += len(values)
        self.missing += values.null_count
        if not pa.types.is_null(kind):
            self.type = "number" if is_number(kind) else "string" if pa.types.is_string(kind) else str(kind)
        if pa.types.is_nested(kind) or len(values) == values.null_count:
            return
        if pa.types.is_float16(kind):
            values = values.cast(pa.float32())  # Arrow does no sums in half precision
        if is_number(kind):
            extremes = pc.min_max(values).as_py()
            low, high = float(extremes["min"]), float(extremes["max"])
            self.low = low if self.low is None else min(low, self.low)
            self.high = high if self.high is None else max(high, self.high)
            self.sum += float(pc.sum(values).as_py())
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
            self.own_name += pc.sum(pc.equal(values, self.name)).as_py() or 0
        if len(self.values) <= DISTINCT:
            self.values.update(tellable(pc.unique(values.drop_null())[: DISTINCT + 1]).to_pylist())

    def report(self, rows: int) -> dict[str, Any]:
        made: dict[str, Any] = {
            "type": self.type or "empty",
            "missing": self.missing + rows - self.rows,
            "distinct": min(len(self.values), DISTINCT),
            "distinct_is_at_least": len(self.values) > DISTINCT,
        }
        if self.low is not None:
            there = self.rows - self.missing
            made.update(smallest=self.low, mean=self.sum / there, largest=self.high)
        return made

    def problems(self, rows: int) -> list[str]:
        missing = self.missing + rows - self.rows
        if rows and missing == rows:
            return [f"{self.name}: all values are missing"]
        found = []
        if missing:
            found.append(f"{self.name}: {missing:,} values are missing ({100 * missing / rows:.3g} %)")
        if len(self.values) == 1 and rows > 1:
            found.append(f"{self.name}: always {next(iter(self.values))!r}")
        if self.own_name:
            found.append(f"{self.name}: {self.own_name:,} cells are the name of the column: is the header repeated?")
        return found


def is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind))
