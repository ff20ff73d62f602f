"""The likelihood of a conditional random field on all sequences, and its gradient: expected features less gold ones.

    L(w) = sum over sequences of (log Z - s(gold)) + l2/2 |w|^2         (an l1 penalty is the business of ``owlqn``)

Sequences are shared out in a fixed number of pieces, whose gradients are added in order, so that the sum does not
depend on how many processors there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import REORDER, compiled, prefetch
from onlearn.sequence import loops
from onlearn.sequence.sums import lower_emissions, posterior_in_logarithms, posterior_in_powers
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.weight_index import Index, add_emissions, number_of
from onlearn.threads import cores, over_pieces

PIECES = 4
CHUNK = 4096  # tokens whose scores are held at a time
SOON = 24  # attributes between asking for what belongs to one and using it


class Likelihood:
    """The objective as a function of the weights, for minimisers; number 0, which is no weight, stays 0."""

    def __init__(self, rows: TokenRows, codes: np.ndarray, index: Index, weights: int, l2: float) -> None:
        self.rows, self.codes, self.index, self.l2 = rows, codes, index, l2
        labels, longest = len(index.initial), int(np.diff(rows.offsets).max(initial=1))
        # as many tokens in each piece, or nearly, and some thousands of them at a time
        chunks = max(PIECES, -(-rows.tokens // CHUNK))
        cuts = np.searchsorted(rows.offsets, np.linspace(0, rows.tokens, chunks + 1))
        cuts[0], cuts[-1] = 0, len(rows.offsets) - 1
        pairs = list(zip(cuts[:-1].tolist(), cuts[1:].tolist()))
        self.chunks: list[list[tuple[int, int]]] = [
            pairs[chunks * n // PIECES : chunks * (n + 1) // PIECES] for n in range(PIECES)
        ]
        most = max(int(rows.offsets[stop] - rows.offsets[start]) for start, stop in pairs)
        self.gradients: np.ndarray = np.zeros((PIECES, weights))
        self.emissions: np.ndarray = np.zeros((PIECES, most, labels))
        self.marginals: np.ndarray = np.zeros((PIECES, most, labels))
        self.tops: np.ndarray = np.zeros((PIECES, most))
        sequences = max(stop - start for start, stop in pairs)
        self.sums: list[Any] = [loops.make_sums(labels, longest, sequences) for _ in range(PIECES)]
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
            gradient, chunk, room = self.gradients[n], self.chunks[n], self.sums[n]
            gradient[:] = room.counts[:] = 0.0
            loss = 0.0
            for start, stop in chunk:
                first, last = int(self.rows.offsets[start]), int(self.rows.offsets[stop])
                emissions, powers_of = self.emissions[n][: last - first], self.marginals[n][: last - first]
                add_emissions(self.rows, first, last, a, w, emissions, 0)
                offsets = self.rows.offsets[start : stop + 1] - first
                lower_emissions(emissions, offsets, 0, stop - start, initial, self.tops[n], powers_of)
                np.exp(powers_of, out=powers_of)  # NumPy's takes a tenth of the time of a compiled loop's
                loss += expect_features(
                    self.rows, start, offsets, self.codes, a, transitions, initial, final, powers, shift, emissions,
                    self.tops[n], powers_of, room, gradient,
                )  # fmt: skip
            add_counts(a, room.counts, gradient)
            self.losses[n] = loss

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
                j = number_of(index, rows.indices[p], codes[t])
                gold[j] += 1.0 if len(rows.values) == 0 else rows.values[p]


@compiled(fastmath=REORDER)
def expect_features(rows: Any, start: Any, offsets: Any, codes: Any, index: Any, transitions: Any, initial: Any,
                    final: Any, powers: Any, shift: Any, emissions: Any, tops: Any, marginals: Any, sums: Any,
                    gradient: Any) -> Any:  # fmt: skip
    """Add up the expected features of the sequences from ``start`` on; returns the sum of log Z - s(gold).

    ``offsets`` are those of their tokens in ``emissions`` and ``marginals``, which has the powers of the emissions.
    """
    labels, plain, loss, width = len(initial), len(rows.values) == 0, 0.0, index.width
    for k in range(len(offsets) - 1):
        first, last, begin = offsets[k], offsets[k + 1], rows.offsets[start + k]
        length = last - first
        if length == 0:
            continue
        path = initial[codes[begin]] + final[codes[begin + length - 1]]
        for t in range(length):
            path += emissions[first + t, codes[begin + t]]
            if t > 0:
                path += transitions[codes[begin + t - 1], codes[begin + t]]
        posterior_in_powers(offsets, k, k + 1, powers, shift, final, tops, sums.forward, sums.scales, sums.two,
                            sums.counted, sums.log_z, marginals, sums.counts)  # fmt: skip
        if sums.log_z[k] != sums.log_z[k]:
            sums.which[0] = k
            posterior_in_logarithms(emissions, offsets, sums.which, transitions, initial, final, sums.forward,
                                    sums.backward, sums.two, sums.log_z, marginals, sums.counts)  # fmt: skip
        loss += sums.log_z[k] - path
        for c in range(labels):
            gradient[index.initial[c]] += marginals[first, c]
            gradient[index.final[c]] += marginals[last - 1, c]
        end = rows.indptr[begin + length]
        for t in range(length):
            row = marginals[first + t]
            for p in range(rows.indptr[begin + t], rows.indptr[begin + t + 1]):
                if p + SOON < end:
                    soon = index.block[rows.indices[p + SOON]]
                    if soon == 0:
                        soon = index.head[rows.indices[p + SOON]]
                    prefetch(gradient, soon)
                x = 1.0 if plain else rows.values[p]
                b = index.block[rows.indices[p]]
                if b != 0:
                    for c in range(width):
                        gradient[b + c] += x * row[c]
                j = index.head[rows.indices[p]]
                while j != 0:
                    gradient[j] += x * row[index.links[j, 0]]
                    j = index.links[j, 1]
    return loss


@compiled
def add_counts(index: Any, counts: Any, gradient: Any) -> None:
    """Add the expected counts of transitions to the gradient."""
    for i in range(len(counts)):
        for c in range(len(counts)):
            gradient[index.transitions[i, c]] += counts[i, c]
