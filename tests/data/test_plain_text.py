"""Line ends of old Macs, byte order marks inside files, the end mark of DOS, NUL bytes and UTF-16 in text formats."""

from __future__ import annotations

import gzip
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, read
from onlearn.data import plain_text as plain_text_module
from onlearn.data.blocks import blocks
from onlearn.data.formats.csv_cuts import beginning_of, row_end
from onlearn.data.formats.csv_rows import Dialect
from onlearn.data.plain_text import BOM
from onlearn.data.shards import content, count_lines, cut, first_decisions
from onlearn.data.sources import Stream, sources
from plain_text import plain_text

FILES = {
    "svmlight": b"1 1:2\n2 1:3\n1 4:4\n",
    "vw": b"1 | a b\n2 | c\n1 |f d:2\n",
    "csv": b"x,label\n1,p\n2,q\n3,p\n",
    "tsv": b"x\tlabel\n1\tp\n2\tq\n3\tp\n",
    "jsonl": b'{"x": 1, "label": "p"}\n{"x": 2, "label": "q"}\n{"x": 3, "label": "p"}\n',
    "fasttext": b"__label__p a b\n__label__q c\n__label__p d\n",
    "conll": b"the\tD\ndog\tN\n\na\tD\n\n",
    "conllu": b"1\tthe\t_\tD\t_\t_\t_\t_\t_\t_\n2\tdog\t_\tN\t_\t_\t_\t_\t_\t_\n\n",
}
formats = pytest.mark.parametrize("name", FILES)


def rows_of(path, name: str, **options):
    """Rows, labels and lines of a file, and its bad rows as (line, reason)."""
    bad, found = BadRows(limit=1.0, shown=100), []
    for batch in read(path, format=name, bad=bad, workers=0, **options):
        rows = batch.rows
        if name == "svmlight":
            cells = rows.toarray().tolist()
        elif name == "vw":
            cells = [
                [(rows.name(k), float(rows.values[k])) for k in range(*rows.indptr[n : n + 2])]
                for n in range(len(batch))
            ]
        elif name.startswith("conll"):
            offsets = rows.offsets.tolist()
            cells = [
                [column[start:stop].tolist() for column in rows.columns.values()] for start, stop in pairwise(offsets)
            ]
        else:
            cells = rows.to_pylist()
        labels = batch.y.tolist()
        if name.startswith("conll"):
            labels = [None] * len(cells)  # they are a column, too
        found += [(line, label, np.trim_zeros(row, "b") if name == "svmlight" else row)
                  for line, label, row in zip(batch.lines.tolist(), labels, cells)]  # fmt: skip
    return found, [(one.line, one.reason) for _, one in bad.examples]


@formats
@pytest.mark.parametrize("size", [3, 1 << 20])
def test_carriage_returns_end_the_lines_of_a_file_without_newlines(tmp_path, name, size):
    path, old = tmp_path / "a", tmp_path / "old"
    path.write_bytes(FILES[name])
    old.write_bytes(FILES[name].replace(b"\n", b"\r"))
    expected = rows_of(path, name)
    assert len(expected[0]) >= 1 and not expected[1]
    if name in ("csv", "tsv", "jsonl"):
        size = 1 << 20  # types are decided by the first block
    assert rows_of(old, name, block_size=size) == expected
    shards = cut(old, 4, format=name)
    assert len(shards) == 1 and count_lines(shards[0]) == FILES[name].count(b"\n")
    assert rows_of(shards, name, decisions=first_decisions(shards, format=name)) == expected


def test_the_checksum_of_old_line_ends_is_that_of_the_file(tmp_path):
    path = tmp_path / "a.svm.gz"
    path.write_bytes(gzip.compress(b"1 1:1\r2 2:2\r"))
    with read(path) as reader:
        assert sum(map(len, reader)) == 2
        assert reader.checksums == [content(sources(path)[0]).checksum]


