"""Maps that learn from parts of the data are merged to the map of one reader, who is the oracle."""

from __future__ import annotations

import pickle
from itertools import pairwise

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
from onlearn.features.feature_map import MATRIX, NAMED, Strings
from onlearn.features.merging import apart, count_names, findings, merged, with_names
from onlearn.features.text import WEIGHTINGS
from onlearn.features.vocabulary import added_names


@feature
def initials(row):
    return [word[0] for word in (row["text"] or "").split()]


WORDS = np.array(["ab", "ac", "ad", "bo", "bu", "ca", "du", "é", "zz"])
SCHEMA = pa.schema([("text", pa.string()), ("kind", pa.string()), ("size", pa.float64())])


def table(rng, count, largest=1e200):
    """Rows with missing values here and there."""

    def some(values):
        return [None if rng.random() < 0.2 else value for value in values]

    columns = {
        "text": some(" ".join(rng.choice(WORDS, rng.integers(0, 7))) for _ in range(count)),
        "kind": some(rng.choice(["x", "y", "z", "long " * 60], count).tolist()),
        "size": some(rng.choice([-2.5, 0.0, 1.0, 3.0, largest], count).tolist()),
    }
    return pa.table(columns, SCHEMA)


def named_rows(rng, count):
    """Rows of features of two namespaces and of none, as a reader has them."""

    def part(prefix):
        pairs = [zip(rng.choice(list("abcdefgh"), 3), rng.choice([1.0, -1.0, 0.5, 0.0], 3)) for _ in range(count)]
        return rows_of_names(
            ([(str(name), value) for name, value in row][rng.integers(0, 4) :] for row in pairs), prefix
        )

    return side_by_side([part(prefix) for prefix in ("", "u^", "v^")])


def matrix(rng, count):
    return CSR.of(csr_matrix(rng.integers(-1, 2, (count, 10)).astype(float)))


SEEDS = st.integers(0, 10**9).map(np.random.default_rng)
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
CROSSES = st.lists(
    st.sampled_from([Interaction("text", "kind"), Interaction("size", "size"), Interaction()]), max_size=2
)


def extractors(numbers):
    return st.tuples(TEXTS, KINDS, numbers, st.just(initials), CROSSES).map(lambda one: [*one[:4], *one[4]])


NAMED_SETTINGS = st.sampled_from(["auto", [Interaction("u", "v")], [Interaction("u", "u"), Interaction()]])


def learn(features, rows, size):
    for start in range(0, rows_in(rows), size):
        features.learn(rows_between(rows, start, min(start + size, rows_in(rows))))


def cut(rows, ends):
    """The rows in shards, some of which may have none."""
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
            if exact and made.kind_ == NAMED:  # whose values do not depend on other rows
                moved = np.zeros((features.n_seen_, made.n_features_out_))
                own = cut(rows, places)[maps.index(features)]
                np.add.at(moved.T, places_of, features.transform(own).toarray().T.astype(float))
                np.testing.assert_allclose(moved, serial.transform(own).toarray(), rtol=1e-6)
    if not exact:
        assert base.vocabulary_.state == "grow" if base.has_vocabulary else True
        assert made.vocabulary_.state == "hash"
        known = with_names(base, parts)
        parts, _ = findings_of(cut(rows, places), known, size)
        made, _, now_exact = merged(known, parts)
        assert now_exact
        assert_same(made, serial, rows, True, rounded)
    if made.kind_ is not None:  # both learn on, from rows that had another order
        again = rows_at(rows, np.arange(rows_in(rows))[::2])
        learn(made, again, size)
        learn(serial, again, size)
        assert_same(made, serial, rows, True, rounded)
    return exact


def some_base(rng, given_extractors, rows):
    """A map that has learned nothing, or from some rows, and may have been pruned."""
    max_names, bits = int(rng.choice([0, 1, 5, 10, 20, 30, 60, 90, 1 << 20])), int(rng.choice([1, 3, 8]))
    base = FeatureMap(given_extractors, max_names=max_names, bits=bits)
    if rng.random() < 0.5:
        learn(base, rows, 7)
        if base.has_vocabulary and rng.random() < 0.5:
            kept = np.flatnonzero(rng.random(base.n_features_out_) < 0.5)
            base.keep(kept, [None, "drop", "hash"][rng.integers(3)])
    return base


def some_cuts(rng, count):
    return np.sort(rng.integers(0, count + 1, rng.integers(0, 5))).tolist()


@settings(max_examples=200)
@given(SEEDS, extractors(FIXED))
def test_tables(rng, given_extractors):
    base = some_base(rng, given_extractors, table(rng, rng.integers(0, 9)))
    rows = table(rng, rng.integers(1, 40))
    check(base, rows, some_cuts(rng, len(rows)), *rng.integers(1, 9, 2))


@given(SEEDS, extractors(RUNNING), st.sampled_from([10, 1 << 20]))
def test_tables_with_running_scales(rng, given_extractors, max_names):
    given_extractors = [one for one in given_extractors if not isinstance(one, Interaction)]  # sums may be 0 or not
    base = FeatureMap(given_extractors, max_names=max_names, bits=8)
    rows = table(rng, rng.integers(1, 40), largest=7.0)
    check(base, rows, some_cuts(rng, len(rows)), *rng.integers(1, 9, 2), rounded=True)


