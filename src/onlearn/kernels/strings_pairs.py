"""The substrings that two strings have in common, pair by pair.

Let L(i, j) be the length of the longest common suffix of x[..i] and z[..j]: L(i, j) = L(i-1, j-1) + 1 where
the characters are equal, else 0. Each common substring, with its multiplicity, is one pair of end places and a length
up to L there: k(x, z) = sum over i, j of upto[L(i, j)], with ``upto[n]`` the sum of the weights of lengths 1 to n.

Three ways, by length:

- One string has at most 64 characters: a row of that table is a few machine words. Bit j of level n says whether
  L(i, j) >= n, and level n of the next row is level n-1 of this one, shifted, where the characters are equal. Rows have
  few levels, since long common substrings are rare; at worst it is as much work as the table.
- Both are longer, but not by much, and there is one pair only: the table itself, a row at a time.
- Else the suffix automaton of one string, and a walk over each of the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from onlearn.compile import INTERPRETED, compiled
from onlearn.kernels.suffix import build, slots, walk, weigh

WORD = 64  # characters: the strings whose rows fit into one word

# Measured, in nanoseconds: a cell of the table; for a character, building the automaton, and walking it.
CELL, BUILD, WALK = 2.5, 200.0, 50.0

if INTERPRETED:

    def ones(word: Any) -> Any:
        """How many bits are set."""
        return np.uint64(int(word).bit_count())

else:

    @intrinsic
    def ones(context: Any, word: Any) -> Any:
        """How many bits are set."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), generate


@compiled
def by_words(made, made_starts, made_rows, walked, walked_starts, walked_rows, weights, top, both, out, first, past):
    """out[m, w] for the strings m of ``made_rows[first:past]``, none longer than a word, and all w of ``walked_rows``.

    ``weights[n]`` is that of length n; longer matches than it has weights for are not looked for. No character is above
    ``top``. With ``both``, made and walked are the same strings: each pair is computed once.
    """
    places = np.zeros(top + 1, dtype=np.uint64)
    levels, counts = np.zeros(WORD, dtype=np.uint64), np.zeros(WORD, dtype=np.uint64)
    for m in made_rows[first:past]:
        mark(places, made, made_starts[m], made_starts[m + 1])
        for w in walked_rows:
            start, stop = walked_starts[w], walked_starts[w + 1]
            if both and w > m and stop - start <= WORD:
                continue  # its turn comes, as the made one
            out[m, w] = common(places, walked, start, stop, weights, levels, counts)
            if both:
                out[w, m] = out[m, w]
        forget(places, made, made_starts[m], made_starts[m + 1])


@compiled
def mark(places, text, start, stop):
    """Where in text[start:stop] each character stands, a bit a place."""
    for n in range(stop - start):
        places[text[start + n]] |= np.uint64(1) << np.uint64(n)


@compiled
def forget(places, text, start, stop):
    for n in range(start, stop):
        places[text[n]] = np.uint64(0)


@compiled
def common(places, text, start, stop, weights, levels, counts):
    """k of a marked string and text[start:stop]; ``counts`` is left as it was, all zero."""
    zero, one = np.uint64(0), np.uint64(1)
    depth, deepest, most = zero, zero, np.uint64(min(WORD, len(weights) - 1))
    for n in range(np.uint64(start), np.uint64(stop)):
        equal = places[text[n]]
        row, level = equal, zero
        while row != zero and level < most:
            before = levels[level] if level < depth else zero
            counts[level] += ones(row)
            levels[level] = row
            row = (before << one) & equal
            level += one
        depth = level
        deepest = max(deepest, depth)
    total = 0.0
    for level in range(deepest):
        total += weights[level + one] * counts[level]
        counts[level] = zero
    return total


@compiled
def by_table(x, x_start, x_stop, z, z_start, z_stop, upto):
    """k of two strings by the dynamic programme; the one row that is kept is walked backward."""
    width, most = z_stop - z_start, len(upto) - 1
    row = np.zeros(width + 1, dtype=np.int64)
    total = 0.0
    for i in range(x_start, x_stop):
        symbol = x[i]
        for j in range(width, 0, -1):
            length = row[j - 1] + 1 if z[z_start + j - 1] == symbol else 0
            row[j] = length
            total += upto[min(length, most)]
    return total


@compiled
def by_suffixes(made, made_starts, made_rows, walked, walked_starts, walked_rows, upto, both, out, first, past):
    """The same as ``by_words`` for long strings: an automaton for each made one, unless tables are cheaper."""
    one, value = np.ones((1, 1)), np.zeros(1)
    others = 0
    for w in walked_rows:
        others += walked_starts[w + 1] - walked_starts[w]
    for m in made_rows[first:past]:
        starts = made_starts[m : m + 2]
        length = starts[1] - starts[0]
        if CELL * length * others < BUILD * length + WALK * others:
            for w in walked_rows:
                if not both or w <= m:
                    start, stop = walked_starts[w], walked_starts[w + 1]
                    out[m, w] = by_table(made, starts[0], starts[1], walked, start, stop, upto)
        else:
            nodes, table, ends = build(made, starts, slots(length))
            occurring, sums = weigh(nodes, starts, ends, one, upto)
            for w in walked_rows:
                if not both or w <= m:
                    value[0] = 0.0
                    start, stop = walked_starts[w], walked_starts[w + 1]
                    walk(walked, start, stop, nodes, table, occurring, sums, upto, value)
                    out[m, w] = value[0]
        if both:
            for w in walked_rows:
                if w <= m:
                    out[w, m] = out[m, w]


@compiled
def with_itself(text, starts, weights, upto, top, out, first, past):
    """out[i] = k(x_i, x_i)."""
    places = np.zeros(top + 1, dtype=np.uint64)
    levels, counts = np.zeros(WORD, dtype=np.uint64), np.zeros(WORD, dtype=np.uint64)
    value, alone = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
    for i in range(first, past):
        start, stop = starts[i], starts[i + 1]
        if stop - start <= WORD:
            mark(places, text, start, stop)
            out[i] = common(places, text, start, stop, weights, levels, counts)
            forget(places, text, start, stop)
        else:
            here = starts[i : i + 2]
            by_suffixes(text, here, alone, text, here, alone, upto, False, value, 0, 1)
            out[i] = value[0, 0]
