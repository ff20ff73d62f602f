"""Examples of concepts: their labels, how they are distributed, noise, sparse rows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from onlearn.theory import DNF, AtLeast, Conjunction, Disjunction, Predicate, Xor

CONCEPTS = [
    Conjunction([1, -3], n=4),
    Disjunction([1, 2, -4], n=4),
    AtLeast(2, [1, -2, 3], n=4),
    Xor([1, -2, 4], n=4),
    DNF([[1, 2], [-1, 3], [2, 2, 4]], n=4),
    DNF([[1, -1], [2, 3]], n=4),
    Predicate(lambda x: x[0] or x[2:].all(), n=4),
    Conjunction([1, -1, 2, -3, 3], n=4),
]
WITH_BOTH = CONCEPTS[:-1]
MANY = [  # too many attributes to look at all instances
    Conjunction([1, -30], n=30),
    DNF([[1, 2, 3], [-1, 4, 20]] + [[j] for j in (21, 22)] + [[j, j + 1] for j in range(5, 18)], n=30),
    DNF([[*range(1, 30)], [-1, -2, -3, *range(4, 30)]], n=30),  # one instance in 2^27 is positive
    Predicate(lambda x: x[:15].sum() > x[15:].sum(), n=30),
    Xor(range(1, 31), n=30),
    AtLeast(10, range(1, 101), n=200),
]


@pytest.mark.parametrize("concept", [*CONCEPTS, *MANY], ids=str)
def test_uniform_labels_are_the_concepts(concept):
    X, y = concept.sample(500, random_state=1)
    assert X.shape == (500, concept.n) and X.dtype == bool and y.dtype == np.int64
    assert (concept(X) == y).all()
    assert abs(X.mean() - 0.5) < 0.05


@pytest.mark.parametrize("how", ["balanced", "sparse"])
@pytest.mark.parametrize("concept", [*WITH_BOTH, *MANY], ids=str)
def test_half_of_balanced_and_sparse_labels_are_1(concept, how):
    X, y = concept.sample(300, how, random_state=1)
    assert y.sum() == 150
    assert (concept(X) == y).all()
    assert sp.issparse(X) == (how == "sparse")
    again, labels = concept.sample(300, how, random_state=1)
    assert (labels == y).all() and not (again != X).sum()
    assert concept.sample(7, how, random_state=3)[1].sum() in (3, 4)


@pytest.mark.parametrize("concept", WITH_BOTH, ids=str)
def test_balanced_instances_are_uniform_given_the_label(concept):
    cube = np.array(list(product([False, True], repeat=4)))
    m = 40_000
    X, _ = concept.sample(m, "balanced", random_state=0)
    counts = np.bincount(X @ [8, 4, 2, 1], minlength=16)
    values = concept(cube)
    for label in (False, True):
        mine = counts[values == label]
        expected = m / 2 / len(mine)
        assert (np.abs(mine - expected) < 5 * np.sqrt(expected)).all()


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 1.0))
def test_noise_flips_that_share_of_labels(seed, noise):
    concept = Disjunction([1, 2], n=6)
    X, y = concept.sample(2000, "balanced", noise=noise, random_state=seed)
    wrong = (concept(X) != y).mean()
    assert abs(wrong - noise) < 5 * np.sqrt(noise * (1 - noise) / 2000) + 1e-12


def test_sparse_rows_have_few_active_attributes_and_examples_near_the_boundary():
    n = 20_000
    concept = AtLeast(10, range(1, 101), n=n)
    X, y = concept.sample(2000, "sparse", random_state=0, active=30)
    assert isinstance(X, sp.csr_array) and X.has_canonical_format and set(X.data) == {1.0}
    relevant, rest = X[:, :100].sum(axis=1), X[:, 100:].sum(axis=1)
    assert abs(rest.mean() - 30) < 1 and abs(rest.var() - 30) < 5
    assert (relevant[y == 1] >= 10).all() and relevant[y == 1].mean() < 15
    assert (relevant[y == 0] < 10).all() and relevant[y == 0].mean() > 5
    shares = np.asarray(X[:, 100:].sum(axis=0)).ravel()
    assert shares.max() < 30 and (shares > 0).mean() > 0.9  # no column is preferred
    assert concept.sample(50, "sparse", random_state=0, active=0)[0][:, 100:].nnz == 0


def test_generators_go_on_where_they_stand():
    rng = np.random.default_rng(0)
    first, second = (Conjunction([1], n=20).sample(20, random_state=rng)[0] for _ in range(2))
    assert (first != second).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda: Conjunction([1], n=3).sample(0),
        lambda: Conjunction([1], n=3).sample(2.5),
        lambda: Conjunction([1], n=3).sample(5, "skewed"),
        lambda: Conjunction([1], n=3).sample(5, noise=1.5),
        lambda: Conjunction([1], n=3).sample(5, noise=np.nan),
        lambda: Conjunction([1], n=3).sample(5, "sparse", active=-1),
        lambda: Conjunction([], n=3).sample(5, "balanced"),
        lambda: Conjunction([1, -1], n=3).sample(5, "balanced"),
        lambda: Xor([1, -1], n=3).sample(5, "sparse"),
        lambda: DNF([[1], [-1]], n=3).sample(5, "balanced"),
        lambda: DNF([[]], n=3).sample(5, "balanced"),
        lambda: DNF([], n=3).sample(5, "balanced"),
        lambda: DNF([[j] for j in range(1, 41)]).sample(5, "balanced"),
        lambda: Predicate(lambda x: x.all(), n=40).sample(5, "balanced"),
        lambda: Predicate(lambda x: False, n=4).sample(5, "balanced"),
        lambda: Predicate(lambda x: x[0], n=4).sample(5, "sparse", active=0),
    ],
)
def test_what_cannot_be_drawn_is_told_in_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()
