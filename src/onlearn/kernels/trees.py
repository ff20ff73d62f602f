"""Tree kernels: the number of fragments that two parse trees share.

C(a, b), the weighted number of common fragments rooted at the nodes a and b, is 0 if their productions differ, else

    decay * product over the children of (1 + C(child of a, child of b))    subset trees: a child is cut off, or goes on
    decay * product over the children of C(child of a, child of b)          complete subtrees: each child goes on

where leaves count 1, and k is the sum of C over all pairs of nodes (Collins and Duffy, "Convolution kernels for natural
language", 2002; Vishwanathan and Smola 2003). Only pairs of nodes with equal productions are visited: they are found by
merging the two lists of nodes, which are sorted by production (Moschitti, "Making tree kernels practical for natural
language learning", 2006). In natural language there are about as many such pairs as nodes.

The production of a node is its label with those of its children, ``S -> NP VP``; leaves (words) have none. It is kept
as a hash of 128 bits, the same in every process. Two productions share one with a probability of one in a million if
there are 10^18 of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import allocating, compiled
from onlearn.engine.spec import param
from onlearn.kernels.base import ExampleError, Pairwise, Points, View, listed, share, shown
from onlearn.kernels.family import kernel
from onlearn.kernels.tiles import Tile
from onlearn.kernels.tree_features import TreeVocabulary

STEP = 40.0  # nanoseconds, measured: a node of one of the two trees of a pair
TOKEN = re.compile(r"[()]|[^\s()]+")
LEAF = -1


@kernel("trees")
class Trees(Pairwise):
    """k(x, z) = sum over pieces f of decay^size(f) * (occurrences of f in x) * (occurrences of f in z)

    Pieces are subset trees, which begin at any node and end anywhere, but have all children of a node or none; or
    subtrees, which go down to the leaves everywhere. The size is the number of nodes that have children in the
    piece. Trees are bracketed text or nested tuples; a leaf alone is no piece.

    >>> from onlearn.kernels import Trees
    >>> x = "(NP (D the) (N dog))"
    >>> z = ("NP", ("D", "the"), ("N", "cat"))
    >>> float(Trees()([x], [z])[0, 0])  # (D the), (NP D N), (NP (D the) N)
    3.0
    >>> float(Trees("subtree")([x], [z])[0, 0])  # (D the)
    1.0
    """

    kind: str = param("subset", "the pieces that are counted", words=("subset", "subtree"))
    decay: float = param(1.0, "the factor of a count for each production of the piece", above=0)

    data = "trees"

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "trees" not in views:
            views["trees"] = prepare(X, str(self))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["trees"], tile.Q["trees"]
        if not out.size:
            return
        work = partial(tree_block, P.forest, Q.forest, self.cut, self.decay, P is Q, out)
        cost = STEP * (len(P) * Q.forest.starts[-1] + len(Q) * P.forest.starts[-1])
        if len(P) >= len(Q):
            share(lambda first, past: work(first, past, 0, len(Q)), len(P), cost)
        else:
            share(lambda left, right: work(0, len(P), left, right), len(Q), cost)

    def diagonal(self, P: Points) -> np.ndarray:
        forest = P["trees"].forest
        out = np.empty(len(P))
        work = partial(tree_diagonal, forest, self.cut, self.decay, out)
        share(work, len(P), 2 * STEP * forest.starts[-1])
        return out

    def vocabulary(self, X: Any) -> TreeVocabulary:
        """The pieces of the trees X, which are the features."""
        return TreeVocabulary(read_trees(X, str(self))[0], self.kind == "subset", self.decay, str(self))

    def features(self, X: Any, vocabulary: TreeVocabulary | None = None) -> Any:
        """A SciPy matrix (CSR) with a column for each piece of a vocabulary: that of X, unless one is given.

        The feature of a piece is decay^(size / 2) times how often it occurs. Pieces that are not in the vocabulary v
        have no column: ``features(X, v) @ features(Z, v).T == k(X, Z)`` if v is the vocabulary of X, of Z, or of more.

        >>> v = Trees().vocabulary(["(NP (D the) N)"])
        >>> v.names()
        ['(D the)', '(NP (D ...) N)', '(NP (D the) N)']
        >>> Trees().features(["(NP (D a) N)"], v).toarray().tolist()
        [[0.0, 1.0, 0.0]]
        """
        if vocabulary is None:
            vocabulary = self.vocabulary(X)
        return vocabulary.features(read_trees(X, str(self))[0])

    @property
    def cut(self) -> float:
        """1 if a fragment may be cut off at a child, else 0."""
        return 1.0 if self.kind == "subset" else 0.0


# -- trees in flat arrays


class Forest(NamedTuple):
    """The nodes of all trees; a node is numbered from the first one of its tree."""

    starts: np.ndarray  # tree i has the nodes starts[i] to starts[i + 1]
    digests: np.ndarray  # of each node: the hash of its production
    order: np.ndarray  # of each tree: its nodes, sorted by production
    rank: np.ndarray  # of each node: its place in that order
    edges: np.ndarray  # node v has the children edges[v] to edges[v + 1]
    children: np.ndarray  # number of the child, or LEAF


class TreePoints(View):
    """Parse trees with their nodes sorted by production."""

    dtype: Any = np.dtype(np.float64)

    def __init__(self, forest: Forest) -> None:
        self.forest = forest

    def __len__(self) -> int:
        return len(self.forest.starts) - 1

    def take(self, rows: Any) -> TreePoints:
        starts, digests, order, rank, edges, children = self.forest
        rows = np.arange(len(self))[rows if isinstance(rows, slice) else np.asarray(rows)]
        nodes, new_starts = _spans(starts, rows)
        kids, new_edges = _spans(edges, nodes)
        return TreePoints(Forest(new_starts, digests[nodes], order[nodes], rank[nodes], new_edges, children[kids]))

    def join(self, others: Sequence[TreePoints]) -> TreePoints:
        forests = [self.forest, *(other.forest for other in others)]
        starts = _after([f.starts for f in forests])
        edges = _after([f.edges for f in forests])
        digests, order, rank, children = (
            np.concatenate([getattr(f, name) for f in forests]) for name in ("digests", "order", "rank", "children")
        )
        return TreePoints(Forest(starts, digests, order, rank, edges, children))


def prepare(X: Any, who: str) -> TreePoints:
    trees, digests = read_trees(X, who)
    starts = np.cumsum([0, *(len(tree.productions) for tree in trees)])
    kids = [children for tree in trees for children in tree.children]
    edges = np.cumsum([0, *(len(children) for children in kids)])
    children = np.fromiter((child for some in kids for child in some), dtype=np.int64, count=int(edges[-1]))
    owner = np.repeat(np.arange(len(trees)), np.diff(starts))
    places = np.lexsort((digests[:, 1], digests[:, 0], owner))
    rank = np.empty_like(places)
    rank[places] = np.arange(len(places)) - starts[owner]
    return TreePoints(Forest(starts, digests, places - starts[owner], rank, edges, children))


def _spans(edges: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All places of the given spans, one span after another, and the new edges."""
    lengths = np.diff(edges)[rows]
    new = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(new[-1]) + np.repeat(edges[:-1][rows] - new[:-1], lengths), new


