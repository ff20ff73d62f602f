"""Theory kept: mistakes never above their bounds, and which of Perceptron and Winnow wins where."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn.theory import bounds


def mistakes_to_convergence(model, X, y):
    """Pass over the data until a pass makes no mistake, and count all that were made."""
    model.set_params(epochs=None, max_epochs=10_000, random_state=0).fit(X, y)
    assert model.separable_ is True
    return model.n_mistakes_


# ---------------------------------------------------------------- Perceptron


def planted(rng, rows, features, margin):
    """Rows at least so far from the plane through zero with normal u, |u| = 1; labels by side."""
    u = rng.normal(size=features)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(rows, features))
    s = X @ u
    X += np.outer(np.sign(s) * np.maximum(0.0, margin - np.abs(s)), u)
    return X, (X @ u > 0).astype(int), u


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    features=st.integers(1, 30),
    margin=st.floats(0.05, 1.0),
    rate=st.sampled_from([1.0, 0.01, 7.0]),
)
def test_perceptron_stays_below_its_bound(seed, features, margin, rate):
    """At most (R / g)^2 mistakes, over all passes, whatever the rate; g is that of the planted separator."""
    X, y, u = planted(np.random.default_rng(seed), 60, features, margin)
    if len(set(y)) < 2:
        return
    g = (np.where(y == 1, 1, -1) * (X @ u)).min()
    model = onlearn.OnlineClassifier(geometry=f"additive({rate})", stabilizer="last", fit_intercept=False)
    bound = bounds.perceptron(np.linalg.norm(X, axis=1).max(), g)
    assert mistakes_to_convergence(model, X, y) <= bound


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("size", [1.0, 3.0])
def test_perceptron_with_an_intercept_stays_below_its_bound(seed, size):
    """The constant feature is part of the example and of the separator."""
    X, y, u = planted(np.random.default_rng(seed), 100, 8, 0.3)
    shift = np.random.default_rng([seed, 1]).normal()
    X = X + shift * u  # the separator is now u.x - shift
    wide, target = np.column_stack([np.full(len(X), size), X]), np.append(-shift / size, u)
    target /= np.linalg.norm(target)
    g = (np.where(y == 1, 1, -1) * (wide @ target)).min()
    model = onlearn.Perceptron(intercept_scaling=size)
    assert mistakes_to_convergence(model, X, y) <= bounds.perceptron(np.linalg.norm(wide, axis=1).max(), g)


# ---------------------------------------------------------------- Winnow


def disjunction(rng, rows, n, k, active):
    """Sparse Boolean rows; positive are those where one of the first k features is on. Half are."""
    y = rng.integers(0, 2, rows)
    y[:2] = 0, 1
    columns = [
        np.concatenate(
            [
                rng.choice(k, rng.integers(1, min(k, 3) + 1), replace=False) if label else [],
                k + rng.choice(n - k, active, replace=False),
            ]
        )
        for label in y
    ]
    indptr = np.cumsum([0] + [len(c) for c in columns])
    indices = np.concatenate(columns).astype(np.int32)
    return sp.csr_array((np.ones(len(indices)), indices, indptr), shape=(rows, n)), y


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("n", [50, 1000, 10_000])
@pytest.mark.parametrize("seed", range(3))
def test_winnow_stays_below_its_bound(n, k, seed):
    """At most 3k (log2 n + 1) + 2 mistakes on a disjunction of k among n features."""
    for active in (5, n // 3):
        X, y = disjunction(np.random.default_rng([seed, n, k]), 300, n, k, active)
        model = onlearn.Winnow(alpha=2.0, stabilizer="last")
        assert mistakes_to_convergence(model, X, y) <= bounds.winnow(n, k)


@pytest.mark.parametrize(("alpha", "share"), [(1.5, 1.0), (3.0, 0.5)])
def test_winnow_with_other_parameters_stays_below_its_bound(alpha, share):
    n, k = 500, 4
    for seed in range(5):
        X, y = disjunction(np.random.default_rng(seed), 300, n, k, n // 4)
        model = onlearn.Winnow(alpha=alpha, threshold=share * n, stabilizer="last")
        assert mistakes_to_convergence(model, X, y) <= bounds.winnow(n, k, alpha, share * n)


# ---------------------------------------------------------------- normalised Winnow


def planted_on_the_simplex(rng, rows, p, relevant, margin):
    """Rows of -1, 0 and 1 at least so far from the plane of u >= 0, |u|_1 = 1, with few relevant features."""
    u = np.zeros(p)
    u[rng.choice(p, relevant, replace=False)] = rng.dirichlet(np.ones(relevant))
    X = rng.choice([-1.0, 0.0, 1.0], size=(20 * rows, p))
    X = X[np.abs(X @ u) >= margin][:rows]
    return X, (X @ u > 0).astype(int), u


@pytest.mark.parametrize("margin", [0.1, 0.3])
@pytest.mark.parametrize("p", [20, 200])
@pytest.mark.parametrize("seed", range(4))
def test_normalised_winnow_stays_below_its_bound(p, margin, seed):
    """At most ln p / (eta g + ln(2 / (e^eta + e^-eta))) mistakes; fewest promised at the best eta."""
    X, y, u = planted_on_the_simplex(np.random.default_rng([seed, p]), 150, p, 3, margin)
    g = float((np.where(y == 1, 1, -1) * (X @ u)).min())
    best = onlearn.NormalizedWinnow(eta="auto", margin=g, stabilizer="last")
    made = mistakes_to_convergence(best, X, y)
    assert made <= bounds.normalized_winnow(p, g) <= bounds.normalized_winnow_simple(p, g)
    for eta in (g / 4, g):
        model = onlearn.NormalizedWinnow(eta=eta, stabilizer="last")
        assert mistakes_to_convergence(model, X, y) <= bounds.normalized_winnow(p, g, eta)


# ---------------------------------------------------------------- who wins where


def at_least_10_of_100(rng, rows, n):
    """Sparse Boolean rows, 2 % of the irrelevant features on; positive: 10 or more of the first 100 are on."""
    y = rng.integers(0, 2, rows)
    count = np.where(y == 1, rng.integers(10, 15, rows), rng.integers(5, 10, rows))
    relevant = sp.csr_array((rng.random((rows, 100)).argsort(axis=1) < count[:, None]).astype(float))
    rest = sp.csr_array((rng.random((rows, n - 100)) < 0.02).astype(float))
    return sp.csr_array(sp.hstack([relevant, rest])), y


def test_winnow_wins_on_few_relevant_of_many_features():
    """At least 10 of 100 of n: the Perceptron's mistakes grow with n, Winnow's hardly do."""
    additive, multiplicative = [], []
    for n in (250, 1000, 4000):
        X, y = at_least_10_of_100(np.random.default_rng(n), 15_000, n)
        once = dict(epochs=1, shuffle=False)
        additive.append(onlearn.Perceptron(**once).fit(X, y).n_mistakes_)
        multiplicative.append(onlearn.Winnow(alpha=1.1, stabilizer="last", **once).fit(X, y).n_mistakes_)
    assert (2 * np.array(multiplicative) < additive).all()
    assert (np.diff(additive) > 2 * np.diff(multiplicative)).all()


@pytest.mark.parametrize("n", [32, 256, 1024])
def test_perceptron_wins_on_unit_vectors_with_a_dense_target(n):
    """Every feature matters and comes alone: one mistake each for the Perceptron, log2 n each for Winnow."""
    y = (np.arange(n) % 2 == 0).astype(int)
    X = sp.csr_array(sp.eye_array(n))
    perceptron = mistakes_to_convergence(onlearn.Perceptron(fit_intercept=False), X, y)
    winnow = mistakes_to_convergence(onlearn.Winnow(stabilizer="last"), X, y)
    assert perceptron == n
    assert winnow == n // 2 * (np.log2(n) + 1)
