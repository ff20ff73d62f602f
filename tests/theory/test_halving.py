"""CON and Halving against plain lists of concepts; their bounds, attained; what is left when labels contradict."""

from __future__ import annotations

import pickle
from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.theory import (
    AtLeast,
    Conjunction,
    Consistent,
    ContradictionError,
    Disjunction,
    Halving,
    Xor,
    bounds,
    conjunctions,
    functions,
)

seeds = st.integers(0, 2**32 - 1)


def cube(n):
    return np.array(list(product([False, True], repeat=n)))


# ---------------------------------------------------------------- classes


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_classes_hold_each_conjunction_once(n):
    signs = list(product([0, 1, -1], repeat=n))
    for k, monotone in product([None, *range(n + 1)], [False, True]):
        expected = {
            frozenset(j * s for j, s in enumerate(row, 1) if s)
            for row in signs
            if (k is None or np.count_nonzero(row) == k) and not (monotone and -1 in row)
        }
        found = list(conjunctions(n, k, monotone))
        assert len(found) == len(conjunctions(n, k, monotone)) == len(expected)
        assert {frozenset(concept.literals) for concept in found} == expected
        assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    "concepts", [conjunctions(4), conjunctions(5, 2), conjunctions(4, monotone=True), functions(3)]
)
def test_sets_of_accepting_concepts(concepts):
    listed = list(concepts)
    for x in cube(concepts.n):
        bits = concepts.accepting(x)
        assert [bool(bits >> number & 1) for number in range(len(listed))] == [concept(x) for concept in listed]


def test_all_functions_are_different():
    tables = {tuple(concept(cube(3))) for concept in functions(3)}
    assert len(tables) == len(functions(3)) == 256
    assert len(functions(4)) == 2**16


# ---------------------------------------------------------------- learners


def plain_run(concepts, X, y):
    """Mistakes of CON and of Halving, and what is left, with lists; or the first example that leaves nothing."""
    left, con, halving = list(concepts), 0, 0
    for number, (x, label) in enumerate(zip(X, y), 1):
        votes = [concept(x) for concept in left]
        con += votes[0] != label
        halving += (2 * sum(votes) > len(votes)) != label
        left = [concept for concept, vote in zip(left, votes) if vote == label]
        if not left:
            return number
    return con, halving, left


CLASSES = {
    "all conjunctions": conjunctions(3),
    "monotone": conjunctions(5, monotone=True),
    "two literals": conjunctions(5, k=2),
    "functions": functions(2),
    "mixed": [Xor([1, 2], n=3), Disjunction([1, -3], n=3), AtLeast(2, [1, 2, 3]), Conjunction([], n=3)],
}


@settings(max_examples=150)
@given(seeds, st.sampled_from(sorted(CLASSES)), st.booleans())
def test_learners_do_what_lists_do_within_their_bounds(seed, name, noisy):
    concepts = CLASSES[name]
    rng = np.random.default_rng(seed)
    listed = list(concepts)
    target = listed[rng.integers(len(listed))]
    X = rng.random((15, target.n)) < rng.uniform(0.3, 0.9)
    y = target(X) ^ (noisy & (rng.random(15) < 0.2))
    expected = plain_run(listed, X, y)
    learners = [Consistent(concepts), Halving(concepts), Consistent(iter(listed)), Halving(tuple(listed))]
    if isinstance(expected, int):
        for learner in learners:
            with pytest.raises(
                ContradictionError, match=rf"^Example {expected} leaves no concept: [^\n]*\.$"
            ) as caught:
                learner.fit(X, y)
            assert caught.value.example == expected
            assert learner.examples == expected - 1 and len(learner.version_space) > 0
            assert pickle.loads(pickle.dumps(caught.value)).example == expected
        return
    con, halving, left = expected
    for learner, mistakes in zip(learners, [con, halving] * 2):
        learner.fit(X, y)
        assert learner.mistakes == mistakes and learner.examples == 15
        assert learner.within_bound()
        assert list(learner.version_space) == left
    assert con <= bounds.consistent(len(listed)) == learners[0].bound
    assert halving <= bounds.halving(len(listed)) == learners[1].bound
    assert learners[0].hypothesis == left[0]
    grid = cube(target.n)
    votes = np.array([concept(grid) for concept in left]).sum(axis=0)
    hypothesis = learners[1].hypothesis
    assert (hypothesis(grid) == (2 * votes > len(left))).all()
    assert hypothesis(sp.csr_array(grid.astype(int))).tolist() == [learners[1].predict_one(x) for x in grid]
    if len(left) == 1:
        assert hypothesis == left[0]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_halving_meets_its_bound_on_the_full_cube(n):
    """All functions: at each instance half of those left say 1, whatever was said before; the label is the opposite."""
    learner = Halving(functions(n))
    for x in cube(n):
        learner.learn_one(x, not learner.predict_one(x))
    assert learner.mistakes == learner.bound == 2**n
    assert len(learner.version_space) == 1


