"""Tree kernels: how many pieces two parse trees share (Collins & Duffy 2002; Vishwanathan & Smola 2003)."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

from onlearn.kernels.base import Points, Tile
from onlearn.kernels.family import kernel
from onlearn.kernels.pairwise import Pairwise, share
from onlearn.kernels.trees_pairs import tree_block, tree_diagonal
from onlearn.kernels.trees_points import prepare
from onlearn.spelling import param

STEP = 40.0  # nanoseconds, measured: a node of one of the two trees of a pair


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
    decay: float = param(1.0, "what each production in a piece multiplies its count by", above=0)

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

    @property
    def cut(self) -> float:
        """What cutting a child off adds to the pieces that go on with it."""
        return 1.0 if self.kind == "subset" else 0.0
