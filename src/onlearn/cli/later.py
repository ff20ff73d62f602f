"""Modules that others import but a command hardly ever needs.

They would take most of the time that a command needs to start. Those in ``LATER`` are imported when something is asked
of them. pandas, which is optional to scikit-learn and PyArrow, is kept out: no command makes data frames.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from typing import Any

LATER = {"asyncio", "numpy.f2py", "numpy.testing", "scipy.special", "scipy.stats"}


class Postponing:
    """Finds modules of ``LATER`` as ones that are loaded on first use, and says that there is no pandas."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=name)
        if name not in LATER:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def postpone() -> None:
    """Have modules imported later, or not at all, unless they are imported already."""
    sys.meta_path.insert(0, Postponing())


def collect_seldom() -> None:
    """Have cyclic garbage looked for some hundred times less often: importing makes many objects, and little of it."""
    gc.set_threshold(200_000)


def keep_memory() -> None:
    """Have freed memory used again instead of given back: every block of a file takes and frees megabytes.

    Where the C library is not glibc, things stay as they are.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option in (-1, -3):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
            mallopt(option, 1 << 30)
