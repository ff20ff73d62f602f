"""Which family suits data: the textbook's two extremes, noise, sparse and dense rows, and what is told."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn.theory import bounds, recommend
from onlearn.theory.recommendation import _intercept


def disjunction(rng, rows, n, k, active):
    X = sp.random_array((rows, n), density=active / n, rng=rng, format="csr")
    X.data[:] = 1.0
    on = rng.random((rows, k)) < 1 - 0.5 ** (1 / k)
    X = sp.csr_array(sp.hstack([sp.csr_array(on.astype(float)), X[:, k:]]))
    return X, on.any(axis=1)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_few_relevant_features_of_many(layout):
    X, y = disjunction(np.random.default_rng(0), 1500, 400, 3, 60)
    advice = recommend(X if layout is sp.csr_array else X.toarray(), np.where(y, "yes", "no"))
    assert (advice.advice, advice.by, advice.confirmed, advice.separable) == ("multiplicative", "bounds", True, True)
    assert advice.relevant == 3 and advice.active == pytest.approx(X.nnz / 1500)
    assert advice.multiplicative_bound == bounds.winnow(400, 3) < advice.additive_bound
    assert advice.best_run("multiplicative").mistakes < advice.best_run("additive").mistakes <= advice.additive_bound


def test_the_rows_of_the_unit_matrix():
    advice = recommend(sp.csr_array(sp.eye_array(128)), np.arange(128) % 2, fit_intercept=False)
    assert (advice.advice, advice.confirmed, advice.active) == ("additive", True, 1.0)
    assert advice.additive_bound == pytest.approx(128)
    assert advice.multiplicative_bound > 2 * 128


def test_the_bounds_are_those_of_the_formulas():
    """Dense rows whose best target, by |u|_1, is known: x1 decides with a margin of 1."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (300, 60))
    advice = recommend(X, X[:, 0] > 0, fit_intercept=False)
    assert advice.advice == "multiplicative" and advice.relevant == pytest.approx(1.0, abs=0.01)
    assert advice.multiplicative_bound == pytest.approx(2 * np.log(60), rel=1e-3)
    assert advice.additive_bound <= 60 * (1 + 1e-6)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_noise_is_told_and_the_scale_does_not_matter(size):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 10))
    y = (X[:, 0] > 0) ^ (rng.random(400) < 0.2)
    advice = recommend(X * size, y)
    assert advice.noisy and advice.separable is False
    assert "not separable" in advice.why
    assert max(advice.additive_bound, advice.multiplicative_bound) <= 400
    assert all(run.passes == 1 for run in advice.runs)


def test_it_can_be_read_and_sent_and_comes_out_the_same():
    X, y = disjunction(np.random.default_rng(0), 300, 100, 2, 20)
    first, second = recommend(X, y, random_state=3), recommend(X, y, random_state=3)
    assert first == second
    assert json.loads(json.dumps(first.to_dict()))["advice"] == first.advice
    assert first.why in str(first) and all(run.learner in str(first) for run in first.runs)
    assert first.why.count(". ") == 0


def test_many_features():
    X, y = disjunction(np.random.default_rng(0), 3000, 100_000, 5, 50)
    advice = recommend(X, y)
    assert (advice.advice, advice.confirmed, advice.n_features) == ("multiplicative", True, 100_000)


def test_bad_input():
    for X, y in (([[1.0], [2.0]], [1, 1]), ([[1.0], [np.nan]], [0, 1]), ([[1.0]], [0, 1])):
        with pytest.raises(ValueError, match=r"\.$"):
            recommend(X, y)


def test_rows_of_zeros_and_equal_rows():
    advice = recommend(np.zeros((4, 2)), [0, 1, 0, 1])
    assert advice.separable is False and advice.advice in ("additive", "multiplicative")
    assert recommend(np.ones((4, 2)), [0, 1, 0, 1], fit_intercept=False).noisy


def test_the_best_intercept():
    rng = np.random.default_rng(0)
    for _ in range(50):
        s, y = rng.integers(-4, 5, 12).astype(float), rng.choice([-1.0, 1.0], 12)
        wrong = (y * (s + _intercept(s, y)) <= 0).sum()
        assert wrong == min((y * (s + b) <= 0).sum() for b in np.arange(-6, 6.5, 0.5))


def test_where_nothing_decides_that_is_said():
    rng = np.random.default_rng(0)
    advice = recommend(rng.random((2000, 3)), rng.integers(0, 2, 2000))
    assert "the bounds are about the same" in advice.why and "makes little difference" in advice.why
