"""JSON lines: what becomes of a row depends on the row, and on the kinds of columns that the first rows decide."""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onlearn.data import BadRows, read
from onlearn.data.formats import json_spans
from onlearn.data.names import number_names
from onlearn.data.table_roles import MISSING
from onlearn.engine.number_names import number_name


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def rows_by_line(path, **options):
    """The rows by line: label and what is there of the features; the lines of bad rows; and the reader."""
    bad, found = BadRows(limit=1.0, shown=10_000), {}
    reader = read(path, format="jsonl", bad=bad, workers=0, **{"labels": "optional", **options})
    for batch in reader:
        labels = [None] * len(batch) if batch.y is None else batch.y.tolist()
        for line, label, row in zip(batch.lines.tolist(), labels, batch.rows.to_pylist()):
            found[line] = label, {name: value for name, value in row.items() if value is not None}
    return found, {one.line for _, one in bad.examples}, reader


# ----------------------------------------------------------------------------------------------------
# Names of numbers.


@given(st.lists(st.one_of(st.floats(), st.integers(-(2**70), 2**70).map(float), st.none())))
@example([1e300, 5e-324, -0.0, 2.0**63, -(2.0**63), 1e22, 123456789.123, 1e-7, float("inf")])
def test_names_of_a_column_are_those_of_its_values(values):
    expected = [None if value is None or math.isnan(value) else number_name(value) for value in values]
    assert number_names(pa.array(values, pa.float64())).to_pylist() == expected


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.none()))
def test_names_of_whole_numbers(values):
    assert number_names(pa.array(values, pa.int64())).to_pylist() == [None if v is None else str(v) for v in values]


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70)))
def test_equal_numbers_have_one_name(value):
    name = number_name(value)
    assert (float(name) if isinstance(value, float) else int(name)) == value
    same = [np.float64(value)] if isinstance(value, float) else []
    if value == int(value):
        same += [int(value), Decimal(int(value))]
    if float(value) == value:
        same += [float(value)]
    if abs(value) < 1e38 and float(np.float32(value)) == value:
        same += [np.float32(value)]
    assert {number_name(one) for one in same} <= {name}


def test_columns_of_any_type_of_number_have_the_same_names():
    kinds = [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.decimal128(30, 3)]
    for kind in kinds:
        assert number_names(pa.array([0, 7, None, 100]).cast(kind)).to_pylist() == ["0", "7", None, "100"], kind
    halves = pa.array(np.array([0.5, 7, np.nan], np.float16))
    assert number_names(halves).to_pylist() == ["0.5", "7", None]
    assert number_names(pa.array([Decimal("2.50"), Decimal("-0.10")])).to_pylist() == ["2.5", "-0.1"]


# ----------------------------------------------------------------------------------------------------
# Any rows.

NUMBERS = st.one_of(
    st.integers(-3, 3).map(str),
    st.integers(-(10**40), 10**40).map(str),
    st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63, 2**64, 10**400]).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["-0", "-0.0", "1.0", "1E5", "1e5", "1e+5", "100000", "0.1", "1e22", "1e-400", "9007199254740993.0", "1e23"]
    ),
)
ODD = st.sampled_from(
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "-NaN",
        "9" * 5000,
        "1e400",
        "-1e400",
        "1.7976931348623159e308",
        "01",
        "+1",
        "1.",
        ".5",
        "0x10",
        "nan",
        "tru",
        "1_0",
        "-",
        "{}",
        "[]",
        "[[]]",
        "[NaN]",
        "[1,Infinity]",
        '{"c":NaN}',
        '{"c":Infinity}',
        '[{"c":NaN}]',
        '"\\ud800"',
        '["\\ud800"]',
        '"\\u0000"',
        '"\\x"',
        '"\t"',
        "1/**/",
        "[1,]",
        '{"c":1,"c":2}',
        '[{"c":1,"c":2}]',
        '[{"c":1},{"d":2.5}]',
        "[1e400]",
        '"x"x',
        "",
    ]
)
STRINGS = st.one_of(
    st.sampled_from(["x", "y", "1", "1.0", "1e5", "true", "NA", "NaN", "2012-01-01", "2012-01-01 10:00:00", "1_0"]),
    st.sampled_from(["inf", "Infinity", " 1", "+1", "0x10", "NAN", "1e400", "", "ä", "\u0663"]),
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=3),
).map(json.dumps)
PLAIN = st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false", "null"]))
VALUES = st.one_of(
    PLAIN,
    PLAIN,
    ODD,
    st.lists(PLAIN, max_size=3).map(lambda values: f"[{', '.join(values)}]"),
    st.lists(NUMBERS, max_size=3).map(lambda values: f"[{', '.join(values)}]"),
    st.lists(STRINGS, max_size=3).map(lambda values: f"[{', '.join(values)}]"),
    st.lists(NUMBERS | STRINGS, max_size=2).map(lambda values: f"[{', '.join(['null', *values])}]"),
    PLAIN.map(lambda value: f'{{"c": {value}}}'),
)
LINES = st.one_of(
    st.dictionaries(st.sampled_from(["label", "a", "b", "b.c"]), VALUES, max_size=4).map(
        lambda row: "{" + ", ".join(f'"{key}": {value}' for key, value in row.items()) + "}"
    ),
    st.sampled_from(
        ["", "{", "[]", "null", '{"a": 1}}', '{"a": 1} {"a": 2}', '{"a": 1, "a": "x"}', "{}", '{"a": 1}\x00']
    ),
)
NAMES = ["label", "a", "b", "b.c", "label.c", "a.c", "b.c.c"]
DECIDED = [  # a value for each name
    ['"x"', "1", '"x"', "2", "3", '"x"', "true"],
    ["1", "true", "[1]", '"x"', '"x"', '["x"]', "1"],
    ["true", '["x"]', "[[1]]", "false", "[true]", "4", '"x"'],
    ['"x"', '[{"c": 1, "d": "x"}]', '[["x"]]', "1", '[{"c": [1]}]', "true", "[1]"],
]


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """Decisions about kinds, each from one row."""
    folder = tmp_path_factory.mktemp("decided")
    made = []
    for n, row in enumerate(DECIDED):
        text = "{" + ", ".join(f'"{name}": {value}' for name, value in zip(NAMES, row)) + "}\n"
        made.append(rows_by_line(written(folder / f"{n}.jsonl", text))[2].decisions())
    return made


