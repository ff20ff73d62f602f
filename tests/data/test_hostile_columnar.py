"""Damaged Arrow and Parquet files: read, or one clear sentence; never a crash, a hang or an error of others.

Mutants are read in a process of their own (this file is its program), so that a crash or a hang is a failing test.
"""

from __future__ import annotations

import faulthandler
import gzip
import io
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HANG = 120  # seconds for one mutant, on a machine that is busy


def nested_table(rows: int = 40) -> pa.Table:
    """Columns of the layouts that Arrow has."""
    texts = [None if n % 7 == 3 else f"text {n} ä" for n in range(rows)]
    numbers = np.arange(rows) * 0.5
    ends = pa.array([rows // 2, rows], pa.int32())
    return pa.table(
        {
            "y": pa.array([f"class {n % 3}" for n in range(rows)]),
            "n": pa.array(numbers, mask=np.arange(rows) % 5 == 0),
            "flag": pa.array([n % 2 == 0 for n in range(rows)]),
            "text": pa.array(texts),
            "large": pa.array(texts, pa.large_string()),
            "view": pa.array([f"a longer text than fits, number {n}" for n in range(rows)], pa.string_view()),
            "coded": pa.array(texts).dictionary_encode(),
            "listed": pa.array([None if n % 5 == 4 else ["a", f"b{n}"][: n % 3] for n in range(rows)]),
            "fixed": pa.array([[n, n + 1] for n in range(rows)], pa.list_(pa.int16(), 2)),
            "views": pa.array([[n] * (n % 3) for n in range(rows)], pa.list_view(pa.int32())),
            "inner": pa.array([{"a": n, "b": {"c": f"x{n}"}} for n in range(rows)]),
            "mapped": pa.array([[("k", n)] for n in range(rows)], pa.map_(pa.string(), pa.int64())),
            "runs": pa.RunEndEncodedArray.from_arrays(ends, pa.array(["first", "second"])),
            "union": pa.UnionArray.from_dense(
                pa.array([n % 2 for n in range(rows)], pa.int8()),
                pa.array([n // 2 for n in range(rows)], pa.int32()),
                [pa.array(numbers[: (rows + 1) // 2]), pa.array(["u"] * (rows // 2))],
            ),
            "raw": pa.array([b"\xff" * (n % 4) for n in range(rows)]),
            "deep": pa.array([[["p", "q"], None, []]] * rows, pa.list_(pa.list_(pa.string())))
        }
    )  # fmt: skip


def plain_table(rows: int = 40) -> pa.Table:
    """Columns that the learners use."""
    return nested_table(rows).select(["y", "n", "flag", "text", "coded", "listed", "inner"])


def stream_of(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=15)
    return sink.getvalue()


def file_of(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=15)
    return sink.getvalue()


def deltas() -> bytes:
    """A stream in which a dictionary grows, and is then another one."""
    sink = io.BytesIO()
    kind = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema({"y": kind})
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        for words in (["a", "b"], ["a", "b", "c"], ["d", "a"]):
            codes = pa.array([0, 1, len(words) - 1], pa.int8())
            writer.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(codes, words)], schema=schema))
    return sink.getvalue()


def parquet_of(table: pa.Table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=15, **options)
    return sink.getvalue()


def originals() -> dict[str, bytes]:
    """Whole files, by name."""
    return {
        "nested.arrow": file_of(nested_table()),
        "plain.arrow": file_of(plain_table()),
        "lz4.arrow": file_of(nested_table(), compression="lz4"),
        "zstd.arrows": stream_of(plain_table(), compression="zstd"),
        "nested.arrows": stream_of(nested_table()),
        "plain.arrows": stream_of(plain_table()),
        "deltas.arrows": deltas(),
        "plain.parquet": parquet_of(plain_table(), compression="none"),
        "snappy.parquet": parquet_of(plain_table(), data_page_version="2.0"),
    }


def mutant(raw: bytes, rng: np.random.Generator) -> bytes:
    """A damaged copy: bytes changed, numbers changed, cut short, or spans zeroed, copied or removed."""
    text = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(0, len(text)))
        span = int(rng.integers(1, 1 + min(64, len(text))))
        match int(rng.integers(0, 8)):
            case 0:
                text[place] ^= 1 << int(rng.integers(8))
            case 1:
                text[place] = int(rng.integers(256))
            case 2:  # a length or an offset
                size = int(rng.choice([2, 4, 8]))
                value = int(rng.choice([0, 1, 127, 1 << 15, (1 << 31) - 1, 1 << 31, 1 << 40, (1 << 63) - 1, -1, -8]))
                start = place // size * size
                if start + size < len(text):
                    text[start : start + size] = (value % (1 << (8 * size))).to_bytes(size, "little")
            case 3:  # a number becomes a little larger or smaller
                start = place // 4 * 4
                if start + 4 < len(text):
                    value = int.from_bytes(text[start : start + 4], "little") + int(rng.integers(-8, 9))
                    text[start : start + 4] = (value % (1 << 32)).to_bytes(4, "little")
            case 4:
                text[place : place + span] = bytes(len(text[place : place + span]))
            case 5:
                source = int(rng.integers(0, len(text)))
                copied = text[source : source + span]
                text[place : place + len(copied)] = copied
            case 6:
                if rng.integers(4) == 0:
                    del text[place:]
                else:
                    text[place] ^= 0xFF
            case 7:
                if rng.integers(4) == 0:
                    del text[place : place + span]
                else:
                    text[place] ^= 0x80
        if not text:
            break
    return bytes(text)


def mutants(names: list[str], first: int, count: int) -> Iterator[tuple[str, int, bytes]]:
    """Some mutants, each of a seed of its own."""
    whole = originals()
    for seed in range(first, first + count):
        name = names[seed % len(names)]
        yield name, seed, mutant(whole[name], np.random.default_rng(seed))


def read_everything(path: Path) -> None:
    """Touch all that readers, descriptions and shards do with a file."""
    from onlearn.data import BadRows, read, shards
    from onlearn.models.describe import describe

    options = {"labels": "optional", "workers": 0}
    with read(path, bad=BadRows(limit=1.0), **options) as reader:
        describe(reader)
    for task, target in (("multilabel", "listed"), ("regress", "n")):
        with read(path, bad=BadRows(limit=1.0), task=task, target=target, **options) as reader:
            for batch in reader:
                batch.rows.validate(full=True)
    for shard in shards.cut(path, 3):
        shards.content(shard)


def main(names: list[str], first: int, count: int, folder: Path) -> None:
    """The program of the process that reads mutants: prints those that end in an error of others."""
    from onlearn.data import DataError

    warnings.simplefilter("ignore")
    faulthandler.enable()
    read = 0
    for name, seed, raw in mutants(names, first, count):
        print(f"{name} {seed}", file=sys.stderr, flush=True)
        path = folder / (name if seed % 5 else f"{name}.gz")
        path.write_bytes(raw if seed % 5 else gzip.compress(raw, 1))
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            read_everything(path)
            read += 1
        except DataError as error:
            if "\n" in str(error):
                print(f"{name} {seed}: several lines: {error}")
        except Exception as error:
            print(f"{name} {seed}: {type(error).__name__}: {error}")
        faulthandler.cancel_dump_traceback_later()
    print(f"done {read}")


def run_mutants(names: list[str], first: int, count: int, folder: Path) -> None:
    command = [sys.executable, __file__, ",".join(names), str(first), str(count), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    seeds = [line for line in done.stderr.splitlines() if line.count(" ") == 1]
    assert done.returncode == 0, f"ended with {done.returncode} at {seeds[-1:]}: {done.stderr[-3000:]}"
    *wrong, end = done.stdout.splitlines()
    assert not wrong
    assert int(end.removeprefix("done ")) >= count // 20, "so few mutants can be read that nothing is tested"


ARROW = [name for name in originals() if ".arrow" in name]
PARQUET = [name for name in originals() if ".parquet" in name]


@pytest.mark.parametrize("names", [ARROW, PARQUET], ids=["arrow", "parquet"])
def test_mutants(tmp_path, names):
    run_mutants(names, 0, 300, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("names", [ARROW, PARQUET], ids=["arrow", "parquet"])
def test_many_mutants(tmp_path, names):
    run_mutants(names, 300, 5000, tmp_path)


def written(path: Path, table: Any, rows: int = 1 << 20, **how) -> Path:
    """A file whose extension says how it is written."""
    if path.suffix == ".parquet":
        pq.write_table(table, path, **how)
        return path
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches(max_chunksize=rows)
    new = pa.ipc.new_file if path.suffix == ".arrow" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(allow_64bit=True)
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def as_text(values: list[bytes | None]) -> pa.Array:
    """Bytes that are said to be text."""
    return pa.array(values, pa.binary()).view(pa.string())


RAW = [b"\xff\xfe" if n == 5 else None if n == 7 else b"caf\xe9" if n == 20 else b"good %d" % n for n in range(40)]


def text_columns() -> dict[str, pa.Array]:
    """Columns in which rows 6 and 21 have text that is not UTF-8."""
    values = pa.array(RAW, pa.binary())
    lists = pa.ListArray.from_arrays(pa.array(np.arange(41), pa.int32()), values)
    kind = pa.dictionary(pa.int32(), pa.string())
    structs = pa.StructArray.from_arrays([as_text(RAW)], ["a"])
    return {
        "text": as_text(RAW),
        "large": values.cast(pa.large_binary()).view(pa.large_string()),
        "view": values.cast(pa.binary_view()).view(pa.string_view()),
        "coded": values.dictionary_encode().view(kind),
        "lists": lists.view(pa.list_(pa.string())),
        "struct": structs,
    }


@pytest.mark.parametrize("end", ["arrow", "arrows", "parquet"])
@pytest.mark.parametrize("name", text_columns())
def test_text_that_is_not_utf8_is_a_bad_row(tmp_path, name, end):
    from onlearn.data import BadRows, read

    table = pa.table({"t": text_columns()[name], "x": range(40), "label": ["p", "q"] * 20})
    path = written(tmp_path / f"a.{end}", table)
    bad = BadRows(tmp_path / "bad.txt", limit=0.5)
    kept = [x for batch in read(path, bad=bad) for x in batch.rows["x"].to_pylist()]
    bad.close()
    assert kept == [n for n in range(40) if n not in (5, 20)]
    column = "t.a" if name == "struct" else "t"
    assert [(where, one.line, one.reason) for where, one in bad.examples] == [
        (str(path), 6, f"'{column}' is not UTF-8"),
        (str(path), 21, f"'{column}' is not UTF-8"),
    ]
    first, second = (tmp_path / "bad.txt").read_text().splitlines()
    assert r"b'\xff\xfe'" in first and r"b'caf\xe9'" in second and "'x': 20" in second


def test_what_pyarrow_refuses_as_a_whole(tmp_path):
    """It makes narrow dictionaries of those that Parquet holds, and then looks at their text."""
    from onlearn.data import DataError, read

    coded = pa.array(RAW, pa.binary()).dictionary_encode().view(pa.dictionary(pa.int32(), pa.string()))
    narrow = pa.DictionaryArray.from_arrays(coded.indices.cast(pa.int8()), coded.dictionary)
    path = written(tmp_path / "a.parquet", pa.table({"t": narrow, "label": ["p", "q"] * 20}))
    with pytest.raises(DataError, match=r"a\.parquet cannot be read: Invalid UTF8"):
        list(read(path))


def test_a_label_that_is_not_utf8_is_a_bad_row(tmp_path):
    from onlearn.data import BadRows, read

    table = pa.table({"x": range(40), "label": as_text(RAW)})
    for end in ("arrow", "parquet"):
        bad = BadRows(limit=0.5)
        labels = [label for batch in read(written(tmp_path / f"a.{end}", table), bad=bad) for label in batch.y]
        assert len(labels) == 37 and [one.line for _, one in bad.examples] == [6, 8, 21]
        assert bad.examples[0][1].reason == "'label' is not UTF-8"


@pytest.mark.parametrize("end", ["arrow", "arrows", "parquet"])
def test_names_of_columns(tmp_path, end):
    from onlearn.data import DataError, read

    path = written(tmp_path / f"a.{end}", pa.table({"xx": [1, 2], "label": ["p", "q"]}), **NO_SCHEMA.get(end, {}))
    path.write_bytes(path.read_bytes().replace(b"xx", b"\xff\xfe"))
    with pytest.raises(DataError, match=rf"a\.{end} cannot be read: a name in it is not UTF-8"):
        list(read(path))
    columns = [pa.array([1, 2]), pa.array([3, 4]), pa.array(["p", "q"])]
    twice = pa.Table.from_arrays(columns, ["a", "a", "label"])
    with pytest.raises(DataError, match=rf"a\.{end}: there are several columns 'a': name them apart"):
        list(read(written(path, twice)))
    facts = {b"pandas": b"{{{", b"\xff": b"\xff"}
    table = pa.table({"x": [1, 2], "label": ["p", "q"]}).replace_schema_metadata(facts)
    assert sum(map(len, read(written(path, table)))) == 2


NO_SCHEMA = {"parquet": {"store_schema": False}}


def test_the_place_of_what_is_wrong(tmp_path):
    from onlearn.data import DataError, read

    codes = pa.array([n % 2 for n in range(40)], pa.int8())
    table = pa.table({"c": pa.DictionaryArray.from_arrays(codes, ["a", "b"]), "label": ["p"] * 40})
    path = written(tmp_path / "a.arrow", table, 15)
    raw = path.read_bytes()
    place = raw.rfind(bytes([n % 2 for n in range(30, 40)]))
    path.write_bytes(raw[:place] + b"\x07" + raw[place + 1 :])
    with pytest.raises(DataError, match=r"a\.arrow cannot be read from row 31 on: .* out of bounds: 7"):
        list(read(path))


def far_dates() -> dict[str, pa.Array]:
    """Dates that Python has no object for, beside a text that is not UTF-8 in row 2."""
    dates = pa.array([2**31 - 1] * 6, pa.int32()).view(pa.date32())
    texts = as_text([b"a", b"\xff", b"c", b"d", b"e", b"f"])
    structs = pa.StructArray.from_arrays([dates, texts], ["date", "text"])
    ends = pa.array(range(7), pa.int32())
    return {
        "list": pa.ListArray.from_arrays(ends, dates),
        "structs": pa.ListArray.from_arrays(ends, structs),
        "fixed": pa.FixedSizeListArray.from_arrays(structs, 1),
        "map": pa.MapArray.from_arrays(ends, texts, dates),
        "union": pa.UnionArray.from_sparse(pa.array([0, 1] * 3, pa.int8()), [dates, texts]),
    }


@pytest.mark.parametrize("name", far_dates())
def test_times_that_python_has_no_object_for(tmp_path, name):
    from onlearn.data import BadRows, read

    labels = ["p", "q", "p", None, "q", "p"]
    path = written(tmp_path / "a.arrow", pa.table({"c": far_dates()[name], "n": range(6), "label": labels}))
    bad = BadRows(limit=1.0)
    kept = [n for batch in read(path, bad=bad) for n in batch.rows["n"].to_pylist()]
    raw = [] if name == "list" else [1]
    assert kept == [n for n in range(6) if n not in (*raw, 3)]
    assert [one.line - 1 for _, one in bad.examples] == [*raw, 3]


def test_times_that_python_has_no_object_for_elsewhere(tmp_path):
    from onlearn.data import DataError, read
    from onlearn.report.evidence import row_text
    from onlearn.streaming.items import plain_rows

    table = pa.table({"label": far_dates()["list"], "n": range(6)})
    assert "2147483647" in row_text(table, 0) and "n: 0" in row_text(table, 0)
    with pytest.raises(DataError, match="the column 'label' holds times"):
        list(plain_rows(table))
    with pytest.raises(DataError, match=r"list<.*date32.* cannot be labels"):
        list(read(written(tmp_path / "a.arrow", table), task="multilabel"))


def patched(raw: bytes, old: int, new: int, shown: str) -> bytes:
    """A stream with a byte of its schema changed, so that PyArrow shows it, or refuses it, in these words."""
    for place in [place for place in range(8, 400) if raw[place] == old]:
        made = raw[:place] + bytes([new]) + raw[place + 1 :]
        try:
            found = str(pa.ipc.open_stream(made).schema)
        except (pa.ArrowException, OSError) as error:
            found = str(error)
        if shown in found:
            return made
    raise AssertionError


def test_types_that_pyarrow_has_no_arrays_of(tmp_path):
    from onlearn.data import DataError, read

    column = pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval())
    for values in (column, pa.ListArray.from_arrays(pa.array(range(5), pa.int32()), column)):
        raw = stream_of(pa.table({"c": values, "label": ["p", "q"] * 2}))
        (tmp_path / "a.arrows").write_bytes(patched(raw, 2, 1, "day_time_interval"))
        with pytest.raises(DataError, match="values of type day_time_interval cannot be read"):
            list(read(tmp_path / "a.arrows"))


def test_the_command_refuses_schemas_in_one_sentence(tmp_path, capsys):
    from onlearn.cli import run

    wide = stream_of(pa.table({"a": pa.array([1, 2], pa.int64()), "label": ["p", "q"]}))
    (tmp_path / "a.arrows").write_bytes(patched(wide, 64, 128, "more than 64 bits"))
    columns = [pa.array(["p", "q"]), pa.array(["r", "s"]), pa.array([1, 2])]
    twice = pa.Table.from_arrays(columns, ["label", "label", "a"])
    written(tmp_path / "b.arrow", twice)
    written(tmp_path / "b.parquet", twice)
    for name, said in (("a.arrows", "cannot be read"), ("b.arrow", "'label'"), ("b.parquet", "'label'")):
        assert run(["train", str(tmp_path / name), "-o", str(tmp_path / "m.onl")]) == 2
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line]
        assert name in line and said in line


ROWS = 1 << 40
NULLS = pa.Array.from_buffers(pa.null(), ROWS, [None])


@pytest.mark.parametrize(
    "column",
    [NULLS, pa.StructArray.from_arrays([NULLS], ["a"]), pa.RunEndEncodedArray.from_arrays([ROWS], ["x"])],
    ids=["null", "struct", "runs"],
)
def test_more_rows_than_the_bytes_can_hold(tmp_path, column):
    from onlearn.data import DataError, read, shards

    path = written(tmp_path / "a.arrow", pa.record_batch([column], ["a"]))
    with pytest.raises(DataError, match=r"it states 1,099,511,627,776 rows, but holds \d+ bytes"):
        list(read(path, labels="optional"))
    with pytest.raises(DataError, match="it states"):
        shards.content(shards.cut(path, 1)[0])


def test_rows_without_bytes(tmp_path):
    from onlearn.data import read

    column = pa.Array.from_buffers(pa.null(), 100_000, [None])
    path = written(tmp_path / "a.arrow", pa.record_batch([column], ["a"]))
    assert sum(map(len, read(path, labels="optional"))) == 100_000


def test_lengths_that_the_file_does_not_have(tmp_path):
    from onlearn.data import DataError, read

    table = pa.table({"a": [0] * 100_000, "label": ["p"] * 100_000})
    plain, packed = stream_of(table), stream_of(table, compression="zstd")
    path = tmp_path / "a.arrows"
    for raw, size in ((plain, 120), (packed, 120)):
        whole = size.to_bytes(8, "little")
        assert whole in raw
        for wrong in (1 << 62, (1 << 64) - 2, 1 << 55, 1 << 20):
            path.write_bytes(raw.replace(whole, wrong.to_bytes(8, "little"), 1))
            with pytest.raises(DataError, match=r"a\.arrows cannot be read"):
                list(read(path))


BIG = "word " * 100_000


def big_column(kind: str, rows: int) -> pa.Array:
    """The same long value in each row, stored once."""
    codes = np.zeros(rows, np.int32)
    match kind:
        case "coded" | "parquet":
            return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([BIG]))
        case "runs":
            return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([BIG]))
        case "list_views":
            sizes = pa.array(codes + 100_000)
            return pa.ListViewArray.from_arrays(pa.array(codes), sizes, pa.array(["word"] * 100_000))
        case "lists":
            inner = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array([BIG]))
            return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), inner)
        case _:
            views = np.zeros((rows, 4), np.int32)
            views[:] = len(BIG), int.from_bytes(b"word", "little"), 0, 0
            return pa.Array.from_buffers(
                pa.string_view(), rows, [None, pa.py_buffer(views), pa.py_buffer(BIG.encode())]
            )


