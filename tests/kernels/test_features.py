"""<phi(x), phi(z)> = k(x, z), wherever phi can be written down."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from kernels.examples import BOOLEAN, bits, rows
from onlearn import kernels

FINITE = [
    "linear",
    "bilinear([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])",
    *(f"polynomial({d}, coef0={c}, gamma=0.7)" for d in (1, 2, 3, 4, 5) for c in (0, 0.5)),
    "subsets",
    "0.5*linear + poly(2)",
    "linear*poly(2)",
    "(linear + subsets)**3",
    "poly(linear, [0, 1, 0, 2])",
    "poly(poly(2), [1, 1])",
    "normalize(poly(3))",
    "normalize(subsets)",
    "warp(linear, norm)",
    "compose(poly(2), log1p)",
]


@pytest.mark.parametrize("name", FINITE)
def test_inner_products_of_the_features(name):
    k, X, Z = kernels.get(name), rows(6), rows(5, seed=1)
    check(k, X, Z)


@pytest.mark.parametrize("name", BOOLEAN)
def test_inner_products_of_boolean_features(name):
    check(kernels.get(name), bits(6, 7), bits(5, 7, seed=1))


def check(k, X, Z):
    wanted = k(X, Z)
    for A in (X, sp.csr_matrix(X)):
        for B in (Z, sp.csr_matrix(Z)):
            F, G = k.features(A), k.features(B)
            assert F.shape == (len(X), k.n_features(X.shape[1]))
            product = F @ G.T
            np.testing.assert_allclose(product.toarray() if sp.issparse(product) else product, wanted, rtol=1e-10)
    single = k.features(X.astype(np.float32))
    assert single.dtype == np.float32


def test_sparse_rows_have_sparse_features():
    assert sp.issparse(kernels.Polynomial(2).features(sp.csr_matrix(rows(4))))
    assert sp.issparse(kernels.get("linear*linear").features(sp.csr_matrix(rows(4))))


def test_a_map_of_the_users_own():
    k = kernels.compose("linear", lambda X: np.hstack([X, X**2]))
    X = rows(5)
    np.testing.assert_allclose(k.features(X) @ k.features(X).T, k(X))
    assert k.n_features(3) is None


@pytest.mark.parametrize("name", ["gaussian", "exp(linear)", "linear + laplacian", "sigmoid", "precomputed"])
def test_infinite_maps_are_refused(name):
    k = kernels.get(name) if name != "precomputed" else kernels.Precomputed()
    assert k.n_features(3) is None
    with pytest.raises(ValueError, match="no finite list of features"):
        k.features(rows(3))


@pytest.mark.parametrize(
    ("name", "width", "count"),
    [
        ("monomials", 30, "205,891,132,094,649"),
        ("subsets", 300, r"about 10\^90"),
        ("polynomial(6)", 784, "331,256,760,734,005"),
        ("conjunctions(6)", 200, "5,"),
        ("linear**5", 100, "10,000,000,000"),
        ("poly(linear, [1, 1, 1, 1])", 1000, "1,001,001,001"),
        ("monomials", 20000, r"about 10\^9542 "),
    ],
)
def test_sizes_that_cannot_be_are_refused_with_the_number(name, width, count):
    with pytest.raises(ValueError, match=f"{width} columns has {count}"):
        kernels.get(name).features(np.zeros((2, width)))


def test_conjunctions_of_more_columns_than_there_are():
    assert kernels.Conjunctions(4).n_features(3) == 0
    assert (kernels.Conjunctions(4)(np.eye(3)) == 0).all()
    assert kernels.Conjunctions(4).features(np.eye(3)).shape == (3, 0)
    k = kernels.Linear() + 0.5 * kernels.Conjunctions(4)  # of which one part adds no features
    assert k.n_features(3) == 3
    np.testing.assert_array_equal(k.features(np.eye(3)), np.eye(3))
