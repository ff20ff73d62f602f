"""Thresholds and best labels: against plain searches and scikit-learn's metrics, and kept in the model file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

import onlearn
from onlearn.models import Model
from onlearn.models.evaluation import Evaluation
from onlearn.models.threshold import (
    NO_LABEL,
    Criterion,
    Threshold,
    ThresholdSearch,
    figures_at,
    parse_criterion,
    threshold_of,
)
from onlearn.models.top_labels import top_labels

CRITERIA = {
    "f1": lambda gold, answer: metrics.f1_score(gold, answer, zero_division=0.0),
    "balanced": metrics.balanced_accuracy_score,
    "cost(1,5)": lambda gold, answer: -(1.0 * (answer & ~gold).sum() + 5.0 * (~answer & gold).sum()) / len(gold),
}


def searched(gold, proba, **options):
    search = ThresholdSearch(**options)
    half = len(gold) // 2
    search.add(gold[:half], proba[:half])
    search.add(gold[half:], proba[half:])
    return search


rows = st.lists(
    st.tuples(st.booleans(), st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0, 1))),
    min_size=2,
    max_size=30,
).filter(lambda rows: len({gold for gold, _ in rows}) == 2)


@pytest.mark.parametrize("text", CRITERIA)
@settings(max_examples=60, deadline=None)
@given(rows=rows)
def test_no_other_threshold_is_better(text, rows):
    gold, proba = (np.array(one) for one in zip(*rows))
    measure = CRITERIA[text]
    found = searched(gold, proba).best(parse_criterion(text))
    assert 0.0 <= found <= 1.0
    others = [
        measure(gold, proba >= other) for other in {0.0, 1.0, *proba.tolist(), *(proba + 1e-9).clip(0, 1).tolist()}
    ]
    assert measure(gold, proba >= found) >= max(others) - 1e-12


@settings(max_examples=40, deadline=None)
@given(rows=rows, threshold=st.floats(0, 1))
def test_figures_are_those_of_scikit_learn(rows, threshold):
    gold, proba = (np.array(one) for one in zip(*rows))
    answer, found = proba >= threshold, searched(gold, proba).figures(threshold)
    assert found["precision"] == pytest.approx(metrics.precision_score(gold, answer, zero_division=0.0))
    assert found["recall"] == pytest.approx(metrics.recall_score(gold, answer))
    assert found["f1"] == pytest.approx(metrics.f1_score(gold, answer))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(gold, answer))
    assert found["balanced_accuracy"] == pytest.approx(metrics.balanced_accuracy_score(gold, answer))


def test_many_rows_are_counted_in_bins():
    rng = np.random.default_rng(0)
    gold = rng.random(2000) < 0.3
    proba = np.clip(0.3 * gold + 0.7 * rng.random(2000), 0, 1)
    for text in CRITERIA:
        criterion = parse_criterion(text)
        exact, rough = searched(gold, proba), searched(gold, proba, kept=100)
        assert rough.bins is not None
        assert rough.best(criterion) == pytest.approx(exact.best(criterion), abs=2e-3)
        at = exact.best(criterion)
        assert rough.figures(at)["f1"] == pytest.approx(exact.figures(at)["f1"], abs=2e-3)


def test_one_class_has_no_threshold():
    search = ThresholdSearch()
    search.add(np.zeros(3, bool), np.array([0.1, 0.2, 0.3]))
    with pytest.raises(ValueError, match="none of the 3 rows is positive"):
        search.best(Criterion("f1"))


@pytest.mark.parametrize("text", ["f2", "cost(1)", "cost(-1,2)", "cost(a,b)", "cost(0,0)", "cost(nan,1)", ""])
def test_criteria_that_are_none(text):
    with pytest.raises(ValueError, match="is not f1, balanced or cost"):
        parse_criterion(text)


def test_thresholds_that_are_none():
    with pytest.raises(ValueError, match="from 0 to 1"):
        threshold_of(1.5, None, ["a", "b"])
    with pytest.raises(ValueError, match="there is no label 'spa'"):
        threshold_of(0.5, "spa", ["ham", "spam"])
    with pytest.raises(ValueError, match="is for two labels"):
        threshold_of(0.5, "a", ["a", "b", "c"])
    with pytest.raises(ValueError, match="regression"):
        threshold_of(0.5, None, None)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 5), st.integers(1, 7), st.integers(0, 1000))
def test_top_labels_are_those_of_a_plain_sort(labels, k, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 4, (6, labels)).astype(float)
    proba = np.exp(scores).round(1) + 1e-9  # some are equal, though their scores differ
    proba /= proba.sum(axis=1, keepdims=True)
    found = top_labels(proba, scores, k)
    for row in range(6):
        order = sorted(range(labels), key=lambda c: (-proba[row, c], -scores[row, c], c))[:k]
        assert found.codes[row].tolist() == order
        assert found.proba[row].tolist() == proba[row, order].tolist()
        assert found.scores[row].tolist() == scores[row, order].tolist()


# ---------------------------------------------------------------------- models

TEXTS = ["cheap pills now", "see you at lunch", "the goal counts", "pills for lunch"]


def several() -> Model:
    return Model().partial_fit(TEXTS[:3] * 6, ["ad", "ham", "news"] * 6)


def two() -> Model:
    return Model().partial_fit([TEXTS[0], TEXTS[1], TEXTS[3]] * 6, ["spam", "ham", "spam"] * 6)


def test_the_first_of_the_top_is_what_is_predicted():
    for model in (two(), several()):
        found = model.predict_top(TEXTS, 2)
        proba = model.predict_proba(TEXTS)
        assert [row[0][0] for row in found] == model.predict(TEXTS).tolist()
        assert [row[0][1] for row in found] == proba.max(axis=1).tolist()
        assert all(len(row) == len(model.labels) for row in model.predict_top(TEXTS, 99))
    with pytest.raises(ValueError, match="at least 1"):
        two().predict_top(TEXTS, 0)


def test_two_labels_by_a_threshold():
    model = two()
    proba = model.predict_proba(TEXTS)
    for positive, other in (("spam", "ham"), ("ham", "spam")):
        column = proba[:, model.labels.index(positive)]
        for at in (0.0, *column, 1.0):
            model.set_threshold(float(at), positive)
            assert model.predict(TEXTS).tolist() == np.where(column >= at, positive, other).tolist()
        for at in column + 1e-3:  # a row by itself is scored in double precision
            model.set_threshold(float(at), positive)
            expected = np.where(column >= at, positive, other).tolist()
            assert [model.predict_one(text) for text in TEXTS] == expected
    np.testing.assert_array_equal(model.predict_proba(TEXTS), proba)
    assert model.set_threshold(None).predict(TEXTS).tolist() == two().predict(TEXTS).tolist()


def test_several_labels_are_rejected_below():
    model = several()
    best = model.predict_proba(TEXTS).max(axis=1)
    at = float(np.sort(best)[2])
    model.set_threshold(at)
    plain = several().predict(TEXTS)
    assert model.predict(TEXTS).tolist() == [label if p >= at else None for label, p in zip(plain, best)]
    assert model.predict_one(TEXTS[int(np.argmin(best))]) is None
    gold = [str(one) for one in plain]
    assert model.score(TEXTS, gold) == np.mean(best >= at)


def test_the_model_file_keeps_it(tmp_path):
    for model, positive in ((two(), "ham"), (several(), None)):
        model.set_threshold(0.7, positive)
        model.save(tmp_path / "m.onl")
        again = onlearn.load(tmp_path / "m.onl")
        assert again.threshold == model.threshold
        assert again.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()
        again.partial_fit(TEXTS[:1], [model.labels[0]])
        assert again.renewed().threshold == model.threshold


def test_evaluation_counts_rows_without_an_answer():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), 200)
    gold = rng.integers(0, 3, 200)
    threshold = Threshold(0.6)
    answer = threshold.decide(proba)
    evaluation = Evaluation(["a", "b", "c"])
    evaluation.add(gold, answer, proba)
    report = evaluation.report()
    answered = answer != NO_LABEL
    assert 0 < answered.sum() < 200
    assert report["rejected"] == int((~answered).sum())
    assert report["accuracy"] == np.mean(gold == answer)
    precision, recall, f1, _ = metrics.precision_recall_fscore_support(gold, answer, labels=[0, 1, 2])
    for k, label in enumerate("abc"):
        mine = report["per_class"][label]
        assert (mine["precision"], mine["recall"]) == (precision[k], recall[k])
        assert mine["f1"] == pytest.approx(f1[k])
    assert report["log_loss"] == pytest.approx(metrics.log_loss(gold, proba))
    assert np.sum(report["confusion"]) == answered.sum()
    found = figures_at(threshold, ["a", "b", "c"], report)
    assert found["answered"] == answered.mean()
    assert found["accuracy"] == pytest.approx(np.mean((gold == answer)[answered]))


def unequal(path, rows=3000):
    """A rare label that probabilities above 1/2 find in few of its rows."""
    rng = np.random.default_rng(1)
    gold = rng.random(rows) < 0.1
    x = rng.normal(size=(rows, 2)) + 1.2 * gold[:, None]
    lines = [f"{a:.4f},{b:.4f},{'yes' if one else 'no'}" for (a, b), one in zip(x, gold)]
    path.write_text("\n".join(["a,b,label", *lines]) + "\n")
    return path


@pytest.mark.parametrize("holdout", [None, "30%"])
def test_training_chooses_a_threshold(holdout, tmp_path):
    path = unequal(tmp_path / "rare.csv")
    usual = onlearn.train(path, passes=2, holdout=holdout)
    model = onlearn.train(path, tmp_path / "m.onl", passes=2, holdout=holdout, threshold="f1")
    assert 0.1 < model.threshold.probability < 0.45
    assert model.report_["threshold"] == {"probability": model.threshold.probability, "positive": "yes"}
    assert any("best by f1" in note for note in model.report_["notes"])
    X, y = onlearn.data.load(path)
    f1 = [metrics.f1_score(y, one.predict(X), pos_label="yes") for one in (usual, model)]
    assert f1[1] > f1[0] + 0.1
    np.testing.assert_array_equal(usual.predict_proba(X), model.predict_proba(X))
    assert onlearn.load(tmp_path / "m.onl").threshold == model.threshold
    given = onlearn.train(path, passes=1, threshold=0.3, positive="no")
    assert given.threshold == Threshold(0.3, given.labels.index("no"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(threshold="f2"), "is not f1, balanced or cost"),
        (dict(threshold=1.5), "is not a probability"),
        (dict(positive="yes"), "which is not given"),
        (dict(threshold=0.5, positive="maybe"), "there is no label 'maybe'"),
        (dict(threshold="f1", learner="NaiveBayes"), "say holdout="),
        (dict(threshold="f1", task="regress", target="a"), "no use in regression"),
    ],
)
def test_training_refuses_thresholds(options, said, tmp_path):
    with pytest.raises(onlearn.errors.PlanError, match=said):
        onlearn.train(unequal(tmp_path / "rare.csv", 200), passes=1, **options)
