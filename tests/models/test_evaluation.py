"""Streaming metrics against scikit-learn's, however the rows are cut into batches."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from onlearn.engine import inputs
from onlearn.models.evaluation import BINS, Evaluation, Ranking, RegressionEvaluation, in_order, positions
from onlearn.models.multilabel_evaluation import MultilabelEvaluation
from onlearn.models.rank_evaluation import RankEvaluation
from onlearn.models.threshold import Criterion, ThresholdSearch


def sample(classes, rows=500, seed=0):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, classes, rows)
    scores = rng.normal(size=(rows, classes)) + 1.5 * (np.arange(classes) == gold[:, None])
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return gold, proba.argmax(axis=1), proba


def evaluated(labels, gold, predicted, proba, cuts=()):
    evaluation = Evaluation(labels)
    for some in np.split(np.arange(len(gold)), cuts):
        evaluation.add(gold[some], predicted[some], proba[some])
    return evaluation.report()


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_the_numbers_are_those_of_scikit_learn(classes):
    labels = [f"class {k}" for k in range(classes)]
    gold, predicted, proba = sample(classes)
    report = evaluated(labels, gold, predicted, proba, [100, 101, 350])
    assert report["n"] == 500
    assert report["accuracy"] == metrics.accuracy_score(gold, predicted)
    assert report["macro_f1"] == pytest.approx(metrics.f1_score(gold, predicted, average="macro"), abs=1e-15)
    assert report["log_loss"] == pytest.approx(metrics.log_loss(gold, proba), rel=1e-13)
    np.testing.assert_array_equal(report["confusion"], metrics.confusion_matrix(gold, predicted))
    precision, recall, f1, support = metrics.precision_recall_fscore_support(gold, predicted)
    for k, label in enumerate(labels):
        mine = report["per_class"][label]
        assert mine["precision"] == precision[k] and mine["recall"] == recall[k]
        assert mine["f1"] == pytest.approx(f1[k], abs=1e-15) and mine["support"] == support[k]
    if classes == 2:
        exact = metrics.roc_auc_score(gold, proba[:, 1].astype(np.float32))
        assert report["auc"] == pytest.approx(exact, abs=1e-15) and report["auc_is_estimate"] is False
    else:
        assert "auc" not in report
    assert json.loads(json.dumps(report)) == report


@given(cuts=st.lists(st.integers(0, 200), max_size=6).map(sorted), classes=st.sampled_from([2, 4]))
def test_batches_do_not_matter(cuts, classes):
    labels = [str(k) for k in range(classes)]
    gold, predicted, proba = sample(classes, 200)
    whole, parts = (evaluated(labels, gold, predicted, proba, where) for where in ((), cuts))
    for key, value in whole.items():
        near = isinstance(value, float) or key == "calibration_by_class"
        assert parts[key] == (pytest.approx(value, rel=1e-12) if near else value)


def test_calibration_error_by_hand():
    gold, predicted, proba = sample(3)
    top = proba.max(axis=1)
    expected = 0.0
    for k in range(BINS):
        mine = (top >= k / BINS) & (top < (k + 1) / BINS)
        if mine.any():
            expected += mine.mean() * abs((gold == predicted)[mine].mean() - top[mine].mean())
    assert evaluated(list("abc"), gold, predicted, proba)["calibration_error"] == pytest.approx(expected, rel=1e-12)


def test_sure_and_wrong_costs_much_but_not_infinity():
    report = evaluated(["a", "b"], np.array([0]), np.array([1]), np.array([[0.0, 1.0]]))
    assert report["log_loss"] == pytest.approx(metrics.log_loss([0], [[0.0, 1.0]], labels=[0, 1]))
    assert report["calibration_error"] == 1 and report["auc"] is None


def test_an_unknown_label_is_an_error_but_has_no_probability():
    gold, predicted, proba = sample(3)
    with_unknown = gold.copy()
    with_unknown[:50] = -1
    report = evaluated(list("abc"), with_unknown, predicted, proba, [20])
    assert report["n"] == 500
    assert report["accuracy"] == ((gold == predicted) & (with_unknown >= 0)).sum() / 500
    assert report["log_loss"] == pytest.approx(metrics.log_loss(gold[50:], proba[50:]))
    assert np.sum(report["confusion"]) == 450
    hits = (predicted == 0) & (with_unknown == 0)
    assert report["per_class"]["a"]["precision"] == hits.sum() / (predicted == 0).sum()  # a false positive like others


def test_nothing_to_evaluate():
    report = Evaluation(["a", "b"]).report()
    assert report["n"] == 0 and report["accuracy"] is None and report["log_loss"] is None and report["auc"] is None
    assert RegressionEvaluation().report()["rmse"] is None


def test_many_classes_have_no_confusion_matrix():
    report = evaluated([str(k) for k in range(300)], np.array([5, 299]), np.array([5, 5]), np.full((2, 300), 1 / 300))
    assert report["confusion"] is None and report["accuracy"] == 0.5
    assert report["per_class"]["5"] == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "support": 1}


def test_regression():
    rng = np.random.default_rng(3)
    gold = 1e6 + rng.normal(size=1000)  # far from zero: sums of squares would cancel
    predicted = gold + 0.3 * rng.normal(size=1000)
    evaluation = RegressionEvaluation()
    for some in np.split(np.arange(1000), [1, 500, 500, 999]):
        evaluation.add(gold[some], predicted[some])
    report = evaluation.report()
    assert report["rmse"] == pytest.approx(metrics.root_mean_squared_error(gold, predicted), rel=1e-12)
    assert report["mae"] == pytest.approx(metrics.mean_absolute_error(gold, predicted), rel=1e-12)
    assert report["r2"] == pytest.approx(metrics.r2_score(gold, predicted), rel=1e-9)


def test_one_number_only_has_no_r2():
    evaluation = RegressionEvaluation()
    evaluation.add(np.array([2.0, 2.0]), np.array([1.0, 3.0]))
    assert evaluation.report()["r2"] is None and evaluation.report()["mae"] == 1


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(-(2.0**100), 2.0**100, width=32) | st.sampled_from([-1.0, 0.0, -0.0, 1.0])),
        min_size=2,
        max_size=40,
    )
)
def test_area_with_ties(rows):
    gold, scores = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=np.float32)
    ranking = Ranking()
    ranking.add(gold[:7], scores[:7])
    ranking.add(gold[7:], scores[7:])
    if gold.all() or not gold.any():
        assert ranking.area() is None
    else:
        assert ranking.area() == pytest.approx(metrics.roc_auc_score(gold, scores), abs=1e-12)


def test_beyond_its_room_the_area_is_a_close_estimate():
    rng = np.random.default_rng(0)
    gold = rng.random(20_000) < 0.3
    scores = (rng.normal(size=20_000) + gold).astype(np.float32)
    ranking = Ranking(most=5_000)
    for some in np.split(np.arange(20_000), [3_000, 4_000, 12_000]):
        ranking.add(gold[some], scores[some])
    assert ranking.rough and not ranking.parts
    assert ranking.area() == pytest.approx(metrics.roc_auc_score(gold, scores), abs=1e-3)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2))
def test_bits_in_the_order_of_numbers(values):
    scores = np.array(values, dtype=np.float32)
    order = np.argsort(scores, kind="stable")
    assert (np.diff(in_order(scores)[order].astype(np.int64)) >= 0).all()
    np.testing.assert_array_equal(in_order(scores) == in_order(scores[:1]), scores == scores[0])


def test_numbers_as_labels_compare_as_numbers():
    assert positions(["+1", "-1.0", "2", "x"], ["-1", "1"]) == [1, 0, -1, -1]
    assert positions(["+1"], ["1", "one"]) == [-1]
    assert positions(["1.0", "1"], ["1", "1.0"]) == [1, 0]


def test_whole_numbers_as_labels_are_exact():
    near = ["9007199254740993", "12345678901234567891", "9007199254740992", "12345678901234567890", "77"]
    assert inputs.distinct([*near, "+77", "77.0", "9007199254740992.0"]) == near
    assert inputs.in_order(near) == ["77", near[2], near[0], near[3], near[1]]
    assert positions(["+9007199254740993", "9007199254740994"], near) == [0, -1]


@pytest.mark.parametrize("classes", [2, 3])
def test_brier_score_is_that_of_scikit_learn(classes):
    gold, predicted, proba = sample(classes)
    report = evaluated(list("abc")[:classes], gold, predicted, proba)
    expected = np.square(proba - np.eye(classes)[gold]).sum(axis=1).mean() / (2 if classes == 2 else 1)
    assert report["brier"] == pytest.approx(expected, rel=1e-12)
    if classes == 2:
        assert report["brier"] == pytest.approx(metrics.brier_score_loss(gold, proba[:, 1]))


def test_calibration_error_class_by_class_by_hand():
    gold, predicted, proba = sample(3)
    errors = []
    for c in range(3):
        place = np.minimum((proba[:, c] * BINS).astype(int), BINS - 1)
        off = np.bincount(place, weights=(gold == c) - proba[:, c], minlength=BINS)
        errors.append(np.abs(off).sum() / len(gold))
    report = evaluated(list("abc"), gold, predicted, proba, [100])
    assert report["class_calibration_error"] == pytest.approx(np.mean(errors))
    assert list(report["calibration_by_class"].values()) == pytest.approx(errors)
    assert report["uncalibrated"] is None  # no scores were given


# ---------------------------------------------------------------------- evaluations that are added up


def joined(make, cuts, rows, add):
    """An evaluation of all rows, one of those that parts of them make, and one with an empty part among these."""
    whole, sums = make(), make()
    add(whole, np.arange(rows))
    for some in np.split(np.arange(rows), cuts):
        part = make()
        add(part, some)
        sums.include(part)
    return whole, sums


CUTS = st.lists(st.integers(0, 200), max_size=5).map(sorted)


@given(cuts=CUTS, classes=st.sampled_from([2, 4]), most=st.sampled_from([30, 1000]))
def test_evaluations_add_up(cuts, classes, most):
    gold, predicted, proba = sample(classes, 200)
    gold, predicted = gold - (np.arange(200) % 17 == 0), predicted.copy()
    predicted[::13] = -1

    def make():
        evaluation = Evaluation([str(k) for k in range(classes)])
        if classes == 2:
            evaluation.ranking = Ranking(most)
            evaluation.search = 1, ThresholdSearch(most)
        return evaluation

    whole, sums = joined(make, cuts, 200, lambda one, rows: one.add(gold[rows], predicted[rows], proba[rows]))
    one, other = whole.report(), sums.report()
    assert one.keys() == other.keys()
    for key, value in one.items():
        close = key in ("log_loss", "brier", "calibration_error", "class_calibration_error", "calibration_by_class")
        assert other[key] == (pytest.approx(value, rel=1e-12, abs=1e-15) if close else value), key
    if classes == 2:
        f1 = Criterion("f1")
        assert whole.search[1].best(f1) == sums.search[1].best(f1)
        assert whole.search[1].figures(0.4) == sums.search[1].figures(0.4)
        assert sums.search[1].count == int((gold >= 0).sum())


@given(cuts=CUTS, shift=st.sampled_from([0.0, 1e6]))
def test_evaluations_of_numbers_add_up(cuts, shift):
    rng = np.random.default_rng(0)
    gold = rng.normal(size=200) + shift
    predicted = gold + rng.normal(size=200)
    add = lambda one, rows: one.add(gold[rows], predicted[rows])  # noqa: E731
    whole, sums = joined(RegressionEvaluation, cuts, 200, add)
    assert sums.report() == pytest.approx(whole.report(), rel=1e-9)


@given(cuts=CUTS)
def test_evaluations_of_several_labels_and_of_groups_add_up(cuts):
    rng = np.random.default_rng(0)
    proba, groups = rng.random((200, 6)), np.arange(200) // 7
    gold = rng.random((200, 6)) < proba

    def make():
        evaluation = MultilabelEvaluation(list("abcdef"))
        evaluation.search = ThresholdSearch()
        return evaluation

    whole, sums = joined(make, cuts, 200, lambda one, rows: one.add(gold[rows], proba[rows] > 0.5, proba[rows]))
    one, other = whole.report(), sums.report()
    assert other.pop("log_loss") == pytest.approx(one.pop("log_loss"))
    for k in (1, 3, 5):
        assert other.pop(f"precision_at_{k}") == pytest.approx(one.pop(f"precision_at_{k}"))
    assert one == other and whole.search.best(Criterion("f1")) == sums.search.best(Criterion("f1"))

    relevance = gold.sum(axis=1).astype(np.float64)
    add = lambda one, rows: one.add(relevance[rows], proba[rows, 0], groups[rows])  # noqa: E731
    whole, sums = joined(RankEvaluation, cuts, 200, add)
    assert whole.report() == sums.report()


def test_unknown_labels_add_up():
    one, other = Evaluation(["a", "b"]), Evaluation(["a", "b"])
    one.unknown, other.unknown, other.unlabelled = {"x": 2}, {"y": 1, "x": 3}, 4
    one.include(other)
    assert (one.unknown, one.unlabelled) == ({"x": 5, "y": 1}, 4)
