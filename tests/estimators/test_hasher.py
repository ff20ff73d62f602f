"""Feature hashing: the same features in the same columns however they are given, and no bias."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

from onlearn import FeatureHasher
from onlearn.features.assemble import rows_of_names

DICTS = [{"a": 1, "b": 2.5, "colour": "red"}, {}, {"b": -1, "\u00e9t\u00e9 long name of more than eight bytes": 3}]
PAIRS = [
    [("a", 1), ("b", 2.5), ("colour=red", 1)],
    [],
    [["b", -1.0], ["\u00e9t\u00e9 long name of more than eight bytes", np.float32(3)]],
]


def same(A, B):
    return A.shape == B.shape and A.dtype == B.dtype and (A != B).nnz == 0


@pytest.mark.parametrize("signed", [True, False])
def test_dicts_pairs_and_named_rows_agree(signed):
    hasher = FeatureHasher(64, signed=signed)
    X = hasher.transform(DICTS)
    assert X.shape == (3, 64) and X.dtype == np.float32 and X.has_canonical_format
    assert same(X, hasher.transform(PAIRS))
    assert same(X, hasher.transform(rows_of_names(PAIRS)))
    assert same(X, hasher.transform(iter(DICTS)))
    towns = hasher.transform([{"town": "Bern", "age": 3.0}])
    for row in ({"town": np.str_("Bern"), "age": 3}, [("age", 3), ("town", "Bern")], [("age", 3), ("town=Bern", 1)]):
        assert same(towns, hasher.transform([row]))


def test_names_count_one_each_time():
    hasher = FeatureHasher(1 << 20, signed=False)
    X = hasher.transform([["a", "b", "a"], (), ("b",)])
    assert sorted(X[0].data) == [1, 2] and X[1].nnz == 0
    assert same(X, hasher.transform([[b"a", b"b", b"a"], [], [b"b"]]))
    assert same(X, hasher.transform([[("a", 2.0), ("b", True)], [], [("b", 1)]]))


def test_a_name_may_hold_a_zero_byte():
    hasher = FeatureHasher(1 << 20)
    X = hasher.transform([["a\0b"], ["a"], ["b"], ["\ud800"]])
    assert X.nnz == 4 and len(set(X.indices)) == 4


def test_long_rows_are_sorted_and_added_up_as_short_ones_are():
    names = [f"f{k}" for k in range(500)]
    hasher = FeatureHasher(40)
    whole = hasher.transform([names])
    single = hasher.transform([[name] for name in names])
    np.testing.assert_allclose(whole.toarray()[0], np.asarray(single.sum(axis=0))[0])
    assert (np.diff(whole.indices) > 0).all()


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_matrix, sp.dok_matrix, np.asarray])
def test_a_matrix_has_its_columns_hashed(make):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 100)) * (rng.random((20, 100)) < 0.3)
    hashed = FeatureHasher(16).fit_transform(make(X))
    columns = FeatureHasher(16).transform(np.eye(100)).toarray()
    np.testing.assert_allclose(hashed.toarray(), X @ columns, atol=1e-12)
    assert hashed.dtype == np.float64
    assert FeatureHasher(16).transform(X.astype(np.float32)).dtype == np.float32
    assert FeatureHasher(16, dtype="float32").transform(X).dtype == np.float32


def test_inner_products_have_no_bias_with_signs_and_have_without():
    rng = np.random.default_rng(0)
    x, z = rng.random((2, 60))
    found = {True: [], False: []}
    for seed in range(600):
        for signed, values in found.items():
            A = FeatureHasher(20, seed=seed, signed=signed).transform(np.array([x, z]))
            values.append((A @ A.T)[0, 1])
    for signed, values in found.items():
        off = (np.mean(values) - x @ z) / (np.std(values) / np.sqrt(len(values)))
        assert (abs(off) < 3) == signed


def test_columns_are_used_evenly_and_half_of_the_signs_are_minus():
    X = FeatureHasher(100).transform([[f"name {k}"] for k in range(20_000)])
    counts = np.bincount(X.indices, minlength=100)
    assert counts.min() > 150 and counts.max() < 255  # 200 expected, deviation 14
    assert abs(np.mean(X.data < 0) - 0.5) < 0.015


def test_hashes_do_not_change_between_versions():
    """A stored model relies on it."""
    X = FeatureHasher(1 << 20).transform([["wine", "red", "colour=red"]])
    assert X.indices.tolist() == [104778, 159890, 678388]
    assert X.data.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    ("X", "kind", "why"),
    [
        (["one text"], TypeError, "row 0 is one text"),
        (np.array(["one", "two"]), TypeError, "row 0 is one text"),
        ("text", TypeError, "list of rows"),
        ({"a": 1}, TypeError, "list of rows"),
        ([{"a": 1}, ["b"]], TypeError, "row 1 is a list"),
        ([["a"], {"b": 1}], TypeError, "row 1 is a dict"),
        ([["a"], "abc"], TypeError, "row 1 is a str"),
        ([["a"], [3]], TypeError, "row 1: a name must be a text"),
        ([[("a", 1)], [("b", b"x")]], TypeError, "row 1: the value of 'b'"),
        ([[("a", 1)], [("b", 1, 2)]], TypeError, "row 1 should hold pairs"),
        ([{"a": 1}, {"b": None}], TypeError, "row 1: the value of 'b'"),
        ([{"a": 1}, {}, {"c": 1, "b": float("nan")}], ValueError, "row 2: the value of 'b' is NaN"),
        ([{3: 1}], TypeError, "row 0: a name must be a text"),
        (np.array([[1.0, np.inf]]), ValueError, "infinity in row 0, column 1"),
        ([{"a": 1}, None], TypeError, "row 1 is None, but others"),
        ([float("nan"), {"a": 1}], TypeError, "row 0 is nan"),
        ([{"a": 1}, {"a": -(10**400)}], OverflowError, "row 1: the value of 'a' is too large"),
        ([{"a": 1}, {"a": 1e300}], OverflowError, "row 1: its values are too large for float32"),
        ([[("a", 3e38), ("a", 3e38)]], OverflowError, "row 0: its values are too large"),
        (pd.DataFrame({"colour": ["red"]}), ValueError, "X holds words"),
        (5, TypeError, "list of rows or a matrix"),
    ],
)
def test_bad_rows_are_named(X, kind, why):
    with pytest.raises(kind, match=why):
        FeatureHasher(8).transform(X)


def test_rows_are_counted_across_chunks():
    with pytest.raises(TypeError, match="row 150: the value of 'b'"):
        FeatureHasher(8).transform([{"a": 1}] * 150 + [{"a": 1, "b": [2]}])


@pytest.mark.parametrize(
    "settings", [dict(n_features=0), dict(n_features=2**31), dict(seed=-1), dict(dtype="int32"), dict(dtype=3)]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(ValueError, match="must be"):
        FeatureHasher(**settings).fit([["a"]])


@pytest.mark.parametrize("make", [pd.Series, pl.Series, pa.array, iter])
def test_a_column_of_rows_is_a_list_of_rows(make):
    for rows in ([{"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 1.0}], [["a"], ["b", "c"]]):
        expected = FeatureHasher(8).transform(rows).toarray()
        np.testing.assert_array_equal(FeatureHasher(8).fit_transform(make(rows)).toarray(), expected)


def test_an_empty_list_is_refused():
    for nothing in ([], (), iter(()), np.array([], dtype=object)):
        with pytest.raises(ValueError, match="X is empty: there are no rows to hash"):
            FeatureHasher(8).transform(nothing)
