"""Columns of every Arrow type in Arrow and Parquet files: read, or refused in one sentence."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlearn import cli

HALF = 30  # of the rows
ROWS = 2 * HALF
TURNS = pa.array([0, 1] * HALF, pa.int8())
ENDS = pa.array([10, ROWS], pa.int32())
LARGE = [2**63 + 1, 2**64 - 1]


def two(values, kind=None):
    """A column in which two values take turns."""
    return pa.array(values, kind).take(TURNS)


def coded(values):
    return pa.DictionaryArray.from_arrays(TURNS, values)


def extension(kind, values):
    return pa.ExtensionArray.from_storage(kind, two(values, kind.storage_type))


COLUMNS = {
    "string_view": pa.array(["a", "b"] * HALF, pa.string_view()),
    "binary_view": pa.array([b"a", b"\xff"] * HALF, pa.binary_view()),
    "runs": pa.RunEndEncodedArray.from_arrays(ENDS, pa.array(["a", "b"])),
    "runs_of_views": pa.RunEndEncodedArray.from_arrays(ENDS, pa.array(["a", "b"], pa.string_view())),
    "runs_of_numbers": pa.RunEndEncodedArray.from_arrays(ENDS, pa.array([1.5, None])),
    "dictionary": two(["a", None]).dictionary_encode(),
    "dictionary_of_numbers": two([1, 2]).dictionary_encode(),
    "dictionary_of_views": coded(pa.array(["a", "b"], pa.string_view())),
    "dictionary_of_lists": coded(pa.array([["a"], ["b"]])),
    "dictionary_of_intervals": coded(pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())),
    "dictionary_with_null": coded(pa.array(["a", None])),
    "list": two([["a"], None]),
    "large_list": two([["a"], None], pa.large_list(pa.string())),
    "fixed_list": two([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
    "list_view": pa.array([[1], [2, 3]] * HALF, pa.list_view(pa.int32())),
    "large_list_view": pa.array([["a"], None] * HALF, pa.large_list_view(pa.string())),
    "list_of_views": pa.array([["a"], None] * HALF, pa.list_(pa.string_view())),
    "list_of_codes": pa.array([["a"], ["b", "a"]] * HALF, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "list_of_structs": two([[{"a": "x"}], [{"a": None}, None]]),
    "list_of_times": two([[1], None], pa.list_(pa.timestamp("ns"))),
    "map": two([[("a", 1)], []], pa.map_(pa.string(), pa.int8())),
    "struct": two([{"a": 1, "b": {"c": "x"}}, None]),
    "struct_of_views": pa.array([{"a": "x"}, {"a": "y"}] * HALF, pa.struct([("a", pa.string_view())])),
    "empty_struct": two([{}, {}], pa.struct([])),
    "sparse_union": pa.UnionArray.from_sparse(TURNS, [pa.array([1, 2] * HALF), pa.array(["a", "b"] * HALF)]),
    "dense_union": pa.UnionArray.from_dense(
        TURNS, pa.array(np.arange(ROWS, dtype=np.int32) // 2), [pa.array([1, 2] * HALF), pa.array(["a", "b"] * HALF)]
    ),
    "interval": two([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval()),
    "interval_or_null": two([(1, 2, 3), None], pa.month_day_nano_interval()),
    "duration": two([1, 2], pa.duration("ns")),
    "time32": two([1, 2], pa.time32("s")),
    "time64": two([1, 2], pa.time64("ns")),
    "date32": two([1, 2], pa.date32()),
    "date64": two([86_400_000, None], pa.date64()),
    "timestamp": two([1, 2**60], pa.timestamp("ns")),
    "distant": two([1, 2**60], pa.timestamp("s")),
    "zone": two([1, 2], pa.timestamp("ns", "Europe/Berlin")),
    "no_zone": two([1, 2], pa.timestamp("s", "No/Where")),
    "binary": two([b"\xff", b"b"]),
    "large_binary": two([b"\xff", b"b"], pa.large_binary()),
    "fixed_binary": two([b"ab", b"cd"], pa.binary(2)),
    "decimal32": pa.array([decimal.Decimal("1.5"), None] * HALF, pa.decimal32(5, 2)),
    "decimal64": pa.array([decimal.Decimal("1.5"), None] * HALF, pa.decimal64(9, 2)),
    "decimal128": two([decimal.Decimal("1.5"), decimal.Decimal("2.5")]),
    "decimal256": two([decimal.Decimal("1.5"), decimal.Decimal("2.5")], pa.decimal256(50, 2)),
    "half": two(np.array([1, np.nan], np.float16)),
    "uint64": two(LARGE, pa.uint64()),
    "boolean": two([True, None]),
    "null": pa.nulls(ROWS),
    "uuid": extension(pa.uuid(), [b"a" * 16, b"b" * 16]),
    "bool8": extension(pa.bool8(), [1, 0]),
    "json": extension(pa.json_(), ["{}", "[1]"]),
    "opaque": extension(pa.opaque(pa.string(), "of", "others"), ["a", "b"]),
    "tensor": extension(pa.fixed_shape_tensor(pa.int8(), [2]), [[1, 2], [3, 4]]),
}
REFUSED_BY_PARQUET = (pa.ArrowNotImplementedError, pa.ArrowInvalid)


def written(folder, columns: dict[str, pa.Array], end: str):
    """A file of the columns; None if Parquet cannot hold them."""
    path = folder / f"a.{end}"
    table = pa.table({**columns, "x": np.arange(ROWS) % 7, "label": ["p", "q"] * HALF})
    if end == "arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=40)
        return path
    try:
        pq.write_table(table, path, row_group_size=40)
    except REFUSED_BY_PARQUET:
        return None
    return path


@pytest.mark.parametrize("end", ["arrow", "parquet"])
@pytest.mark.parametrize("name", COLUMNS)
def test_described(tmp_path, capsys, name, end):
    path = written(tmp_path, {name: COLUMNS[name]}, end)
    if path is None:
        return
    assert cli.run(["data", "describe", str(path)]) == 0, capsys.readouterr().err
    assert "60, a table" in capsys.readouterr().out
    for more in ([], ["--task", "regress"], ["--task", "multilabel"]):
        code = cli.run(["data", "describe", str(path), "--target", name, *more])
        said = capsys.readouterr().err
        assert code == 0 or (code == 2 and said.count("\n") == 1), said


@pytest.mark.parametrize("end", ["arrow", "parquet"])
def test_learned_from_and_predicted(tmp_path, run, end):
    columns = {name: column for name, column in COLUMNS.items() if written(tmp_path, {name: column}, end)}
    path, model = written(tmp_path, columns, end), tmp_path / "m.onl"
    run("train", path, "-o", model, "--quiet")
    run("predict", model, path, "-o", tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_text().count("\n") >= ROWS
    run("evaluate", model, path, err=None)
