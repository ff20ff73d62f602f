"""Shards: the rows of all of them, one after another, are the rows of the files."""

from __future__ import annotations

import bz2
import gzip
import pickle
import re
import threading
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onlearn.data import BadRows, DataError, load, read
from onlearn.data.batch import NamedRows, Sentences
from onlearn.data.formats import csv_cuts
from onlearn.data.shards import content, count_lines, cut, first_decisions, numbered
from onlearn.data.sources import state_of
from onlearn.engine.csr import CSR


def rows_in(batch):
    """Each row of a batch in plain Python."""
    parsed = batch.parsed
    if isinstance(parsed, CSR):
        bounds = zip(parsed.indptr.tolist(), parsed.indptr.tolist()[1:])
        return [list(zip(parsed.indices[a:b].tolist(), parsed.data[a:b].tolist())) for a, b in bounds]
    if isinstance(parsed, NamedRows):
        bounds = zip(parsed.indptr.tolist(), parsed.indptr.tolist()[1:])
        return [[(parsed.name(k), float(parsed.values[k])) for k in range(a, b)] for a, b in bounds]
    if isinstance(parsed, Sentences):
        bounds = zip(parsed.offsets.tolist(), parsed.offsets.tolist()[1:])
        return [{name: column[a:b].tolist() for name, column in parsed.columns.items()} for a, b in bounds]
    return parsed.to_pylist()


def everything(source, **options):
    """Rows with labels, weights, ids, groups and lines; bad rows; the number of lines."""
    bad, found = BadRows(limit=1.0, shown=10_000), []
    try:
        with read(source, bad=bad, workers=0, **options) as reader:
            for batch in reader:
                parts = [batch.y, batch.weight, batch.ids, batch.groups, batch.lines]
                # A block without any weight, id or group has none; in another block, rows lack theirs.
                usual = [None, 1.0, "", -1, None]
                columns = [[one] * len(batch) if part is None else part.tolist() for part, one in zip(parts, usual)]
                columns[2] = [one or "" for one in columns[2]]
                if isinstance(batch.parsed, Sentences) and batch.y is not None:
                    columns[0] = [str(one) for one in np.split(batch.y, batch.parsed.offsets[1:-1])]
                found += [repr(row) for row in zip(rows_in(batch), *columns)]
    except DataError as error:
        if "there are no rows" not in str(error) and "is empty" not in str(error):
            raise
    return found, [one for _, one in bad.examples], reader.lines_read, reader.checksums


def without_open_quote(bad):
    """Where a shard ends, the text that would say what is wrong with an open quote is not read."""
    about_quotes = "a quote is", "there is text", "there are "
    return bad._replace(reason="") if bad.reason.startswith(about_quotes) and b'"' in bad.raw else bad


def check(path, count, cut_options=None, **options):
    """Compare shards with the whole file, with lines numbered as in the file; returns the number of shards."""
    format = options.pop("format", None)
    shards = cut(path, count, format=format, **(cut_options or {}))
    try:
        whole = everything(path, format=format, **options)
    except DataError as error:
        with pytest.raises(DataError, match=re.escape(str(error))):
            first_decisions(path, format=format, **options)
        return 0
    decided = first_decisions(path, format=format, **options)
    lines = [count_lines(shard) for shard in shards]
    rows, bad = [], []
    for shard, count in zip(numbered(shards, lines), lines):
        found = everything(shard, decisions=decided, **options)
        rows += found[0]
        bad += found[1]
        assert found[2] == [count]
        assert found[3] in ([content(shard).checksum], [None])
    assert rows == whole[0]
    assert list(map(without_open_quote, bad)) == list(map(without_open_quote, whole[1]))
    assert sum(lines) == sum(whole[2])
    together = everything(numbered(shards, lines), decisions=decided, **options)
    assert together[:2] == (rows, bad)
    return len(shards)


ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", " \n"])


def texts(lines, least=1, most=30):
    """Lines with different ends, perhaps with a byte order mark, perhaps without a last line break."""
    body = st.lists(st.tuples(lines, ENDS).map("".join), min_size=least, max_size=most).map("".join)
    return st.tuples(st.sampled_from(["", "", "\ufeff"]), body, st.booleans()).map(
        lambda parts: (parts[0] + (parts[1].rstrip("\n") if parts[2] else parts[1])).encode()
    )


counts = st.sampled_from([1, 2, 3, 5, 8, 40, 1000])


