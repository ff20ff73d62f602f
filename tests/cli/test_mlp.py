"""Networks on the command line: train, resume, predict, evaluate, inspect and explain."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlearn
from onlearn import cli


def table(path, rows, seed, regress=False):
    """Two numbers and a category; the label says whether the numbers have one sign, or is their product."""
    rng = np.random.default_rng(seed)
    lines = ["a,b,colour,label"]
    for a, b in rng.normal(size=(rows, 2)).round(3).tolist():
        label = a * b if regress else ("yes" if a * b > 0 else "no")
        lines.append(f"{a},{b},{'red' if rng.random() < 0.5 else 'blue'},{label}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("mlp")
    table(made / "a.csv", 400, 0)
    table(made / "b.csv", 200, 1)
    table(made / "numbers.csv", 400, 2, regress=True)
    return made


def told(capsys, *arguments):
    assert cli.run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_commands_know_networks_of_classes(folder, capsys):
    model = folder / "m.onl"
    made = told(capsys, "train", folder / "a.csv", "-o", model, "--target", "label", "--learner", "mlp")
    assert made["passes"] == 20 and made["described"]["layers"] == [4, 100, 1]
    assert told(capsys, "evaluate", model, folder / "b.csv")["accuracy"] > 0.85
    assert told(capsys, "inspect", model)["learner"] == "MLPClassifier"
    shown = told(capsys, "explain", model, '{"a": 1.0, "b": 2.0, "colour": "red"}')
    amounts = sum(one["contribution"] for one in shown["features"])
    assert shown["prediction"] == "yes" and shown["total"] == pytest.approx(amounts + shown["intercept"])
    assert cli.run(["predict", str(model), str(folder / "b.csv")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 201


def test_commands_know_networks_of_numbers(folder, capsys):
    line = "train", folder / "numbers.csv", "-o", folder / "r.onl", "--target", "label", "--task", "regress"
    assert told(capsys, *line, "--learner", "mlp", "--passes", 40)["learner"].startswith("MLPRegressor")
    assert told(capsys, "evaluate", folder / "r.onl", folder / "numbers.csv")["r2"] > 0.7


def test_sizes_are_spelled_as_in_python_and_resuming_goes_on(folder, capsys):
    model, spelled = folder / "s.onl", "MLPClassifier(hidden_layer_sizes=[8])"
    line = "train", folder / "a.csv", "-o", model, "--target", "label", "--learner", spelled, "--passes", 2
    assert told(capsys, *line)["described"]["layers"] == [4, 8, 1]
    before = onlearn.load(model).learner.n_seen_
    told(capsys, "train", folder / "b.csv", "--resume", model, "-o", folder / "t.onl", "--passes", 1)
    assert (before, onlearn.load(folder / "t.onl").learner.n_seen_) == (800, 1000)


@pytest.mark.parametrize(
    ("spelled", "why"),
    [
        ("MLPClassifier(epochs=3)", "--passes says how many"),
        ("MLPClassifier(hidden_layer_sizes=[0])", "each from 1 to"),
        ("MLPClassifier(early_stopping=True)", "early_stopping needs fit"),
        ("MLPClassifier(optimizer='best')", "unknown optimizer"),
    ],
)
def test_what_cannot_be_is_refused(folder, capsys, spelled, why):
    arguments = ["train", str(folder / "a.csv"), "-o", str(folder / "w.onl"), "--target", "label", "--learner", spelled]
    assert cli.run(arguments) != 0
    assert why in capsys.readouterr().err
