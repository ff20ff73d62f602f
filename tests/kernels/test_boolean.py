"""Boolean kernels against enumeration: all conjunctions, all sets of columns."""

from __future__ import annotations

import re
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kernels.examples import BOOLEAN, bits
from onlearn import kernels
from onlearn.kernels.bits import Bits

pairs = st.integers(1, 7).flatmap(
    lambda n: st.tuples(*(arrays(np.int64, (3, n), elements=st.integers(0, 1)) for _ in range(2)))
)


def held(x, z, sizes, signs):
    """How many conjunctions of these sizes hold in both, one by one. A sign is the value that a literal wants."""
    return sum(
        all(x[c] == z[c] == sign for c, sign in zip(columns, wanted, strict=True))
        for size in sizes
        for columns in combinations(range(len(x)), size)
        for wanted in product(signs, repeat=size)
    )


def counted(f, X, Z):
    return np.array([[f(x, z) for z in Z] for x in X], dtype=float)


def test_examples_from_the_literature():
    assert kernels.Monomials()([[1, 1, 0, 0]], [[1, 1, 0, 1]]) == 8
    assert kernels.Monomials()([[0, 0, 1]], [[0, 1, 1]]) == 4


@given(pairs)
def test_monomials_are_all_conjunctions(pair):
    X, Z = pair
    n = X.shape[1]
    np.testing.assert_array_equal(
        kernels.Monomials()(X, Z), counted(lambda x, z: held(x, z, range(n + 1), (0, 1)), X, Z)
    )


@given(pairs, st.integers(1, 4), st.booleans(), st.booleans())
def test_conjunctions_are_those_of_a_size(pair, size, exactly, monotone):
    X, Z = pair
    sizes = [size] if exactly else range(size + 1)
    wanted = counted(lambda x, z: held(x, z, sizes, (1,) if monotone else (0, 1)), X, Z)
    np.testing.assert_array_equal(kernels.Conjunctions(size, exactly, monotone)(X, Z), wanted)


def test_the_table_of_very_wide_rows_comes_from_a_recurrence():
    """Summed afresh for every number of columns, it would take many minutes."""
    k = kernels.Conjunctions(2500, exactly=False)
    found = k.counts(5000)
    assert found[5000] == (2**5000 + comb(5000, 2500)) // 2 and found[4999] == 2**4998 + comb(4999, 2500)
    assert found[2500] == 2**2500 and found[2502] == 2**2502 - 2503
    assert kernels.Conjunctions(2500).counts(5000)[4999:] == [comb(4999, 2500), comb(5000, 2500)]
    assert k.table(5000)[0] == found[5000] / 2 ** (found[5000].bit_length() - 961)


@pytest.mark.parametrize("monotone", [False, True])
def test_conjunctions_up_to_a_size_are_counted(monotone):
    for width, size in ((1, 3), (5, 2), (9, 9), (6, 8)):
        wanted = sum(comb(width, n) * (1 if monotone else 2) ** n for n in range(size + 1))
        assert kernels.Conjunctions(size, exactly=False, monotone=monotone).n_features(width) == wanted


