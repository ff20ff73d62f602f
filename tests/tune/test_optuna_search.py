"""Searches by Optuna: the known best, pruning, failures, seeds, and the message where Optuna is not installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import onlearn
from onlearn.tune import Log, Uniform, Whole, search

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
Y = (X**2).sum(axis=1) > 1.2


def test_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'onlearn\[optuna\]'"):
        search(onlearn.SVC(), {"C": [1.0]}, X, Y)


optuna = pytest.importorskip("optuna")


def test_it_finds_the_kernel_that_suits():
    space = {"kernel": ["linear", "gaussian(1)"], "C": Log(0.1, 100)}
    found = search(onlearn.SVC(), space, X, Y, trials=8, folds=3)
    assert found.best_params_["kernel"] == "gaussian(1)" and found.best_score_ > 0.85
    assert found.best_estimator_.score(X, Y) > 0.85 and found.low <= found.best_score_ <= found.high
    assert len(found.trials) == 8 and "8 trials" in str(found)
    again = search(onlearn.SVC(), space, X, Y, trials=8, folds=3)
    assert [one["params"] for one in again.trials] == [one["params"] for one in found.trials]


def test_the_present_parameters_come_first():
    found = search(onlearn.LogisticRegression(rate=0.25), {"rate": Log(0.01, 1), "epochs": Whole(1, 9)}, X, Y, trials=2)
    assert found.trials[0]["params"] == {"rate": 0.25, "epochs": 5}


def test_poor_trials_are_pruned_and_bad_ones_fail():
    space = {"rate": [1e-9, 0.1, -1.0]}
    line = X[:, 0] > 0
    found = search(onlearn.LogisticRegression(random_state=0), space, X, line, trials=16, folds=5)
    states = {one["state"] for one in found.trials}
    assert "complete" in states and "failed" in states and found.best_params_["rate"] == 0.1
    failed = next(one for one in found.trials if one["state"] == "failed")
    assert "rate" in failed["why"] and failed["score"] is None
    assert all(one["folds"] < 5 for one in found.trials if one["state"] == "pruned")
    everything = search(
        onlearn.LogisticRegression(random_state=0), {"rate": [1e-9, 0.1]}, X, line, trials=8, prune=False
    )
    assert {one["state"] for one in everything.trials} == {"complete"}


def test_sequences_and_numbers():
    rows = [["the", "dog", "runs"], ["a", "cat", "sleeps"]] * 4
    tags = [["D", "N", "V"]] * 8
    found = search(onlearn.CRF(), {"l2": Uniform(0.01, 1.0)}, rows, tags, trials=2, folds=2)
    assert found.best_score_ == 1.0
    numbers = search(onlearn.KNNRegressor(), {"k": [1, 5]}, X, X[:, 0], trials=3, folds=3)
    assert numbers.best_score_ > 0.5


def test_ctrl_c_keeps_the_best_so_far(monkeypatch):
    calls = []

    def score(estimator, rows, gold):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return float(estimator.score(rows, gold))

    found = search(onlearn.SVC(), {"C": Log(0.1, 10)}, X, Y, trials=10, folds=2, scoring=score, prune=False)
    assert found.stopped and [one["state"] for one in found.trials] == ["complete", "complete", "stopped"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (dict(space={"c": [1]}), "has no parameter 'c'"),
        (dict(space={}), "no parameters"),
        (dict(trials=0), "trials must be"),
        (dict(folds=1), "folds must be"),
        (dict(space={"C": [-1.0]}), "no configuration of SVC could be scored"),
    ],
)
def test_errors(given, why):
    with pytest.raises(ValueError, match=why):
        search(onlearn.SVC(), **{"space": {"C": [1.0, 2.0]}, "X": X, "y": Y, "trials": 2, **given})
