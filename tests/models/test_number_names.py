"""A number has one name in training and prediction, in files of any format and in Python."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from onlearn import load, train
from onlearn.data import read
from onlearn.data.shards import cut, first_decisions

VALUES = ["x", 2.0, 1e5, 7, 0.25, 2**60 + 1]
LABELS = [1.0, 2.0, "other"]
ROWS = [{"c": VALUES[n % 6], "label": LABELS[n % 3]} for n in range(1200)]
NUMBERS = [row for row in ROWS if row["c"] != "x"]
SMALL = [row for row in NUMBERS if row["c"] != 2**60 + 1]  # all of them are exact as floats
NAMES = {1.0: "1", 2.0: "2", "other": "other"}


def named(rows):
    return [NAMES[row["label"]] for row in rows]


def columns(rows):
    return {"c": [row["c"] for row in rows]}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of JSON lines whose values tell the label."""
    path = tmp_path_factory.mktemp("names") / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return train(path, passes=3)


def predicted(model, path):
    with model.read(path) as reader:
        return [label for batch in reader for label in model.predict(batch)]


def test_files_of_numbers_only(model, tmp_path):
    assert model.labels == ["1", "2", "other"]
    lines = [json.dumps(row) for row in NUMBERS]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert predicted(model, tmp_path / "a.jsonl") == named(NUMBERS)
    (tmp_path / "a.jsonl").write_text("\n".join(['{"c": "y"}', "{", *lines]))
    assert predicted(model, tmp_path / "a.jsonl")[1:] == named(NUMBERS)
    for kind in (pa.float64(), pa.decimal128(12, 3), pa.float32()):
        parquet.write_table(
            pa.table({"c": pa.array(columns(SMALL)["c"], pa.float64()).cast(kind)}), tmp_path / "a.parquet"
        )
        assert predicted(model, tmp_path / "a.parquet") == named(SMALL), kind


def test_rows_of_python(model):
    rows = [{"c": row["c"]} for row in NUMBERS]
    assert model.predict(rows).tolist() == named(NUMBERS)
    assert [model.predict_one(row) for row in rows[:50]] == named(NUMBERS)[:50]
    assert model.predict({"c": np.array(columns(NUMBERS)["c"], dtype=object)}).tolist() == named(NUMBERS)
    assert model.predict({"c": np.array(columns(SMALL)["c"])}).tolist() == named(SMALL)
    assert model.predict(pa.table({"c": pa.array(columns(SMALL)["c"], pa.float64())})).tolist() == named(SMALL)
    assert model.predict([{"c": "y"}, *rows]).tolist()[1:] == named(NUMBERS)
    assert model.predict([{"c": np.float32(0.25)}, {"c": np.int8(7)}]).tolist() == ["2", "1"]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_data_frames(model, package):
    frames = pytest.importorskip(package)
    assert model.predict(frames.DataFrame(columns(SMALL))).tolist() == named(SMALL)
    values = [row["c"] for row in ROWS]
    mixed = {"pandas": lambda: frames.Series(values, dtype=object),
             "polars": lambda: frames.Series("c", values, dtype=frames.Object)}[package]()  # fmt: skip
    assert model.predict(frames.DataFrame({"c": mixed})).tolist() == named(ROWS)


def test_learning_goes_on_with_the_same_names(model, tmp_path):
    model.save(tmp_path / "a.onl")
    other = load(tmp_path / "a.onl")
    names = other.features.n_features_out_
    other.partial_fit(columns(NUMBERS), [row["label"] for row in NUMBERS])
    for row in ROWS[:6]:
        other.learn_one({"c": row["c"]}, row["label"])
    assert other.features.n_features_out_ == names and other.labels == ["1", "2", "other"]


def test_strings_of_csv_stay_text(tmp_path):
    """Cells of a column that is one of strings in training are text, whatever stands in other rows."""
    lines = [f"{cell},{label}" for cell, label in (("x", "a"), ("2.0", "b"), ("1e5", "a")) for _ in range(100)]
    (tmp_path / "a.csv").write_text("c,label\n" + "\n".join(lines))
    (tmp_path / "b.csv").write_text("c,label\n" + "\n".join(lines[100:]))
    model = train(tmp_path / "a.csv", passes=3)
    assert predicted(model, tmp_path / "b.csv") == ["b"] * 100 + ["a"] * 100


def test_shards_and_the_row_cache_have_the_same_names(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    expected = [str(label) for label in named(ROWS)]
    decided = first_decisions(path)
    shards = [batch for shard in cut(path, 5) for batch in read(shard, decisions=decided)]
    assert [label for batch in shards for label in batch.y] == expected
    categories = [one for batch in shards for one in batch.rows.column("c").to_pylist()]
    assert set(categories) == {"x", "2", "100000", "7", "0.25", str(2**60 + 1)}
    for _ in range(2):
        with read(path, cache=tmp_path) as reader:
            batches = list(reader)
        assert [label for batch in batches for label in batch.y] == expected
        assert [one for batch in batches for one in batch.rows.column("c").to_pylist()] == categories
