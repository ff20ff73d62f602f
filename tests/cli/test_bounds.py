"""``onlearn bounds``: every bound has its command, data are read as in training, pictures are written whole or not."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys

import numpy as np
import pytest

from onlearn import cli, theory
from onlearn.cli import bounds as command
from onlearn.theory import bounds, plots

AND = "a,b,label\n0,0,no\n0,1,no\n1,0,no\n1,1,yes\n"


@pytest.fixture
def rows(tmp_path):
    """Logical AND as a table, and as sparse rows."""
    (tmp_path / "and.csv").write_text(AND)
    (tmp_path / "and.svm").write_text("-1 5:1\n-1 1:1 5:1\n-1 2:1 5:1\n+1 1:1 2:1 5:1\n")
    (tmp_path / "three.csv").write_text("a,label\n" + "1,x\n2,y\n3,z\n" * 10)
    return tmp_path


# ---------------------------------------------------------------- bounds by their numbers


def functions():
    """The public functions of ``onlearn.theory.bounds``."""
    return {
        name: one
        for name, one in vars(bounds).items()
        if inspect.isfunction(one) and one.__module__ == bounds.__name__ and not name.startswith("_")
    }


def test_every_bound_has_its_command():
    assert set(command.BOUNDS) | {"additive", "multiplicative"} == set(functions())


@pytest.mark.parametrize("name", command.BOUNDS)
def test_options_are_the_parameters(name):
    parameters = inspect.signature(getattr(bounds, name)).parameters
    assert {key: one.default for key, one in parameters.items()} == command.BOUNDS[name].defaults


@pytest.mark.parametrize("name", command.BOUNDS)
def test_examples_give_what_python_gives(name, run):
    shell, words = name.replace("_", "-"), command.BOUNDS[name].example.split()
    report = json.loads(run("bounds", shell, *words, "--json"))
    given = dict(report["arguments"])
    if "--scores" in words:
        given["signed_scores"] = [float(one) for one in words[words.index("--scores") + 1].split(",")]
    found = getattr(bounds, name)(**given)
    assert report["value"] == (found.value if hasattr(found, "value") else found)
    assert report["bound"] == name and report["about"]
    said = run("bounds", shell, *words)
    assert report["about"] in said and ("at most" in said or name == "best_eta")


def test_alone_it_lists_what_there_is(run):
    said = run("bounds")
    assert said == run("bounds", "--help")
    for name in (*command.BOUNDS, "additive", "multiplicative", "recommend", "plot"):
        assert re.search(rf"^  {name.replace('_', '-')} +\w[^.]*\.$", said, re.M)  # no line is cut short


def test_numbers_from_a_file(run, tmp_path):
    (tmp_path / "scores").write_text("1\n1\n-1\n")
    report = json.loads(run("bounds", "perceptron-noisy-best", "--R", 2, "--scores", tmp_path / "scores", "--json"))
    assert report["value"] == 3.0 and report["margin"] is None  # infinite


def test_no_bound_is_said(run):
    infinite = ("bounds", "normalized-winnow", "--p", 10, "--margin", 0.1, "--eta", 1)
    assert run(*infinite).startswith("no bound")
    assert json.loads(run(*infinite, "--json"))["value"] is None


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["perceptron", "--R", "1", "--margin", "0"], "margin must be positive"),
        (["perceptron", "--R", "1"], "--margin"),
        (["perceptron", "--R", "one", "--margin", "1"], "--R"),
        (["winnow", "--n", "3", "--k", "4"], "0 <= k <= n"),
        (["halving", "--size", "0"], "size must be at least 1"),
        (["perceptron-noisy-best", "--R", "1", "--scores", "1,x"], "could not convert string to float: 'x'"),
        (["nonsense"], "nonsense"),
        (["perceptron-noisy-best", "--R", "2", "--scores", "1,1,-1", "--passes", "nan"], "passes must be at least 1"),
        (["perceptron-noisy-best", "--R", "1", "--scores", "5,5"], "at most R"),
        (["normalized-winnow-noisy-best", "--p", "10", "--scores", "0.5,-0.5", "--passes", "0"], "passes must be"),
        (["normalized-winnow-noisy-best", "--p", "-4", "--scores=-0.5,-0.5"], "p must be at least 1"),
        (["normalized-winnow-noisy-best", "--p", "4", "--scores", "0.5", "--eta", "-1"], "eta must be positive"),
    ],
)
def test_bad_numbers(arguments, why, refused):
    assert why in refused("bounds", *arguments)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["consistent", "--size", "3486784401"], "at most 3,486,784,400 mistakes\n"),
        (["elimination", "--n", "5000000000"], "at most 5,000,000,001 mistakes\n"),
        (["perceptron", "--R", "1", "--margin", "0.1"], "at most 100 mistakes\n"),
        (["winnow", "--n", "1024", "--k", "3", "--alpha", "1e308"], "no bound"),
    ],
)
def test_large_numbers(arguments, shown, run):
    assert run("bounds", *arguments).startswith(shown)


# ---------------------------------------------------------------- bounds on data


@pytest.mark.parametrize("name", ["additive", "multiplicative"])
def test_a_target_on_data(name, rows, run):
    X, y = [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]], [-1, -1, -1, 1]
    expected = getattr(bounds, name)([1.0, 1.0, -1.5], X, y)
    for u in ("1,1", "b=1,a=1", "1 1"):
        report = json.loads(run("bounds", name, rows / "and.csv", "--u", u, "--intercept", -1.5, "--json"))
        assert report["value"] == pytest.approx(expected)
    sparse = run("bounds", name, rows / "and.svm", "--u", "1=1,2=1,5=-1.5", "--json")
    n = 12  # svmlight has columns 0 to 5, and a weight is negative
    target = [1.0, 1.0, -1.5]
    value = bounds.additive(target, X, y) if name == "additive" else bounds.multiplicative(target, X, y, n=n)
    assert json.loads(sparse)["value"] == pytest.approx(value)


def test_labels_of_the_target_itself(rows, run, refused):
    line = ("bounds", "additive", rows / "and.csv", "--u", "1,1", "--intercept", "-0.5")
    assert "does not separate" in refused(*line)  # that is OR
    assert run(*line, "--own-labels").startswith("at most 27 mistakes")
    (rows / "u").write_text("1\n1\n")
    assert run(*line[:4], rows / "u", *line[5:], "--own-labels").startswith("at most 27 mistakes")


@pytest.mark.parametrize(
    ("u", "why"),
    [("1", "each of the 2 features, but has 1"), ("c=1", "no feature 'c'"), ("a=x,b=1", "'x'"), ("x,y", "'x'")],
)
def test_bad_targets(u, why, rows, refused):
    assert why in refused("bounds", "additive", rows / "and.csv", "--u", u)


def test_bad_data(rows, refused):
    assert "nothing.csv" in refused("bounds", "additive", rows / "nothing.csv", "--u", "1")
    assert "needs two labels, but the rows have 3: 'x', 'y', 'z'" in refused("bounds", "recommend", rows / "three.csv")
    assert "'z'" in refused("bounds", "recommend", rows / "and.csv", "--target", "z")


# ---------------------------------------------------------------- advice


class Advice:
    """What ``recommend`` returns, as far as the command knows."""

    def __init__(self, X, y):
        self.X, self.y = X, y

    def __str__(self):
        return "multiplicative: the target is sparse"

    def to_dict(self):
        return {"advice": "multiplicative", "rows": len(self.y), "positive": int((self.y > 0).sum())}


def test_advice_is_printed(rows, run, monkeypatch):
    monkeypatch.setattr(theory, "recommend", Advice, raising=False)
    assert run("bounds", "recommend", rows / "and.csv") == "multiplicative: the target is sparse\n"
    report = json.loads(run("bounds", "recommend", rows / "and.csv", "--target", "label", "--json"))
    assert report == {"advice": "multiplicative", "rows": 4, "positive": 1}


def test_advice_counts_bad_rows(rows, run, monkeypatch):
    monkeypatch.setattr(theory, "recommend", Advice, raising=False)
    (rows / "bad.svm").write_text("+1 1:1\n-1 2:1\nnonsense 1:x\n" * 3)
    line = ("bounds", "recommend", rows / "bad.svm", "--max-bad", "50%")
    run(*line, err="3 of 9 rows")
    run(*line, "--quiet")


# ---------------------------------------------------------------- pictures


@pytest.fixture
def drawing():
    pytest.importorskip("matplotlib")


def test_the_help_lists_the_pictures(run):
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", run("bounds", "plot", "--help"), re.M)
    assert [name for name in listed if not name.startswith("-")] == list(plots.PICTURES)


@pytest.mark.parametrize(("format", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")])
def test_pictures_in_every_format(format, begin, tmp_path, run, drawing):
    file = tmp_path / f"p.{format}"
    assert run("bounds", "plot", "potential", "-o", file) == f"{file}\n"
    first = file.read_bytes()
    assert first.startswith(begin)
    report = json.loads(run("bounds", "plot", "potential", "-o", file, "--json"))
    assert report["picture"] == "potential" and "Novikoff" in report["theorem"]
    assert file.read_bytes() == first
    run("bounds", "plot", "potential", "-o", file, "--seed", 1)
    assert file.read_bytes() != first
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("name", "file", "why"),
    [
        ("potentail", "p.svg", "did you mean 'potential'?"),
        ("nothing", "p.svg", "there are irrelevant-attributes, "),
        ("potential", "p.pdf", "extensions .svg, .png, .html"),
        ("potential", "p", "extensions .svg, .png, .html"),
        ("potential", "missing/p.svg", "there is no directory"),
        ("potential", "folder.svg", "is a directory"),
    ],
)
def test_pictures_that_cannot_be(name, file, why, tmp_path, refused, drawing):
    (tmp_path / "folder.svg").mkdir()
    assert why in refused("bounds", "plot", name, "-o", tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written(tmp_path, refused, drawing):
    tmp_path.chmod(0o500)
    assert "cannot be written" in refused("bounds", "plot", "potential", "-o", tmp_path / "p.svg")


def test_without_matplotlib(tmp_path, monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    assert "pip install 'onlearn[plot]'" in refused("bounds", "plot", "potential", "-o", tmp_path / "p.svg")
    assert list(tmp_path.iterdir()) == []


def test_numbers_need_no_scipy(tmp_path):
    """Only ``recommend``, the targets on sparse rows and pictures run more than a formula."""
    import subprocess

    code = "import sys; from onlearn import cli; cli.run(sys.argv[1:]); print(sorted(sys.modules))"
    line = [sys.executable, "-c", code, "bounds", "winnow", "--n", "1024", "--k", "3"]
    loaded = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert not [name for name in ("numba", "sklearn", "scipy", "pyarrow", "matplotlib") if f"'{name}'" in loaded]


def test_the_command_is_known():
    assert "bounds" in cli.COMMANDS


def test_zeros_of_a_table_stay_zeros(tmp_path, run):
    rng = np.random.default_rng(0)
    X = (rng.random((400, 30)) < 0.2).astype(int)
    rows = [",".join(map(str, [*row, "yes" if row[:3].any() else "no"])) for row in X]
    header = ",".join([*(f"x{k}" for k in range(30)), "label"])
    (tmp_path / "or.csv").write_text("\n".join([header, *rows]) + "\n")
    told = json.loads(run("bounds", "recommend", tmp_path / "or.csv", "--json"))
    assert told["advice"] == "multiplicative" and told["active"] < 10 and told["relevant"] == 3
