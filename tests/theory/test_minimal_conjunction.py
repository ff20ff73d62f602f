"""Shortest conjunctions by set cover, against trying all of them, and beside linear learners."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import onlearn
from onlearn.theory import Conjunction, Elimination, conjunctions, minimal_consistent
from onlearn.theory.set_cover import fewest_cover, greedy_cover

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=150)
@given(seeds, st.integers(1, 5), st.booleans())
def test_against_all_conjunctions(seed, n, monotone):
    rng = np.random.default_rng(seed)
    X = rng.random((12, n)) < 0.6
    every = list(conjunctions(n, monotone=monotone))
    y = every[rng.integers(len(every))](X) ^ (rng.random(12) < 0.02)
    agreeing = [concept for concept in every if (concept(X) == y).all()]
    if not agreeing and not y.any():
        return  # without a positive example "false" agrees, a pair of literals that is no conjunction of the list
    if not agreeing:
        for method in ("greedy", "exact"):
            with pytest.raises(ValueError, match=r"^No conjunction agrees with the examples: example \d+ [^\n]*\.$"):
                minimal_consistent(X, y, method, monotone)
        return
    fewest = min(len(concept.literals) for concept in agreeing)
    exact = minimal_consistent(X, y, "exact", monotone)
    greedy = minimal_consistent(X, y, monotone=monotone)
    assert (exact(X) == y).all() and (greedy(X) == y).all()
    assert exact.monotone and greedy.monotone if monotone else True
    if y.any():
        assert len(exact.literals) == fewest
    assert len(greedy.literals) <= fewest * (math.log(max(1, (~y).sum())) + 1)
    sparse = sp.csr_array(X.astype(float))
    assert minimal_consistent(sparse, np.where(y, 1, -1), monotone=monotone).literals == greedy.literals


@settings(max_examples=100)
@given(seeds, st.integers(1, 8), st.integers(0, 10))
def test_covers_against_all_sets_of_columns(seed, columns, rows):
    table = np.random.default_rng(seed).random((rows, columns)) < 0.35
    at_row, at_column = np.nonzero(table)
    coverable = table.any(axis=1)
    sets = (list(chosen) for size in range(columns + 1) for chosen in combinations(range(columns), size))
    fewest = next(len(chosen) for chosen in sets if table[coverable][:, chosen].any(axis=1).all())
    exact = fewest_cover(at_row, at_column, table.shape)
    assert len(exact) == fewest and table[coverable][:, exact].any(axis=1).all()
    greedy = greedy_cover(at_row, at_column, table.shape, rows)
    assert (greedy is None) == (not coverable.all())
    if greedy is not None:
        assert fewest <= len(greedy) and table[:, greedy].any(axis=1).all()


def test_greedy_takes_more_where_it_is_misled():
    """Columns of 8, 4 and 2 rows tempt it, but two of 7 rows are enough."""
    rows = np.arange(14)
    tempting = [rows[:8], rows[8:12], rows[12:]]
    halves = [rows[rows % 2 == 0], rows[rows % 2 == 1]]
    covers = [*tempting, *halves]
    X = np.ones((15, 5), dtype=int)  # literal j denies the rows of covers[j]; the last row is positive
    for j, denied in enumerate(covers):
        X[denied, j] = 0
    y = np.append(np.zeros(14), 1)
    assert minimal_consistent(X, y, monotone=True) == Conjunction([1, 2, 3], n=5)
    assert minimal_consistent(X, y, "exact", monotone=True) == Conjunction([4, 5], n=5)


def test_beside_elimination_and_linear_learners():
    """All agree with the examples; the shortest conjunction holds no more literals than the target."""
    target = Conjunction([2, -5, 9], n=40)
    X, y = target.sample(200, "balanced", random_state=0)
    new, labels = target.sample(5000, "balanced", random_state=1)
    exact, greedy = minimal_consistent(X, y, "exact"), minimal_consistent(X, y)
    all_literals = Elimination(40).fit(X, y).hypothesis
    assert exact == greedy == target
    assert set(target.literals) <= set(all_literals.literals)
    linear = onlearn.Perceptron(epochs=None, max_epochs=10_000, random_state=0).fit(X, y)
    assert linear.separable_ and linear.score(X, y) == 1.0
    assert linear.score(new, labels) > 0.85


def test_wide_sparse_rows():
    n = 50_000
    target = Conjunction([7, 40_000], n=n)
    X, y = target.sample(300, "sparse", random_state=0)
    found = minimal_consistent(X, y)
    assert (found(X) == y).all() and len(found.literals) <= 3
    assert minimal_consistent(X, y, "exact", monotone=True) == target


def test_one_label_alone():
    assert minimal_consistent([[1, 0], [0, 1]], [1, 1]) == Conjunction([], n=2)
    false = minimal_consistent([[1, 0], [0, 1]], [0, 0], "exact")
    assert not false(np.array([[1, 0], [0, 1]])).any() and len(false.literals) <= 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimal_consistent([[1, 0]], [1], method="best"),
        lambda: minimal_consistent([[1, 2]], [1]),
        lambda: minimal_consistent([1, 0], [1, 0]),
        lambda: minimal_consistent([[1, 0]], [1, 0]),
        lambda: minimal_consistent([[1, 0], [1, 0]], [1, 0]),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()


def test_no_proof_within_the_time_is_told():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 120)) < 0.75, np.zeros(400)
    X = np.concatenate([X, np.ones((1, 120), dtype=bool)])
    with pytest.raises(ArithmeticError, match="were not found"):
        minimal_consistent(X, np.append(y, 1), "exact", monotone=True, time_limit=0.05)
