"""The order in which a pass takes the examples: a permutation, keyed by the seed and the pass.

It is the one that NumPy makes of these keys, in about half the time: there every swap waits for memory, here the
places of the next swaps are found ahead, and asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import INTERPRETED, compiled, prefetch

AHEAD = 32  # swaps
DRAWN = 1 << 14  # random words at a time
LONGEST = 1 << 32  # beyond that NumPy draws places in another way


def shuffled(count: int, seed: int, passes: int) -> np.ndarray:
    """``np.random.default_rng([seed, passes]).permutation(count)``, faster."""
    rng = np.random.default_rng([seed, passes])
    if INTERPRETED or count >= LONGEST or not isinstance(rng.bit_generator, np.random.PCG64):
        return rng.permutation(count)
    order, places, left = np.arange(count), np.empty(AHEAD, np.int64), count
    while left > 1:
        words = rng.bit_generator.random_raw(min(DRAWN, left))
        left = swap_from_the_end(order, left, halves(words), places)
    return order


def halves(words: np.ndarray) -> np.ndarray:
    """Each word as two of half its length, the low half first, whatever the machine's order of bytes."""
    return words.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)


@compiled
def swap_from_the_end(order: Any, left: int, words: Any, places: Any) -> int:
    """Put a random one of the first ``left`` in their last place, and so on; how many are left when words run out.

    A place is drawn as so many bits as it has at most, again and again until it is not beyond the end.
    """
    used, mask = 0, np.uint32(0xFFFFFFFF)
    while left > 1 and used < len(words):
        found = 0
        while found < min(AHEAD, left - 1) and used < len(words):
            last = np.uint32(left - 1 - found)
            while mask >> np.uint32(1) >= last:
                mask >>= np.uint32(1)
            place = words[used] & mask
            used += 1
            places[found] = place
            prefetch(order, np.uint64(place))
            found += place <= last
        for n in range(found):
            left -= 1
            order[left], order[places[n]] = order[places[n]], order[left]
    return left
