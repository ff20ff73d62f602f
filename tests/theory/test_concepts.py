"""Concepts: values by definition, equality by meaning, formulas, linear threshold functions, bad arguments."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from onlearn.theory import DNF, AtLeast, Concept, Conjunction, Disjunction, Predicate, Xor, separable

N = 5
CUBE = np.array(list(product([False, True], repeat=N)))
literals = st.lists(st.integers(1, N).flatmap(lambda j: st.sampled_from([j, -j])), max_size=5)


def holds(x, literal):
    return bool(x[abs(literal) - 1]) == (literal > 0)


def true_literals(x, chosen):
    return sum(holds(x, literal) for literal in set(chosen))


concepts = st.one_of(
    literals.map(lambda chosen: (Conjunction(chosen, n=N), lambda x: all(holds(x, j) for j in chosen))),
    literals.map(lambda chosen: (Disjunction(chosen, n=N), lambda x: any(holds(x, j) for j in chosen))),
    literals.map(lambda chosen: (Xor(chosen, n=N), lambda x: true_literals(x, chosen) % 2 == 1)),
    st.tuples(st.integers(0, 5), literals).map(
        lambda both: (AtLeast(both[0], both[1], n=N), lambda x: true_literals(x, both[1]) >= both[0])
    ),
    st.lists(literals, max_size=5).map(
        lambda terms: (DNF(terms, n=N), lambda x: any(all(holds(x, j) for j in term) for term in terms))
    ),
    st.integers(0, 2**32 - 1).map(
        lambda table: (
            Predicate(lambda x: table >> int(x @ (1 << np.arange(N))) & 1, n=N),
            lambda x: bool(table >> int(x @ (1 << np.arange(N))) & 1),
        )
    ),
)


@settings(max_examples=200)
@given(concepts)
def test_values_are_those_of_the_definition(pair):
    concept, plain = pair
    expected = [plain(x) for x in CUBE]
    assert concept(CUBE).tolist() == expected
    assert concept(CUBE.astype(float)).tolist() == expected
    assert concept(sp.csc_matrix(CUBE.astype(int))).tolist() == expected
    assert [concept(x.astype(int).tolist()) for x in CUBE] == expected
    assert isinstance(concept, Concept)


@settings(max_examples=500)
@given(concepts, concepts)
def test_concepts_are_equal_exactly_if_their_values_are(one, other):
    a, b = one[0], other[0]
    same = bool((a(CUBE) == b(CUBE)).all())
    assert (a == b) == same
    if same:
        assert hash(a) == hash(b)


@settings(max_examples=200)
@given(concepts)
def test_a_concept_equals_its_table_in_every_kind(pair):
    concept, plain = pair
    minterms = [[j + 1 if x[j] else -j - 1 for j in range(N)] for x in CUBE if plain(x)]
    assert concept == DNF(minterms, n=N)
    assert concept == Predicate(plain, n=N)
    assert len({concept, DNF(minterms, n=N), Predicate(plain, n=N)}) == 1


@settings(max_examples=200)
@given(concepts)
def test_a_threshold_function_is_the_concept_or_none_separates(pair):
    concept, _ = pair
    values = concept(CUBE)
    if len(set(values.tolist())) == 2 and not separable(CUBE.astype(float), values):
        with pytest.raises(ValueError, match=r"^No linear threshold function equals [^\n]*\.$"):
            concept.threshold()
        return
    w, theta = concept.threshold()
    assert ((CUBE @ w >= theta) == values).all()
    assert (concept.threshold()(CUBE) == values).all()
    assert concept.threshold()(CUBE[3]) == values[3]


def test_threshold_functions_of_the_books():
    w, theta = Conjunction([1, 3, 5], n=5).threshold()
    assert w.tolist() == [1, 0, 1, 0, 1] and theta == 3
    w, theta = Disjunction([1, -3], n=3).threshold()  # x1 - x3 >= 0
    assert w.tolist() == [1, 0, -1] and theta == 0
    w, theta = AtLeast(10, range(1, 101), n=1000).threshold()
    assert w.sum() == 100 and theta == 10
    w, theta = DNF([[1], [-2, 3]], n=3).threshold()
    assert w.tolist() == [2, -1, 1] and theta == 1
    w, theta = Predicate(lambda x: x[0] or (x[1] and x[2]), n=3).threshold()
    assert w.tolist() == [2, 1, 1] and theta == 2


@pytest.mark.parametrize(
    ("concept", "reason"),
    [
        (Xor([1, 2]), "parity"),
        (DNF([[1, 2], [3, 4]]), "no weights separate"),
        (DNF([[1, 2], [-1, 3]]), "x1 makes it true in one place"),
        (DNF([[j, j + 1] for j in range(1, 14)]), "up to 12 attributes"),
        (Predicate(any, n=13), "up to 12 attributes"),
    ],
)
def test_what_is_no_threshold_function_says_why(concept, reason):
    with pytest.raises(ValueError, match=reason):
        concept.threshold()


def test_formulas():
    assert str(Conjunction([2, 3, -4], n=9)) == "x2 & x3 & ~x4"
    assert str(Disjunction([-1, 9])) == "~x1 | x9"
    assert str(AtLeast(2, [3, 1, -2])) == "at least 2 of x1, ~x2, x3"
    assert str(Xor([1, 2])) == "x1 ^ x2"
    assert str(DNF([[1, 2], [3]])) == "(x1 & x2) | x3"
    assert str(DNF([[1, 2]])) == "x1 & x2"
    assert str(Conjunction([], n=3)) == "true" and str(Disjunction([], n=3)) == str(DNF([], n=3)) == "false"
    assert str(Predicate(lambda x: True, n=7, name="always")) == "always(x1, ..., x7)"
    for concept in (Conjunction([1, -2]), Disjunction([3], n=8), AtLeast(2, [1, 2, 3]), Xor([1, 2]), DNF([[1], [2]])):
        copy = eval(repr(concept))
        assert copy == concept and repr(copy) == repr(concept)
        assert pickle.loads(pickle.dumps(concept)) == concept


def test_meaning_across_kinds():
    assert Conjunction([3, 1, 3], n=4) == Conjunction([1, 3], n=4)
    assert Conjunction([1], n=4) == Disjunction([1], n=4) == Xor([1], n=4) == AtLeast(1, [1], n=4) == DNF([[1]], n=4)
    assert Conjunction([1, -1], n=4) == Conjunction([2, -2, 3], n=4) == Disjunction([], n=4)
    assert Conjunction([1], n=4) != Conjunction([1], n=5)
    assert Conjunction([1, 2], n=4) != Conjunction([1], n=4)
    assert DNF([[1, 2], [1, 3], [2, 3]]) == AtLeast(2, [1, 2, 3])
    assert DNF([[1, -2], [-1, 2]]) == Xor([1, 2]) == Xor([-1, -2]) != Xor([-1, 2])
    assert Conjunction([1], n=4) != "x1"


def test_equality_with_very_many_attributes():
    n = 100_000
    everything = Conjunction(range(1, n + 1), n=n)
    assert everything == Conjunction(range(n, 0, -1), n=n) != Conjunction(range(1, n), n=n)
    pairs = [[j, j + 1] for j in range(1, 41, 2)]
    assert DNF(pairs, n=n) == DNF([*pairs, [1, 2, 50]], n=n) != DNF(pairs[1:], n=n)
    same = Predicate(np.all, n=n)
    assert same == Predicate(np.all, n=n) != Predicate(np.any, n=n)


def test_equality_of_formulas_with_negations_of_more_than_twelve_attributes():
    chain = [[j, -(j % 14 + 1)] for j in range(1, 15)]  # not all equal, said in either direction
    assert DNF(chain) == DNF([[-j, j % 14 + 1] for j in range(1, 15)])
    assert DNF(chain) != DNF([*chain[:-1], [14, -1, 2]])
    assert DNF([[1, *range(3, 16)], [-1, *range(3, 16)]]) == Conjunction(range(3, 16))


def test_formulas_too_complex_to_compare_are_told():
    rng = np.random.default_rng(0)
    terms = [rng.choice(np.arange(1, 25), 3, replace=False) * rng.choice([-1, 1], 3) for _ in range(70)]
    with pytest.raises(ValueError, match=r"^[^\n]*too complex[^\n]*\.$"):
        hash(DNF(term.tolist() for term in terms))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Conjunction([0], n=3),
        lambda: Conjunction([4], n=3),
        lambda: Conjunction([-4], n=3),
        lambda: Conjunction([1.5], n=3),
        lambda: Conjunction([True], n=3),
        lambda: Conjunction(["x1"], n=3),
        lambda: Conjunction([], n=0),
        lambda: Conjunction([]),
        lambda: Conjunction([1], n=2.5),
        lambda: DNF([], n=None),
        lambda: AtLeast(-1, [1]),
        lambda: Predicate(3, n=2),
        lambda: Conjunction([1], n=3)([1, 0]),
        lambda: Conjunction([1], n=3)([[1, 0]]),
        lambda: Conjunction([1], n=3)([2, 0, 1]),
        lambda: Conjunction([1], n=3)(["a", "b", "c"]),
        lambda: Conjunction([1], n=3)([np.nan, 0, 1]),
        lambda: Conjunction([1], n=3)(sp.csr_array([[2, 0, 1]])),
    ],
)
def test_bad_arguments_get_one_sentence(call):
    with pytest.raises(ValueError, match=r"^[^\n]*\.$"):
        call()


def test_sparse_rows_with_an_entry_given_twice_are_not_0_and_1():
    twice = sp.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(1, 3))
    with pytest.raises(ValueError, match="0 and 1"):
        Conjunction([2], n=3)(sp.csr_array(twice))
