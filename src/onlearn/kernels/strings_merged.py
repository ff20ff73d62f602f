"""A fitted model of strings in one suffix automaton: sum_i a_i k(x, s_i) for all outputs in one walk over x."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onlearn.kernels.pairwise import share
from onlearn.kernels.strings_block import WALK, running_sums
from onlearn.kernels.strings_points import StringPoints, same_kind
from onlearn.kernels.suffix import automaton, walk


class MergedStrings:
    """x -> sum_i coefs[i] k(x, s_i), a column of ``coefs`` an output; made by ``Substrings.merged``."""

    def __init__(self, strings: StringPoints, coefs: Any, weights: np.ndarray, who: str) -> None:
        coefs = np.asarray(coefs, dtype=np.float64)
        coefs = coefs.reshape(-1, 1) if coefs.ndim == 1 else coefs
        if coefs.ndim != 2 or len(coefs) != len(strings):
            raise ValueError(f"{who}: coefs must have a row for each of the {len(strings)} strings, not {coefs.shape}")
        if not np.isfinite(coefs).all():
            raise ValueError(f"{who}: coefs must be finite")
        self.who = who
        self.n_outputs = coefs.shape[1]
        self.empty = StringPoints(strings.text[:0], strings.starts[:1], strings.kind)  # to know the kind by
        self.upto = running_sums(weights)
        self.automaton = automaton(strings.text, strings.starts, coefs, self.upto)

    def scores(self, P: Any) -> np.ndarray:
        """The outputs for each of the points, ``len(P) x n_outputs``."""
        strings: StringPoints = P["strings"]
        same_kind(self.empty, strings)
        out = np.empty((len(strings), self.n_outputs))
        rows = np.arange(len(strings))
        work = partial(walk, strings.text, strings.starts, rows, *self.automaton, self.upto, out)
        share(work, len(strings), (WALK + self.n_outputs) * strings.starts[-1])
        if not np.isfinite(out).all():
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise OverflowError(f"{self.who} is too large for float64 at string {row}: choose a smaller decay")
        return out
