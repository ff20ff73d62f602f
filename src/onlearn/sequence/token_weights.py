"""The weights of each token, listed in the order of the tokens, for minimisers, which read them hundreds of times.

``WeightIndex`` finds the weights of an attribute by way of tables, whose lines lie anywhere in memory. Where tokens and
the numbers of weights stay the same, as in L-BFGS, the tables are read once, and each pass walks along two lists:

- the *blocks* of a token, whose weights (one a label) lie side by side in the lines of one table;
- the *pairs* of a token: numbers of single weights, and their labels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import REORDER, compiled
from onlearn.sequence.token_rows import TokenRows
from onlearn.sequence.weight_index import Index

LANES = 8  # lines of tables have a multiple of so many doubles, the length of a vector of most processors, or twice it


class TokenWeights(NamedTuple):
    """Token t has the blocks ``block_ends[t]`` to ``block_ends[t + 1]`` and the pairs ``pair_ends[t]`` to
    ``pair_ends[t + 1]``. ``block_values`` and ``pair_values`` have no entries if all attributes have the value 1."""

    block_ends: np.ndarray  # int64
    blocks: np.ndarray  # int32: lines of the table of blocks
    block_values: np.ndarray  # float64
    pair_ends: np.ndarray  # int64
    numbers: np.ndarray  # int32: of weights
    labels: np.ndarray  # uint16: a lattice of more labels has billions of transitions
    pair_values: np.ndarray  # float64


def list_weights(rows: TokenRows, index: Index) -> TokenWeights:
    """The weights of all tokens."""
    block_ends, pair_ends = np.zeros((2, rows.tokens + 1), np.int64)
    count_weights(rows, index, block_ends, pair_ends)
    blocks, pairs, plain = int(block_ends[-1]), int(pair_ends[-1]), not len(rows.values)
    line = np.cumsum(index.block > 0, dtype=np.int32) - np.int32(1)
    made = TokenWeights(
        block_ends, np.empty(blocks, np.int32), np.empty(0 if plain else blocks), pair_ends, np.empty(pairs, np.int32),
        np.empty(pairs, np.uint16), np.empty(0 if plain else pairs),
    )  # fmt: skip
    fill_weights(rows, index, line, made)
    return made


def padded(labels: int) -> int:
    """The length of the lines of tables with a number for each label."""
    return -(-labels // LANES) * LANES


@compiled
def count_weights(rows: Any, index: Any, block_ends: Any, pair_ends: Any) -> None:
    """Where the blocks and pairs of each token end."""
    for t in range(len(rows.indptr) - 1):
        blocks, pairs = 0, 0
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            blocks += index.block[rows.indices[p]] != 0
            j = index.head[rows.indices[p]]
            while j != 0:
                pairs += 1
                j = index.links[j, 1]
        block_ends[t + 1] = block_ends[t] + blocks
        pair_ends[t + 1] = pair_ends[t] + pairs


@compiled
def fill_weights(rows: Any, index: Any, line: Any, made: Any) -> None:
    """List the blocks and pairs; ``line`` is that of the block of each attribute."""
    for t in range(len(rows.indptr) - 1):
        b, q = made.block_ends[t], made.pair_ends[t]
        for p in range(rows.indptr[t], rows.indptr[t + 1]):
            a = rows.indices[p]
            if index.block[a] != 0:
                made.blocks[b] = line[a]
                if len(rows.values) > 0:
                    made.block_values[b] = rows.values[p]
                b += 1
            j = index.head[a]
            while j != 0:
                made.numbers[q] = j
                made.labels[q] = index.links[j, 0]
                if len(rows.values) > 0:
                    made.pair_values[q] = rows.values[p]
                q += 1
                j = index.links[j, 1]


@compiled(fastmath=REORDER)
def score_tokens(tokens: Any, first: Any, last: Any, table: Any, w: Any, emissions: Any) -> None:
    """The score of each label at the tokens ``first`` to ``last``: sums of the weights of their attributes."""
    width, plain = table.shape[1], len(tokens.block_values) + len(tokens.pair_values) == 0
    for t in range(first, last):
        row = emissions[t - first]
        for c in range(width):
            row[c] = 0.0
        for p in range(tokens.block_ends[t], tokens.block_ends[t + 1]):
            line = table[tokens.blocks[p]]
            if plain:
                for c in range(width):
                    row[c] += line[c]
            else:
                x = tokens.block_values[p]
                for c in range(width):
                    row[c] += x * line[c]
        for q in range(tokens.pair_ends[t], tokens.pair_ends[t + 1]):
            row[tokens.labels[q]] += w[tokens.numbers[q]] * (1.0 if plain else tokens.pair_values[q])


@compiled(fastmath=REORDER)
def add_expected(tokens: Any, first: Any, last: Any, marginals: Any, table: Any, gradient: Any) -> None:
    """Add the expected features of the tokens ``first`` to ``last``: the same sums, the other way round."""
    width, plain = table.shape[1], len(tokens.block_values) + len(tokens.pair_values) == 0
    for t in range(first, last):
        row = marginals[t - first]
        for p in range(tokens.block_ends[t], tokens.block_ends[t + 1]):
            line = table[tokens.blocks[p]]
            if plain:
                for c in range(width):
                    line[c] += row[c]
            else:
                x = tokens.block_values[p]
                for c in range(width):
                    line[c] += x * row[c]
        for q in range(tokens.pair_ends[t], tokens.pair_ends[t + 1]):
            gradient[tokens.numbers[q]] += row[tokens.labels[q]] * (1.0 if plain else tokens.pair_values[q])
