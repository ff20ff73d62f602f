"""A description of data before training: rows, columns, labels and problems, added up batch by batch."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np

from onlearn.data import Batch, Reader, Sentences
from onlearn.data.arrow import in_one_piece, scalar
from onlearn.data.batch import NamedRows
from onlearn.data.file_reader import concatenated
from onlearn.data.table_roles import tellable
from onlearn.engine.csr import CSR
from onlearn.engine.number_names import label_name
from onlearn.features import guess_roles
from onlearn.features.roles import LOOK_AT
from onlearn.inert_text import escaped
from onlearn.models.plan import with_text
from onlearn.models.run_checks import MANY_LABELS, regression_question

DISTINCT = 1000  # values of a column that are counted
LONG = 200  # letters from which only a hash of a value is held
HELD = 1 << 26  # bytes of the first rows that are held for the roles of columns


class Column:
    """One column of a table, batch by batch: its type, missing and distinct values, and the range of numbers."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.type: str = ""
        self.rows: int = 0
        self.missing: int = 0
        self.own_name: int = 0  # cells that are the name of the column
        self.values: set[Any] = set()
        self.sum: float = 0.0
        self.low: float | None = None
        self.high: float | None = None

    def add(self, values: Any) -> None:
        """Add cells, an Arrow array."""
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
            self.own_name += pc.sum(pc.equal(values, scalar(self.name))).as_py() or 0
        if len(self.values) <= DISTINCT:
            self.values.update(map(short, tellable(pc.unique(values.drop_null())[: DISTINCT + 1]).to_pylist()))

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
            (value,) = self.values
            always = f"{shown(value[0])} and so on" if isinstance(value, tuple) else shown(value)
            found.append(f"{self.name}: always {always}")
        if self.own_name:
            found.append(f"{self.name}: {self.own_name:,} cells are the name of the column: is the header repeated?")
        return found


def short(value: Any) -> Any:
    """A value itself, or what stands for a long one, which would take much memory."""
    long = isinstance(value, (str, bytes)) and len(value) > LONG
    return (value[:LONG], hash(value)) if long else value


def shown(value: Any) -> str:
    r"""A value as text: numbers by their names, strings and bytes in quotes, with escapes for what is not seen.

    >>> print(shown(1.0), shown("a\n"), shown(b"a\xff"))
    1 'a\n' 'a\xff'
    """
    if not isinstance(value, (str, bytes)):
        return escaped(label_name(value))
    text = value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
    return f"'{escaped(text, kept='')}'"


def is_number(kind: Any) -> bool:
    import pyarrow.types as kinds

    return bool(kinds.is_integer(kind) or kinds.is_floating(kind))


MANY = 1 << 22  # features that are counted


class Rows(Protocol):
    """Rows of one kind, added up batch by batch: a report, and what looks wrong."""

    kind: str

    def add(self, batch: Batch) -> None: ...

    def report(self, rows: int) -> dict[str, Any]: ...

    def problems(self, rows: int) -> list[str]: ...


class TableRows:
    kind: str = "a table"

    def __init__(self, named: Collection[str]) -> None:
        self.named: Collection[str] = named  # of target, weight and id, those that a column holds
        self.columns: dict[str, Column] = {}
        self.first: list[Any] = []  # the first rows, for the roles of columns
        self.held: int = 0  # how many they are
        self.size: int = 0  # and their bytes

    def add(self, batch: Batch) -> None:
        table = batch.parsed
        if self.held < LOOK_AT and self.size < HELD:
            self.first.append(table.slice(0, LOOK_AT - self.held))
            self.held += self.first[-1].num_rows
            self.size += self.first[-1].nbytes
        for name in table.column_names:
            self.columns.setdefault(name, Column(name)).add(in_one_piece(table.column(name)))

    def report(self, rows: int) -> dict[str, Any]:
        roles = with_text(guess_roles(concatenated(self.first)), self.named) if self.columns else {}
        columns = {
            name: {**column.report(rows), "role": roles[name].role, "reason": roles[name].reason}
            for name, column in self.columns.items()
        }
        cells = rows * len(columns)
        filled = cells - sum(column["missing"] for column in columns.values())
        return {"columns": columns, "density": filled / cells if cells else None}

    def problems(self, rows: int) -> list[str]:
        return [problem for column in self.columns.values() for problem in column.problems(rows)]


