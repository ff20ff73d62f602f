"""The compiled half of a vocabulary: an open-addressing table from the hash of a name to its number.

A slot is two words side by side, so that a look costs one cache line: the hash, and the number plus one (0: empty).
The table outgrows the caches, so the slots of features to come are asked for ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import compiled, prefetch

AHEAD = np.uint64(14)  # features
ZERO, ONE, SIX = np.uint64(0), np.uint64(1), np.uint64(6)
LOW = np.uint64(63)
UNKNOWN = np.int32(-1)


@compiled
def place(slots: Any, hashes: Any, first: Any, past: Any) -> None:
    """Put the names numbered ``first`` to ``past``, none of which is there yet, into the table."""
    mask = np.uint64(len(slots) // 2 - 1)
    end = np.uint64(past)
    for k in range(np.uint64(first), end):
        ahead = np.uint64(k) + AHEAD
        if ahead < end:
            prefetch(slots, (hashes[ahead] & mask) << ONE)
        s = hashes[k] & mask
        while slots[(s << ONE) + ONE] != ZERO:
            s = (s + ONE) & mask
        slots[s << ONE] = hashes[k]
        slots[(s << ONE) + ONE] = np.uint64(k) + ONE


@compiled
def find(slots: Any, hashes: Any, out: Any) -> None:
    """The number of each hash, or -1."""
    mask = np.uint64(len(slots) // 2 - 1)
    end = np.uint64(len(hashes))
    for k in range(end):
        ahead = np.uint64(k) + AHEAD
        if ahead < end:
            prefetch(slots, (hashes[ahead] & mask) << ONE)
        h = hashes[k]
        s = h & mask
        held = slots[(s << ONE) + ONE]
        while held != ZERO and slots[s << ONE] != h:
            s = (s + ONE) & mask
            held = slots[(s << ONE) + ONE]
        out[k] = UNKNOWN if held == ZERO else np.int32(held - ONE)


@compiled
def find_or_add(
    slots: Any, hashes: Any, starts: Any, lengths: Any, groups: Any, text: Any, prefix_of: Any,
    known: Any, ends: Any, prefixes: Any, pool: Any, longest: Any, first: Any, room: Any, count: Any, out: Any,
) -> Any:  # fmt: skip
    """Number features from ``first`` on, new names in order of appearance; returns where it stopped, and the count.

    Those whose number is in ``out`` already are left alone; for the others it holds -1.
    It stops before a new name that the table, with its ``room``, or the pool of names cannot take; the caller makes
    room and calls again.
    """
    mask = np.uint64(len(slots) // 2 - 1)
    end = np.uint64(len(hashes))
    k = np.uint64(first)
    used = ends[count]
    while k < end:
        ahead = k + AHEAD
        if ahead < end and out[ahead] < 0:
            prefetch(slots, (hashes[ahead] & mask) << ONE)
        if out[k] >= 0:
            k += ONE
            continue
        h = hashes[k]
        s = h & mask
        held = slots[(s << ONE) + ONE]
        while held != ZERO and slots[s << ONE] != h:
            s = (s + ONE) & mask
            held = slots[(s << ONE) + ONE]
        if held == ZERO:
            size = min(lengths[k], longest)
            if count >= room or used + size > len(pool):
                break
            slots[s << ONE] = h
            held = np.uint64(count) + ONE
            slots[(s << ONE) + ONE] = held
            known[count] = h
            prefixes[count] = prefix_of[groups[k]]
            start = np.uint64(starts[k])
            at = np.uint64(used)
            for n in range(np.uint64(size)):
                pool[at + np.uint64(n)] = text[start + np.uint64(n)]
            used += size
            count += 1
            ends[count] = used
        out[k] = np.int32(held - ONE)
        k += ONE
    return np.int64(k), count


@compiled
def to_buckets(hashes: Any, ids: Any, base: Any, bucket_mask: Any, seen: Any, note: Any) -> None:
    """Give the unknown ones (-1) the number of a bucket; with ``note``, remember which buckets are in use."""
    for k in range(np.uint64(len(ids))):
        if ids[k] < 0:
            bucket = hashes[k] & bucket_mask
            ids[k] = np.int32(base + np.int64(bucket))
            if note:
                seen[bucket >> SIX] |= ONE << (bucket & LOW)


@compiled
def count_bits(words: Any) -> Any:
    """How many bits are set."""
    total = 0
    for word in words:
        rest = word
        while rest != ZERO:
            rest &= rest - ONE
            total += 1
    return total


@compiled
def copy_names(ends: Any, pool: Any, kept: Any, new_ends: Any, new_pool: Any) -> None:
    """The names of the kept numbers, one after another."""
    at = np.uint64(0)
    for k in range(np.uint64(len(kept))):
        for p in range(np.uint64(ends[kept[k]]), np.uint64(ends[kept[k] + 1])):
            new_pool[at] = pool[p]
            at += ONE
        new_ends[np.uint64(k) + ONE] = np.int64(at)
