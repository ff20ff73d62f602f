"""Messages between client and workers: arrays in few bytes, and the changes from one state to the next.

A number that is sent must come back bit for bit, for all workers have to compute with the same state. Places are sent
as the distances between them; the bytes of numbers are sorted by their significance before they are compressed, since
the exponents of weights are much alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

CODEC = "zstd"
LEVEL = 1
WORTH = 1 << 9  # bytes from which on compressing is tried


class PackedArray(NamedTuple):
    """One array in few bytes."""

    content: bytes
    dtype: str
    shape: tuple[int, ...]
    size: int | None  # of the content before it was compressed; None: it is not
    rising: bool  # whether it holds distances between numbers that rise


class Message(NamedTuple):
    """Facts and arrays that go from one process to another; ``facts`` are small and plain."""

    facts: Any
    arrays: dict[str, PackedArray]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays as they travel."""
        return sum(len(one.content) for one in self.arrays.values())

    def unpacked(self) -> dict[str, np.ndarray]:
        """The arrays, which may be written to."""
        return {name: unpack_array(one) for name, one in self.arrays.items()}


def pack(facts: Any, arrays: Mapping[str, np.ndarray]) -> Message:
    """Facts and arrays as a message.

    >>> message = pack({"round": 3}, {"w": np.array([0.5, 0.25]), "places": np.array([3, 900])})
    >>> message.unpacked()
    {'w': array([0.5 , 0.25]), 'places': array([  3, 900])}
    """
    return Message(facts, {name: pack_array(array) for name, array in arrays.items()})


def pack_array(array: np.ndarray) -> PackedArray:
    """An array in few bytes."""
    import pyarrow as pa

    array = np.ascontiguousarray(array)
    flat, rising = array.reshape(-1), False
    if array.dtype.kind in "iu" and array.itemsize > 1 and flat.size > 1:
        # differences of numbers that rise from 0 on cannot overflow
        rising = bool(flat[0] >= 0 and (flat[1:] >= flat[:-1]).all())
        flat = narrowed(np.diff(flat, prepend=flat.dtype.type(0)) if rising else flat)
    stored = flat.dtype.str
    content = flat.view(np.uint8).reshape(-1, max(1, flat.itemsize)).T.tobytes() if flat.size else b""
    size = None
    if len(content) >= WORTH:
        small = pa.Codec(CODEC, LEVEL).compress(content, asbytes=True)
        if len(small) < len(content):
            size, content = len(content), small
    return PackedArray(content, f"{array.dtype.str} {stored}", array.shape, size, rising)


def unpack_array(packed: PackedArray) -> np.ndarray:
    """The array that was packed."""
    import pyarrow as pa

    dtype, stored = map(np.dtype, packed.dtype.split())
    content = packed.content
    if packed.size is not None:
        content = pa.Codec(CODEC, LEVEL).decompress(content, packed.size, asbytes=True)
    planes = np.frombuffer(content, np.uint8).reshape(max(1, stored.itemsize), -1)
    flat = np.ascontiguousarray(planes.T).reshape(-1).view(stored) if planes.size else np.zeros(0, stored)
    made = np.cumsum(flat, dtype=dtype) if packed.rising else flat.astype(dtype, copy=False)
    return made.reshape(packed.shape)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the fewest bytes that hold them all."""
    least, most = int(values.min()), int(values.max())
    for kind in ("u1", "u2", "u4") if least >= 0 else ("i1", "i2", "i4"):
        limits = np.iinfo(kind)
        if limits.min <= least and most <= limits.max and np.dtype(kind).itemsize < values.itemsize:
            return values.astype(kind)
    return values


# ----------------------------------------------------------------------------------------------------
# Changes: the places of an array whose bits differ, and the new numbers there.

PLACES = " at"  # is added to the name of an array that holds changes
SELDOM = 0.5  # the share of changed numbers from which on the whole array is sent


def changes(before: Mapping[str, np.ndarray], after: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What makes the arrays ``after`` of those ``before``: whole arrays, or places and the numbers there.

    >>> made = changes({"w": np.zeros(4)}, {"w": np.array([0.0, 0.0, 1.5, 0.0])})
    >>> made
    {'w at': array([2]), 'w': array([1.5])}
    >>> changed({"w": np.zeros(4)}, made)
    {'w': array([0. , 0. , 1.5, 0. ])}
    """
    made: dict[str, np.ndarray] = {}
    for name, array in after.items():
        old = before.get(name)
        if old is None or (old.shape, old.dtype) != (array.shape, array.dtype):
            made[name] = array
            continue
        bits = f"V{array.itemsize}" if array.itemsize > 8 else f"u{array.itemsize}"
        places = np.flatnonzero(array.reshape(-1).view(bits) != old.reshape(-1).view(bits))
        if len(places) > SELDOM * array.size:
            made[name] = array
        elif len(places):
            made[name + PLACES], made[name] = places, array.reshape(-1)[places]
    return made


def changed(before: Mapping[str, np.ndarray], change: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays after a change; those that did not change are the same objects."""
    made = dict(before)
    for name, array in change.items():
        if name.endswith(PLACES):
            continue
        places = change.get(name + PLACES)
        if places is None:
            made[name] = array
        else:
            whole = before[name].copy()
            whole.reshape(-1)[places] = array
            made[name] = whole
    return made
