"""CSR rows: the same values and features as dense and SciPy rows, computed without SciPy and scikit-learn."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from kernels.examples import BOOLEAN, COMPOSITES, LEAVES, bits, rows
from onlearn import kernels
from onlearn.compiler import INTERPRETED
from onlearn.engine.csr import CSR
from onlearn.kernels import products, sparse_products

SCRIPT = """
import sys
import numpy as np
from onlearn import kernels
from onlearn.engine.csr import CSR

def imported():
    return sorted({name.partition(".")[0] for name in sys.modules} & {"scipy", "sklearn", "pandas"})

print("import", *imported())
dense = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
sparse = CSR(np.ones(4), np.array([0, 2, 1, 2], np.int32), np.array([0, 2, 4], np.int32), (2, 3))
for name in ("linear", "polynomial(3)", "gaussian(2)", "laplacian", "monomials", "subsets", "conjunctions(2)",
             "normalize(poly(2)) + 0.5*compose(gaussian, unit)"):
    k = kernels.get(name)
    for X in (dense, sparse):
        for Z in (dense, sparse):
            k(X, Z)
    k.block(k.quick_points(sparse), k.points(dense))
    kernels.unpack(*kernels.pack(k))
kernels.Polynomial(2).features(sparse)
kernels.pack_data(sparse)
words = kernels.Substrings(decay=0.5)
words(["ab", "abc" * 40, "bca" * 70])
words.merged(words.points(["ab", "bc"]), np.ones((2, 1))).scores(words.points(["abc"]))
print("values", *imported())
"""


def csr(X):
    X = sp.csr_matrix(X)
    return CSR(X.data, X.indices, X.indptr, X.shape)


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled, so Numba is imported, and that imports SciPy")
def test_kernels_need_neither_scipy_nor_scikit_learn():
    source = str(Path(kernels.__file__).parents[2])
    for _ in range(2):  # the first run compiles what is not in the cache yet, with Numba, which imports SciPy
        told = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=True,
        )
    assert told.stdout.split("\n") == ["import", "values", ""]


@pytest.mark.parametrize("name", LEAVES + COMPOSITES)
def test_values_are_those_of_scipy_rows(name):
    k, X, Z = kernels.get(name), rows(6), rows(5, seed=1)
    np.testing.assert_array_equal(k(csr(X), csr(Z)), k(sp.csr_matrix(X), sp.csr_matrix(Z)))
    np.testing.assert_array_equal(k(csr(X), Z), k(sp.csr_matrix(X), Z))


@pytest.mark.parametrize("name", ["linear", "polynomial(3)", "0.5*linear*poly(2)", "normalize(subsets)", *BOOLEAN])
def test_features_have_the_type_of_the_rows(name):
    k, X = kernels.get(name), bits(6, 5).astype(float)
    X[0] = 1.0
    made = k.features(csr(X))
    assert isinstance(made, CSR)
    np.testing.assert_array_equal(made.toarray(), k.features(sp.csr_matrix(X)).toarray())


def test_rows_need_not_be_in_order_nor_their_columns_unique():
    X = CSR(np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4]), (2, 3))
    dense = np.array([[2.0, 0.0, 1.0], [0.0, 7.0, 0.0]])
    for name in ("linear", "laplacian", "subsets"):
        np.testing.assert_allclose(kernels.get(name)(X), kernels.get(name)(dense))
    part = CSR(np.arange(9.0), np.arange(9) % 3, np.array([3, 6, 9]), (2, 3))  # the rows of a larger matrix
    np.testing.assert_array_equal(kernels.Linear()(part), kernels.Linear()(np.arange(3.0, 9.0).reshape(2, 3)))


def test_columns_beyond_the_width_are_refused():
    with pytest.raises(ValueError, match="column 3"):
        kernels.Linear()(CSR(np.ones(1), np.array([3]), np.array([0, 1]), (1, 3)))


def test_functions_of_users_get_scipy_rows():
    seen = []

    def doubled(X):
        seen.append(X)
        return X * 2

    X = rows(4)
    np.testing.assert_allclose(kernels.compose("linear", doubled)(csr(X)), 4 * X @ X.T)
    np.testing.assert_allclose(kernels.Callable(lambda x, z: (x @ z.T)[0, 0])(csr(X)), X @ X.T)
    assert sp.issparse(seen[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transposing_and_multiplying_as_scipy_does(dtype):
    X = sp.random(30, 50, 0.1, format="csr", random_state=0, dtype=dtype)
    turned, wanted = sparse_products.transposed(csr(X)), X.tocsc()
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(wanted, name))
    Z = np.random.default_rng(0).random((7, 50)).astype(dtype)
    out = np.empty((30, 7), dtype)
    sparse_products.by_rows(csr(X), Z, out)
    np.testing.assert_array_equal(out, X @ Z.T)  # to the last bit
    np.testing.assert_array_equal(products.dense_rows(csr(X)), X.toarray())
