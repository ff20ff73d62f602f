"""What all formats share: sources, compression, blocks, bad rows, batches, threads."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import onlearn
from onlearn.data import BadRows, DataError, format_names, load, read
from onlearn.data.formats import columnar, csv
from onlearn.threads import ahead

ROWS = "".join(f"{n % 2} {n % 7}:{n / 3} 9:1\n" for n in range(500))


@pytest.fixture
def plain(tmp_path):
    (tmp_path / "a.svm").write_text(ROWS)
    return tmp_path / "a.svm"


def content(source, **options) -> list:
    """All that was read, in a form that can be compared."""
    rows = []
    for batch in read(source, **options):
        X = batch.rows
        for n in range(len(batch)):
            at = slice(X.indptr[n], X.indptr[n + 1])
            rows.append((batch.y[n], X.indices[at].tolist(), X.data[at].tolist(), int(batch.lines[n])))
    return rows


@pytest.mark.parametrize("kind", ["gz", "bz2", "zst"])
def test_compressed_equals_plain(plain, kind):
    raw = plain.read_bytes()
    packed = Path(f"{plain}.{kind}")
    if kind == "zst":
        with pa.CompressedOutputStream(str(packed), "zstd") as out:
            out.write(raw)
    else:
        half = len(raw) // 2  # of two parts, as `cat a.gz b.gz` makes them
        pack = gzip.compress if kind == "gz" else bz2.compress
        packed.write_bytes(pack(raw[:half]) + pack(raw[half:]))
    assert content(packed, block_size=1000) == content(plain)


@pytest.mark.parametrize("size", [1, 2, 3, 29, 30, 1000, 1 << 20])
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_blocks_and_threads_change_nothing(plain, size, workers):
    assert content(plain, block_size=size, workers=workers) == content(plain, workers=0)


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input(plain, packed):
    code = "from onlearn.data import load; X, y = load('-'); print(X.shape, X.sum(), len(y))"
    sent = gzip.compress(plain.read_bytes()) if packed else plain.read_bytes()
    environment = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, env=environment, check=False)
    X, y = load(plain)
    assert done.stdout.decode().split("\n")[0] == f"{X.shape} {X.sum()} {len(y)}", done.stderr.decode()


def test_several_files_and_patterns(plain):
    other = plain.with_name("b.svm")
    other.write_text("x 1:1\n")
    whole = content([plain, other])
    assert content(str(plain.with_name("*.svm"))) == whole and len(whole) == 501
    assert whole[-1] == ("x", [1], [1.0], 1)
    files = [batch.file for batch in read([other, plain])]
    assert files == [str(other), str(plain)]


def test_labels_of_bad_rows_are_no_labels(tmp_path):
    path = wrote(tmp_path / "a.svm", b"no 1:x\nyes 1:1\n")
    (batch,) = read(path, bad=BadRows(limit=1.0))
    assert batch.label_names == ["yes"] and batch.codes.tolist() == [0]


def test_interpreted_equals_compiled(tmp_path):
    """With NUMBA_DISABLE_JIT=1 the parsers are the same ones, only slow."""
    files = {
        "a.svm": "1 1:0.1 7:-2.5e-3 5:9007199254740993\n-1 qid:3 2:0.30000000000000004 # c\n+1 x\n",
        "a.vw": "1 2.0 'tag|f a:0.1 größe |longer_name:2 abcdefghij b:1e-7\nx |f\n",
        "a.csv": 'a,b,label\n1,"x ""y""",u\n2.5,?,v\n',
        "a.jsonl": '{"label": "x", "t": "a"}\n{"label": "y", "t": "[{"}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code = """
import sys
from onlearn.data import BadRows, read
for path in sys.argv[1:]:
    for batch in read(path, bad=BadRows(limit=1.0), workers=0):
        rows = batch.rows
        if hasattr(rows, "hashes"):
            print([rows.name(k) for k in range(len(rows.hashes))], rows.hashes.tolist(), rows.values.tolist())
        else:
            print(rows.to_pydict() if hasattr(rows, "to_pydict") else rows.data.tolist() + rows.indices.tolist())
        print(batch.y.tolist(), batch.lines.tolist())
