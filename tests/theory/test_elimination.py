"""Elimination: the run of the books, its bound, and the example after which no conjunction is left."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.theory import Conjunction, ContradictionError, Elimination, bounds, conjunctions

seeds = st.integers(0, 2**32 - 1)


def instance(*on, n=100):
    x = np.zeros(n, dtype=int)
    x[np.array(on) - 1] = 1
    return x


@pytest.mark.parametrize("monotone", [True, False])
def test_the_worked_run_of_100_attributes(monotone):
    target = Conjunction([2, 3, 4, 5, 100], n=100)
    examples = [
        (np.ones(100, dtype=int), 1),
        (instance(1, 2, 3), 0),
        (instance(1, 2, 3, 4, 5, 99, 100), 1),
        (instance(1, 3, 4, 100), 0),
        (instance(1, 2, 3, 4, 5, 100), 1),
        (instance(1, 2, 3, 4, 100), 0),
        (instance(1, 2, 3, 4, 5, 6, 100), 1),
    ]
    assert all(target(x) == y for x, y in examples)
    learner = Elimination(100, monotone)
    steps = [learner.learn_one(x, y).hypothesis for x, y in examples]
    everything = Conjunction(range(1, 101), n=100)
    passed = Conjunction([1, 2, 3, 4, 5, 99, 100], n=100)
    final = Conjunction([1, 2, 3, 4, 5, 100], n=100)
    assert steps == [everything, everything, passed, passed, final, final, final]
    assert str(steps[2]) == "x1 & x2 & x3 & x4 & x5 & x99 & x100"
    assert learner.mistakes == 2 + (not monotone)  # with negations it begins with "false"
    assert learner.examples == 7 and learner.within_bound()
    again = Elimination(100, monotone).fit(np.array([x for x, _ in examples]), [2 * y - 1 for _, y in examples])
    assert again.hypothesis == final and again.mistakes == learner.mistakes


def plain_elimination(X, y, monotone):
    """The textbook: a set of literals."""
    n = X.shape[1]
    h = set(range(1, n + 1)) | (set() if monotone else set(range(-n, 0)))
    mistakes, steps = 0, []
    for x, label in zip(X, y):
        predicted = all(x[abs(j) - 1] == (j > 0) for j in h)
        mistakes += predicted != label
        if label:
            h = {j for j in h if x[abs(j) - 1] == (j > 0)}
        steps.append(frozenset(h))
    return mistakes, steps


@settings(max_examples=100)
@given(seeds, st.integers(1, 100), st.booleans(), st.floats(0.0, 1.0))
def test_it_is_the_textbooks_and_within_its_bound(seed, n, monotone, share):
    """Five hundred targets and orders."""
    rng = np.random.default_rng(seed)
    for _ in range(5):
        signs = np.ones(n) if monotone else rng.choice([-1, 1], n)
        literals = (np.arange(1, n + 1) * signs)[rng.random(n) < rng.random() * share].astype(int)
        target = Conjunction(literals.tolist(), n=n)
        X = rng.random((30, n)) < rng.random()
        near = rng.random(30) < 0.7  # most rows satisfy the target, but for a few literals
        columns = np.abs(literals) - 1
        X[np.ix_(near, columns)] = (literals > 0) ^ (
            rng.random((near.sum(), len(literals))) < 0.3 / max(1, len(literals))
        )
        y = target(X)
        mistakes, steps = plain_elimination(X, y, monotone)
        learner = Elimination(n, monotone)
        for x, label, h in zip(X, y, steps):
            assert learner.learn_one(x, label).hypothesis.literals == Conjunction(h, n=n).literals
        assert learner.mistakes == mistakes <= bounds.elimination(n, monotone) == learner.bound
        assert (np.array([learner.predict_one(x) for x in X]) == y).all()
        assert Elimination(n, monotone).fit(sp.csr_array(X.astype(float)), y).hypothesis == learner.hypothesis


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_its_bound_is_attained(n):
    """The target is "true"; each positive example denies one more literal."""
    rows = np.ones((n, n), dtype=bool)
    rows[np.arange(n), np.arange(n)] = False
    learner = Elimination(n, monotone=True).fit(rows, np.ones(n))
    assert learner.mistakes == learner.bound == n and learner.hypothesis == Conjunction([], n=n)
    learner = Elimination(n).fit(np.concatenate([np.ones((1, n)), rows]), np.ones(n + 1))
    assert learner.mistakes == learner.bound == n + 1 and learner.hypothesis == Conjunction([], n=n)


def first_contradiction(X, y, monotone):
    """By trying all conjunctions, with the one that is false everywhere."""
    n = X.shape[1]
    concepts = [*conjunctions(n, monotone=monotone), *([] if monotone else [Conjunction([1, -1], n=n)])]
    agreeing = np.array([concept(X) == y for concept in concepts])
    left = np.logical_and.accumulate(agreeing, axis=1).any(axis=0)
    return None if left.all() else int(np.argmin(left)) + 1


@settings(max_examples=300)
@given(seeds, st.integers(1, 4), st.booleans())
def test_the_example_that_leaves_no_conjunction_is_told(seed, n, monotone):
    rng = np.random.default_rng(seed)
    X, y = rng.random((12, n)) < 0.6, rng.random(12) < 0.4
    expected = first_contradiction(X, y, monotone)
    learner = Elimination(n, monotone)
    if expected is None:
        learner.fit(X, y)
        return
    with pytest.raises(ContradictionError, match=rf"^Example {expected} leaves no concept: [^\n]*\.$") as caught:
        learner.fit(X, y)
    assert caught.value.example == expected
    assert learner.examples == expected - 1  # the call that failed changed nothing
    before = learner.hypothesis
    with pytest.raises(ContradictionError, match=f"^Example {expected} "):
        learner.learn_one(X[expected - 1], y[expected - 1])
    assert learner.hypothesis == before and learner.examples == expected - 1


def test_an_exclusive_or_is_no_conjunction_and_it_says_so():
    X = np.array(list(product([0, 1], repeat=2)))
    with pytest.raises(ContradictionError, match="Example 3 leaves no concept"):
        Elimination(2).fit(X, [0, 1, 1, 0])


def test_very_many_attributes():
    n = 100_000
    target = Conjunction([5, -70_000, 99_999], n=n)
    X, y = target.sample(100, "balanced", random_state=0)
    learner = Elimination(n).fit(X, y)
    assert learner.hypothesis == target and learner.mistakes < 25


@pytest.mark.parametrize(
    "call",
    [
        lambda: Elimination(0),
        lambda: Elimination(2.5),
        lambda: Elimination(3).learn_one([1, 0], 1),
        lambda: Elimination(3).learn_one([1, 0, 2], 1),
        lambda: Elimination(3).learn_one([1, 0, 1], 2),
        lambda: Elimination(3).learn_one([1, 0, 1], "yes"),
        lambda: Elimination(3).fit([[1, 0, 1]], [1, 0]),
        lambda: Elimination(3).fit([[1, 0, 1]] * 3, [1, 0, -1]),
        lambda: Elimination(3).predict_one([[1, 0, 1]]),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [True, False])
def test_thousands_of_random_runs_keep_the_bound(monotone):
    rng = np.random.default_rng(0)
    most = 0.0
    for _ in range(5000):
        n = int(rng.integers(1, 30))
        signs = rng.choice([1, 1 if monotone else -1, 0], n)
        target = Conjunction([j * s for j, s in enumerate(signs.tolist(), 1) if s], n=n)
        X = rng.random((40, n)) < rng.uniform(0.2, 0.99)
        learner = Elimination(n, monotone).fit(X, target(X))
        assert learner.within_bound()
        most = max(most, learner.mistakes / learner.bound)
    assert most == 1.0  # and some runs attain it