class MatrixRows:
    kind: str = "a matrix"

    def __init__(self) -> None:
        self.values: int = 0
        self.zeros: int = 0  # among the values
        self.empty: int = 0  # rows without values
        self.width: int = 0
        self.used: np.ndarray = np.zeros(0, dtype=bool)  # features that occur
        self.low: float = np.inf
        self.high: float = -np.inf

    def add(self, batch: Batch) -> None:
        X = batch.parsed
        self.values += X.nnz
        self.width = max(self.width, X.shape[1])
        self.empty += int(np.count_nonzero(np.diff(X.indptr) == 0))
        if X.nnz:
            self.zeros += int(np.count_nonzero(X.data == 0))
            self.low, self.high = min(self.low, float(X.data.min())), max(self.high, float(X.data.max()))
            near = X.indices[X.indices < MANY]
            if len(near) and near.max() >= len(self.used):
                self.used = np.append(self.used, np.zeros(int(near.max()) + 1 - len(self.used), dtype=bool))
            self.used[near] = True

    def report(self, rows: int) -> dict[str, Any]:
        used = int(self.used.sum())
        return {
            "features": self.width,  # as training counts them: an index is a feature, whether it occurs or not
            "features_that_occur": used,
            "features_that_occur_are_at_least": self.width > MANY,
            "largest_index": self.width - 1,
            "values": self.values,
            "values_a_row": self.values / rows if rows else None,
            "density": self.values / (rows * used) if rows and used and self.width <= MANY else None,
            "smallest": self.low if self.values else None,
            "largest": self.high if self.values else None,
        }

    def problems(self, rows: int) -> list[str]:
        found = []
        if self.empty:
            found.append(f"{self.empty:,} rows have no features")
        if self.zeros:
            found.append(f"{self.zeros:,} values are written though they are zero")
        if self.width > MANY:
            found.append(f"the largest index is {self.width - 1:,}: features are many, or numbered by hashes")
        return found


class NamedFeatures:
    kind: str = "named rows"

    def __init__(self) -> None:
        self.values: int = 0
        self.empty: int = 0  # rows without values
        self.spaces: dict[str, int] = {}
        self.known: np.ndarray = np.zeros(0, dtype=np.uint64)  # hashes of names
        self.full: bool = False

    def add(self, batch: Batch) -> None:
        rows: NamedRows = batch.parsed
        self.values += len(rows.hashes)
        self.empty += int(np.count_nonzero(np.diff(rows.indptr) == 0))
        for prefix, count in zip(rows.prefixes, np.bincount(rows.groups, minlength=len(rows.prefixes)).tolist()):
            if count:
                name = prefix.removesuffix("^")
                self.spaces[name] = self.spaces.get(name, 0) + count
        if not self.full:
            self.known = np.union1d(self.known, rows.hashes)
            self.full = len(self.known) > MANY

    def report(self, rows: int) -> dict[str, Any]:
        count = len(self.known)
        return {
            "features": count,
            "features_are_at_least": self.full,
            "values": self.values,
            "values_a_row": self.values / rows if rows else None,
            "density": self.values / (rows * count) if rows and count and not self.full else None,
            "namespaces": self.spaces,
        }

    def problems(self, rows: int) -> list[str]:
        return [f"{self.empty:,} rows have no features"] if self.empty else []


class SentenceRows:
    kind: str = "sentences"

    def __init__(self) -> None:
        self.tokens: int = 0
        self.names: dict[str, None] = {}

    def add(self, batch: Batch) -> None:
        self.tokens += int(batch.parsed.offsets[-1] - batch.parsed.offsets[0])
        self.names.update(dict.fromkeys(batch.parsed.columns))

    def report(self, rows: int) -> dict[str, Any]:
        return {"tokens": self.tokens, "columns": {name: {} for name in self.names}}

    def problems(self, rows: int) -> list[str]:
        return []


def of_kind(rows: Any, named: Collection[str]) -> Rows:
    """An empty description of the kind that suits rows."""
    if isinstance(rows, NamedRows):
        return NamedFeatures()
    if isinstance(rows, Sentences):
        return SentenceRows()
    return MatrixRows() if isinstance(rows, CSR) else TableRows(named)