def written(folder, name, raw):
    path = folder.getbasetemp() / name
    path.write_bytes(raw)
    return path


svmlight = st.sampled_from(
    [
        "1 1:0.5 2:1",
        "-1 qid:3 7:2",
        "spam 3:1 # note",
        "# a comment",
        "",
        "oops 1:x",
        "1 2:1e3 2:3",
        "é 9:1",
        "1",
        "\ufeffa 1:1",
    ]
)


@given(raw=texts(svmlight), count=counts)
def test_svmlight(tmp_path_factory, raw, count):
    path = written(tmp_path_factory, "shard.svm", raw)
    if raw.strip(b"\xef\xbb\xbf\r\n "):
        check(path, count)


vw = st.sampled_from(
    [
        "1 2 'tag|f a:0.5 b",
        "-1 |a x y |b z:2",
        "| no label",
        "1 3.5 'other|",
        "",
        "1 |f :3",
        "x |f a:1e400",
        "é |ü ö",
        "1 |f a:nan b",
    ]
)


@given(raw=texts(vw), count=counts)
def test_vw(tmp_path_factory, raw, count):
    path = written(tmp_path_factory, "shard.vw", raw)
    if raw.strip(b"\xef\xbb\xbf\r\n "):
        check(path, count)


fasttext = st.sampled_from(
    [
        "__label__a some words",
        "__label__b",
        "__label__a __label__b two",
        "no label",
        "",
        "__label__ x",
        "late __label__c",
        "__label__é ü",
    ]
)


@given(raw=texts(fasttext), count=counts, task=st.sampled_from(["classify", "multilabel"]))
def test_fasttext(tmp_path_factory, raw, count, task):
    path = written(tmp_path_factory, "shard.ft", raw)
    if raw.strip(b"\xef\xbb\xbf\r\n "):
        check(path, count, format="fasttext", task=task)


@given(raw=texts(st.sampled_from(["The dog barks .", "", "a\u00a0b c", "\t x  y"])), count=counts)
def test_sentences(tmp_path_factory, raw, count):
    path = written(tmp_path_factory, "shard.raw", raw)
    if raw.strip(b"\xef\xbb\xbf\r\n "):
        check(path, count, format="sentences")


json_rows = st.sampled_from(
    [
        '{"label": "x", "a": 1, "b": "text", "w": 1, "id": "p"}',
        '{"label": "y", "a": 2.5, "b": "é", "w": 0.5, "id": "q"}',
        '{"label": "x", "a": null, "b": "", "w": 2, "id": "r"}',
        '{"label": "x", "a": "oops", "b": "b", "w": 1, "id": "s"}',
        '{"label": "y", "a": 2.5, "b": "c", "w": -1, "id": "t"}',
        '{"label": null, "a": 3, "b": "d", "w": 1, "id": "u"}',
        "not JSON",
        "[1]",
        "",
    ]
)


@given(raw=texts(json_rows), count=counts)
def test_json_lines(tmp_path_factory, raw, count):
    """A first block that has all columns decides about their types; it is longer than the first shards."""
    first = b'{"label": "x", "a": 1, "b": "text", "w": 1, "id": "o"}\n'
    path = written(tmp_path_factory, "shard.jsonl", first + raw)
    check(path, count, weight="w", id="id", block_size=len(first))


cells = st.sampled_from(
    ["1", "-2.5", "007", "", "NA", "inf", "a", "b c", "é", '"1"', '" 2"', '"a"', '""', '"a""b"', '"a\nb"', '"a\r\n\nb"']
    + [
        '"1\n"',
        '"a,b"',
        '"\n"',
        '", x"',
        'a"b',
        '"a',
        'a"',
        '"a" b',
        ' "a" ',
        "a\rb",
        '5" x',
        '6"',
        '"\n,"',
        '"\n""\n,\n"',
    ]
)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 3))
    rows = draw(
        st.lists(st.lists(cells, min_size=width, max_size=width) | st.lists(cells, max_size=4), min_size=1, max_size=25)
    )
    delimiter = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    text = "".join(delimiter.join(row) + draw(ENDS) for row in rows)
    raw = text.replace(",", delimiter).encode()
    if draw(st.booleans()):
        raw = raw.rstrip(b"\n")
    if draw(st.integers(0, 9)) == 0:
        place = draw(st.integers(0, len(raw)))
        raw = raw[:place] + b"\xff" + raw[place:]
    return raw, delimiter, width


