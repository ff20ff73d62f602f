"""The features of tree kernels, listed: the pieces of some trees, and how often each occurs in a tree.

A piece is a production with a choice for each child: a leaf, a node that is cut off, or a piece that begins at it.
So the pieces that begin at a node are made of those that begin at its children, and of each there is one entry, whose
number stands for it in larger ones. Nodes with the same tree below them have the same pieces, which are made once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from onlearn.kernels.psd import in_words

MOST = 4_000_000  # pieces, with repetitions, that can be listed
WORD, CUT = -1, -2  # choices for a child that are no piece
LABEL = re.compile(r"(\d+)[wn]")

Piece = tuple[bytes, tuple[int, ...]]  # the production, and a choice for each child


class TreeVocabulary:
    """The pieces of some trees, numbered by size; their order does not depend on that of the trees.

    ``trees`` are as ``trees.read_trees`` gives them. With ``cut``, pieces may end at any node; else they are whole.
    """

    def __init__(self, trees: list[Any], cut: bool, decay: float, who: str) -> None:
        self.cut, self.who = cut, who
        self.numbers: dict[Piece, int] = {}
        self.made: dict[bytes, list[Piece]] = {}  # by production
        self._refuse_many(trees)
        known: dict[Any, np.ndarray] = {}
        for tree in trees:
            for _ in self._pieces(tree, known, self._add):
                pass
        sizes = self._sizes()
        self.column: np.ndarray = self._columns(sizes)  # of each number
        with np.errstate(over="ignore", under="ignore"):
            self.factors: np.ndarray = float(decay) ** (0.5 * np.sort(sizes))

    def __len__(self) -> int:
        """The number of features."""
        return len(self.numbers)

    def names(self) -> list[str]:
        """The piece of each column in brackets; ``(N ...)`` is a node N that is cut off."""
        names: list[str] = []
        for production, choice in self.numbers:  # the parts of a piece come before it
            label, *children = read_labels(production)
            parts = [names[one] if one >= 0 else child if one == WORD else f"({child} ...)"
                     for one, child in zip(choice, children, strict=True)]  # fmt: skip
            names.append(f"({' '.join([label, *parts])})")
        return [names[number] for number in np.argsort(self.column)]

    def features(self, trees: list[Any]) -> Any:
        """decay^(size / 2) times the occurrences of each piece in each tree, as a SciPy matrix (CSR)."""
        import scipy.sparse as sp

        known: dict[Any, np.ndarray] = {}
        columns, values, indptr = [np.empty(0, dtype=np.int64)], [np.empty(0)], [0]
        for tree in trees:
            found = [np.empty(0, dtype=np.int64), *self._pieces(tree, known, self._look_up)]
            pieces, counts = np.unique(self.column[np.concatenate(found)], return_counts=True)
            columns.append(pieces)
            values.append(counts * self.factors[pieces])
            indptr.append(indptr[-1] + len(pieces))
        parts = np.concatenate(values), np.concatenate(columns), np.array(indptr)
        return sp.csr_matrix(parts, shape=(len(trees), len(self)))

    # ------------------------------------------------------------------ pieces

    def _pieces(self, tree: Any, known: dict[Any, np.ndarray], number: Any) -> Iterator[np.ndarray]:
        """The numbers of the pieces that begin at each node; ``known`` has those of trees that were met before."""
        below: list[Any] = []  # of each node: what is below it
        for production, children in zip(tree.productions, tree.children, strict=True):
            # Trees are the same if the node and the trees of the children are; each is known by its place in ``known``.
            kind = production, tuple(WORD if child < 0 else below[child][0] for child in children)
            if kind not in known:
                choices = [None if child < 0 else below[child][1] for child in children]
                known[kind] = np.array([len(known), *number(production, choices)], dtype=np.int64)
            below.append((int(known[kind][0]), known[kind][1:]))
            yield below[-1][1]

    def _choices(self, child: np.ndarray | None) -> list[int]:
        if child is None:
            return [WORD]
        return [CUT, *child.tolist()] if self.cut else child.tolist()

    def _add(self, production: bytes, children: list[np.ndarray | None]) -> list[int]:
        """Number all pieces with a production, whose children begin these pieces."""
        found = []
        for choice in product(*map(self._choices, children)):
            piece = production, choice
            if piece not in self.numbers:
                self.numbers[piece] = len(self.numbers)
                self.made.setdefault(production, []).append(piece)
            found.append(self.numbers[piece])
        return found

    def _look_up(self, production: bytes, children: list[np.ndarray | None]) -> list[int]:
        """Those of them that are known: by trying all, or all that are known with this production, if these are fewer.

        A piece of a piece is known, so that unknown ones cannot be a part of known ones.
        """
        choices = [*map(self._choices, children)]
        made = self.made.get(production, [])
        if prod(map(len, choices)) <= len(made):
            tried = (self.numbers.get((production, choice)) for choice in product(*choices))
            return [number for number in tried if number is not None]
        sets = [*map(set, choices)]
        fits = (piece for piece in made if all(one in some for one, some in zip(piece[1], sets, strict=True)))
        return [self.numbers[piece] for piece in fits]

    def _sizes(self) -> np.ndarray:
        """The number of productions in each piece."""
        sizes: list[int] = []
        for _, choice in self.numbers:
            sizes.append(1 + sum(sizes[one] for one in choice if one >= 0))
        return np.array(sizes, dtype=np.int64)

    def _columns(self, sizes: np.ndarray) -> np.ndarray:
        """The column of each piece: by size, by production, by the columns of its parts, which are smaller."""
        pieces, column = list(self.numbers), np.full(len(sizes) + 2, 0)
        column[[WORD, CUT]] = WORD, CUT
        done = 0
        for some in np.split(order := np.argsort(sizes, kind="stable"), np.flatnonzero(np.diff(sizes[order])) + 1):
            ranked = sorted(some.tolist(), key=lambda n: (pieces[n][0], [column[one] for one in pieces[n][1]]))
            column[ranked] = done + np.arange(len(ranked))
            done += len(ranked)
        return column[: len(sizes)]

    def _refuse_many(self, trees: list[Any]) -> None:
        """Refuse trees with more pieces than can be listed: they grow exponentially with the nodes."""
        total = 0
        for tree in trees:
            counts: list[int] = []
            for children in tree.children:
                counts.append(prod(1 + counts[child] for child in children if child >= 0) if self.cut else 1)
            total += sum(counts)
        if total > MOST:
            raise ValueError(
                f"{self.who}: {len(trees):,} trees have {in_words(total)} pieces, more than the {MOST:,} that can be "
                "listed: list those of smaller trees, use kind='subtree', or the kernel itself"
            )


def read_labels(production: bytes) -> list[str]:
    """The label of a node, and those of its children; each is written with its length, and w for a leaf or n."""
    labels, place = [], 0
    text = production.decode("utf-8", "surrogatepass")
    while place < len(text):
        found = LABEL.match(text, place)
        assert found is not None, text
        place = found.end() + int(found[1])
        labels.append(text[found.end() : place])
    return labels