def _after(edges: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in edges]))])


# -- reading trees


class Nodes(NamedTuple):
    """The nodes of a tree that have children, each after all nodes below it."""

    productions: list[bytes]
    children: list[list[int]]  # numbers of nodes; LEAF for a leaf


class Open(NamedTuple):
    """A node whose children are being read."""

    label: str
    children: list[tuple[str, int]]  # label and number
    position: int


class Reader:
    """Numbers the nodes of one tree as they are closed."""

    def __init__(self) -> None:
        self.nodes: Nodes = Nodes([], [])

    def close(self, node: Open) -> tuple[str, int]:
        """The label and the number of a node, for its parent."""
        if not node.children:
            return node.label, LEAF  # "(dog)" is the leaf "dog"
        words = [(node.label, 0), *node.children]
        # With its length a label cannot look like two; "w" and "n" tell a leaf from a node of the same label.
        text = "".join(f"{len(label)}{'w' if number == LEAF else 'n'}{label}" for label, number in words)
        self.nodes.productions.append(text.encode("utf-8", "surrogatepass"))
        self.nodes.children.append([number for _, number in node.children])
        return node.label, len(self.nodes.productions) - 1


def read_brackets(text: str) -> Nodes:
    """``(S (NP (D the) (N dog)) (VP (V barks)))``; the outermost brackets may be without a label, as in treebanks."""
    reader, stack, done, token = Reader(), list[Open](), False, None
    for token in TOKEN.finditer(text):
        word, position = token[0], token.start()
        if done:
            raise ValueError(f"position {position}: {word!r} follows the end of the tree; each string holds one tree")
        if word == "(":
            stack.append(Open("", [], position))
        elif not stack:
            what = "closes a bracket that was never opened" if word == ")" else "is outside of all brackets"
            raise ValueError(f"position {position}: {word!r} {what}")
        elif word == ")":
            node = stack.pop()
            if not node.label and not node.children:
                raise ValueError(f"position {position}: nothing between the brackets; write (LABEL children...)")
            part = reader.close(node)
            if stack:
                stack[-1].children.append(part)
            done = not stack
        elif not stack[-1].label and not stack[-1].children:
            stack[-1] = stack[-1]._replace(label=word)
        else:
            stack[-1].children.append((word, LEAF))
    if stack:
        raise ValueError(f"position {stack[-1].position}: this bracket is never closed")
    if token is None:
        raise ValueError("it is empty; write (LABEL children...)")
    return reader.nodes


def read_tuples(tree: Sequence[Any]) -> Nodes:
    """``("S", ("NP", ("D", "the"), ("N", "dog")), ("VP", ("V", "barks")))``."""
    reader = Reader()
    stack = [(_opened(tree), iter(tree[1:]))]
    while True:
        node, rest = stack[-1]
        for child in rest:
            if isinstance(child, str):
                node.children.append((child, LEAF))
            else:
                stack.append((_opened(child), iter(child[1:])))
                break
        else:
            part = reader.close(stack.pop()[0])
            if not stack:
                return reader.nodes
            stack[-1][0].children.append(part)


