"""The choice between two ways to compile, and an account of the time that compiling takes.

``object_code`` with ``emit`` makes object files that run without Numba, so a process that finds everything compiled
starts sooner. It relies on parts of Numba and llvmlite that are not public. ``numba_backend`` uses the public ones
alone. It serves wherever the other does not: on platforms where that has not been tried, and whenever it fails. The
failure is logged once in a process and is nobody's problem otherwise.

``ONLEARN_BACKEND=numba`` or ``ONLEARN_BACKEND=object_code`` forces one of them; the second then fails aloud.
"""

from __future__ import annotations

import logging
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import perf_counter
from typing import Any, TypeVar

Result = TypeVar("Result")
BACKENDS = ("numba", "object_code")

log = logging.getLogger("onlearn.compiler")
lock = threading.RLock()  # threads that share out rows meet new code at the same moment
made: list[str] = []  # the names of functions that this process compiled because no process before had


def forced() -> str | None:
    """The backend that the environment asks for."""
    name = os.environ.get("ONLEARN_BACKEND") or None
    if name is not None and name not in BACKENDS:
        raise ValueError(f"ONLEARN_BACKEND must be one of {', '.join(BACKENDS)}, not {name!r}")
    return name


@cache
def is_tried() -> bool:
    """Whether object code is known to work on this platform.

    The reader of symbols knows 64-bit ELF files. The linker of other processors ends the process if code lies too far
    from a function it calls. So a platform is added here when the tests of ``tests/compiler`` have passed on it.
    """
    here = sys.platform, platform.machine().lower(), sys.byteorder, sys.implementation.name
    found = here in {("linux", "x86_64", "little", "cpython"), ("linux", "amd64", "little", "cpython")}
    if not found:
        log.info("compiling with Numba's public interface: object code has not been tried on %s", " ".join(here))
    return found


def attempt(fast: Callable[[], Result], portable: Callable[[], Result], silent: bool = False) -> Result:
    """What the fast backend returns, or if that fails, what the portable one does."""
    choice = forced()
    if choice == "object_code" and not silent:
        return fast()
    if choice == "numba" or _state.broken or not is_tried():
        return portable()
    try:
        return fast()
    except (OverflowError, MemoryError):  # the caller's, not the compiler's
        raise
    except Exception as error:
        result = portable()  # what cannot be compiled at all is an error of its source, and raised here
        if not silent:
            _report(error)
        return result


class _State:
    """What this process knows about its fast backend."""

    def __init__(self) -> None:
        self.reported = False
        self.broken = False  # for every function, not just for one that it cannot compile


_state = _State()


def _report(error: Exception) -> None:
    if isinstance(error, (ImportError, AttributeError)):  # a private part is missing, or is another one
        _state.broken = True
    if not _state.reported:
        _state.reported = True
        first = (str(error).strip() or "no reason given").splitlines()[0]
        log.warning(
            "object code cannot be used, so Numba compiles in the process (%s: %s)", type(error).__name__, first
        )


# ---------------------------------------------------------------------------------------------------- time


class _Clock:
    """The time spent compiling so far, and who wants to know before more is spent."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.depth = 0
        self.listener: Callable[[], Any] | None = None


_clock = _Clock()


def compile_seconds() -> float:
    """How long this process has waited for the compiler so far."""
    return _clock.seconds


def before_compiling(listener: Callable[[], Any] | None) -> None:
    """Have a function called once, before the process first waits for code to be compiled that will be kept."""
    _clock.listener = listener


@contextmanager
def compiling(kept: bool) -> Iterator[None]:
    """Count the time that passes in here."""
    with lock:
        if kept and _clock.listener is not None:
            listener, _clock.listener = _clock.listener, None
            listener()
        start = perf_counter()
        _clock.depth += 1
        try:
            yield
        finally:
            _clock.depth -= 1
            if not _clock.depth:  # what is compiled for something that is being compiled is counted with it
                _clock.seconds += perf_counter() - start
