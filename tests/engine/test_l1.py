"""Weights that are exactly zero under l1: those of the optimum, whichever of the hypotheses is handed out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Lasso

import onlearn
from onlearn import OnlineClassifier, OnlineRegressor
from onlearn.engine.training import Training

ROWS, TRUTH = 300, np.r_[3.0, -2.0, 1.5, 1.0, -1.0, 0.8, np.zeros(6)]


def standardised(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, len(TRUTH)))
    return (X - X.mean(axis=0)) / X.std(axis=0), rng


def logistic_optimum(X, signs, l1):
    """Proximal gradient steps on all rows until nothing moves; the intercept is free of the penalty."""
    Z = signs[:, None] * np.column_stack([np.ones(len(X)), X])
    w, rate = np.zeros(Z.shape[1]), 4 * len(Z) / np.linalg.norm(Z, 2) ** 2
    for _ in range(3000):
        w = w + rate * Z.T @ (1 / (1 + np.exp(Z @ w))) / len(Z)
        w[1:] = np.sign(w[1:]) * np.maximum(0.0, np.abs(w[1:]) - rate * l1)
    return w[1:]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stabilizer", ["last", "averaged"])
@pytest.mark.parametrize("geometry", ["additive(0.05, schedule='1/sqrt(t)', l1=0.2)", "adagrad(0.3, l1=0.2)"])
def test_the_lasso_has_the_zeros_of_the_optimum(geometry, stabilizer, seed):
    """Six of twelve columns have nothing to do with y."""
    X, rng = standardised(seed)
    y = X @ TRUTH + 1.0 + rng.normal(size=ROWS)
    optimum = Lasso(alpha=0.2, tol=1e-12).fit(X, y).coef_
    model = OnlineRegressor(geometry=geometry, stabilizer=stabilizer, epochs=40, random_state=seed).fit(X, y)
    assert np.count_nonzero(optimum == 0) >= 5
    assert np.array_equal(model.coef_ == 0, optimum == 0)
    np.testing.assert_allclose(model.coef_, optimum, atol=0.1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("make", [
    lambda: onlearn.LogisticRegression(rate=0.1, l1=0.05),
    lambda: onlearn.LogisticRegression(rate=0.1, l1=0.05, stabilizer="last"),
    lambda: OnlineClassifier("logistic", "additive(0.5, schedule='1/sqrt(t)', l1=0.05)"),
])  # fmt: skip
def test_logistic_regression_has_the_zeros_of_the_optimum(make, seed):
    X, rng = standardised(seed)
    y = (X @ TRUTH + rng.logistic(size=ROWS) > 0).astype(int)
    optimum = logistic_optimum(X, 2 * y - 1, 0.05)
    model = make().set_params(epochs=60, random_state=seed).fit(X, y)
    assert np.array_equal(model.coef_[0] == 0, optimum == 0)
    np.testing.assert_allclose(model.coef_[0], optimum, atol=0.1)


@pytest.mark.parametrize("geometry", ["additive(0.1, l1=0.1)", "adagrad(0.3, l1=0.1)"])
@pytest.mark.parametrize("stabilizer", ["last", "averaged"])
def test_a_weight_that_was_zero_long_comes_back_when_the_evidence_does(geometry, stabilizer):
    """The mean gradient decides, over all examples: it must grow beyond l1 again."""
    X = np.zeros((4000, 2))
    X[:, 0], X[::2, 1], X[1::2, 1] = 1.0, 1.0, -1.0
    y = np.where(np.arange(4000) < 1000, 0.0, 5.0 * X[:, 1])  # nothing is known of column 1 before row 1000
    settings = dict(geometry=geometry, stabilizer=stabilizer, fit_intercept=False)
    model = OnlineRegressor(**settings).partial_fit(X[:1000], y[:1000])
    assert model.coef_[1] == 0
    assert model.partial_fit(X[1000:], y[1000:]).coef_[1] > 0.5


@given(seed=st.integers(0, 10_000), outputs=st.sampled_from([2, 3]))
@settings(max_examples=15, deadline=None)
def test_a_mean_has_the_zeros_of_the_last_hypothesis_and_others_are_its_own(seed, outputs):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) < 0.5)
    y = np.r_[np.arange(outputs), rng.integers(outputs, size=60 - outputs)]
    for geometry in ("additive(0.1, l1=0.1)", "adagrad(0.3, l1=0.1)", "ftrl(0.3, l1=3.0)"):
        made = dict(rule="logistic", geometry=geometry, random_state=0)
        last, mean = (OnlineClassifier(stabilizer=name, **made).fit(X, y) for name in ("last", "averaged"))
        assert np.array_equal(last.coef_ == 0, mean.coef_ == 0)
        sparse = OnlineClassifier(**made).fit(sp.csr_array(X), y)
        np.testing.assert_allclose(sparse.coef_, mean.coef_, rtol=1e-9, atol=1e-12)
        by_one, by_many = mean.score_one(X[0]), mean.decision_function(X[:1])[0]
        np.testing.assert_allclose([*by_one.values()] if outputs > 2 else by_one, by_many, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("geometry", ["additive(0.1, l1=0.05, l2=0.5)", "adagrad(0.3, l1=0.05, l2=0.1)"])
def test_learning_goes_on_from_a_file_to_the_last_bit(geometry, tmp_path):
    """What a zero weight holds is in the file."""
    X, rng = standardised(0)
    y = (X @ TRUTH + 3 * rng.logistic(size=ROWS) > 0).astype(int)
    made = OnlineClassifier("hinge", geometry).partial_fit(X[:100], y[:100], classes=[0, 1])
    made.save(tmp_path / "m.onl")
    loaded = onlearn.load(tmp_path / "m.onl").partial_fit(X[100:], y[100:])
    assert np.array_equal(loaded.coef_, made.partial_fit(X[100:], y[100:]).coef_)


@pytest.mark.parametrize("geometry", ["additive(l1=0.01)", "adagrad(l1=0.01)"])
def test_states_of_earlier_versions_are_read(geometry):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = OnlineClassifier("logistic", geometry, random_state=0).fit(X, X[:, 0] > 0)
    facts, arrays = model._training.pack()
    old = {name: array for name, array in arrays.items() if name not in ("g.held", "g.most")}
    again = Training.unpack(facts, old)
    assert np.array_equal(again.weights(), model._training.weights())
    with pytest.raises(ValueError, match="last is missing"):
        Training.unpack(facts, {name: array for name, array in old.items() if name != "g.last"})
