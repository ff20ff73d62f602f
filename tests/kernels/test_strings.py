"""The substring kernel against counting all substrings, by every way there is to compute it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import onlearn
from onlearn import kernels
from onlearn.kernels import Substrings, Trees
from onlearn.kernels.string_pairs import by_table

SETTINGS = [(1, None, 1.0), (1, 3, 1.0), (2, None, 0.5), (2, 5, 0.7), (3, 3, 1.0), (1, None, 1.3), (70, None, 1.0)]


def substrings(x, low, high):
    """All of them, as often as they occur: the definition."""
    high = len(x) if high is None else min(high, len(x))
    return Counter(x[i : i + n] for n in range(low, high + 1) for i in range(len(x) - n + 1))


def by_definition(X, Z, low=1, high=None, decay=1.0):
    counted = [substrings(z, low, high) for z in Z]
    return np.array(
        [
            [sum(c * b[u] * decay ** (2 * len(u)) for u, c in a.items() if u in b) for b in counted]
            for a in (substrings(x, low, high) for x in X)
        ],
        dtype=float,
    ).reshape(len(X), len(Z))


def words(seed, lengths, letters="ab"):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), n)) for n in lengths]


MIXED = words(0, [0, 1, 2, 10, 63, 64, 65, 66, 90, 130, 200]) + ["", "a" * 64, "a" * 65, "ab" * 50, "c"]


@pytest.mark.parametrize(
    ("x", "z", "value"),
    [
        ("abab", "ab", 6),  # a: 2, b: 2, ab: 2
        ("aaa", "aa", 8),  # a: 3 * 2, aa: 2 * 1
        ("abc", "xyz", 0),
        ("", "abc", 0),
        ("", "", 0),
        ("statistics", "computation", 17),  # t: 6, a: 1, i: 2, c: 1, ta: 1, at: 1, ti: 2, tat: 1, ati: 1, tati: 1
    ],
)
def test_worked_examples(x, z, value):
    assert Substrings()([x], [z])[0, 0] == value == by_definition([x], [z])[0, 0]


@given(
    st.lists(st.text("ab", max_size=12), min_size=1, max_size=5),
    st.lists(st.text("abc", max_size=90), min_size=1, max_size=5),
    st.sampled_from(SETTINGS),
)
def test_equals_counting_all_substrings(X, Z, setting):
    k = Substrings(*setting)
    np.testing.assert_allclose(k(X, Z), by_definition(X, Z, *setting), rtol=1e-12)
    np.testing.assert_allclose(k(Z, X), by_definition(Z, X, *setting), rtol=1e-12)
    np.testing.assert_allclose(k.diag(Z), by_definition(Z, Z, *setting).diagonal(), rtol=1e-12)


@pytest.mark.parametrize("setting", SETTINGS)
def test_short_and_long_strings_in_one_block(setting):
    k, expected = Substrings(*setting), by_definition(MIXED, MIXED, *setting)
    np.testing.assert_allclose(k(MIXED), expected, rtol=1e-12)
    np.testing.assert_allclose(k(MIXED, list(MIXED)), expected, rtol=1e-12)
    np.testing.assert_allclose(k(MIXED[:4], MIXED[2:]), expected[:4, 2:], rtol=1e-12)
    np.testing.assert_allclose(k(MIXED[2:], MIXED[:4]), expected[2:, :4], rtol=1e-12)
    np.testing.assert_allclose(k.diag(MIXED), expected.diagonal(), rtol=1e-12)
    assert (k(MIXED) == k(MIXED).T).all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_table_automaton_and_merged_agree(setting):
    k = Substrings(*setting)
    X = words(1, [70, 300, 1000], "acgt")
    P = k.points(X)
    strings = P["strings"]
    upto = np.cumsum(k.weights(strings.longest))
    table = np.empty((3, 1))
    by_table(strings.text, 0, 70, strings.text, strings.starts, np.arange(3), upto, table)
    np.testing.assert_allclose(k(X)[0], table[:, 0], rtol=1e-12)
    np.testing.assert_allclose(k.merged(P, np.eye(3)).scores(P), k(X), rtol=1e-11)


@given(
    st.lists(st.text("ab", max_size=40), max_size=8),
    st.lists(st.text("abc", max_size=40), max_size=8),
    st.sampled_from(SETTINGS),
    st.integers(1, 3),
)
def test_merged_supports_equal_the_plain_sum(S, X, setting, outputs):
    k, coefs = Substrings(*setting), np.random.default_rng(len(S)).normal(size=(len(S), outputs))
    merged = k.merged(k.points(S), coefs)
    size = k(X, S) @ np.abs(coefs) if S else np.zeros((len(X), outputs))  # what rounding is measured by
    scores = merged.scores(k.points(X))
    assert scores.shape == (len(X), outputs)
    assert (np.abs(scores - k(X, S) @ coefs) <= 1e-12 * size + 1e-300).all()


def test_merged_takes_coefficients_of_one_output_flat_and_refuses_wrong_ones():
    k = Substrings()
    P = k.points(["ab", "b"])
    np.testing.assert_allclose(k.merged(P, [2, -1]).scores(k.points(["b", "ab", ""])), [[1], [5], [0]])
    with pytest.raises(ValueError, match="a row for each of the 2 strings"):
        k.merged(P, [1.0])
    with pytest.raises(ValueError, match="finite"):
        k.merged(P, [1.0, np.nan])
    with pytest.raises(TypeError, match="cannot be compared"):
        k.merged(P, [1.0, 2.0]).scores(k.points([b"ab"]))


def test_characters_are_code_points():
    X = ["naïve", "naive", "日本語", "日本", "😀😀", "e\u0301", "é", "\ud800", "a\0b"]
    np.testing.assert_array_equal(Substrings()(X), by_definition(X, X))
    long = [x * 40 for x in X]
    np.testing.assert_array_equal(Substrings(max_length=4)(long), by_definition(long, long, 1, 4))


def test_bytes_are_strings_too():
    X = [b"ab\xff\x00", b"", b"\xff" * 80, bytes(range(256))]
    np.testing.assert_array_equal(Substrings()(X), by_definition(X, X))
    np.testing.assert_array_equal(Substrings()(np.array(["ab", "b"])), [[3, 1], [1, 1]])


@given(st.lists(st.text("ab", max_size=8), max_size=6), st.lists(st.text("abc", max_size=9), max_size=6))
def test_features_are_what_the_kernel_multiplies(X, Z):
    for setting in [(1, None, 1.0), (2, 3, 0.5), (1, 2, 1.5)]:
        k = Substrings(*setting)
        own = k.features(X)
        np.testing.assert_allclose((own @ own.T).toarray(), k(X), rtol=1e-12)
        for v in (k.vocabulary(X), k.vocabulary(Z), k.vocabulary(X + Z)):
            product = k.features(X, v) @ k.features(Z, v).T
            np.testing.assert_allclose(product.toarray(), k(X, Z), rtol=1e-12)


def test_columns_of_features_have_names():
    k = Substrings(1, 2, decay=0.5)
    v = k.vocabulary(["aab"])
    assert v.names() == ["a", "b", "aa", "ab"] and len(v) == 4
    np.testing.assert_array_equal(
        k.features(["aab", "abc", ""], v).toarray(), [[1, 0.5, 0.25, 0.25], [0.5, 0.5, 0, 0.25], [0] * 4]
    )
    assert Substrings(2, 2).vocabulary([b"ab"]).names() == [b"ab"]
    with pytest.raises(TypeError, match="cannot be compared"):
        k.features([b"aab"], v)
    with pytest.raises(ValueError, match="choose a max_length"):
        Substrings().vocabulary(["a" * 20_000])


def test_points_are_taken_and_joined():
    k = Substrings()
    K, P = k(MIXED), k.points(MIXED)
    for rows in (
        [3, 1, 1],
        slice(2, 5),
        slice(None, None, -2),
        slice(5, 2),
        np.array([-1, 0]),
        np.array([], dtype=int),
    ):
        np.testing.assert_array_equal(k.block(P.take(rows), P), K[rows])
    both = P.take(slice(0, 5)).join([P.take([7]), P.take(slice(0, 0))])
    np.testing.assert_array_equal(k.block(both, both), K[np.ix_([0, 1, 2, 3, 4, 7], [0, 1, 2, 3, 4, 7])])
    out = np.full((len(MIXED), 2 * len(MIXED)), np.nan)
    k.block(P, P, out[:, : len(MIXED)])
    np.testing.assert_array_equal(out[:, : len(MIXED)], K)
    for wrong in (np.empty((2, 2)), np.empty(K.shape, np.float32), np.empty(K.shape, order="F")):
        with pytest.raises(ValueError, match="out must be float64 of shape"):
            k.block(P, P, wrong)


def test_a_table_of_one_column_is_that_column():
    import polars as pl

    k, texts = Substrings(), ["ab", "b", ""]
    tables = pd.DataFrame({"t": texts}), pl.DataFrame({"t": texts}), pa.table({"t": texts}), np.array(texts)[:, None]
    for table in (*tables, np.array(texts, dtype=object)[:, None]):
        np.testing.assert_array_equal(k(table), k(texts))


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (["a", None], r"string 1 is None"),
        (["a", "b", 3.5], r"string 2 is 3.5 \(float\)"),
        ([7], r"string 0 is 7 \(int\)"),
        (["a", b"a"], r"string 1 is bytes but string 0 is text"),
        ([b"a", "a"], r"string 1 is text .* but string 0 is bytes"),
        ("abc", r"a list of strings, not 'abc'"),
        (5, r"a list of strings, not 5"),
        ([["a"]], r"string 0 is \['a'\]"),
        ({"a": 1}, r"a list of strings, not \{'a': 1\}"),
        (np.array([["a", "b"]]), r"flat list of strings, .* its shape is \(1, 2\)"),
        (pd.DataFrame({"text": ["a", "b"], "more": 1}), r"one column of a table, but its shape is \(2, 2\)"),
        (pd.Series(["a", np.nan]), r"string 1 is nan \(float\)"),
    ],
)
def test_what_is_no_list_of_strings_is_named(X, sentence):
    with pytest.raises(TypeError, match=sentence):
        Substrings()(X)


def test_many_strings_are_their_parts():
    X = words(9, np.random.default_rng(0).integers(0, 70, 700))
    k = Substrings(1, 4)
    K = k(X)
    assert (K == K.T).all()
    np.testing.assert_array_equal(K[100:120], k(X[100:120], X))
    F = k.features(X)
    np.testing.assert_allclose((F @ F.T).toarray(), K)


def test_columns_of_tables_are_lists_of_strings():
    X = ["ab", "b", ""]
    for column in (pd.Series(X), np.array(X), np.array(X, dtype=object), pa.array(X), pa.chunked_array([X]), tuple(X)):
        np.testing.assert_array_equal(Substrings()(column), Substrings()(X))


def test_text_and_bytes_do_not_meet():
    k = Substrings()
    with pytest.raises(TypeError, match="decode or encode"):
        k(["a"], [b"a"])
    with pytest.raises(TypeError, match="decode or encode"):
        k.points(["a"]).join([k.points([b"a"])])
    assert k([], [b"a"]).shape == (0, 1)


@pytest.mark.parametrize(
    "wrong",
    [
        dict(min_length=0),
        dict(min_length=1.5),
        dict(max_length=2.5),
        dict(min_length=3, max_length=2),
        dict(decay=0),
        dict(decay=np.nan),
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match="substrings: "):
        Substrings(**wrong)


def test_parameters_print_compare_and_clone():
    k = Substrings(2, 5, decay=0.5)
    assert repr(k) == "substrings(min_length=2, max_length=5, decay=0.5)"
    assert clone(k) == k != Substrings() and hash(clone(k)) == hash(k)
    assert Substrings(max_length=np.int64(5)).max_length == 5
    assert k.data == "strings" and k.n_features(10) is None and k.points(["a"]).dtype == np.float64


def test_formulas_are_read_and_kernels_stored():
    k = kernels.get("0.5*substrings(1, 5, decay=0.5) + substrings(min_length=3)")
    assert k == 0.5 * Substrings(1, 5, 0.5) + Substrings(3) and kernels.get(repr(k)) == k
    assert kernels.unpack(*kernels.pack(k)) == k
    X = ["naïve", "", "\ud800b"]
    assert kernels.unpack_data(*kernels.pack_data(X)) == X
    np.testing.assert_allclose(k(X), 0.5 * Substrings(1, 5, 0.5)(X) + Substrings(3)(X))


def test_normalized():
    k = kernels.normalize(Substrings(2, 4, 0.5))
    K = k(["abab", "ba", "c" * 80])
    np.testing.assert_allclose(K.diagonal(), 1.0)
    assert 0 < K[0, 1] < 1 and K[0, 2] == 0
    for nothing in ("", "a"):  # too short to have a substring of length 2
        with pytest.raises(ValueError, match="row 1: an empty text, or one too short"):
            k(["ab", nothing])


def test_too_large_is_an_error_and_never_infinite():
    for length in (60, 200):
        k = Substrings(decay=1e10)
        for X in (["b", "a" * length], ["b", "a" * length] * 300):
            with pytest.raises(OverflowError, match="too large for float64 at row 1 by row 1: choose a smaller decay"):
                k(X)
        with pytest.raises(OverflowError, match="at row 1 by row 1"):
            k.diag(["b", "a" * length])
        with pytest.raises(OverflowError, match="too large"):
            k.merged(k.points(["a" * length]), [1.0]).scores(k.points(["a" * length]))
        assert k(["a" * length], ["ab"])[0, 0] == length * 1e20  # what is not shared does no harm
    assert np.isfinite(Substrings(decay=0.01)(["a" * 2000])).all()


@pytest.mark.parametrize("setting", SETTINGS)
def test_positive_semi_definite(setting):
    K = Substrings(*setting)(words(3, np.arange(30) * 4))
    assert np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1.0, np.trace(K))


def outcome():
    """What a process computes; run by ``test_interpreted_equals_compiled`` in another one."""
    X = words(5, [0, 5, 20, 66, 110])
    k = Substrings(1, 9, 0.8)
    P = k.points(X)
    return {
        "block": k(X, X[1:]).tolist(),
        "diagonal": k.diag(X).tolist(),
        "trees": Trees(decay=0.5)(
            ["(NP (D the) (N dog))", "(S (NP (D the) (N dog)) (VP (V saw) (NP (D the) (N cat))))"]
        ).tolist(),
        "merged": k.merged(P, np.arange(10.0).reshape(5, 2)).scores(P).tolist(),
    }


def test_interpreted_equals_compiled():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(Path(onlearn.__file__).parents[1])}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stderr
    interpreted = json.loads(done.stdout)
    for name, values in outcome().items():
        np.testing.assert_allclose(interpreted[name], values, rtol=1e-12)


if __name__ == "__main__":
    print(json.dumps(outcome()))
