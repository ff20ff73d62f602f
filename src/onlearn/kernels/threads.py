"""Threads over tiles: each does the products of a tile and what follows on them, while the tile is in its cache.

The BLAS is kept to one thread meanwhile. Its own threads would wait for the next product in a busy loop, and take the
processor from whatever is done in between.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from onlearn.predicting import cores

Work = TypeVar("Work")

_here = threading.local()


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@cache
def _pool(process: int) -> ThreadPoolExecutor:
    """Threads that stay: a fork does not inherit them, so each process has its own."""
    return ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="onlearn-tiles")


@contextmanager
def single() -> Iterator[None]:
    """While this lasts, the present thread does its work alone."""
    _here.single = True
    try:
        yield
    finally:
        _here.single = False


def alone() -> bool:
    """Whether the present thread is one of several that share the processors out between them."""
    return getattr(_here, "single", False)


def share_out(work: Callable[[list[Work]], Any], pieces: list[Work], worthwhile: bool = True) -> None:
    """Call ``work`` with all the pieces, on all cores if that is worthwhile."""
    workers = min(cores(), len(pieces)) if worthwhile else 1

    def take_turns(rest: Iterator[Work]) -> None:
        with single():
            for piece in rest:
                work([piece])

    if alone():
        work(pieces)
        return
    rest = iter(pieces)  # shared: whoever is free takes the next
    with _blas().limit(limits=1):
        others = [_pool(os.getpid()).submit(take_turns, rest) for _ in range(workers - 1)]
        try:
            take_turns(rest)
        finally:
            for done in others:
                done.result()
