"""Scores of many rows, and the best output of each, against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlearn.engine.scoring import best_outputs, linear_scores

# fewer rows than a tile, outputs that fill vectors and that do not, and more of them than are scored at once
SHAPES = [(1, 1, 2), (3, 5, 2), (5, 7, 3), (9, 3, 8), (101, 17, 20), (6, 2, 33), (11, 4, 50), (7, 3, 130)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_scores_and_the_first_of_the_highest(layout, dtype):
    """Small whole numbers, so that sums are exact in any order and ties are many."""
    rng = np.random.default_rng(0)
    for rows, features, outputs in SHAPES:
        X = rng.integers(-2, 3, (rows, features)).astype(dtype)
        w = rng.integers(-2, 3, (features, outputs)).astype(dtype)
        b = rng.integers(-1, 2, outputs).astype(dtype)
        w[-1] = 1.0
        scores, finite = linear_scores(layout(X), w, b)
        best, too = best_outputs(layout(X), w, b)
        assert finite and too
        assert scores.dtype == dtype
        np.testing.assert_array_equal(scores, X @ w + b)
        np.testing.assert_array_equal(best, np.argmax(X @ w + b, axis=1))
        for strange in (np.nan, np.inf, -np.inf):
            X[-1, -1] = strange
            assert not linear_scores(layout(X), w, b)[1]
            assert not best_outputs(layout(X), w, b)[1]


def test_weights_beyond_single_precision():
    X = np.ones((5, 3), dtype=np.float32)
    w = np.full((3, 4), 1e30) * np.arange(4)
    scores, finite = linear_scores(X, w, np.zeros(4))
    assert finite and scores.dtype == np.float64
    np.testing.assert_allclose(scores, X @ w)
    assert (best_outputs(X, w, np.zeros(4))[0] == 3).all()
