"""The maximum-margin separator, against a general solver and against what must hold for any."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from onlearn.theory import maximum_margin, separable
from onlearn.theory.max_margin import maximum_margin_scores


def by_general_solver(Z):
    """min |w|^2 with Z w >= 1, by SLSQP."""
    start = np.linalg.lstsq(Z, np.ones(len(Z)), rcond=None)[0]
    constraint = {"type": "ineq", "fun": lambda w: Z @ w - 1, "jac": lambda w: Z}
    answer = minimize(lambda w: w @ w / 2, start, jac=lambda w: w, constraints=[constraint], options={"maxiter": 500})
    w = answer.x
    return (Z @ w).min() / np.linalg.norm(w)


def planted(rng, m, n, margin):
    u = rng.normal(size=n)
    u /= np.linalg.norm(u)
    X = rng.normal(size=(m, n))
    s = X @ u
    return X + np.outer(np.where(s > 0, margin, -margin), u), np.where(s > 0, 1, -1)


@given(
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(2, 25), st.sampled_from([0.0, 1.0, 3.0]), st.booleans()
)
def test_it_is_the_largest_margin(seed, n, m, constant, sparse):
    rng = np.random.default_rng(seed)
    X, y = planted(rng, m, n, 0.3)
    g, u = maximum_margin(sp.csr_array(X) if sparse else X, y, constant=constant)
    Z = y[:, None] * (np.column_stack([X, np.full(m, constant)]) if constant else X)
    assert len(u) == Z.shape[1] and np.linalg.norm(u) == pytest.approx(1.0)
    assert g == pytest.approx((Z @ u).min(), rel=1e-9)
    assert g >= by_general_solver(Z) * (1 - 1e-4)
    signed = maximum_margin_scores(X @ X.T, y, constant=constant)
    assert signed.min() == pytest.approx(g, rel=1e-4)


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.floats(0, 0.5))
def test_none_where_nothing_separates(seed, m, noise):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (m, 2)).astype(float)
    y = np.where((X @ [1.0, 2.0] > 0.5) ^ (rng.random(m) < noise), 1, -1)
    y[:2] = -1, 1
    found = maximum_margin(X, y, constant=1.0)
    assert (found is not None) == bool(separable(X, y))


def test_scales_and_known_margins():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]
    g, _ = maximum_margin(X, y, constant=1.0)
    assert 3 / g**2 == pytest.approx(51)
    for size in (1e-200, 1e200):
        assert maximum_margin(np.array(X) * size, y, constant=size)[0] == pytest.approx(g * size)
    assert maximum_margin(X, y, constant=1.0, above=g * 1.001) is None
    assert maximum_margin(X, y, constant=1.0, above=g * 0.999) is not None
    assert maximum_margin(np.zeros((2, 2)), [0, 1]) is None


def test_many_rows_support_it():
    rng = np.random.default_rng(0)
    X, y = sp.random_array((400, 2000), density=0.02, rng=rng, format="csr"), rng.choice([-1, 1], 400)
    g, u = maximum_margin(X, y)
    assert g > 0 and (y * (X @ u)).min() == pytest.approx(g)
    assert (np.isclose(y * (X @ u), g, rtol=1e-3)).sum() > 200
