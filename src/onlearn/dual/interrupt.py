"""Ctrl-C during a long fit: the block at hand is finished, and what was learned is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onlearn.atomic import first_ctrl_c


@contextmanager
def interruptible(training: Any) -> Iterator[None]:
    """While this lasts, a first Ctrl-C asks the training to stop; a second one is as usual."""
    with first_ctrl_c() as pressed:
        training.interrupted = pressed
        try:
            yield
        finally:
            training.interrupted = never


def never() -> bool:
    return False
