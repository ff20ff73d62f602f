"""Trees as compiled code sees them: the nodes of all trees in flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.kernels.trees_parse import read_trees


class Forest(NamedTuple):
    """Numbers of nodes count from the first of their tree."""

    starts: np.ndarray  # tree i has the nodes starts[i] to starts[i + 1]
    digests: np.ndarray  # a row a node: its production
    order: np.ndarray  # of each tree: its nodes, sorted by production
    rank: np.ndarray  # of each node: where in that order it is
    edges: np.ndarray  # node v has the children edges[v] to edges[v + 1]
    children: np.ndarray  # number of the child, or LEAF


class TreePoints:
    """Parse trees, prepared: productions numbered, nodes sorted by them."""

    dtype = np.dtype(np.float64)

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
    """All places of the given spans, one span after the other, and the new edges."""
    lengths = np.diff(edges)[rows]
    new = np.concatenate([[0], np.cumsum(lengths)])
    return np.arange(new[-1]) + np.repeat(edges[:-1][rows] - new[:-1], lengths), new


def _after(edges: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.concatenate([np.diff(part) for part in edges]))])