ROWS = {
    "lines": st.lists(LINES, min_size=1, max_size=8),
    "which": st.integers(0, len(DECIDED) - 1),
    "n": st.integers(0, 7),
}


@settings(max_examples=200)
@given(**ROWS)
def test_a_row_does_not_depend_on_others(tmp_path_factory, decided, lines, which, n):
    check_rows(tmp_path_factory.getbasetemp() / "any.jsonl", decided[which], lines, n % len(lines))


@pytest.mark.slow
@settings(max_examples=3000)
@given(**ROWS)
def test_no_row_depends_on_others(tmp_path_factory, decided, lines, which, n):
    check_rows(tmp_path_factory.getbasetemp() / "any.jsonl", decided[which], lines, n % len(lines))


def check_rows(path, decided, lines, n):
    """Rows are the same by either parser, with any block size, and without the others."""
    lines = [*(line.replace("\n", " ") for line in lines), '{"label": "z"}']
    written(path, "\n".join(lines) + "\n")
    expected = rows_by_line(path, decisions=decided)[:2]
    for few, arrow, size in ((1, True, 1 << 22), (1, True, 40), (1, False, 1 << 22)):
        with parsing(few, arrow):
            assert rows_by_line(path, decisions=decided, block_size=size)[:2] == expected, (few, arrow, size)
    if lines[n].strip():
        alone, bad, _ = rows_by_line(written(path, lines[n] + "\n"), decisions=decided)
        assert (alone.get(1), 1 in bad) == (expected[0].get(n + 1), n + 1 in expected[1])


@contextmanager
def parsing(few, arrow):
    """Lines are parsed one by one only if there are few, or always."""
    before = json_spans.FEW, json_spans.by_arrow
    json_spans.FEW, json_spans.by_arrow = few, before[1] if arrow else lambda text, count: None
    try:
        yield
    finally:
        json_spans.FEW, json_spans.by_arrow = before


DAMAGED = {
    "lines": st.lists(LINES.filter(lambda line: '"label"' not in line), min_size=1, max_size=6),
    "labels": st.lists(PLAIN, min_size=7, max_size=7),
    "damage": st.sampled_from(["{", "[]", '{"a": [Infinity]}', '{"a": "\\ud800"}', '{"a": 1,}', '{"b": 1, "b": 2}x']),
    "at": st.integers(0, 6),
}


@settings(max_examples=200)
@given(**DAMAGED)
def test_a_damaged_line_changes_nothing(tmp_path_factory, lines, labels, damage, at):
    check_damage(tmp_path_factory.getbasetemp() / "any.jsonl", lines, labels, damage, at)


@pytest.mark.slow
@settings(max_examples=3000)
@given(**DAMAGED)
def test_no_damaged_line_changes_others(tmp_path_factory, lines, labels, damage, at):
    check_damage(tmp_path_factory.getbasetemp() / "any.jsonl", lines, labels, damage, at)


