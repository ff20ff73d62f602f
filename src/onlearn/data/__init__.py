"""Readers of data files: batches of rows in constant memory, parsed in threads while the caller uses earlier rows."""

from __future__ import annotations

from onlearn.data.bad_rows import Bad, BadRows, DataError
from onlearn.data.batch import Batch, Sentences
from onlearn.data.cache import Cache
from onlearn.data.file_reader import Reader, load, read, warm
from onlearn.data.registry import reader, readers
from onlearn.data.sources import Source

__all__ = [
    "Bad",
    "BadRows",
    "Batch",
    "Cache",
    "DataError",
    "Reader",
    "Sentences",
    "Source",
    "format_names",
    "load",
    "read",
    "reader",
    "warm",
]


def format_names() -> list[str]:
    """The names of the formats that can be read."""
    return sorted(readers())
