"""``onlearn.train``: the command in Python."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlearn
from onlearn import cli
from onlearn.data import DataError
from onlearn.errors import PlanError


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [(x, "yes" if x > 0 else "no") for x in rng.normal(size=300)]
    (tmp_path / "a.csv").write_text("x,word,label\n" + "".join(f"{x:.4f},w{x > 1},{y}\n" for x, y in rows))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, []),
        ({"passes": 2, "rule": "pa1(0.5)", "seed": 3}, ["--passes", "2", "--rule", "pa1(0.5)", "--seed", "3"]),
        ({"holdout": 0.2, "ignore": "word"}, ["--holdout", "20%", "--ignore", "word"]),
        ({"learner": "AROW", "test": "a.csv"}, ["--learner", "AROW", "--test", "a.csv"]),
        ({"kernel": "polynomial(2)", "budget": 50}, ["--kernel", "polynomial(2)", "--budget", "50"]),
        ({"task": "regress", "target": "x"}, ["--task", "regress", "--target", "x"]),
    ],
)
def test_it_makes_the_same_model_and_report(here, capsys, options, line):
    model = onlearn.train("a.csv", "python.onl", **options)
    assert cli.run(["train", "a.csv", "-o", "command.onl", "--json", *line]) == 0
    assert (here / "python.onl").read_bytes() == (here / "command.onl").read_bytes()
    told = json.loads(capsys.readouterr().out)
    ours = json.loads(json.dumps(model.report_))
    for report in (told, ours):
        report.pop("seconds")
        report.pop("model")
        report.pop("notes")  # spelled for each
    assert ours == told


def test_without_a_file_to_write_to(here):
    model = onlearn.train(here / "a.csv", passes=1)
    assert sorted(path.name for path in here.iterdir()) == ["a.csv"]
    assert model.report_["model"] is None and model.report_["progressive"]["n"] == 300
    assert any("say target= if it is another" in note for note in model.report_["notes"])
    assert set(model.predict([{"x": 3.0}, {"x": -3.0}])) == {"yes", "no"}


def test_resuming(here):
    onlearn.train("a.csv", "m.onl", passes=1)
    again = onlearn.train("a.csv", resume="m.onl")
    assert again.learner.n_seen_ == 600


def test_a_learner_may_be_an_object(here):
    asked = onlearn.AROW(r=0.5)
    assert onlearn.train("a.csv", learner=asked).learner.settings.r == 0.5
    assert not hasattr(asked, "classes_")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"ngrams": (2, 1)}, r"ngrams: \(2, 1\) is not a range"),
        ({"passes": 0}, "passes: 0 is not a number of at least 1"),
        ({"max_names": 5, "resume": "m.onl"}, "max_names= has no use with resume="),
        ({"task": "cluster"}, "task: there is no 'cluster'"),
        ({"checkpoint_every": 5}, "checkpoint_every= needs output="),
        ({"budget": 5}, "budget= is about kernel="),
        ({"text": "nosuch"}, "there is no column 'nosuch'"),
    ],
)
def test_what_is_wrong_is_said_as_python_spells_it(here, options, says):
    with pytest.raises(PlanError, match=says):
        onlearn.train("a.csv", **options)


def test_wrong_names_and_files(here):
    with pytest.raises(TypeError, match="nosuch"):
        onlearn.train("a.csv", nosuch=1)
    with pytest.raises(DataError, match=r"nowhere.csv does not exist"):
        onlearn.train("nowhere.csv")
