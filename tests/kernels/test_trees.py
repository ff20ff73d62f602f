"""Tree kernels against listing all fragments, and what is read as a tree."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from onlearn import kernels
from onlearn.kernels import Trees

DOG = "(NP (D the) (N dog))"
SENTENCE = ("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", ("V", "chased"), ("NP", ("D", "the"), ("N", "cat"))))


def bracketed(tree):
    return tree if isinstance(tree, str) else f"({' '.join([tree[0], *map(bracketed, tree[1:])])})"


def nodes(tree):
    """Those with children."""
    if not isinstance(tree, str) and len(tree) > 1:
        yield tree
        for child in tree[1:]:
            yield from nodes(child)


def fragments(node):
    """All subset trees rooted at a node, with their sizes: each child that is a node is cut off or goes on."""
    ways = []
    for child in node[1:]:
        if isinstance(child, str):
            ways.append([(("leaf", child), 0)])
        elif len(child) == 1:
            ways.append([(("leaf", child[0]), 0)])
        else:
            ways.append([(("cut", child[0]), 0), *fragments(child)])
    for chosen in product(*ways):
        yield (node[0], *(piece for piece, _ in chosen)), 1 + sum(size for _, size in chosen)


def is_complete(piece):
    return all(part[0] != "cut" and (part[0] == "leaf" or is_complete(part)) for part in piece[1:])


def by_definition(X, Z, kind, decay):
    def pieces(tree):
        every = Counter(piece for node in nodes(tree) for piece in fragments(node))
        return {piece: n for piece, n in every.items() if kind == "subset" or is_complete(piece[0])}

    counted = [pieces(z) for z in Z]
    return np.array(
        [
            [sum(n * b.get(piece, 0) * decay ** piece[1] for piece, n in a.items()) for b in counted]
            for a in map(pieces, X)
        ],
        dtype=float,
    ).reshape(len(X), len(Z))


LEAVES = st.sampled_from(["x", "y"])
TREES = st.recursive(
    st.tuples(st.sampled_from(["nA", "nB"]), LEAVES),
    lambda below: (
        st.tuples(st.sampled_from(["nA", "nB"]), below | LEAVES)
        | st.tuples(st.sampled_from(["nA", "nB"]), below, below | LEAVES)
    ),
    max_leaves=7,
)


@given(
    st.lists(TREES, min_size=1, max_size=4),
    st.lists(TREES, min_size=1, max_size=4),
    st.sampled_from(["subset", "subtree"]),
    st.sampled_from([1.0, 0.4, 1.5]),
)
def test_equals_listing_all_fragments(X, Z, kind, decay):
    k, expected = Trees(kind, decay), by_definition(X, Z, kind, decay)
    np.testing.assert_allclose(k(X, Z), expected, rtol=1e-12)
    np.testing.assert_allclose(k(list(map(bracketed, X)), Z), expected, rtol=1e-12)
    np.testing.assert_allclose(k(X), by_definition(X, X, kind, decay), rtol=1e-12)
    np.testing.assert_allclose(k.diag(Z), by_definition(Z, Z, kind, decay).diagonal(), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "decay", "value"),
    [
        ("subset", 1.0, 6),  # (D the), (N dog), and NP with each of the two cut off or not
        ("subset", 0.5, 2 * 0.5 + 0.5 * 1.5 * 1.5),
        ("subtree", 1.0, 3),
        ("subtree", 0.5, 2 * 0.5 + 0.5**3),
    ],
)
def test_worked_example(kind, decay, value):
    assert Trees(kind, decay)([DOG])[0, 0] == value


def test_a_sentence_shares_its_noun_phrases():
    # NP twice in the sentence: (NP D N), (NP (D the) N) each twice, (D the) twice; dog once, twice more in the NP
    assert Trees()([SENTENCE], [DOG])[0, 0] == 2 + 2 + 2 + 1 + 1 + 1


def test_words_and_nodes_of_one_name_differ():
    assert Trees()(["(A B)"], ["(A (B c))"])[0, 0] == 0
    assert Trees()(["(A (B))"], ["(A B)"])[0, 0] == 1  # brackets around a leaf change nothing
    assert Trees()([("A", "b c")], [("A", "b", "c")])[0, 0] == 0
    assert Trees()(["(A bc)"], ["(A b c)"])[0, 0] == 0


def test_brackets_as_treebanks_have_them():
    text = "( (S (NP (D the) (N dog))\n     (VP (V barks)) ))"
    inner = ("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", ("V", "barks")))
    assert Trees()([text], [("", inner)])[0, 0] == Trees()([text])[0, 0] > Trees()([inner])[0, 0]
    assert Trees()([text], [DOG])[0, 0] == 6
    assert Trees()(["(leaf)"])[0, 0] == 0


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        ("(S (NP dog)", "tree 1: position 0: this bracket is never closed"),
        ("(S (NP (D the)", "tree 1: position 3: this bracket is never closed"),
        ("(S dog))", r"tree 1: position 7: '\)' follows the end of the tree"),
        (") (S dog)", r"tree 1: position 0: '\)' closes a bracket that was never opened"),
        ("dog", "tree 1: position 0: 'dog' is outside of all brackets"),
        ("(S dog) (S cat)", "tree 1: position 8: .* follows the end of the tree"),
        ("(S ())", "tree 1: position 4: nothing between the brackets"),
        ("  ", "tree 1: it is empty"),
    ],
)
def test_bad_brackets_are_shown(tree, sentence):
    with pytest.raises(ValueError, match=sentence):
        Trees()([DOG, tree])


@pytest.mark.parametrize("tree", [None, 5, (), (1, "a"), ("A", 3), ("A", ()), b"(A b)"])
def test_what_is_no_tree_is_named(tree):
    with pytest.raises(TypeError, match="trees: tree 1: "):
        Trees()([DOG, tree])
    with pytest.raises(TypeError, match="a list of trees"):
        Trees()(DOG)


def test_deep_and_wide_trees():
    deep = "(A " * 3000 + "x" + ")" * 3000
    assert Trees("subtree")([deep])[0, 0] == 3000
    nested = "x"
    for _ in range(3000):
        nested = ("A", nested)
    assert Trees("subtree")([nested], [deep])[0, 0] == 3000
    assert Trees("subtree")(["(A" + " x" * 5000 + ")"])[0, 0] == 1


def test_large_trees_take_room_for_what_matches_only():
    X = ["(S " + " ".join(f"(N{n % 7000} w{n})" for n in range(start, start + 20_000)) + ")" for start in (0, 15_000)]
    assert Trees("subtree")(X)[0, 1] == 5000  # dense, the table would have 4e8 places


def test_too_large_is_an_error():
    bush = "(A x)"
    for _ in range(11):
        bush = f"(A {bush} {bush})"
    with pytest.raises(OverflowError, match="too large"):
        Trees()([bush])
    assert np.isfinite(Trees(decay=0.1)([bush])).all()


def test_points_are_taken_and_joined():
    X = [DOG, SENTENCE, "(A b)", "(x)", ("NP", ("D", "the"), ("N", "cat"))]
    k = Trees(decay=0.5)
    K, P = k(X), k.points(X)
    for rows in ([3, 1, 1], slice(1, 4), slice(None, None, -2), np.array([], dtype=int)):
        np.testing.assert_array_equal(k.block(P.take(rows), P), K[rows])
    both = P.take(slice(0, 2)).join([P.take([4]), P.take(slice(0, 0))])
    np.testing.assert_array_equal(k.block(both, both), K[np.ix_([0, 1, 4], [0, 1, 4])])
    assert k([], X).shape == (0, 5)


@given(st.lists(TREES, min_size=1, max_size=12), st.sampled_from(["subset", "subtree"]))
def test_positive_semi_definite(X, kind):
    K = Trees(kind, 0.7)(X)
    assert (K == K.T).all() and np.linalg.eigvalsh(K)[0] >= -1e-9 * max(1.0, np.trace(K))


def test_parameters():
    k = Trees("subtree", decay=0.5)
    assert repr(k) == "trees(kind='subtree', decay=0.5)" and clone(k) == k != Trees()
    for wrong in (dict(kind="partial"), dict(decay=0), dict(decay="a")):
        with pytest.raises(ValueError, match="trees: "):
            Trees(**wrong)


def test_formulas_are_read_and_kernels_stored():
    k = kernels.get("normalize(trees(subtree, decay=0.5))")
    assert k == kernels.normalize(Trees("subtree", 0.5)) == kernels.get(repr(k)) == kernels.unpack(*kernels.pack(k))
    X = [DOG, SENTENCE]
    np.testing.assert_allclose(k(kernels.unpack_data(*kernels.pack_data(X))), k(X))
    with pytest.raises(ValueError, match=r"row 1: k\(x, x\) is 0"):
        k([DOG, "(leaf)"])


def test_questions_are_told_apart_by_their_trees():
    """Trees made of a small grammar: who-questions and how-many-questions differ in their fragments only."""
    rng = np.random.default_rng(0)
    nouns, verbs = ["dog", "city", "river", "poet"], ["wrote", "crossed", "saw", "built"]

    def question(many):
        noun, verb, other = rng.choice(nouns), rng.choice(verbs), rng.choice(nouns)
        phrase = f"(NP (D the) (N {other}))"
        asked = f"(WHNP (WRB how) (J many) (N {noun}))" if many else "(WHNP (WP who))"
        return f"(SBARQ {asked} (SQ (VP (V {verb}) {phrase})))"

    y = rng.integers(0, 2, 60) * 2 - 1
    X = [question(label > 0) for label in y]
    K = Trees(decay=0.4)(X)
    a = np.zeros(30)
    for i in [*range(30)] * 3:
        a[i] += y[i] * (y[i] * (K[i, :30] @ a) <= 0)
    assert (np.sign(K[30:, :30] @ a) == y[30:]).all()
