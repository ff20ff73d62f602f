"""Counting over packed bits: in how many places two rows agree, or both have a one; and tables over these counts.

Rows are packed 64 bits to a word, the words of one position side by side for all rows of a block, so that the inner
loop runs along the rows and the compiler counts several words at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import INTERPRETED, allocating, intrinsic, types

if INTERPRETED:

    def ones(word: Any) -> Any:
        """How many bits of a word are one."""
        return int(word).bit_count()

else:

    @intrinsic
    def ones(context, word):
        """How many bits of a word are one."""

        def generate(target, builder, signature, arguments):
            return builder.ctpop(arguments[0])

        return types.uint64(types.uint64), generate


@allocating
def table_of_differing(words, turned, table, out, start, stop):
    """out[i, j] = table[in how many places x_i and z_j differ]."""
    count = turned.shape[1]
    found = np.empty(count, np.uint64)
    for i in range(start, stop):
        x = words[i, 0]
        first = turned[0]
        for j in range(count):
            found[j] = ones(x ^ first[j])
        for n in range(1, turned.shape[0]):
            x, line = words[i, n], turned[n]
            for j in range(count):
                found[j] += ones(x ^ line[j])
        row = out[i]
        for j in range(count):
            row[j] = table[found[j]]


@allocating
def table_of_shared(words, turned, table, out, start, stop):
    """out[i, j] = table[how many ones x_i and z_j have in common]."""
    count = turned.shape[1]
    found = np.empty(count, np.uint64)
    for i in range(start, stop):
        x = words[i, 0]
        first = turned[0]
        for j in range(count):
            found[j] = ones(x & first[j])
        for n in range(1, turned.shape[0]):
            x, line = words[i, n], turned[n]
            for j in range(count):
                found[j] += ones(x & line[j])
        row = out[i]
        for j in range(count):
            row[j] = table[found[j]]
