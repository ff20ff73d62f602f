"""Pieces with many bad rows: all are counted and written, and few are kept one by one."""

import pytest

from onlearn.byte_sizes import parse_size
from onlearn.data import Bad, BadRows, DataError, read
from onlearn.data.bad_rows import TOLD, PieceBad

# Files by extension: a good row, bad ones that differ in what is wrong, and what stands before the rows.
FILES = {
    "svm": (b"1 1:2", [b"1 x", b"1 1:y", b"1 1:1e999"], b""),
    "vw": (b"1 |f a", [b"x", b"1 |f a:y"], b""),
    "jsonl": (b'{"a": 1, "y": "b"}', [b"x", b'{"a" 1}', b'{"a": "c", "y": "b"}', b'{"a": 1}', b"\xff"], b""),
    "csv": (b"1,b", [b"x", b'"x"y,b', b"c,b", b"1,", b"1,\xff", b'"x'], b"a,y\n" + b"1,b\n2,c\n" * 2000),
    "txt": (b"__label__b a", [b"x", b"__label__b \xff"], b""),
}


class Kept(BadRows):
    """Counts what is added."""

    added = 0

    def add(self, file, bad):
        super().add(file, bad)
        self.added += 1


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", FILES)
def test_all_bad_rows_are_counted_and_written(tmp_path, kind, workers, end):
    good, wrong, before = FILES[kind]
    path, out = tmp_path / f"a.{kind}", tmp_path / "bad"
    for one in wrong:
        rows = [good, good, *[one] * (TOLD - 1), good, *[one] * (TOLD + 500), good]
        path.write_bytes(before.replace(b"\n", end) + end.join(rows) + end)
        bad = Kept(out, limit=1.0)
        first = 3 + before.count(b"\n")
        options = {} if kind in ("svm", "vw", "txt") else {"target": "y", "types": {"a": "number"}}
        with read(path, bad=bad, workers=workers, format="fasttext" if kind == "txt" else None, **options) as reader:
            count = sum(len(batch) for batch in reader)
        assert (count, bad.count) == (4 + before.count(b"\n") - (kind == "csv"), 2 * TOLD + 499), one
        assert out.read_bytes() == (one + b"\n") * bad.count, one
        assert [example.line for _, example in bad.examples] == [*range(first, first + 5)]
        assert bad.added <= TOLD + 1, one


def test_the_cache_keeps_the_number_of_bad_rows(tmp_path):
    (tmp_path / "a.svm").write_bytes(b"1 1:1\n" + b"1 x\n" * 3000)
    for used in (False, True):
        bad = BadRows(tmp_path / "bad", limit=1.0)
        with read(tmp_path / "a.svm", bad=bad, cache=tmp_path) as reader:
            assert sum(len(batch) for batch in reader) == 1
            assert reader.kept.used == used
        assert (bad.count, bad.rows, (tmp_path / "bad").read_bytes()) == (3000, 3001, b"1 x\n" * 3000)


def test_too_many_bad_rows_are_refused_at_the_first_thousand(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": 1}\n' + b"x\n" * 5000)
    with pytest.raises(DataError, match=r"^999 of 1000 rows cannot be read.*line 2, column 1: it is not JSON"):
        list(read(tmp_path / "a.jsonl", target="a"))


def test_a_thousand_bad_rows_among_many_good_ones_of_a_block_are_not_too_many(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,y\n" + (b"1,0\n2,1\n" * 60 + b"x\n") * 1100)
    bad = BadRows()
    with read(tmp_path / "a.csv", target="y", bad=bad) as reader:
        assert sum(len(batch) for batch in reader) == 120 * 1100
    assert (bad.count, bad.rows) == (1100, 121 * 1100)


def test_gathered_rows_keep_their_bytes():
    found = PieceBad(Bad(n, 0, "why", b"%d\r\n" % n) for n in range(TOLD + 3)).all()
    assert found[-1] == Bad(TOLD, 0, "why", b"1000\n1001\n1002", 3)
    assert PieceBad().all() == []


@pytest.mark.parametrize("end", [b'",1\n', b""])
@pytest.mark.parametrize("workers", [0, 2])
def test_the_rows_behind_a_stray_quote_come_in_blocks_of_the_usual_size(tmp_path, workers, end):
    (tmp_path / "a.csv").write_bytes(b'a,y\n1,b\n2,c\n"' + b"word\n1,b\n" * 5000 + end)
    sizes = {}
    for block_size in (128, 1 << 20):
        bad = BadRows(tmp_path / "bad", limit=1.0)
        options = {"target": "y", "types": {"a": "number"}, "header": True, "max_line": 20_000, "bad": bad}
        with read(tmp_path / "a.csv", block_size=block_size, workers=workers, **options) as reader:
            batches = list(reader)
        lines = [line for batch in batches for line in batch.lines.tolist()]
        sizes[block_size] = max(map(len, batches))
        assert lines == [2, 3, *range(5, 10_004, 2)]
        assert bad.count == 5000 + bool(end)
        assert (tmp_path / "bad").read_bytes() == b'"word\n' + b"word\n" * 4999 + end
    assert sizes[128] < 200 < sizes[1 << 20]


def test_a_good_row_far_longer_than_a_block_stays_whole(tmp_path):
    text = "word\n" * 2000
    (tmp_path / "a.csv").write_text(f'a,y\n"{text}",b\n' + "w,c\n" * 500 + f'"{text}",b\nw,c\n')
    with read(tmp_path / "a.csv", block_size=128, target="y", header=True) as reader:
        batches = list(reader)
    labels = [label for batch in batches for label in batch.y]
    assert labels == [*"b", *"c" * 500, *"bc"]
    assert batches[0].parsed.column("a")[0].as_py() == text
    assert [line for batch in batches for line in batch.lines.tolist()][-3:] == [2502, 2503, 4504]


@pytest.mark.parametrize(
    ("text", "most", "said"),
    [
        (
            b"a,b,c,y" + b"z" * 40 + b"\n1,2,3,4\n",
            30,
            r"\(line 1: it is longer than 30 bytes: say max_line=",
        ),
        (
            b't,y\na,1\nb,0\n"' + b"word\n" * 500,
            1000,
            r"\(line 4: a quote is opened and not closed within 1000 ",
        ),
    ],
)
def test_first_rows_that_are_too_long_explain_what_is_missing(tmp_path, text, most, said):
    (tmp_path / "a.csv").write_bytes(text)
    with pytest.raises(DataError, match=said):
        list(read(tmp_path / "a.csv", target="y", max_line=most))


@pytest.mark.parametrize("size", ["9" * 400, "9" * 400 + "GB", 10**400, 1 << 63, "0", "0.5", 0, True, "-1"])
def test_sizes_that_no_file_has_are_refused(size):
    with pytest.raises(ValueError, match="it must be a number of bytes, such as 1000000, 64MB or 1GB, not"):
        parse_size(size)
