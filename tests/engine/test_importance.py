"""Weights of examples: a heavy example is learned well, and no step goes past where its loss ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlearn import AROW, OnlineClassifier, OnlineRegressor

ALONE = dict(epochs=1, shuffle=False, fit_intercept=False, stabilizer="last")
weights = st.floats(0.01, 1e6)
rows = st.lists(st.floats(-10, 10).filter(lambda x: abs(x) > 0.01), min_size=1, max_size=5)


def first_step(rule, geometry, x, h):
    """The weights after one example of weight h, from zero."""
    model = OnlineClassifier(rule, geometry, **ALONE).partial_fit([x], [1], classes=[0, 1], sample_weight=[h])
    return model.coef_[0]


@pytest.mark.parametrize("rule", ["pa1(0.1)", "pa1(1.0)", "pa2(0.5)", "pa2(3.0)", "aggressive(1.0)"])
@pytest.mark.parametrize("geometry", ["additive", "arow(1.0)"])
@given(x=rows, h=weights)
def test_a_step_never_goes_past_the_end_of_the_loss(rule, geometry, x, h):
    assert -1e-9 <= first_step(rule, geometry, x, h) @ np.array(x) <= 1 + 1e-9


@given(x=rows, h=st.floats(1.0, 1e6), C=st.floats(0.01, 10))
def test_weight_multiplies_the_cost(x, h, C):
    """The minimum of |v|^2 / 2 + h C loss(v) lies on the line of x: one scalar."""
    x = np.array(x)
    q = x @ x
    assert np.allclose(first_step(f"pa1({C!r})", "additive", x, h), min(h * C, 1 / q) * x)
    assert np.allclose(first_step(f"pa2({C!r})", "additive", x, h), x / (q + 1 / (2 * h * C)))


@given(x=rows, h=st.floats(1.0, 1e3), r=st.floats(0.01, 10))  # with r/h next to nothing the oracle is of few digits
def test_arow_divides_r_by_the_weight(x, h, r):
    """Mean and variance of the paper with r/h: the second example shows the variance."""
    x = np.array(x)
    model = AROW(r=r, **{**ALONE, "epochs": 1}).partial_fit([x], [1], classes=[0, 1], sample_weight=[h])
    w = x / (x @ x + r / h)
    assert np.allclose(model.coef_[0], w)
    variance = 1 - x**2 / (x @ x + r / h)
    model.partial_fit([-x], [1], sample_weight=[h])
    alpha = max(0.0, 1 + w @ x) / (x @ (variance * x) + r / h)
    assert np.allclose(model.coef_[0], w - alpha * variance * x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("rule", ["nlms", "pa_epsilon(0.0)", "pa_epsilon(0.1, 2.0)"])
@given(x=rows, h=weights, y=st.floats(-5, 5))
def test_regression_never_goes_past_the_target(rule, x, h, y):
    model = OnlineRegressor(rule, "additive", **ALONE).partial_fit([x], [y], sample_weight=[h])
    s = float(model.coef_ @ np.array(x))
    assert min(0.0, y) - 1e-9 <= s <= max(0.0, y) + 1e-9


@pytest.mark.parametrize("rule", ["perceptron", "logistic", "hinge"])
def test_rules_that_do_not_look_at_the_length_step_as_many_times_as_far(rule):
    x = np.array([0.5, -2.0])
    assert np.allclose(first_step(rule, "additive", x, 30.0), 30 * first_step(rule, "additive", x, 1.0))


def test_weights_of_one_and_below_are_parts_of_the_step():
    x = np.array([0.5, -2.0])
    for rule in ("pa1(0.1)", "pa2(0.5)", "aggressive(1.0)", "perceptron"):
        assert np.array_equal(first_step(rule, "additive", x, 0.25), 0.25 * first_step(rule, "additive", x, 1.0))


def test_balanced_classes_of_very_unequal_size_are_learned():
    """Sparse rows of a few words each, 1,000 to 8 rows a class: balancing helps the rare ones and spares the others."""
    rng = np.random.default_rng(0)
    sizes = [1000, 300, 100, 30, 12, 8]
    y = np.repeat(np.arange(6), sizes)
    X = np.zeros((len(y), 300))
    for n, label in enumerate(y):
        own = rng.integers(0, 20, 2) + 20 * label
        X[n, np.concatenate([own, rng.integers(120, 300, 6)])] = 1 / np.sqrt(8)
    order = rng.permutation(len(y))
    X, y = X[order], y[order]
    plain, balanced = (
        AROW(epochs=3, random_state=0, class_weight=given).fit(X[::2], y[::2]).predict(X[1::2])
        for given in (None, "balanced")
    )
    truth = y[1::2]
    assert (balanced == truth).mean() > (plain == truth).mean() - 0.01
    recalls = [[(p[truth == c] == c).mean() for c in range(6)] for p in (plain, balanced)]
    assert np.mean(recalls[1]) >= np.mean(recalls[0])
