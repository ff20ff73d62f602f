"""k nearest neighbours by the commands: train, predict, evaluate, inspect, explain, resume."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import onlearn
from onlearn.cli import run


def fruit(path, rows, seed):
    """Numbers, categories and Booleans; red ones are cherries whatever their size."""
    rng = np.random.default_rng(seed)
    lines = ["size,colour,ripe,label"]
    for _ in range(rows):
        kind, colour = rng.integers(0, 2), rng.choice(["red", "green", "blue"])
        label = "cherry" if colour == "red" else ("plum", "melon")[kind]
        lines.append(f"{100 + 1000 * kind + 40 * rng.normal():.2f},{colour},{bool(rng.integers(0, 2))},{label}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def report(capsys, *arguments):
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def told(capsys, *arguments):
    assert run(list(map(str, arguments))) == 0
    return capsys.readouterr().out


@pytest.fixture
def trained(tmp_path, capsys):
    out = tmp_path / "m.onl"
    source = fruit(tmp_path / "train.csv", 200, 0)
    report(capsys, "train", source, "--target", "label", "--learner", "knn", "-o", out)
    return out


def test_mixed_tables_are_compared_column_by_column(trained, tmp_path, capsys):
    model = onlearn.load(trained)
    rows = [line.split(",") for line in (tmp_path / "train.csv").read_text().splitlines()[1:]]
    size = np.array([float(row[0]) for row in rows])
    words = np.array([row[1:3] for row in rows])
    new = {"size": [150.0], "colour": ["blue"], "ripe": ["True"]}
    squares = ((size - 150) / size.std()) ** 2 + (words != ["blue", "True"]).sum(axis=1)
    distances, numbers = model.learner.kneighbors(model.features.transform(new), 7)
    np.testing.assert_allclose(distances[0], np.sort(np.sqrt(squares))[:7], rtol=1e-5)
    np.testing.assert_allclose(np.sqrt(squares)[numbers[0]], distances[0], rtol=1e-5)


def test_predict_evaluate_and_resume(trained, tmp_path, capsys):
    test, more = fruit(tmp_path / "test.csv", 100, 1), fruit(tmp_path / "more.csv", 50, 2)
    assert report(capsys, "evaluate", trained, test)["accuracy"] > 0.97
    lines = told(capsys, "predict", trained, test).splitlines()
    assert len(lines) == 101 and lines[1].split(",")[1] in ("cherry", "plum", "melon")
    again = tmp_path / "again.onl"
    report(capsys, "train", more, "--resume", trained, "-o", again)
    whole = tmp_path / "whole.onl"
    both = tmp_path / "both.csv"
    both.write_text(
        (tmp_path / "train.csv").read_text() + "\n".join((tmp_path / "more.csv").read_text().split("\n")[1:])
    )
    report(capsys, "train", both, "--target", "label", "--learner", "KNNClassifier", "-o", whole)
    one, other = onlearn.load(again), onlearn.load(whole)
    assert one.learner.n_seen_ == other.learner.n_seen_ == 250
    table = {"size": [120.0, 900.0], "colour": ["green", "red"], "ripe": ["True", "False"]}
    for found, wanted in zip(
        one.learner.kneighbors(one.features.transform(table), 9),
        other.learner.kneighbors(other.features.transform(table), 9),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)


def test_resume_takes_in_new_categories_and_labels(trained, tmp_path, capsys):
    more = tmp_path / "more.csv"
    more.write_text("size,colour,ripe,label\n" + "500,yellow,True,lemon\n" * 5)
    out = tmp_path / "more.onl"
    report(capsys, "train", more, "--resume", trained, "-o", out)
    assert onlearn.load(out).predict({"size": [500.0], "colour": ["yellow"], "ripe": ["True"]}) == ["lemon"]


def test_k_auto_is_decided_by_the_run(tmp_path, capsys):
    source, out = fruit(tmp_path / "train.csv", 200, 0), tmp_path / "m.onl"
    made = report(capsys, "train", source, "--target", "label", "--learner", 'knn(k="auto", k_max=9)', "-o", out)
    curve = made["described"]["error_by_k"]
    assert [k for k, _ in curve] == list(range(1, 10))
    best = min(curve, key=lambda pair: pair[1])
    assert made["described"]["k"] == best[0]
    seen = report(capsys, "inspect", out)
    assert seen["described"] == made["described"] and seen["described"]["rows_kept"] == 200
    assert "error by k" in told(capsys, "inspect", out)


def test_explain_shows_the_neighbours_and_their_votes(trained, capsys):
    row = '{"size": 110, "colour": "blue", "ripe": "True"}'
    made = report(capsys, "explain", trained, row)
    assert made["prediction"] == "plum" and len(made["examples"]) == 5
    assert sum(part["contribution"] for part in made["examples"]) == pytest.approx(made["total"])
    text = told(capsys, "explain", trained, row)
    assert "5 neighbours, the nearest at the distance" in text and "distance" in text and "colour=blue" in text


def test_regression(tmp_path, capsys):
    rng, source, out = np.random.default_rng(0), tmp_path / "r.csv", tmp_path / "r.onl"
    x = 6 * rng.random(300)
    source.write_text("x,y\n" + "".join(f"{a:.4f},{np.sin(a):.5f}\n" for a in x))
    learner = 'knn(k="auto", weights="distance")'
    report(capsys, "train", source, "--target", "y", "--task", "regress", "--learner", learner, "-o", out)
    assert report(capsys, "evaluate", out, source)["r2"] > 0.99
    made = report(capsys, "explain", out, '{"x": 1.5}')
    assert made["prediction"] == pytest.approx(np.sin(1.5), abs=0.01) and made["total"] == pytest.approx(
        made["prediction"]
    )
    weights, amounts = zip(*((part["weight"], part["contribution"]) for part in made["examples"]))
    assert sum(weights) == pytest.approx(1) and made["intercept"] == 0
    np.testing.assert_allclose(np.divide(amounts, weights), np.sin(1.5), atol=0.1)  # the targets of the neighbours


def test_strings(tmp_path, capsys):
    rng, source, out = np.random.default_rng(0), tmp_path / "s.csv", tmp_path / "s.onl"
    words = [("".join(rng.choice(list(letters), 8)), label) for letters, label in [("abc", "x"), ("cde", "y")] * 20]
    source.write_text("word,label\n" + "".join(f"{word},{label}\n" for word, label in words))
    kernel = "normalize(substrings(1, 3))"
    report(capsys, "train", source, "--target", "label", "--learner", "knn", "--kernel", kernel, "-o", out)
    assert report(capsys, "evaluate", out, source)["accuracy"] > 0.95
    assert report(capsys, "explain", out, '{"word": "abcabc"}')["prediction"] == "x"
    report(capsys, "train", source, "--resume", out, "-o", out)
    assert onlearn.load(out).learner.n_seen_ == 80


def test_sparse_rows(tmp_path, capsys):
    rng, source, out = np.random.default_rng(0), tmp_path / "s.svm", tmp_path / "s.onl"
    rows = [(rng.choice(500, 6, replace=False), n % 2) for n in range(200)]
    source.write_text("".join(
        f"{'ab'[y]} " + " ".join(f"{k}:1" for k in sorted({*c.tolist(), 500 + y})) + "\n" for c, y in rows
    ))  # fmt: skip
    report(capsys, "train", source, "--learner", 'knn(metric="cosine", k=15)', "-o", out)
    assert report(capsys, "evaluate", out, source)["accuracy"] > 0.9


@pytest.mark.parametrize(
    ("learner", "more", "message"),
    [
        ("knn(k=0)", [], "k must be"),
        ("knn(metric='euklid')", [], "metric must be"),
        ("knn(neighbours=3)", [], "no parameter 'neighbours'"),
        ("knn", ["--passes", "3"], "learns from all rows at once"),
        ("KNNRegressor", ["--task", "classify"], "predicts numbers"),
    ],
)
def test_what_is_refused(tmp_path, capsys, learner, more, message):
    source = fruit(tmp_path / "train.csv", 30, 0)
    assert run(["train", source, "--target", "label", "--learner", learner, "-o", str(tmp_path / "m.onl"), *more]) == 2
    assert message in capsys.readouterr().err


def test_commands_import_no_scikit_learn(trained, tmp_path, capsys):
    source = fruit(tmp_path / "test.csv", 20, 1)
    told(capsys, "predict", trained, source)  # compiles what is not yet: Numba imports SciPy
    program = (
        "import sys\nfrom onlearn.cli import run\n"
        f"out = {str(tmp_path / 'n.onl')!r}\n"
        f"assert run(['train', {source!r}, '--target', 'label', '--learner', 'knn', '-o', out]) == 0\n"
        f"assert run(['predict', {str(trained)!r}, {source!r}]) == 0\n"
        "assert not {'sklearn', 'scipy', 'pandas', 'faiss'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_weights_of_columns_by_name(tmp_path, capsys):
    rng, source, out = np.random.default_rng(0), tmp_path / "w.csv", tmp_path / "w.onl"
    noise, colour, told = rng.normal(size=200), rng.choice(["red", "blue"], 200), rng.normal(size=200)
    y = np.where(colour == "red", told > 0, told < 0)
    rows = zip(noise, colour, told, y)
    source.write_text("noise,colour,told,y\n" + "".join(f"{a:.3f},{b},{c:.3f},{d}\n" for a, b, c, d in rows))
    learner = "knn(k=1, column_weights={'noise': 0, 'colour': 100})"
    line = ("--target", "y", "--learner", learner, "-o", out, "--holdout", "30%")
    assert report(capsys, "train", source, *line)["holdout"]["accuracy"] > 0.95
    before = onlearn.load(out)
    at = {"noise": np.array([0.0, 9.0]), "colour": np.array(["red", "red"]), "told": np.array([1.0, 1.0])}
    one, other = before.learner.kneighbors(before.numbered(at), k=3)[0]
    np.testing.assert_array_equal(one, other)  # of a column without weight, values do not matter
    report(capsys, "train", source, "--resume", out, "-o", out)
    assert onlearn.load(out).learner.get_params()["column_weights"] == {"noise": 0, "colour": 100}


def test_weights_of_columns_that_there_are_not(tmp_path, capsys):
    source = tmp_path / "w.csv"
    source.write_text("size,y\n" + "1,a\n2,b\n" * 20)
    line = ["train", source, "--target", "y", "--learner", "knn(column_weights={'sise': 2})", "-o", tmp_path / "m.onl"]
    assert run(list(map(str, line))) == 2
    assert "column_weights names column 'sise', which there is not; did you mean 'size'" in capsys.readouterr().err
