"""A sequence on which the Perceptron errs at every example, and Winnow seldom."""

from __future__ import annotations

import numpy as np
import pytest

import onlearn
from onlearn.theory import Disjunction, Elimination, bounds, hadamard_sequence


def perceptron_mistakes(X, y, rate=1.0, constant=1.0):
    """Predictions that are wrong; a score of 0 is predicted as 0."""
    w, mistakes = np.zeros(X.shape[1] + 1), 0
    for x, label in zip(np.column_stack([X, np.full(len(X), constant)]), y):
        if (w @ x > 0) != label:
            w, mistakes = w + rate * (2 * label - 1) * x, mistakes + 1
    return mistakes


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("n", [9, 64, 100, 300])
def test_the_perceptron_errs_a_number_of_times_in_proportion_to_n(n, k):
    X, y, target = hadamard_sequence(n, k)
    assert isinstance(target, Disjunction) and target.n == n and len(target.literals) == k
    assert (target(X) == y).all()
    assert len(X) > (n - k + 1) / 2 - 2
    for rate, constant in ((1.0, 1.0), (1.0, 0.0), (0.25, 5.0)):
        assert perceptron_mistakes(X, y, rate, constant) == len(X)
    for intercept in (True, False):
        model = onlearn.Perceptron(epochs=1, shuffle=False, fit_intercept=intercept).fit(X, y)
        assert model.n_mistakes_ == len(X)


def test_winnow_errs_a_number_of_times_in_proportion_to_its_logarithm():
    made = {}
    for n in (128, 256, 512, 1024):
        X, y, _ = hadamard_sequence(n)
        model = onlearn.Winnow(alpha=2.0, stabilizer="last", epochs=1, shuffle=False).fit(X, y)
        made[n] = model.n_mistakes_
        assert made[n] <= bounds.winnow(n, 1)
    assert len(hadamard_sequence(1024).X) == 1022 and made[1024] <= 35 and made[1024] < 2 * made[128]


def test_the_shapes_of_small_and_impossible_ones():
    assert hadamard_sequence(4).X.shape == (2, 4)
    assert hadamard_sequence(7, k=4).X.shape == (2, 7)
    for n, k in ((3, 1), (7, 5), (2, 9), (0, 1), (8, 0)):
        with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
            hadamard_sequence(n, k)


def test_a_learner_of_disjunctions_by_their_negation_errs_less():
    """not (x1 or x2) is a conjunction of negations: Elimination learns it within its own bound."""
    X, y, target = hadamard_sequence(64, k=3)
    learner = Elimination(64).fit(X, 1 - y)
    assert learner.mistakes <= 8 and set(learner.hypothesis.literals) >= {-j for j in target.literals}