class Labels:
    """Labels and how often each occurs; in regression, the range of numbers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.counts: np.ndarray = np.zeros(0, dtype=np.int64)
        self.absent: int = 0
        self.n: int = 0  # numbers
        self.sum: float = 0.0
        self.low: float = np.inf
        self.high: float = -np.inf

    def add(self, batch: Batch) -> None:
        if batch.codes is not None and batch.label_sets is not None:
            self._add_sets(batch.codes, [*batch.label_sets, ()])
        elif batch.codes is not None:
            self.names = batch.label_names or []
            counts = np.bincount(batch.codes[batch.codes >= 0], minlength=len(self.counts))
            counts[: len(self.counts)] += self.counts
            self.counts = counts
            self.absent += int(np.count_nonzero(batch.codes < 0))
        elif batch.y is not None:
            known = batch.y[~np.isnan(batch.y)]
            self.absent += len(batch.y) - len(known)
            self.n += len(known)
            if len(known):
                self.sum += float(known.sum())
                self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
        else:
            self.absent += len(batch)

    def _add_sets(self, codes: np.ndarray, sets: list[tuple[str, ...]]) -> None:
        """Count the labels of rows that may have several; the last set is the empty one."""
        counts = dict(zip(self.names, self.counts.tolist()))
        for code, count in zip(*(one.tolist() for one in np.unique(codes, return_counts=True))):
            self.absent += 0 if sets[code] else count
            for label in sets[code]:
                counts[label] = counts.get(label, 0) + count
        self.names, self.counts = list(counts), np.array(list(counts.values()), dtype=np.int64)

    def report(self) -> dict[str, Any]:
        order = np.argsort(-self.counts, kind="stable").tolist()
        made: dict[str, Any] = {"labels": {self.names[k]: int(self.counts[k]) for k in order if self.counts[k]}}
        made["unlabelled"] = self.absent
        if self.n:
            made["target"] = {"smallest": self.low, "mean": self.sum / self.n, "largest": self.high}
        return made

    def problems(self, rows: int) -> list[str]:
        found = []
        labels = [name for name, count in zip(self.names, self.counts) if count]
        if self.absent == rows:
            found.append("no row has a label (target= names the column)")
        elif self.absent:
            found.append(f"{self.absent:,} rows have no label")
        if len(labels) == 1:
            found.append(f"there is only one label, {labels[0]!r}")
        if (asked := regression_question(labels)) is not None:
            found.append(asked)
        alike: dict[str, list[str]] = {}
        for name in labels:
            alike.setdefault(name.strip().rstrip(".").casefold(), []).append(name)
        for names in list(alike.values())[:1000]:
            if len(names) > 1:
                found.append(f"labels that hardly differ: {', '.join(map(repr, names[:5]))}")
        rare = [name for name, count in zip(self.names, self.counts) if count == 1]
        if rare and len(labels) < MANY_LABELS:
            found.append(f"seen only once: {', '.join(map(repr, rare[:5]))}{' ...' if len(rare) > 5 else ''}")
        return found


def describe(reader: Reader) -> dict[str, Any]:
    """A description of everything that is read, ready for JSON."""
    kinds: dict[str, Rows] = {}
    labels, rows = Labels(), 0
    for batch in reader:
        found = of_kind(batch.parsed, reader.found())
        kinds.setdefault(found.kind, found).add(batch)
        labels.add(batch)
        rows += len(batch)
    problems = []
    if reader.bad.count:
        problems += [line.strip() for line in reader.bad.summary().splitlines()]
    if len(kinds) > 1:
        problems.append(f"the files do not go together: {' and '.join(kinds)}")
    made: dict[str, Any] = {
        "files": [source.name for source in reader.sources],
        "rows": rows,
        "bad_rows": reader.bad.count,
        "kind": " and ".join(kinds),
        "notes": list(dict.fromkeys(reader.notes)),
        **labels.report(),
    }
    for kind in kinds.values():
        made.update(kind.report(rows))
        problems += kind.problems(rows)
    if rows and "sentences" not in kinds:
        problems += labels.problems(rows)
    return {**made, "problems": problems}
