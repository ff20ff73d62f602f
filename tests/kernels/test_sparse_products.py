"""Products of rows that are mostly zeros: every way to compute them gives the plain product."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn import KernelClassifier
from onlearn.kernels import Polynomial, products
from onlearn.kernels.products import Thin, Vectors
from onlearn.kernels.sparse_products import Lines


def rows_of(seed, rows, width, dtype, share=0.3):
    rng = np.random.default_rng(seed)
    return (rng.integers(-9, 10, (rows, width)) * (rng.random((rows, width)) < share)).astype(dtype)


def thin(X):
    return Thin(Lines.of(X), X.shape[1], (X.astype(float) ** 2).sum(axis=1))


@given(
    seed=st.integers(0, 99),
    rows=st.integers(0, 9),
    others=st.integers(0, 120),
    width=st.integers(1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_all_ways_agree(seed, rows, others, width, dtype):
    """Small whole numbers, so that sums are exact in any order; nothing beside ``out`` is touched."""
    X, Z = rows_of(seed, rows, width, dtype), rows_of(seed + 1, others, width, dtype, share=0.7)
    forms = [lambda A: Vectors(A, np.zeros(len(A))), lambda A: Vectors(sp.csr_matrix(A), np.zeros(len(A))), thin]
    for one in forms:
        for other in forms:
            A, B = one(X), other(Z)
            for way in A._ways(B):
                room = np.full((rows, others + 4), 7, dtype)
                way(A, B, room[:, 2 : others + 2])
                np.testing.assert_array_equal(room[:, 2 : others + 2], X @ Z.T, err_msg=way.__name__)
                assert (room[:, :2] == 7).all() and (room[:, others + 2 :] == 7).all()


@given(
    seed=st.integers(0, 99),
    rows=st.integers(0, 9),
    width=st.integers(1, 40),
    share=st.sampled_from([0.0, 0.1, 0.9, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_zeros_are_left_out_and_nothing_else(seed, rows, width, share, dtype):
    X = rows_of(seed, rows, width, dtype, share)
    X[X == 9] = -0.0
    lines, plain = Lines.of(X), sp.csr_matrix(X)
    plain.eliminate_zeros()
    for got, expected in zip(lines, (plain.data, plain.indices, plain.indptr[:-1], plain.indptr[1:]), strict=True):
        np.testing.assert_array_equal(got, expected)


@given(seed=st.integers(0, 99), rows=st.integers(1, 9), width=st.integers(1, 40))
def test_rows_are_taken_and_joined(seed, rows, width):
    X = rows_of(seed, rows, width, np.float32)
    some = np.random.default_rng(seed).integers(0, rows, 5)
    np.testing.assert_array_equal(thin(X).take(some).X.toarray(), X[some])
    np.testing.assert_array_equal(thin(X).take(slice(1, 4)).X.toarray(), X[1:4])
    joined = thin(X).take(some).join([thin(X), Vectors(X, np.zeros(rows)), Vectors(sp.csr_matrix(X), np.zeros(rows))])
    np.testing.assert_array_equal(joined.X.toarray(), np.vstack([X[some], X, X, X]))


@pytest.mark.parametrize(("share", "expected"), [(0.2, Thin), (0.9, Vectors)])
def test_rows_are_made_thin_where_that_pays(share, expected):
    X = rows_of(0, 300, 300, np.float32, share)
    assert type(Polynomial(2).quick_points(X)["vectors"]) is expected


def test_a_learner_of_thin_rows_is_that_of_dense_ones(monkeypatch):
    """Whole numbers again: the same hypothesis, also when rows of another kind follow."""
    X = rows_of(3, 400, 200, np.float64, 0.2)
    y = (X[:, :7] @ np.arange(-3, 4) + X[:, 7] ** 2 > 9).astype(int)

    def learned():
        model = KernelClassifier("polynomial(2)", epochs=3, random_state=0).fit(X, y)
        return model.partial_fit(sp.csr_matrix(X[::-1]), y[::-1]).partial_fit(X + 1.0, y)

    quick = learned()
    assert isinstance(quick._training.supports.pieces[0]["vectors"], Thin)
    monkeypatch.setattr(products, "SMALL", np.inf)
    plain = learned()
    assert isinstance(plain._training.supports.pieces[0]["vectors"], Vectors)
    assert quick.n_mistakes_ == plain.n_mistakes_ and quick.n_support_ == plain.n_support_
    np.testing.assert_allclose(quick.decision_function(X), plain.decision_function(X), rtol=1e-9)


def test_sparse_rows_whose_numbers_are_apart_in_memory():
    X = sp.csr_matrix(rows_of(3, 40, 30, np.float64))
    apart = np.zeros((X.nnz, 2))
    apart[:, 0], apart[:, 1] = X.data, 99.0
    for data in (apart[:, 0], X.data[::-1].copy()[::-1]):
        strided = sp.csr_matrix((data, X.indices, X.indptr), shape=X.shape)
        points = Polynomial(2).quick_points(strided)
        np.testing.assert_array_equal(Polynomial(2).block(points, points), Polynomial(2)(X.toarray()))


def test_what_was_done_with_rows_before_does_not_change_how_they_are_multiplied():
    """Ways to multiply round differently, so the choice must not depend on which thread was first."""
    A, B = thin(rows_of(4, 50, 20, np.float64)), thin(rows_of(5, 30, 20, np.float64))
    before = A._ways(B)
    assert B.table.size and B.turned.shape and B.dense.size
    assert A._ways(B) == before
