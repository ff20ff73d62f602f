"""Large arrays as model files store them: those that are mostly one value, or hold small whole numbers, take less room.

Of many classes and features most weights have never moved: a file need not hold each of them. Nothing is lost:
``expand(*compact(arrays))`` are the same arrays, bit for bit.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from onlearn.model_schema import COUNT, ListOf, MappingOf, OrMissing, Record, one_of, whole
from onlearn.threads import over_rows

LARGE = 1 << 16  # bytes; less is not worth it
SAMPLE = 1001  # elements that tell which value is the most common one
SELDOM = 0.1  # of those; less is not worth a look at all the others
WORTH = 0.8  # store it differently if that takes so much of the room, or less

BITS_OF = np.array([n.bit_count() for n in range(256)], np.uint8)  # the bits that are set in a byte

KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")  # types that are worth it

# What must be known to expand an array: its type, its shape, and the bits of the most common value, if it is left out.
COMPACT = MappingOf(
    Record(dtype=one_of(*KINDS), shape=ListOf(COUNT, "sizes"), common=OrMissing(whole(0, (1 << 64) - 1))),
    "how arrays are stored, by name",
)

Named = dict[str, np.ndarray]


def compact(arrays: Named, large: int = LARGE) -> tuple[Named, dict[str, Any]]:
    """The arrays to store, and what must be known to expand them."""
    items = list(arrays.items())
    size = sum(array.nbytes for _, array in items)
    made = over_rows(lambda a, b: [_stored(array, large) for _, array in items[a:b]], len(items), size)
    stored: Named = {}
    known: dict[str, Any] = {}
    for (key, _), (values, differs, how) in zip(items, (one for some in made for one in some)):
        stored[key] = values
        if differs is not None:
            stored[bits_name(key)] = differs
        if how:
            known[key] = how
    return stored, known


def _stored(array: np.ndarray, large: int) -> tuple[np.ndarray, np.ndarray | None, dict[str, Any]]:
    """What is stored of an array: values, the bits that tell where they go, and what must be known to expand it."""
    if array.nbytes < large or not array.dtype.isnative or f"{array.dtype.kind}{array.itemsize}" not in KINDS:
        return array, None, {}
    how: dict[str, Any] = {"dtype": f"{array.dtype.kind}{array.itemsize}", "shape": list(array.shape)}
    flat, where = array.reshape(-1), None
    bits = flat.view(f"u{flat.itemsize}")  # zeros of either sign are kept apart
    common, share = _common(bits)
    if share >= SELDOM:
        differs = bits != common
        count = int(np.count_nonzero(differs))
        if count * flat.itemsize + flat.size / 8 <= WORTH * flat.nbytes:
            how["common"] = int(common)
            flat, where = flat[differs], np.packbits(differs)
    narrow = _narrow(flat)
    return (narrow, where, how) if where is not None or narrow.itemsize < flat.itemsize else (array, None, {})


def expand(stored: Named, known: dict[str, Any]) -> Named:
    """The arrays that were compacted; a ValueError if they cannot have been. ``known`` is a ``COMPACT``.

    An array takes 64 times the room that its bits take in the file, at most.
    """
    arrays = dict(stored)
    for key, how in known.items():
        dtype, shape = np.dtype(how["dtype"]), tuple(how["shape"])
        size, values = math.prod(shape), stored[key]
        common = how.get("common")
        if values.dtype.kind not in "iuf" or (common is not None and values.ndim != 1):
            raise ValueError(f"{key} contradicts itself")
        values = values.astype(dtype, copy=False)
        if common is not None:
            bits = arrays.pop(bits_name(key), None)
            # so that no more memory is asked for than the file tells
            if bits is None or bits.dtype != np.uint8 or bits.shape != ((size + 7) // 8,):
                raise ValueError(f"{key} contradicts itself")
            differs = np.unpackbits(bits, count=size).view(bool)
            if np.count_nonzero(differs) != len(values) or common >= 1 << 8 * dtype.itemsize:
                raise ValueError(f"{key} contradicts itself")
            # Zeros need not be written: memory that nothing is put into takes no room.
            whole = np.full(size, common, f"u{dtype.itemsize}").view(dtype) if common else np.zeros(size, dtype)
            whole[differs] = values
            values = whole
        if values.size != size:
            raise ValueError(f"{key} contradicts itself")
        arrays[key] = values.reshape(shape)
    return arrays


def bits_name(key: str) -> str:
    """The name of the bits that tell where an array differs from its most common value."""
    return f"{key} differs"


def _common(bits: np.ndarray) -> tuple[Any, float]:
    """The most common value and its share, judged by some."""
    values, counts = np.unique(bits[:: max(1, len(bits) // SAMPLE)], return_counts=True)
    return values[counts.argmax()], float(counts.max() / counts.sum())


def _narrow(values: np.ndarray) -> np.ndarray:
    """Whole numbers in the fewest bytes that hold them all; other numbers as they are."""
    if values.dtype.kind == "f" or not len(values):
        return values
    least, most = values.min(), values.max()
    kinds = (np.uint8, np.uint16, np.uint32) if least >= 0 else (np.int8, np.int16, np.int32)
    for kind in kinds:
        if np.dtype(kind).itemsize < values.itemsize and np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
            return values.astype(kind)
    return values
