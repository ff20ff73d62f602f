"""Evidence against plain versions: curves, reliability, histograms, and the rows most wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.data import Batch
from onlearn.models.evaluation import Predictions
from onlearn.report.evidence import POINTS, WORST, Evidence, row_text, thinned
from onlearn.report.score_counts import FALSE_POSITIVES, RECALLS, ScoreCounts

SCORES = st.lists(st.tuples(st.booleans(), st.integers(-8, 8)), min_size=2, max_size=60)


def counted(rows):
    counts = ScoreCounts()
    counts.add(np.array([p for p, _ in rows]), np.array([s / 4 for _, s in rows]))
    return counts


@settings(deadline=None, max_examples=60)
@given(SCORES)
def test_roc_goes_through_every_threshold(rows):
    positives, negatives = sum(p for p, _ in rows), sum(not p for p, _ in rows)
    if not positives or not negatives:
        assert not counted(rows).has_both
        return
    made = counted(rows).roc()
    assert (np.diff(made) >= -1e-12).all() and made[-1] == 1
    for cut in {s for _, s in rows}:
        fpr = sum(not p and s >= cut for p, s in rows) / negatives
        tpr = sum(p and s >= cut for p, s in rows) / positives
        assert np.interp(fpr, FALSE_POSITIVES, made) >= tpr - 0.5  # between points of the grid it may be coarse
        if np.isclose(FALSE_POSITIVES, fpr, atol=1e-9).any():
            assert made[np.isclose(FALSE_POSITIVES, fpr, atol=1e-9)][0] >= tpr - 1e-9


@settings(deadline=None, max_examples=60)
@given(SCORES)
def test_precision_at_recall(rows):
    positives = sum(p for p, _ in rows)
    if not positives:
        return
    made = counted(rows).precision()
    cuts = sorted({s for _, s in rows}, reverse=True)
    for recall, precision in zip(RECALLS, made):
        for cut in cuts:  # the highest threshold that reaches the recall
            above = [p for p, s in rows if s >= cut]
            if sum(above) / positives >= recall - 1e-9 and sum(above) + len(above):
                assert precision == pytest.approx(sum(above) / len(above))
                break


@settings(deadline=None, max_examples=40)
@given(SCORES)
def test_histogram_holds_every_row(rows):
    found = counted(rows).histogram()
    for side, there in (("negative", any(not p for p, _ in rows)), ("positive", any(p for p, _ in rows))):
        assert sum(found[side]) == pytest.approx(1.0 if there else 0.0)


def test_average_precision_and_scores_without_end():
    counts = ScoreCounts()
    counts.add(np.array([True, False]), np.array([np.inf, -1e300]))
    assert counts.average_precision() == 1.0 and counts.roc().tolist() == [1.0] * len(FALSE_POSITIVES)
    assert all(np.isfinite(counts.histogram()["edges"]))
    counts = ScoreCounts()
    counts.add(np.array([True, False, True]), np.array([1e99, 1e100, np.nan]))
    found = counts.histogram()
    assert all(np.diff(found["edges"]) > 0) and sum(found["positive"]) == 1


def rows_of(count, seed=0):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([1, 1, 1], count)
    return rng.integers(0, 3, count), proba, proba.argmax(axis=1)


def test_worst_rows_are_the_worst_in_whatever_batches():
    gold, proba, answers = rows_of(500)
    found = []
    for size in (500, 100, 7):
        evidence = Evidence(["a", "b", "c"])
        for start in range(0, 500, size):
            some = slice(start, min(500, start + size))
            texts = [str(n) for n in range(some.start, some.stop)]
            evidence.observe(Batch(texts, file="f"), gold[some], Predictions(answers[some], None, proba[some]))
        found.append([(one.number, one.text, round(one.cost, 12)) for one in evidence.worst])
    cost = np.where(gold == answers, -np.inf, -np.log(proba[np.arange(500), gold]))
    order = np.argsort(-cost, kind="stable")[:WORST].tolist()
    assert [number for number, _, _ in found[0]] == order
    assert found[0] == found[1] == found[2]
    assert [text for _, text, _ in found[0]] == [str(number) for number in order]


def test_reliability_is_that_of_the_calibration_error():
    from onlearn.models.evaluation import Evaluation

    gold, proba, answers = rows_of(2000)
    evidence, evaluation = Evidence(["a", "b", "c"]), Evaluation(["a", "b", "c"])
    evidence.observe(Batch(["x"] * 2000, file="f"), gold, Predictions(answers, None, proba))
    evaluation.add(gold, answers, proba)
    top = evidence.to_dict()["reliability"][0]
    apart = np.abs(np.array(top["expected"]) - top["happened"]) * top["rows"]
    assert apart.sum() / sum(top["rows"]) == pytest.approx(evaluation.report()["calibration_error"])
    assert sum(map(sum, evidence.to_dict()["confidence"])) == 2000


def test_memory_does_not_grow_with_rows():
    evidence = Evidence(None)
    gold = np.linspace(0, 1, 5000)
    for _ in range(4):
        evidence.observe(Batch(["x"] * 5000, file="f"), gold, Predictions(gold + 0.1))
    assert len(evidence.points) == 400 and len(evidence.worst) == WORST
    assert np.isfinite(evidence.points).all()


def test_unknown_and_missing_labels_are_left_out():
    evidence = Evidence(["a", "b"])
    gold, answers = np.array([-1, 0, 1]), np.array([0, 0, 0])
    proba = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]])
    evidence.observe(Batch(["x", "y", "z"], file="f"), gold, Predictions(answers, None, proba))
    assert evidence.rows == 3 and [one.text for one in evidence.worst] == ["z"]


def test_rows_without_an_answer_are_wrong():
    evidence = Evidence(["a", "b"])
    gold, answers, proba = np.array([0, 1]), np.array([-1, 1]), np.array([[0.6, 0.4], [0.2, 0.8]])
    evidence.observe(Batch(["x", "y"], file="f"), gold, Predictions(answers, None, proba))
    assert [(one.text, one.predicted) for one in evidence.worst] == [("x", "(none)")]
    assert sum(evidence.to_dict()["reliability"][0]["rows"]) == 2


def test_rows_of_several_labels():
    rng = np.random.default_rng(0)
    proba = rng.random((400, 3))
    gold = rng.random((400, 3)) < proba  # honest probabilities
    evidence = Evidence(["a", "b", "c"])
    for some in (slice(0, 150), slice(150, 400)):
        batch = Batch([str(n) for n in range(some.start, some.stop)], file="f")
        evidence.observe(batch, gold[some], Predictions(proba[some] > 0.5, None, proba[some]))
    found = evidence.to_dict()
    assert [one["name"] for one in found["curves"]["of"]] == ["all labels"]
    assert sum(found["reliability"][0]["rows"]) == 1200
    apart = np.abs(np.array(found["reliability"][0]["expected"]) - found["reliability"][0]["happened"])
    assert apart.max() < 0.2
    cost = -np.log(np.where(gold, proba, 1 - proba)).sum(axis=1)
    cost[((proba > 0.5) == gold).all(axis=1)] = 0
    assert [one.number for one in evidence.worst] == np.argsort(-cost, kind="stable")[:WORST].tolist()
    first = evidence.worst[0]
    assert first.label == (", ".join(np.array(["a", "b", "c"])[gold[first.number]]) or "(none)")


def test_text_of_rows():
    import pyarrow as pa
    import scipy.sparse as sp

    from onlearn.data.batch import as_parsed

    assert row_text(pa.table({"text": ["hello\nworld"]}), 0) == "hello world"
    assert row_text(pa.table({"a": [1.0], "b": ["x"], "c": [None]}), 0) == "a: 1; b: x"
    assert row_text(as_parsed(sp.csr_matrix([[0, 1.5, 0, 2]])), 0) == "1:1.5 3:2"
    assert len(row_text(["y" * 10_000], 0)) == 280


def test_sentences_most_wrong():
    from onlearn.data import Sentences

    words = np.array(["the", "dog", "barks", "at", "night"], dtype=object)
    sentences = Sentences({"form": words}, np.array([0, 3, 5]))
    evidence = Evidence(None)
    codes = np.array([0, 1, 1, 0, 1])
    evidence.observe_sentences(sentences, ["D", "N"], codes, np.array(["D", "D", "D", "D", "N"], dtype=object))
    assert [(one.cost, one.line, one.label, one.predicted) for one in evidence.worst] == [(2.0, 1, "N at 2: dog", "D")]


def test_thinned():
    assert thinned([1, 2, 3], 5) == [1, 2, 3]
    assert thinned(list(range(1000)), 4) == [0, 333, 666, 999]


# ---------------------------------------------------------------------- evidence that is added up


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(0, 90), max_size=4).map(sorted), st.sampled_from([2, 3]))
def test_parts_add_up(cuts, classes):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(classes), 90)
    gold, answers = rng.integers(-1, classes, 90), proba.argmax(axis=1)
    X = np.arange(90.0).reshape(-1, 1)
    whole, sums = (Evidence([str(k) for k in range(classes)]) for _ in range(2))
    observe(whole, X, gold, answers, proba, 0, 90)
    for start, stop in zip([0, *cuts], [*cuts, 90]):
        part = Evidence(whole.labels)
        if stop > start:
            observe(part, X, gold, answers, proba, start, stop)
        sums.include(pickle.loads(pickle.dumps(part)), start)
    one, other = whole.to_dict(), sums.to_dict()
    assert [w["number"] if "number" in w else w["line"] for w in one["worst"]] == [
        w["number"] if "number" in w else w["line"] for w in other["worst"]
    ]
    for rows in (*one.pop("reliability"), *other.pop("reliability")):
        assert sum(rows["rows"]) == (gold >= 0).sum()
    assert one == other


def observe(evidence, X, gold, answers, proba, start, stop):
    """Show rows of a shard, whose lines begin with 1."""
    from onlearn.engine.csr import CSR

    rows = np.arange(start, stop)
    values = CSR(X[rows, 0], np.zeros(len(rows), np.int32), np.arange(len(rows) + 1, dtype=np.int32), (len(rows), 1))
    evidence.observe(Batch(values, file="a.svm"), gold[rows], Predictions(answers[rows], None, proba[rows]))


def test_samples_of_points_add_up_to_one_of_all_rows():
    sums, rng = Evidence(), np.random.default_rng(0)
    for part, count in enumerate((150, 1000, 0, 5000)):
        one = Evidence()
        one._sample(np.full(count, float(part)), rng.random(count))
        sums.include(one)
    assert (len(sums.points), sums.sampled) == (POINTS, 6150)
    counts = np.bincount([int(x) for x, _ in sums.points], minlength=4)
    np.testing.assert_allclose(counts / POINTS, np.array([150, 1000, 0, 5000]) / 6150, atol=0.06)
    few = Evidence()
    for part in range(3):
        one = Evidence()
        one._sample(np.full(5, float(part)), np.arange(5.0))
        few.include(one)
    assert few.points == [(float(part), float(n)) for part in range(3) for n in range(5)]
