"""Whole blocks of kernel values of strings, on all cores, each pair by the cheapest way.

Strings that fit into a word go with all others by ``by_words``. Of the longer ones, those of one side are *made* into
suffix automata and the others walk through them; unless a table is cheaper, for a pair or two that are not
much longer than a word.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlearn.kernels.pairwise import share
from onlearn.kernels.strings_pairs import WORD, by_table, by_words, short_diagonal
from onlearn.kernels.strings_points import StringPoints, same_kind
from onlearn.kernels.suffix import automaton, walk

# Measured, in nanoseconds: a cell of the table; for a character, building the automaton, and walking it; and how
# much longer it takes to make the arrays of an automaton than the row of a table. One pair changes over at about 120.
CELL, BUILD, WALK, CALL = 1.6, 120.0, 50.0, 4_000.0
STEP = 10.0  # ... and a character with all of a string that fits into a word


def fill(P: StringPoints, Q: StringPoints, weights: np.ndarray, out: np.ndarray) -> None:
    """out[i, j] = the sum over substrings that string i of P and j of Q share, weights[n] for one of length n."""
    if len(Q) < len(P):  # threads share out Q's strings
        fill(Q, P, weights, out.T)
        return
    same_kind(P, Q)
    upto, both = running_sums(weights), P is Q
    short_p, long_p = _by_length(P)
    short_q, long_q = _by_length(Q)
    _words(Q, short_q, P, np.arange(len(P)), weights, both, out.T)
    if both:
        _suffixes(Q, long_q, Q, long_q, upto, out, True)
        return
    _words(P, short_p, Q, long_q, weights, False, out)
    if (
        _cost(P.lengths[long_p], Q.lengths[long_q].sum()).sum()
        < _cost(Q.lengths[long_q], P.lengths[long_p].sum()).sum()
    ):
        _suffixes(P, long_p, Q, long_q, upto, out)
    else:
        _suffixes(Q, long_q, P, long_p, upto, out.T)


def diagonal(P: StringPoints, weights: np.ndarray) -> np.ndarray:
    out, upto = np.empty(len(P)), running_sums(weights)
    short, long = _by_length(P)
    work = partial(short_diagonal, P.text, P.starts, short, weights, P.top, out)
    share(work, len(short), STEP * P.lengths[short].sum())

    def alone(first: int, past: int) -> None:
        for i in long[first:past]:
            out[i] = _row(P, i, P, np.array([i]), upto)[0]

    share(alone, len(long), _cost(P.lengths[long], P.lengths[long]).sum())
    return out


def running_sums(weights: np.ndarray) -> np.ndarray:
    """``[n]`` is what a match of length n counts, with all its suffixes."""
    with np.errstate(over="ignore"):
        return np.cumsum(weights)


def _by_length(P: StringPoints) -> tuple[np.ndarray, np.ndarray]:
    short = P.lengths <= WORD
    return np.flatnonzero(short), np.flatnonzero(~short)


def _words(
    made: StringPoints,
    made_rows: np.ndarray,
    walked: StringPoints,
    walked_rows: np.ndarray,
    weights: np.ndarray,
    both: bool,
    out: np.ndarray,
) -> None:
    """``out[m, w]`` for short strings m and others, in threads over m."""
    if len(made_rows) == 0 or len(walked_rows) == 0:
        return
    # Flat, so that compiled code knows one layout only, whichever side is made.
    down, across = (stride // out.itemsize for stride in out.strides)
    flat = as_strided(out, ((out.shape[0] - 1) * down + (out.shape[1] - 1) * across + 1,), (out.itemsize,))
    strings = made.text, made.starts, made_rows, walked.text, walked.starts, walked_rows
    work = partial(by_words, *strings, weights, max(made.top, walked.top), both, flat, down, across)
    share(work, len(made_rows), STEP * len(made_rows) * walked.lengths[walked_rows].sum())


def _suffixes(
    made: StringPoints,
    made_rows: np.ndarray,
    walked: StringPoints,
    walked_rows: np.ndarray,
    upto: np.ndarray,
    out: np.ndarray,
    both: bool = False,
) -> None:
    """``out[m, w]`` for long strings, in threads over m; with ``both``, each pair once."""
    if len(made_rows) == 0 or len(walked_rows) == 0:
        return

    def work(first: int, past: int) -> None:
        for n in range(first, past):
            m, rows = made_rows[n], walked_rows[: n + 1] if both else walked_rows
            out[m, rows] = _row(made, m, walked, rows, upto, threads=len(made_rows) == 1)
            if both:
                out[rows, m] = out[m, rows]

    share(work, len(made_rows), _cost(made.lengths[made_rows], walked.lengths[walked_rows].sum()).sum())


def _row(
    made: StringPoints, m: int, walked: StringPoints, rows: np.ndarray, upto: np.ndarray, threads: bool = False
) -> np.ndarray:
    """k of the long string m of ``made`` and each of some others, which are walked in threads if it is the only one."""
    edges, values = made.starts[m : m + 2], np.empty((len(rows), 1))
    length, others = edges[1] - edges[0], walked.lengths[rows].sum()
    if CELL * length * others <= _cost(length, others):
        by_table(made.text, edges[0], edges[1], walked.text, walked.starts, rows, upto, values)
    else:
        states = automaton(made.text, edges, np.ones((1, 1)), upto)
        walks = partial(walk, walked.text, walked.starts, rows, *states, upto, values)
        share(walks, len(rows), WALK * others if threads else 0)
    return values[:, 0]


def _cost(length: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Of a string of some length with others of so many characters together, by the cheaper way."""
    return np.minimum(CELL * length * others, CALL + BUILD * length + WALK * others)
