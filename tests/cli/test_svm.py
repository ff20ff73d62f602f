"""Support vector machines on the command line: train, and all that is done with the model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onlearn
from onlearn import SVC, cli


def disc(path: Path, rows: int = 240, seed: int = 0, noise: float = 0.0) -> str:
    """Points in a circle, above it or below it."""
    rng = np.random.default_rng(seed)
    lines = ["x,y,colour,label"]
    for x, y in rng.uniform(-1, 1, (rows, 2)):
        label = "in" if x * x + y * y < 0.5 else "above" if y > 0 else "below"
        label = str(rng.choice(["in", "above", "below"])) if rng.random() < noise else label
        lines.append(f"{x:.3f},{y:.3f},{rng.choice(['red', 'blue'])},{label}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def wave(path: Path) -> str:
    rng = np.random.default_rng(0)
    lines = [
        "x,y,t",
        *(f"{x:.4f},{y:.4f},{1000 * np.sin(3 * x) + 100 * y:.3f}" for x, y in rng.uniform(-1, 1, (200, 2))),
    ]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def words(path: Path) -> str:
    rng = np.random.default_rng(0)
    endings = {"latin": ["us", "um", "it", "or"], "greek": ["os", "on", "ph", "ai"]}
    with open(path, "w") as file:
        for n in range(100):
            kind = ["latin", "greek"][n % 2]
            file.write(json.dumps({"label": kind, "word": "".join(rng.choice(endings[kind], 5))}) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and a model of each kind."""
    made = tmp_path_factory.mktemp("svm")
    disc(made / "a.csv")
    disc(made / "b.csv", seed=1)
    run("train", disc(made / "a.csv"), "-o", made / "m.onl", "--learner", "SVC(C=10)", "--quiet")
    run("train", wave(made / "t.csv"), "-o", made / "t.onl", "--target", "t", "--learner", "SVR(C=10)", "--quiet")
    run("train", words(made / "w.jsonl"), "-o", made / "w.onl", "--learner", "svm", "--text", "word", "--quiet",
        "--kernel", "normalize(substrings(1, 3))")  # fmt: skip
    return made


def run(*line: Any) -> None:
    assert cli.run([str(part) for part in line]) == 0


def told(capsys: pytest.CaptureFixture[str], *line: Any) -> Any:
    capsys.readouterr()
    run(*line, "--json")
    return json.loads(capsys.readouterr().out)


def test_train_tells_what_the_solver_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = told(
        capsys, "train", folder / "a.csv", "-o", folder / "n.onl", "--learner", "SVC", "--test", folder / "b.csv"
    )
    found = report["described"]
    assert found["kernel"] == "gaussian" and found["problems"] == 3 and found["support_vectors"] > 10
    assert found["KKT_violation"] <= 1e-3 and found["duality_gap"] < 0.1 and "it converged" in found["solver"]
    assert report["test"]["accuracy"] > 0.9
    run("train", folder / "a.csv", "-o", folder / "n.onl", "--learner", "SVC(C=2)")
    shown = capsys.readouterr()
    assert "duality gap" in shown.out + shown.err


def test_the_model_is_that_of_the_estimator(folder: Path) -> None:
    model = onlearn.load(folder / "m.onl")
    lines = (folder / "a.csv").read_text().splitlines()[1:]
    y = [line.split(",")[3] for line in lines]
    X = model.matrix([dict(zip(("x", "y", "colour"), line.split(","), strict=False)) for line in lines])
    direct = SVC(C=10, random_state=0).fit(X.toarray(), y)
    np.testing.assert_allclose(model.learner.decision_function(X), direct.decision_function(X.toarray()), atol=1e-2)
    assert model.score([dict(zip(("x", "y", "colour"), line.split(","), strict=False)) for line in lines], y) > 0.95


