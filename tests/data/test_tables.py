"""CSV, JSON lines, Parquet, Arrow: what is guessed, what is fixed, what is bad."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, parquet

from onlearn.data import BadRows, DataError, load, read


def columns(path, **options) -> tuple[dict, list, BadRows, list[str]]:
    bad = options.pop("bad", None) or BadRows(limit=1.0, shown=1000)
    reader = read(path, bad=bad, **options)
    batches = list(reader)
    table = pa.concat_tables([batch.rows for batch in batches], promote_options="permissive")
    y = [label for batch in batches for label in (batch.y.tolist() if batch.y is not None else [])]
    return table.to_pydict(), y, bad, reader.notes


def written(path, text: str | bytes):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_header_types_target_and_missing(tmp_path):
    path = written(tmp_path / "a.csv", "age,job,label\n39,clerk,yes\n?,NA,no\n1e1, smith ,yes\n")
    found, y, bad, notes = columns(path)
    assert found == {"age": [39, None, 10], "job": ["clerk", None, "smith"]}
    assert y == ["yes", "no", "yes"] and bad.count == 0
    assert any("names the columns" in note for note in notes) and any("'label'" in note for note in notes)


def test_no_header_and_blanks_after_commas(tmp_path):
    path = written(tmp_path / "a.data", "39, clerk, <=50K\n50, smith, >50K\n38, clerk, <=50K\n40, smith, >50K\n")
    found, y, _, notes = columns(path)
    assert found == {"c0": [39, 50, 38, 40], "c1": ["clerk", "smith", "clerk", "smith"]}
    assert y == ["<=50K", ">50K", "<=50K", ">50K"]
    assert any("'c2'" in note for note in notes)


def test_label_first(tmp_path):
    path = written(tmp_path / "a.csv", "T,2,8\nI,5,12\nT,4,11\nI,1,1\n")
    assert columns(path)[1] == ["T", "I", "T", "I"]
    assert columns(path, target=1)[1] == ["2", "5", "4", "1"]
    assert columns(path, target=-1)[1] == ["8", "12", "11", "1"]


def test_quotes_newlines_and_delimiters_within(tmp_path):
    path = written(tmp_path / "a.csv", 'label,text\r\nx,"a, ""b""\nc"\r\ny,plain\r\nx,"é"\r\n')
    for size in (1, 7, 1000):
        found, y, bad, _ = columns(path, block_size=size, header=True)
        assert found == {"text": ['a, "b"\nc', "plain", "é"]}, size
        assert y == ["x", "y", "x"] and bad.count == 0
    lines = [batch.lines.tolist() for batch in read(path)]
    assert lines == [[2, 4, 5]]


def test_bad_rows_of_csv(tmp_path):
    text = 'n,s,label\n1,a,x\n2,b\n3,c,x,y\nfour,d,x\n5,"e" f,x\n6,g,\n7,"h,x\n8,i,y\n'
    path = written(tmp_path / "a.csv", text)
    found, y, bad, _ = columns(path, types={"n": "number"})
    assert found == {"n": [1, 8], "s": ["a", "i"]} and y == ["x", "y"]
    reasons = {one.line: one.reason for _, one in bad.examples}
    assert reasons == {
        3: "there are 2 cells and not 3",
        4: "there are 4 cells and not 3",
        5: "'n' is not a number, as it was in the first rows",
        6: "there is text after a closing quote",
        7: "the target, 'label', is missing",
        8: "a quote is opened and never closed",
    }


def test_a_stray_quote_costs_one_row(tmp_path):
    path = written(tmp_path / "a.csv", 'a,label\n1,x\n"2,x\n' + "3,y\n" * 50 + '4,"z"\n')
    _, y, bad, _ = columns(path)
    assert bad.count == 1 and bad.examples[0][1].line == 3
    assert len(y) == 52 and y[-1] == "z"


def test_types_are_fixed_by_the_first_block(tmp_path):
    path = written(tmp_path / "a.csv", "n,label\n" + "1,x\n" * 300 + "oops,y\n" + "2,x\n" * 300)
    found, _, bad, _ = columns(path, block_size=200)
    assert found["n"] == [1.0] * 300 + [2.0] * 300
    assert [one.line for _, one in bad.examples] == [302]


def test_names_are_not_amounts(tmp_path):
    path = written(tmp_path / "a.csv", "zip,id,label\n01234,90071992547409931,x\n12345,1,y\n")
    found, *_ = columns(path)
    assert found == {"zip": ["01234", "12345"], "id": ["90071992547409931", "1"]}


def test_text_between_tabs_keeps_its_quotes(tmp_path):
    path = written(tmp_path / "a.tsv", 'ham\t"Hi" he said\nspam\twin\nham\t"open\nspam\tno\n')
    found, y, bad, _ = columns(path)
    assert found == {"c1": ['"Hi" he said', "win", '"open', "no"]} and y == ["ham", "spam", "ham", "spam"]
    assert bad.count == 0


def test_weight_id_regression_and_missing_as_error(tmp_path):
    path = written(tmp_path / "a.csv", "k,w,a,y\nr1,2,1,0.5\nr2,1,,1.5\nr3,x,2,2\nr4,1,2,high\n")
    bad = BadRows(limit=1.0)
    (batch,) = read(path, task="regress", weight="w", id="k", missing="error", bad=bad, types={"w": "string"})
    assert batch.y.tolist() == [0.5] and batch.weight.tolist() == [2] and batch.ids.tolist() == ["r1"]
    assert batch.rows.to_pydict() == {"a": [1.0]} and bad.count == 3


def test_several_files_share_a_layout(tmp_path):
    written(tmp_path / "1.csv", "a,b,label\n1,u,x\n2,v,y\n")
    written(tmp_path / "2.csv", "b,a,label\nw,3,x\n")
    written(tmp_path / "3.csv", "b,label\nw,x\n")
    found, y, *_ = columns([tmp_path / "1.csv", tmp_path / "2.csv"], header=True)
    assert found == {"a": [1, 2, 3], "b": ["u", "v", "w"]} and y == ["x", "y", "x"]
    with pytest.raises(DataError, match=r"3.csv lacks the column 'a'"):
        columns([tmp_path / "1.csv", tmp_path / "3.csv"], header=True)


def test_target_that_is_not_there(tmp_path):
    path = written(tmp_path / "a.csv", "a,b\n1,u\n2,v\n")
    with pytest.raises(DataError, match="which column is the target cannot be told; say target=, one of a, b"):
        columns(path)
    with pytest.raises(DataError, match="no column 'z' to be the target; there are a, b"):
        columns(path, target="z")
    assert columns(path, labels="optional")[0] == {"a": [1, 2], "b": ["u", "v"]}


cells = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=8)
MISSING = {"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"}


@given(
    rows=st.lists(st.tuples(cells, cells, st.sampled_from(["x", "y"])), min_size=1, max_size=12),
    size=st.sampled_from([1, 9, 50, 1000]),
)
def test_csv_round_trip(tmp_path_factory, rows, size):
    out = io.StringIO(newline="")
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows(rows)
    path = tmp_path_factory.getbasetemp() / "round.csv"
    path.write_bytes(out.getvalue().encode())
    kinds = {"c0": "string", "c1": "string"}
    found, y, bad, _ = columns(path, header=False, target=2, delimiter=",", types=kinds, block_size=size, workers=0)
    assert bad.count == 0
    for n in range(2):
        assert found[f"c{n}"] == [None if row[n] in MISSING else row[n] for row in rows]
    assert y == [row[2] for row in rows]


@given(
    content=st.text('ab1,"\t\n\r ;|?', max_size=60).map(str.encode) | st.binary(max_size=80), size=st.integers(1, 80)
)
def test_any_bytes_as_csv(tmp_path_factory, content, size):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    options = dict(header=False, labels="optional", delimiter=",", workers=0)
    outcomes = []
    for block in (size, 10_000):
        bad = BadRows(limit=1.0, shown=1000)
        try:
            batches = list(read(path, bad=bad, block_size=block, **options))
            outcomes.append(sum(map(len, batches)) + bad.count)
        except DataError as error:
            outcomes.append(str(error))
    if all(isinstance(outcome, int) for outcome in outcomes) and b'"' not in content:
        assert outcomes[0] == outcomes[1]


def test_json_lines(tmp_path):
    rows = [
        {"label": "a", "n": 1, "s": "x", "when": "2020-01-01T00:00:00", "o": {"p": 1, "q": "r"}},
        {"label": "b", "n": 2.5, "s": None, "o": {"p": None}},
        {"label": "a", "s": "NA", "new": [1, 2]},
    ]
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)) + "\n\n")
    found, y, *_ = columns(path)
    assert y == ["a", "b", "a"]
    assert found["n"] == [1, 2.5, None] and found["s"] == ["x", None, None]
    assert found["when"] == ["2020-01-01T00:00:00", None, None]
    assert found["o.p"] == [1, None, None] and found["o.q"] == ["r", None, None]


def test_json_lines_have_exact_labels(tmp_path):
    labels = ["12345678901234567890", "77", "12345678901234567891"]
    path = written(tmp_path / "a.jsonl", "".join(f'{{"y": {label}, "x": 1}}\n' for label in labels))
    assert columns(path)[1] == labels


def test_json_lines_that_drift(tmp_path):
    rows = [{"label": 1, "a": 1, "b": "x"}, {"label": 2, "a": 2.5, "b": 7}, {"label": "three", "a": "no", "c": True}]
    path = written(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for size in (1, 1000):
        found, y, bad, _ = columns(path, block_size=size, types={"a": "number", "b": "string", "label": "string"})
        assert y == ["1", "2"], size
        assert found["a"] == [1, 2.5] and found["b"] == ["x", "7"]
        assert [(one.line, one.reason) for _, one in bad.examples] == [(3, "'a' is not a number, as it was before")]


def test_numbers_among_true_and_false_are_bad_rows(tmp_path):
    first = written(tmp_path / "a.jsonl", '{"flag": true, "y": "a"}\n{"flag": false, "y": "b"}\n')
    numbers = written(tmp_path / "b.jsonl", "".join(f'{{"flag": {n}, "y": "a"}}\n' for n in (0, 1, 7)))
    mixed = written(tmp_path / "c.jsonl", "".join(f'{{"flag": {v}, "y": "a"}}\n' for v in ("true", "1", '"NA"', '"x"')))
    found, y, bad, _ = columns([first, numbers, mixed])
    assert found == {"flag": [True, False, True, None]} and len(y) == 4
    assert [(where[-7:], one.line) for where, one in bad.examples] == [
        ("b.jsonl", 1), ("b.jsonl", 2), ("b.jsonl", 3), ("c.jsonl", 2), ("c.jsonl", 4)
    ]  # fmt: skip
    assert {one.reason for _, one in bad.examples} == {"'flag' is not true or false, as it was before"}


def test_bad_json_lines(tmp_path):
    text = b'{"label": "a", "t": "x"}\n{"label": \n[1]\n{"label": "b", "t": "\xff"}\n'
    text += b'{"label": "c", "t": "z"} {}\nnull\n{"t": "q"}\n'
    path = written(tmp_path / "a.jsonl", text)
    for size in (1, 1000):
        found, y, bad, _ = columns(path, block_size=size)
        assert found == {"t": ["x"]} and y == ["a"]
        assert [one.line for _, one in bad.examples] == [2, 3, 4, 5, 6, 7]


@given(
    content=st.text('{}[]",:ab1.e-\n\\ ', max_size=80).map(str.encode) | st.binary(max_size=80), size=st.integers(1, 80)
)
def test_any_bytes_as_json(tmp_path_factory, content, size):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(b'{"label": "x", "a": "s"}\n' + content)
    counts = []
    for block in (size, 10_000):
        bad = BadRows(limit=1.0)
        batches = list(read(path, bad=bad, block_size=block, workers=0, labels="optional"))
        counts.append(sum(map(len, batches)) + bad.count)
    assert counts[0] == counts[1]


def test_objects_within_are_columns_in_every_format(tmp_path):
    rows = [{"st": {"a": 1.5, "b": {"c": "x"}}, "y": 0}, {"st": {"a": 2.5, "b": None}, "y": 1}, {"st": None, "y": 0}]
    paths = [written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows))), tmp_path / "a.pq", tmp_path / "a.feather"]
    parquet.write_table(pa.Table.from_pylist(rows), paths[1])
    feather.write_feather(pa.Table.from_pylist(rows), paths[2])
    for path in paths:
        found, y, *_ = columns(path)
        assert found == {"st.a": [1.5, 2.5, None], "st.b.c": ["x", None, None]} and y == ["0", "1", "0"]


def test_one_name_for_two_columns_of_json_is_a_bad_row(tmp_path):
    lines = ['{"a": {"b": 1}, "y": "p"}', '{"a": {"b": 1}, "a.b": 2, "y": "q"}', '{"a.b": 3, "y": "q"}']
    for order in (lines, [lines[0], lines[1].replace('"a": {"b": 1}, "a.b": 2', '"a.b": 2, "a": {"b": 1}'), lines[2]]):
        found, y, bad, _ = columns(written(tmp_path / "a.jsonl", "\n".join(order)))
        assert (found, y) == ({"a.b": [1, 3]}, ["p", "q"])
        assert "line 2: there are several columns 'a.b': name them apart" in bad.first()


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
def test_infinite_cells_are_told_so(tmp_path, cell):
    path = written(tmp_path / "a.csv", "a,b,y\n" + "1,2,3\n" * 300 + f"{cell},2,3\n1,2,{cell}\n1,x,3\n")
    *_, bad, _ = columns(path, target="y", task="regress", header=True)
    assert [one.reason for _, one in bad.examples] == [
        "'a' is infinite", "the target, 'y', is infinite", "'b' is not a number, as it was in the first rows"
    ]  # fmt: skip


def test_infinite_numbers_make_a_bad_row(tmp_path):
    lines = ['{"a": 1, "y": 0}', '{"a": 1e999, "y": 1}', '{"a": -2.5, "y": 1}']
    paths = [written(tmp_path / "a.jsonl", "\n".join(lines)), tmp_path / "a.parquet", tmp_path / "a.feather"]
    table = pa.table({"a": pa.array([1, float("inf"), -2.5], pa.float32()), "y": [0, 1, 1]})
    parquet.write_table(table, paths[1])
    feather.write_feather(table, paths[2])
    for path in paths:
        found, y, bad, _ = columns(path)
        assert (found, y, bad.count) == ({"a": [1, -2.5]}, ["0", "1"], 1)
        assert f"{path.name}, line 2: 'a' is infinite" in bad.first()


@pytest.mark.parametrize("value", ["1e400", "[1e400]", '[1, {"b": -1e400}]'])
def test_a_number_beyond_floats_is_told_so_even_in_the_first_row(tmp_path, value):
    path = written(
        tmp_path / "a.jsonl", f'{{"a": {value}, "y": 1}}\n{{"a": null, "y": {value}}}\n{{"a": null, "y": 2}}\n'
    )
    _, y, bad, _ = columns(path, target="y")
    said = [one.reason for _, one in bad.examples]
    assert y == ["2"] and said[1] == "'y' holds a number beyond the range of floats"
    assert said[0] == ("'a' is infinite" if value == "1e400" else "'a' holds a number beyond the range of floats")


INF, NAN = float("inf"), float("nan")
LISTED = {  # of the rows of each, the second is bad
    "list": pa.array([[1.0, None], [2.0, NAN], None, []], pa.list_(pa.float32())),
    "fixed": pa.array([[1.0, 2.0], [-INF, 2.0], None, [3.0, None]], pa.list_(pa.float64(), 2)),
    "deep": pa.array([[[1.0], None], [[], [2.0, INF]], None, [[]]], pa.large_list(pa.list_(pa.float16()))),
    "objects": pa.array([[{"c": 1.0}, None], [{"c": NAN}], None, [{"c": None}]]),
}


@pytest.mark.parametrize("layout", LISTED)
def test_infinity_and_nan_in_lists_make_a_bad_row(tmp_path, layout):
    lists = LISTED[layout]
    table = pa.table({"a": pa.concat_arrays([lists, lists]).slice(3), "n": [NAN, 1, 2, 3, 4], "y": [0, 1, 0, 1, 0]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    for path in (tmp_path / "a.parquet", tmp_path / "a.arrow"):
        found, y, bad, _ = columns(path)
        kept = lists.to_pylist()
        assert (found["a"], y) == ([kept[3], kept[0], *kept[2:]], ["0", "1", "1", "0"]), path
        assert [(one.line, one.reason) for _, one in bad.examples] == [(3, "'a' holds an infinite number or NaN")]


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_a_label_that_is_infinite_makes_a_bad_row(tmp_path, kind):
    table = pa.table({"a": [1.5, 2.5, 3.5], "y": np.array([1, INF, 2], kind), "l": [[1.0], [2.0], [1.0, -INF]]})
    parquet.write_table(table, tmp_path / "a.parquet")
    _, y, bad, _ = columns(tmp_path / "a.parquet")
    assert y == ["1"] and "line 2: the target, 'y', is infinite" in bad.first()
    _, _, bad, _ = columns(tmp_path / "a.parquet", target="l", task="multilabel")
    assert [one.reason for _, one in bad.examples] == [
        "'y' is infinite", "the target, 'l', holds an infinite number or NaN"
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_a_label_that_is_nan_is_missing(tmp_path, kind):
    table = pa.table({"a": [1.5, 2.5, 3.5], "y": np.array([0, np.nan, 1], kind)})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.feather")
    for path in (tmp_path / "a.parquet", tmp_path / "a.feather"):
        found, y, bad, _ = columns(path)
        assert (found, y, bad.count) == ({"a": [1.5, 3.5]}, ["0", "1"], 1)
        assert "line 2: the target, 'y', is missing" in bad.first()
        assert columns(path, labels="optional")[1] == ["0", None, "1"]


def test_parquet_and_arrow(tmp_path):
    table = pa.table(
        {
            "n": [1, 2, 3],
            "s": pa.array(["a", None, "b"]).dictionary_encode(),
            "target": [0, 1, 0],
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    feather.write_feather(table, tmp_path / "a.feather", compression="uncompressed")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    for name in ("a.parquet", "a.feather", "a.arrow"):
        found, y, *_ = columns(tmp_path / name)
        assert found == {"n": [1, 2, 3], "s": ["a", None, "b"]} and y == ["0", "1", "0"]
    view = getattr(pa, "string_view", pa.string)()  # which the oldest PyArrow has not
    views = pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.uint32()), pa.array(["a", "b"], view))
    alike = table.set_column(1, "s", views).append_column("v", pa.array(["x", "y", "z"], view))
    with pa.OSFile(str(tmp_path / "v.arrow"), "wb") as sink, pa.ipc.new_file(sink, alike.schema) as out:
        out.write_table(alike)
    found, y, *_ = columns(tmp_path / "v.arrow", weight="n", missing="error")
    assert found == {"s": ["a", "b"], "v": ["x", "z"]} and y == ["0", "0"]
    whole = (tmp_path / "a.parquet").read_bytes()
    written(tmp_path / "cut.parquet", whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cut.parquet cannot be read"):
        columns(tmp_path / "cut.parquet")


def test_fasttext(tmp_path):
    text = "__label__a some words\n\n__label__b more\r\nno label\n__label__a __label__b two\n__label__c\n"
    text += "__label__a words __label__a\nwords __label__a\n__label__d not__label__a\n"
    path = written(tmp_path / "a.txt", text)
    found, y, bad, _ = columns(path)
    assert found == {"text": ["some words", "more", "", "not__label__a"]} and y == ["a", "b", "c", "d"]
    assert [(one.line, one.column, one.reason) for _, one in bad.examples] == [
        (4, 0, "there is no __label__"),
        (5, 12, "there is more than one label"),
        (7, 18, "there is more than one label"),
        (8, 7, "__label__ must stand at the front"),
    ]


def test_real_tables(data):
    table, y = load(data("adult") / "adult.data")
    assert table.num_rows == 32_561 and table.num_columns == 14 and set(y) == {"<=50K", ">50K"}
    assert table.column("c1").null_count == 1836
    bad = BadRows()
    (batch,) = read(data("adult") / "adult.test", bad=bad)
    assert len(batch) == 16_281 and bad.examples[0][1].line == 1
    _, y = load(data("sms_spam") / "SMSSpamCollection.tsv")
    assert len(y) == 5574 and (y == "spam").sum() == 747
    table, y = load(data("imdb") / "test.jsonl.gz")
    assert table.column_names == ["text"] and np.unique(y).tolist() == ["neg", "pos"] and len(y) == 25_000
