"""Modules that others import but a command hardly ever needs.

They would take most of the time that a command needs to start. Those in ``LATER`` are imported when something is asked
of them. Two are kept out: pandas, which is optional to scikit-learn and PyArrow, for no command makes data frames; and
YAML, which Numba wants for a file of settings, unless there is one.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from contextlib import suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

LATER = {
    "asyncio",
    "narwhals",
    "narwhals.stable",
    "narwhals.stable.v2",
    "numpy.f2py",
    "numpy.testing",
    "scipy.sparse.csgraph",
    "scipy.sparse.linalg",
    "scipy.special",
    "scipy.stats",
    "sklearn.utils.extmath",
}
# Functions that others take from such a module long before they call them, if ever.
TAKEN = {
    ("scipy.sparse.csgraph", "laplacian"),
    ("scipy.sparse.linalg", "cg"),
    ("sklearn.utils.extmath", "_approximate_mode"),
    ("sklearn.utils.extmath", "safe_sqr"),
}
SETTINGS = ".numba_config.yaml"


class Later(ModuleType):
    """A module that runs when it is first asked for something that importing it does not set.

    (importlib's LazyLoader would run a package as soon as one of its modules is imported.)
    """

    _loading = threading.RLock()

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # asked for by whoever imports from it; only packages have it, from the beginning
            raise AttributeError(name)
        if (self.__name__, name) in TAKEN:
            return lambda *given, **named: self._run(name)(*given, **named)
        return self._run(name)

    def _run(self, name: str) -> Any:
        with Later._loading:  # another thread may just be at it
            facts = self.__dict__
            if facts.get("__postponed__"):
                del facts["__postponed__"]  # while it runs, what is asked for is there or not
                try:
                    facts["__spec__"].loader.exec_module(self)
                except BaseException:
                    facts["__postponed__"] = True
                    raise
                self.__class__ = ModuleType  # type: ignore[assignment]
            return ModuleType.__getattribute__(self, name)


class Postponing:
    """Finds modules of ``LATER`` as ones that are loaded on first use, and says that others are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == "pandas" or (name == "yaml" and not os.path.exists(SETTINGS)):
            raise ModuleNotFoundError(f"commands do without {name}", name=name)
        if name not in LATER:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Makes a module and leaves it at that."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Later(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self.loader
        module.__dict__["__postponed__"] = True


def postpone() -> None:
    """Have modules imported later, or not at all, unless they are imported already."""
    sys.meta_path.insert(0, Postponing())


def collect_seldom() -> None:
    """Have cyclic garbage looked for some hundred times less often: importing makes many objects, and little of it."""
    gc.set_threshold(200_000)


def keep_memory() -> None:
    """Have freed memory used again instead of given back: every block of a file takes and frees megabytes.

    And by all threads, for one reads, others parse, and yet another lets go. Where the C library is not glibc, things
    stay as they are.
    """
    with suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        for option, value in ((-1, 1 << 30), (-3, 1 << 30), (-8, 1)):  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX
            mallopt(option, value)


def small_pages() -> None:
    """Have NumPy ask for pages of the usual size from now on, for a run that is over soon.

    Huge ones save time where much memory is used for long. But a virtual machine may get its memory only as it touches
    it: there, to clear huge pages that nobody has used yet takes several times as long as to use small ones again.
    """
    with suppress(ImportError, AttributeError):  # how NumPy is told is its own business
        from numpy._core import multiarray

        multiarray._set_madvise_hugepage(False)  # type: ignore[attr-defined]


def with_room(function: Any, *given: Any) -> Any:
    """Call a function with room for the frames of all calls to come.

    CPython takes memory for frames from the system in pieces of 16 KB and gives it back at once. Where the calls of an
    import go back and forth over the end of a piece, that is thousands of times. The frame of this function is so large
    that its piece has room for all of them.
    """
    return function(*given)


with_room.__code__ = with_room.__code__.replace(co_stacksize=40_000)
