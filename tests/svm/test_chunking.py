"""Chunking reaches the optimum of all rows with a part of them in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import kernels
from onlearn.data import read
from onlearn.engine.csr import CSR
from onlearn.svm import smo
from onlearn.svm.chunking import Slices, solve_in_chunks
from onlearn.svm.problem import KernelColumns, Limits, Problem


def as_classes(C):
    return lambda targets, weights: (targets, -np.ones(len(targets)), C * weights)


def as_numbers(C, epsilon=0.1):
    def variables(targets, weights):
        n = len(targets)
        signs = np.tile([1.0, -1.0], (n, 1))
        return signs, np.column_stack([epsilon - targets, epsilon + targets]), np.tile(C * weights, (2, 1)).T

    return variables


def full(kernel, X, variables, y, weights, bias, tol):
    signs, linear, upper = (np.asarray(v, float).reshape(len(y), -1) for v in variables(y, weights))
    examples = np.repeat(np.arange(len(y)), signs.shape[1])
    columns = KernelColumns(kernel, kernel.points(X), 1 << 24)
    return smo.solve(Problem(columns, examples, signs.ravel(), linear.ravel(), upper.ravel(), bias), Limits(tol=tol))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 2**31), st.integers(1, 120), st.sampled_from([1, 7, 40]), st.booleans(), st.booleans(),
    st.booleans(), st.sampled_from([0.01, 1.0, 30.0]),
)  # fmt: skip
def test_chunked_is_full(seed, n, chunk, bias, regression, in_order, C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    if not regression:
        y = np.where(y > 0.2, 1.0, -1.0)
    if in_order:  # all of one class, then all of the other
        X, y = X[np.argsort(y, kind="stable")], np.sort(y)
    weights = rng.choice([0.0, 1.0, 2.0], n)
    kernel, variables = kernels.get("gaussian(gamma=0.5)"), (as_numbers if regression else as_classes)(C)
    found = solve_in_chunks(kernel, Slices(X, y, weights, 13), variables, bias, Limits(tol=1e-5), chunk)
    whole = full(kernel, X, variables, y, weights, bias, 1e-5)
    assert found.stopped == "tol"
    assert found.violation <= 1e-5
    assert found.total == n
    assert abs(found.objective - whole.objective) <= 1e-4 * max(1.0, abs(whole.objective))
    scores = np.zeros(n)
    if len(found.numbers):
        assert np.array_equal(found.rows, X[found.numbers])
        scores = kernel(X, found.rows) @ found.coefficients
    signs = np.ones(n) if regression else y
    expected = signs * (whole.gradient.reshape(n, -1)[:, 0] + (y - 0.1 if regression else 1.0))
    assert np.allclose(scores, expected, atol=2e-2 * max(1.0, C))
    if whole.alpha.any() and ((whole.alpha > 0) & (whole.alpha < C)).any():
        assert abs(found.intercept - whole.intercept) < 1e-2


def test_memory_is_bounded():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.7, 1.0, -1.0)
    kernel = kernels.get("gaussian(gamma=0.5)")
    found = solve_in_chunks(kernel, Slices(X, y, size=100), as_classes(10.0), chunk=200)
    assert found.stopped == "tol"
    assert len(found.numbers) < 400
    assert found.most < 1200
    dropped = solve_in_chunks(kernel, Slices(X, y, size=100), as_classes(10.0), chunk=200, largest=50)
    assert len(dropped.numbers) <= 50
    assert dropped.stopped in ("tol", "iterations")


def test_sparse_rows_and_strings():
    rng = np.random.default_rng(2)
    dense = np.where(rng.random((200, 10)) < 0.3, rng.normal(size=(200, 10)), 0.0)
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=200))])
    sparse = CSR(dense[rows, columns], columns.astype(np.int32), indptr.astype(np.int32), dense.shape)
    y = np.where(dense.sum(axis=1) > 0, 1.0, -1.0)
    kernel = kernels.get("polynomial(2)")
    one, other = (solve_in_chunks(kernel, Slices(X, y), as_classes(1.0), chunk=50) for X in (dense, sparse))
    assert np.isclose(one.objective, other.objective, rtol=1e-3)
    words = ["spam", "spams", "pams", "eggs", "egg", "gegs"] * 5
    labels = np.array([1.0, 1, 1, -1, -1, -1] * 5)
    found = solve_in_chunks(kernels.get("substrings(1, 2)"), Slices(words, labels), as_classes(1.0), chunk=5)
    assert found.stopped == "tol"
    assert set(found.rows) <= set(words)


def test_stops():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 2)), rng.choice([-1.0, 1.0], 300)
    kernel = kernels.get("gaussian(gamma=2)")
    for limits, why in [(Limits(max_iter=20), "iterations"), (Limits(interrupted=lambda: True), "interrupt")]:
        found = solve_in_chunks(kernel, Slices(X, y), as_classes(10.0), limits=limits, chunk=50)
        assert found.stopped == why
        assert np.isfinite(found.coefficients).all()
        assert abs(found.coefficients.sum()) < 1e-9


def test_no_rows_and_a_source_that_changes():
    kernel = kernels.get("linear")
    assert solve_in_chunks(kernel, [], as_classes(1.0)).stopped == "tol"
    calls = []

    class Shrinking:
        def __iter__(self):
            calls.append(0)
            rng = np.random.default_rng(len(calls))
            for _ in range(3 if len(calls) == 1 else 2):
                X = rng.normal(size=(300, 2))
                yield X, np.sign(X[:, 0]), None

    with pytest.raises(ValueError, match="same rows"):
        solve_in_chunks(kernel, Shrinking(), as_classes(1.0), chunk=50)


def test_rows_of_a_file(tmp_path):
    """A source that reads a file again in each sweep: data need not fit into memory."""
    rng = np.random.default_rng(4)
    X = np.round(rng.normal(size=(500, 4)), 3)
    y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.7, 1.0, -1.0)
    lines = (f"{int(t)} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for t, x in zip(y, X, strict=True))
    (tmp_path / "some.svm").write_text("\n".join(lines) + "\n")

    class File:
        def __iter__(self):
            with read(tmp_path / "some.svm", batch_rows=64) as batches:
                for batch in batches:
                    rows = replace(batch.parsed, shape=(batch.parsed.shape[0], 5))  # a block may lack the last column
                    yield rows, batch.y.astype(float), batch.weight

    kernel = kernels.get("gaussian(gamma=0.5)")
    found = solve_in_chunks(kernel, File(), as_classes(1.0), limits=Limits(tol=1e-4), chunk=100)
    whole = full(kernel, X, as_classes(1.0), y, np.ones(500), True, 1e-4)
    assert found.stopped == "tol"
    assert found.total == 500
    assert np.isclose(found.objective, whole.objective, rtol=1e-4)
