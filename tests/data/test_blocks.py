"""Blocks of whole rows, and the limit on the length of a line."""

import bz2
import gzip
import io
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, read
from onlearn.data.blocks import blank_line_ends, blocks
from onlearn.data.formats.csv_layout import guess_quotes
from onlearn.data.registry import without_quoted
from onlearn.data.shards import count_lines, cut, first_decisions, numbered
from onlearn.data.sources import Stream, first_lines, sources

LIMIT = 300
LONG = "x" * 1000
# Of each format: what a file begins with, a row, a row that is too long, and the options of its reader.
FORMATS = {
    "svmlight": ("", "{n} 1:{n}\n", "1 " + "1:1 " * 300 + "\n", {}),
    "vw": ("", "{n} |f a:{n}\n", f"1 |f {LONG}\n", {}),
    "csv": ("a,label\n", "{n},{n}\n", f"{LONG},1\n", {"header": True}),
    "quoted": ("a,label\n", '"{n}\nb",{n}\n', f'"{LONG},1\n', {"header": True, "format": "csv"}),
    "tsv": ("a\tlabel\n", "{n}\t{n}\n", f"{LONG}\t1\n", {"header": True}),
    "jsonl": ("", '{{"label": "{n}", "a": {n}}}\n', f'{{"label": "1", "a": "{LONG}"}}\n', {}),
    "fasttext": ("", "__label__{n} a\n", f"__label__1 {LONG}\n", {}),
    "sentences": ("", "a {n}\n", f"a {LONG}\n", {"task": "tag", "labels": "optional"}),
    "conll": ("", "a\t{n}\nb\t{n}\n\n", f"a\t1\n{LONG}\t2\n\n", {"task": "tag"}),
    "endless": ("", "a\t{n}\nb\t{n}\n \n", "a\t1\n" * 100 + "\n", {"task": "tag", "format": "conll"}),
}


def written(folder, name, long, ending=".gz"):
    """A file, and what its reader should find: the lines of good rows and of bad ones."""
    head, row, too_long, options = FORMATS[name]
    text, good, bad = head, [], []
    for n, is_long in enumerate(long):
        (bad if is_long else good).append(text.count("\n") + 1)
        text += too_long if is_long else row.format(n=n)
    path = folder / f"data{ending}"
    compress = {".gz": gzip.compress, ".bz2": bz2.compress}.get(ending, bytes)
    path.write_bytes(compress(text.encode()))
    return path, {"format": name, **options, "max_line": LIMIT}, good, bad, text.count("\n")


def found(source, **options):
    """The lines of good rows and of bad ones, their reasons, the bytes kept of them, and the number of lines."""
    bad = BadRows(limit=1.0, shown=1000)
    with read(source, bad=bad, **options) as reader:
        good = [line for batch in reader for line in batch.lines.tolist()]
    places = sorted((one.line, one.reason, len(one.raw)) for _, one in bad.examples)
    return good, [line for line, _, _ in places], {why for _, why, _ in places}, places, sum(reader.lines_read)


@pytest.mark.parametrize("name", FORMATS)
@given(
    long=st.lists(st.sampled_from([False, False, True]), min_size=2, max_size=30).filter(lambda long: not all(long)),
    block_size=st.sampled_from([1, 50, 400, 5000, 1 << 22]),
    ending=st.sampled_from([".gz", ".bz2", ""]),
)
@settings(max_examples=25, deadline=None)
def test_a_line_that_is_too_long_is_a_bad_row(tmp_path_factory, name, long, block_size, ending):
    path, options, good, bad, lines = written(tmp_path_factory.mktemp("long"), name, long, ending)
    made = found(path, block_size=block_size, workers=0, **options)
    assert (made[0], made[1], made[4]) == (good, bad, lines)
    assert made[2] <= {f"it is longer than {LIMIT} bytes: say max_line= to allow more"}
    assert all(kept <= LIMIT for _, _, kept in made[3])


@pytest.mark.parametrize("name", FORMATS)
@given(long=st.lists(st.sampled_from([False, False, True]), min_size=5, max_size=40), count=st.integers(1, 6))
@settings(max_examples=15, deadline=None)
def test_shards_of_long_lines(tmp_path_factory, name, long, count):
    path, options, good, bad, _ = written(tmp_path_factory.mktemp("long"), name, [False, *long], "")
    how = {name: options[name] for name in ("format", "max_line")}
    shards = cut(path, count, block_size=100, **how)
    shards = numbered(shards, [count_lines(shard) for shard in shards])
    decided = first_decisions(path, **options)
    parts = [found(shard, decisions=decided, workers=0, block_size=100, **options) for shard in shards]
    assert [line for part in parts for line in part[0]] == good
    assert [line for part in parts for line in part[1]] == bad


def test_a_cell_of_several_lines_with_one_that_is_too_long(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'a,label\n1,x\n"begins\n{LONG}\nends",x\n2,y\n')
    for block_size in (10, 2000, 1 << 22):
        good, bad, _, _, lines = found(path, max_line=LIMIT, block_size=block_size, workers=0)
        assert (good, bad, lines) == ([2, 6], [4], 6)


