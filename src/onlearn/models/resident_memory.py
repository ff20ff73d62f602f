"""How much memory the process has, the most that it has had, and how much that grows while something runs.

For growth, resident memory is looked at every few milliseconds, by another thread, for the operating system's own
maximum is that of the whole life of the process. What was freed before and is used again does not count as growth.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from types import TracebackType

EVERY = 0.005  # seconds
FILE = "/proc/self/statm"  # of Linux: sizes in pages, resident memory second
STATUS = "/proc/self/status"  # of Linux: facts by name, among them the peak of resident memory


def resident_bytes() -> int | None:
    """The memory that the process occupies now; None where that cannot be read."""
    try:
        with open(FILE, "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return None


def peak_bytes() -> int | None:
    """The most memory that the process has occupied; None where the system does not say.

    On Linux ``getrusage`` counts what the process that started this one had occupied, too.
    """
    try:
        with open(STATUS, "rb") as file:
            if (found := re.search(rb"^VmHWM:\s+(\d+) kB$", file.read(), re.MULTILINE)) is not None:
                return int(found[1]) * 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


class MemoryGrowth:
    """A context; afterwards ``peak`` is the growth in bytes, or None where it cannot be measured.

    >>> with MemoryGrowth() as growth:
    ...     numbers = bytearray(b"x" * 50_000_000)
    >>> growth.peak is None or growth.peak >= 0
    True
    """

    def __init__(self) -> None:
        self.peak: int | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> MemoryGrowth:
        gc.collect()
        self._before = resident_bytes()
        if self._before is not None:
            self.peak = 0
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._look()
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            self._look()

    def _look(self) -> None:
        now = resident_bytes()
        if now is not None and self._before is not None and self.peak is not None:
            self.peak = max(self.peak, now - self._before)
