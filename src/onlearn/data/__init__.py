"""Readers: files of many formats as batches of rows, in constant memory, parsed while earlier rows are learned from."""

from __future__ import annotations

from onlearn.data.bad_rows import Bad, BadRows, DataError
from onlearn.data.batch import Batch, Sentences
from onlearn.data.cache import Cache
from onlearn.data.reader import Reader, load, read, warm
from onlearn.data.registry import reader, readers

__all__ = [
    "Bad",
    "BadRows",
    "Batch",
    "Cache",
    "DataError",
    "Reader",
    "Sentences",
    "format_names",
    "load",
    "read",
    "reader",
    "warm",
]


def format_names() -> list[str]:
    """The formats that can be read."""
    return sorted(readers())
