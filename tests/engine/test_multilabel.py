"""Several labels a row: each label's learner is the same learner taught that label alone, to the last bit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn import model_file
from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.engine.multilabel import LabelSets, MultilabelLearner, check_indicator
from onlearn.engine.registry import parse_learner

MEMBERS = [
    "LogisticRegression(rate=0.3)",
    "AROW",
    "AveragedPerceptron(epochs=2)",
    "OnlineClassifier(class_weight='balanced')",
]


def sample(rows=80, features=6, labels=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.6)
    Y = X @ rng.normal(size=(features, labels)) > 0.4
    return X, Y


def alone(spelling, **more):
    given = parse_learner(spelling)
    return Learner(given.name, **{**given.get_params(), "random_state": 3, **more})


@pytest.mark.parametrize("spelling", MEMBERS)
def test_each_label_is_learned_as_if_alone(spelling):
    X, Y = sample()
    found = MultilabelLearner(learner=spelling, random_state=3).fit(X, Y)
    stream = MultilabelLearner(learner=spelling, random_state=3)
    for start in range(0, len(X), 17):
        stream.partial_fit(X[start : start + 17], Y[start : start + 17])
    for k in range(Y.shape[1]):
        fit, part = alone(spelling).fit(X, Y[:, k].astype(int)), alone(spelling)
        part.partial_fit(X, Y[:, k].astype(int), classes=[0, 1])
        for mine, other in ((found, fit), (stream, part)):
            np.testing.assert_array_equal(mine.decision_function(X)[:, k], other.decision_function(X))
            np.testing.assert_array_equal(mine.predict_proba(X)[:, k], other.predict_proba(X)[:, 1])
            np.testing.assert_array_equal(mine.coef_[k], other.coef_[0])
    np.testing.assert_array_equal(found.predict(X), found.predict_proba(X) > 0.5)
    assert stream.n_seen_ == len(X)
    assert stream.n_mistakes_ == sum(one.n_mistakes_ for one in stream.training.members)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.frozensets(st.integers(0, 4)), min_size=1, max_size=6), st.data())
def test_the_indicator_of_sets(sets, data):
    codes = np.array(data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=8)), dtype=np.int64)
    found = LabelSets([sorted(one) for one in sets]).indicator(codes, 5)
    expected = [[k in sets[code] for k in range(5)] for code in codes]
    assert found.tolist() == expected


def test_the_model_file_and_copies_go_on(tmp_path):
    X, Y = sample()
    learner = MultilabelLearner(learner="AROW", random_state=1, grow=True).partial_fit(X[:40], Y[:40])
    learner.save(tmp_path / "m.onl")
    again = model_file.load_learner(tmp_path / "m.onl")
    others = [again, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))]
    learner.partial_fit(X[40:], Y[40:])
    for other in others:
        other.partial_fit(X[40:], Y[40:])
        np.testing.assert_array_equal(other.decision_function(X), learner.decision_function(X))
        assert other.history_ == learner.history_
        assert other.get_params() == learner.get_params()


def test_new_labels_and_features_while_learning():
    X, Y = sample()
    learner = MultilabelLearner(learner="AROW", random_state=1, grow=True).partial_fit(X[:40, :4], Y[:40, :2])
    learner.partial_fit(X[40:], Y[40:])
    assert learner.predict(X).shape == (80, 4)
    late = alone("AROW", random_state=1, grow="features").partial_fit(X[:40, :4], np.zeros(40, int), classes=[0, 1])
    late.partial_fit(X[40:], Y[40:, 3].astype(int))
    np.testing.assert_array_equal(learner.decision_function(X)[:, 3], late.decision_function(X))
    with pytest.raises(ValueError, match="y has 3 labels"):
        MultilabelLearner().partial_fit(X, Y[:, :2]).partial_fit(X, Y[:, :3])


@pytest.mark.parametrize("spelling", MEMBERS)
def test_labels_that_come_late_are_learned_as_if_known_before(spelling):
    X, Y = sample()
    Y[:30, 2:] = False
    late = MultilabelLearner(learner=spelling, random_state=1, grow=True).partial_fit(X[:30], Y[:30, :2])
    late.partial_fit(X[30:], Y[30:])
    before = MultilabelLearner(learner=spelling, random_state=1, grow=True).partial_fit(X[:30], Y[:30])
    before.partial_fit(X[30:], Y[30:])
    np.testing.assert_array_equal(late.decision_function(X), before.decision_function(X))
    np.testing.assert_array_equal(late.predict_proba(X), before.predict_proba(X))


def test_labels_that_all_rows_have_or_none():
    X, Y = sample()
    Y[:, 0], Y[:, 1] = False, True
    found = MultilabelLearner(learner="LogisticRegression", random_state=0).fit(X, Y).predict(X)
    assert found[:, 0].mean() < 0.05
    assert found[:, 1].mean() > 0.95


def test_sparse_rows_and_an_order():
    X, Y = sample()
    sets, codes = np.unique(Y, axis=0, return_inverse=True)
    sparse = CSR.of(__import__("scipy.sparse", fromlist=["csr_matrix"]).csr_matrix(X))
    learner = MultilabelLearner(learner="AROW", random_state=3, grow=True)
    learner.sets = LabelSets([np.flatnonzero(one) for one in sets])
    counts = np.concatenate([[len(X)], Y.sum(axis=0)])
    learner._start(X.shape[1], counts, np.float64)
    order = np.random.default_rng(0).permutation(len(X))
    learner._learn_rows(sparse, codes.reshape(-1), None, order, first=True)
    plain = MultilabelLearner(learner="AROW", random_state=3).partial_fit(X[order], Y[order])
    np.testing.assert_allclose(learner.decision_function(sparse), plain.decision_function(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("y", [[1, 0], [[0, 2], [1, 0]], [["a"], ["b"]], [[0], [1], [1]], [[], []]])
def test_what_is_no_indicator(y):
    with pytest.raises(ValueError, match="y "):
        check_indicator(y, 2)


@pytest.mark.parametrize("learner", ["OnlineRegressor", "NaiveBayes", "Percepton", 3])
def test_learners_that_are_refused(learner):
    X, Y = sample()
    with pytest.raises((TypeError, ValueError), match="learner"):
        MultilabelLearner(learner=learner).fit(X, Y)
