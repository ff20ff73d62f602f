"""``onlearn inspect``: what is shown is what the model holds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

import onlearn
from onlearn.models import open_model


def report(run, *arguments):
    return json.loads(run("inspect", *arguments, "--json"))


def test_what_a_text_model_is(kit, run):
    found = report(run, kit.text_onl, "--top", "3")
    assert found["learner"] == "AdaGrad" and found["task"] == "classify" and found["labels"] == ["ham", "spam"]
    assert found["file"]["bytes"] == os.path.getsize(kit.text_onl)
    assert found["examples"] == 40 and found["trained"]["rows"] == 40
    assert found["features"]["rows"] == "a table" and found["features"]["count"] == found["features"]["names"]
    assert found["weights"]["nonzero"] <= found["weights"]["all"] == found["features"]["count"]
    spam, ham = ([one["feature"] for one in found["top"][label]] for label in ("spam", "ham"))
    assert len(spam) == len(ham) == 3
    assert {"cash", "pills", "cheap"} & set(spam) and {"lunch", "you", "my"} & set(ham)


def test_the_top_weights_are_the_largest(kit, run):
    model = open_model(kit.table_onl)
    names, (coef, _) = model.features.get_feature_names_out(), model.weights()
    found = report(run, kit.table_onl, "--top", "2")["top"]
    assert list(found) == model.labels
    for k, label in enumerate(model.labels):
        assert [(one["feature"], one["weight"]) for one in found[label]] == [
            (names[n], coef[k, n]) for n in np.argsort(-coef[k])[:2] if coef[k, n] > 0
        ]


def test_only_some_labels(kit, run, refused):
    found = report(run, kit.table_onl, "--class", "rose", "--class", "lily")
    assert found["top"].keys() == {"rose", "lily"}
    assert "did you mean rose?" in refused("inspect", kit.table_onl, "--class", "rosa")
    assert "no labels" in refused("inspect", kit.numbers_onl, "--class", "rose")
    assert "--top" in refused("inspect", kit.table_onl, "--top", "-1")
    assert all(not listed for listed in report(run, kit.table_onl, "--top", "0")["top"].values())


def test_regression(kit, run):
    top = report(run, kit.numbers_onl)["top"]["target"]
    assert [one["feature"] for one in top] == ["a", "b"]
    assert top[0]["weight"] > 0 > top[1]["weight"]


def test_a_learner_saved_from_python(kit, run):
    found = report(run, kit.bare_onl)
    assert found["learner"] == "AveragedPerceptron" and found["labels"] == ["-1", "1"]
    assert found["top"]["1"][0]["feature"] == "1"  # the column that gives the label away
    assert "AveragedPerceptron" in run("inspect", kit.bare_onl)


def test_names_of_a_data_frame(run, tmp_path):
    import pandas

    frame = pandas.DataFrame({"height": [1.0, 2.0, 1.5, 3.0], "width": [4.0, 2.0, 4.0, 1.0]})
    onlearn.Perceptron(random_state=0).fit(frame, [0, 1, 0, 1]).save(tmp_path / "frame.onl")
    assert {one["feature"] for listed in report(run, tmp_path / "frame.onl")["top"].values() for one in listed} <= {
        "height",
        "width",
    }


def test_a_voted_learner_has_no_weights_to_show(kit, run):
    found = report(run, kit.voted_onl)
    assert found["weights"] is None and found["top"] is None and "many hypotheses" in found["why_no_weights"]
    assert "many hypotheses" in run("inspect", kit.voted_onl).replace("\n", " ")


def test_for_people(kit, run):
    out = run("inspect", kit.text_onl)
    assert "\x1b" not in out and "trained: rows" in out and "weights" in out and "spam" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "random_state=0" in out and "epochs=5" not in out  # what is not as usual


def test_what_is_refused(kit, refused, tmp_path):
    assert "there is no model file" in refused("inspect", tmp_path / "none.onl")
    assert "text.jsonl is not a model file" in refused("inspect", kit.text_jsonl)
    assert "directory" in refused("inspect", tmp_path)
    cut = tmp_path / "cut.onl"
    cut.write_bytes(Path(kit.text_onl).read_bytes()[:500])
    assert "not a whole model file" in refused("inspect", cut)