@settings(max_examples=200)
@given(SEEDS, NAMED_SETTINGS)
def test_named_rows(rng, given_extractors):
    base = some_base(rng, given_extractors, named_rows(rng, rng.integers(0, 9)))
    rows = named_rows(rng, rng.integers(1, 30))
    check(base, rows, some_cuts(rng, rows_in(rows)), *rng.integers(1, 9, 2))


@given(SEEDS, st.one_of(extractors(FIXED), NAMED_SETTINGS))
def test_parts_of_several_pieces(rng, given_extractors):
    """Pieces of the data are dealt to parts; the order of the pieces is that of one reader."""
    some_rows = table if len(given_extractors) > 2 and given_extractors != "auto" else named_rows
    base = some_base(rng, given_extractors, some_rows(rng, rng.integers(0, 9)))
    rows = some_rows(rng, rng.integers(1, 40))
    serial = pickle.loads(pickle.dumps(base))
    learn(serial, rows, 7)
    places = np.sort(rng.integers(0, rows_in(rows) + 1, rng.integers(2, 9))).tolist()
    count, pieces = rng.integers(1, 4), cut(rows, places)

    def found(base):
        parts = []
        for k in range(count):
            features, names = apart(pickle.loads(pickle.dumps(base))), []
            for piece in pieces[k::count]:
                learn(features, piece, 3)
                names.append(count_names(features))
            parts.append(findings(features, base, names))
        return pickle.loads(pickle.dumps(parts))

    order = [(number % count, number // count) for number in range(len(pieces))]
    parts = found(base)
    made, _, exact = merged(base, parts, order)
    assert_same(made, serial, rows, exact)
    if not exact:
        known = with_names(base, parts, order)
        made, _, exact = merged(known, found(known), order)
        assert exact
        assert_same(made, serial, rows)


def test_a_part_without_new_names_tells_that_others_have_no_place():
    base = FeatureMap([Category("kind")], max_names=2, bits=3)
    base.learn([{"kind": "a"}, {"kind": "b"}])
    part = apart(base)
    part.learn([{"kind": "a"}, {"kind": "c"}])
    made = merged(base, [findings(part, base)]).features
    assert (base.vocabulary_.state, made.vocabulary_.state, made.n_features_out_) == ("grow", "hash", 2 + 8)


@given(SEEDS)
def test_matrices(rng):
    base, rows = some_base(rng, "auto", matrix(rng, rng.integers(0, 9))), matrix(rng, rng.integers(1, 30))
    check(base, rows, some_cuts(rng, rows_in(rows)), *rng.integers(1, 9, 2))


def test_matrices_of_several_widths():
    base = FeatureMap()
    shards = [CSR.of(csr_matrix(np.eye(width))) for width in (3, 5, 4)]
    parts, _ = findings_of(shards, base, 9)
    made, numbers, exact = merged(base, parts)
    assert exact and made.n_features_out_ == 5 and made.n_seen_ == 12
    assert [one.tolist() for one in numbers] == [[*range(3)], [*range(5)], [*range(4)]]


def test_parts_without_rows():
    base = FeatureMap([Text("text")])
    nothing, full = findings(apart(base), base), apart(base)
    assert merged(base, []).features.kind_ is None and merged(base, [nothing, nothing]).features.kind_ is None
    full.learn({"text": ["a b", "b"]})
    made = merged(base, [nothing, findings(full, base), nothing])
    assert_same(made.features, full, {"text": ["a a", "b c"]})
    assert [len(one) for one in made.numbers] == [0, 3, 0]
    again = merged(full, [findings(apart(full), full)]).features
    assert_same(again, full, {"text": ["a a", "b c"]})
    empty = apart(full)
    empty.learn(pa.table({"text": pa.array([], pa.string())}))
    assert_same(merged(full, [findings(empty, full)]).features, full, {"text": ["a a", "b c"]})


def test_the_base_and_the_parts_stay_as_they_are():
    base = FeatureMap([Text("text"), Number("size")])
    learn(base, table(np.random.default_rng(0), 20, 9.0), 7)
    before = pickle.dumps(base)
    parts, _ = findings_of([table(np.random.default_rng(n), 20, 9.0) for n in (1, 2)], base, 7)
    copies = pickle.dumps(parts)
    made = merged(base, parts).features
    learn(made, table(np.random.default_rng(3), 20, 9.0), 7)
    assert pickle.dumps(base) == before and pickle.dumps(parts) == copies


def test_what_is_known_beforehand_is_not_sent():
    base = FeatureMap([Text("text", ngrams=(1, 1))])
    base.learn({"text": [" ".join(f"w{n}" for n in range(1000))]})
    features = apart(base)
    features.learn({"text": ["w1 w2 new"]})
    facts, arrays = findings(features, base)
    assert facts["names_before"] == 1000 and len(arrays["hashes"]) == 1 and bytes(arrays["pool"]) == b"new"
    assert arrays["documents"].dtype == np.uint8


@given(SEEDS, st.booleans())
def test_counts_for_dropping_rare_features(rng, per_class):
    rows, base = named_rows(rng, 40), FeatureMap()
    y = rng.integers(0, 3, 40)
    serial, counts = FeatureMap(), Counts()
    counts.add(serial.learn_transform(rows), y if per_class else None)
    ends = [0, *some_cuts(rng, 40), 40]
    parts, found = [], []
    for a, b in pairwise(ends):
        features, own = apart(base), Counts()
        labels = list(dict.fromkeys(y[a:b].tolist()))  # which have codes in their order in the shard
        if a < b:
            codes = np.array([labels.index(label) for label in y[a:b].tolist()])
            own.add(features.learn_transform(rows_between(rows, a, b)), codes if per_class else None)
        parts.append(findings(features, base))
        found.append((own, np.array(labels, np.int64) if per_class else None))
    made, numbers, _ = merged(base, parts)
    total = Counts()
    for (own, codes), places in zip(found, numbers):
        total.include(own, places, codes)
    assert total.classes.keys() == counts.classes.keys()
    for least in (1, 2, 5, 20):
        np.testing.assert_array_equal(total.often(least, per_class), counts.often(least, per_class))
    made.keep(total.often(3, per_class))
    serial.keep(counts.often(3, per_class))
    assert_same(made, serial, rows)


NUMBERS = st.lists(st.floats(-1e6, 1e6) | st.sampled_from([np.nan, 1e300, -7.25]), max_size=30)


def facts_of(values):
    facts = np.zeros(4)
    values = np.array(values, np.float64)
    values.flags.writeable = False
    update_facts(values[None], facts[None])
    return facts[None]


@given(NUMBERS, NUMBERS)
def test_facts_of_two_parts(first, second):
    made, serial = combined_facts(facts_of(first), facts_of(second)), facts_of(first + second)
    np.testing.assert_array_equal(made[:, [0, 3]], serial[:, [0, 3]])
    np.testing.assert_allclose(made, serial, rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(combined_facts(facts_of(first), facts_of([])), facts_of(first))
    np.testing.assert_array_equal(combined_facts(facts_of([]), facts_of(first)), facts_of(first))


def test_a_column_of_equal_numbers_stays_one():
    assert combined_facts(facts_of([0.1] * 7), facts_of([0.1] * 3)).tolist() == facts_of([0.1] * 10).tolist()


def test_more_namespaces_than_a_batch_can_have():
    rng = np.random.default_rng(0)
    serial, vocabulary = Vocabulary(), Vocabulary()
    for prefixes in np.array_split([f"{n}^" for n in range(100_000)], 4):
        hashes, groups = rng.integers(0, 1 << 63, len(prefixes)).astype(np.uint64), np.arange(len(prefixes))
        rows = rows_of_names([["x"] * len(prefixes)])
        rows = rows._replace(hashes=hashes, groups=groups.astype(np.uint32), prefixes=tuple(prefixes.tolist()))
        serial.learn(rows)
    np.testing.assert_array_equal(vocabulary.learn(added_names(*serial.added(0))), np.arange(100_000))
    assert vocabulary.names() == serial.names()


def test_many_names():
    rng = np.random.default_rng(0)
    batches = [rows_of_names([[f"name {n}" for n in rng.integers(0, 60_000, 30_000)]], "p:") for _ in range(4)]
    for max_names in (1 << 20, 40_000):
        serial, base = FeatureMap(max_names=max_names, bits=10), FeatureMap(max_names=max_names, bits=10)
        for rows in batches:
            serial.learn(rows)
        parts, maps = findings_of(batches, base, 1)
        made, numbers, _ = merged(base, parts)
        assert_same(made, serial, batches[0], exact=max_names > 40_000)
        for features, places, rows in zip(maps, numbers, batches):
            ids = features.vocabulary_.lookup(rows.hashes)
            np.testing.assert_array_equal(places[ids], serial.vocabulary_.lookup(rows.hashes))


def test_what_cannot_be_merged():
    base = FeatureMap()
    with pytest.raises(PlanError, match="only a FeatureMap can be merged"):
        apart(Strings("text"))
    named, texts, numbers = apart(base), apart(base), apart(base)
    named.learn(rows_of_names([["a"]]))
    texts.learn({"x": ["so it is", "and not that"]})
    numbers.learn({"x": [1.5, 2.5]})
    found = {one: findings(features, base) for one, features in zip("ntx", (named, texts, numbers))}
    with pytest.raises(DataError, match="some rows are named rows, others a table"):
        merged(base, [found["n"], found["t"]])
    with pytest.raises(PlanError, match="do not agree about the roles"):
        merged(base, [found["t"], found["x"]])
    with pytest.raises(PlanError, match="bits=22 are not those of the base"):
        merged(FeatureMap(bits=3), [found["n"]])
    with pytest.raises(ValueError, match="a part did not begin"):
        merged(named, [found["n"]])
    other = FeatureMap()
    other.learn(rows_of_names([["b"]]))
    with pytest.raises(ValueError, match="the features did not begin"):
        findings(named, other)
