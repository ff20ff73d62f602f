"""``onlearn tune --learner``, a search by Optuna, and ``onlearn tune --folds``, the winner cross-validated."""

from __future__ import annotations

import json
import sys

import pytest

import onlearn


def test_a_search(kit, run, tmp_path):
    pytest.importorskip("optuna")
    table, model = tmp_path / "table.json", tmp_path / "model.onl"
    asked = ("tune", kit.table_csv, "--id", "key", "--learner", "SVC", "--trials", 3, "--folds", 2)
    found = json.loads(run(*asked, "--space", "C=log(0.1,10)", "--json", "--table", table, "-o", model))
    assert len(found["configurations"]) == 3 and found["folds"] == 2 and found["low"] <= found["score"] <= found["high"]
    assert found["command"].startswith("onlearn train") and "SVC(C=" in found["command"]
    assert (
        found["training"]["learner"].startswith("SVC(") and json.loads(table.read_text())["winner"] == found["winner"]
    )
    assert onlearn.load(model).learner.name == "SVC"
    out = run(*asked)
    assert "3 trials" in out and "gaussian" in out


def test_a_search_in_regression(kit, run):
    pytest.importorskip("optuna")
    found = json.loads(run("tune", kit.numbers_csv, "--learner", "KNNRegressor", "--trials", 2, "--folds", 2, "--json"))
    assert found["score"] > 0.8 and {one["state"] for one in found["configurations"]} <= {"complete", "pruned"}


def test_folds_of_the_winner(kit, run):
    found = json.loads(run("tune", kit.table_csv, "--id", "key", "--configurations", 3, "--folds", 3, "--json"))
    learners = found["cross_validation"]["learners"]
    assert "default" in [one["name"] for one in learners] and all(one["low"] <= one["accuracy"] for one in learners)
    assert "cross-validated: 300" in run("tune", kit.table_csv, "--id", "key", "--configurations", 2, "--folds", 3)


def test_refusals(kit, refused, monkeypatch):
    assert "--trials is about --learner" in refused("tune", kit.sparse_svm, "--trials", 3)
    assert "--resume is about a race" in refused("tune", kit.sparse_svm, "--learner", "SVC", "--resume", "t.json")
    assert "standard input" in refused("tune", "-", "--folds", 3)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'onlearn[optuna]'" in refused("tune", kit.sparse_svm, "--learner", "SVC")


def test_refusals_about_the_space(kit, refused):
    pytest.importorskip("optuna")
    assert "which parameters of AROW" in refused("tune", kit.sparse_svm, "--learner", "AROW")
    assert "has no parameter 'c'" in refused("tune", kit.sparse_svm, "--learner", "SVC", "--space", "c=1,2")
    assert "did you mean SVC" in refused("tune", kit.sparse_svm, "--learner", "SVCC")
