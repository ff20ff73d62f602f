"""The options of reading that a model file holds, by which new files are read as those learned from."""

from __future__ import annotations

import inspect
import reprlib
from typing import Any

from onlearn import data
from onlearn.model_schema import PLAIN, AnyOf, Kind, ListOf, MappingOf

VALUES = ListOf(PLAIN, "values")
READING: Kind = MappingOf(AnyOf(PLAIN, VALUES, MappingOf(AnyOf(PLAIN, VALUES), "values by name")), "options by name")

# A file must not say where to write, nor how much of the machine to use.
OF_READERS = ("cache", "bad", "workers", "source", "block_size")


def check_reading(options: dict[str, Any]) -> None:
    """Refuse options that files cannot be read with, or that are no business of a model file."""
    known = inspect.signature(data.read).parameters.keys() - set(OF_READERS)
    if unknown := options.keys() - known:
        raise ValueError(f"model files have no option of reading {reprlib.repr(min(unknown))}")
