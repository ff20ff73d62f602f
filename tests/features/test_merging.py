"""Maps that learn from parts of the data are merged to the map of one reader, who is the oracle."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from onlearn.data import DataError
from onlearn.data.batch import rows_at, rows_between, rows_in
from onlearn.engine.csr import CSR
from onlearn.errors import PlanError
from onlearn.features import Category, Counts, FeatureMap, Interaction, Number, Text, Vocabulary, feature
from onlearn.features.assemble import rows_of_names, side_by_side
from onlearn.features.extractors import combined_facts, update_facts
from onlearn.features.feature_map import MATRIX, Strings
from onlearn.features.merging import apart, findings, merged, with_names
from onlearn.features.text import WEIGHTINGS


@feature
def initials(row):
    return [word[0] for word in (row["text"] or "").split()]


WORDS = st.lists(st.sampled_from("ab ac ad bo bu ca du é zz".split()), max_size=6).map(" ".join)
ROW = st.fixed_dictionaries(
    {
        "text": st.none() | WORDS,
        "kind": st.none() | st.sampled_from(["x", "y", "z", "long " * 60]),
        "size": st.none() | st.sampled_from([-2.5, 0.0, 1.0, 3.0, 1e200]),
    }
)
TABLES = st.lists(ROW, min_size=1, max_size=24).map(
    lambda rows: pa.Table.from_pylist(
        rows, pa.schema([("text", pa.string()), ("kind", pa.string()), ("size", pa.float64())])
    )
)
TEXTS = st.builds(
    Text, st.just("text"), ngrams=st.just((1, 2)), chars=st.sampled_from([None, (2, 2)]),
    weighting=st.sampled_from(WEIGHTINGS), norm=st.booleans(),
)  # fmt: skip
KINDS = st.builds(Category, st.just("kind"), missing=st.sampled_from(["absent", "indicator"]))
FIXED = st.builds(
    Number, st.just("size"), scale=st.sampled_from(["none", "log1p", "kept", "max-abs"]),
    missing=st.sampled_from(["absent", "zero", "indicator"]),
)  # fmt: skip
RUNNING = st.builds(Number, st.just("size"), scale=st.sampled_from(["standard", "log-standard"]))
CROSSES = st.lists(st.sampled_from([Interaction("text", "kind"), Interaction("size", "size"), Interaction()]), max_size=2)


def extractors(numbers):
    return st.tuples(TEXTS, KINDS, numbers, st.just(initials), CROSSES).map(lambda one: [*one[:4], *one[4]])


@st.composite
def named_rows(draw):
    """Rows of features of two namespaces and of none, as a reader has them."""
    names = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([1.0, -1.0, 0.5, 0.0])), max_size=4)
    rows = draw(st.lists(st.tuples(names, names, names), min_size=1, max_size=20))
    return side_by_side([rows_of_names(part, prefix) for part, prefix in zip(zip(*rows), ("", "u^", "v^"))])


NAMED_SETTINGS = st.sampled_from(["auto", [Interaction("u", "v")], [Interaction("u", "u"), Interaction()]])
MATRICES = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=20).map(
    lambda rows: CSR.of(csr_matrix([[float(k in row) for k in range(10)] for row in rows]))
)


def learn(features, rows, size):
    for start in range(0, rows_in(rows), size):
        features.learn(rows_between(rows, start, min(start + size, rows_in(rows))))


def cut(rows, places):
    ends = sorted(min(place, rows_in(rows)) for place in places)
    return [rows_between(rows, a, b) for a, b in zip([0, *ends], [*ends, rows_in(rows)])]


def findings_of(shards, base, size):
    """What maps find that learn from one shard each; also the maps."""
    maps = [apart(pickle.loads(pickle.dumps(base))) for _ in shards]
    for features, rows in zip(maps, shards):
        learn(features, rows, size)
    return [pickle.loads(pickle.dumps(findings(features, base))) for features in maps], maps


def assert_same(made, serial, rows, exact=True, rounded=False):
    """The maps are the same to the bit, but for means and variances if these are ``rounded``."""
    assert made.kind_ == serial.kind_ and made.n_seen_ == serial.n_seen_ and made.columns_ == serial.columns_
    assert made.extractors_ == serial.extractors_ and made.roles_ == serial.roles_
    if made.kind_ is None:
        return
    assert made.n_features_out_ == serial.n_features_out_
    if made.kind_ != MATRIX:
        (facts, arrays), (others, expected) = made.vocabulary_.pack(), serial.vocabulary_.pack()
        # once names have no place, one reader does not look at prefixes any more
        assert facts.pop("prefixes")[: len(others["prefixes"])] == others.pop("prefixes")
        assert facts == others and arrays.keys() == expected.keys()
        for key in arrays.keys() - (set() if exact else {"seen"}):
            np.testing.assert_array_equal(arrays[key], expected[key])
        assert made.vocabulary_.names() == serial.vocabulary_.names()
        assert made.extraction.rows == serial.extraction.rows
        np.testing.assert_array_equal(made.extraction.scales[:, [0, 3]], serial.extraction.scales[:, [0, 3]])
        np.testing.assert_allclose(made.extraction.scales, serial.extraction.scales, rtol=1e-9, atol=1e-300)
        if exact:
            width = serial.vocabulary_.width
            np.testing.assert_array_equal(made.extraction.documents[:width], serial.extraction.documents[:width])
    X, expected = made.transform(rows), serial.transform(rows)
    if exact and not rounded:
        np.testing.assert_array_equal(X.toarray(), expected.toarray())
    elif exact:
        np.testing.assert_allclose(X.toarray(), expected.toarray(), rtol=1e-5, atol=1e-6)


def check(base, rows, places, size, other_size, rounded=False):
    serial = pickle.loads(pickle.dumps(base))
    learn(serial, rows, other_size)
    parts, maps = findings_of(cut(rows, places), base, size)
    made, numbers, exact = merged(base, parts)
    inverse = made.has_vocabulary and made.extraction.documents.any()
    assert_same(made, serial, rows, exact, rounded)
    if not exact and not inverse:  # transforming needs the numbers only
        np.testing.assert_array_equal(made.transform(rows).toarray(), serial.transform(rows).toarray())
    for features, places_of in zip(maps, numbers):
        if features.has_vocabulary:
            assert len(places_of) == features.vocabulary_.width
            named = np.flatnonzero(places_of[: len(features.vocabulary_)] < len(made.vocabulary_))
            assert [made.name_of(places_of[k]) for k in named] == [features.name_of(k) for k in named]
            if exact and not inverse and not rounded:
                moved = np.zeros((features.n_seen_, made.n_features_out_))
                own = cut(rows, places)[maps.index(features)]
                np.add.at(moved.T, places_of, features.transform(own).toarray().T.astype(float))
                np.testing.assert_allclose(moved, serial.transform(own).toarray(), rtol=1e-6)
    if not exact:
        assert base.vocabulary_.state == "grow" if base.has_vocabulary else True
        assert made.vocabulary_.state == "hash"
        known = with_names(base, parts)
        parts, _ = findings_of(cut(rows, places), known, size)
        made, _, exact = merged(known, parts)
        assert exact
        assert_same(made, serial, rows, True, rounded)
    if made.kind_ is not None:  # both learn on, from rows that had another order
        again = rows_at(rows, np.arange(rows_in(rows))[::2])
        learn(made, again, size)
        learn(serial, again, size)
        assert_same(made, serial, rows, True, rounded)
    return exact


@st.composite
def bases(draw, given_extractors, rows):
    """A map that has learned nothing, or from some rows, and may have been pruned."""
    max_names, bits = draw(st.sampled_from([0, 1, 3, 6, 10, 20, 1 << 20])), draw(st.sampled_from([1, 3, 8]))
    base = FeatureMap(given_extractors, max_names=max_names, bits=bits)
    if draw(st.booleans()):
        learn(base, rows, 7)
        if base.has_vocabulary and draw(st.booleans()):
            kept = np.flatnonzero(draw(st.lists(st.booleans(), min_size=1, max_size=base.n_features_out_)))
            base.keep(kept, draw(st.sampled_from(["drop", None, "hash"])))
    return base


PLACES = st.lists(st.integers(0, 24), max_size=4)
SIZES = st.sampled_from([1, 2, 5, 100])


@settings(max_examples=150)
@given(st.data(), TABLES, extractors(FIXED), PLACES, SIZES, SIZES)
def test_tables(data, rows, given_extractors, places, size, other_size):
    base = data.draw(bases(given_extractors, data.draw(TABLES)))
    check(base, rows, places, size, other_size)


@given(st.data(), TABLES, extractors(RUNNING), PLACES, SIZES)
def test_tables_with_running_scales(data, rows, given_extractors, places, size):
    rows = rows.filter(pa.compute.fill_null(pa.compute.less(rows["size"], 1e100), True))
    given_extractors = [one for one in given_extractors if not isinstance(one, Interaction)]  # their sums may be 0
    base = FeatureMap(given_extractors, max_names=data.draw(st.sampled_from([6, 1 << 20])), bits=3)
    check(base, rows, places, size, size, rounded=True)


@settings(max_examples=150)
@given(st.data(), named_rows(), NAMED_SETTINGS, PLACES, SIZES, SIZES)
def test_named_rows(data, rows, given_extractors, places, size, other_size):
    check(data.draw(bases(given_extractors, data.draw(named_rows()))), rows, places, size, other_size)


@given(st.data(), MATRICES, PLACES, SIZES)
def test_matrices(data, rows, places, size):
    check(data.draw(bases("auto", data.draw(MATRICES))), rows, places, size, 3)