def check_damage(path, lines, labels, damage, at):
    """Not even the kinds of columns, which these first rows decide; nor does the parser."""
    lines = [*lines, '{"a": null}']
    for n, line in enumerate(lines):
        if line.startswith('{"'):
            lines[n] = f'{{"label": {labels[n]}, "n": {n}, {line[1:]}'
    written(path, "\n".join(lines) + "\n")
    rows, lost, reader = rows_by_line(path)
    expected = {row["n"]: (label, row) for label, row in rows.values() if "n" in row}
    written(path, "\n".join([*lines[:at], damage, *lines[at:]]) + "\n")
    for few, arrow in ((1, True), (1000, True), (1, False)):
        with parsing(few, arrow):
            rows, bad, other = rows_by_line(path)
        assert {row["n"]: (label, row) for label, row in rows.values() if "n" in row} == expected, (few, arrow)
        assert len(bad) == len(lost) + 1 and kinds_of(other) == kinds_of(reader)


def kinds_of(reader):
    decided = reader.decisions()
    return decided["jsonl"][0] if decided else {}


@settings(max_examples=200)
@given(values=st.lists(st.one_of(NUMBERS, STRINGS, st.sampled_from(["true", "false"])), min_size=1, max_size=8))
def test_what_both_parsers_accept_is_what_json_has(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    written(path, "".join(f'{{"label": {value}, "x": {json.dumps(str(value))}}}\n' for value in values))
    rows, bad, _ = rows_by_line(path, types={"x": "string"})
    for line, value in enumerate(map(json.loads, values), 1):
        if value == math.inf or value == -math.inf:
            assert line in bad
        elif isinstance(value, bool):
            assert rows[line][0] == str(value).lower()
        elif isinstance(value, str):
            assert rows[line][0] == (None if value in MISSING else value)
        else:
            assert rows[line][0] == number_name(value)


def test_one_other_value_among_many_changes_no_name(tmp_path):
    """A text among numeric labels and a malformed line, in one of several blocks."""
    rows = [{"label": [1.0, 2.0][n % 2], "c": [7, 2.0, 1e5][n % 3]} for n in range(60_000)]
    lines = [json.dumps(row) for row in rows]
    lines[40_000], lines[50_000] = '{"label": "other", "c": "x"}', "{"
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    with read(path, block_size=1 << 19, types={"c": "string"}) as reader:
        categories = {name for batch in reader for name in batch.rows.column("c").unique().to_pylist()}
    assert sorted(reader.label_names) == ["1", "2", "other"] and reader.bad.count == 1
    assert categories == {"7", "2", "100000", "x"}


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, -(10**30), -(2**63) - 1])
def test_large_whole_numbers_are_exact_names(tmp_path, value):
    """In labels, ids and columns of strings, alone or with floats; a column that begins with one is of strings."""
    lines = [f'{{"label": {value}, "id": {value}, "a": {value}, "b": {other}}}' for other in (value, 0.5, 1)]
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    for size in (1 << 20, 1):
        with read(path, id="id", block_size=size, types={"b": "string"}) as reader:
            batches = list(reader)
        assert reader.label_names == [str(value)]
        assert [one for batch in batches for one in batch.ids] == [str(value)] * 3
        assert [one for batch in batches for one in batch.rows.column("a").to_pylist()] == [str(value)] * 3
        assert [one for batch in batches for one in batch.rows.column("b").to_pylist()] == [str(value), "0.5", "1"]


LISTS = st.recursive(
    st.none() | st.sampled_from([0.5, 1, "x", "2012-01-01"]),
    lambda inner: st.lists(inner, max_size=3) | st.fixed_dictionaries({"c": inner}),
)


@settings(max_examples=100)
@given(
    rows=st.lists(LISTS.filter(lambda value: not isinstance(value, (float, int, str, dict))), min_size=1, max_size=4)
)
@example(rows=[[None, 1.0], [2.0, 1.0]])
@example(rows=[[[None], [1.0]], [[2.0]]])
@example(rows=[[{"c": None}, {"c": 1.0}], [{"c": 2.0}]])
def test_what_arrow_reads_is_what_lists_hold(rows):
    """It loses nulls that come before the first value, unless it is told the type."""
    text = "".join(json.dumps({"v": row, "n": 1}) + "\n" for row in rows).encode()
    made = json_spans.by_arrow(np.frombuffer(text, np.uint8), len(rows))
    if made is not None:
        assert made["v"].to_pylist() == rows


def test_lists_that_begin_with_null_are_left_to_arrow():
    text = b'{"v": [null, 1.0], "d": [null, "2012-01-01"]}\n{"v": [2.0], "d": null}\n'
    made = json_spans.by_arrow(np.frombuffer(text, np.uint8), 2)
    assert {name: column.to_pylist() for name, column in made.items()} == {
        "v": [[None, 1.0], [2.0]], "d": [[None, "2012-01-01"], None]
    }  # fmt: skip


