"""The substrings that two strings have in common, pair by pair.

Let L(i, j) be the length of the longest common suffix of x[..i] and z[..j]: L(i, j) = L(i-1, j-1) + 1 where
the characters are equal, else 0. Each common substring, with its multiplicity, is one pair of end places and a length
up to L there: k(x, z) = sum over i, j of upto[L(i, j)], with ``upto[n]`` the sum of the weights of lengths 1 to n.

Two ways to compute it; ``strings_block`` knows which is the best, and a third one for long strings.

- One string has at most 64 characters: a row of that table is a few machine words. Bit j of level n says whether
  L(i, j) >= n, and level n of the next row is level n-1 of this one, shifted, where the characters are equal. Rows have
  few levels, since long common substrings are rare; at worst it is as much work as the table.
- Else the table itself, a row at a time.
"""

from __future__ import annotations

import numpy as np

from onlearn.compile import allocating, compiled
from onlearn.kernels.popcount import ones

WORD = 64  # characters: the strings whose rows fit into one word


@allocating
def by_words(
    made,
    made_starts,
    made_rows,
    walked,
    walked_starts,
    walked_rows,
    weights,
    top,
    both,
    flat,
    down,
    across,
    first,
    past,
):
    """k of the strings m of ``made_rows[first:past]``, none longer than a word, and all w of ``walked_rows``.

    It goes to ``flat[m * down + w * across]``. ``weights[n]`` is that of length n; longer matches than it has weights
    for are not looked for. No character is above ``top``. With ``both``, made and walked are the same strings,
    and each pair is computed once.
    """
    places = np.zeros(top + 1, dtype=np.uint64)
    levels, counts = np.zeros(WORD, dtype=np.uint64), np.zeros(WORD, dtype=np.uint64)
    for m in made_rows[first:past]:
        mark(places, made, made_starts[m], made_starts[m + 1])
        for w in walked_rows:
            start, stop = walked_starts[w], walked_starts[w + 1]
            if both and w > m and stop - start <= WORD:
                continue  # its turn comes, as the made one
            value = common(places, walked, start, stop, weights, levels, counts)
            flat[m * down + w * across] = value
            if both:
                flat[w * down + m * across] = value
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


@allocating
def short_diagonal(text, starts, rows, weights, top, out, first, past):
    """out[i] = k(x_i, x_i) for the strings i of ``rows[first:past]``, none longer than a word."""
    places = np.zeros(top + 1, dtype=np.uint64)
    levels, counts = np.zeros(WORD, dtype=np.uint64), np.zeros(WORD, dtype=np.uint64)
    for i in rows[first:past]:
        mark(places, text, starts[i], starts[i + 1])
        out[i] = common(places, text, starts[i], starts[i + 1], weights, levels, counts)
        forget(places, text, starts[i], starts[i + 1])


@allocating
def by_table(x, x_start, x_stop, z, z_starts, z_rows, upto, out):
    """k of x[x_start:x_stop] and each string of ``z_rows`` by the dynamic programme, into ``out``.

    The one row of the table that is kept is walked backward.
    """
    most = len(upto) - 1
    for n in range(len(z_rows)):
        start = z_starts[z_rows[n]]
        width = z_starts[z_rows[n] + 1] - start
        row = np.zeros(width + 1, dtype=np.int64)
        total = 0.0
        for i in range(x_start, x_stop):
            symbol = x[i]
            for j in range(width, 0, -1):
                length = row[j - 1] + 1 if z[start + j - 1] == symbol else 0
                row[j] = length
                total += upto[min(length, most)]
        out[n, 0] = total
