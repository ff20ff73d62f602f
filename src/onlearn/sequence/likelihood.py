"""The likelihood of a conditional random field on all sequences, and its gradient: expected features less gold ones.

    L(w) = sum over sequences of (log Z - s(gold)) + l2/2 |w|^2    (an l1 penalty is the business of ``quasi_newton``)

Sequences are shared out in a fixed number of pieces, whose gradients are added in order, so that the sum does not
depend on how many processors there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.engine.quasi_newton import dot, workers
from onlearn.sequence import loops
from onlearn.sequence.sums import lower_emissions, posterior_in_logarithms, posterior_in_powers
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.token_weights import add_expected, list_weights, padded, score_tokens
from onlearn.sequence.weight_index import Index, number_of
from onlearn.threads import cores, over_pieces

PIECES = 4
CHUNK = 4096  # tokens whose scores are held at a time


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
        sequences, width = max(stop - start for start, stop in pairs), padded(labels)
        self.tokens: Any = list_weights(rows, index)
        # the numbers of the weights in each block, and those of the labels that blocks hold
        starts = index.block[index.block > 0].astype(np.int64)
        self.in_blocks: np.ndarray = starts[:, None] + np.arange(index.width)
        self.table: np.ndarray = np.zeros((len(starts), width))
        self.gradients: np.ndarray = np.zeros((PIECES, weights))
        self.tables: np.ndarray = np.zeros((PIECES, *self.table.shape))
        self.emissions: np.ndarray = np.zeros((PIECES, most, width))
        self.marginals: np.ndarray = np.zeros((PIECES, most, width))
        self.tops: np.ndarray = np.zeros((PIECES, most))
        self.sums: list[Any] = [loops.make_sums(labels, longest, sequences) for _ in range(PIECES)]
        self.losses: np.ndarray = np.zeros(PIECES)
        self.gold: np.ndarray = np.zeros(weights)  # features of the gold paths
        count_gold(rows, codes, index, self.gold)
        self.gold[0] = 0.0
        self.calls: int = 0

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective and its gradient."""
        a, held = self.index, self.index.width
        transitions, initial, final = w[a.transitions], w[a.initial], w[a.final]
        shift = float(transitions.max())
        powers = np.exp(transitions - shift)
        self.table[:, :held] = w[self.in_blocks]

        def work(n: int) -> None:
            gradient, table, room = self.gradients[n], self.tables[n], self.sums[n]
            gradient[:] = table[:] = room.counts[:] = 0.0
            loss = 0.0
            for start, stop in self.chunks[n]:
                first, last = int(self.rows.offsets[start]), int(self.rows.offsets[stop])
                emissions, marginals = self.emissions[n][: last - first], self.marginals[n][: last - first]
                score_tokens(self.tokens, first, last, self.table, w, emissions)
                offsets = self.rows.offsets[start : stop + 1] - first
                lower_emissions(emissions, offsets, 0, stop - start, initial, self.tops[n], marginals)
                marginals[:, len(initial) :] = 0.0  # beyond the labels, where nothing that counts is
                np.exp(marginals, out=marginals)  # NumPy's takes a tenth of the time of a compiled loop's
                loss += expect_paths(
                    offsets, self.codes[first:last], a, transitions, initial, final, powers, shift, emissions,
                    self.tops[n], marginals, room, gradient,
                )  # fmt: skip
                add_expected(self.tokens, first, last, marginals, table, gradient)
            add_counts(a, room.counts, gradient)
            self.losses[n] = loss

        over_pieces(work, PIECES, min(cores(), PIECES))
        gradient, size = np.empty_like(w), len(w)

        def join(n: int) -> None:
            join_gradients(
                self.gradients, self.gold, w, self.l2, size * n // PIECES, size * (n + 1) // PIECES, gradient
            )

        over_pieces(join, PIECES, workers(size))
        gradient[self.in_blocks] += self.tables.sum(axis=0)[:, :held]
        gradient[0] = 0.0
        self.calls += 1
        return float(self.losses.sum() + 0.5 * self.l2 * dot(w, w)), gradient


@compiled
def join_gradients(gradients: Any, gold: Any, w: Any, l2: Any, start: Any, stop: Any, out: Any) -> None:
    """The sum of the gradients of all pieces, less the gold features, and of the penalty."""
    for j in range(start, stop):
        total = l2 * w[j] - gold[j]
        for n in range(len(gradients)):
            total += gradients[n, j]
        out[j] = total


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


@compiled
def expect_paths(offsets: Any, codes: Any, index: Any, transitions: Any, initial: Any, final: Any, powers: Any,
                 shift: Any, emissions: Any, tops: Any, marginals: Any, sums: Any, gradient: Any) -> Any:  # fmt: skip
    """The marginals of all tokens, and the expected beginnings and ends; returns the sum of log Z - s(gold).

    ``marginals`` has the powers of the emissions before.
    """
    labels, loss = len(initial), 0.0
    sequences = len(offsets) - 1
    posterior_in_powers(offsets, 0, sequences, powers, shift, final, tops, sums.forward, sums.scales, sums.two,
                        sums.counted, sums.log_z, marginals, sums.counts)  # fmt: skip
    for k in range(sequences):
        first, last = offsets[k], offsets[k + 1]
        if first == last:
            continue
        if sums.log_z[k] != sums.log_z[k]:
            sums.which[0] = k
            posterior_in_logarithms(emissions, offsets, sums.which, transitions, initial, final, sums.forward,
                                    sums.backward, sums.two, sums.log_z, marginals, sums.counts)  # fmt: skip
        path = initial[codes[first]] + final[codes[last - 1]]
        for t in range(first, last):
            path += emissions[t, codes[t]]
            if t > first:
                path += transitions[codes[t - 1], codes[t]]
        loss += sums.log_z[k] - path
        for c in range(labels):
            gradient[index.initial[c]] += marginals[first, c]
            gradient[index.final[c]] += marginals[last - 1, c]
    return loss


@compiled
def add_counts(index: Any, counts: Any, gradient: Any) -> None:
    """Add the expected counts of transitions to the gradient."""
    for i in range(len(counts)):
        for c in range(len(counts)):
            gradient[index.transitions[i, c]] += counts[i, c]
