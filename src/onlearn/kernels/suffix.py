"""A suffix automaton of many strings: their substrings, grouped by the places where they end.

Blumer et al., "The smallest automaton recognizing the subwords of a text" (1985). A state stands for the substrings
that end at exactly the same places. They are the suffixes of the longest of them, of ``length[v]``, down to those one
longer than ``length[link[v]]``, and all occur equally often. There are at most twice as many states as characters. A
walk over another string knows after each character the longest suffix so far that occurs in the strings, in constant
(amortized) time for each character.

So a sum over substrings u of weight(|u|) count(u in x) count(u in z) takes one walk over x. After each character the
match of length n in state v adds the weights of itself and its suffixes: those of v occur ``count[v]`` times each,
shorter ones are in the states that links lead to. With ``upto[n]`` the sum of the weights of lengths 1 to n, that is
``base[v] + count[v] * upto[n]``, where ``base[v] = base[link] + (count[link] - count[v]) * upto[length[link]]``. If an
occurrence in string i counts ``shares[i]``, the sums are those of a weighted sum of strings.

Most states have one transition only and keep it in their row. The others are in one hash table for all states, since
alphabets may be small (DNA) or large (Unicode).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled

MOST = 2**29  # characters: states and slots are numbered by int32
EMPTY = -1
BEYOND = 1 << 21  # larger than any character
LENGTH, LINK, SYMBOL, TARGET = 0, 1, 2, 3  # the columns of ``nodes``


class Automaton(NamedTuple):
    nodes: Any  # int32, a row for each state: length of its longest string, link, and its first transition
    table: Any  # int64, a row for each slot, for all other transitions: key (state and character), target
    sums: Any  # float64, states x 2 x outputs: a match of length n in v, with its suffixes, is v[0] + v[1] * upto[n]


def automaton(text: np.ndarray, starts: np.ndarray, shares: np.ndarray, upto: np.ndarray) -> Automaton:
    """The automaton of the strings ``text[starts[i]:starts[i + 1]]``.

    ``shares`` has a row for each string and a column for each output; ``upto[n]`` is the sum of the weights of lengths
    1 to n.
    """
    size = int(starts[-1] - starts[0])
    if size > MOST:
        raise ValueError(f"{size:,} characters are too many for one suffix automaton, which takes up to {MOST:,}")
    shares = np.ascontiguousarray(shares, dtype=np.float64)
    nodes = np.full((2 * size + 2, 4), EMPTY, np.int32)
    table = np.full((slots(size, len(starts) - 1), 2), EMPTY, np.int64)
    # The slots of a state are chained, so that a state can be split without trying every character.
    newest, older = np.full(2 * size + 2, EMPTY, np.int32), np.empty(len(table), np.int32)
    ends = np.empty(size, np.int32)
    nodes = nodes[: build(text, starts, nodes, table, newest, older, ends)]
    sums = np.zeros((len(nodes), 2, shares.shape[1]))
    order = np.empty(len(nodes), np.int32)
    sort_by_length(nodes, np.zeros(int(nodes[:, LENGTH].max()) + 2, np.int64), order)
    weigh(nodes, starts, ends, shares, upto, order, sums)
    return Automaton(nodes, table, sums)


@compiled
def slots(size, count):
    """The size of the hash table for ``count`` strings of ``size`` characters: a power of two.

    There are at most as many transitions as in a spanning tree of the states, and one more for each suffix. Each state
    that is not the end of a string keeps one in its row, so the table holds at most ``size + count``.
    """
    enough = 16
    while 3 * enough < 4 * (size + count):
        enough *= 2
    return enough


@compiled
def place(table, state, symbol):
    """The slot of a transition, or the free slot where it would go."""
    mask = np.uint64(len(table) - 1)
    # Neither product nor sum exceeds 64 bits: a state has 31, a character 21.
    mixed = np.uint64(state) * np.uint64(0x9E3779B1) + np.uint64(symbol) * np.uint64(0x85EBCA6B)
    at = (mixed ^ (mixed >> np.uint64(23))) & mask
    key = state * BEYOND + symbol
    while table[at, 0] != key and table[at, 0] != EMPTY:
        at = (at + np.uint64(1)) & mask
    return at


@compiled
def follow(nodes, table, state, symbol):
    """The state that a transition leads to, or EMPTY."""
    if nodes[state, SYMBOL] == symbol:
        return np.int64(nodes[state, TARGET])
    if nodes[state, SYMBOL] == EMPTY:
        return np.int64(EMPTY)
    at = place(table, state, symbol)
    return table[at, 1] if table[at, 0] != EMPTY else np.int64(EMPTY)


@compiled
def connect(nodes, table, newest, older, state, symbol, target):
    """Add a transition, or change the target of an existing one."""
    if nodes[state, SYMBOL] == EMPTY or nodes[state, SYMBOL] == symbol:
        nodes[state, SYMBOL], nodes[state, TARGET] = symbol, target
        return
    at = place(table, state, symbol)
    if table[at, 0] == EMPTY:
        table[at, 0] = state * BEYOND + symbol
        older[at], newest[state] = newest[state], at
    table[at, 1] = target


@compiled
def build(text, starts, nodes, table, newest, older, ends):
    """Fill in states, transitions, and for each character the state that its string reaches with it.

    Returns the number of states.
    """
    nodes[0, LENGTH], count = 0, np.int64(1)
    for i in range(len(starts) - 1):
        last = np.int64(0)
        for n in range(starts[i], starts[i + 1]):
            symbol = np.int64(text[n])
            target = follow(nodes, table, last, symbol)
            if target != EMPTY:  # known from an earlier string
                if nodes[target, LENGTH] != nodes[last, LENGTH] + 1:
                    target = split(nodes, table, newest, older, count, last, symbol, target)
                    count += 1
            else:
                target, count = count, count + 1
                nodes[target, LENGTH], nodes[target, LINK] = nodes[last, LENGTH] + 1, 0
                connect(nodes, table, newest, older, last, symbol, target)
                p = np.int64(nodes[last, LINK])
                while p >= 0:
                    q = follow(nodes, table, p, symbol)
                    if q != EMPTY:
                        if nodes[q, LENGTH] != nodes[p, LENGTH] + 1:
                            q = split(nodes, table, newest, older, count, p, symbol, q)
                            count += 1
                        nodes[target, LINK] = q
                        break
                    connect(nodes, table, newest, older, p, symbol, target)
                    p = np.int64(nodes[p, LINK])
            last = target
            ends[n - starts[0]] = last
    return count


@compiled
def split(nodes, table, newest, older, clone, p, symbol, q):
    """Move the shorter strings of state q, those of p followed by the symbol, to the state ``clone``."""
    nodes[clone, LENGTH], nodes[clone, LINK] = nodes[p, LENGTH] + 1, nodes[q, LINK]
    nodes[clone, SYMBOL], nodes[clone, TARGET] = nodes[q, SYMBOL], nodes[q, TARGET]
    slot = newest[q]
    while slot != EMPTY:
        connect(nodes, table, newest, older, clone, table[slot, 0] & (BEYOND - 1), table[slot, 1])
        slot = older[slot]
    nodes[q, LINK] = clone
    while p >= 0 and follow(nodes, table, p, symbol) == q:
        connect(nodes, table, newest, older, p, symbol, clone)
        p = np.int64(nodes[p, LINK])
    return clone


@compiled
def sort_by_length(nodes, first, order):
    """The states from short to long, by counting sort. ``first`` has an entry, zero before, for each length."""
    for v in range(len(nodes)):
        first[nodes[v, LENGTH] + 1] += 1
    for length in range(len(first) - 2):
        first[length + 1] += first[length]
    for v in range(len(nodes)):
        order[first[nodes[v, LENGTH]]] = v
        first[nodes[v, LENGTH]] += 1


@compiled
def weigh(nodes, starts, ends, shares, upto, order, sums):
    """For each state and output: the base and the weighted number of occurrences. ``order``: from short to long."""
    states, outputs = len(nodes), shares.shape[1]
    for i in range(len(starts) - 1):
        for n in range(starts[i] - starts[0], starts[i + 1] - starts[0]):
            for c in range(outputs):
                sums[ends[n], 1, c] += shares[i, c]
    # From long to short: a state occurs wherever the states that link to it do.
    for n in range(states - 1, 0, -1):
        v, link = order[n], nodes[order[n], LINK]
        for c in range(outputs):
            sums[link, 1, c] += sums[v, 1, c]
    for n in range(1, states):
        v, link = order[n], nodes[order[n], LINK]
        shorter = upto[min(nodes[link, LENGTH], len(upto) - 1)]
        for c in range(outputs):
            sums[v, 0, c] = sums[link, 0, c] + (sums[link, 1, c] - sums[v, 1, c]) * shorter


@compiled
def walk(text, starts, rows, nodes, table, sums, upto, out, first, past):
    """out[n] = the sums over the substrings of string ``rows[n]``, a column for each output, for first <= n < past."""
    most, outputs = len(upto) - 1, out.shape[1]
    for row in range(first, past):
        out[row, :] = 0.0
        state, length = np.int64(0), np.int64(0)
        for n in range(starts[rows[row]], starts[rows[row] + 1]):
            symbol = np.int64(text[n])
            target = follow(nodes, table, state, symbol)
            while target == EMPTY and state != 0:
                state = np.int64(nodes[state, LINK])
                length = np.int64(nodes[state, LENGTH])
                target = follow(nodes, table, state, symbol)
            if target == EMPTY:
                continue
            state, length = target, length + 1
            weight = upto[min(length, most)]
            for c in range(outputs):
                out[row, c] += sums[state, 0, c] + sums[state, 1, c] * weight
