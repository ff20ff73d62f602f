"""Rows as users pass them in become the same numbers that scikit-learn makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.utils import check_array

from onlearn.engine.inputs import number_types, plain_table
from onlearn.kernels.products import numeric

X = np.array([[1.0, 0.0, 2.5], [0.0, -3.0, 4.0]])

INPUTS = {
    "array": X,
    "single": X.astype(np.float32),
    "half": X.astype(np.float16),
    "long double": X.astype(np.longdouble),
    "big endian": X.astype(">f8"),
    "by columns": np.asfortranarray(X),
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "int8": X.astype(np.int8),
    "uint64": np.abs(X).astype(np.uint64),
    "bool": X > 0,
    "objects": X.astype(object),
    "numerals": np.array([["1", "2.5"], ["3", "4"]], dtype=object),
    "lists": X.tolist(),
    "tuples": tuple(map(tuple, X.tolist())),
    "list of arrays": list(X.astype(np.float32)),
    "masked": np.ma.masked_array(X, X > 2),
    "no rows": X[:0],
    "csr": sp.csr_matrix(X),
    "csr array": sp.csr_array(X),
    "csr of ints": sp.csr_matrix(X.astype(int)),
    "csc": sp.csc_matrix(X.astype(np.float32)),
    "coo": sp.coo_matrix(X),
    "pandas": pd.DataFrame(X, columns=list("abc")),
    "pandas single": pd.DataFrame(X.astype(np.float32)),
    "pandas ints": pd.DataFrame(X.astype(int)),
    "pandas mixed": pd.DataFrame({"a": np.float32([1, 2]), "b": np.int8([1, 2]), "c": [True, False]}),
    "pandas small": pd.DataFrame({"a": np.float32([1, 2]), "b": np.int8([1, 2])}),
    "pandas nullable": pd.DataFrame({"a": pd.array([1, 2], "Int64"), "b": pd.array([0.5, 1.5], "Float32")}),
    "pandas bool": pd.DataFrame({"a": pd.array([True, False], "boolean"), "b": [1.5, 2.5]}),
    "pandas objects": pd.DataFrame({"a": [1, 2], "b": ["3", "4.5"]}, dtype=object),
    "pandas categories": pd.DataFrame({"a": pd.Categorical([1, 2]), "b": [1.5, 2.5]}),
    "pandas sparse": pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X)),
    "pandas arrow": pd.DataFrame(X).convert_dtypes(dtype_backend="pyarrow"),
    "a column named dtype": pd.DataFrame({"dtype": [1.0, 2.0], "dtypes": [3, 4]}),
    "polars": pl.DataFrame(X),
    "polars single": pl.DataFrame(X.astype(np.float32)),
    "polars mixed": pl.DataFrame({"a": [1, 2], "b": [True, False], "c": [0.5, 1.5]}),
    "pyarrow": pa.table({"a": [1, 2], "b": [0.5, 1.5]}),
}


@pytest.mark.parametrize("name", INPUTS)
def test_numbers_are_those_of_scikit_learn(name):
    given = INPUTS[name]
    plain = plain_table(given)
    wanted = check_array(
        plain, accept_sparse="csr", dtype=number_types(plain), order="C", ensure_all_finite=False, ensure_min_samples=0
    )
    made = numeric(given, "linear")
    assert made.dtype == wanted.dtype and made.shape == wanted.shape and sp.issparse(made) == sp.issparse(wanted)
    if sp.issparse(made):
        assert (made != wanted).nnz == 0 and made.has_canonical_format
    else:
        np.testing.assert_array_equal(made, wanted)
        assert made.flags.c_contiguous and type(made) is np.ndarray


def test_numbers_that_are_already_right_are_not_copied():
    assert numeric(X, "linear") is X
    S = sp.csr_matrix(X)
    assert numeric(S, "linear").data is S.data


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (X[0], ValueError, "Expected 2D array, got 1D array"),
        (3.0, ValueError, "Expected 2D array, got 0D array"),
        (X[None], ValueError, "Expected 2D array, got 3D array"),
        (pd.Series([1.0, 2.0]), ValueError, "Expected 2D array, got 1D array"),
        (X[:, :0], ValueError, r"0 feature\(s\)"),
        (pd.DataFrame(index=[0, 1]), ValueError, r"0 feature\(s\)"),
        (X * 1j, ValueError, "Complex data not supported"),
        (sp.csr_matrix(X * 1j), ValueError, "Complex data not supported"),
        (np.asmatrix(X), TypeError, "np.matrix is not supported"),
        ([[1.0, "a"]], ValueError, "could not convert string to float"),
        ([[1.0], [1.0, 2.0]], ValueError, "inhomogeneous"),
        (pd.DataFrame({"a": pd.array([1, None], "Int64")}), ValueError, "NaN in row 1, column 0"),
        ([[10**400]], OverflowError, "too large for float64"),
    ],
)
def test_what_is_refused(bad, error, words):
    with pytest.raises(error, match=words):
        numeric(bad, "linear")
