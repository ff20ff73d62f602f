"""Large arrays as they are stored: those that are mostly one value, or hold small whole numbers, take less room.

Of many classes and features most weights have never moved: a file need not hold each of them. Nothing is lost:
``expand(*compact(arrays))`` are the same arrays, bit for bit.
"""

from __future__ import annotations

import math
from operator import index
from typing import Any

import numpy as np

from onlearn.threads import over_rows

LARGE = 1 << 16  # bytes; less is not worth it
SAMPLE = 1001  # elements that tell which value is the most common one
SELDOM = 0.1  # of those; less is not worth a look at all the others
WORTH = 0.8  # store it differently if that takes so much of the room, or less

KINDS = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")  # types that are worth it

Arrays = dict[str, np.ndarray]


def compact(arrays: Arrays, large: int = LARGE) -> tuple[Arrays, dict[str, Any]]:
    """The arrays to store, and what must be known to expand them."""
    items = list(arrays.items())
    size = sum(array.nbytes for _, array in items)
    made = over_rows(lambda a, b: [_stored(array, large) for _, array in items[a:b]], len(items), size)
    stored: Arrays = {}
    known: dict[str, Any] = {}
    for (key, _), (values, differs, how) in zip(items, (one for some in made for one in some)):
        stored[key] = values
        if differs is not None:
            stored[_where(key)] = differs
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


def expand(stored: Arrays, known: dict[str, Any]) -> Arrays:
    """The arrays that were compacted; a ValueError if they cannot have been."""
    arrays = dict(stored)
    for key, how in known.items():
        if how["dtype"] not in KINDS:
            raise ValueError(f"{key} is of no type that is stored")
        dtype, shape = np.dtype(how["dtype"]), tuple(how["shape"])
        size = math.prod(shape)
        values = arrays[key].astype(dtype, copy=False)
        if "common" in how:
            bits = arrays.pop(_where(key))
            if len(bits) != (size + 7) // 8:  # so that no more memory is asked for than the file tells
                raise ValueError(f"{key} contradicts itself")
            differs = np.unpackbits(bits, count=size).view(bool)
            if np.count_nonzero(differs) != len(values):
                raise ValueError(f"{key} contradicts itself")
            whole = np.full(size, index(how["common"]), f"u{dtype.itemsize}").view(dtype)
            whole[differs] = values
            values = whole
        arrays[key] = values.reshape(shape)
    return arrays


def _where(key: str) -> str:
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
