"""Tiles of kernel values, shared among threads.

Tiles with products in them are each done by one thread, from the product to the kernel value, and the BLAS is kept to
one thread meanwhile: its own threads would wait for the next product in a busy loop, and take the processor from what
is done in between.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from onlearn.threads import cores, over_rows, take_turns

WORTHWHILE = 1 << 21  # multiplications below which waking a helper costs more than it saves

_here = threading.local()


def in_threads(work: Callable[[int, int], Any], rows: int, cost: int) -> None:
    """Call ``work(start, stop)`` so that all rows are covered, on all cores if it costs enough."""
    over_rows(work, rows, 0 if alone() else cost, WORTHWHILE)


def over_tiles(work: Callable[[int], Any], tiles: int, worthwhile: bool) -> None:
    """Call ``work(n)`` for each tile, on all cores if that is worthwhile, with a BLAS of one thread."""

    def single(n: int) -> None:
        _here.alone = True
        try:
            work(n)
        finally:
            _here.alone = False

    if alone():
        for n in range(tiles):
            work(n)
        return
    with _single:
        take_turns(single, tiles, min(cores(), tiles) if worthwhile else 1)


def alone() -> bool:
    """Whether the present thread does a tile, while others do others."""
    return getattr(_here, "alone", False)


class SingleBlas:
    """The BLAS kept to one thread as long as any thread asks for it.

    How many threads it has is one number for the whole process: the first who asks takes it down, the last puts it
    back. These may be different threads, and any of them must be heard: products by several threads are rounded in
    another way.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before: list[tuple[Any, int]] = []  # the libraries that had more threads, and how many

    def __enter__(self) -> None:
        with self.lock:
            if not self.users and not self.before:
                self.before = [(library, n) for library in _blas() if (n := library.get_num_threads()) not in (None, 1)]
                for library, _ in self.before:
                    _set_threads(library, 1)
            self.users += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                for library, n in self.before:
                    _set_threads(library, n)
                self.before = []

    def forget_users(self) -> None:
        """After a fork: threads that asked are not here, and cannot give back the lock either."""
        self.lock, self.users = threading.Lock(), 0


@cache
def _blas() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, count: int) -> None:
    """From 3.8 on threadpoolctl hears nobody but the thread that came first, and does nothing for others, silently."""
    forget = getattr(library, "clear_controlling_thread", None)
    if forget is not None:
        forget(force=True)
    library.set_num_threads(count)
    if forget is not None:
        forget(force=True)


_single = SingleBlas()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_single.forget_users)