"""
    outputs = []
    for disabled in ("0", "1"):
        environment = {
            **os.environ,
            "PYTHONPATH": str(Path(onlearn.__file__).parents[1]),
            "NUMBA_DISABLE_JIT": disabled,
        }
        command = [sys.executable, "-W", "error", "-c", code, *(str(tmp_path / name) for name in files)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_batch_rows(plain):
    sizes = [len(batch) for batch in read(plain, batch_rows=64)]
    assert sizes == [64] * 7 + [52]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "none.svm", r"none.svm does not exist$"),
        (lambda folder: folder, r"is a directory: name a file in it"),
        (lambda folder: str(folder / "*.none"), r"no file matches .*\*.none$"),
        (lambda folder: [], "no file is named"),
        (lambda folder: wrote(folder / "e.svm", b""), r"e.svm is empty$"),
        (lambda folder: wrote(folder / "e.svm", b"\n \n# x\n"), r"e.svm: there are no rows$"),
        (lambda folder: wrote(folder / "e.csv", b"\n\n"), r"e.csv: there are no rows$"),
        (lambda folder: wrote(folder / "e.svm.gz", gzip.compress(ROWS.encode())[:-40]), "damaged or cut short"),
        (lambda folder: wrote(folder / "e.svm.gz", ROWS.encode()), "damaged or cut short"),
        (lambda folder: wrote(folder / "e.svm.zst", b"no"), "damaged or cut short|empty"),
        (lambda folder: wrote(folder / "e.what", b"just a text\nof lines\n"), "cannot be told .* say format="),
        (lambda folder: wrote(folder / "e.svm", ROWS.encode("utf-16")), "is UTF-16: convert it to UTF-8"),
    ],
)
def test_what_cannot_be_read(tmp_path, make, message):
    with pytest.raises(DataError, match=message) as caught:
        list(read(make(tmp_path)))
    assert "\n" not in str(caught.value)


def wrote(path, raw):
    path.write_bytes(raw)
    return path


def test_wrong_options(plain):
    with pytest.raises(
        ValueError, match="task must be 'classify' or 'regress' or 'tag' or 'multilabel' or 'rank', not 'x'"
    ):
        read(plain, task="x")
    with pytest.raises(DataError, match="there is no format 'xml'; there are arrow, conll"):
        read(plain, format="xml")
    assert "svmlight" in format_names()


def test_bad_rows_are_counted_kept_and_limited(tmp_path):
    path = wrote(tmp_path / "a.svm", b"1 1:1\n" * 300 + b"1 1:x\n0 y\n" + b"0 2:1\n" * 300)
    kept = tmp_path / "bad.txt"
    bad = BadRows(kept)
    assert sum(map(len, read(path, bad=bad, block_size=100))) == 600
    assert (bad.count, bad.rows) == (2, 602) and kept.read_bytes() == b"1 1:x\n0 y\n"
    assert "line 301, column 5: the value is not a number" in bad.summary()
    with pytest.raises(
        DataError, match=r"2 of 602 rows cannot be read, more than 0.1 % are too many; the first: .*a.svm"
    ):
        list(read(path, bad=BadRows(limit=0.001)))
    with pytest.raises(DataError, match="line 301, column 5: the value is not a number"):
        list(read(path, strict=True))
    with pytest.raises(DataError, match="cannot write bad rows to"):
        list(read(path, bad=BadRows(tmp_path / "no" / "folder")))


def test_too_many_bad_rows_are_noticed_soon(tmp_path):
    path = wrote(tmp_path / "a.svm", b"1 1:1\nbad 1\n" * 100_000)
    bad = BadRows()
    with pytest.raises(DataError, match="are too many"):
        list(read(path, bad=bad, block_size=10_000))
    assert bad.rows < 10_000


def test_not_utf8(tmp_path):
    path = wrote(tmp_path / "a.vw", b"1 |f good\n1 |f b\xe4d\n" + b"1 |f good\n" * 200)
    bad = BadRows()
    assert sum(map(len, read(path, bad=bad))) == 201
    assert bad.examples[0][1].reason == "byte 7 of the line is not UTF-8"


def test_byte_order_mark(tmp_path):
    path = wrote(tmp_path / "a.svm", b"\xef\xbb\xbf1 1:1\n")
    assert content(path) == [("1", [1], [1.0], 1)]


def test_ahead_keeps_order_and_stops():
    assert list(ahead(range(100), lambda n: n * n, 3)) == [n * n for n in range(100)]
    taken = []

    def pieces():
        for n in range(10**9):
            taken.append(n)
            yield n

    squares = ahead(pieces(), lambda n: n, 2)
    assert next(squares) == 0
    squares.close()
    assert len(taken) < 50


def test_errors_in_a_thread_reach_the_caller():
    def fail(n):
        if n == 3:
            raise KeyError("three")
        return n

    results = ahead(range(10), fail, 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError):
        next(results)


def test_a_reader_registered_first_hides_no_other():
    code = (
        "from onlearn.data import format_names, reader; "
        "reader('x', ['.x'])(type('X', (), {})); print(len(format_names()) > 5)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "True"


def test_import_is_light():
    code = "import onlearn, onlearn.data, sys; print([m for m in ('numba', 'pyarrow', 'sklearn') if m in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"


def test_progress_is_told(plain):
    reader = read(plain, block_size=1000)
    assert reader.bytes_total == plain.stat().st_size
    seen = [reader.bytes_read for _ in reader]
    assert seen == sorted(seen) and seen[-1] == reader.bytes_total


def test_a_reader_is_one_file(tmp_path):
    """What a newcomer does: a class under @reader."""
    from onlearn.data.registry import EXTENSIONS, READERS, Parsed, reader

    @reader("lengths", extensions=[".lengths"])
    class Lengths:
        def __init__(self, options, notes):
            pass

        def pieces(self, stream):
            yield stream.all()

        def parse(self, raw):
            lines = raw.splitlines()
            table = pa.table({"length": [len(line) for line in lines]})
            return Parsed(table, np.arange(len(lines)), len(lines))

        def settle(self, parsed):
            return parsed

    try:
        table, y = load(wrote(tmp_path / "a.lengths", b"abc\nde\n"))
        assert table.to_pydict() == {"length": [3, 2]} and y is None
    finally:
        del READERS["lengths"], EXTENSIONS[".lengths"]


@pytest.mark.parametrize("options", [{"header": True}, {"header": False}, {"delimiter": ";"}])
@pytest.mark.parametrize("name", ["a.svm", "a.jsonl", "a.parquet"])
def test_options_about_csv_are_refused_elsewhere(tmp_path, name, options):
    path = tmp_path / name
    if name == "a.parquet":
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": [1.0], "label": ["a"]}), path)
    else:
        path.write_text("1 1:1\n" if name == "a.svm" else '{"x": 1, "label": "a"}\n')
    (option,) = options
    with pytest.raises(DataError, match=f"is read as .*, and {option} is about CSV"):
        load(path, **options)
    assert load(path, **options, table_required=False)[0].shape[0] == 1


@pytest.mark.parametrize("options", [{"target": "y"}, {"weight": "w"}, {"id": 0}, {"types": {"x": "number"}}])
def test_options_about_columns_are_refused_where_there_are_none(tmp_path, options):
    lines = {"a.svm": "1 1:1\n", "a.vw": "1 | a\n", "a.txt": "__label__1 a\n"}
    (option,) = options
    for name, line in lines.items():
        (tmp_path / name).write_text(line)
        with pytest.raises(DataError, match=f"{name}: {option}= has no use here: the rows have no columns but"):
            load(tmp_path / name, **options)
        assert len(next(read(tmp_path / name, **options, table_required=False))) == 1
    (tmp_path / "a.csv").write_text("x,w,y\n1,1,a\n2,1,b\n")
    files = [tmp_path / "a.svm", tmp_path / "a.csv"]
    assert [len(batch) for batch in read(files, header=True, **{"target": "y", **options})] == [1, 2]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a.feather", "a.arrows"])
def test_a_file_cut_short_while_it_is_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(columnar, "ROWS", 100)
    monkeypatch.setattr(csv, "SAMPLE", 1000)
    path, table = tmp_path / name, pa.table({"a": np.arange(20000) / 7, "y": ["p", "q"] * 10000})
    if name.endswith(".parquet"):
        parquet.write_table(table, path, row_group_size=100)
    elif name.endswith(".feather"):
        feather.write_feather(table, path, chunksize=100)
    elif name.endswith(".arrows"):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table, max_chunksize=100)
    elif name.endswith(".csv"):
        path.write_text("a,y\n" + "".join(f"{k / 7},{'pq'[k % 2]}\n" for k in range(20000)))
    else:
        path.write_text("".join(f'{{"a": {k / 7}, "y": "{"pq"[k % 2]}"}}\n' for k in range(20000)))
    reader = read(path, workers=0, block_size=1000)
    assert len(list(reader)) > 50 and 0.99 * reader.bytes_total <= reader.bytes_read <= reader.bytes_total
    reader = read(path, workers=0, block_size=1000, labels="optional", bad=BadRows(limit=1.0))
    next(reader)
    assert reader.bytes_read < 0.1 * path.stat().st_size
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size // 2)
    with pytest.raises(DataError, match=f"{name} was cut short while it was read"):
        list(reader)


def test_batches_that_are_read_ahead_come_again(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,label\n" + "".join(f"{n},{'ab'[n % 2] if n < 500 else 'c'}\n" for n in range(1000)))

    def seen(batches):
        return [(batch.y.tolist(), batch.lines.tolist()) for batch in batches]

    with read(path, block_size=1 << 10) as plain:
        expected = seen(plain)
    with read(path, block_size=1 << 10) as reader:
        kept, complete = reader.keep(3000)
        assert not complete
        assert 1 < len(kept) < len(expected)
        assert seen(kept) == expected[: len(kept)]
        assert kept[0].label_names == ["a", "b"]
        assert seen(reader) == expected
    with read(path, block_size=1 << 10) as reader:
        kept, complete = reader.keep(1 << 30)
        assert complete
        assert seen(kept) == seen(reader) == expected
    with read(path, block_size=1 << 10) as reader:
        assert len(reader.keep(1)[0]) == 1
    assert list(reader) == []  # it is closed
