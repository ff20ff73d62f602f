"""Modules that others import but a command hardly ever needs.

scipy.stats and pandas take most of the time that a command needs to start. The first, which scikit-learn imports, is
stood in for by an empty module that becomes the real one when something is asked of it. The second is optional to
scikit-learn and PyArrow, and kept out: no command makes data frames.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.machinery
import sys
from contextlib import suppress
from types import ModuleType
from typing import Any


class Later(ModuleType):
    """Stands in for a module until one of its names is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name in ("__path__", "__file__", "__wrapped__"):  # asked by those who look over all modules
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        real = importlib.import_module(self.__name__)
        self.__dict__.update(real.__dict__)
        return getattr(real, name)


class KeepOut:
    """Says that there is no pandas."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=name)


def postpone() -> None:
    """Stand in for the one and keep out the other, unless they are imported already."""
    sys.meta_path.insert(0, KeepOut())
    if "scipy.stats" not in sys.modules:
        module = Later("scipy.stats")
        module.__spec__ = importlib.machinery.ModuleSpec("scipy.stats", None)
        sys.modules["scipy.stats"] = module


def keep_memory() -> None:
    """Have freed memory used again instead of given back: every block of a file takes and frees megabytes.

    Where the C library is not glibc, things stay as they are.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            mallopt(option, 1 << 30)
