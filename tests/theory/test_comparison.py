"""Learners side by side: what is measured, that one seed is one result, and problems of one's own."""

from __future__ import annotations

import json
import math
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import onlearn
from onlearn.engine.csr import CSR
from onlearn.theory import Elimination, MOfN, Rows, compare_learners
from onlearn.theory.comparison import _measure
from onlearn.theory.problems import Draw

QUICK = dict(examples=200, repeats=3, noise=(0.2,))


def without_times(result):
    return [one for one in result.measures if not one.quantity.startswith("seconds")]


class Majority:
    """A learner of single instances: the label that came most often."""

    def __init__(self):
        self.counts = {0: 0, 1: 0}

    def predict(self, x):
        return max(self.counts, key=self.counts.get)

    def learn(self, x, y):
        self.counts[int(y)] += 1


def test_one_seed_is_one_result_however_many_workers():
    learners = ["Perceptron", "MLPClassifier", onlearn.Winnow(), Majority]
    results = [compare_learners(learners, MOfN(n=30), **QUICK, random_state=5, workers=w) for w in (1, 2, None)]
    for other in results[1:]:
        assert str(without_times(results[0])) == str(without_times(other))  # nan is not nan
    another = compare_learners(learners, MOfN(n=30), **QUICK, random_state=6)
    assert str(without_times(another)) != str(without_times(results[0]))


def test_processes_share_the_repeats(monkeypatch):
    """They begin where work is worth it; what cannot be sent to them is done one at a time."""
    from onlearn.theory import comparison

    alone = compare_learners([Majority, "Perceptron"], MOfN(n=30), **QUICK, workers=1)
    monkeypatch.setattr(comparison, "WORTHWHILE", 0.0)
    shared = compare_learners([Majority, "Perceptron"], MOfN(n=30), **QUICK, workers=2)
    assert str(without_times(alone)) == str(without_times(shared))
    lock = threading.Lock()

    def unsendable():
        with lock:
            return Majority()

    again = compare_learners({"Majority": unsendable, "Perceptron": "Perceptron"}, MOfN(n=30), **QUICK, workers=2)
    assert str(without_times(alone)) == str(without_times(again))


def test_learners_of_concepts():
    """Noise and changes of the target contradict them: they leave those examples out."""
    result = compare_learners([Elimination(20)], MOfN(n=20, relevant=2, at_least=2), **QUICK)
    assert result["Elimination", "accuracy at the end"].mean > 0.99


def test_what_is_measured():
    result = compare_learners({"p": "Perceptron", "w": "Winnow(alpha=1.5)", "m": Majority}, MOfN(n=300), examples=2000,
                              noise=(0.1, 0.3), repeats=4)  # fmt: skip
    needed, end = "examples to accuracy 0.95", "accuracy at the end"
    assert result["w", end].mean > result["p", end].mean > result["m", end].mean
    assert result["w", needed].repeats == 4 and result["w", needed].mean < 1500
    assert result["m", needed].repeats == 0 and math.isnan(result["m", needed].mean)
    for name in "pw":
        clean, some, much = (
            result[name, quantity].mean
            for quantity in (end, "accuracy with 0.1 of the labels wrong", "accuracy with 0.3 of the labels wrong")
        )
        assert clean > some > much > 0.5
        assert result[name, "accuracy after a change of target"].mean < 0.6
        assert result[name, "accuracy at the end, target changed"].mean > 0.65
        changed = result[name, "accuracy after a change of domain"].mean
        assert 0.5 < changed < clean
        assert result[name, "seconds for an example"].low <= result[name, "seconds for an example"].mean
    assert result["p", "examples to accuracy 0.95 again, domain"].quantity in result.quantities


def test_it_can_be_read_and_sent():
    result = compare_learners([Majority, "Perceptron"], **QUICK)
    text = str(result)
    assert "Majority" in text and "never" in text and "200 examples, 3 repeats" in text
    assert all(quantity in text for quantity in result.quantities)
    sent = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert sent["learners"] == ["Majority", "Perceptron"] and sent["measures"][0]["mean"] is None
    with pytest.raises(KeyError, match="There is no 'speed'"):
        result["Perceptron", "speed"]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, CSR.of])
def test_rows_of_ones_own(layout):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)]
    result = compare_learners(["Perceptron", onlearn.LogisticRegression()], (layout(X), y), accuracy=0.8, **QUICK)
    assert result["LogisticRegression", "accuracy at the end"].mean > 0.7
    assert result["Perceptron", "accuracy after a change of target"].mean < 0.3


def test_held_out_rows_are_never_learned_from():
    X = np.arange(100.0)[:, None]
    problem = Rows(X, np.arange(100) % 2)
    rng = np.random.default_rng(0)
    for domain in (None, 0, 1):
        seen, tested = (
            set(problem.draw(rng, 2000, Draw(3, domain=domain, held_out=held))[0].ravel()) for held in (False, True)
        )
        assert not seen & tested and (domain is not None or len(seen | tested) == 100)
    low, high = (set(problem.draw(rng, 2000, Draw(3, domain=d))[0].ravel()) for d in (0, 1))
    assert not low & high


def test_a_concept_gives_the_labels_and_the_domains_share_it():
    problem, rng = MOfN(n=40, relevant=8, at_least=3, active=0.2), np.random.default_rng(0)
    for target in (0, 1):
        relevant = np.random.default_rng([9, target]).permutation(40)[:8]
        for domain in (None, 0, 1):
            X, y = problem.draw(rng, 500, Draw(9, target, domain))
            assert np.array_equal(X[:, relevant].sum(axis=1) >= 3, y == 1)
            assert 0.4 < y.mean() < 0.6
    first, second = (problem.draw(rng, 3000, Draw(9, 0, d))[0].mean(axis=0) for d in (0, 1))
    assert np.abs(first - second).max() > 0.2


def test_means_and_intervals():
    one = _measure("p", "q", [1.0, 2.0, 3.0, math.nan])
    assert (one.mean, one.repeats) == (2.0, 3)
    assert one.high - one.mean == pytest.approx(4.302652729911275 / math.sqrt(3))
    assert math.isnan(_measure("p", "q", [1.0]).low)


@pytest.mark.parametrize(
    ("arguments", "change"),
    [
        (([],), {}),
        ((["Perceptron", "Perceptron"],), {}),
        ((["Perceptron"],), {"accuracy": 0.0}),
        ((["Perceptron"],), {"examples": 5}),
        ((["Perceptron"],), {"repeats": 0}),
        ((["Perceptron"],), {"noise": (1.5,)}),
        ((["Perceptron"], (np.eye(3), [0, 1, 0])), {}),
        ((["Percepton"],), {}),
        (([object()],), {}),
        (([lambda: object()],), {}),
    ],
)
def test_bad_arguments(arguments, change):
    with pytest.raises((ValueError, TypeError)):
        compare_learners(*arguments, **{**QUICK, **change})


def test_bad_problems():
    for wrong in ({"relevant": 200}, {"at_least": 0}, {"active": 0.9}):
        with pytest.raises(ValueError, match=r"\.$"):
            MOfN(**wrong)
    with pytest.raises(ValueError, match="one label for each"):
        Rows(np.eye(30), [0, 1])
