"""What is learned when not all of it is said: choices laid over the default."""

from __future__ import annotations

import numpy as np
import pytest

from onlearn.features import FeatureMap, Number, Text
from onlearn.models.plan import Plan, default_learner, default_passes
from onlearn.models.run import Run

TEXT, TABLE = FeatureMap([Text("words")]), FeatureMap([Number("size")])


def made(features, task="classify", **choices):
    learner = default_learner(task, features, choices)
    learner.check()
    return {name: learner.get_params(deep=False)[name] for name in ("rule", "geometry", "stabilizer")}


@pytest.mark.parametrize("features", [TEXT, TABLE])
def test_what_is_the_default_already_changes_nothing(features):
    usual = made(features)
    for name in usual:
        assert made(features, **{name: usual[name]}) == usual
    assert made(features, class_weight="balanced") == made(features, multiclass="one-vs-all") == usual


def test_a_choice_is_laid_over_the_default():
    assert made(TABLE, geometry="adagrad(0.5)")["rule"] == "logistic"
    assert made(TABLE, multiclass="softmax") == made(TABLE)
    assert made(TEXT, multiclass="softmax")["rule"] == "logistic"  # only that has it
    assert made(TEXT, stabilizer="averaged") == {**made(TEXT), "stabilizer": "averaged"}
    assert default_learner("classify", TEXT, {"class_weight": "balanced"}).settings.class_weight == "balanced"
    assert made(TABLE, task="regress", geometry="additive(0.01)")["rule"] == "lms"
    assert made(TABLE, task="regress", geometry="ftrl")["rule"] == "lms"
    assert made(TABLE, task="regress", rule="epsilon(0.2)")["geometry"] == "adagrad(0.5)"


@pytest.mark.parametrize("features", [TEXT, TABLE])
def test_a_rule_or_a_geometry_brings_what_suits_it(features):
    plain = {"geometry": "additive", "stabilizer": "averaged"}
    for rule in ("perceptron", "margin(0.5)", "pa1"):
        assert made(features, rule=rule) == {"rule": rule, **plain}
    assert made(features, rule="hinge") == {"rule": "hinge", "geometry": "adagrad(0.1)", "stabilizer": "averaged"}
    assert made(features, geometry="winnow(1.5)")["rule"] == "perceptron"
    assert made(features, geometry="arow(2.0)")["rule"] == "pa2(0.25)"
    assert made(features, geometry="scinol") == {"rule": "logistic", "geometry": "scinol", "stabilizer": "last"}
    assert made(features, geometry="ftrl") == {"rule": "logistic", "geometry": "ftrl", "stabilizer": "last"}


def test_small_tables_are_gone_over_more_often():
    def passes(rows, values, features=TABLE, **choices):
        return default_passes(default_learner("classify", features, choices), features, rows, values)

    assert passes(500, 8_000) == 20
    assert passes(40_000, 560_000) == 10
    assert passes(40_000, 5_000_000) == 4  # wide rows take long
    assert passes(500_000, 7_000_000) == passes(100, 100, TEXT) == passes(100, 100, rule="pa1") == 3


def test_labels_in_order_do_not_hide_what_columns_do(tmp_path):
    """The first rows of a sorted file have one label, by which no column can be judged."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 400, 12_000)
    labels = np.where(rng.random(400)[ids] < 0.5, "no", "yes")
    rows = [f"{a * 37 % 1009},{b}" for a, b in zip(ids, labels)]
    for name, lines in (("mixed", rows), ("sorted", sorted(rows, key=lambda row: row.split(",")[1]))):
        (tmp_path / f"{name}.csv").write_text("code,label\n" + "\n".join(lines) + "\n")
    kinds = [type(Run(Plan([str(tmp_path / f"{name}.csv")], passes=1)).go().features.extractors_[0]).__name__
             for name in ("mixed", "sorted")]  # fmt: skip
    assert kinds == ["Category", "Category"]


def test_a_role_that_is_given_as_it_is_guessed_changes_nothing(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text("words,label\n" + "".join(f"is this {k} good?,{'ab'[k % 2]}\n" for k in range(300)))
    made = [Run(Plan([str(path)], roles=roles, passes=1)).go() for roles in ({}, {"words": "text"})]
    assert made[0].features.extractors_ == made[1].features.extractors_
    assert made[0].features.extractors_[0].tokens == "punctuation"
