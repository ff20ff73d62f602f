"""Blocks of substring kernel values, on all cores, each pair by the cheapest way.

Let L(i, j) be the length of the longest common suffix of x[..i] and z[..j]: L(i, j) = L(i-1, j-1) + 1 where the
characters are equal, else 0. Each common substring, with its multiplicity, is one pair of end places and a length up to
L there: k(x, z) = sum over i, j of upto[L(i, j)], with ``upto[n]`` the sum of the weights of lengths 1 to n.

- One string has at most 64 characters (``by_words``): a row of the table of L is a few machine words. Bit j of level n
  says whether L(i, j) >= n, and level n of the next row is level n-1 of this one, shifted, where the characters are
  equal. Rows have few levels, since long common substrings are rare; at worst it is as much work as the table.
- Both are longer: the strings of one side are made into suffix automata (``suffix``), and the others walk through them.
- For a pair or two that are not much longer than 64 the table itself is cheaper (``by_table``), a row at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlearn.compiler import compiled
from onlearn.kernels.base import View, listed, share, shown
from onlearn.kernels.bits import ones
from onlearn.kernels.suffix import automaton, walk

TEXT, BYTES = "text (str)", "bytes"
WORD = 64  # characters of the longest strings whose rows fit into one word

# Measured, in nanoseconds: a cell of the table; building the automaton, and walking it, for each character; what the
# arrays of an automaton take more than the row of a table. For one pair the automaton is cheaper from about 120
# characters on. Last, a character with all of a string that fits into a word.
CELL, BUILD, WALK, CALL, STEP = 1.6, 120.0, 50.0, 4_000.0, 10.0


class StringPoints(View):
    """Strings of characters (code points) or of bytes: all characters in one array, and where each string starts."""

    dtype: Any = np.dtype(np.float64)

    def __init__(self, text: np.ndarray, starts: np.ndarray, kind: str | None) -> None:
        self.text = text  # uint32
        self.starts = starts  # int64: string i is text[starts[i]:starts[i + 1]]
        self.kind = kind  # TEXT, BYTES, or None if there are no strings

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.starts)

    @cached_property
    def top(self) -> int:
        """The largest character."""
        return int(self.text.max(initial=0))

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    def take(self, rows: Any) -> StringPoints:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                edges = self.starts[start : max(start, stop) + 1]
                return StringPoints(self.text[edges[0] : edges[-1]], edges - edges[0], self.kind)
            rows = np.arange(start, stop, step)
        rows = np.arange(len(self))[np.asarray(rows)]  # also negative numbers and masks
        lengths = self.lengths[rows]
        starts = _starts(lengths)
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], lengths)
        return StringPoints(self.text[places], starts, self.kind)

    def join(self, others: Sequence[StringPoints]) -> StringPoints:
        parts = [self, *others]
        for part in others:
            same_kind(self, part)
        kind = next((part.kind for part in parts if part.kind), None)
        lengths = np.concatenate([part.lengths for part in parts])
        return StringPoints(np.concatenate([part.text for part in parts]), _starts(lengths), kind)


def encode(X: Any, who: str) -> StringPoints:
    """A sequence of str, or of bytes, as points; an error names the position of anything else."""
    strings = listed(X, who, "strings")
    first = type(strings[0]) if strings else str
    wanted: type = bytes if issubclass(first, bytes) else str
    for position, string in enumerate(strings):
        if isinstance(string, wanted):
            continue
        if isinstance(string, (str, bytes)):
            raise TypeError(
                f"{who}: string {position} is {_kind(string)} but string 0 is {_kind(strings[0])}; decode the bytes, "
                f"or encode the text, so that all are of one kind"
            )
        raise TypeError(f"{who}: string {position} is {shown(string)}, neither text (str) nor bytes")
    if wanted is bytes:
        text = np.frombuffer(b"".join(strings), dtype=np.uint8).astype(np.uint32)
    else:
        # A lone surrogate is not a character, but strings of Python may hold one.
        text = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32)
    lengths = np.fromiter((len(string) for string in strings), dtype=np.int64, count=len(strings))
    return StringPoints(text, _starts(lengths), (BYTES if wanted is bytes else TEXT) if strings else None)


def same_kind(P: StringPoints, Q: StringPoints) -> None:
    if P.kind and Q.kind and P.kind != Q.kind:
        raise TypeError(
            f"strings of {P.kind} cannot be compared with strings of {Q.kind}: decode or encode one of them"
        )


def _starts(lengths: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _kind(string: Any) -> str:
    return BYTES if isinstance(string, bytes) else TEXT


# -- blocks


def fill(P: StringPoints, Q: StringPoints, weights: np.ndarray, out: np.ndarray) -> None:
    """out[i, j] = the sum of weights[|u|] over the substrings u that string i of P and string j of Q share."""
    if len(Q) < len(P):  # the strings of Q are divided among threads
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

    def words(first: int, past: int) -> None:
        short_diagonal(P.text, P.starts, short, weights, Buffers.for_characters(P.top), out, first, past)

    share(words, len(short), STEP * P.lengths[short].sum())

    def alone(first: int, past: int) -> None:
        for i in long[first:past]:
            out[i] = _row(P, i, P, np.array([i]), upto)[0]

    share(alone, len(long), _cost(P.lengths[long], P.lengths[long]).sum())
    return out


def running_sums(weights: np.ndarray) -> np.ndarray:
    """``[n]`` is the weight of a match of length n with all its suffixes."""
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
    """``out[m, w]`` for short strings m and any strings w, in threads over m."""
    if len(made_rows) == 0 or len(walked_rows) == 0:
        return
    # Flat, so that the compiled code has one variant, whichever side is short.
    down, across = (stride // out.itemsize for stride in out.strides)
    flat = as_strided(out, ((out.shape[0] - 1) * down + (out.shape[1] - 1) * across + 1,), (out.itemsize,))
    strings = made.text, made.starts, made_rows, walked.text, walked.starts, walked_rows
    top = max(made.top, walked.top)

    def work(first: int, past: int) -> None:
        by_words(*strings, weights, Buffers.for_characters(top), both, flat, down, across, first, past)

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
    """k of the long string m of ``made`` and each of some others; in threads over these if m is the only one."""
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
    """The cost of a string of some length with others of so many characters together, by the cheaper way."""
    return np.minimum(CELL * length * others, CALL + BUILD * length + WALK * others)


# -- compiled loops


class Buffers(NamedTuple):
    """Arrays that ``common`` works in, all zeros before and after; one set for each thread."""

    places: np.ndarray  # of each character: the bits of its places in the marked string
    levels: np.ndarray
    counts: np.ndarray

    @staticmethod
    def for_characters(top: int) -> Buffers:
        """For characters up to ``top``."""
        return Buffers(np.zeros(top + 1, np.uint64), np.zeros(WORD, np.uint64), np.zeros(WORD, np.uint64))


@compiled
def by_words(
    made,
    made_starts,
    made_rows,
    walked,
    walked_starts,
    walked_rows,
    weights,
    buffers,
    both,
    flat,
    down,
    across,
    first,
    past,
):
    """k of the strings m of ``made_rows[first:past]``, none longer than a word, and all w of ``walked_rows``.

    The value goes to ``flat[m * down + w * across]``. ``weights[n]`` is the weight of length n; longer matches are not
    counted. With ``both``, made and walked are the same strings, and each pair is computed once.
    """
    for n in range(first, past):
        m = made_rows[n]
        mark(buffers.places, made, made_starts[m], made_starts[m + 1])
        for k in range(len(walked_rows)):
            w = walked_rows[k]
            start, stop = walked_starts[w], walked_starts[w + 1]
            if both and w > m and stop - start <= WORD:
                continue  # computed when w is the made string
            value = common(buffers, walked, start, stop, weights)
            flat[m * down + w * across] = value
            if both:
                flat[w * down + m * across] = value
        unmark(buffers.places, made, made_starts[m], made_starts[m + 1])


@compiled
def mark(places, text, start, stop):
    """Set, for each character of text[start:stop], the bits of its places."""
    for n in range(stop - start):
        places[text[start + n]] |= np.uint64(1) << np.uint64(n)


@compiled
def unmark(places, text, start, stop):
    for n in range(start, stop):
        places[text[n]] = np.uint64(0)


@compiled
def common(buffers, text, start, stop, weights):
    """k of a marked string and text[start:stop]."""
    places, levels, counts = buffers.places, buffers.levels, buffers.counts
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
def short_diagonal(text, starts, rows, weights, buffers, out, first, past):
    """out[i] = k(x_i, x_i) for the strings i of ``rows[first:past]``, none longer than a word."""
    for n in range(first, past):
        i = rows[n]
        mark(buffers.places, text, starts[i], starts[i + 1])
        out[i] = common(buffers, text, starts[i], starts[i + 1], weights)
        unmark(buffers.places, text, starts[i], starts[i + 1])


def by_table(x: Any, x_start: int, x_stop: int, z: Any, z_starts: Any, z_rows: Any, upto: Any, out: np.ndarray) -> None:
    """out[n] = k of x[x_start:x_stop] and string ``z_rows[n]``, by dynamic programming."""
    longest = int((z_starts[z_rows + 1] - z_starts[z_rows]).max(initial=0))
    fill_tables(x, x_start, x_stop, z, z_starts, z_rows, upto, np.empty(longest + 1, np.int64), out)


@compiled
def fill_tables(x, x_start, x_stop, z, z_starts, z_rows, upto, row, out):
    """Only one row of each table is kept, which is updated from its end."""
    most = len(upto) - 1
    for n in range(len(z_rows)):
        start = z_starts[z_rows[n]]
        width = z_starts[z_rows[n] + 1] - start
        for j in range(width + 1):
            row[j] = 0
        total = 0.0
        for i in range(x_start, x_stop):
            symbol = x[i]
            for j in range(width, 0, -1):
                length = row[j - 1] + 1 if z[start + j - 1] == symbol else 0
                row[j] = length
                total += upto[min(length, most)]
        out[n, 0] = total