quoted_text = st.text('ab1,"\n\n\r ', min_size=1, max_size=80).map(str.encode)


@given(
    table=tables() | st.tuples(quoted_text, st.just(","), st.integers(1, 3)),
    count=counts,
    header=st.sampled_from([True, False, "auto"]),
    mark=st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    rules=st.sampled_from([{}, {}, {"TRIES": 1}, {"NEAR": 3}, {"max_line": 9}, {"max_line": 30, "NEAR": 2}]),
)
@example((b'1,2"\n' * 40, ",", 2), 8, False, b"", {})  # every quote may close a cell: rows are read
@example((b'1,"a\n\n,b"\n' * 40, ",", 2), 8, False, b"", {})
@example((b'1,""\n' * 40, ",", 2), 8, False, b"", {})
@example((b'1,"open\n' + b"1,2\n" * 40, ",", 2), 8, False, b"", {})
@example((b'1,"open\n' + b"1,2\n" * 40 + b'"\n', ",", 2), 8, False, b"", {"max_line": 50})
@example((b'1,"open\n' + b"1,2\n" * 40 + b'"\n', ",", 2), 8, False, b"", {})
def test_csv(tmp_path_factory, table, count, header, mark, rules):
    """However quotes stand. A header and a few plain rows begin the file, so that all tables have columns."""
    raw, delimiter, width = table
    names = [*"xyz"[: width - 1], "label"]
    start = [names, *([*"12"[: width - 1], "a"] for _ in range(3))]
    text = mark + "".join(delimiter.join(row) + "\n" for row in start).encode() + raw
    path = written(tmp_path_factory, "shard.csv", text)
    how = {"delimiter": delimiter, "max_line": rules.get("max_line", "1MB")}
    options = {"target": -1, "labels": "optional", "header": header, **how}
    with pytest.MonkeyPatch.context() as patch:
        for name in rules.keys() - {"max_line"}:
            patch.setattr(csv_cuts, name, rules[name])
        check(path, count, how, format="csv", **options)


@given(raw=texts(st.sampled_from(["1\ta", '2\t"b"', '"3\tc', "4", "", '5\t"d e" f', '"6"\ta', 'x\t"'])), count=counts)
def test_tsv(tmp_path_factory, raw, count):
    """Whether quotes enclose cells is decided once for the file."""
    path = written(tmp_path_factory, "shard.tsv", b"x\tlabel\n1\ta\n2\tb\n" + raw.removeprefix(b"\xef\xbb\xbf"))
    check(path, count, labels="optional")


def test_all_roles_of_csv_columns(tmp_path):
    rows = "".join(f"{n},{n % 3},{n / 4},{n % 5:02d},p{n}\n" for n in range(500))
    path = tmp_path / "a.csv"
    path.write_text("x,label,w,g,id\n" + rows)
    for task in ("classify", "regress", "rank"):
        assert check(path, 7, task=task, weight="w", id="id", group="g") == 7
        assert check(path, 7, task=task, weight="w", id="id", id_kept=True, group="g", batch_rows=10) == 7


def test_a_shard_decides_as_the_file_does(tmp_path):
    """A group that is written as a number in the first rows, and the type of a column that looks like another later."""
    path = tmp_path / "a.csv"
    path.write_text(
        "x,g,label\n" + "".join(f"{n},{n},a\n" for n in range(300)) + "".join(f"0{n},0{n},a\n" for n in range(300))
    )
    assert check(path, 9, group="g", block_size=1000) == 9


def test_a_later_shard_alone_is_a_small_file_with_a_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(100)))
    shard = cut(path, 4)[2]
    table, labels = load(shard)
    assert table.column_names == ["x"]
    assert table.column("x").to_pylist() == list(range(51, 51 + table.num_rows))
    assert set(labels.tolist()) == {"a", "b"}


def test_several_csv_files_with_columns_in_another_order(tmp_path):
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(100)))
    (tmp_path / "b.csv").write_text("label;x\n" + "".join(f"{'ab'[n % 2]};{n}\n" for n in range(200)))
    assert check(tmp_path / "*.csv", 6) == 6


conll_lines = st.sampled_from(
    ["the DT", "dog NN", "dog NN", "# text = the dog", "three col umns", "", "", "-DOCSTART- O", " ", "\r"]
)


