"""Work shared with helper threads that stay: many a task is done sooner than a thread is started.

Compiled loops hold no lock. Whoever is free takes the next piece, so a helper whose processor is busy elsewhere is not
waited for; and the thread that has the work takes pieces, too, while the helpers wake up.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any, TypeVar

PIECES = 8  # for each thread
WORTHWHILE = 1 << 17  # multiplications below which a second thread costs more than it saves

_helpers: list[ThreadPoolExecutor] = []

if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_helpers.clear)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[int, int], Any], rows: int, cost: int, worthwhile: int = WORTHWHILE) -> list[Any]:
    """Call ``work(start, stop)`` so that all rows are covered, in threads if it costs enough; what it returned."""
    workers = min(cores(), rows, max(1, cost // worthwhile))
    if workers <= 1:
        return [work(0, rows)] if rows else []
    pieces = min(rows, workers * PIECES)
    results: list[Any] = [None] * pieces

    def piece(n: int) -> None:
        results[n] = work(rows * n // pieces, rows * (n + 1) // pieces)

    take_turns(piece, pieces, workers)
    return results


def take_turns(work: Callable[[int], Any], pieces: int, workers: int) -> None:
    """Call ``work(n)`` for each piece, in so many threads. When one of them fails, no further piece is started."""
    turns = count()  # ``next`` of it cannot be interrupted
    failed: list[BaseException] = []

    def share() -> None:
        try:
            while not failed and (n := next(turns)) < pieces:
                work(n)
        except BaseException as error:  # told by the thread that has the work, when nobody is at it any more
            failed.append(error)

    if workers > 1 and not _helpers:
        _helpers.append(ThreadPoolExecutor(max(1, cores() - 1), "onlearn"))
    waiting = []
    with suppress(RuntimeError):  # Python is about to end, and begins nothing in other threads: this one does it all
        waiting = [_helpers[0].submit(share) for _ in range(workers - 1)]
    share()
    for helper in waiting:
        if not helper.cancel():  # one that has not begun yet finds nothing left to do
            helper.result()
    if failed:
        raise failed[0]


# ----------------------------------------------------------------------------------------------------
# Work done ahead of who needs it: pieces are read and parsed by threads while earlier ones are learned from.


T = TypeVar("T")
R = TypeVar("R")


def ahead(pieces: Iterable[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """``work(piece)`` of each piece, in order. A thread reads the pieces, ``workers`` others do the work.

    No more than a few pieces are in flight, so memory does not grow when the taker is slow. With no workers, all is
    done when it is asked for.
    """
    if workers < 1:
        for piece in pieces:
            yield work(piece)
        return
    waiting: queue.Queue[Future[Any] | None] = queue.Queue(workers + 1)
    stopped = threading.Event()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="onlearn-parse")

    def put(future: Future[Any] | None) -> None:
        while not stopped.is_set():
            try:
                return waiting.put(future, timeout=0.1)
            except queue.Full:
                continue

    def read() -> None:
        try:
            for piece in pieces:
                if stopped.is_set():
                    return
                put(pool.submit(work, piece))
            put(None)
        except BaseException as error:  # whatever it is, it belongs to the taker
            failed: Future[Any] = Future()
            failed.set_exception(error)
            put(failed)

    # Not joined at the end: it may wait for standard input for ever.
    threading.Thread(target=read, name="onlearn-read", daemon=True).start()
    try:
        while (future := waiting.get()) is not None:
            yield future.result()
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
