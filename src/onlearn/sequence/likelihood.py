"""The likelihood of a conditional random field on all sequences, and its gradient: expected features less gold ones.

    L(w) = sum over sequences of (log Z - s(gold)) + l2/2 |w|^2         (an l1 penalty is the business of ``owlqn``)

Sequences are shared out in a fixed number of pieces, whose gradients are added in order, so that the sum does not depend
on how many processors there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.sequence import loops
from onlearn.sequence.sums import posterior_in_logarithms, posterior_in_powers
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.weight_index import Index, add_emissions
from onlearn.threads import cores, over_pieces

PIECES = 4
SOON = 24  # attributes between asking for what belongs to one and using it


class Likelihood:
    """The objective as a function of the weights, for minimisers; number 0, which is no weight, stays 0."""

    def __init__(self, rows: TokenRows, codes: np.ndarray, index: Index, weights: int, l2: float) -> None:
        self.rows, self.codes, self.index, self.l2 = rows, codes, index, l2
        labels, longest = len(index.initial), int(np.diff(rows.offsets).max(initial=1))
        count = len(rows.offsets) - 1
        # as many tokens in each piece, or nearly
        cuts = np.searchsorted(rows.offsets, np.linspace(0, rows.tokens, PIECES + 1))
        cuts[0], cuts[-1] = 0, count
        self.cuts: list[int] = cuts.tolist()
        self.gradients: np.ndarray = np.zeros((PIECES, weights))
        self.emissions: np.ndarray = np.zeros((PIECES, longest, labels))
        self.sums: list[Any] = [loops.make_sums(labels, longest) for _ in range(PIECES)]
        self.losses: np.ndarray = np.zeros(PIECES)
        self.gold: np.ndarray = np.zeros(weights)  # features of the gold paths
        count_gold(rows, codes, index, self.gold)
        self.gold[0] = 0.0
        self.calls: int = 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient."""
        a = self.index
        transitions, initial, final = w[a.transitions], w[a.initial], w[a.final]
        shift = float(transitions.max())
        powers = np.exp(transitions - shift)

        def work(n: int) -> None:
            gradient = self.gradients[n]
            gradient[:] = 0.0
            self.losses[n] = expect_features(
                self.rows, self.cuts[n], self.cuts[n + 1], self.codes, a, w, transitions, initial, final, powers,
                shift, self.emissions[n], self.sums[n], gradient,
            )  # fmt: skip

        over_pieces(work, PIECES, min(cores(), PIECES))
        gradient = self.gradients[0] - self.gold
        for n in range(1, PIECES):
            gradient += self.gradients[n]
        gradient += self.l2 * w
        gradient[0] = 0.0
        self.calls += 1
        return float(self.losses.sum() + 0.5 * self.l2 * (w @ w)), gradient


@compiled
def count_gold(rows: Any, codes: Any, index: Any, gold: Any) -> None:
    """The features of all gold paths."""
    for k in range(len(rows.offsets) - 1):
        first, last = rows.offsets[k], rows.offsets[k + 1]
        if first == last:
            continue
        gold[index.initial[codes[first]]] += 1.0
        gold[index.final[codes[last - 1]]] += 1.0
        for t in range(first, last):
            if t > first:
                gold[index.transitions[codes[t - 1], codes[t]]] += 1.0
            for p in range(rows.indptr[t], rows.indptr[t + 1]):
                j = index.head[rows.indices[p]]
                while j != 0:
                    if index.links[j, 0] == codes[t]:
                        gold[j] += 1.0 if len(rows.values) == 0 else rows.values[p]
                    j = index.links[j, 1]


@compiled
def expect_features(rows: Any, start: Any, stop: Any, codes: Any, index: Any, w: Any, transitions: Any, initial: Any,
                    final: Any, powers: Any, shift: Any, emissions: Any, sums: Any, gradient: Any) -> Any:  # fmt: skip
    """Add up the expected features of sequences; returns the sum of log Z - s(gold)."""
    labels, plain, loss = len(initial), len(rows.values) == 0, 0.0
    for i in range(labels):
        for c in range(labels):
            sums.counts[i, c] = 0.0
    for k in range(start, stop):
        first, last = rows.offsets[k], rows.offsets[k + 1]
        length = last - first
        if length == 0:
            continue
        add_emissions(rows, first, last, index.head, index.links, w, emissions, 0)
        path = initial[codes[first]] + final[codes[last - 1]]
        for t in range(length):
            path += emissions[t, codes[first + t]]
            if t > 0:
                path += transitions[codes[first + t - 1], codes[first + t]]
        sums.offsets[1] = length
        posterior_in_powers(emissions, sums.offsets, 0, 1, powers, shift, initial, final, sums.forward, sums.scales,
                            sums.two, sums.counted, sums.log_z, sums.marginals, sums.counts)  # fmt: skip
        if sums.log_z[0] != sums.log_z[0]:
            posterior_in_logarithms(emissions, sums.offsets, sums.which, transitions, initial, final, sums.forward,
                                    sums.backward, sums.two, sums.log_z, sums.marginals, sums.counts)  # fmt: skip
        loss += sums.log_z[0] - path
        for c in range(labels):
            gradient[index.initial[c]] += sums.marginals[0, c]
            gradient[index.final[c]] += sums.marginals[length - 1, c]
        end = rows.indptr[last]
        for t in range(length):
            for p in range(rows.indptr[first + t], rows.indptr[first + t + 1]):
                if p + SOON // 2 < end:
                    prefetch(gradient, index.head[rows.indices[p + SOON // 2]])
                x = 1.0 if plain else rows.values[p]
                j = index.head[rows.indices[p]]
                while j != 0:
                    gradient[j] += x * sums.marginals[t, index.links[j, 0]]
                    j = index.links[j, 1]
    for i in range(labels):
        for c in range(labels):
            gradient[index.transitions[i, c]] += sums.counts[i, c]
    return loss
