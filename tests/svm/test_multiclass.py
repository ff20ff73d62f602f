"""Several classes as problems of two: the problems, votes, and coupled probabilities, against plain versions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.svm.multiclass import KINDS, REST, classification, pairs, problem_count, regression, votes
from onlearn.svm.probabilities import agreed, coupled


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_problems_hold_the_examples_of_their_classes(classes: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    codes, weight = rng.integers(classes, size=60), rng.choice([0.0, 1.0, 2.5], 60)
    made = classification(codes, weight, classes, kind)
    assert len(made) == problem_count(classes, kind) == len(pairs(classes, kind))
    for one in made:
        expected = [
            n for n in range(60) if weight[n] and (one.negative == REST or codes[n] in (one.negative, one.positive))
        ]
        assert one.examples.tolist() == expected
        assert ((one.signs > 0) == (codes[one.examples] == one.positive)).all()
        np.testing.assert_array_equal(one.weight, weight[one.examples])
        assert one.classifies and one.size == len(expected)


def test_regression_has_two_variables_an_example() -> None:
    (one,) = regression(np.array([1.0, -2.0, 3.0]), np.array([1.0, 0.0, 2.0]), 0.5)
    assert one.examples.tolist() == [0, 2, 0, 2] and one.signs.tolist() == [1, 1, -1, -1]
    assert one.linear.tolist() == [-0.5, -2.5, 1.5, 3.5]
    assert not one.classifies and one.size == 2
    # weights and back
    coefs = one.coefs(np.array([0.0, 0.3, 0.2, 0.0]), 3)
    assert coefs.tolist() == [-0.2, 0.0, 0.3]
    assert one.start(coefs).tolist() == [0.0, 0.3, 0.2, 0.0]


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 6), st.integers(0, 1000))
def test_votes_are_counted(classes: int, seed: int) -> None:
    decisions = np.random.default_rng(seed).normal(size=(5, problem_count(classes, "one-vs-one"))).round(1)
    scores = votes(decisions, classes)
    for row, found in zip(decisions, scores, strict=True):
        count, sums = np.zeros(classes), np.zeros(classes)
        for value, (i, j) in zip(row, pairs(classes, "one-vs-one"), strict=True):
            count[j] += 1.0 if value > 0 else 0.5 if value == 0 else 0.0
            count[i] += 1.0 if value < 0 else 0.5 if value == 0 else 0.0
            sums[j] += value
            sums[i] -= value
        np.testing.assert_allclose(found, count + sums / (3 * (np.abs(sums) + 1)))


@settings(deadline=None, max_examples=40)
@given(st.integers(3, 5), st.integers(0, 1000))
def test_coupled_probabilities_are_the_minimum(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    each = rng.uniform(0.02, 0.98, (1, problem_count(classes, "one-vs-one")))
    (p,) = coupled(each, classes)
    r = np.zeros((classes, classes))
    for value, (i, j) in zip(each[0], pairs(classes, "one-vs-one"), strict=True):
        r[j, i], r[i, j] = value, 1 - value

    def cost(p: np.ndarray) -> float:
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(classes) for j in range(classes) if i != j)

    assert p.sum() == pytest.approx(1) and (p > 0).all()
    for _ in range(50):
        q = np.abs(p + 0.05 * rng.normal(size=classes))
        assert cost(p) <= cost(q / q.sum()) + 1e-12


def test_pairs_that_follow_from_probabilities_give_them_back() -> None:
    p = np.array([0.5, 0.2, 0.2, 0.1])
    each = np.array([[p[j] / (p[i] + p[j]) for i, j in pairs(4, "one-vs-one")]])
    np.testing.assert_allclose(coupled(each, 4)[0], p, atol=1e-9)
    np.testing.assert_allclose(coupled(np.full((1, 3), 0.5), 3)[0], 1 / 3)


def test_the_predicted_class_is_raised_to_the_highest() -> None:
    p = agreed(np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]), np.array([0, 2]))
    assert np.argmax(p, axis=1).tolist() == [0, 2]
    np.testing.assert_allclose(p.sum(axis=1), 1)
