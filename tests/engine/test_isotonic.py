"""Isotonic regression against brute force and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.isotonic import IsotonicRegression

from onlearn.engine.isotonic import fit_steps, pooled


def minimax(y, w):
    """f_k = max over i <= k of min over j >= k of the mean of y_i .. y_j: the solution, in cubic time."""
    n = len(y)
    mean = lambda i, j: np.average(y[i : j + 1], weights=w[i : j + 1])  # noqa: E731
    return np.array([max(min(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)])


@given(
    arrays(float, st.integers(1, 12), elements=st.floats(-100, 100)),
    st.integers(0, 2**32 - 1),
)
def test_pooling_is_the_minimax_formula(y, seed):
    w = np.random.default_rng(seed).integers(1, 5, len(y)).astype(float)
    found = pooled(y, w)
    np.testing.assert_allclose(found, minimax(y, w), atol=1e-9)
    assert (np.diff(found) >= 0).all()


@pytest.mark.parametrize("rows", [1, 2, 50, 3000])
def test_steps_are_those_of_scikit_learn(rows):
    rng = np.random.default_rng(rows)
    x = np.round(rng.normal(size=rows), 2)  # with ties
    positive = rng.random(rows) < 1 / (1 + np.exp(-2 * x))
    least = 1 / (rows + 2)
    theirs = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(x, positive)
    at = np.linspace(-4, 4, 200)
    np.testing.assert_allclose(fit_steps(x, positive)(at), theirs.predict(at), atol=1e-6)