def _opened(node: Any) -> Open:
    if not isinstance(node, (tuple, list)) or not node or not isinstance(node[0], str):
        raise TypeError(f"a node must be (label, child, ...) and a leaf a string, not {shown(node)}")
    return Open(node[0], [], 0)


def read_tree(tree: Any) -> Nodes:
    """A tree in either form."""
    if isinstance(tree, str):
        return read_brackets(tree)
    if isinstance(tree, (tuple, list)):
        return read_tuples(tree)
    raise TypeError(f"it is {shown(tree)}, neither bracketed text nor nested tuples")


def read_trees(X: Any, who: str) -> tuple[list[Nodes], np.ndarray]:
    """The nodes of each tree, and the hashes of all productions (two uint64 for each node), tree by tree."""
    trees = []
    for number, tree in enumerate(listed(X, who, "trees")):
        try:
            trees.append(read_tree(tree))
        except TypeError as error:
            raise TypeError(f"{who}: tree {number}: {error}") from None
        except ValueError as error:
            why = f"not a tree for {who}: {error}"
            raise ExampleError(number, why, f"{who}: tree {number}: {error}") from None
    known: dict[bytes, bytes] = {}
    digests = []
    for tree in trees:
        for production in tree.productions:
            digest = known.get(production)
            if digest is None:
                digest = known[production] = hashlib.blake2b(production, digest_size=16).digest()
            digests.append(digest)
    return trees, np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)


# -- compiled loops over pairs of trees


@compiled
def matches(x, i, z, j, lows, highs):
    """For each node of tree i: the range of equal productions among the sorted nodes of tree j. Returns the pairs."""
    xs, zs = x.starts[i], z.starts[j]
    nodes, others = x.starts[i + 1] - xs, z.starts[j + 1] - zs
    p, q, pairs = 0, 0, 0
    while p < nodes:
        a = xs + x.order[xs + p]
        while q < others and before(z.digests, zs + z.order[zs + q], x.digests, a):
            q += 1
        past = q
        while past < others and same(z.digests, zs + z.order[zs + past], x.digests, a):
            past += 1
        while p < nodes and same(x.digests, xs + x.order[xs + p], x.digests, a):
            lows[x.order[xs + p]], highs[x.order[xs + p]] = q, past
            pairs += past - q
            p += 1
        q = past
    return pairs


@compiled
def before(a, i, b, j):
    return a[i, 0] < b[j, 0] or (a[i, 0] == b[j, 0] and a[i, 1] < b[j, 1])


@compiled
def same(a, i, b, j):
    return a[i, 0] == b[j, 0] and a[i, 1] == b[j, 1]


@compiled
def common(x, i, z, j, cut, decay, lows, highs, first, C):
    """k of tree i of x and tree j of z, whose pairs of nodes ``matches`` has found.

    C(a, b) is kept in ``C[first[a] + rank of b - lows[a]]``, so that there is an entry for each matching pair only.
    """
    xs, zs = x.starts[i], z.starts[j]
    total, count = 0.0, 0
    for a in range(x.starts[i + 1] - xs):  # the nodes below a node come before it
        first[a] = count
        start, stop = x.edges[xs + a], x.edges[xs + a + 1]
        for q in range(lows[a], highs[a]):
            shift = z.edges[zs + z.order[zs + q]] - start
            value = decay
            for e in range(start, stop):
                c = x.children[e]
                if c >= 0:
                    rank = z.rank[zs + z.children[e + shift]]
                    value *= cut + (C[first[c] + rank - lows[c]] if lows[c] <= rank < highs[c] else 0.0)
            C[count] = value
            count += 1
            total += value
    return total


@allocating
def tree_block(x, z, cut, decay, both, out, first, past, left, right):
    """out[i, j] for the trees first to past of x and left to right of z.

    ``cut`` is 1 if children may be cut off, else 0. With ``both``, x and z are the same: each pair is computed once.
    """
    room, C = np.zeros((3, largest(x)), dtype=np.int64), np.empty(64)
    for i in range(first, past):
        for j in range(left, min(i + 1, right) if both else right):
            pairs = matches(x, i, z, j, room[0], room[1])
            if pairs > len(C):
                C = np.empty(2 * pairs)
            out[i, j] = common(x, i, z, j, cut, decay, room[0], room[1], room[2], C)
            if both:
                out[j, i] = out[i, j]


@allocating
def tree_diagonal(x, cut, decay, out, first, past):
    """out[i] = k(x_i, x_i)"""
    room, C = np.zeros((3, largest(x)), dtype=np.int64), np.empty(64)
    for i in range(first, past):
        pairs = matches(x, i, x, i, room[0], room[1])
        if pairs > len(C):
            C = np.empty(2 * pairs)
        out[i] = common(x, i, x, i, cut, decay, room[0], room[1], room[2], C)


@compiled
def largest(x):
    """The number of nodes of the largest tree."""
    most = 1
    for i in range(len(x.starts) - 1):
        most = max(most, x.starts[i + 1] - x.starts[i])
    return most
