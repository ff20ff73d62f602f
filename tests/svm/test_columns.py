"""Kernel rows, cached or not, are those of the kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import kernels
from onlearn.svm.columns import KernelColumns


def some(n=60, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, 5)) < 0.5, 0.0, rng.normal(size=(n, 5))).astype(dtype)


@settings(max_examples=30)
@given(st.data())
def test_rows_squares_and_sums(data):
    X = some()
    kernel = kernels.get(data.draw(st.sampled_from(["gaussian(gamma=1)", "polynomial(2)", "laplacian(gamma=1)"])))
    columns = KernelColumns(kernel, kernel.points(X), data.draw(st.sampled_from([0, 60 * 8 * 7, 1 << 20])))
    columns.most, columns.capacity = 3, data.draw(st.sampled_from([3, 9, 60]))
    columns.clear()
    K, n = kernel(X), len(X)
    numbers = st.lists(st.integers(0, n - 1), max_size=20)
    for _ in range(5):
        indices, subset = (np.array(data.draw(numbers), dtype=np.int64) for _ in range(2))
        assert np.allclose(columns.rows(indices), K[indices])
        assert np.allclose(columns.rows(indices, subset), K[np.ix_(indices, subset)])
        indices = indices[columns.cached_first(indices)]
        assert np.allclose(columns.square(indices), K[np.ix_(indices, indices)])
        amounts = np.arange(len(indices)) - 3.0
        for where in (None, np.unique(subset)):
            sums = np.ones(n if where is None else len(where))
            columns.window(where).add(sums, indices, amounts)
            assert np.allclose(sums, 1 + (amounts @ K[indices])[slice(None) if where is None else where])
        held = columns.slots >= 0
        assert np.array_equal(columns.owners[columns.slots[held]], np.flatnonzero(held))
        assert columns.nbytes <= columns.capacity * n * 8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fill(dtype):
    X = some(700)
    kernel = kernels.get("polynomial(3)")
    columns = KernelColumns(kernel, kernel.points(X), 1 << 24, dtype)
    assert columns.fill()
    assert columns.misses == 700
    assert np.allclose(columns.rows(np.arange(700)), kernel(X), rtol=1e-4 if dtype == np.float32 else 1e-12)
    assert columns.misses == 700
    assert columns.fill()
    small = KernelColumns(kernel, kernel.points(X), 1 << 16, dtype)
    assert not small.fill()


def test_precision_follows_the_range():
    X = some(20, dtype=np.float32)
    for scale, kernel, dtype in [
        (1.0, "polynomial(2)", np.float32),
        (1e12, "polynomial(2)", np.float64),
        (1e-9, "polynomial(4, coef0=0)", np.float64),
    ]:
        k = kernels.get(kernel)
        columns = KernelColumns(k, k.points((X * scale).astype(np.float32)), 1 << 20)
        assert columns.dtype == dtype
        assert np.isfinite(columns.rows(np.arange(20))).all()
        assert columns.rows(np.arange(20)).any()
    k = kernels.get("polynomial(9)")
    with pytest.raises(OverflowError, match="too large"):
        KernelColumns(k, k.points(some() * 1e30), 1 << 20)
