"""``onlearn evaluate``: the numbers are right, and what is odd about the data is said."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

import onlearn
from onlearn.data import load
from onlearn.models import open_model
from sample_models import MESSAGES, trained


def report(run, *arguments, err=""):
    return json.loads(run("evaluate", *arguments, "--json", err=err))


@pytest.mark.parametrize(("name", "file"), [("text", "text.jsonl"), ("table", "table.csv"), ("named", "named.vw")])
def test_as_scikit_learn_says(name, file, kit, run):
    found = report(run, kit(f"{name}.onl"), kit(file))
    model = open_model(kit(f"{name}.onl"))
    X, y = load(kit(file), **model.reading)
    proba = model.predict_proba(X)
    assert found["n"] == len(y) and found["bad_rows"] == 0
    assert found["accuracy"] == metrics.accuracy_score(y, model.predict(X))
    assert found["log_loss"] == pytest.approx(metrics.log_loss(y, proba, labels=model.labels), rel=1e-9)
    assert found["per_class"].keys() == set(model.labels)
    assert 0 <= found["calibration_error"] <= 1
    if len(model.labels) == 2:
        assert found["auc"] == pytest.approx(metrics.roc_auc_score(np.array(y) == model.labels[1], model.scores(X)))


def test_regression(kit, run):
    found = report(run, kit.numbers_onl, kit.numbers_csv)
    X, y = load(kit.numbers_csv, task="regress")
    predicted = open_model(kit.numbers_onl).predict(X)
    assert found["rmse"] == pytest.approx(metrics.root_mean_squared_error(y, predicted))
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted)) and found["r2"] > 0.5
    out = run("evaluate", kit.numbers_onl, kit.numbers_csv)
    assert "RMSE" in out and "accuracy" not in out


def test_a_learner_saved_from_python(kit, run):
    assert report(run, kit.bare_onl, kit.sparse_svm)["accuracy"] > 0.9  # its classes are -1 and 1; the file says +1
    assert report(run, kit.voted_onl, kit.sparse_svm)["accuracy"] > 0.9


def test_tables_for_people(kit, run):
    out = run("evaluate", kit.table_onl, kit.table_csv)
    assert "\x1b" not in out
    assert "calibration error" in out and "iris, blue" in out and "label \\ predicted" in out
    assert max(map(len, out.splitlines())) <= 80


def test_labels_the_model_does_not_know(kit, run, tmp_path):
    file = tmp_path / "new.jsonl"
    rows = [MESSAGES[0], ("eggs", MESSAGES[0][1]), ("eggs", "lunch"), MESSAGES[1]]
    file.write_text("".join(json.dumps({"label": y, "text": x}) + "\n" for y, x in rows))
    found = report(
        run,
        kit.text_onl,
        file,
        err="labels the model does not know count as errors: 'eggs' (2); it knows 'ham', 'spam'",
    )
    assert found["n"] == 4 and found["accuracy"] == 0.5 and found["unknown_labels"] == {"eggs": 2}
    assert run("evaluate", kit.text_onl, file, "--quiet")


def test_rows_without_a_label_are_left_out(kit, run, tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text('{"label": "spam", "text": "cheap pills"}\n{"text": "lunch"}\n')
    found = report(run, kit.text_onl, file, err="1 rows without a label")
    assert (found["n"], found["unlabelled"]) == (1, 1)


def test_another_target(kit, run, refused, tmp_path):
    file = tmp_path / "new.csv"
    file.write_text("size,place,key,truth\n" + "\n".join(Path(kit.table_csv).read_text().splitlines()[1:]) + "\n")
    assert "--target" in refused("evaluate", kit.table_onl, file)
    assert (
        report(run, kit.table_onl, file, "--target", "truth")["accuracy"]
        == report(run, kit.table_onl, kit.table_csv)["accuracy"]
    )
    assert "no row has a label in a column 'truht'" in refused("evaluate", kit.table_onl, file, "--target", "truht")
    assert "it has no columns" in refused("evaluate", kit.sparse_onl, kit.sparse_svm, "--target", "truth")


def test_bad_rows(kit, run, refused, tmp_path):
    file = tmp_path / "some.svm"
    file.write_text("+1 1:1\n+1 oops\n-1 2:1\n")
    assert "1 of 3 rows" in refused("evaluate", kit.sparse_onl, file, "--json")
    found = report(run, kit.sparse_onl, file, "--max-bad", "40%", err="line 2, column 4")
    assert (found["n"], found["bad_rows"]) == (2, 1)


def test_what_is_refused(kit, refused, tmp_path):
    assert "does not exist" in refused("evaluate", kit.text_onl, tmp_path / "none.jsonl")
    assert "no model file" in refused("evaluate", tmp_path / "none.onl", kit.text_jsonl)
    assert "cannot be used with this model" in refused("evaluate", kit.sparse_onl, kit.text_jsonl)
    (tmp_path / "empty.svm").write_text("")
    assert "is empty" in refused("evaluate", kit.sparse_onl, tmp_path / "empty.svm")


def test_a_full_stop_behind_a_label(kit, run, tmp_path):
    file = tmp_path / "new.jsonl"
    file.write_text("".join(json.dumps({"label": f"{y}.", "text": x}) + "\n" for y, x in MESSAGES))
    found = report(run, kit.text_onl, file, err="onlearn: the label 'spam.' is taken for 'spam'\n")
    assert found["accuracy"] == 1 and found["labels_taken_for"] == {"spam.": "spam", "ham.": "ham"}


def test_colours_and_a_bar_on_a_terminal_only(kit):
    terminal, side = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(onlearn.__file__).parents[1]), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    done = subprocess.Popen(
        [sys.executable, "-m", "onlearn.cli", "evaluate", kit.text_onl, kit.text_jsonl],
        env=environment,
        stdout=side,
        stderr=side,
    )
    os.close(side)
    out = b""
    with contextlib.suppress(OSError):  # the end of a terminal is an error
        while part := os.read(terminal, 1000):
            out += part
    assert done.wait(timeout=60) == 0
    assert b"\x1b[" in out and b"40 rows" in out and b"accuracy" in out


def test_census_income(data, run, tmp_path):
    """A real set, from its training file to the numbers on its test file."""
    trained(data("a9a/a9a.svm"), onlearn.LogisticRegression(random_state=0)).save(tmp_path / "a9a.onl")
    found = report(run, tmp_path / "a9a.onl", data("a9a/a9a.t.svm"))
    assert found["n"] == 16_281 and found["accuracy"] > 0.84 and found["auc"] > 0.89
    assert found["log_loss"] < 0.34 and found["calibration_error"] < 0.03
