"""Damaged Arrow and Parquet files: read, or one clear sentence; never a crash, a hang or an error of others.

Mutants are read in a process of their own (this file is its program), so that a crash or a hang is a failing test.
"""

from __future__ import annotations

import faulthandler
import io
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

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
        path = folder / name
        path.write_bytes(raw)
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


if __name__ == "__main__":
    main(sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
