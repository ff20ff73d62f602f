"""The kernels of rows of numbers against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from onlearn import kernels
from onlearn.kernels import products, tiles

FORMULAS = {
    "linear": lambda x, z: x @ z,
    "polynomial(1)": lambda x, z: x @ z + 1,
    "polynomial(2)": lambda x, z: (x @ z + 1) ** 2,
    "polynomial(3, coef0=0)": lambda x, z: (x @ z) ** 3,
    "polynomial(4, coef0=0.5, gamma=2)": lambda x, z: (2 * (x @ z) + 0.5) ** 4,
    "polynomial(7)": lambda x, z: (x @ z + 1) ** 7,
    "gaussian": lambda x, z: np.exp(-((x - z) @ (x - z)) / 2),
    "gaussian(3)": lambda x, z: np.exp(-((x - z) @ (x - z)) / 18),
    "gaussian(gamma=0.4)": lambda x, z: np.exp(-0.4 * ((x - z) @ (x - z))),
    "laplacian(0.7)": lambda x, z: np.exp(-0.7 * np.abs(x - z).sum()),
    "sigmoid(0.5, -1)": lambda x, z: np.tanh(0.5 * (x @ z) - 1),
}

matrices = st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 5)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, (shape[0], shape[2]), elements=st.floats(-3, 3)),
        arrays(np.float64, (shape[1], shape[2]), elements=st.floats(-3, 3)),
    )
)


def plain(name, X, Z):
    return np.array([[FORMULAS[name](x, z) for z in Z] for x in X])


@pytest.mark.parametrize("name", FORMULAS)
@given(matrices)
def test_value_is_the_formula(name, pair):
    X, Z = pair
    k = kernels.get(name)
    wanted = plain(name, X, Z)
    close = dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(k(X, Z), wanted, **close)
    for A in (X, sp.csr_matrix(X)):
        for B in (Z, sp.csr_matrix(Z)):
            np.testing.assert_allclose(k(A, B), wanted, **close)
    np.testing.assert_allclose(k.diag(X), np.diag(plain(name, X, X)), **close)


@pytest.mark.parametrize("name", FORMULAS)
def test_tiles_change_nothing(name, monkeypatch):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(37, 5)), rng.normal(size=(53, 5))
    k = kernels.get(name)
    whole = k(X, Z)
    monkeypatch.setattr(tiles, "ROWS", 8)
    monkeypatch.setattr(tiles, "COLUMNS", 16)
    np.testing.assert_allclose(k(X, Z), whole, rtol=1e-12)
    np.testing.assert_allclose(k(sp.csr_matrix(X), sp.csr_matrix(Z)), whole, rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_single_precision_stays(name, layout):
    rng = np.random.default_rng(1)
    X, Z = rng.random((20, 6), dtype=np.float32), rng.random((30, 6), dtype=np.float32)
    K = kernels.get(name)(layout(X), layout(Z))
    assert K.dtype == np.float32
    np.testing.assert_allclose(K, plain(name, X.astype(float), Z.astype(float)), rtol=2e-4, atol=1e-6)


@pytest.mark.parametrize("k", [kernels.Gaussian(), kernels.Bilinear(np.eye(2)), kernels.Callable(np.dot)])
def test_half_precision_becomes_single(k):
    assert k(np.ones((3, 2), np.float16)).dtype == k.diag(np.ones((3, 2), np.float16)).dtype == np.float32


def test_very_sparse_rows_meet_by_column():
    A, B = (sp.random(60, 3000, 0.01, format="csr", random_state=seed) for seed in (0, 1))
    costs = products.vectors(A, "test")._ways(products.vectors(B, "test"))
    assert min(costs, key=costs.__getitem__) is products._by_common_columns
    np.testing.assert_allclose(kernels.Linear()(A, B), (A @ B.T).toarray(), rtol=1e-12)
    np.testing.assert_allclose(kernels.Linear()(A, B.toarray()), (A @ B.T).toarray(), rtol=1e-12)
    np.testing.assert_allclose(kernels.Linear()(A.toarray(), B), (A @ B.T).toarray(), rtol=1e-12)


def test_repeated_entries_of_a_sparse_row_add_up():
    X = sp.csr_matrix((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert kernels.Linear()(X) == 9.0
    assert kernels.Laplacian(1.0)(X, [[0.0, 3.0, 0.0]]) == 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix])
def test_far_from_the_origin_gaussian_keeps_small_distances(dtype, layout):
    """|x|^2 + |z|^2 - 2 x.z would lose them."""
    far = dtype(1e4 if dtype == np.float32 else 1e9)
    X = np.array([[far, 0.0], [far + dtype(0.5 if dtype == np.float64 else 1.0), 0.0], [far, 1.0]], dtype=dtype)
    K = kernels.Gaussian()(layout(X))
    exact = X.astype(np.float64)
    wanted = np.exp(-((exact[:, None] - exact[None]) ** 2).sum(-1) / 2)
    np.testing.assert_allclose(K, wanted, rtol=1e-6)


def test_gaussian_falls_to_zero_and_no_further():
    K = kernels.Gaussian()([[0.0], [30.0], [1e200]])
    np.testing.assert_allclose(K[0], [1.0, np.exp(-450.0), 0.0], rtol=1e-13)


def test_points_are_taken_and_joined():
    rng = np.random.default_rng(2)
    for X in (rng.normal(size=(9, 4)), sp.csr_matrix(rng.normal(size=(9, 4)))):
        k = kernels.get("gaussian + normalize(poly(2)) + compose(linear, unit)")
        P = k.points(X)
        K = k(X)
        np.testing.assert_allclose(k.block(P.take([3, 1]), P.take(slice(2, 5))), K[[3, 1], 2:5], rtol=1e-12)
        joined = P.take([5]).join([P.take(slice(0, 2)), P.take([7])])
        assert len(joined) == 4
        np.testing.assert_allclose(k.block(joined, P), K[[5, 0, 1, 7]], rtol=1e-12)
        np.testing.assert_allclose(k.diagonal(joined), np.diag(K)[[5, 0, 1, 7]], rtol=1e-12)


def test_joining_dense_and_sparse_rows():
    k, X = kernels.Gaussian(), np.eye(3)
    P, Q = k.points(X), k.points(sp.csr_matrix(X))
    for joined in (P.join([Q]), Q.join([P])):
        np.testing.assert_allclose(k.block(joined, P), k(np.vstack([X, X]), X))


def test_out_is_filled_even_if_it_is_part_of_something_larger():
    k, X = kernels.Polynomial(4), np.random.default_rng(3).normal(size=(6, 3))
    P = k.points(X)
    room = np.zeros((8, 20))
    assert k.block(P, P, out=room[1:7, 5:11]) is not None
    np.testing.assert_allclose(room[1:7, 5:11], k(X))
    assert room[0].sum() == room[7].sum() == room[:, :5].sum() == room[:, 11:].sum() == 0
    with pytest.raises(ValueError, match="out must be float64 of shape"):
        k.block(P, P, out=np.empty((6, 5)))
    with pytest.raises(ValueError, match="out must be float64"):
        k.block(P, P, out=np.empty((6, 6), np.float32))


def test_no_rows_give_no_values():
    k = kernels.get("gaussian + linear")
    P = k.points(np.ones((4, 2)))
    assert k.block(P.take([]), P).shape == (0, 4)
    assert k.block(P, P.take(slice(0, 0))).shape == (4, 0)


def test_tables_of_other_libraries():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {"a": [1.0, 2.0], "b": [0.0, 3.0]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_allclose(kernels.Linear()(table), [[1, 2], [2, 13]])


@pytest.mark.parametrize(
    ("name", "X", "words"),
    [
        ("linear", [[1.0, np.nan]], "NaN in row 0, column 1"),
        ("linear", [[1.0], [np.inf]], "infinity in row 1"),
        ("gaussian", sp.csr_matrix([[0.0, np.nan]]), "NaN in row 0, column 1"),
        ("gaussian", [[10**400]], "a whole number that is too large for float64"),
        ("linear", [1.0, 2.0], "2D"),
        ("linear", ["ab", "c"], "not on strings"),
        ("linear", np.array(["ab"]), "not on strings"),
        ("linear", [["a", 1.0]], "could not convert"),
        ("polynomial(40)", [[1e20]], "too large for float64 at row 0"),
        ("exp(linear)", [[1e3]], "too large for float64"),
        ("polynomial(9)", np.full((1, 1), 1e5, np.float32), "or pass float64"),
        ("normalize(linear)", [[1.0], [0.0]], "row 1"),
        ("normalize(exp(linear))", [[1e3]], "cannot be normalised"),
        ("compose(linear, unit)", [[1.0], [0.0]], "row 1"),
        ("compose(linear, log1p)", [[1.0], [-1.0]], "above -1"),
        ("monomials", [[0, 2]], "holds 2"),
        ("conjunctions(2)", sp.csr_matrix([[0, 0.5]]), "holds 0.5"),
    ],
)
def test_bad_data_are_refused_with_a_reason(name, X, words):
    with pytest.raises((ValueError, TypeError, OverflowError), match=words):
        kernels.get(name)(X)


def test_widths_must_agree():
    for name in ("linear", "laplacian", "monomials", "subsets"):
        with pytest.raises(ValueError, match="2 columns on one side and 3 on the other"):
            kernels.get(name)([[0.0, 1.0]], [[0.0, 1.0, 1.0]])


def test_the_diagonal_that_is_too_large_is_refused():
    with pytest.raises(OverflowError, match="row 1"):
        kernels.Polynomial(100).diag([[1.0], [1e9]])


def test_the_diagonal_is_of_the_precision_of_the_values():
    few, large = np.array([[1, 2]], dtype=np.float32), np.array([[1], [1e30]], dtype=np.float32)
    for name in ("linear", "gaussian", "monomials", "subsets + poly(2)"):
        data = few > 1 if name == "monomials" else few
        k = kernels.get(name)
        assert k.diag(np.asarray(data, np.float32)).dtype == k(np.asarray(data, np.float32)).dtype == np.float32
    for work in (kernels.Linear(), kernels.Linear().diag):
        with pytest.raises(OverflowError, match=r"too large for float32 at row 1.*pass float64"):
            work(large)
