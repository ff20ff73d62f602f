"""Ranking within groups: pairs and differences against plain loops, NDCG against scikit-learn's, runs end to end."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

import onlearn
from onlearn import data
from onlearn.engine.csr import CSR
from onlearn.engine.learner import Learner
from onlearn.models.rank_evaluation import RankEvaluation, ndcg, pairs_in_order
from onlearn.models.ranking import differences, pairs_of

relevances = st.lists(st.integers(0, 3), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(relevances, min_size=1, max_size=5), st.integers(0, 9))
def test_pairs_are_all_pairs_of_each_group(groups, seed):
    relevance = np.array([one for mine in groups for one in mine])
    group = np.repeat(np.arange(len(groups)), [len(mine) for mine in groups])
    expected = {
        (i, j)
        for i in range(len(group))
        for j in range(len(group))
        if group[i] == group[j] and relevance[i] > relevance[j]
    }
    better, worse = pairs_of(relevance, group, seed)
    assert [*zip(better.tolist(), worse.tolist())] == sorted(expected)
    few = [*zip(*(one.tolist() for one in pairs_of(relevance, group, seed, most=1)))]
    assert {*few} <= expected and len({*few}) == len(few)
    X = np.arange(2.0 * len(group)).reshape(-1, 2) % 5
    D, y = differences(CSR.of(X), better, worse)
    plain = [X[i] - X[j] if place % 2 == 0 else X[j] - X[i] for place, (i, j) in enumerate(sorted(expected))]
    np.testing.assert_array_equal(D.toarray(), np.array(plain).reshape(-1, 2))
    assert y.tolist() == [1 - place % 2 for place in range(len(expected))]


def test_of_very_many_pairs_some_are_chosen():
    relevance, group = np.arange(100), np.full(100, 4)
    better, worse = pairs_of(relevance, group, seed=1)
    assert len(better) == 1000
    assert (better > worse).all()
    again = pairs_of(relevance, group, seed=1)
    np.testing.assert_array_equal(better, again[0])
    assert pairs_of(relevance, group, seed=2)[0].tolist() != better.tolist()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-3, 3)), min_size=2, max_size=9), st.integers(1, 10))
def test_ndcg_is_that_of_scikit_learn(rows, k):
    relevance, scores = (np.array(one, dtype=float) for one in zip(*rows))
    found = ndcg(relevance, scores, k)
    if not relevance.any():
        assert found is None
        return
    assert found == pytest.approx(ndcg_score([2**relevance - 1], [scores], k=k))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), min_size=1, max_size=7))
def test_pairs_in_order(rows):
    pairs = [(a[1] - b[1]) for a in rows for b in rows if a[0] > b[0]]
    found = pairs_in_order(*(np.array(one, dtype=float) for one in zip(*rows)))
    assert found == (sum(1.0 if one > 0 else 0.5 if one == 0 else 0.0 for one in pairs), len(pairs))


def test_groups_may_come_in_several_batches():
    rng = np.random.default_rng(0)
    relevance, scores = rng.integers(0, 4, 60).astype(float), rng.normal(size=60)
    groups = np.repeat(np.arange(10), 6)
    whole, parts = RankEvaluation(), RankEvaluation()
    whole.add(relevance, scores, groups)
    for some in np.split(np.arange(60), [5, 17, 40]):
        parts.add(relevance[some], scores[some], groups[some])
    assert whole.report() == parts.report()
    assert whole.report()["groups"] == 10
    assert json.loads(json.dumps(whole.report())) == whole.report()
    assert RankEvaluation().report()["pairwise_accuracy"] is None


# ---------------------------------------------------------------------- files

TASTE = np.array([1.0, -2.0, 0.5, 0.0])


def sample(queries=60, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for query in range(queries):
        X = rng.normal(size=(rng.integers(3, 9), 4)) + 3 * rng.normal(size=4)  # what a query has in common
        scores = X @ TASTE
        made.append((query + 1, X, np.digitize(scores - scores.mean(), [-1.5, 0, 1.5])))
    return made


def svmlight(path, queries):
    lines = [
        f"{y} qid:{query} " + " ".join(f"{k + 1}:{value!r}" for k, value in enumerate(x.tolist()))
        for query, X, relevance in queries
        for x, y in zip(X, relevance)
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def table(path, queries):
    lines = [
        f"q{query},{y}," + ",".join(map(repr, x.tolist()))
        for query, X, relevance in queries
        for x, y in zip(X, relevance)
    ]
    path.write_text("\n".join(["query,stars,a,b,c,d", *lines]) + "\n")
    return path


def test_svmlight_with_qid(tmp_path):
    path, test = svmlight(tmp_path / "train.svm", sample()), svmlight(tmp_path / "test.svm", sample(30, 1))
    model = onlearn.train(path, tmp_path / "m.onl", task="rank", test=test, passes=5)
    found = model.report_["test"]
    assert found["pairwise_accuracy"] > 0.95
    assert found["ndcg_at_5"] > 0.95
    assert found["groups"] == 30
    X, _ = data.load(test, task="rank")
    scores = model.predict(X)
    assert np.corrcoef(scores, X.toarray()[:, 1:] @ TASTE)[0, 1] > 0.9
    np.testing.assert_array_equal(onlearn.load(tmp_path / "m.onl").predict(X), scores)
    assert model.predict_one(X[0]) == pytest.approx(scores[0], rel=1e-5)
    with pytest.raises(ValueError, match="groups of rows"):
        model.partial_fit(X, np.zeros(X.shape[0]))
    with pytest.raises(ValueError, match="groups of rows"):
        model.score(X, np.zeros(X.shape[0]))


def test_the_learner_learns_from_plain_differences(tmp_path):
    queries = sample(20)
    model = onlearn.train(svmlight(tmp_path / "train.svm", queries), task="rank", learner="Perceptron", passes=1)
    rows = np.concatenate([np.c_[np.zeros(len(X)), X] for _, X, _ in queries])
    relevance = np.concatenate([y for _, _, y in queries])
    groups = np.concatenate([np.full(len(y), query) for query, _, y in queries])
    D, y = differences(CSR.of(rows), *pairs_of(relevance, groups, 0))
    plain = Learner("Perceptron", fit_intercept=False, random_state=0).partial_fit(D.toarray(), y, classes=[0, 1])
    np.testing.assert_allclose(model.weights()[0], plain.coef_, rtol=1e-9)


def test_batches_cut_groups_and_nothing_changes(tmp_path):
    path = svmlight(tmp_path / "train.svm", sample())
    whole = onlearn.train(path, task="rank", learner="Perceptron", passes=1)
    usual = data.read

    def small(*arguments, **options):
        return usual(*arguments, **{**options, "batch_rows": 7})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onlearn.models.run_reading.data.read", small)
        parts = onlearn.train(path, task="rank", learner="Perceptron", passes=1)
    assert parts.report_["notes"][-1] == whole.report_["notes"][-1]
    assert parts.report_["progressive"]["n"] == whole.report_["progressive"]["n"]


def test_tables_with_a_column_of_groups(tmp_path):
    path = table(tmp_path / "train.csv", sample())
    model = onlearn.train(path, task="rank", target="stars", group="query", holdout="30%", passes=5)
    assert "query" not in model.columns
    held = model.report_["holdout"]
    assert held["pairwise_accuracy"] > 0.95
    assert 5 < held["groups"] < 35
    with model.read(path) as reader:
        rows = onlearn.models.evaluate(model, reader).report()
    assert rows["groups"] == 60
    (tmp_path / "new.csv").write_text("a,b,c,d\n1,2,3,4\n")
    with model.read(tmp_path / "new.csv") as reader:  # rows to be scored need no groups
        assert len(model.predict(next(reader))) == 1


def test_a_ranking_is_resumed(tmp_path):
    first, second = (svmlight(tmp_path / f"{n}.svm", sample(40, n)) for n in (1, 2))
    onlearn.train(first, tmp_path / "m.onl", task="rank", passes=1)
    model = onlearn.train(second, tmp_path / "m.onl", resume=tmp_path / "m.onl", passes=1)
    both = onlearn.train([first, second], task="rank", passes=1)
    assert model.task == "rank"
    assert model.learner.n_seen_ == both.learner.n_seen_


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "say task=rank to learn their order"),
        (dict(task="rank", learner="Winnow"), "not for task=rank"),
        (dict(task="rank", learner="NaiveBayes"), "not for task=rank"),
        (dict(task="rank", threshold=0.5), "threshold= has no use"),
        (dict(task="classify", group="a"), "group= is for task=rank"),
    ],
)
def test_what_is_refused(options, said, tmp_path):
    with pytest.raises(onlearn.errors.PlanError, match=said):
        onlearn.train(svmlight(tmp_path / "train.svm", sample(5)), **options)


def test_rows_without_groups_or_pairs(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:1\n0 2:1\n" * 5)
    with pytest.raises(data.DataError, match="no groups to rank within"):
        onlearn.train(path, task="rank")
    path.write_text("".join(f"1 qid:{n} 1:1\n" for n in range(5)))
    with pytest.raises(data.DataError, match="no order to learn"):
        onlearn.train(path, task="rank")
    assert onlearn.train(svmlight(path, sample(5)), task="regress", passes=1).task == "regress"


def test_groups_that_are_scattered_are_told(tmp_path):
    lines = [f"{k % 2} qid:{g} 1:{k % 2} 2:{g}" for g in (1, 2, 3, 1) for k in range(4)]
    path = tmp_path / "scattered.svm"
    path.write_text("\n".join(lines) + "\n")
    assert any("sort the rows by group" in one for one in onlearn.train(path, task="rank").report_["warnings"])
    path.write_text("\n".join(lines[:12]) + "\n")
    assert not any("sort the rows" in one for one in onlearn.train(path, task="rank").report_["warnings"])
