"""Learning in chunks: the same machine as from all rows at once."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

from onlearn.dual.examples import pick
from onlearn.svm.learner import SVCLearner, SVMLearner, SVRLearner

MOONS, SIDES = make_moons(200, noise=0.25, random_state=0)
BLOBS, COLOURS = make_blobs(240, centers=4, n_features=3, cluster_std=3.0, random_state=1)
WAVE = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]

CASES: list[tuple[SVMLearner, Any, np.ndarray]] = [
    (SVCLearner(tol=1e-5), MOONS, SIDES),
    (SVCLearner(tol=1e-5, class_weight="balanced"), BLOBS, COLOURS),
    (SVCLearner(tol=1e-5, multiclass="one-vs-all"), sp.csr_matrix(BLOBS), COLOURS),
    (SVCLearner(tol=1e-5, solver="ascent"), MOONS, SIDES),
    (SVRLearner(tol=1e-5), MOONS, WAVE),
]


@pytest.mark.parametrize("number", range(len(CASES)))
@pytest.mark.parametrize("size", [37, 100])
def test_chunks_reach_the_optimum_of_all_rows(number: int, size: int) -> None:
    learner, X, y = CASES[number]
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y), p=[0.1, 0.6, 0.3])
    whole = type(learner)(**learner.get_params()).fit(X, y, weight)
    parts = type(learner)(**{**learner.get_params(), "chunk_size": size}).fit(X, y, weight)
    ours, theirs = (one.decision_function(X) if y is not WAVE else one.predict(X) for one in (parts, whole))
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert parts.report_.objective == pytest.approx(whole.report_.objective, rel=1e-4)
    assert parts.report_.sweeps >= 2 and "sweeps" in str(parts.report_) and parts.report_.gap is None
    assert parts.report_.margin == pytest.approx(whole.report_.margin, rel=1e-3)
    assert abs(pick(X, parts.support_) - parts.support_examples_).sum() == 0
    assert len(np.setxor1d(parts.support_, whole.support_)) <= 2
    assert weight[parts.support_].all()


def test_probabilities_of_chunks_are_about_the_same() -> None:
    for X, y in ((MOONS, SIDES), (BLOBS, COLOURS)):
        whole = SVCLearner(random_state=0).fit(X, y)
        parts = SVCLearner(random_state=0, chunk_size=60).fit(X, y)
        np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=0.05)


def test_the_largest_weights_may_be_kept_alone() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it need not converge
        few = SVCLearner(chunk_size=60, chunk_keep=20, C=10.0).fit(MOONS, SIDES)
    assert len(few.support_) <= 20 + 60
    assert (few.predict(MOONS) == SIDES).mean() > 0.8
    np.testing.assert_array_equal(few.support_examples_, MOONS[few.support_])


@pytest.mark.parametrize("number", [0, 1, 2, 4])
def test_blocks_that_are_not_in_memory(number: int) -> None:
    learner, X, y = CASES[number]
    calls = []

    def blocks() -> Iterator[Any]:
        calls.append(1)
        for start in range(0, len(y), 23):
            yield X[start : start + 23]

    found = type(learner)(**{**learner.get_params(), "chunk_size": 50}).fit_blocks(blocks, y)
    whole = type(learner)(**learner.get_params()).fit(X, y)
    ours, theirs = (one.decision_function(X) if y is not WAVE else one.predict(X) for one in (found, whole))
    np.testing.assert_allclose(ours, theirs, atol=2e-3)
    assert len(calls) > 2
    assert len(np.setxor1d(found.support_, whole.support_)) <= 2


def test_a_source_that_changes_is_refused() -> None:
    sizes = iter([200, 200, 150, 150, 150])

    def blocks() -> Iterator[Any]:
        yield MOONS[: next(sizes)]

    with pytest.raises(ValueError, match="rows"):
        SVCLearner(chunk_size=50).fit_blocks(blocks, SIDES)


def test_limits_hold_in_chunks() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(3, size=600)
    with pytest.warns(UserWarning, match="the time was up"):
        learner = SVCLearner(C=1e5, chunk_size=100, time_limit=0.02, tol=1e-8).fit(X, y)
    assert learner.predict(X).shape == (600,) and learner.report_.stopped == "time"
