"""The loops that make attributes of tokens: their hashes, their numbers, and rows of numbers.

The hash of an attribute is that of the literals of its line, combined with the hashes of its values one by one. So a
value is hashed once for each distinct word, and an attribute costs a few multiplications for each value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled, prefetch
from onlearn.data.batch import combine
from onlearn.features.hash_table import AHEAD, NUMBER, ONE, ZERO, first_slot, shift_of, slot_of


class Lines(NamedTuple):
    """Lines of a template: line l has the macros ``ends[l]`` to ``ends[l + 1]``."""

    seeds: np.ndarray  # uint64: the hash of the literals
    kinds: np.ndarray  # uint16: the number of the literals; lines with the same ones make the same attributes
    ends: np.ndarray  # int64
    columns: np.ndarray  # int64, of each macro
    rows: np.ndarray  # int64
    views: np.ndarray  # int64


class Tokens(NamedTuple):
    """Tokens by the words in their columns."""

    first: np.ndarray  # int64: where the sentence of each token begins
    past: np.ndarray  # int64: where it ends
    words: np.ndarray  # int32 (columns, tokens): a row of a table of views


@compiled
def value_of(lines: Any, p: Any, tokens: Any, t: Any, table: Any, pads: Any) -> Any:
    """The entry of a table for macro p at token t, or the one for beyond the sentence; 0 is in the middle of those."""
    at = t + lines.rows[p]
    middle = np.int64(len(pads) // 2)
    if at < tokens.first[t]:
        return pads[middle + at - tokens.first[t]]
    if at >= tokens.past[t]:
        return pads[middle + at - tokens.past[t] + 1]
    return table[np.int64(tokens.words[lines.columns[p], at]), lines.views[p]]


@compiled
def hash_lines(lines: Any, tokens: Any, start: Any, stop: Any, table: Any, pads: Any, out: Any) -> None:
    """The hash of the attribute of each line for some tokens, one after another; 0 if there is none."""
    k = np.uint64(0)
    for t in range(np.int64(start), np.int64(stop)):
        for line in range(np.int64(len(lines.seeds))):
            h = lines.seeds[line]
            for p in range(lines.ends[line], lines.ends[line + 1]):
                value = value_of(lines, p, tokens, t, table, pads)
                if value == ZERO:
                    h = ZERO
                    break
                h = combine(h, value)
            out[k] = h
            k += ONE


@compiled
def hash_words(seeds: Any, views: Any, table: Any, out: Any) -> None:
    """The hashes of attributes with one value, for each word; 0 if there is none."""
    for n in range(np.int64(len(table))):
        for k in range(np.int64(len(seeds))):
            value = table[n, views[k]]
            out[n, k] = ZERO if value == ZERO else combine(seeds[k], value)


@compiled
def hash_attributes(seeds: Any, kinds: Any, parts: Any, values: Any, out: Any) -> None:
    """The hashes of attributes from the numbers of their values (-1: no more)."""
    for n in range(np.int64(len(kinds))):
        h = seeds[np.int64(kinds[n])]
        for j in range(np.int64(parts.shape[1])):
            if parts[n, j] >= 0:
                h = combine(h, values[np.int64(parts[n, j])])
        out[n] = h


@compiled
def number_attributes(
    slots: Any, secret: Any, known: Any, kinds: Any, parts: Any, lines: Any, tokens: Any, start: Any, ids: Any,
    pad_ids: Any, hashes: Any, first: Any, room: Any, count: Any, out: Any,
) -> Any:  # fmt: skip
    """Number the hashes of ``hash_lines`` from the one at ``first`` on, new ones in order of appearance; 0 becomes -1.

    Returns the end and the number of attributes. The loop stops before a new one for which there is no room; the
    caller makes some and calls again.
    """
    end, shift = np.uint64(len(hashes)), shift_of(slots)
    width = np.uint64(len(lines.seeds))
    k = np.uint64(first)
    while k < end:
        if k + AHEAD < end:
            prefetch(slots, first_slot(secret, shift, hashes[k + AHEAD]))
        h = hashes[k]
        if h == ZERO:
            out[k] = np.int32(-1)
            k += ONE
            continue
        s, held = slot_of(slots, secret, shift, known, h)
        held &= NUMBER
        if held == ZERO:
            if count >= room:
                break
            held = np.uint64(count) + ONE
            known[count] = h
            slots[s] = (h & ~NUMBER) | held
            t, line = np.int64(start) + np.int64(k // width), np.int64(k % width)
            kinds[count] = lines.kinds[line]
            j = np.int64(0)
            for p in range(lines.ends[line], lines.ends[line + 1]):
                parts[count, j] = value_of(lines, p, tokens, t, ids, pad_ids)
                j += 1
            while j < parts.shape[1]:
                parts[count, j] = np.int32(-1)
                j += 1
            count += 1
        out[k] = np.int32(held - ONE)
        k += ONE
    return np.int64(k), np.int64(count)


@compiled
def gather(
    lines: Any, alone: Any, pad_numbers: Any, tokens: Any, start: Any, stop: Any, singles: Any,
    found: Any, out: Any, counts: Any,
) -> Any:  # fmt: skip
    """The numbers of the attributes of some tokens in the order of the lines, without those that are unknown.

    A line with one macro (``alone`` has its place in ``singles``, else -1) is looked up by the word; ``found`` has the
    numbers of the other lines, for each token. Returns how many there are.
    """
    used = np.uint64(0)
    k = np.uint64(0)
    middle = np.int64(pad_numbers.shape[1] // 2)
    for t in range(np.int64(start), np.int64(stop)):
        first, past = tokens.first[t], tokens.past[t]
        before = used
        for line in range(np.int64(len(lines.seeds))):
            if alone[line] < 0:
                number = found[k]
                k += ONE
            else:
                p = lines.ends[line]
                at = t + lines.rows[p]
                if at < first:
                    number = pad_numbers[line, middle + at - first]
                elif at >= past:
                    number = pad_numbers[line, middle + at - past + 1]
                else:
                    number = singles[np.int64(tokens.words[lines.columns[p], at]), alone[line]]
            if number >= 0:
                out[used] = number
                used += ONE
        counts[t] = np.int64(used - before)
    return np.int64(used)
