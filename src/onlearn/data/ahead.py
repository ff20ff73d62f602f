"""Work done ahead of who needs it: pieces are read and parsed by threads while earlier ones are learned from."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

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
