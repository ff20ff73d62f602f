"""Sparse rows, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn.engine.csr import CSR, check_positive, select, stacked, summed, without_duplicates


def ours(X):
    return CSR(X.data, X.indices, X.indptr, X.shape)


@st.composite
def matrices(draw):
    """Rows with columns in any order, now and then one twice."""
    rows, width = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    counts = draw(st.lists(st.integers(0, 6), min_size=rows, max_size=rows))
    size = sum(counts)
    indices = draw(st.lists(st.integers(0, width - 1), min_size=size, max_size=size))
    values = draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), min_size=size, max_size=size))
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return sp.csr_matrix((np.array(values, float), np.array(indices, np.int32), indptr), shape=(rows, width))


@given(matrices(), st.data())
def test_rows_are_those_of_scipy(X, data):
    Z, rows = ours(X), data.draw(st.lists(st.integers(0, X.shape[0] - 1), max_size=5))
    assert Z.nnz == X.nnz and Z.dtype == X.dtype
    np.testing.assert_array_equal(Z.toarray(), X.toarray())
    np.testing.assert_array_equal(Z.to_scipy().toarray(), X.toarray())
    np.testing.assert_array_equal(Z.take(np.array(rows, int)).toarray(), X[rows].toarray())
    start = data.draw(st.integers(0, X.shape[0]))
    stop = data.draw(st.integers(start, X.shape[0]))
    np.testing.assert_array_equal(Z.between(start, stop).toarray(), X[start:stop].toarray())
    np.testing.assert_array_equal(
        Z.between(start, stop).take(np.arange(stop - start)).toarray(), X[start:stop].toarray()
    )


@given(matrices())
def test_duplicates_are_summed(X):
    Z = without_duplicates(ours(X))
    assert Z.unique
    for row in range(Z.shape[0]):
        columns = Z.indices[Z.indptr[row] : Z.indptr[row + 1]]
        assert len(set(columns)) == len(columns)
    np.testing.assert_array_equal(Z.toarray(), X.toarray())


def test_what_is_no_sound_matrix_is_refused():
    with pytest.raises(ValueError, match="row 1 has a value in column 3"):
        without_duplicates(CSR(np.ones(2), np.array([0, 3]), np.array([0, 1, 2]), (2, 3)))
    with pytest.raises(ValueError, match="indptr"):
        without_duplicates(CSR(np.ones(2), np.array([0, 1]), np.array([0, 2, 1]), (2, 3)))
    with pytest.raises(ValueError, match="row 1, column 2 holds -1"):
        check_positive(CSR(np.array([1.0, -1.0]), np.array([0, 2]), np.array([0, 1, 2]), (2, 3)), "Winnow")


@given(matrices(), st.data())
def test_columns_are_selected_added_cut_off_and_sorted(X, data):
    Z, width = ours(X), X.shape[1]
    wider = data.draw(st.integers(1, 2 * width))
    padded = np.hstack([X.toarray(), np.zeros((X.shape[0], width))])
    np.testing.assert_array_equal(Z.of_width(wider).toarray(), padded[:, :wider])
    kept = data.draw(st.lists(st.integers(0, width - 1), unique=True))
    new = np.full(width, -1)
    new[kept] = np.arange(len(kept))
    np.testing.assert_array_equal(select(Z, new, len(kept)).toarray(), X.toarray()[:, kept])
    ordered = Z.between(data.draw(st.integers(0, X.shape[0])), X.shape[0]).with_sorted_columns()
    for row in range(ordered.shape[0]):
        assert (np.diff(ordered.indices[ordered.indptr[row] : ordered.indptr[row + 1]]) >= 0).all()
    np.testing.assert_array_equal(ordered.toarray(), X.toarray()[X.shape[0] - ordered.shape[0] :])


@given(st.lists(matrices(), min_size=1, max_size=4))
def test_matrices_are_stacked(parts):
    width = max(X.shape[1] for X in parts)
    expected = np.vstack([np.pad(X.toarray(), ((0, 0), (0, width - X.shape[1]))) for X in parts])
    made = stacked([ours(X) for X in parts])
    assert made.indptr.dtype == made.indices.dtype == np.int32
    np.testing.assert_array_equal(made.toarray(), expected)


@given(matrices())
def test_matrices_of_users(X):
    np.testing.assert_array_equal(CSR.of(X).toarray(), X.toarray())
    np.testing.assert_array_equal(CSR.of(X.tocsc()).toarray(), X.toarray())
    dense = CSR.of(X.toarray())
    assert dense.nnz == np.count_nonzero(X.toarray())
    np.testing.assert_array_equal(dense.toarray(), X.toarray())
    assert np.shares_memory(CSR.of(X).data, X.data) or not X.nnz


def test_what_is_alone_is_not_changed_by_summing():
    made = summed(CSR(np.array([-0.0, 1.0, 2.0]), np.array([3, 1, 1]), np.array([0, 3]), (1, 10**18)))
    assert made.indices.tolist() == [1, 3] and str(made.data.tolist()) == "[3.0, -0.0]"
