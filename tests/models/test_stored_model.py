"""Large models predict a few rows without reading all their weights."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onlearn
from onlearn import data, model_file
from onlearn.models import stored_model
from onlearn.models.evaluation import predictions
from onlearn.models.stored_model import StoredModel, open_for_prediction

CHILD = """
import sys
from pathlib import Path
import onlearn.cli, onlearn.models.stored_model, onlearn.estimators.linear, onlearn.models.evaluation
import pyarrow.compute, pyarrow.csv, safetensors
def resident(field):
    return 1024 * int(Path("/proc/self/status").read_text().partition(field + ":")[2].split()[0])
def predict(model):
    assert onlearn.cli.run(["predict", model, sys.argv[3], "-o", sys.argv[4], "--proba"]) == 0
predict(sys.argv[1])  # what any prediction needs
before = resident("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
predict(sys.argv[2])
print(resident("VmHWM") - before)
"""


def texts(path, rows, words, labels, seed=0):
    rng = np.random.default_rng(seed)
    with open(path, "w") as file:
        for n in range(rows):
            row = " ".join(f"word{k}" for k in rng.integers(0, words, 40))
            file.write(json.dumps({"label": f"l{n % labels}", "text": row}) + "\n")
    return str(path)


@pytest.fixture
def small_is_large(monkeypatch):
    monkeypatch.setattr(stored_model, "LARGE", 0)
    monkeypatch.setattr(stored_model, "PART", 1)


@pytest.mark.parametrize("labels", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"learner": "AveragedPerceptron"},
        {"learner": "Winnow"},
        {"learner": "FTRL"},
        {"learner": "LinearSVM"},
        {"learner": "VotedPerceptron"},  # not to be split
        {"learner": "NormalizedWinnow"},  # nor this
        {"geometry": "additive(1.0, l1=0.001)"},
        {"stabilizer": "survivor", "rule": "perceptron"},
    ],
    ids=str,
)
def test_the_same_predictions_bit_for_bit(tmp_path, small_is_large, labels, options):
    path = texts(tmp_path / "a.jsonl", 300, 2000, labels)
    try:
        onlearn.train(path, tmp_path / "m.onl", passes=2, **options)
    except ValueError as error:
        pytest.skip(f"not a combination that exists: {error}")
    other = texts(tmp_path / "b.jsonl", 3, 4000, labels, seed=1)
    whole, few = onlearn.load(tmp_path / "m.onl"), open_for_prediction(tmp_path / "m.onl")
    (batch,) = whole.read(other)
    for proba in (False, True):
        wanted = predictions(whole, batch, scores=proba, proba=proba)
        found = predictions(few, batch, scores=proba, proba=proba)
        for one, another in zip(wanted, found):
            assert (one is None) == (another is None)
            if one is not None:
                np.testing.assert_array_equal(one, another)
    split = options.get("learner") not in ("VotedPerceptron", "NormalizedWinnow")
    assert isinstance(few, StoredModel) == split
    if split and "l1" not in str(options):
        assert few._learner is None  # it was not needed


def test_many_rows_read_all_weights(tmp_path, small_is_large):
    path = texts(tmp_path / "a.jsonl", 300, 2000, 3)
    onlearn.train(path, tmp_path / "m.onl", passes=1)
    few = open_for_prediction(tmp_path / "m.onl")
    with few.read(path) as reader:
        for batch in reader:
            predictions(few, batch)
    assert few._learner is not None
    assert few.score([{"text": "word1"}], ["l0"]) in (0.0, 1.0)


def test_rows_one_by_one_read_all_weights_in_the_end(tmp_path, small_is_large):
    onlearn.train(texts(tmp_path / "a.jsonl", 300, 2000, 3), tmp_path / "m.onl", passes=1)
    few = open_for_prediction(tmp_path / "m.onl")
    for _ in range(stored_model.FEW + 1):
        predictions(few, [{"text": "word1 word2"}])
    assert few._learner is not None


def test_stored_arrays_are_what_was_saved(tmp_path):
    onlearn.train(texts(tmp_path / "a.jsonl", 300, 30_000, 7), tmp_path / "m.onl", passes=1)
    _, arrays = model_file.read_file(tmp_path / "m.onl")
    stored = model_file.StoredArrays(tmp_path / "m.onl")
    assert set(stored) == set(arrays) and len(stored) == len(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(stored[key], array)
        assert stored.size(key) == array.size
    weights = arrays["learner.training.g.w"].reshape(-1, 7)
    rows = np.array([0, 3, 17, len(weights) - 1])
    np.testing.assert_array_equal(stored.rows("learner.training.g.w", rows, 7), weights[rows].reshape(-1))


def test_a_damaged_file_is_refused(tmp_path, small_is_large):
    path = tmp_path / "m.onl"
    onlearn.train(texts(tmp_path / "a.jsonl", 100, 500, 2), path, passes=1)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(model_file.ModelFileError):
        open_for_prediction(path)
    with pytest.raises(FileNotFoundError):
        open_for_prediction(tmp_path / "none.onl")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux, whose /proc can forget a peak")
@pytest.mark.parametrize("labels", [2, 20])
def test_one_row_takes_no_more_than_twice_the_model(tmp_path, labels):
    small, large = tmp_path / "small.onl", tmp_path / "large.onl"
    onlearn.train(texts(tmp_path / "s.jsonl", 50, 100, labels), small, passes=1)
    onlearn.train(texts(tmp_path / "a.jsonl", 10_000, 200_000, labels), large, passes=1)
    row = texts(tmp_path / "one.jsonl", 1, 1000, labels)
    size = large.stat().st_size
    assert size > 20e6
    line = [sys.executable, "-c", CHILD, str(small), str(large), row, str(tmp_path / "out.csv")]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < 2 * size
    assert data.load(row)[0].num_rows == 1
