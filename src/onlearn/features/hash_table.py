"""The compiled part of a vocabulary: a hash table (open addressing) from the hash of a name to its number.

A slot is one word: the upper bits of the hash, and the number plus one (0: empty). If these bits agree, the whole hash
is compared, in the array of hashes by number. Both are larger than the processor's caches, so the memory for later
features is prefetched: first their slot, then the hash of the number in it.

Hashes come from names and model files of others, who may choose them. So the slot is not bits of the hash itself but
upper bits of its product with a number that each process draws for itself (Dietzfelbinger et al. 1997): whoever does
not know that number can make names collide no more often than chance does. Numbers of features do not depend on it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from onlearn.compiler import compiled, prefetch

AHEAD, SOON = np.uint64(64), np.uint64(32)  # features between prefetch and use, enough for the latency of memory
NUMBER = np.uint64((1 << 31) - 1)  # the bits of a slot that hold the number; the others are bits of the hash
ZERO, ONE, SIX = np.uint64(0), np.uint64(1), np.uint64(6)
LOW = np.uint64(63)
UNKNOWN = np.int32(-1)
SECRET = np.uint64(int.from_bytes(os.urandom(8), "little") | 1)  # of this process


@compiled
def shift_of(slots: Any) -> Any:
    """How far a product is shifted to leave as many bits as number the slots, which are a power of two."""
    shift = np.uint64(64)
    size = np.uint64(len(slots))
    while size > ONE:
        size >>= ONE
        shift -= ONE
    return shift


@compiled
def first_slot(secret: Any, shift: Any, h: Any) -> Any:
    """Where the search for a hash begins."""
    return (h * secret) >> shift


@compiled
def place(slots: Any, secret: Any, hashes: Any, first: Any, past: Any) -> None:
    """Insert the names numbered ``first`` to ``past``, none of which is in the table."""
    mask, shift = np.uint64(len(slots) - 1), shift_of(slots)
    end = np.uint64(past)
    for k in range(np.uint64(first), end):
        ahead = np.uint64(k) + AHEAD
        if ahead < end:
            prefetch(slots, first_slot(secret, shift, hashes[ahead]))
        s = first_slot(secret, shift, hashes[k])
        while slots[s] != ZERO:
            s = (s + ONE) & mask
        slots[s] = (hashes[k] & ~NUMBER) | (np.uint64(k) + ONE)


@compiled
def slot_of(slots: Any, secret: Any, shift: Any, known: Any, h: Any) -> Any:
    """The slot of a hash, or the empty slot for it, and the content of the slot.

    ``known`` are the hashes by number. Another thread may add names at the same time: a name that is not among
    ``known`` yet is skipped, and an empty slot may be in use the next time it is read.
    """
    mask, count = np.uint64(len(slots) - 1), np.uint64(len(known))
    s = first_slot(secret, shift, h)
    while True:
        held = slots[s]
        if held == ZERO:
            break
        if (held ^ h) <= NUMBER:
            number = (held & NUMBER) - ONE
            if number < count and known[number] == h:
                break
        s = (s + ONE) & mask
    return s, held


@compiled
def prefetch_later(slots: Any, secret: Any, shift: Any, known: Any, hashes: Any, k: Any, end: Any) -> None:
    """Prefetch the memory for features after the k-th."""
    if k + AHEAD < end:
        prefetch(slots, first_slot(secret, shift, hashes[k + AHEAD]))
    if k + SOON < end:
        held = slots[first_slot(secret, shift, hashes[k + SOON])] & NUMBER
        if held != ZERO:
            prefetch(known, held - ONE)


@compiled
def find(slots: Any, secret: Any, known: Any, hashes: Any, out: Any) -> None:
    """The number of each hash, or -1."""
    end, shift = np.uint64(len(hashes)), shift_of(slots)
    for k in range(end):
        prefetch_later(slots, secret, shift, known, hashes, np.uint64(k), end)
        _, held = slot_of(slots, secret, shift, known, hashes[k])
        held &= NUMBER
        out[k] = UNKNOWN if held == ZERO else np.int32(held - ONE)


@compiled
def find_or_add(
    slots: Any, secret: Any, hashes: Any, starts: Any, lengths: Any, groups: Any, text: Any, prefix_of: Any,
    known: Any, ends: Any, prefixes: Any, pool: Any, longest: Any, first: Any, room: Any, count: Any, out: Any,
) -> Any:  # fmt: skip
    """Number features from ``first`` on, new names in order of appearance; returns the end, and the number of names.

    Features whose number is in ``out`` are skipped; for others it holds -1. The loop stops before a new name for which
    the table (``room``) or the pool of names has no space; the caller enlarges them and calls again.
    """
    end, shift = np.uint64(len(hashes)), shift_of(slots)
    k = np.uint64(first)
    used = ends[count]
    while k < end:
        if k + AHEAD < end and out[k + AHEAD] < 0:
            prefetch(slots, first_slot(secret, shift, hashes[k + AHEAD]))
        if out[k] >= 0:
            k += ONE
            continue
        h = hashes[k]
        s, held = slot_of(slots, secret, shift, known, h)
        held &= NUMBER
        if held == ZERO:
            size = min(lengths[k], longest)
            if count >= room or used + size > len(pool):
                break
            held = np.uint64(count) + ONE
            known[count] = h
            slots[s] = (h & ~NUMBER) | held
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
    """Give unknown features (-1) the number of a bucket; with ``note``, record which buckets are in use."""
    for k in range(np.uint64(len(ids))):
        if ids[k] < 0:
            bucket = hashes[k] & bucket_mask
            ids[k] = np.int32(base + np.int64(bucket))
            if note:
                seen[bucket >> SIX] |= ONE << (bucket & LOW)


@compiled
def count_bits(words: Any) -> Any:
    """The number of bits that are set."""
    total = 0
    for word in words:
        rest = word
        while rest != ZERO:
            rest &= rest - ONE
            total += 1
    return total


@compiled
def copy_names(ends: Any, pool: Any, kept: Any, new_ends: Any, new_pool: Any) -> None:
    """Copy the names of some numbers, one after another."""
    at = np.uint64(0)
    for k in range(np.uint64(len(kept))):
        for p in range(np.uint64(ends[kept[k]]), np.uint64(ends[kept[k] + 1])):
            new_pool[at] = pool[p]
            at += ONE
        new_ends[np.uint64(k) + ONE] = np.int64(at)