def test_a_carriage_return_within_lines_that_end_with_newlines_is_a_blank(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1\r1:2\r\n2 \r 1:3\n")
    assert rows_of(path, "svmlight") == ([(1, "1", [0, 2]), (2, "2", [0, 3])], [])


@formats
@pytest.mark.parametrize("size", [1, 4, 1 << 20])
def test_byte_order_marks_at_the_starts_of_lines_are_dropped(tmp_path, name, size):
    """As in files that were concatenated, one of them empty."""
    path, marked = tmp_path / "a", tmp_path / "marked"
    path.write_bytes(FILES[name])
    lines = FILES[name].splitlines(keepends=True)
    marked.write_bytes(b"".join(BOM * (1 + n % 2) + line for n, line in enumerate(lines)))
    if name in ("csv", "tsv", "jsonl"):
        size = 1 << 20
    assert rows_of(marked, name, block_size=size) == rows_of(path, name)


@given(
    parts=st.lists(
        st.sampled_from([BOM, b"\n", b"\r", b"\xef", b"\xbb", b"\xbf", b"\x1a", b"\x1a" * 6, b"a"]), max_size=20
    ),
    size=st.sampled_from([1, 2, 3, 5, 100, 5000]),
)
def test_text_is_plain_however_it_is_read(tmp_path_factory, parts, size):
    content = b"".join(parts)
    path = tmp_path_factory.getbasetemp() / "plain"
    path.write_bytes(content)
    stream, buffer, text = Stream(sources(path)[0]), np.empty(size, dtype=np.uint8), b""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text_module, "SECTOR", 8)
        stream.begin_text()
        while count := stream.fill(buffer):
            text += buffer[:count].tobytes()
            assert stream.place_in_file(len(text)) <= len(content)
    stream.close()
    assert stream.ended
    marks = len(content) - len(content.rstrip(b"\x1a"))
    assert text == plain_text(content) + (b"\x1a" * marks if marks > 8 else b"")


def test_text_that_is_given_back_comes_again(tmp_path):
    """And places stay those of the file."""
    path = tmp_path / "a.svm"
    path.write_bytes(BOM + b"one\n" + BOM + b"two\n" + BOM + b"three\n")
    stream, buffer = Stream(sources(path)[0]), np.empty(100, dtype=np.uint8)
    stream.begin_text()
    assert buffer[: stream.fill(buffer)].tobytes() == b"one\ntwo\nthree\n"
    stream.unread(b"two\nthree\n")
    assert buffer[: stream.fill(buffer)].tobytes() == b"two\nthree\n"
    assert [stream.place_in_file(place) for place in (0, 1, 4, 5, 14)] == [0, 4, 7, 11, 23]
    assert stream.fill(buffer) == 0 and stream.ended
    stream.close()


