"""Ctrl-C during a long fit: the block at hand is finished, and what was learned is kept."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interruptible(training: Any) -> Iterator[None]:
    """While this lasts, a first Ctrl-C asks the training to stop; a second one is as usual."""
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or before is not signal.default_int_handler:  # somebody else looks after it
        yield
        return
    asked: list[bool] = []

    def ask(*_: Any) -> None:
        asked.append(True)
        signal.signal(signal.SIGINT, before)

    training.interrupted = lambda: bool(asked)
    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        training.interrupted = never


def never() -> bool:
    return False
