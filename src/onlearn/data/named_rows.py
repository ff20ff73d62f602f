"""Sparse rows with named features, the output of parsers and tokenisers, and the hash of a name.

A vocabulary turns them into rows with numbered features. Names are not copied: each is a part of a text.

A name consists of the prefix of its group (of a column or a namespace, such as ``"colour="``) and the bytes after it.
Its hash is that of these bytes, seeded with the hash of the prefix, so a prefix is hashed only once. The hash takes
eight bytes at a time: multiply, and fold the upper half onto the lower.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled

ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / the golden ratio
OTHER = np.uint64(0xD6E8FEB86659FD93)
HALF = np.uint64(32)
BYTE = np.uint64(8)
ONE = np.uint64(1)
START = np.uint64(0x243F6A8885A308D3)  # the seed of names without a prefix: digits of pi


class NamedRows(NamedTuple):
    """Rows of named features."""

    indptr: np.ndarray  # int64: row i has the features indptr[i] to indptr[i + 1]
    hashes: np.ndarray  # uint64: the hash of prefix and name
    values: np.ndarray  # float64
    starts: np.ndarray  # int64: the start of the name in the text
    lengths: np.ndarray  # int64: the bytes of the name
    groups: np.ndarray  # uint16: the namespace or column of the feature
    text: np.ndarray  # uint8
    prefixes: tuple[str, ...]  # of the groups; the full name is the prefix and the name
    known: np.ndarray | None = None  # int32: the numbers in a vocabulary, as of an earlier lookup; -1: unknown

    @property
    def shape(self) -> tuple[int]:
        """The number of rows. The number of features depends on the vocabulary."""
        return (len(self.indptr) - 1,)

    def between(self, start: int, stop: int) -> NamedRows:
        """The rows ``start`` to ``stop``, as views."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        return self.with_features(self.indptr[start : stop + 1] - first, slice(first, last))

    def with_features(self, indptr: np.ndarray, features: slice | np.ndarray) -> NamedRows:
        """Rows with some of the features only."""
        return self._replace(
            indptr=indptr,
            hashes=self.hashes[features],
            values=self.values[features],
            starts=self.starts[features],
            lengths=self.lengths[features],
            groups=self.groups[features],
            known=None if self.known is None else self.known[features],
        )

    def name(self, k: int) -> str:
        """The full name of the feature at position k."""
        start = int(self.starts[k])
        raw = self.text[start : start + int(self.lengths[k])].tobytes()
        return self.prefixes[int(self.groups[k])] + raw.decode("utf-8", "replace")


@compiled
def mix(h: Any, word: Any) -> Any:
    """Mix one word into a hash."""
    h = (h ^ word) * ODD
    return h ^ (h >> HALF)


@compiled
def finish(h: Any) -> Any:
    """Spread the effect of the last word over all bits."""
    h = h * OTHER
    h = h ^ (h >> HALF)
    h = h * ODD
    return h ^ (h >> HALF)


@compiled
def hash_bytes(text: Any, start: Any, stop: Any, seed: Any) -> Any:
    """The hash of ``text[start:stop]``; text is an array of bytes."""
    p: Any = np.uint64(start)
    end = np.uint64(stop)
    word: Any
    n: Any
    h = mix(seed, end - p)
    while p + BYTE <= end:
        word = np.uint64(0)
        for n in range(np.uint64(0), BYTE):
            word |= np.uint64(text[p + n]) << (n * BYTE)
        h = mix(h, word)
        p += BYTE
    if p < end:
        word, n = np.uint64(0), np.uint64(0)
        while p < end:
            word |= np.uint64(text[p]) << n
            n += BYTE
            p += ONE
        h = mix(h, word)
    return finish(h)


@compiled
def combine(first: Any, second: Any) -> Any:
    """The hash of a pair of features, or of an n-gram and the next word; the order matters."""
    return finish(mix(first * OTHER, second))


def hash_name(name: str | bytes, seed: np.uint64 = START) -> np.uint64:
    """The hash of one name; for a prefix, the seed of the names that follow it."""
    raw = np.frombuffer(name.encode() if isinstance(name, str) else name, dtype=np.uint8)
    with np.errstate(over="ignore"):  # NumPy would warn if it runs interpreted
        return np.uint64(hash_bytes(raw, 0, len(raw), seed))
