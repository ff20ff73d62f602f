"""Values of C and folds: the same solutions as fits one by one, from shared kernel columns."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs, make_moons

from onlearn.svm.learner import SVCLearner, SVMLearner, SVRLearner
from onlearn.svm.path import check_folds, stratified

MOONS, SIDES = make_moons(120, noise=0.3, random_state=0)
BLOBS, COLOURS = make_blobs(150, centers=3, n_features=3, cluster_std=4.0, random_state=1)
WAVE = np.sin(2 * MOONS[:, 0]) + MOONS[:, 1]
CS = [10.0, 0.1, 1.0]

CASES: list[tuple[SVMLearner, np.ndarray, np.ndarray]] = [
    (SVCLearner(tol=1e-5), MOONS, SIDES),
    (SVCLearner(tol=1e-5), BLOBS, COLOURS),
    (SVCLearner(tol=1e-5, multiclass="one-vs-all", class_weight="balanced"), BLOBS, COLOURS),
    (SVRLearner(tol=1e-5), MOONS, WAVE),
]


def scores(learner: SVMLearner, X: np.ndarray) -> np.ndarray:
    return learner.decision_function(X) if learner.task.classifies else learner.predict(X)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_path_is_a_fit_for_each_value(number: int) -> None:
    learner, X, y = CASES[number]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    found = learner.path_of(X, y, CS, weight)
    assert [one.settings.C for one in found] == CS
    assert learner.training is None
    for C, one in zip(CS, found, strict=True):
        alone = type(learner)(**{**learner.get_params(), "C": C}).fit(X, y, weight)
        np.testing.assert_allclose(scores(one, X), scores(alone, X), atol=2e-3)
        assert one.report_.objective == pytest.approx(alone.report_.objective, rel=1e-4)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_folds_are_fits_on_the_rest(number: int) -> None:
    learner, X, y = CASES[number]
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], len(y), p=[0.1, 0.6, 0.3])
    fold_of = np.arange(len(y)) % 4
    if isinstance(learner, SVCLearner):
        learner = SVCLearner(**{**learner.get_params(), "class_weight": None})  # "balanced" counts all rows here
    found = learner.cross_validate(X, y, CS, fold_of, weight)
    assert found.errors.shape == (3, 4)
    for n, C in enumerate(CS):
        for fold in range(4):
            held = fold_of == fold
            alone = type(learner)(**{**learner.get_params(), "C": C}).fit(X[~held], y[~held], weight[~held])
            predicted = alone.predict(X[held])
            wrong = predicted != y[held] if learner.task.classifies else (predicted - y[held]) ** 2
            expected = float(weight[held] @ wrong / weight[held].sum())
            assert found.errors[n, fold] == pytest.approx(expected, abs=1e-2 if number == 3 else 1e-9)
    assert found.best_C == CS[int(np.argmin(found.mean))]
    assert "best" in str(found)


def test_folds_hold_about_as_many_of_each_class() -> None:
    codes = np.repeat([0, 1, 2], [50, 23, 4])
    made = stratified(codes, len(codes), 5, 0)
    for k in range(3):
        counts = np.bincount(made[codes == k], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert not np.array_equal(made, stratified(codes, len(codes), 5, 1))
    np.testing.assert_array_equal(made, stratified(codes, len(codes), 5, 0))
    assert np.bincount(stratified(None, 12, 3, 0)).tolist() == [4, 4, 4]


def test_what_cannot_be_is_refused() -> None:
    learner = SVCLearner()
    with pytest.raises(ValueError, match="Cs must be numbers above 0"):
        learner.path_of(MOONS, SIDES, [1.0, 0.0])
    with pytest.raises(ValueError, match="Cs must be numbers above 0"):
        learner.cross_validate(MOONS, SIDES, [])
    for folds in (1, 121, 2.5, np.zeros(120, int), np.zeros(3, int)):
        with pytest.raises(ValueError, match="folds must be"):
            learner.cross_validate(MOONS, SIDES, [1.0], folds)
    assert check_folds(np.array([7, 3, 7]), np.zeros(3), True, 0).tolist() == [1, 0, 1]


def test_kernel_columns_are_computed_once() -> None:
    learner = SVCLearner()
    found = learner.path_of(BLOBS, COLOURS, [0.1, 1.0, 10.0, 100.0])
    assert sum(one.report_.values for one in found) <= len(COLOURS) ** 2
