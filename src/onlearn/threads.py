"""Threads: work cut into pieces for a pool that lives as long as the process, and work done ahead of its user.

Compiled loops release Python's lock, so threads run them at the same time. The pool stays, since many tasks take less
time than starting a thread. A thread that is free takes the next piece, so nobody waits for one whose processor is
busy, and the thread that owns the task takes pieces, too.
"""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

PIECES = 8  # for each thread
WORTHWHILE = 1 << 17  # multiplications below which a second thread costs more than it saves

_pool: list[ThreadPoolExecutor] = []  # one, once it is needed

if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.clear)


_limit = threading.local()  # the most threads for work that the present thread shares out, if it is limited


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Within, the present thread takes this process for one with so few processors: others have work of their own.

    >>> with at_most(1):
    ...     cores()
    1
    """
    before = getattr(_limit, "most", None)
    _limit.most = count
    try:
        yield
    finally:
        _limit.most = before


def cores() -> int:
    """The number of processors that this process, and the present thread, may use."""
    found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = getattr(_limit, "most", None)
    return found if most is None else min(found, most)


def over_rows(work: Callable[[int, int], R], rows: int, cost: int, worthwhile: int = WORTHWHILE) -> list[R]:
    """Call ``work(start, stop)`` until all rows are done, and return the results in the order of the rows.

    ``cost`` is that of all rows; a thread is used for every ``worthwhile`` of it.
    """
    workers = min(cores(), rows, max(1, cost // worthwhile))
    if workers <= 1:
        return [work(0, rows)] if rows else []
    pieces = min(rows, workers * PIECES)
    results: list[Any] = [None] * pieces

    def piece(n: int) -> None:
        results[n] = work(rows * n // pieces, rows * (n + 1) // pieces)

    over_pieces(piece, pieces, workers)
    return results


def over_pieces(work: Callable[[int], Any], pieces: int, workers: int) -> None:
    """Call ``work(n)`` for each piece in that many threads. After an error no further piece is started."""
    turns = count()  # ``next`` of it is one step for all threads
    failed: list[BaseException] = []

    def take_pieces() -> None:
        try:
            while not failed and (n := next(turns)) < pieces:
                work(n)
        except BaseException as error:  # raised below, in the thread that owns the task, once all have stopped
            failed.append(error)

    if workers > 1 and not _pool:
        _pool.append(ThreadPoolExecutor(max(1, cores() - 1), "onlearn"))
    submitted: list[Future[None]] = []
    with suppress(RuntimeError):  # at the end of Python the pool accepts nothing more: this thread does all pieces
        submitted = [_pool[0].submit(take_pieces) for _ in range(workers - 1)]
    take_pieces()
    for future in submitted:
        if not future.cancel():  # one that has not begun has nothing left to do
            future.result()
    if failed:
        raise failed[0]


def ahead(pieces: Iterable[T], work: Callable[[T], R], workers: int) -> Iterator[R]:
    """``work(piece)`` of each piece, in order, computed before it is asked for.

    One thread reads the pieces and ``workers`` others do the work. At most a few results wait, so memory does not grow
    when their user is slow. Without workers each result is computed when it is asked for.
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
        except BaseException as error:  # raised where the results are used
            failed: Future[Any] = Future()
            failed.set_exception(error)
            put(failed)

    # This thread is not joined at the end: it may wait for standard input forever.
    threading.Thread(target=read, name="onlearn-read", daemon=True).start()
    try:
        while (future := waiting.get()) is not None:
            yield future.result()
    finally:
        stopped.set()
        pool.shutdown(wait=False, cancel_futures=True)