def test_null_before_the_first_value_of_a_list(tmp_path):
    lines = ['{"v": [null, 1.0], "y": "a"}', '{"v": [2.0, 1.0], "y": "b"}']
    for few in (1, 1000):
        with parsing(few, True):
            found, bad, _ = rows_by_line(written(tmp_path / "a.jsonl", "\n".join(lines)), target="y")
        assert found == {1: ("a", {"v": [None, 1.0]}), 2: ("b", {"v": [2.0, 1.0]})} and not bad


def test_infinity_and_nan_in_lists_are_bad_rows(tmp_path):
    lines = ['{"y": "a", "x": 1, "l": [1]}', '{"y": "a", "x": NaN, "l": [2]}', '{"y": "a", "x": 2, "l": [NaN]}',
             '{"y": "a", "x": -Infinity, "l": [3]}', '{"y": "a", "x": 3, "l": [1, Infinity]}', '{"y": "a", "x": 1e400}',
             '{"y": "a", "x": 4, "l": [1e400]}', '{"y": "a", "x": 5, "s": "NaN and Infinity"}']  # fmt: skip
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    for damage in ("", "{"):
        found, bad, _ = rows_by_line(written(path, "\n".join([*lines, damage])), target="y")
        assert [*found] == [1, 2, 8] and bad - {9} == {3, 4, 5, 6, 7}
        assert found[2] == ("a", {"l": [2.0]})


def test_labels_in_lists_have_the_names_of_numbers(tmp_path):
    lines = ['{"label": [1, 2.0]}', '{"label": ["1", "x"]}', '{"label": []}', '{"label": [100000000000000000000]}']
    path = written(tmp_path / "a.jsonl", "\n".join(lines))
    for size in (1 << 20, 1):
        with read(path, task="multilabel", block_size=size) as reader:
            sets = [batch.label_sets[code] for batch in reader for code in batch.codes]
        assert sets == [("1", "2"), ("1", "x"), (), ("100000000000000000000",)]


def test_a_number_of_thousands_of_digits_makes_a_bad_row(tmp_path):
    lines = [
        '{"y": "a", "x": 1}',
        '{"y": "b", "x": %s}',
        '{"y": %s, "x": 2}',
        '{"y": "a", "x": 3, "l": [-%s]}',
        '{"y": "b"}',
    ]
    path = written(tmp_path / "a.jsonl", "\n".join(lines).replace("%s", "9" * 5000))
    for few, arrow in ((1, True), (1000, False)):
        with parsing(few, arrow):
            bad = BadRows(limit=1.0)
            with read(path, bad=bad, target="y", workers=0) as reader:
                assert [batch.lines.tolist() for batch in reader] == [[1, 5]]
        assert bad.count == 3 and "beyond the range of floats" in bad.summary()


def test_minus_nan_is_no_json(tmp_path):
    lines = ['{"y": "a", "x": 1}', '{"y": "a", "x": NaN}', '{"y": "a", "x": -NaN}']
    for more in ([], ['{"y": "a", "x": "z"}']):  # the latter lines are not read by Arrow
        path = written(tmp_path / "a.jsonl", "\n".join([*lines, *more]))
        found, bad, _ = rows_by_line(path, target="y", types={"x": "number"})
        assert {1, 2} == {*found} and bad == {3, 4} - ({4} if not more else set())


def test_a_text_leaves_the_first_lists_of_a_column_as_they_are(tmp_path):
    first, later = ['{"y": "a", "l": [], "m": [[]]}'] * 3, ['{"y": "b", "l": [1], "m": [["x"]]}']
    for other in (
        '{"y": "c", "l": "x"}',
        '{"y": "c", "m": "x"}',
        '{"y": "c", "m": [1]}',
        '{"y": "c", "l": true, "m": 2}',
    ):
        path = written(tmp_path / "a.jsonl", "\n".join([*first, *later, other]))
        decisions = rows_by_line(written(tmp_path / "b.jsonl", "\n".join(first)), target="y")[2].decisions()
        found, bad, _ = rows_by_line(path, target="y", decisions=decisions)
        assert found[4] == ("b", {"l": [1.0], "m": [["x"]]}) and bad == {5}, other


def test_columns_stand_in_the_order_of_the_file(tmp_path):
    for other in ("1", '"z"'):  # a column of two kinds is not read by Arrow
        lines = [
            '{"x": 1, "day": "2012-01-01", "h": 9300000000000000000}',
            f'{{"x": {other}, "day": "2012-01-02", "h": 2}}',
        ]
        with read(written(tmp_path / "a.jsonl", "\n".join(lines)), target=0, task="classify") as reader:
            batch = next(reader)
        assert batch.rows.column_names == ["day", "h"] and batch.y[0] == "1"
