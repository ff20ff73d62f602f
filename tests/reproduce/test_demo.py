"""The demo: its data are what they claim to be, its results are reproducible and within the bounds."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn import warm
from onlearn.compiler import object_code
from onlearn.reproduce import demo
from onlearn.theory.theorems import smallest_disjunction

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def found():
    """Results on the concept by learner."""
    return {r.learner: r for r in demo.results(["concept"], ["Perceptron", "Winnow"])}


def test_concept_is_a_disjunction_of_few_features():
    X, _ = demo.concept(0).rows
    y, _ = demo.concept(0).y
    assert (X.data == 1).all()
    assert X.shape[1] == demo.FEATURES
    assert smallest_disjunction(X, y == 1) == demo.LITERALS
    assert 0.45 < y.mean() < 0.6


@pytest.mark.parametrize("name", demo.DATA)
def test_splits(name):
    split, again, other = demo.DATA[name](0), demo.DATA[name](0), demo.DATA[name](1)
    for part in (0, 1):
        unit = split.unit[part].data if sp.issparse(split.unit[part]) else split.unit[part]
        assert np.min(unit) >= 0
        assert np.max(unit) <= 1
        assert split.rows[part].shape[0] == len(split.y[part])
        assert (split.y[part] == again.y[part]).all()
        assert (split.y[part] != other.y[part]).any()


def test_views_suit_the_learners():
    split = demo.cancer(0)
    assert demo.view("Perceptron", split) is split.rows
    assert min(part.min() for part in demo.view("Winnow", split)) >= 0
    for part in demo.view("NormalizedWinnow", split):
        assert np.abs(part).max() == 1
        assert (part.sum(axis=1).round(9) == 0).all()  # each feature with its mirror image


def test_mistakes_are_within_the_bounds(found):
    assert found["Winnow"].theorem == "winnow"
    assert found["Perceptron"].theorem in ("perceptron", "perceptron_noisy")
    assert all(0 < r.mistakes <= r.bound for r in found.values())
    assert found["Winnow"].mistakes < found["Perceptron"].mistakes


def test_results_are_reproducible(found):
    [again] = demo.results(["concept"], ["Winnow"])
    assert again[:-1] == found["Winnow"][:-1]


def test_readme_tells_the_truth(found):
    for result in found.values():
        row = f"| {result.learner} | {result.accuracy:.3f} | {result.mistakes:,} | {result.bound:,.0f} |"
        assert re.search(f"^{re.escape(row)}$", README.read_text(encoding="utf-8"), re.M), row


def test_nothing_is_compiled_after_its_loops_are():
    for loop in demo.loops_for(["cancer"], ["Perceptron"]):
        warm.compile_loop(loop)
    before = len(object_code.made)
    list(demo.results(["cancer"], ["Perceptron"]))
    assert object_code.made[before:] == []


def test_neither_compiling_nor_learning_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for loop in demo.loops_for(["concept"], ["NormalizedWinnow"]):
            warm.compile_loop(loop)
        list(demo.results(["concept"], ["NormalizedWinnow"]))
