"""``FeatureMap``, and that ``Features`` is a facade over it."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from onlearn.engine.csr import CSR
from onlearn.features import Category, FeatureMap, Features, Number, Text

ROWS = [{"c": "x", "n": 1.0, "t": "a b a"}, {"c": "y", "n": 3.0, "t": "b é"}, {"c": "x", "n": None, "t": ""}]
ALL = [Category("c"), Number("n"), Text("t", weighting="tfidf")]


def test_both_make_the_same_matrices():
    ours, public = FeatureMap(ALL), Features(ALL)
    for rows in (ROWS, ROWS[1:], ROWS[::-1]):
        made, X = ours.learn_transform(rows), public.learn_transform(rows)
        assert isinstance(made, CSR) and isinstance(X, sp.csr_matrix) and made.unique
        np.testing.assert_array_equal(made.toarray(), X.toarray())
        np.testing.assert_array_equal(ours.transform(ROWS).toarray(), public.transform(ROWS).toarray())
        assert X.has_canonical_format
    np.testing.assert_array_equal(ours.get_feature_names_out(), public.get_feature_names_out())
    (facts, a), (others, b) = ours.pack(), public._pack()
    assert facts == others and a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def test_an_unfitted_one_has_the_same_parameters():
    features = FeatureMap(ALL, max_names=7, bits=5, dtype="float64")
    features.learn(ROWS)
    fresh = features.unfitted()
    assert fresh.kind_ is None and repr(fresh) == repr(features)
    with pytest.raises(ValueError, match="not learned from any rows"):
        fresh.transform(ROWS)


def test_a_matrix_goes_through():
    X = sp.csr_array(np.eye(3))
    features = Features().fit(X)
    assert features.transform(X) is X and features.n_features_in_ == 3 and not hasattr(features, "feature_names_in_")
    assert features.transform(sp.csr_array(np.eye(4))).toarray().tolist() == np.eye(4)[:, :3].tolist()
    assert features.transform(sp.csr_matrix(np.eye(2))).shape == (2, 3)
    assert FeatureMap().learn_transform(np.eye(2)).toarray().tolist() == np.eye(2).tolist()


def test_copies_of_the_transformer():
    features = Features(ALL, max_names=9).fit(ROWS)
    expected = features.transform(ROWS).toarray()
    for other in (pickle.loads(pickle.dumps(features)), copy.deepcopy(features)):
        np.testing.assert_array_equal(other.transform(ROWS).toarray(), expected)
        assert list(other.feature_names_in_) == ["c", "n", "t"] and other.n_features_in_ == 3
    fresh = clone(features)
    assert fresh.get_params() == features.get_params() and not hasattr(fresh, "kind_")
    with pytest.raises(NotFittedError):
        fresh.transform(ROWS)


def test_parameters_cannot_change_while_it_learns():
    features = Features(ALL).fit(ROWS)
    with pytest.raises(ValueError, match="dtype was dtype"):
        features.set_params(dtype="float64").partial_fit(ROWS)
    assert features.transform(ROWS).dtype == np.float32
    assert features.fit(ROWS).transform(ROWS).dtype == np.float64


def test_sources_of_features():
    rows = [{"size": 1.5, "colour": "red", "note": "so it is"}, {"colour": "blue", "note": "it is not"}]
    features = FeatureMap([Number("size", "kept", "indicator"), Category("colour"), Text("note", ngrams=(1, 1))])
    features.learn(rows)
    codes, sources = features.sources_from(0)
    found = {features.name_of(k): sources[code] for k, code in enumerate(codes)}
    assert found["size"] == ("number", "size") and found["size=missing"] == ("flag", "size")
    assert found["colour=red"] == ("category", "colour") and found["note:it"] == ("text", "note")
    assert len(features.sources_from(3)[0]) == len(codes) - 3
    scaled = FeatureMap([Number("size")])
    scaled.learn(rows)
    codes, sources = scaled.sources_from(0)
    assert [sources[code] for code in codes] == [("scaled", "size")]


def test_kept_zeros_are_told_from_missing_values():
    made = FeatureMap([Number("size", "kept")]).learn_transform([{"size": 0.0}, {"size": None}, {"size": 2.0}])
    assert np.diff(made.indptr).tolist() == [1, 0, 1] and 0 < made.data[0] < 1e-30