def test_rows_of_csv_are_cut_behind_dropped_marks(tmp_path):
    """Places in a file are counted with the marks."""
    path = tmp_path / "a.csv"
    row = BOM + b'"4""",p\n'  # whether a quote closes a cell is not clear here, so rows are read up to the place
    path.write_bytes(b"x,label\n" + row * 2000)
    shards = cut(path, 3, format="csv")
    assert len(shards) == 3
    assert all((one.part.start - len(b"x,label\n")) % len(row) == 0 for one in shards[1:])
    decided = first_decisions(path)
    assert rows_of(shards, "csv", decisions=decided)[0] != []
    assert sum(len(batch) for batch in read(shards, format="csv", decisions=decided)) == 2000
    source = sources(path)[0]
    stream = Stream(source)
    beginning = beginning_of(stream, Dialect(ord(","), ord('"')), 1 << 20)
    stream.close()
    size = path.stat().st_size
    end = row_end(source, 0, size // 2, size, size, beginning)
    assert (end - len(b"x,label\n")) % len(row) == 0


@formats
@pytest.mark.parametrize("mark", [b"\x1a", b"\x1a" * 100, b"\r\n\x1a"])
def test_the_end_mark_of_dos_is_dropped(tmp_path, name, mark):
    path, marked = tmp_path / "a", tmp_path / "marked"
    path.write_bytes(FILES[name])
    marked.write_bytes(FILES[name] + mark)
    assert rows_of(marked, name) == rows_of(path, name)


@formats
def test_a_line_of_nul_bytes_is_a_bad_row(tmp_path, name):
    path, damaged = tmp_path / "a", tmp_path / "damaged"
    path.write_bytes(FILES[name])
    lines = FILES[name].splitlines(keepends=True)
    damaged.write_bytes(FILES[name] + bytes(20) + b"\n" + b"".join(lines[-2:]))
    rows, bad = rows_of(damaged, name)
    assert rows[: len(rows_of(path, name)[0])] == rows_of(path, name)[0]
    assert [line for line, _ in bad] == [len(lines) + 1]


@pytest.mark.parametrize(
    ("name", "line", "reason"),
    [
        ("vw", b"1 | na\0me\n", "byte 7 of the line is NUL"),
        ("fasttext", b"__label__p te\0xt\n", "byte 14 of the line is NUL"),
        ("conll", b"wo\0rd\tN\n\n", "byte 3 of the line is NUL"),
        ("csv", b'4,"p\0"\n', "byte 5 of the row is NUL"),
        ("svmlight", b"\0 1:1\n", "the label has a control character"),
        ("svmlight", b"1\x1a 1:1\n", "the label has a control character"),
        ("svmlight", b"\x7f\n", "the label has a control character"),
        ("vw", b"1\x1b[0m | a\n", "the label has a control character"),
        ("fasttext", b"__label__p\x1f text\n", "the label has a control character"),
        ("conll", b"a\tD\x1a\n\n", "the label has a control character"),
        ("conll", b"a\tD\rE\n\n", "the label has a control character"),
        ("conllu", b"1\tx\t_\t\x08\t_\t_\t_\t_\t_\t_\n\n", "the label has a control character"),
    ],
)
def test_bytes_that_no_text_and_no_label_has(tmp_path, name, line, reason):
    path, damaged = tmp_path / "a", tmp_path / "damaged"
    path.write_bytes(FILES[name])
    damaged.write_bytes(FILES[name] + line)
    rows, bad = rows_of(damaged, name)
    assert rows == rows_of(path, name)[0]
    assert bad == [(FILES[name].count(b"\n") + 1, reason)]


def test_control_characters_are_text_elsewhere(tmp_path):
    """A form feed in a text, an escape in a cell or a word are no labels."""
    for name, text in {
        "fasttext": b"__label__p a\x0c \x1b[0m\n",
        "conll": b"a\x1b\tD\n\n",
        "csv": b"x,label\na\x0bb,p\nc,q\n",
        "vw": b"1 | a\x01\n",
    }.items():
        path = tmp_path / name
        path.write_bytes(text)
        assert rows_of(path, name)[1] == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_is_refused_with_and_without_its_mark(tmp_path, encoding):
    path = tmp_path / "a.svm"
    path.write_bytes("1 1:2\n".encode(encoding))
    with pytest.raises(DataError, match=r"a\.svm is UTF-16: convert it to UTF-8"):
        list(read(path))


def test_a_file_of_marks_has_no_rows(tmp_path):
    for text in (BOM, BOM * 3, b"\x1a", BOM + b"\x1a\x1a"):
        path = tmp_path / "a.csv"
        path.write_bytes(text)
        with pytest.raises(DataError):
            list(read(path))
        path.write_bytes(text)
        cut(path, 3)


def test_places_of_text_are_told_as_those_of_the_file(tmp_path):
    path = tmp_path / "a.svm"
    text = b"0 1:1\n" + b"".join(BOM * (n % 3) + b"%d 1:1\n" % n for n in range(200))
    path.write_bytes(text)
    for size in (1, 10, 64, 1000):
        stream, place = Stream(sources(path)[0]), 0
        for block in blocks(stream, size):
            place += block.stop
            at = stream.place_in_file(place)
            assert text[:at].endswith(b"\n")
        assert at == len(text)
        stream.close()
