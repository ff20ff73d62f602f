"""Probabilities: they agree with predictions, and what is estimated from the solution with what is computed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from onlearn.svm.learner import SVCLearner

rng = np.random.default_rng(0)
X, y = make_blobs(400, centers=3, n_features=2, cluster_std=3.0, random_state=3)
TRAIN, TEST = slice(0, 200), slice(200, 400)


@pytest.mark.parametrize("calibration", ["loo", "cv", "cv(3)"])
@pytest.mark.parametrize("multiclass", ["one-vs-one", "one-vs-all"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_largest_is_where_predict_is(calibration: str, multiclass: str, classes: int) -> None:
    kept = y < classes
    learner = SVCLearner(calibration=calibration, multiclass=multiclass, random_state=0).fit(X[kept], y[kept])
    p = learner.predict_proba(X)
    assert p.shape == (400, classes) and (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(learner.classes_[np.argmax(p, axis=1)], learner.predict(X))
    if classes == 2:
        np.testing.assert_array_equal(p[:, 1] > 0.5, learner.decision_function(X) > 0)


@pytest.mark.parametrize("multiclass", ["one-vs-one", "one-vs-all"])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_examples_left_out_tell_what_folds_tell(multiclass: str, C: float) -> None:
    """On new examples: about the same log-loss, and better than the scores of the examples learned from give."""
    losses = {}
    for calibration in ("loo", "cv(10)"):
        learner = SVCLearner(C=C, calibration=calibration, multiclass=multiclass, random_state=0)
        p = learner.fit(X[TRAIN], y[TRAIN]).predict_proba(X[TEST])
        losses[calibration] = -np.log(p[np.arange(200), y[TEST]]).mean()
    assert losses["loo"] == pytest.approx(losses["cv(10)"], rel=0.1)
    assert losses["loo"] < np.log(3)


def test_scores_left_out_are_about_those_of_fits_without_the_example() -> None:
    from onlearn.svm.multiclass import classification
    from onlearn.svm.probabilities import left_out
    from onlearn.svm.solving import Budget, solve_all

    few, two = X[y < 2][:60], y[y < 2][:60]
    learner = SVCLearner(tol=1e-6)
    examples = learner._rows(few, first=True)
    columns, machines = learner._columns(examples), classification(two, np.ones(60), 2, "one-vs-one")
    solved = solve_all(machines, columns, 1.0, "smo", True, Budget(1e-6, None, None, lambda: False))
    found, positive, _ = left_out(machines[0], solved.solutions[0], columns, 1.0, True, 0)
    exact = []
    for n in range(60):
        rest = np.arange(60) != n
        exact.append(SVCLearner(tol=1e-6).fit(few[rest], two[rest]).decision_function(few[[n]])[0])
    np.testing.assert_array_equal(positive, two == 1)
    assert np.corrcoef(found, exact)[0, 1] > 0.97
    assert np.abs(found - exact).mean() < 0.1


def test_probabilities_can_be_left_out() -> None:
    learner = SVCLearner(calibration="none").fit(X, y)
    with pytest.raises(AttributeError, match="'none'"):
        learner.predict_proba(X)
