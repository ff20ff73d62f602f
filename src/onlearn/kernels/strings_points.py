"""Strings as compiled code sees them: all their characters in one array, and where each string starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from onlearn.kernels.pairwise import listed, shown

TEXT, BYTES = "text (str)", "bytes"


class StringPoints:
    """Strings of characters (code points) or of bytes; the two never meet, for they have no characters in common."""

    dtype = np.dtype(np.float64)

    def __init__(self, text: np.ndarray, starts: np.ndarray, kind: str | None) -> None:
        self.text = text  # uint32
        self.starts = starts  # int64: string i is text[starts[i]:starts[i + 1]]
        self.kind = kind  # TEXT, BYTES, or None when there are no strings

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
        rows = np.arange(len(self))[np.asarray(rows)]  # negative numbers and masks as NumPy has them
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
    """A sequence of str, or of bytes; anything else is named with its position."""
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
        # A lone surrogate is no character, but Python's strings may hold one, and it equals itself.
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
