"""A digest of everything a compiled function is made of, by which its code is filed.

A function calls others, perhaps from other files, and reads global constants. The digest covers the files of all
functions it reaches and the values of the constants, so code is compiled anew when any of them changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from onlearn.compiler.cache import COMPILER, digest_of


@cache
def digest(function: Any) -> str | None:
    """The digest of a function; None if it is defined in no file, or has values of an enclosing function."""
    reached = _Reached()
    reached.add(function)
    if reached.unknown:
        return None
    parts = [*sorted(digest_of(file) for file in reached.files if file.parent != COMPILER), *sorted(reached.constants)]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


class _Reached:
    """The files and constants that a function reaches by its globals."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.constants: set[str] = set()
        self.unknown = False
        self._seen: set[Any] = set()

    def add(self, function: Any) -> None:
        function = _python_function(function)
        if function in self._seen:
            return
        self._seen.add(function)
        file = Path(function.__code__.co_filename)
        if function.__closure__ or not file.is_file():
            self.unknown = True
            return
        self.files.add(file)
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._add_value(name, function.__globals__[name])

    def _add_value(self, name: str, value: Any) -> None:
        if _python_function(value) is not None:
            self.add(value)
            if (choose := getattr(value, "choose", None)) is not None:  # of functions for each type
                self.add(choose)
        elif isinstance(value, ModuleType):
            if value.__name__.startswith("onlearn.") and value.__file__:
                self.files.add(Path(value.__file__))
        else:
            self.constants.add(f"{name} = {_described(value)}")


def _python_function(value: Any) -> Any:
    """The Python function behind a decorated one, of ours or of Numba's; None if it is none."""
    for attribute in ("__wrapped__", "py_func"):
        inner = value.__dict__.get(attribute) if hasattr(value, "__dict__") else None
        value = inner if isinstance(inner, FunctionType) else value
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _described(value: Any) -> str:
    """A constant in words that are the same in every process and for all versions of Python and NumPy."""
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.item()!r}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest()}"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(_described, value))})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    return type(value).__qualname__