PEAK = """
import sys
from onlearn.data import read
from onlearn.models.resident_memory import peak_bytes
peak = lambda: peak_bytes() >> 20
list(read(sys.argv[1]))
before = peak()
rows = sum(map(len, read(sys.argv[2], block_size=1 << 18, **({"task": "multilabel"} if sys.argv[3:] else {}))))
print(rows, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is counted in other units")
@pytest.mark.parametrize("kind", ["coded", "runs", "views", "list_views", "lists", "parquet"])
def test_long_values_that_are_stored_once_are_not_all_written_out(tmp_path, kind):
    end, rows = "parquet" if kind == "parquet" else "arrow", 1200  # 600 MB
    name = "label" if kind == "lists" else "t"
    table = pa.table({name: big_column(kind, rows), "x": range(rows), **({} if kind == "lists" else LABELS)})
    path = written(tmp_path / f"big.{end}", table, **NO_SCHEMA.get(end, {}))
    small = written(tmp_path / f"small.{end}", pa.table({"x": [1, 2], "label": ["p", "q"]}))
    assert path.stat().st_size < 3_000_000
    command = [sys.executable, "-c", PEAK, str(small), str(path), *(["labels"] if kind == "lists" else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    count, peak = map(int, done.stdout.split())
    assert count == rows and peak < 150


LABELS = {"label": ["p", "q"] * 600}


COMMANDS = """
import sys
from onlearn import cli
from onlearn.models.resident_memory import peak_bytes
path, folder = sys.argv[1:]
model = f"{folder}/m.onl"
for command in (["data", "describe", path], ["train", path, "-o", model, "--quiet", "--passes", "1"],
                ["predict", model, path, "-o", f"{folder}/answers"], ["evaluate", model, path]):
    assert cli.run(command) == 0
    print(peak_bytes() >> 20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is counted in other units")
def test_commands_need_little_memory_for_long_values(tmp_path):
    rows = 3000  # 1.5 GB
    table = pa.table({"t": big_column("parquet", rows), "label": ["p", "q"] * (rows // 2)})
    path = written(tmp_path / "a.parquet", table, store_schema=False)
    command = [sys.executable, "-c", COMMANDS, str(path), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) < 1500


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
