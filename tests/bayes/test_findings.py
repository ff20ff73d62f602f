"""Learners of shards, added up, against one learner that learned from all rows."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.bayes.counts import Counts, Moments
from onlearn.bayes.findings import add_findings, findings
from onlearn.bayes.learner import BayesLearner
from onlearn.engine.csr import CSR

CLASSES = ["a", "b", "c"]
KINDS = {
    "multinomial": {"kind": "multinomial"},
    "bernoulli": {"kind": "bernoulli"},
    "complement": {"kind": "complement"},
    "gaussian": {"kind": "gaussian"},
    "mixed": {"kind": "mixed", "kinds": ["gaussian", "bernoulli", "multinomial", "multinomial", "gaussian"]},
}


def rows(seed, count):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, (count, 5)) * 1.0
    return X, rng.choice(CLASSES, count), rng.choice([0.0, 0.3, 1.0, 2.5], count)


def begun(X, y, **params):
    """A learner that has learned from some rows."""
    return BayesLearner(**params).partial_fit(X, y, classes=CLASSES)


def learned_in_shards(base, X, y, weight, cuts):
    """What ``base`` knows, and what empty learners found between the cuts; each goes through a pickle."""
    found = []
    for start, stop in pairwise([0, *sorted(min(cut, len(y)) for cut in cuts), len(y)]):
        shard = base.renewed()
        if stop > start:
            shard.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop])
        found.append(pickle.loads(pickle.dumps(findings(shard))))
    whole = copy.deepcopy(base)
    add_findings(whole, found)
    return whole


class Rows:
    """Rows that are sparse, cut as arrays are."""

    def __init__(self, X):
        self.X = X

    def __getitem__(self, part):
        return CSR.of(self.X[part])


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    weighted=st.booleans(),
    before=st.integers(1, 10),
)
def test_shards_in_any_cut_add_up_to_the_whole(kind, form, seed, count, cuts, weighted, before):
    (X, y, weight), (B, b, _) = rows(seed, count), rows(seed + 1, before)
    weight = weight if weighted else np.ones(count)
    form = Rows if form == "sparse" else np.asarray
    base = begun(form(B)[:], b, **KINDS[kind])
    parts = learned_in_shards(base, form(X), y, weight, cuts)
    whole = copy.deepcopy(base).partial_fit(form(X)[:], y, sample_weight=weight)
    (facts, mine), (others, theirs) = parts.training.pack(), whole.training.pack()
    assert {**facts, "by_pass": None, "since": None} == {**others, "by_pass": None, "since": None}
    assert mine.keys() == theirs.keys()
    for name, array in theirs.items():
        array, made = (array[:4], mine[name][:4]) if name == "tally" else (array, mine[name])  # not when they are due
        exact = not weighted and not any(word in name for word in ("mean", "spread"))
        scale = max(1.0, np.abs(array).max(initial=0.0))
        np.testing.assert_allclose(made, array, rtol=0, atol=0 if exact else 1e-12 * scale, err_msg=name)
    T = form(rows(seed + 2, 9)[0])[:]
    np.testing.assert_allclose(parts.predict_log_proba(T), whole.predict_log_proba(T), rtol=1e-7, atol=1e-7)


def test_progressive_counters_are_sums_and_learning_goes_on():
    (X, y, _), (B, b, _) = rows(3, 50), rows(4, 7)
    base, shards = begun(B, b, progressive=True), []
    for start in (0, 20):
        shards.append(base.renewed().partial_fit(X[start : start + 30], y[start : start + 30]))
    whole = copy.deepcopy(base)
    add_findings(whole, map(findings, shards))
    assert whole.n_mistakes_ == base.n_mistakes_ + sum(shard.n_mistakes_ for shard in shards)
    assert whole.n_seen_ == 7 + 30 + 30
    assert whole.training.tally[2] == pytest.approx(sum(one.training.tally[2] for one in (base, *shards)))
    whole.partial_fit(X, y)
    assert whole.n_seen_ == 67 + 50
    seen = [entry["seen"] for entry in whole.history_["doubling"]]
    assert seen == [1, 2, 4]  # then the shards met the examples between


def test_findings_are_copies_and_leave_the_shard_alone():
    X, y, _ = rows(5, 20)
    shard = begun(X, y, kind="multinomial")
    found = findings(shard)
    before = copy.deepcopy(found[1])
    shard.partial_fit(X, y)
    assert all(np.array_equal(found[1][name], array) for name, array in before.items())


def test_counts_that_are_mostly_zero_go_as_places():
    counts, dense = Counts(20, 50_000), Counts(2, 4)
    counts.add(CSR.of(np.eye(30, 50_000)), np.arange(30) % 20, np.ones(30), np.arange(30))
    dense.add(np.ones((2, 4)), np.arange(2), np.ones(2), np.arange(2))
    assert sum(array.nbytes for array in counts.findings().values()) < 1000
    assert "places" not in dense.findings()
    other = Counts(20, 40_000)
    other.grow(20, 50_000)  # with room made ahead
    other.add_findings(counts.findings())
    assert np.array_equal(other.used("counts"), counts.used("counts"))


def test_moments_far_from_zero_keep_their_digits():
    rng = np.random.default_rng(0)
    X, y = 1e8 + rng.normal(size=(400, 3)), np.zeros(400, np.int64)
    whole = Moments(1, 3)
    for start in range(0, 400, 100):
        part = Moments(1, 3)
        part.add(X[start : start + 100], y[:100], np.ones(100), np.arange(100))
        whole.add_findings(part.findings())
    np.testing.assert_allclose(whole.used("spread")[0] / 400, X.var(axis=0), rtol=1e-7)


def test_findings_of_other_columns_are_refused():
    X, y, _ = rows(6, 20)
    with pytest.raises(ValueError, match="same columns and classes"):
        add_findings(begun(X, y, kind="multinomial"), [findings(begun(X[:, :4], y, kind="multinomial"))])
    with pytest.raises(ValueError, match="same columns and classes"):
        add_findings(begun(X, y, kind="multinomial"), [findings(begun(X, y, kind="bernoulli"))])