def test_predict_evaluate_inspect_explain(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("predict", folder / "m.onl", folder / "b.csv")
    assert capsys.readouterr().out.count("\n") == 241
    assert told(capsys, "evaluate", folder / "m.onl", folder / "b.csv")["accuracy"] > 0.9
    seen = told(capsys, "inspect", folder / "m.onl", "--top", "2")
    assert seen["described"]["support_vectors"] > 10 and set(seen["top"]) == {"in", "above", "below"}
    assert all(len(listed) == 2 and "example" in listed[0] for listed in seen["top"].values())
    found = told(capsys, "explain", folder / "m.onl", "--at", f"{folder / 'b.csv'}:2", "--top", "3")
    assert (
        found["prediction"] in ("in", "above", "below") and found["n_examples"] == seen["described"]["support_vectors"]
    )
    everything = told(capsys, "explain", folder / "m.onl", "--at", f"{folder / 'b.csv'}:2", "--top", "1000")
    total = everything["intercept"] + sum(one["contribution"] for one in everything["examples"])
    assert total == pytest.approx(found["total"])


def test_regression(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(capsys, "evaluate", folder / "t.onl", folder / "t.csv")
    assert found["r2"] > 0.9
    parts = told(capsys, "explain", folder / "t.onl", "--at", f"{folder / 't.csv'}:2", "--top", "1000")
    run("predict", folder / "t.onl", folder / "t.csv")
    first = float(capsys.readouterr().out.splitlines()[1].split(",")[-1])
    assert parts["total"] == pytest.approx(first, rel=1e-3)
    assert "example" in told(capsys, "inspect", folder / "t.onl")["top"]["target"][0]
    report = told(capsys, "train", folder / "t.csv", "-o", folder / "n.onl", "--target", "t", "--task", "regress",
                  "--learner", "svm")  # fmt: skip
    assert report["learner"].startswith("SVR")


def test_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "evaluate", folder / "w.onl", folder / "w.jsonl")["accuracy"] > 0.95
    found = told(capsys, "explain", folder / "w.onl", "--at", f"{folder / 'w.jsonl'}:1", "--top", "3")
    assert len(found["examples"]) == 3


def test_more_rows_are_added_to_the_support_vectors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("train", folder / "b.csv", "-o", folder / "more.onl", "--resume", folder / "m.onl", "--quiet")
    model = onlearn.load(folder / "more.onl")
    assert model.learner.n_seen_ == 480
    both = told(capsys, "evaluate", folder / "more.onl", folder / "a.csv", folder / "b.csv")
    assert both["accuracy"] > 0.95
    new = Path(disc(folder / "c.csv", seed=2))
    new.write_text(new.read_text().replace("red", "green"))  # a category that is not known
    run("train", new, "-o", folder / "wider.onl", "--resume", folder / "m.onl", "--quiet")
    assert onlearn.load(folder / "wider.onl").learner.n_features_in_ > model.learner.n_features_in_
    new.write_text(new.read_text().replace("above", "beyond"))  # and a label
    assert cli.run(["train", str(new), "-o", str(folder / "x.onl"), "--resume", str(folder / "m.onl")]) != 0
    assert "beyond" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--learner", "SVC(C=0)"], "C must be a number above 0"),
        (["--learner", "SVC", "--passes", "3"], "--passes has no use with SVC"),
        (["--learner", "SVC", "--kernel", "gauss"], "gaussian"),
        (["--learner", "SVC(D=1)"], "no parameter 'D'"),
        (["--learner", "SVC", "--task", "regress"], "SVC predicts classes"),
    ],
)
def test_what_cannot_be_is_refused(
    folder: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["train", str(folder / "a.csv"), "-o", str(folder / "x.onl"), *options]) != 0
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (folder / "x.onl").exists()


@pytest.mark.slow
def test_ctrl_c_writes_a_model_that_goes_on(tmp_path: Path) -> None:
    source = disc(tmp_path / "hard.csv", 6000, noise=0.5)
    command = [sys.executable, "-m", "onlearn", "train", source, "-o", str(tmp_path / "m.onl"), "--learner",
               "SVC(C=1e5, tol=1e-9)"]  # fmt: skip
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(8)
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=120)
    model = onlearn.load(tmp_path / "m.onl")
    assert model.learner.report_.stopped == "interrupt", out + err
    assert len(model.predict([{"x": "0.1", "y": "0.1", "colour": "red"}])) == 1