@given(raw=texts(conll_lines), count=counts, tab=st.booleans())
def test_conll(tmp_path_factory, raw, count, tab):
    raw = b"a DT\nb NN\n\n" + raw.removeprefix(b"\xef\xbb\xbf")
    path = written(tmp_path_factory, "shard.conll", raw.replace(b" ", b"\t") if tab else raw)
    check(path, count, task="tag")


def test_conllu_and_its_comments(tmp_path):
    token = "{}\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n"
    path = tmp_path / "a.conllu"
    path.write_text("".join(f"# sent_id = {n}\n" + token.format(1) + token.format("2-3") + "\n" for n in range(40)))
    assert check(path, 5, task="tag", comments=True) == 5


def test_parquet_and_arrow(tmp_path):
    table = pa.table(
        {
            "x": np.arange(1000.0),
            "label": pa.array(["ab"[n % 2] for n in range(1000)]).dictionary_encode(),
            "w": [-1.0 if n % 100 == 7 else 1.0 for n in range(1000)],
        }
    )
    pa.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=64)
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=64)
    with pa.ipc.new_stream(tmp_path / "a.arrows", table.schema) as file:
        file.write_table(table, max_chunksize=64)
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    for name, count, expected in [
        ("a.parquet", 4, 4), ("a.parquet", 100, 16), ("a.arrow", 4, 4), ("a.arrow", 100, 16), ("a.arrows", 4, 1),
        ("b.parquet.gz", 3, 1),
    ]:  # fmt: skip
        assert check(tmp_path / name, count, weight="w") == expected
        assert sum(count_lines(shard) for shard in cut(tmp_path / name, count)) == 1000
    before = [content(shard).checksum for shard in cut(tmp_path / "a.parquet", 4)]
    changed = table.set_column(0, "x", [np.where(np.arange(1000) == 999, 0.0, np.arange(1000.0))])
    pa.parquet.write_table(changed, tmp_path / "a.parquet", row_group_size=64)
    after = [content(shard).checksum for shard in cut(tmp_path / "a.parquet", 4)]
    assert before[:3] == after[:3]
    assert before[3] != after[3]


def test_compressed_files_are_one_shard_each(tmp_path):
    text = "".join(f"{n % 2} {n + 1}:1\n" for n in range(1000)).encode()
    (tmp_path / "a.svm.gz").write_bytes(gzip.compress(text))
    (tmp_path / "b.svm.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "c.svm").write_bytes(text)
    shards = cut(tmp_path / "*.svm*", 3)
    assert [shard.part is None for shard in shards[:2]] == [True, True]
    assert len(shards) > 3
    for shard in shards[:2]:
        found = everything(shard)
        assert content(shard).checksum == zlib.crc32(text) == found[3][0]
        assert count_lines(shard) == 1000


def test_shards_have_about_the_same_size_and_depend_on_nothing_else(tmp_path):
    for name, rows in (("a.svm", 1000), ("b.svm", 3000), ("c.svm", 10)):
        (tmp_path / name).write_text("".join(f"{n % 2} {n % 90 + 10}:1\n" for n in range(rows)))
    shards = cut(tmp_path / "*.svm", 8)
    sizes = [shard.size for shard in shards]
    assert [shard.name[-5] for shard in shards] == list("aabbbbbbc")
    assert max(sizes[:-1]) - min(sizes[:-1]) < 0.1 * max(sizes)
    assert shards == cut([str(tmp_path / name) for name in ("a.svm", "b.svm", "c.svm")], 8)


def test_shards_are_small_when_pickled(tmp_path):
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n},a\n" for n in range(10_000)))
    (tmp_path / "a.svm").write_text("".join(f"1 {n + 1}:1\n" for n in range(10_000)))
    for name in ("a.csv", "a.svm"):
        for shard in cut(tmp_path / name, 10):
            raw = pickle.dumps(shard)
            assert pickle.loads(raw) == shard
            assert len(raw) < 1000
    assert len(pickle.dumps(first_decisions(tmp_path / "a.csv"))) < 2000


def test_nothing_but_the_places_is_read_to_cut(tmp_path, monkeypatch):
    from onlearn.data.sources import Source

    path = tmp_path / "a.svm"
    path.write_text("".join(f"1 {n + 1}:1\n" for n in range(500_000)))
    read_bytes, plain = [], Source.between

    def counted(self, start, stop):
        read_bytes.append(stop - start)
        return plain(self, start, stop)

    monkeypatch.setattr(Source, "between", counted)
    assert len(cut(path, 4)) == 4
    assert sum(read_bytes) < 3 * (1 << 17)


