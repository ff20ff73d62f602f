"""Texts and rows that a kernel cannot take: bad rows, not the end of a command."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest

import onlearn
from onlearn import cli, kernels
from onlearn.data import Bad, BadRows
from onlearn.models.unfit_rows import unfit

TREES = ["__label__a (S (NP x))", "__label__b (S (VP y))"] * 60
BROKEN = {7: "__label__a (S (NP x)", 50: "__label__b S)"}


def with_broken(path):
    lines = [BROKEN.get(n, line) for n, line in enumerate(TREES, 1)]
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    (folder / "good.txt").write_text("\n".join(TREES) + "\n")
    with_broken(folder / "broken.txt")
    line = ["train", folder / "good.txt", "-o", folder / "m.onl", "--kernel", "trees(decay=0.4)", "--quiet"]
    assert cli.run(list(map(str, line))) == 0
    return folder


LIMIT, TOLD = ["--max-bad", "5%"], "could not be read"


def test_training_leaves_broken_trees_out(trees, tmp_path, run):
    out, bad = tmp_path / "m.onl", tmp_path / "bad.txt"
    line = ["train", trees / "broken.txt", "-o", out, "--kernel", "trees(decay=0.4)", "--passes", "3", "--json"]
    report = json.loads(run(*line, "--bad-rows", bad, *LIMIT, err=TOLD))
    assert (report["rows"], report["bad_rows"]) == (118, 2)
    assert bad.read_text() == "(S (NP x)\nS)\n"
    left = tmp_path / "left.txt"
    left.write_text("\n".join(line for n, line in enumerate(TREES, 1) if n not in BROKEN) + "\n")
    run("train", left, "-o", tmp_path / "left.onl", *line[4:])
    one, other = (onlearn.load(path).learner for path in (out, tmp_path / "left.onl"))
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    assert one.support_examples_ == other.support_examples_


def test_predictions_leave_broken_trees_out(trees, tmp_path, run):
    bad = tmp_path / "bad.txt"
    out = run("predict", trees / "m.onl", trees / "broken.txt", "--bad-rows", bad, *LIMIT, err=TOLD)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [int(row["id"]) for row in rows] == [n for n in range(1, 121) if n not in BROKEN]
    assert [row["prediction"] for row in rows[:2]] == ["a", "b"]
    assert bad.read_text() == "(S (NP x)\nS)\n"


def test_figures_leave_broken_trees_out(trees, tmp_path, run):
    report = json.loads(run("evaluate", trees / "m.onl", trees / "broken.txt", "--json", *LIMIT, err=TOLD))
    assert (report["n"], report["bad_rows"], report["accuracy"]) == (118, 2, 1.0)
    line = ["--kernel", "trees(decay=0.4)", "-o", tmp_path / "m.onl", "--json"]
    (tmp_path / "one.txt").write_text("\n".join([*TREES, BROKEN[7]]) + "\n")
    report = json.loads(run("train", trees / "good.txt", "--test", tmp_path / "one.txt", *line, err=TOLD))
    assert (report["test"]["n"], report["test"]["bad_rows"]) == (120, 1)
    report = json.loads(run("train", trees / "broken.txt", "--holdout", "0.3", *line, *LIMIT, err=TOLD))
    assert report["holdout"]["accuracy"] == 1.0


@pytest.mark.parametrize("learner", ["svm", "knn"])
def test_models_that_learn_from_all_rows_leave_broken_trees_out(trees, tmp_path, run, learner):
    out = tmp_path / "m.onl"
    run("train", trees / "good.txt", "-o", out, "--learner", learner, "--kernel", "trees(decay=0.4)", "--quiet")
    rows = list(csv.DictReader(io.StringIO(run("predict", out, trees / "broken.txt", *LIMIT, err=TOLD))))
    assert [int(row["id"]) for row in rows] == [n for n in range(1, 121) if n not in BROKEN]
    report = json.loads(run("evaluate", out, trees / "broken.txt", "--json", *LIMIT, err=TOLD))
    assert (report["n"], report["bad_rows"], report["accuracy"]) == (118, 2, 1.0)


@pytest.mark.parametrize("command", ["train", "predict", "evaluate"])
def test_strict_and_too_many(trees, tmp_path, refused, command):
    line = [command, trees / "m.onl", trees / "broken.txt"]
    if command == "train":
        line = [command, trees / "broken.txt", "-o", tmp_path / "m.onl", "--kernel", "trees(decay=0.4)"]
    told = r"broken\.txt, line 7: not a tree for trees\(decay=0\.4\): position 0: this bracket is never closed"
    assert re.search(told, refused(*line, "--strict"))
    whole = ["-o", tmp_path / "p.csv"] if command == "predict" else []
    said = refused(*line, *whole)  # by default 1 % may be bad
    assert "2 of 120 rows cannot be read, more than 1 % are too many" in said
    assert re.search(told, said)


@pytest.mark.parametrize("kernel", ["normalize(substrings(2, 3))", "normalize(polynomial(2, coef0=0))"])
def test_an_empty_text_cannot_be_normalised(tmp_path, run, kernel):
    rows = [{"label": "ab"[n % 2], "text": ["sun and sea", "rain and wind"][n % 2]} for n in range(150)]
    rows[41]["text"] = ""
    source, out = tmp_path / "t.jsonl", tmp_path / "m.onl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = json.loads(run("train", source, "-o", out, "--text", "text", "--kernel", kernel, "--json", err=TOLD))
    assert (report["rows"], report["bad_rows"]) == (149, 1)
    assert len(run("predict", out, source, err=TOLD).splitlines()) == 150
    report = json.loads(run("evaluate", out, source, "--json", err=TOLD))
    assert (report["n"], report["bad_rows"], report["accuracy"]) == (149, 1, 1.0)


def test_all_rows_unfit(tmp_path, refused):
    source = tmp_path / "t.txt"
    source.write_text("__label__a (S\n__label__b (T\n")
    line = ["train", source, "-o", tmp_path / "m.onl", "--kernel", "trees", "--max-bad", "100%"]
    assert re.search(r"none of the rows could be used; the first: .*t\.txt, line 1: not a tree", refused(*line))


def test_every_unfit_example_is_found():
    some = {3, 4, 5, 60, 99}
    texts = ["(S" if n in some else "(S x)" for n in range(100)]
    assert unfit(kernels.get("trees"), texts).keys() == some
    assert unfit(kernels.get("trees"), []) == {}
    X = np.where(np.arange(50)[:, None] % 7 == 0, 0.0, 1.0) * np.ones((50, 3))
    assert list(unfit(kernels.get("normalize(linear)"), X)) == list(range(0, 50, 7))


def test_rows_are_rejected_after_they_were_counted(tmp_path):
    bad = BadRows(tmp_path / "bad.txt", limit=0.5)
    bad.seen(3)
    bad.add("a", Bad(4, 0, "cannot be parsed", b"one"))
    bad.close()
    bad.reject("a", Bad(2, 0, "cannot be used", b"two"))
    bad.close()
    assert (bad.rows, bad.count) == (4, 2)
    assert (tmp_path / "bad.txt").read_text() == "one\ntwo\n"
