"""Whole blocks of kernel values of strings, on all cores, each pair by the cheapest way."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onlearn.kernels.strings_pairs import BUILD, CELL, WALK, WORD, by_suffixes, by_words, with_itself
from onlearn.kernels.strings_points import StringPoints, same_kind
from onlearn.predicting import over_rows

STEP = 8  # multiplications that take as long as one character of a walk


def fill(P: StringPoints, Q: StringPoints, weights: np.ndarray, out: np.ndarray) -> None:
    """out[i, j] = the sum over the common substrings of P's i-th and Q's j-th string, one of length n for weights[n]."""
    if len(Q) < len(P):  # threads share out Q's strings
        fill(Q, P, weights, out.T)
        return
    same_kind(P, Q)
    upto, top, both = _upto(weights), max(P.top, Q.top), P is Q
    short_p, long_p = _by_length(P)
    short_q, long_q = _by_length(Q)
    every = np.arange(len(P))
    _run(by_words, Q, short_q, P, every, (weights, top, both), out.T)
    if both:
        _run(by_suffixes, Q, long_q, Q, long_q, (upto, True), out)
        return
    _run(by_words, P, short_p, Q, long_q, (weights, top, False), out)
    if _total(P, long_p, Q, long_q) < _total(Q, long_q, P, long_p):
        _run(by_suffixes, P, long_p, Q, long_q, (upto, False), out)
    else:
        _run(by_suffixes, Q, long_q, P, long_p, (upto, False), out.T)


def diagonal(P: StringPoints, weights: np.ndarray) -> np.ndarray:
    out = np.empty(len(P))
    work = partial(with_itself, P.text, P.starts, weights, _upto(weights), P.top, out)
    over_rows(work, len(P), int(WORD * P.starts[-1]))
    return out


def _upto(weights: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.cumsum(weights)


def _by_length(P: StringPoints) -> tuple[np.ndarray, np.ndarray]:
    short = P.lengths <= WORD
    return np.flatnonzero(short), np.flatnonzero(~short)


def _total(made: StringPoints, made_rows: np.ndarray, walked: StringPoints, walked_rows: np.ndarray) -> float:
    """What it costs to make automata (or tables) of the first and walk the others."""
    lengths, others = made.lengths[made_rows], walked.lengths[walked_rows].sum()
    return float(np.minimum(CELL * lengths * others, BUILD * lengths + WALK * others).sum())


def _run(
    way: Any, made: StringPoints, made_rows: np.ndarray, walked: StringPoints, walked_rows: np.ndarray, more: Any, out: Any
) -> None:
    """``out[m, w]`` for some strings, in threads over the made ones."""
    if len(made_rows) == 0 or len(walked_rows) == 0:
        return
    work = partial(way, made.text, made.starts, made_rows, walked.text, walked.starts, walked_rows, *more, out)
    over_rows(work, len(made_rows), STEP * len(made_rows) * int(walked.lengths[walked_rows].sum()))