def test_quotes_are_searched_by_others(tmp_path):
    path = tmp_path / "a.csv"
    line = "1,a," + "b" * 90 + "\n"
    path.write_text("x,label,y\n" + line * 60_000)
    given = []

    def apply(function, items):
        given.extend(items)
        return map(pickle.loads(pickle.dumps(function)), pickle.loads(pickle.dumps(items)))

    shards = cut(path, 3, apply=apply)
    assert len(shards) == 3
    assert [(one.start, one.stop) for one in given] == [
        (shards[1].part.start, shards[2].part.start), (shards[2].part.start, path.stat().st_size)
    ]  # fmt: skip
    assert shards == cut(path, 3)


def test_a_line_longer_than_shards(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n1 " + " ".join(f"{n}:1" for n in range(1, 5000)) + "\n1 1:1\n" * 3)
    assert check(path, 50) < 5


def test_what_cannot_be_cut(tmp_path, monkeypatch):
    (tmp_path / "empty.svm").write_text("")
    (tmp_path / "a.svm").write_text("1 1:1\n" * 10)
    (tmp_path / "wide.svm").write_text("1 1:1\n", "utf-16")
    (tmp_path / "packed.svm").write_bytes(gzip.compress(b"1 1:1\n"))
    with pytest.raises(DataError, match="standard input"):
        cut("-", 2)
    with pytest.raises(DataError, match="does not exist"):
        cut(tmp_path / "none.svm", 2)
    with pytest.raises(DataError, match="no file matches"):
        cut(tmp_path / "*.vw", 2)
    with pytest.raises(DataError, match="UTF-16"):
        cut(tmp_path / "wide.svm", 2)
    with pytest.raises(DataError, match="is compressed by gzip"):
        cut(tmp_path / "packed.svm", 2)
    with pytest.raises(DataError, match="is empty"):
        cut(tmp_path / "empty.svm", 2)
    with pytest.raises(DataError, match="no format"):
        cut(tmp_path / "a.svm", 2, format="nonsense")
    with pytest.raises(ValueError, match="at least 1"):
        cut(tmp_path / "a.svm", 0)
    shards = cut(tmp_path / "a.svm", 2)
    with pytest.raises(DataError, match="cut already"):
        cut(shards, 2)
    notes: list[str] = []
    assert len(cut([tmp_path / "empty.svm", tmp_path / "a.svm"], 2, notes=notes)) == 2
    assert notes == [f"{tmp_path / 'empty.svm'} is empty"]


def test_files_that_change(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 1000)
    shards = cut(path, 4)
    state, before = state_of(shards[0]), [content(shard) for shard in shards]
    path.write_text("1 1:1\n" * 600 + "2 1:1\n" + "1 1:1\n" * 399)
    assert [a == b for a, b in zip(before, map(content, shards))] == [True, True, False, True]
    path.write_text("1 1:1\n" * 700)
    assert state_of(shards[0]) != state
    for shard in shards[2:]:
        with pytest.raises(DataError, match="cut short"):
            list(read(shard, workers=0))
        with pytest.raises(DataError, match="cut short"):
            content(shard)


def test_no_cache_and_no_threads(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n" * 1000)
    shards = cut(path, 4)
    before = threading.active_count()
    with read(shards[1:3], cache=True, workers=0) as reader:
        for _ in reader:
            assert threading.active_count() == before
    assert "shards" in reader.kept.said
    assert [one.name for one in tmp_path.iterdir()] == ["a.svm"]
    again = read(shards[1], workers=0)
    assert sum(map(len, again)) == sum(map(len, again.again())) == 250


def test_notes_and_unused_options(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 1:1\n" * 100)
    notes: list[str] = []
    shards = cut(path, 3, notes=notes)
    assert [shard.format for shard in shards] == ["svmlight"] * 3
    assert "read as svmlight" in notes[0]
    with pytest.raises(DataError, match="has no use here"):
        list(read(shards[1], target="x"))


@pytest.fixture
def fsspec():
    return pytest.importorskip("fsspec")


def test_urls(tmp_path, fsspec):
    text = "x,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(1000))
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv").write_text(text)
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(text.encode()))
    pa.parquet.write_table(
        pa.table({"x": np.arange(1000.0), "label": ["a"] * 1000}), tmp_path / "d.parquet", row_group_size=100
    )
    base = tmp_path.as_uri()
    for name, count in (("a.csv", 4), ("*.csv", 5), ("c.csv.gz", 3), ("d.parquet", 4)):
        assert load(f"{base}/{name}")[1].tolist() == load(tmp_path / name)[1].tolist()
        shards = cut(f"{base}/{name}", count)
        local = cut(tmp_path / name, count)
        assert [shard.part for shard in shards] == [shard.part for shard in local]
        assert check(f"{base}/{name}", count) == len(local)
        assert list(map(content, shards)) == list(map(content, local))
        assert shards[0].path is None
        assert pickle.loads(pickle.dumps(shards)) == shards
    (shard, *_) = cut(f"{base}/a.csv", 2)
    state = state_of(shard)
    assert state == state_of(shard)
    assert state[:2] == ["a.csv", len(text)]
    (tmp_path / "a.csv").write_text(text + "1,a\n")
    assert state_of(shard) != state


def test_urls_in_memory(fsspec):
    system = fsspec.filesystem("memory")
    system.pipe("/shards/a.svm", b"1 1:1\n" * 100)
    system.pipe("/shards/b.svm", b"1 1:1\n" * 200)
    shards = cut("memory://shards/*.svm", 6)
    assert len(shards) == 6
    assert sum(len(batch) for shard in shards for batch in read(shard, workers=0)) == 300
    state = state_of(shards[0])
    system.pipe("/shards/a.svm", b"1 1:1\n" * 50)
    assert state_of(shards[0]) != state
    with pytest.raises(DataError, match="cut short"):
        list(read(shards[1], workers=0))
    system.rm("/shards", recursive=True)
    with pytest.raises(DataError, match="does not exist"):
        list(read(shards[1], workers=0))


def test_urls_that_cannot_be_read(tmp_path, monkeypatch, fsspec):
    base = tmp_path.as_uri()
    for url, what in (
        (f"{base}/none.csv", "none.csv does not exist"),
        (f"{base}/*.csv", "no file matches"),
        (base, "is a directory"),
        ("nonsense://host/a.csv", "cannot be read: Protocol not known"),
    ):
        with pytest.raises(DataError, match=what):
            cut(url, 2)
    import builtins

    plain = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("fsspec", "s3fs"):
            raise ImportError(f"No module named {name!r}")
        return plain(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match="pip install fsspec"):
        read("s3://bucket/a.csv")


def test_a_package_that_a_protocol_needs(fsspec):
    try:
        import s3fs  # noqa: F401
    except ImportError:
        with pytest.raises(DataError, match=r"s3://bucket/a.csv cannot be read: Install s3fs"):
            read("s3://bucket/a.csv")


def test_http(tmp_path, fsspec):
    pytest.importorskip("aiohttp")
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{n},{'ab'[n % 2]}\n" for n in range(1000)))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/a.csv"
        assert load(url)[0].num_rows == 1000
        with pytest.raises(DataError, match="whole files only"):  # this server knows no ranges
            cut(url, 3)
    finally:
        server.shutdown()


def test_a_file_with_the_name_of_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "day::1.svm").write_text("1 1:1\n" * 10)
    assert len(cut("day::1.svm", 2)) == 2


def test_no_fsspec_without_a_url(tmp_path):
    import subprocess
    import sys

    (tmp_path / "a.svm").write_text("1 1:1\n" * 10)
    code = (
        "import sys; from onlearn.data import read; from onlearn.data.shards import cut\n"
        f"print(sum(len(b) for s in cut({str(tmp_path / 'a.svm')!r}, 2) for b in read(s, workers=0)))\n"
        "print([name for name in ('fsspec', 'sklearn', 'scipy', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["10", "[]"]


def test_shards_without_rows_are_no_mistake(tmp_path):
    blank, full = tmp_path / "blank.csv", tmp_path / "full.csv"
    blank.write_text("\n\n")
    full.write_text("x,label\n" + "1,a\n2,b\n" * 50)
    decided = first_decisions([blank, full])
    assert [sum(map(len, read(one, decisions=decided, workers=0))) for one in cut([blank, full], 2)] == [0, 49, 51]
    assert first_decisions(blank) == {}
    with read(blank, decisions={}, workers=0) as reader:
        assert sum(map(len, reader)) == sum(map(len, reader.again())) == 0
    for again in (read(blank, workers=0), read(blank, workers=0).again()):
        with pytest.raises(DataError, match="there are no rows"):
            list(again)
