"""Bounds of data: the numbers are those of the formulas, and an assumption that fails is an error."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn.theory import bounds, conjunctions, data_bounds

CUBE = np.array(list(itertools.product([0, 1], repeat=3)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_perceptron(layout):
    X, y = layout([[1.0, 0.0], [-1.0, -1.0]]), [1, -1]
    assert data_bounds.perceptron(X, y, [1.0, 1.0]) == bounds.additive([1.0, 1.0], X, y) == pytest.approx(4.0)
    assert data_bounds.perceptron(X, y) < 4.0
    with pytest.raises(ValueError, match="use perceptron_noisy"):
        data_bounds.perceptron(layout([[1.0], [1.0]]), [1, -1])
    with pytest.raises(ValueError, match="does not separate"):
        data_bounds.perceptron(X, y, [-1.0, 0.0])
    noisy = data_bounds.perceptron_noisy(X, y, [-1.0, 0.0], passes=3)
    assert noisy.value == 6.0  # as many as there are examples
    for u in ([0.0, 0.0], [1.0]):
        with pytest.raises(ValueError, match="u must"):
            data_bounds.perceptron_noisy(X, y, u)


def test_winnow_and_normalised_winnow():
    assert data_bounds.winnow(CUBE, CUBE[:, :2].any(axis=1)) == bounds.winnow(3, 2)
    with pytest.raises(ValueError, match="not a monotone disjunction"):
        data_bounds.winnow(CUBE, CUBE[:, :2].all(axis=1))
    X, y = [[1.0, -0.2], [0.2, -1.0]], [1, -1]
    assert data_bounds.normalized_winnow(X, y) == pytest.approx(bounds.normalized_winnow(2, 0.4))
    given_rate = data_bounds.normalized_winnow(X, y, [1.0, 1.0], eta=0.1)
    assert given_rate == pytest.approx(bounds.normalized_winnow(2, 0.4, 0.1))
    for bad, what in (
        ((X, y, [1.0, -1.0]), "must not be negative"),
        (([[2.0, 0.0], [0.0, 1.0]], y), "divide the rows"),
        ((X, [-1, 1], [1.0, 1.0]), "does not separate"),
    ):
        with pytest.raises(ValueError, match=what):
            data_bounds.normalized_winnow(*bad)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_elimination(layout):
    X = layout(CUBE)
    assert data_bounds.elimination(X, CUBE[:, 0] & CUBE[:, 2], monotone=True) == 3
    assert data_bounds.elimination(X, CUBE[:, 0] & 1 - CUBE[:, 2]) == 4
    for y, monotone in ((CUBE[:, 0] | CUBE[:, 1], False), (CUBE[:, 0] & 1 - CUBE[:, 2], True)):
        with pytest.raises(ValueError, match=r"labels are not a .*conjunction.*row"):
            data_bounds.elimination(X, y, monotone=monotone)
    with pytest.raises(ValueError, match="0 and 1"):
        data_bounds.elimination(layout(CUBE * 2), CUBE[:, 0])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_classes_of_concepts(layout):
    X, y = layout(CUBE), np.where(CUBE[:, 0] & CUBE[:, 1], "yes", "no")
    assert data_bounds.consistent(X, y, conjunctions(3)) == 26
    assert data_bounds.halving(X, y, conjunctions(3, monotone=True)) == 3
    for bound in (data_bounds.consistent, data_bounds.halving):
        with pytest.raises(ValueError, match="leaves no concept"):
            bound(X, CUBE[:, 0] | CUBE[:, 1], conjunctions(3))


def test_finite_classes():
    assert (bounds.elimination(5), bounds.elimination(5, monotone=True)) == (6, 5)
    assert (bounds.consistent(8), bounds.halving(8)) == (7, 3.0)
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match="must be"):
            bounds.elimination(wrong)
        with pytest.raises(ValueError, match="must be"):
            bounds.consistent(wrong)


def run_normalised_winnow(X, y, eta, passes):
    log_w, mistakes = np.zeros(X.shape[1]), 0
    for _ in range(passes):
        for x, label in zip(X, y):
            w = np.exp(log_w - log_w.max())
            if label * (w @ x) <= 0:
                log_w, mistakes = log_w + eta * label * x, mistakes + 1
    return mistakes


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(0.02, 1.0), st.floats(0, 0.3), st.integers(1, 5))
def test_normalised_winnow_is_never_above_its_noisy_bound(seed, n, eta, noise, passes):
    rng = np.random.default_rng(seed)
    X, u = rng.uniform(-1, 1, (40, n)), rng.dirichlet(np.full(n, 0.3))
    y = np.where((X @ u > 0) ^ (rng.random(40) < noise), 1, -1)
    bound = data_bounds.normalized_winnow_noisy(X, y, u, passes, eta) if len(set(y)) == 2 else None
    if bound is not None:
        assert run_normalised_winnow(X, y, eta, passes) <= bound.value <= 40 * passes
        best = data_bounds.normalized_winnow_noisy(X, y, u, passes)
        if best.eta:
            assert run_normalised_winnow(X, y, best.eta, passes) <= best.value
            assert best.value == bounds.normalized_winnow_noisy(n, best.D1, best.margin, best.eta)