@given(pairs, st.booleans())
def test_subsets_are_all_sets_of_columns(pair, scaled):
    X, Z = (A * 1.5 if scaled else A for A in pair)  # no longer 0 and 1, so by multiplication

    def value(x, z):
        sets = (s for size in range(len(x) + 1) for s in combinations(range(len(x)), size))
        return sum(np.prod(x[list(s)]) * np.prod(z[list(s)]) for s in sets)

    wanted = counted(value, X, Z)
    for layout in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(kernels.Subsets()(layout(X), layout(Z)), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", BOOLEAN)
@pytest.mark.parametrize("width", [1, 63, 64, 65, 200])
def test_all_layouts_give_the_same(name, width, monkeypatch):
    X, Z = bits(9, width), bits(7, width, seed=1)
    k = kernels.get(name)
    wanted = k(X, Z)
    layouts = [bool, np.uint8, np.float64]
    for A, B in [*((X.astype(t), Z.astype(t)) for t in layouts), (sp.csr_matrix(X), sp.csr_matrix(Z).astype(float))]:
        np.testing.assert_array_equal(k(A, B), wanted)
    single = k(X.astype(np.float32), Z.astype(np.float32))
    np.testing.assert_allclose(single, wanted, rtol=1e-6)
    assert single.dtype == (
        np.float32 if (wanted.max() < 2.0**100 and name != "monomials") or width < 100 else np.float64
    )
    # Very wide sparse rows are not packed.
    monkeypatch.setattr("onlearn.kernels.bits.WIDE", 0)
    np.testing.assert_array_equal(k(sp.csr_matrix(X), sp.csr_matrix(Z)), wanted)
    np.testing.assert_array_equal(k(X, sp.csr_matrix(Z)), wanted)
    P, Q = k.points(X), k.points(sp.csr_matrix(X))
    np.testing.assert_array_equal(k.block(P.join([Q]), k.points(Z)), np.vstack([wanted, wanted]))
    np.testing.assert_array_equal(k.block(Q.join([P]), k.points(Z)), np.vstack([wanted, wanted]))


def test_bits_are_packed():
    view = kernels.Conjunctions(2).points(bits(5, 130))["ones"]
    assert isinstance(view, Bits)
    assert view.words.shape == (5, 3) and view.words.dtype == np.uint64


def test_joining_bits_with_numbers():
    k, X = kernels.Subsets(), bits(4, 5)
    R = np.random.default_rng(0).random((3, 5))
    joined = k.points(X).join([k.points(R)])
    np.testing.assert_allclose(k.block(joined, joined), k(np.vstack([X, R])), rtol=1e-12)


@pytest.mark.parametrize("width", [959, 1500, 4000])
def test_monomials_of_thousands_of_columns_are_scaled_by_one_power_of_two(width):
    """Ratios of values are those of the plain kernel, and nothing is infinite."""
    X = bits(4, width)
    X[1:, : width - 40] = X[0, : width - 40]  # rows that agree in most places
    same = (X[:, None] == X[None]).sum(-1)
    K = kernels.Monomials()(X)
    assert np.isfinite(K).all() and K.max() == 2.0 ** min(width, 960)
    np.testing.assert_array_equal(K / K.max(), 2.0 ** (same - width))
    np.testing.assert_allclose(kernels.normalize(kernels.Monomials())(X), 2.0 ** (same - width), rtol=1e-15)


def test_conjunctions_of_thousands_of_columns_are_scaled_by_one_power_of_two():
    X = bits(3, 3000)
    X[1:, :2990] = X[0, :2990]
    same = int((X[0] == X[1]).sum())
    k = kernels.Conjunctions(1500)
    K = k(X)
    assert np.isfinite(K).all() and 2.0**959 < K.max() < 2.0**961
    np.testing.assert_allclose(K[0, 1] / K[0, 0], comb(same, 1500) / comb(3000, 1500), rtol=1e-12)
    assert kernels.Conjunctions(3)(X)[0, 1] == comb(same, 3)  # small enough as it is


def test_scaled_values_are_not_added_to_others():
    X = bits(3, 3000)
    X[1:, :2990] = X[0, :2990]
    plain = kernels.Monomials()(X)
    for name in ("monomials + 1", "2*monomials + linear", "exp(monomials)", "normalize(monomials + conjunctions(1500))",
                 "compose(monomials + linear, binary)"):  # fmt: skip
        with pytest.raises(OverflowError, match=r"divided by 2\^2040.*normalize\(monomials\)"):
            kernels.get(name)(X)
        assert np.isfinite(kernels.get(name)(X[:, :8])).all()
    linear, cosine = kernels.Linear()(X), kernels.get("normalize(monomials)")(X)
    np.testing.assert_array_equal(kernels.get("monomials + 2*monomials")(X), 3 * plain)
    both = kernels.get("poly(linear*monomials, [0, 2]) + monomials")(X)
    np.testing.assert_array_equal(both, (2 * linear + 1) * plain)
    np.testing.assert_array_equal(kernels.get("normalize(monomials) + linear")(X), cosine + linear)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("normalize(monomials**2)", "normalize(monomials)**2"),
        ("normalize(2*monomials*monomials)", "2.0*normalize(monomials)*normalize(monomials)"),
        ("normalize(monomials + linear)", "normalize(monomials) + linear"),
        ("subsets**2", "normalize(subsets)**2"),
    ],
)
def test_of_kernels_that_are_too_large_the_part_is_named_and_helps(name, advice):
    X = np.ones((2, 3000))
    with pytest.raises((OverflowError, ValueError), match=rf"the part that grows so large: {re.escape(advice)}$"):
        kernels.get(name)(X)
    assert np.isfinite(kernels.get(advice)(X)).all()


def test_subsets_that_are_too_large_are_refused_but_normalise():
    X = bits(5, 4000)
    with pytest.raises(OverflowError, match=r"normalise the kernel: normalize\(subsets\)"):
        kernels.Subsets()(X)
    X[1:, :3990] = X[0, :3990]
    exponent = (X @ X.T) - (X.sum(1)[:, None] + X.sum(1)) / 2
    np.testing.assert_allclose(kernels.normalize("subsets")(X), 2.0**exponent, rtol=1e-12)
    R = X * 0.9
    logs = np.log1p(R[:, None] * R[None]).sum(-1)
    own = np.diag(logs) / 2
    wanted = np.exp(logs - own[:, None] - own)
    for layout in (np.asarray, sp.csr_matrix):
        np.testing.assert_allclose(kernels.normalize("subsets")(layout(R)), wanted, rtol=1e-9)


def test_subsets_of_numbers_that_vanish():
    np.testing.assert_array_equal(kernels.Subsets()([[-1.0, 2.0]], [[1.0, 5.0]]), [[0.0]])
    np.testing.assert_allclose(kernels.Subsets()([[-3.0, 2.0]], [[1.0, 5.0]]), [[-22.0]])
