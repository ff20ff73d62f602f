"""Mistake bounds: worked numbers, the minimum over margins, bad arguments, and learners that obey them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn.theory import bounds, simplex_margin

seeds = st.integers(0, 2**32 - 1)


def test_worked_numbers():
    assert bounds.perceptron(3.0, 0.5) == 36.0
    assert bounds.perceptron_noisy(3.0, 1.0, 0.5) == 64.0
    assert bounds.perceptron_mixed(3.0, 0.5, 4) == 144.0
    assert bounds.perceptron_mixed(3.0, 0.5, shards=1) == bounds.perceptron(3.0, 0.5)
    assert bounds.perceptron_mixed_noisy(3.0, 1.0, 0.5, 4) == 196.0
    assert bounds.perceptron_mixed_noisy(3.0, 0.0, 0.5, 4) == bounds.perceptron_mixed(3.0, 0.5, 4)
    assert bounds.perceptron_mixed_noisy(3.0, 1.0, 0.5, 1) == bounds.perceptron_noisy(3.0, 1.0, 0.5)
    assert bounds.winnow(1, 1) == 5.0
    assert bounds.winnow(1024, 10) == 332.0
    assert bounds.winnow(1000, 0) == 2.0
    assert bounds.elimination(100) == 101.0
    assert bounds.elimination(100, monotone=True) == 100.0
    assert bounds.consistent(1) == 0.0
    assert bounds.consistent(3**12) == 531_440.0
    assert bounds.halving(1) == 0.0
    assert bounds.halving(2**100) == 100.0
    assert bounds.normalized_winnow(100, 1.0) == pytest.approx(math.log(100) / math.log(2))
    eta, g = 0.3, 0.4
    by_hand = math.log(50) / (eta * g + math.log(2 / (math.exp(eta) + math.exp(-eta))))
    assert bounds.normalized_winnow(50, g, eta) == pytest.approx(by_hand)
    assert bounds.best_eta(0.5) == pytest.approx(0.5 * math.log(3))
    assert bounds.best_eta(1.0) == math.inf


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csc_array, lambda X: np.asarray(X, np.float32)])
def test_general_forms_by_hand(layout):
    X, y, u = layout([[3.0, 4.0, 0.0], [0.0, -2.0, 1.0]]), [1, -1], [1.0, 1.0, 0.0]
    # |u|_2^2 = 2, max|x|_2 = 5, g = 2; |u|_1 = 2, max|x|_inf = 4, n = 3
    assert bounds.additive(u, X, y) == pytest.approx(2 * 25 / 4)
    assert bounds.multiplicative(u, X, y) == pytest.approx(2 * math.log(3) * 4 * 16 / 4)
    assert bounds.multiplicative(u, X, y, n=6) == pytest.approx(2 * math.log(6) * 4 * 16 / 4)
    assert bounds.additive(u, X) == bounds.additive(u, X, y)  # the labels are u's own


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e300])
def test_general_forms_do_not_depend_on_the_unit(scale):
    X, u = np.array([[3.0, 4.0], [-1.0, -1.0]]), [1.0, 1.0]
    assert bounds.additive(u, X * scale) == pytest.approx(bounds.additive(u, X))
    assert bounds.multiplicative(u, X * scale) == pytest.approx(bounds.multiplicative(u, X))


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.perceptron(1.0, 0.0),
        lambda: bounds.perceptron(1.0, -1.0),
        lambda: bounds.perceptron(-1.0, 1.0),
        lambda: bounds.perceptron(1.0, math.nan),
        lambda: bounds.perceptron_noisy(1.0, -1.0, 1.0),
        lambda: bounds.perceptron_noisy_best(0.0, [1.0]),
        lambda: bounds.perceptron_noisy_best(1.0, []),
        lambda: bounds.perceptron_noisy_best(1.0, [math.nan]),
        lambda: bounds.perceptron_noisy_best(1.0, [1.0], passes=0),
        lambda: bounds.winnow(5, 6),
        lambda: bounds.winnow(0, 0),
        lambda: bounds.winnow(5, 2, alpha=1.0),
        lambda: bounds.winnow(5, 2, threshold=0.5),
        lambda: bounds.normalized_winnow(0, 0.1),
        lambda: bounds.normalized_winnow(10, 0.0),
        lambda: bounds.normalized_winnow(10, 1.1),
        lambda: bounds.normalized_winnow(10, 0.1, eta=0.0),
        lambda: bounds.best_eta(-0.1),
        lambda: bounds.additive([1.0, 0.0], [[1.0, 0.0]], [-1]),
        lambda: bounds.additive([1.0, 0.0], [[0.0, 1.0]]),
        lambda: bounds.additive([1.0], [[0.0, 1.0]]),
        lambda: bounds.additive([1.0, 0.0], [[1.0, 0.0]], [2]),
        lambda: bounds.multiplicative([1.0, 0.0], np.empty((0, 2))),
        lambda: bounds.multiplicative([1.0, 0.0], [[1.0, math.nan]]),
        lambda: bounds.elimination(0),
        lambda: bounds.elimination(2.5),
        lambda: bounds.consistent(0),
        lambda: bounds.consistent("all"),
        lambda: bounds.halving(0),
        lambda: bounds.perceptron("a", 1),
        lambda: bounds.perceptron_mixed(1.0, 0.0, 2),
        lambda: bounds.perceptron_mixed(1.0, 1.0, 0),
        lambda: bounds.perceptron_mixed(1.0, 1.0, 2.5),
        lambda: bounds.perceptron_mixed_noisy(1.0, -1.0, 1.0, 2),
        lambda: bounds.perceptron_mixed_noisy(1.0, 1.0, 1.0, math.nan),
        lambda: bounds.winnow(10.5, 2),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()


@given(st.floats(1e-9, 1.0), st.integers(2, 10**6), st.floats(1e-3, 5.0))
def test_the_best_rate_is_best_and_the_simple_form_above_it(margin, p, factor):
    best = bounds.normalized_winnow(p, margin)
    assert best <= bounds.normalized_winnow_simple(p, margin) * (1 + 1e-12)
    rate = min(bounds.best_eta(margin), 700.0)
    assert bounds.normalized_winnow(p, margin, rate) == pytest.approx(best, rel=1e-6)
    assert best <= bounds.normalized_winnow(p, margin, rate * factor) * (1 + 1e-6)


@given(st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=30), st.floats(1.0, 3.0), st.integers(1, 5))
def test_no_margin_gives_less_than_the_best_noisy_bound(signed, R, passes):
    value, margin, D2 = bounds.perceptron_noisy_best(R, signed, passes)
    s = np.asarray(signed)

    def at(g: float) -> float:
        return bounds.perceptron_noisy(R, math.sqrt(passes * (np.maximum(0.0, g - s) ** 2).sum()), g)

    assert value <= passes * len(s)
    others = np.concatenate([np.geomspace(1e-3, 1e4, 100), s[s > 0]])
    assert value <= min(map(at, others)) * (1 + 1e-9)
    if math.isfinite(margin):
        assert value == pytest.approx(at(margin), rel=1e-9)
        assert pytest.approx(math.sqrt(passes * (np.maximum(0.0, margin - s) ** 2).sum()), abs=1e-9) == D2


def test_best_noisy_bound_of_separable_data_is_no_worse_than_novikoffs():
    s = np.random.default_rng(0).uniform(0.2, 1.0, 1000)
    assert bounds.perceptron_noisy_best(1.0, s).value <= bounds.perceptron(1.0, s.min())


def test_best_noisy_bound_of_a_million_scores():
    rng = np.random.default_rng(1)
    s = rng.normal(0.3, 0.2, 1_000_000).clip(-1, 1)
    value, margin, _ = bounds.perceptron_noisy_best(1.0, s)
    for g in (margin * 0.999, margin * 1.001):
        assert value <= bounds.perceptron_noisy(1.0, math.sqrt((np.maximum(0.0, g - s) ** 2).sum()), g)


def perceptron_mistakes(X, y, passes, rate=1.0):
    w, mistakes = np.zeros(X.shape[1]), 0
    for _ in range(passes):
        for x, label in zip(X, y):
            if label * (w @ x) <= 0:
                w, mistakes = w + rate * label * x, mistakes + 1
    return mistakes


@given(seeds, st.integers(1, 6), st.integers(1, 3), st.floats(0.01, 10.0))
def test_the_perceptron_obeys_its_bounds(seed, n, passes, rate):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(25, n)), rng.normal(size=n)
    u /= np.linalg.norm(u)
    R = np.linalg.norm(X, axis=1).max()
    y = np.where(X @ u > 0, 1, -1)
    mistakes = perceptron_mistakes(X, y, passes, rate)
    assert mistakes <= bounds.perceptron(R, (y * (X @ u)).min()) * (1 + 1e-9)
    assert mistakes <= bounds.additive(u, X, y) * (1 + 1e-9)
    y[rng.random(25) < 0.2] *= -1
    mistakes = perceptron_mistakes(X, y, passes, rate)
    assert mistakes <= bounds.perceptron_noisy_best(R, y * (X @ u), passes).value * (1 + 1e-9)


@given(
    seeds,
    st.sampled_from([4, 30, 200]),
    st.integers(1, 4),
    st.sampled_from([1.2, 2.0, 3.0]),
    st.sampled_from([0.5, 1.0]),
)
def test_winnow_obeys_its_bound(seed, n, k, alpha, share):
    rng = np.random.default_rng(seed)
    X = (rng.random((60, n)) < rng.uniform(0.05, 0.6)).astype(float)
    y = np.where(X[:, :k].any(axis=1), 1, -1)
    w, theta, mistakes = np.ones(n), share * n, 0
    for _ in range(5):
        for x, label in zip(X, y):
            if label * (w @ x - theta) <= 0:
                w, mistakes = w * alpha ** (label * x), mistakes + 1
    assert mistakes <= bounds.winnow(n, k, alpha, theta)
    if (alpha, share) == (2.0, 1.0):
        assert mistakes <= 3 * k * (math.log2(n) + 1) + 2


@given(seeds, st.integers(2, 30), st.floats(0.2, 3.0))
def test_normalised_winnow_obeys_its_bounds(seed, p, factor):
    rng = np.random.default_rng(seed)
    X, target = rng.uniform(-1, 1, (40, p)), rng.dirichlet(np.full(p, 0.3))
    y = np.where(X @ target > 0, 1, -1)
    g, _ = simplex_margin(X, y)

    def mistakes(eta: float) -> int:
        log_w, made = np.zeros(p), 0
        for _ in range(10):
            for x, label in zip(X, y):
                if label * (np.exp(log_w - log_w.max()) @ x) <= 0:
                    log_w, made = log_w + eta * label * x, made + 1
        return made

    if g > 1e-6:
        eta = bounds.best_eta(g)
        assert mistakes(eta) <= bounds.normalized_winnow(p, g) <= bounds.normalized_winnow_simple(p, g)
        assert mistakes(eta * factor) <= bounds.normalized_winnow(p, g, eta * factor)
