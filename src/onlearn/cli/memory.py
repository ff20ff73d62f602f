"""How a command has memory managed: by Python, by the C library, by NumPy.

All of it is for the whole process, and so for commands alone: a program that imports onlearn decides for itself.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from contextlib import suppress
from typing import Any

LITTLE = 1 << 22  # bytes that are soon touched


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


def touch(size: int) -> None:
    """Have so many bytes ready by the time they are needed, by a thread: while modules are imported, a core is idle.

    The system hands memory out page by page as it is first touched, and clears it then. That takes as long as to parse
    what is put there, and once a run has begun, all cores have other work.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt  # noqa: B018  (elsewhere, memory that is freed may not be kept for others)
        if size >= LITTLE and len(os.sched_getaffinity(0)) > 1:
            threading.Thread(target=_touch, args=(library, size), daemon=True).start()


def _touch(library: Any, size: int) -> None:
    allocate, release = library.malloc, library.free
    allocate.restype, allocate.argtypes, release.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    place = allocate(size)
    if place:
        ctypes.memset(place, 0, size)
        release(place)


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
