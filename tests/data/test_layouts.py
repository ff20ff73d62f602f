"""Tables as other programs write them: several layouts in one run, headers with gaps, times, halves of characters."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from onlearn.data import BadRows, load, read

ROWS = [("red", 1.5, "yes"), ("blue", 2.0, "no"), ("green", -3.0, "yes")] * 20


def written(path, delimiter: str, quote: str = "", header: str = "colour,size,label"):
    lines = [delimiter.join(f"{quote}{cell}{quote}" for cell in row) for row in ROWS]
    path.write_text("\n".join([header.replace(",", delimiter), *lines]) + "\n")
    return path


@pytest.mark.parametrize("second", [";", "\t", "|"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_each_file_has_its_own_delimiter_and_quotes(tmp_path, second, quote):
    files = [written(tmp_path / "a.csv", ","), written(tmp_path / "b.csv", second, quote)]
    for order in (files, files[::-1]):
        X, y = load([str(file) for file in order])
        assert X.to_pylist() == [{"colour": row[0], "size": row[1]} for row in ROWS * 2]
        assert y.tolist() == [row[2] for row in ROWS * 2]


@pytest.mark.parametrize(
    ("header", "target"),
    [
        (",colour,size,label", None),  # as data frames are written, with their index
        (",colour,size,verdict", 3),
        ("n,colour,,label", None),
        ("n,colour,colour,label", None),
        ("n,,,verdict", "verdict"),
    ],
)
def test_a_header_may_lack_a_name_or_have_it_twice(tmp_path, header, target):
    rows = [f"{n},{row[0]},{row[1]},{row[2]}" for n, row in enumerate(ROWS)]
    file = tmp_path / "a.csv"
    file.write_text("\n".join([header, *rows]) + "\n")
    for files in ([file], [file, file]):
        X, y = load([str(one) for one in files], target=target)
        assert X.num_rows == len(files) * len(ROWS)
        assert set(y.tolist()) == {"yes", "no"}


def test_rows_of_words_that_are_also_headings_are_no_header(tmp_path):
    """Votes: n, y and ? in every column, the first row included."""
    rng = np.random.default_rng(0)
    votes = [",".join(["left", *rng.choice(["y", "n", "?"], 6)]) for _ in range(50)]
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(["right,y,n,y,?,y,n", *votes]) + "\n")
    X, _ = load(file)
    assert X.num_rows == 51


def test_half_a_character_in_json_lines_makes_a_bad_row(tmp_path):
    rows = [{"label": "a", "text": f"row {n}"} for n in range(5)]
    halves = [
        '{"label": "a", "text": "cut \\ud83d"}',
        '{"label": "\\udc00", "text": "b"}',
        '{"\\ud800": 1, "label": "a"}',
    ]
    whole = '{"label": "b", "text": "\\ud83d\\ude00"}'  # both halves of one
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join([json.dumps(row) for row in rows] + halves + [whole]) + "\n")
    bad = BadRows(limit=1.0)
    batches = list(read(file, bad=bad))
    assert sum(len(batch) for batch in batches) == 6
    assert batches[-1].rows.column("text")[-1].as_py() == "\U0001f600"
    assert bad.count == 3
    assert "line 6: a text has half a character" in bad.first()


def test_times_in_nanoseconds_need_no_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    times = pa.array([1, 2, None], pa.timestamp("ns"))
    table = pa.table({"when": times, "often": pa.array([[1], [2, 3], []], pa.list_(pa.timestamp("ns"))),
                      "size": [1.0, 2.0, 3.0], "label": ["a", None, "b"]})  # fmt: skip
    parquet.write_table(table, tmp_path / "t.parquet")
    bad = BadRows(limit=1.0)
    assert sum(len(batch) for batch in read(tmp_path / "t.parquet", bad=bad)) == 2
    assert bad.count == 1
