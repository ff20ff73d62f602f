"""Work on ranges of rows, shared with helper threads that stay: a tile is done sooner than a thread is started.

Whoever is free takes the next few rows, so a helper whose processor is busy elsewhere is not waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

from onlearn.predicting import cores

WORTHWHILE = 1 << 21  # multiplications below which waking a helper costs more than it saves
PIECES = 8  # for each thread

_helpers: list[ThreadPoolExecutor] = []


def in_threads(work: Callable[[int, int], Any], rows: int, cost: int) -> None:
    """Call ``work(start, stop)`` so that all rows are covered, on all cores if it costs enough."""
    workers = min(cores(), rows, cost // WORTHWHILE)
    if workers <= 1:
        if rows:
            work(0, rows)
        return
    pieces = min(rows, workers * PIECES)
    turns = count()  # ``next`` of it cannot be interrupted

    def share() -> None:
        while (n := next(turns)) < pieces:
            work(rows * n // pieces, rows * (n + 1) // pieces)

    if not _helpers:
        _helpers.append(ThreadPoolExecutor(max(1, cores() - 1), thread_name_prefix="onlearn-kernels"))
    waiting = [_helpers[0].submit(share) for _ in range(workers - 1)]
    try:
        share()
    finally:
        for helper in waiting:
            if not helper.cancel():  # one that has not begun yet finds nothing left to do
                helper.result()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.clear)  # threads do not survive a fork
