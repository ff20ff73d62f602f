"""What ``onlearn train`` decides is said before it trains; figures stand beside what a guess would reach."""

from __future__ import annotations

import json

import numpy as np
import pytest

from onlearn import cli
from onlearn.models.passes import Lessons


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(x, "yes" if x > 0.5 else "no") for x in rng.normal(size=400)]
    (tmp_path / "a.csv").write_text("x,word,label\n" + "".join(f"{x:.4f},w{x > 0},{y}\n" for x, y in rows))
    (tmp_path / "b.csv").write_text("x,word,outcome\n" + "".join(f"{x:.4f},w{x > 0},{y}\n" for x, y in rows))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"x": x, "outcome": y}) + "\n" for x, y in rows))
    return tmp_path


def train(*arguments):
    return cli.run(["train", *map(str, arguments), "-o", "m.onl"])


@pytest.mark.parametrize("passes", ["1", "3"])
def test_decisions_are_printed_before_training(here, capsys, monkeypatch, passes):
    heard = []
    learn = Lessons.learn

    def listening(self, *arguments):
        heard.append(capsys.readouterr().out)
        learn(self, *arguments)

    monkeypatch.setattr(Lessons, "learn", listening)
    assert train("a.csv", "--passes", passes) == 0
    assert "the target is column 'label'; say --target if it is another" in heard[0]
    assert "x is numeric" in heard[0] and "word is categorical" in heard[0]
    assert "classification by OnlineClassifier(geometry='adagrad(0.1)'" in heard[0]
    assert f"{passes} pass" in heard[0]
    after = capsys.readouterr().out
    assert "is numeric" not in after and "examples/s" in after  # nothing is said twice


def test_the_number_of_passes_is_told_as_far_as_it_is_known(here, capsys):
    assert train("a.csv") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "up to 20 passes, as rows held out decide" in said
    assert "passes do best on rows held out for a trial" in said
    assert train("a.csv", "--task", "regress", "--target", "x") == 0
    assert "regression by OnlineRegressor(" in capsys.readouterr().out


def test_quiet_and_json_print_no_decisions_before(here, capsys):
    assert train("a.csv", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert train("a.csv", "--json") == 0
    assert "x is numeric: numbers" in json.loads(capsys.readouterr().out)["notes"]


@pytest.mark.parametrize(("path", "columns"), [("b.csv", "x, word, outcome"), ("b.jsonl", "x, outcome")])
def test_a_target_that_cannot_be_told(here, capsys, path, columns):
    assert train(path) == 2
    said = capsys.readouterr().err
    assert f"{path}: which column is the target cannot be told; say --target, one of {columns}" in said
    assert train(path, "--target", "outcome", "-q") == 0


def test_the_share_of_the_most_common_label_is_beside_the_accuracy(here, capsys):
    labels = [line.rpartition(",")[2] for line in (here / "a.csv").read_text().splitlines()[1:]]
    most = labels.count("no") / len(labels)
    assert train("a.csv", "--test", "a.csv", "--holdout", "20%", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["test"]["majority"] == most
    assert 0.5 < found["holdout"]["majority"] < 0.9
    for passes in ("1", "3"):
        assert train("a.csv", "--json", "--passes", passes) == 0
        assert json.loads(capsys.readouterr().out)["progressive"]["majority"] == most
    assert train("a.csv", "--test", "a.csv") == 0
    assert capsys.readouterr().out.count(f"(most common label: {most:.4f})") == 2
    assert cli.run(["evaluate", "m.onl", "a.csv"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"of always the most common label {most:.4f}" in shown
