"""Regression with a kernel on the command line: train, and all that is done with the model."""

from __future__ import annotations

import json

import numpy as np
import pytest

import onlearn


def amounts(path, rows=250, seed=0):
    rng = np.random.default_rng(seed)
    lines = ["a,b,colour,price"]
    for a, b in rng.uniform(0, 6, (rows, 2)):
        colour = rng.choice(["red", "blue"])
        lines.append(f"{a:.3f},{b:.3f},{colour},{500 + 30 * np.sin(a) + 5 * b + 10 * (colour == 'red'):.3f}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("regression")
    amounts(made / "a.csv")
    amounts(made / "b.csv", 100, seed=1)
    line = ["train", str(made / "a.csv"), "-o", str(made / "m.onl"), "--task", "regress", "--target", "price"]
    assert onlearn.cli.run([*line, "--kernel", "gaussian(1)", "--quiet"]) == 0
    return made


def test_train_predict_evaluate(folder, run):
    report = json.loads(run("evaluate", folder / "m.onl", folder / "b.csv", "--json"))
    assert report["n"] == 100 and report["r2"] > 0.97
    lines = run("predict", folder / "m.onl", folder / "b.csv").splitlines()
    assert len(lines) == 101 and 400 < float(lines[1].split(",")[1]) < 600
    model = onlearn.load(folder / "m.onl")
    assert type(model.learner).__name__ == "DualRegressor" and model.learner.name == "KernelRegressor"
    assert model.learner.history_["passes"][0]["seen"] == 250 and len(model.learner.history_["passes"]) == 10


def test_inspect_and_explain(folder, run):
    report = json.loads(run("inspect", folder / "m.onl", "--json"))
    assert (report["task"], report["support_examples"], report["kernel"]) == ("regress", 250, "gaussian(sigma=1.0)")
    assert len(report["top"]["target"]) > 3 and "example" in report["top"]["target"][0]
    shown = run("inspect", folder / "m.onl", "--top", "2")
    assert "example" in shown and "KernelRegressor" in shown
    row = {"a": 1.5, "b": 2.0, "colour": "red"}
    told = json.loads(run("explain", folder / "m.onl", json.dumps(row), "--json"))
    assert told["prediction"] == pytest.approx(told["total"]) == pytest.approx(550, abs=12)
    parts = sum(part["contribution"] for part in told["examples"])
    assert told["n_examples"] == 250 and len(told["examples"]) < 250 and np.isfinite(parts)


def test_a_model_is_gone_on_with(folder, tmp_path, run):
    out = tmp_path / "n.onl"
    report = json.loads(run("train", folder / "b.csv", "-o", out, "--resume", folder / "m.onl", "--json"))
    assert report["support_examples"] == 350 and report["progressive"]["rmse"] < 6
    assert onlearn.load(out).learner.n_seen_ == 2600


def test_a_budget_and_a_tube(folder, tmp_path, run):
    options = ["--task", "regress", "--target", "price", "--kernel", "gaussian(1)", "--budget", "40"]
    report = json.loads(run("train", folder / "a.csv", "-o", tmp_path / "m.onl", *options, "--rule",
                            "pa_epsilon(0.05)", "--test", folder / "b.csv", "--json"))  # fmt: skip
    assert report["support_examples"] == 40 and report["test"]["r2"] > 0.9


def test_by_the_name_of_the_learner(folder, tmp_path, run, refused):
    learner = "KernelRegressor(kernel='gaussian(1)', damping=0)"
    line = ["train", folder / "a.csv", "-o", tmp_path / "m.onl", "--target", "price"]
    report = json.loads(run(*line, "--learner", learner, "--test", folder / "b.csv", "--json"))
    assert report["passes"] == 10 and report["test"]["r2"] > 0.97
    assert "damping must be" in refused(*line, "--learner", "KernelRegressor(damping=-1)")
    assert "predicts numbers" in refused(*line, "--learner", learner, "--task", "classify")


def test_texts(tmp_path, run):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ab"), n)) for n in rng.integers(3, 9, 80)]
    lines = [json.dumps({"text": text, "y": text.count("ab")}) for text in texts]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    options = ["--task", "regress", "--target", "y", "--kernel", "substrings(1, 2)", "--quiet"]
    run("train", tmp_path / "a.jsonl", "-o", tmp_path / "m.onl", *options)
    assert json.loads(run("evaluate", tmp_path / "m.onl", tmp_path / "a.jsonl", "--json"))["r2"] > 0.9


def test_a_regressor_trained_in_python(tmp_path, run):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] * X[:, 1]
    onlearn.KernelRegressor("polynomial(2)", random_state=0).fit(X, y).save(tmp_path / "m.onl")
    lines = [f"{t:.6f} " + " ".join(f"{k}:{v:.6f}" for k, v in enumerate(x)) for x, t in zip(X, y, strict=True)]
    (tmp_path / "a.svm").write_text("\n".join(lines) + "\n")
    assert json.loads(run("evaluate", tmp_path / "m.onl", tmp_path / "a.svm", "--json"))["r2"] > 0.5
