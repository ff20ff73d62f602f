"""Commands on files whose rows have several labels."""

from __future__ import annotations

import csv
import io
import json

import pytest

from onlearn.models import open_model

ROWS = [
    ("a;b", "apple boat"),
    ("b", "boat sea"),
    ("", "of and"),
    ("c", "car road"),
    ("a;c", "tree car"),
    ("a", "apple"),
]


@pytest.fixture
def trained(run, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("text,tags\n" + "".join(f"{text},{labels}\n" for labels, text in ROWS * 12))
    model = tmp_path / "m.onl"
    out = run("train", path, "-o", model, "--target", "tags", "--label-separator", ";", "--text", "text")
    assert "several labels a row by MultilabelClassifier" in out
    return str(model), str(path)


def test_predictions_in_both_formats(trained, run):
    rows = list(csv.DictReader(io.StringIO(run("predict", *trained, "--scores", "--proba"))))
    assert [row["prediction"] for row in rows[:6]] == [labels for labels, _ in ROWS]
    assert {f"{what}:{label}" for what in ("score", "proba") for label in "abc"} < rows[0].keys()
    lines = run("predict", *trained, "--format-out", "jsonl", "--top", 2).splitlines()
    found = [json.loads(line) for line in lines]
    assert [row["prediction"] for row in found[:6]] == [labels.split(";") if labels else [] for labels, _ in ROWS]
    assert found[1]["top"][0]["label"] == "b"
    low = list(csv.DictReader(io.StringIO(run("predict", *trained, "--threshold", 0))))
    assert {row["prediction"] for row in low} == {"a;b;c"}


def test_evaluation(trained, run):
    report = json.loads(run("evaluate", *trained, "--json", "--best-threshold", "f1"))
    assert report["subset_accuracy"] == report["micro_f1"] == 1.0
    assert report["labels_a_row"] == pytest.approx(7 / 6)
    assert report["best_threshold"]["f1"] == 1.0
    shown = run("evaluate", *trained, "--threshold", 0.5)
    assert "Hamming loss" in shown and "precision of the best 1" in shown


def test_inspect_and_explain(trained, run, refused):
    assert "multilabel" in run("inspect", trained[0])
    assert "several labels" in refused("explain", trained[0], '{"text": "apple"}')


def test_training_goes_on(trained, run, tmp_path):
    model, _ = trained
    more = tmp_path / "more.csv"
    more.write_text("text,tags\n" + "zebra stripes,z;a\nboat,b\n" * 20)
    run("train", more, "-o", model, "--resume", model, "-q")
    assert open_model(model).labels == ["a", "b", "c", "z"]


def test_a_separator_is_proposed(trained, run):
    model, path = trained
    out = run("train", path, "-o", model, "--target", "tags", "--task", "multilabel", "--text", "text")
    assert "say --label-separator if those such as" in out


def test_descriptions_count_each_label(trained, run, refused):
    _, path = trained
    arguments = "data", "describe", path, "--target", "tags", "--json"
    found = json.loads(run(*arguments, "--task", "multilabel", "--label-separator", ";"))
    assert found["labels"] == {"a": 36, "b": 24, "c": 24}
    assert found["unlabelled"] == 12
    assert "--task multilabel" in refused(*arguments, "--label-separator", ";")


def test_what_is_refused(trained, run, refused, tmp_path):
    model, path = trained
    assert "two labels" in refused("predict", model, path, "--threshold", 0.5, "--positive", "a")
    assert "--label-separator" in refused("train", path, "-o", model, "--task", "classify", "--label-separator", ";")
    assert "trained to multilabel" in refused("stream", path, "-o", model, "--resume", model)
    bare = tmp_path / "bare.csv"
    bare.write_text("text\napple\n")
    assert "no row has a label" in refused("evaluate", model, bare)


def test_labels_that_hold_the_separator(tmp_path, run, refused):
    path, model = tmp_path / "rows.jsonl", tmp_path / "m.onl"
    rows = [{"tags": [["a;b", "c"], ["c"]][k % 2], "text": ["one two", "two three"][k % 2]} for k in range(40)]
    path.write_text("\n".join(map(json.dumps, rows)))
    run("train", path, "-o", model, "--target", "tags", "--task", "multilabel", "--text", "text")
    assert "--format-out jsonl" in refused("predict", model, path)
    assert '"a;b"' in run("predict", model, path, "--format-out", "jsonl")
