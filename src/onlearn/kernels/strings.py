"""The substring kernel: how many substrings two strings share, counted as often as they occur.

``Substrings()`` counts all of them; with ``min_length = max_length = n`` it is the n-spectrum kernel (Leslie, Eskin &
Noble 2002); with a decay, long ones count less (or more): Vishwanathan & Smola, "Fast kernels for string and tree
matching" (2003).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from onlearn.kernels.base import Points, Tile
from onlearn.kernels.family import kernel
from onlearn.kernels.pairwise import Pairwise
from onlearn.kernels.strings_block import diagonal, fill
from onlearn.kernels.strings_features import Vocabulary
from onlearn.kernels.strings_merged import MergedStrings
from onlearn.kernels.strings_points import StringPoints, encode
from onlearn.spelling import param


@kernel("substrings")
class Substrings(Pairwise):
    """k(x, z) = sum over strings u of decay^(2 |u|) * (occurrences of u in x) * (occurrences of u in z)

    over all u with min_length <= |u| <= max_length: contiguous substrings, overlapping occurrences included. The
    feature of u is decay^|u| times how often it occurs. x and z are str, compared by code points, or bytes.

    >>> from onlearn.kernels import Substrings
    >>> float(Substrings()(["abab"], ["ab"])[0, 0])  # a twice, b twice, ab twice
    6.0
    >>> float(Substrings(min_length=2, decay=0.5)(["abab"], ["ab"])[0, 0])
    0.125
    """

    min_length: int = param(1, "the shortest substrings that count", at_least=1)
    max_length: int | None = param(
        None, "the longest substrings that count; None: of any length", at_least=1, words=(None,)
    )
    decay: float = param(1.0, "what each character of a substring multiplies its feature by", above=0)

    data = "strings"

    def check(self) -> None:
        if self.max_length is None:
            return
        if self.max_length != int(self.max_length):
            raise ValueError(f"substrings: max_length must be None or a whole number, not {self.max_length!r}")
        self.max_length = int(self.max_length)
        if self.max_length < self.min_length:
            raise ValueError(
                f"substrings: max_length={self.max_length} is below min_length={self.min_length}: no substring counts"
            )

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "strings" not in views:
            views["strings"] = encode(X, str(self))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["strings"], tile.Q["strings"]
        fill(P, Q, self.weights(min(P.longest, Q.longest)), out)

    def diagonal(self, P: Points) -> np.ndarray:
        strings: StringPoints = P["strings"]
        return diagonal(strings, self.weights(strings.longest))

    def merged(self, P: Points, coefs: Any) -> MergedStrings:
        """The function x -> sum_i coefs[i] k(x, p_i), in one structure: its cost does not depend on how many p_i.

        ``coefs`` has a row a string, and a column an output if there are several functions.
        """
        strings: StringPoints = P["strings"]
        return MergedStrings(strings, coefs, self.weights(strings.longest), str(self))

    def vocabulary(self, X: Any) -> Vocabulary:
        """The substrings of X that count: one feature each."""
        strings = encode(X, str(self))
        return Vocabulary(strings, self.weights(strings.longest), self.min_length, str(self))

    def features(self, X: Any, vocabulary: Vocabulary | None = None) -> Any:
        """Sparse rows (CSR), a column a substring of a vocabulary: that of X, unless one is given.

        Substrings that are not in the vocabulary v have no column: ``features(X, v) @ features(Z, v).T == k(X, Z)`` if
        v is the vocabulary of X, of Z, or of more.
        """
        if vocabulary is None:
            vocabulary = self.vocabulary(X)
        return vocabulary.features(encode(X, str(self)))

    def weights(self, longest: int) -> np.ndarray:
        """``weights[n]`` is what a shared substring of length n counts, up to the longest that can be shared."""
        most = longest if self.max_length is None else min(longest, self.max_length)
        with np.errstate(over="ignore", under="ignore"):
            weights = self.decay ** (2.0 * np.arange(most + 1))
        weights[: self.min_length] = 0.0
        return weights