def test_a_cell_may_have_lines_up_to_the_limit(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,label\n" + "1,x\n" * 100 + '"' + "b\n" * 140 + '",x\n"' + "b\n" * 160 + '",x\n2,y\n')
    good, bad, *_ = found(path, max_line=LIMIT, workers=0)
    assert good == [*range(2, 103), 404] and bad[0] == 243


def test_the_file_of_bad_rows_has_the_beginning(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n1 " + "1:1 " * 5000 + "\n0 2:1\n")
    bad = BadRows(tmp_path / "bad", limit=1.0)
    assert sum(len(batch) for batch in read(tmp_path / "a.svm", bad=bad, max_line="2KB")) == 2
    assert (tmp_path / "bad").read_bytes() == ("1 " + "1:1 " * 5000)[:1024].encode() + b"\n"
    assert bad.examples[0][1].reason == "it is longer than 2 KB: say max_line= to allow more"


def test_lines_are_as_long_as_documents_by_default(tmp_path):
    (tmp_path / "a.svm").write_text("1 " + "1:1 " * 2_000_000 + "\n0 2:1\n")
    assert sum(len(batch) for batch in read(tmp_path / "a.svm")) == 2


@pytest.mark.parametrize("wrong", ["much", "0", -1, "64 TB", True])
def test_limits_that_are_none(tmp_path, wrong):
    (tmp_path / "a.svm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match="max_line must be a number of bytes, such as 1000000, 64MB or 1GB"):
        read(tmp_path / "a.svm", max_line=wrong)


def test_rows_in_the_cache_are_those_of_the_limit(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n1 " + "1:1 " * 100 + "\n0 2:1\n")
    for limit, rows in ((1000, 3), (300, 2), (300, 2), (1000, 3)):
        bad = BadRows(limit=1.0)
        assert sum(len(batch) for batch in read(tmp_path / "a.svm", cache=True, max_line=limit, bad=bad)) == rows
        assert bad.count == 3 - rows


@given(st.lists(st.sampled_from(["a", " ", "\t", "\n", "\r", "\n\n"]), max_size=40))
def test_blank_lines(parts):
    text = "".join(parts)
    lines = text.split("\n")[:-1]
    ends = np.cumsum([len(line) + 1 for line in lines]).astype(int)
    expected = [int(end) for line, end in zip(lines, ends) if not line.strip()]
    assert blank_line_ends(np.frombuffer(text.encode(), np.uint8)).tolist() == expected


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=20),
    st.integers(1, 40),
    st.integers(1, 20),
    st.booleans(),
)
@example([25], 10, 20, False)
def test_blocks_leave_out_long_lines(tmp_path_factory, lengths, size, longest, ended):
    path = tmp_path_factory.mktemp("blocks") / "a"
    lines = [bytes([65 + n % 26]) * length for n, length in enumerate(lengths)]
    path.write_bytes(b"\n".join(lines) + (b"\n" if ended else b""))
    stream = Stream(sources(path)[0])
    made = list(blocks(stream, size, longest=longest))
    stream.close()
    text = b"".join(block.text[: block.stop].tobytes() for block in made)
    whole = [*lines] if ended or (lines and lines[-1]) else lines[:-1]
    assert text.split(b"\n")[:-1] == [line if len(line) <= longest else b"" for line in whole]
    size = path.stat().st_size  # a newline may be added at the end
    assert sum(block.stop + block.more_bytes for block in made) in (size, size + 1)
    assert sum(len(block.too_long) for block in made) == sum(len(line) > longest for line in whole)


def test_first_lines_stop_at_the_limit(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 100_000 + b"\ny\n")
    stream = Stream(sources(tmp_path / "a")[0])
    assert [len(line) for line in first_lines(stream, 100, most=1000)] == [1001]
    assert [len(line) for line in first_lines(stream, 100)] == [100_000, 1]
    stream.close()


def test_guesses_about_long_quoted_cells_take_little_memory():
    cell = 'a\t"' + "x" * (1 << 20)
    assert guess_quotes([cell + '"'], "\t")  # which compiles the patterns
    tracemalloc.start()
    assert without_quoted(cell) == cell and without_quoted(cell + '""y" z') == "a\t z"
    assert not guess_quotes([cell], "\t")
    assert guess_quotes([cell + '""y" \tb', 'c\t""'], "\t")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_standard_input(monkeypatch):
    class Piped:
        buffer = io.BufferedReader(io.BytesIO(b"1 1:1\n1 " + b"1:1 " * 500 + b"\n0 2:1\n"))

    monkeypatch.setattr(sys, "stdin", Piped)
    good, bad, *_ = found("-", format="svmlight", max_line=LIMIT, live=True)
    assert (good, bad) == ([1, 3], [2])


def test_nothing_but_a_line_that_is_too_long(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "' + LONG)
    with pytest.raises(DataError, match=r"1 of 1 rows cannot be read.* line 1: it is longer than 300 bytes"):
        list(read(tmp_path / "a.jsonl", max_line=LIMIT))


def test_memory_does_not_grow_with_the_line(tmp_path):
    (tmp_path / "small.svm.gz").write_bytes(gzip.compress(b"1 1:1\n0 2:1\n"))
    with gzip.open(tmp_path / "a.svm.gz", "wb", compresslevel=1) as file:
        file.write(b"1 1:1\n")
        for _ in range(300):
            file.write(b" " * (1 << 20))
        file.write(b"\n0 2:1\n")
    program = f"""
        from onlearn.data import BadRows, read
        from onlearn.models.resident_memory import peak_bytes
        folder, bad = {str(tmp_path)!r}, BadRows(limit=1.0)
        list(read(folder + "/small.svm.gz"))  # which may compile the parser
        before = peak_bytes()
        rows = sum(len(batch) for batch in read(folder + "/a.svm.gz", max_line="1MB", bad=bad))
        print(rows, bad.count, (peak_bytes() - before) >> 10)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows, bad, kilobytes = map(int, done.stdout.split())
    assert (rows, bad) == (2, 1)
    assert kilobytes < 64 << 10
