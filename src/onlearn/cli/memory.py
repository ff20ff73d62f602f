"""How a command has memory managed: by Python, by the C library, by NumPy.

All of it is for the whole process, and so for commands alone: a program that imports onlearn decides for itself.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from typing import Any


def collect_seldom() -> None:
    """Have cyclic garbage looked for some hundred times less often: importing makes many objects, and little of it."""
    gc.set_threshold(200_000)


def keep() -> None:
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