@pytest.mark.parametrize("n", [1, 4, 12])
def test_halving_meets_its_bound_on_monotone_conjunctions(n):
    """All ones but for one attribute: half of the conjunctions left hold it."""
    learner = Halving(conjunctions(n, monotone=True))
    for j in range(n):
        x = np.arange(n) != j
        learner.learn_one(x, not learner.predict_one(x))
    assert learner.mistakes == learner.bound == n and len(learner.version_space) == 1


@pytest.mark.parametrize("n", [2, 7])
def test_con_meets_its_bound_where_halving_makes_one_mistake_at_most(n):
    """Point functions, each 1 at one of the unit vectors: CON tries one after the other."""
    points = [Conjunction([j if j == i else -j for j in range(1, n + 1)], n=n) for i in range(1, n + 1)]
    X, y = np.eye(n), np.arange(n) == n - 1
    con = Consistent(points).fit(X, y)
    assert con.mistakes == con.bound == n - 1
    halving = Halving(points).fit(X, y)
    assert halving.mistakes <= 1 and halving.hypothesis == con.hypothesis == points[-1]


def test_all_conjunctions_of_twelve_attributes():
    concepts = conjunctions(12)
    assert len(concepts) == 3**12
    target = Conjunction([1, -3, 7, 12], n=12)
    X, y = target.sample(300, "balanced", random_state=0)
    learner = Halving(concepts).fit(X, y)
    assert learner.hypothesis == target and learner.mistakes <= learner.bound < 19.1
    assert Consistent(concepts).fit(X, y).hypothesis == target


def test_classes_of_functions_need_the_number_of_attributes():
    concepts = [lambda x, j=j: x[j] for j in range(4)] + [lambda x: x.all()]
    learner = Halving(concepts, n=4).fit([[1, 0, 1, 0], [0, 1, 1, 0]], [1, 1])
    assert learner.hypothesis is concepts[2] and learner.n == 4
    with pytest.raises(ValueError, match="n must be given"):
        Halving(concepts)


@pytest.mark.parametrize(
    "call",
    [
        lambda: conjunctions(0),
        lambda: conjunctions(3, k=4),
        lambda: conjunctions(3, k=-1),
        lambda: conjunctions(30),
        lambda: conjunctions(60, k=20),
        lambda: functions(5),
        lambda: Halving([]),
        lambda: Halving(3),
        lambda: Halving([Conjunction([1], n=2), Conjunction([1], n=3)]),
        lambda: Consistent(conjunctions(3), n=4),
        lambda: Consistent(conjunctions(3)).learn_one([1, 0], 1),
        lambda: Halving(conjunctions(3)).learn_one([1, 0, 1], 3),
        lambda: Halving(conjunctions(3)).fit(np.ones((2, 4)), [0, 1]),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()


def test_monotone_conjunctions_of_two_literals_are_the_pairs_in_order():
    found = [concept.literals for concept in conjunctions(5, k=2, monotone=True)]
    assert found == list(combinations(range(1, 6), 2))


@pytest.mark.slow
@pytest.mark.parametrize(
    "concepts", [conjunctions(7), conjunctions(10, monotone=True), conjunctions(9, k=3), functions(4)]
)
def test_thousands_of_random_runs_keep_the_bounds(concepts):
    rng = np.random.default_rng(0)
    for _ in range(1000):
        target = concepts[int(rng.integers(len(concepts)))]
        X = rng.random((30, concepts.n)) < rng.uniform(0.2, 0.9)
        y = target(X)
        assert Halving(concepts).fit(X, y).within_bound()
        assert Consistent(concepts).fit(X, y).within_bound()
