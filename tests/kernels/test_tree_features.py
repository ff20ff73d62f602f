"""Features of tree kernels, listed: <phi(x), phi(z)> = k(x, z)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.test_trees import DOG, TREES, by_definition, fragments, is_complete, nodes
from onlearn.kernels import Trees


def named(piece):
    """A fragment as text; one that is cut off as ``(N ...)``."""
    if piece[0] == "leaf":
        return piece[1]
    return f"({piece[1]} ...)" if piece[0] == "cut" else f"({' '.join([piece[0], *map(named, piece[1:])])})"


@given(
    st.lists(TREES, min_size=1, max_size=4),
    st.lists(TREES, min_size=1, max_size=4),
    st.sampled_from(["subset", "subtree"]),
    st.sampled_from([1.0, 0.4]),
)
def test_inner_products_are_the_kernel(X, Z, kind, decay):
    k = Trees(kind, decay)
    F = k.features(X)
    np.testing.assert_allclose((F @ F.T).toarray(), k(X), rtol=1e-12)
    for vocabulary in (k.vocabulary(X), k.vocabulary(Z), k.vocabulary(X + Z)):
        product = k.features(X, vocabulary) @ k.features(Z, vocabulary).T
        np.testing.assert_allclose(product.toarray(), k(X, Z), rtol=1e-12, atol=1e-12)
    if decay == 1.0:
        np.testing.assert_array_equal((F @ F.T).toarray(), by_definition(X, X, kind, 1.0))  # to the last bit


@given(st.lists(TREES, min_size=1, max_size=4), st.sampled_from(["subset", "subtree"]))
def test_names_tell_pieces_apart(X, kind):
    vocabulary = Trees(kind).vocabulary(X)
    every = Counter(piece for tree in X for node in nodes(tree) for piece in fragments(node))
    wanted = {named(piece): n for (piece, _), n in every.items() if kind == "subset" or is_complete(piece)}
    assert sorted(vocabulary.names()) == sorted(wanted) and len(vocabulary) == len(wanted)
    counts = Trees(kind).features(X, vocabulary).sum(axis=0).tolist()[0]
    assert dict(zip(vocabulary.names(), counts, strict=True)) == wanted
    sizes = [1 + name.count("(") - name.count(" ...)") - 1 for name in vocabulary.names()]
    assert sizes == sorted(sizes)
    assert Trees(kind).vocabulary(X[::-1]).names() == vocabulary.names()


def test_a_worked_example():
    vocabulary = Trees(decay=0.25).vocabulary([DOG])
    assert vocabulary.names() == [
        "(D the)",
        "(N dog)",
        "(NP (D ...) (N ...))",
        "(NP (D ...) (N dog))",
        "(NP (D the) (N ...))",
        "(NP (D the) (N dog))",
    ]
    found = Trees(decay=0.25).features([DOG, "(NP (D the) (N cat))"], vocabulary).toarray()
    assert found.tolist() == [[0.5, 0.5, 0.5, 0.25, 0.25, 0.125], [0.5, 0, 0.5, 0, 0.25, 0]]
    assert Trees("subtree").vocabulary([DOG]).names() == ["(D the)", "(N dog)", "(NP (D the) (N dog))"]


def test_words_and_nodes_of_one_name_differ():
    assert Trees().vocabulary(["(A B)", "(A (B c))"]).names() == ["(A (B ...))", "(A B)", "(B c)", "(A (B c))"]
    assert Trees().vocabulary([("A b", "c 3w", "\udcff")]).names() == ["(A b c 3w \udcff)"]


def test_too_many_are_refused_with_their_number():
    wide = ("S", *[("N", "x")] * 60)
    with pytest.raises(ValueError, match=r"trees: 1 trees have about 10\^18 pieces, more than the 4,000,000"):
        Trees().features([wide])
    assert Trees("subtree").features([wide]).toarray().tolist() == [[60.0, 1.0]]
    few = Trees().vocabulary(["(S (N x) (N y))"])
    assert Trees().features([wide], few).toarray().sum() == 60  # those that are known can be counted


def test_deep_trees():
    chain = "x"
    for _ in range(300):
        chain = ("N", chain)
    k = Trees()
    assert len(k.vocabulary([chain])) == 599  # N to the word, and N to a cut, of 300 and 299 lengths
    F = k.features([chain, ("N", "x")])
    np.testing.assert_array_equal((F @ F.T).toarray(), k([chain, ("N", "x")]))


def test_no_trees_and_leaves():
    assert Trees().features([]).shape == (0, 0)
    assert Trees().features(["(dog)"]).shape == (1, 0)
    assert Trees().features(["(dog)"], Trees().vocabulary([DOG])).nnz == 0
    with pytest.raises(ValueError, match="tree 1: position 0"):
        Trees().features([DOG, "(A"])
