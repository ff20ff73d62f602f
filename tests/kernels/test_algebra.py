"""Composite kernels: values, positive semi-definiteness, shared products, formulas, parameters."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from sklearn.base import clone

from kernels.examples import BOOLEAN, COMPOSITES, LEAVES, rows, some_kernels
from onlearn import kernels
from onlearn.kernels import base, tiles
from onlearn.kernels.products import Vectors

X, Z = rows(6), rows(5, seed=1)


def linear(A, B):
    return A @ B.T


def gauss(A, B, sigma=1.0):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1) / (2 * sigma**2))


def unit(A):
    return A / np.linalg.norm(A, axis=1)[:, None]


VALUES = {
    "linear + gaussian(2)": lambda A, B: linear(A, B) + gauss(A, B, 2),
    "linear*gaussian": lambda A, B: linear(A, B) * gauss(A, B),
    "2.5*linear": lambda A, B: 2.5 * linear(A, B),
    "linear*2.5": lambda A, B: 2.5 * linear(A, B),
    "linear**3": lambda A, B: linear(A, B) ** 3,
    "linear + 1": lambda A, B: linear(A, B) + 1,
    "exp(linear)": lambda A, B: np.exp(linear(A, B)),
    "poly(linear, [1, 0, 3])": lambda A, B: 1 + 3 * linear(A, B) ** 2,
    "warp(gaussian, norm)": lambda A, B: gauss(A, B) * np.outer(*(np.linalg.norm(M, axis=1) for M in (A, B))),
    "warp(gaussian, sum)": lambda A, B: gauss(A, B) * np.outer(A.sum(1), B.sum(1)),
    "compose(gaussian, log1p)": lambda A, B: gauss(np.log1p(A), np.log1p(B)),
    "compose(linear, binary)": lambda A, B: linear((A != 0) * 1.0, (B != 0) * 1.0),
    "compose(linear, sign)": lambda A, B: linear(np.sign(A), np.sign(B)),
    "compose(linear, unit)": lambda A, B: linear(unit(A), unit(B)),
    "normalize(linear)": lambda A, B: linear(unit(A), unit(B)),
    "normalize(2*linear)*linear + exp(gaussian)": lambda A, B: (
        linear(unit(A), unit(B)) * linear(A, B) + np.exp(gauss(A, B))
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_value_is_the_formula(name):
    k, wanted = kernels.get(name), VALUES[name](X, Z)
    np.testing.assert_allclose(k(X, Z), wanted, rtol=1e-12)
    np.testing.assert_allclose(k(sp.csr_matrix(X), sp.csr_matrix(Z)), wanted, rtol=1e-12)
    np.testing.assert_allclose(k(X, sp.csr_matrix(Z)), wanted, rtol=1e-12)
    np.testing.assert_allclose(k.diag(X), np.diag(k(X)), rtol=1e-12)
    single = k(X.astype(np.float32), Z.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, wanted, rtol=1e-4, atol=1e-6)


def test_functions_of_the_users_own():
    k = kernels.warp("gaussian", lambda A: A[:, 0]) + kernels.compose("linear", lambda A: A**2)
    np.testing.assert_allclose(k(X, Z), gauss(X, Z) * np.outer(X[:, 0], Z[:, 0]) + linear(X**2, Z**2))
    lengths = kernels.compose("linear", lambda words: np.array([[len(w)] for w in words], dtype=float))
    np.testing.assert_array_equal(lengths(["ab", "c"]), [[4, 2], [2, 1]])


@pytest.mark.parametrize("bad", [lambda A: A, lambda A: A[:, 0] * np.nan, lambda A: np.ones(3)])
def test_a_factor_must_be_one_number_for_each_example(bad):
    with pytest.raises(ValueError, match="one finite number for each of the 6 examples"):
        kernels.warp("linear", bad)(X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "bad",
    [lambda A: A[:, 0] * 1j, lambda A: A[:, 0].astype(str), lambda A: ["x"] * 6, lambda A: [[1], [1, 2]], lambda A: {}],
)
def test_a_factor_that_is_no_number_is_named_with_its_function(bad):
    with pytest.raises(
        ValueError, match=r"<lambda> must give one finite number .* but gave something that is not a number"
    ):
        kernels.warp("linear", bad)(X)


def test_a_kernel_is_no_map_of_examples():
    for make in (kernels.compose, kernels.warp):
        with pytest.raises(TypeError, match="must be a function of examples, not a kernel"):
            make("linear", kernels.Gaussian())


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, pd.DataFrame, list])
def test_functions_of_the_users_own_leave_the_data_as_they_are(form):
    def doubled(A):
        if isinstance(A, list):
            A[0] = 2 * A[0]
        elif sp.issparse(A):
            A.data *= 2
        else:
            A *= 2
        return A

    data, k = form(X), kernels.compose("linear", doubled)
    if form is np.array:
        with pytest.raises(ValueError, match="phi must not change the examples, but <doubled> does: let it copy them"):
            k(data)
    else:
        k(data)
    whole = data.toarray() if sp.issparse(data) else np.asarray(data)
    np.testing.assert_array_equal(whole, X)


@given(some_kernels())
@settings(max_examples=60)
def test_the_algebra_keeps_kernels_kernels(k):
    data = rows(8, seed=2)
    K = k(data)
    scale = np.sqrt(np.outer(np.diag(K), np.diag(K)))
    assert k.always_psd
    assert kernels.is_psd(K / scale)
    np.testing.assert_allclose(K, K.T, rtol=1e-9)
    np.testing.assert_allclose(k.diag(data), np.diag(K), rtol=1e-9)
    np.testing.assert_allclose(k(sp.csr_matrix(data)), K, rtol=1e-9)


@given(some_kernels())
def test_the_formula_reads_back(k):
    again = kernels.get(str(k))
    assert again == k and hash(again) == hash(k) and str(again) == str(k)
    copy = clone(k)
    assert copy == k and copy is not k
    facts, arrays = kernels.pack(k)
    assert kernels.unpack(facts, arrays) == k


@given(some_kernels())
@settings(max_examples=20)
def test_tiles_change_nothing(k):
    A, B = rows(21, seed=3), rows(33, seed=4)
    whole = k(A, B)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "ROWS", 5)
        patch.setattr(tiles, "COLUMNS", 8)
        np.testing.assert_allclose(k(A, B), whole, rtol=1e-9)


@pytest.mark.parametrize(
    ("name", "products"),
    [
        ("linear + gaussian + poly(3)", 1),
        ("linear*linear + exp(linear)*normalize(linear)", 1),
        ("compose(linear + gaussian, log1p) + linear", 2),
        ("compose(linear, log1p) + compose(gaussian, log1p)", 1),
        ("gaussian", 1),
        ("laplacian", 0),
    ],
)
def test_products_are_computed_once_a_tile(name, products, monkeypatch):
    calls = []
    usual = Vectors.dots

    def dots(self, other, out):
        calls.append(out.shape)
        usual(self, other, out)

    monkeypatch.setattr(Vectors, "dots", dots)
    k = kernels.get(name)
    k(X, Z)
    assert len(calls) == products


def test_arrays_of_tiles_are_reused():
    """A sum of many parts needs two arrays of the size of a tile: the shared products, and one part."""
    made = []

    class Counting(tiles.TileArrays):
        def borrow(self, shape):
            if not self.free:
                made.append(shape)
            return super().borrow(shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "TileArrays", Counting)
        patch.setattr(tiles, "ROWS", 4)
        kernels.get("linear + gaussian + poly(3) + linear**2 + exp(linear)")(rows(40), Z)
    assert len(made) == 2


def test_different_kinds_of_data_do_not_mix():
    with pytest.raises(ValueError, match="precomputed works on matrix and linear on vectors"):
        kernels.Precomputed() + kernels.Linear()


def test_signs():
    k = kernels.Linear()
    assert k + 2 == 2 + k == kernels.poly(k, [2, 1])
    assert np.float64(2.0) * k == k * 2 == np.array(2.0) * k == k / 0.5 == kernels.Scale(k, 2.0)
    assert k + np.array(2) == k + 2
    assert kernels.exp("linear") == kernels.exp(k)
    for wrong in (lambda: k + "a", lambda: k * "a", lambda: k * np.ones(2), lambda: np.ones(2) + k, lambda: True * k):
        with pytest.raises(TypeError, match=r"by a number or a kernel|only a number or a kernel"):
            wrong()
    with pytest.raises(OverflowError, match="this one is too large"):
        10**400 * k
    with pytest.raises(ValueError, match="sigma must be"):
        kernels.Gaussian(sigma=10**400)
    for zero in (0, -1, np.nan):
        with pytest.raises(ValueError, match="divided by a number above 0"):
            k / zero
    for wrong in (lambda: k - k, lambda: k - 1, lambda: 1 - k, lambda: -k, lambda: 2 / k, lambda: k / k):
        with pytest.raises(TypeError, match=r"be a kernel|is not a kernel"):
            wrong()


def test_parameters_set_later_are_checked_and_take_effect():
    k = kernels.Polynomial(2)
    with pytest.raises(ValueError, match=r"a whole number of at least 1, not -3$"):
        k.degree = -3
    with pytest.raises(ValueError, match="below 2147483648"):
        k.degree = 2**40
    assert k == kernels.Polynomial(2)
    k.degree = 3
    assert k == kernels.Polynomial(3)
    counted = kernels.Conjunctions(2)
    counted.monotone = True
    np.testing.assert_array_equal(counted([[1, 1, 0]]), kernels.Conjunctions(2, monotone=True)([[1, 1, 0]]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: -1 * kernels.Linear(), "factor must be a finite number above 0"),
        (lambda: kernels.Linear() ** 0.5, "whole number of at least 1"),
        (lambda: kernels.Linear() ** 0, "whole number of at least 1"),
        (lambda: kernels.poly("linear", [1, -1]), "at least 0"),
        (lambda: kernels.poly("linear", [0, 0]), "not all 0"),
        (lambda: kernels.poly("linear", []), "not all 0"),
        (lambda: kernels.poly("linear", 3), "list of numbers"),
        (lambda: kernels.Linear() + -1, "at least 0"),
        (lambda: kernels.warp("linear", "nothing"), "'norm', 'sum'"),
        (lambda: kernels.compose("linear", 3), "must be a function"),
        (lambda: kernels.Polynomial(0), "degree must be a whole number"),
        (lambda: kernels.Polynomial(2.5), "degree must be a whole number"),
        (lambda: kernels.Polynomial(coef0=-1), "coef0 must be"),
        (lambda: kernels.Gaussian(0), "sigma must be"),
        (lambda: kernels.Gaussian(1e-200), "out of range"),
        (lambda: kernels.Gaussian(1, 1), "not both"),
        (lambda: kernels.Gaussian(np.nan), "sigma must be"),
        (lambda: kernels.Gaussian("wide"), "sigma must be"),
        (lambda: kernels.Conjunctions(0), "size must be"),
        (lambda: kernels.Conjunctions(2, exactly=3), "exactly must be True or False"),
        (lambda: kernels.exp(3), "a kernel must be"),
    ],
)
def test_bad_parameters_are_refused_with_a_reason(make, words):
    with pytest.raises((ValueError, TypeError), match=words):
        make()


@pytest.mark.parametrize("name", [*LEAVES, *COMPOSITES, *BOOLEAN])
def test_equal_kernels_are_equal(name):
    a, b = kernels.get(name), kernels.get(name)
    assert a == b and hash(a) == hash(b)
    assert a != kernels.Scale(b, 2.0) and a != "linear"


def test_parameters_of_inner_kernels():
    k = kernels.get("0.5*gaussian(2) + poly(2)")
    assert k.get_params()["k1__k__sigma"] == 2.0
    k.set_params(k1__k__sigma=5, k2__degree=7, k1__factor=2)
    assert str(k) == "2.0*gaussian(sigma=5.0) + polynomial(7)"
    k.set_params(k2="linear")
    assert str(k) == "2.0*gaussian(sigma=5.0) + linear"
    before = str(k)
    for wrong in (dict(k1__factor=3, k1__k__sigma=-1), dict(nothing=1), dict(k1__nothing=1), dict(k1__factor__x=1)):
        with pytest.raises(ValueError):
            k.set_params(**wrong)
        assert str(k) == before


def test_setting_a_parameter_leaves_other_holders_of_the_part_alone():
    part = kernels.Gaussian(2.0)
    k = part + kernels.Linear()
    k.set_params(k1__sigma=3.0)
    assert part.sigma == 2.0 and k.k1.sigma == 3.0


def test_nothing_added_changes_nothing():
    k = kernels.Gaussian()
    assert k + 0 is k and 0.0 + k is k
    assert str(sum([kernels.Linear(), k])) == "linear + gaussian"


def test_one_gaussian_has_three_spellings():
    assert kernels.Gaussian() == kernels.Gaussian(sigma=1) == kernels.Gaussian(gamma=0.5) != kernels.Gaussian(2)
    assert len({kernels.Gaussian(), kernels.Gaussian(sigma=1), kernels.Gaussian(gamma=0.5)}) == 1


def test_a_map_must_keep_the_number_of_examples():
    for phi, found in ((lambda A: A[:2], "but gave 2"), (lambda A: 3.0, "but gave one value")):
        k = kernels.compose("linear", phi)
        for work in (k, k.features):
            with pytest.raises(ValueError, match=f"one example for each of the 6 examples, {found}"):
                work(X)


def test_a_seed_is_a_whole_number():
    for seed in ("q", -1, 1.5, None):
        with pytest.raises(ValueError, match="seed must be a whole number of at least 0"):
            kernels.check_kernel("linear", X, seed=seed)


def test_a_tolerance_is_not_negative():
    for tol in (-1, np.nan, np.inf, "small"):
        with pytest.raises(ValueError, match="tol must be a number of at least 0"):
            kernels.is_psd(np.eye(2), tol=tol)
        with pytest.raises(ValueError, match="tol must be a number of at least 0"):
            kernels.check_kernel("linear", X, tol=tol)
