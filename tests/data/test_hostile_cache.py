"""Forged row caches, whose checksums are right: the files are read instead, or the rows are harmless; never a crash.

The forgeries are read in a process of their own (this file is its program): a crash or a hang is a failing test.
"""

from __future__ import annotations

import copy
import faulthandler
import io
import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

HANG = 120  # seconds for one forgery, on a machine that is busy
NUMBERS = (
    0,
    1,
    -1,
    -2,
    7,
    255,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    1 << 40,
    1 << 62,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (0.0, -1.0, 0.5, float("nan"), float("inf"), -float("inf"), 1e99, 5e-324)
FACTS = (None, -1, 1 << 70, 0.5, "a", [], {}, [None], [1, 2], ["a", "b", "c"], [["a"]], [[1, 1, "x", "y"]], True)
DTYPES = ("<f8", "<i8", "<u8", "<u2", "<i4", "<f4", "<f2", "|u1", ">i8", "<U9", "|O", "|b1", "<M8[s]", "x")


def sources(folder: Path) -> list[Path]:
    """A small file of each kind of rows."""
    svm, vw, table, objects = [], [], ["a,b,label"], []
    for n in range(60):
        label = "yes" if n % 3 else "no"
        svm.append(f"{label} qid:{n // 4} {1 + n % 5}:1 {7 + n % 3}:{n / 8}")
        vw.append(f"{2 * (n % 2) - 1} {1 + n % 3} 'tag{n}|a w{n % 7}:{n / 8} x |b y{n % 5}")
        table.append(f"{n / 8},w{n % 4},{label}")
        objects.append(json.dumps({"label": label, "text": f"words {n}", "size": n / 4, "in": {"a": n % 2 == 0}}))
    svm[7], vw[9], table[50], objects[30] = "yes 1:oops", "1 |a x:y:z:0", "1,2", "{"
    made = {"a.svm": svm, "a.vw": vw, "a.csv": table, "a.jsonl": objects}
    for name, lines in made.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return [folder / name for name in made]


def parts_of(raw: bytes) -> tuple[list[bytes], list[dict[str, Any]], Any]:
    """The pieces of a cache, their entries in the index, and the index as a table."""
    from onlearn.data.row_store import TAIL

    start = int.from_bytes(raw[-TAIL:][:8], "little")
    index = pa.ipc.open_stream(raw[start:-TAIL]).read_all()
    entries = index.to_pylist()
    return [raw[one["start"] : one["start"] + one["size"]] for one in entries], entries, index


def cache_of(pieces: list[bytes], entries: list[dict[str, Any]], metadata: Any) -> bytes:
    """A cache of these pieces; every checksum is right."""
    from onlearn.data.row_store import MAGIC

    text, listed = b"", []
    for piece, entry in zip(pieces, entries):
        listed.append({**entry, "start": len(text), "size": len(piece), "check": zlib.crc32(piece), **entry["forged"]})
        text += piece
    columns = {name: [one[name] for one in listed] for name in ("source", "position", "start", "size", "check")}
    batch = pa.RecordBatch.from_pydict(columns, metadata=metadata)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write(batch)
    index = sink.getvalue()
    return text + index + len(text).to_bytes(8, "little") + zlib.crc32(index).to_bytes(4, "little") + MAGIC


def forged(raw: bytes, rng: np.random.Generator) -> bytes:
    """A copy of a cache with one or two things changed in one of its pieces, or in the index."""
    pieces, entries, index = parts_of(raw)
    entries = [{**entry, "forged": {}} for entry in entries]
    metadata = index.schema.metadata
    n = int(rng.integers(len(pieces)))
    match int(rng.integers(8)):
        case 0 | 1:  # bytes
            text = bytearray(pieces[n])
            for _ in range(int(rng.integers(1, 4))):
                place = int(rng.integers(len(text)))
                size = int(rng.choice([1, 4, 8]))
                value = NUMBERS[rng.integers(len(NUMBERS))] % (1 << (8 * size))
                text[place : place + size] = value.to_bytes(size, "little")
            pieces[n] = bytes(text)
        case 2:
            name = ("source", "position", "start", "size")[rng.integers(4)]
            entries[n]["forged"] = {name: int(rng.choice([-1, 0, 1, 5, 1000, 1 << 40, (1 << 62)]))}
        case _:
            pieces[n] = forged_piece(pieces[n], rng)
    return cache_of(pieces, entries, metadata)


def forged_piece(raw: bytes, rng: np.random.Generator) -> bytes:
    """A piece with other numbers, types or facts."""
    from onlearn.data.row_store import CheckedFile, read_arrays, write_arrays

    facts, arrays = copy.deepcopy(read_arrays(np.frombuffer(raw, np.uint8).copy()))
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    match int(rng.integers(6)):
        case 0 | 1 | 2 if len(array):
            chosen = FLOATS if array.dtype.kind == "f" else NUMBERS
            for _ in range(int(rng.integers(1, 4))):
                value = np.array([chosen[rng.integers(len(chosen))]], np.float64 if chosen is FLOATS else object)
                place = int(rng.integers(len(array)))
                if chosen is NUMBERS:
                    bits = int(value[0]) % (1 << (8 * array.dtype.itemsize))
                    value = np.frombuffer(bits.to_bytes(array.dtype.itemsize, "little"), array.dtype)
                array[place] = value[0]
            arrays[name] = array
        case 3:
            arrays[name] = np.concatenate([array, array[:3]]) if rng.integers(2) else array[: len(array) // 2]
        case 4:
            facts["types"][name] = DTYPES[rng.integers(len(DTYPES))]
        case _:
            key = list(facts)[rng.integers(len(facts))]
            facts[key] = FACTS[rng.integers(len(FACTS))]
    sink = io.BytesIO()
    write_arrays(CheckedFile(sink), facts, arrays)
    return sink.getvalue()


def use(path: Path) -> bool:
    """Read a file with its cache, and run the loops over its rows; whether the cache was used."""
    from onlearn import AveragedPerceptron
    from onlearn.data import BadRows, read
    from onlearn.engine.csr import CSR
    from onlearn.features import FeatureMap

    features, learner = FeatureMap(), AveragedPerceptron(random_state=0, grow=True)
    with read(path, cache=True, block_size=1500, workers=0, bad=BadRows(limit=1.0)) as reader:
        for batch in reader:
            assert list(batch.split(7))
            labelled = np.flatnonzero(batch.codes >= 0)
            for part in (batch.take(labelled), batch.take(labelled[::2])):
                rows = part.parsed
                X = rows if isinstance(rows, CSR) else features.learn_transform(rows)
                if X.shape[1] < 1 << 20:
                    learner.partial_fit(X.to_scipy(), part.y, sample_weight=part.weight).predict(X.to_scipy())
        assert reader.kept is not None
        return reader.kept.used


def main(first: int, count: int, folder: Path) -> None:
    """The program of the process that reads forgeries: prints those that end in an error of others."""
    from onlearn.data import DataError
    from onlearn.data.row_store import cache_path

    faulthandler.enable()
    paths, used = sources(folder), 0
    for path in paths:
        use(path)
        assert use(path)
    whole = {path: cache_path([path], None).read_bytes() for path in paths}
    for seed in range(first, first + count):
        path = paths[seed % len(paths)]
        print(f"{path.name} {seed}", file=sys.stderr, flush=True)
        cache_path([path], None).write_bytes(forged(whole[path], np.random.default_rng(seed)))
        faulthandler.dump_traceback_later(HANG, exit=True)
        try:
            used += use(path)
        except Exception as error:
            if isinstance(error, DataError) or str(error).startswith("there is no column"):
                continue  # rows that are well-formed, but wrong
            print(f"{path.name} {seed}: {type(error).__name__}: {error}")
    faulthandler.cancel_dump_traceback_later()
    print(f"done {used}")


def run_forgeries(first: int, count: int, folder: Path) -> None:
    command = [sys.executable, __file__, str(first), str(count), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    seeds = [line for line in done.stderr.splitlines() if line.count(" ") == 1]
    assert done.returncode == 0, f"ended with {done.returncode} at {seeds[-1:]}: {done.stderr[-3000:]}"
    *wrong, end = done.stdout.splitlines()
    assert not wrong
    assert int(end.removeprefix("done ")) >= count // 20, "so few forgeries look right that nothing is tested"


def test_forged_caches(tmp_path):
    run_forgeries(0, 300, tmp_path)


def test_a_table_with_columns_that_no_reader_makes_is_damaged():
    """Few functions take dictionaries, runs and views, which readers write out."""
    from onlearn.data.registry import Parsed
    from onlearn.data.row_store import DamagedError, pack, unpack

    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"]))
    for column in (pa.array(["a", "b"], pa.string_view()), pa.array(["a", "b"]).dictionary_encode(), runs):
        packed = pack(Parsed(pa.table({"t": column}), np.arange(2), 2))
        assert packed is not None
        with pytest.raises(DamagedError):
            unpack(*packed)


@pytest.mark.slow
def test_many_forged_caches(tmp_path):
    run_forgeries(300, 5000, tmp_path)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
