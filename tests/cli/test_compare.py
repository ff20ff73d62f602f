"""``onlearn compare`` through the command line."""

from __future__ import annotations

import json

import pytest

from onlearn import cli
from onlearn.models.contestants import OurLearner
from sample_models import MESSAGES


def test_the_table(kit, run):
    out = run("compare", kit.table_csv, "--id", "key", "-q", "--peer", "sklearn.tree:DecisionTreeClassifier")
    lines = out.splitlines()
    assert "rows to learn from" in lines[0] and "held out to test on" in lines[0]
    assert lines[2].split() == ["learner", "accuracy", "log-loss", "mistakes", "seconds", "memory", "model"]
    for name in ("default", "AROW", "AveragedPerceptron", "ScInOL", "NaiveBayes", "DecisionTreeClassifier"):
        assert name in out
    assert "accuracy, with" in out and "log loss, with" in out


def test_json(kit, run):
    found = json.loads(run("compare", kit.text_jsonl, "--learner", "AROW", "--learner", "Perceptron", "--json"))
    assert [one["name"] for one in found["learners"]] == ["AROW", "Perceptron"]
    assert found["rows"] + found["test_rows"] == 10 * len(MESSAGES)
    assert found["learners"][0]["curve"][-1]["seen"] == found["rows"] and found["stopped"] is False
    assert {one["test"] for one in found["pairs"]} == {"mcnemar", "bootstrap"}


def test_lines_while_it_goes_on(kit, run):
    run("compare", kit.sparse_svm, "--learner", "AROW", "--folds", "3", err="onlearn: AROW: accuracy")
    out = run("compare", kit.numbers_csv, "--task", "regress", "--test", kit.numbers_csv, err="RMSE")
    assert "RMSE" in out and "squared error, with" in out


def test_failures_are_rows(kit, run):
    out = run("compare", kit.table_csv, "--id", "key", "-q", "--learner", "AROW", "--learner", "Winnow")
    assert "failed" in out and "Winnow" in out.split("failed")[1]


def test_refusals(kit, refused):
    assert "did you mean Perceptron" in refused("compare", kit.sparse_svm, "--learner", "Perzeptron")
    assert "no module 'nosuch'" in refused("compare", kit.sparse_svm, "--peer", "nosuch:Thing")
    assert "--folds" in refused("compare", kit.sparse_svm, "--folds", 1)
    assert "--holdout and --folds" in refused("compare", kit.sparse_svm, "--folds", 2, "--holdout", "10%")
    assert "nowhere.csv" in refused("compare", "nowhere.csv")


def test_sentences_are_refused(tmp_path, refused):
    path = tmp_path / "words.conll"
    path.write_text("dog N\nruns V\n\ncat N\nsleeps V\n\n")
    assert "sentences" in refused("compare", path)


def test_ctrl_c_shows_what_is_finished(kit, monkeypatch, capsys):
    compete = OurLearner.compete

    def interrupted(self, split, curves):
        if self.name == "FTRL":
            raise KeyboardInterrupt
        return compete(self, split, curves)

    monkeypatch.setattr(OurLearner, "compete", interrupted)
    assert cli.run(["compare", kit.sparse_svm, "-q", "--learner", "AROW", "--learner", "FTRL"]) == 130
    captured = capsys.readouterr()
    assert "AROW" in captured.out and "stopped by Ctrl-C; 1 learner" in captured.err


@pytest.mark.parametrize("name", ["text.jsonl", "named.vw", "sparse.svm"])
def test_every_kind_of_file(kit, run, name):
    found = json.loads(run("compare", kit(name), "--learner", "AROW", "--peer", "sklearn.svm:LinearSVC", "--json"))
    assert [one["error"] for one in found["learners"]] == [None, None]
