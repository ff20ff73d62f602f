"""``MultilabelClassifier`` in scikit-learn's manners, against its one-vs-rest of the same learners."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import onlearn
from onlearn import MultilabelClassifier

X, Y = make_multilabel_classification(300, 12, n_classes=4, n_labels=2, random_state=0)
NAMES = np.array(["earth", "fire", "air", "water"])
LISTS = [NAMES[row.astype(bool)].tolist() for row in Y]


@pytest.mark.parametrize("member", [onlearn.LogisticRegression(random_state=0), onlearn.AROW(random_state=0)])
def test_it_is_one_vs_rest_of_the_same_learner(member):
    found = MultilabelClassifier(member, random_state=0).fit(X, Y)
    peer = OneVsRestClassifier(member).fit(X, Y)
    np.testing.assert_array_equal(found.predict(X), peer.predict(X))
    np.testing.assert_allclose(found.decision_function(X), peer.decision_function(X), rtol=1e-12)
    assert found.score(X, Y) == peer.score(X, Y)


def test_matrices_and_lists_are_the_same():
    dense = MultilabelClassifier("AROW", random_state=0).fit(X, Y)
    sparse = MultilabelClassifier("AROW", random_state=0).fit(sp.csr_matrix(X), sp.csr_matrix(Y))
    lists = MultilabelClassifier("AROW", random_state=0).fit(X, LISTS)
    assert dense.classes_.tolist() == [0, 1, 2, 3]
    assert lists.classes_.tolist() == sorted(NAMES)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(X))
    order = np.argsort(NAMES)
    np.testing.assert_array_equal(lists.predict_proba(X), dense.predict_proba(X)[:, order])
    expected = [sorted(NAMES[row.astype(bool)].tolist()) for row in dense.predict(X)]
    assert lists.predict(X).tolist() == expected
    assert lists.score(X, LISTS) == dense.score(X, Y)
    assert lists.predict_one(X[0]) == expected[0]
    assert lists.score_one(X[0]).keys() == {*NAMES}


def test_streams_with_labels_that_come_late():
    given = MultilabelClassifier("AROW", random_state=0).partial_fit(X[:100], LISTS[:100], classes=NAMES)
    given.partial_fit(X[100:], LISTS[100:])
    first = [[label for label in labels if label != "water"] for labels in LISTS[:100]]
    late = MultilabelClassifier("AROW", random_state=0, grow=True).partial_fit(X[:100], first)
    late.partial_fit(X[100:], LISTS[100:])
    assert late.classes_.tolist() == ["air", "earth", "fire", "water"]
    np.testing.assert_array_equal(late.predict_proba(X)[:, :3], given.predict_proba(X)[:, :3])
    with pytest.raises(ValueError, match="classes must name all labels"):
        MultilabelClassifier().partial_fit(X, LISTS)
    with pytest.raises(ValueError, match="'void', which was not among"):
        given.partial_fit(X[:1], [["void"]])


def test_the_manners_of_scikit_learn(tmp_path):
    model = MultilabelClassifier("AROW(r=0.5)", random_state=0)
    assert (
        clone(model).get_params()
        == model.get_params()
        == {
            "learner": "AROW(r=0.5)",
            "grow": False,
            "random_state": 0,
        }
    )
    assert cross_val_score(make_pipeline(StandardScaler(), model), X, Y, cv=3).mean() > 0.3
    search = GridSearchCV(model, {"learner": ["AROW", "LogisticRegression"]}, cv=2).fit(X, Y)
    assert search.best_score_ > 0.2
    model.fit(X, LISTS)
    model.save(tmp_path / "m.onl")
    for other in (pickle.loads(pickle.dumps(model)), onlearn.load(tmp_path / "m.onl")):
        assert isinstance(other, MultilabelClassifier)
        assert other.predict(X).tolist() == model.predict(X).tolist()
        assert other.classes_.tolist() == model.classes_.tolist()
        assert other.partial_fit(X[:5], LISTS[:5]).n_seen_ == model.n_seen_ + 5
    with pytest.raises(ValueError, match="11 features"):
        model.predict(X[:, :11])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X[0, 0] == X, np.nan, X), Y)
    with pytest.raises(ValueError, match="nothing but 0 and 1"):
        model.fit(X, 2 * Y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.fit(X[:5], Y)
    weight = np.zeros(300)
    weight[:200] = 1
    weighted = clone(model).fit(X, Y, sample_weight=weight)
    assert weighted.n_seen_ == 200


# Checks whose y holds one of several classes a row, as a column, where labels are 0 and 1.
OTHER_TARGETS = {
    "check_classifier_data_not_an_array",
    "check_classifier_not_supporting_multiclass",
    "check_classifiers_classes",
    "check_classifiers_one_label",
    "check_classifiers_one_label_sample_weights",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_complex_data",
    "check_decision_proba_consistency",
    "check_dtype_object",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_dtypes",
    "check_fit2d_1feature",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
}
BY_ORDER = {  # learners that take one example after another, so that a weight of 2 is not the same row twice
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn():
    found = check_estimator(MultilabelClassifier(random_state=0), on_fail=None)
    failed = {one["check_name"] for one in found if one["status"] not in ("passed", "skipped")}
    assert failed <= OTHER_TARGETS | BY_ORDER
    assert sum(one["status"] == "passed" for one in found) >= 40


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"word {n}" for n in range(12)])
    model = MultilabelClassifier(random_state=0).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
