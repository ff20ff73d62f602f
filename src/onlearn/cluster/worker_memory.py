"""What a worker process keeps between tasks: rows that it has read, and the state that it computed with last.

A task does not depend on it: what is not here is made again from the same shard and the same messages. So it may be
lost with the process, and the least recently used goes when room is short.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class WorkerMemory:
    """Values by key, up to a number of bytes; the least recently used goes first.

    >>> memory = WorkerMemory()
    >>> memory.get("rows", lambda: (b"some rows", 9), room=10), memory.get("rows", lambda: (b"", 0), room=10)
    (b'some rows', b'some rows')
    >>> memory.get("more", lambda: (b"others", 6), room=10), memory.nbytes
    (b'others', 6)
    """

    def __init__(self) -> None:
        self.nbytes: int = 0
        self._kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Any) -> Any:
        """The value of a key; None if it is not kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Any, value: Any, nbytes: int, room: int) -> None:
        """Keep a value, unless it alone takes more than the room; others make place."""
        with self._lock:
            self._drop(key)
            while self._kept and self.nbytes + nbytes > room:
                self._drop(next(iter(self._kept)))
            if nbytes <= room:
                self._kept[key] = value, nbytes
                self.nbytes += nbytes

    def get(self, key: Any, make: Callable[[], tuple[T, int]], room: int) -> T:
        """The value of a key; it is made, with its number of bytes, if it is not kept."""
        found: Any = self.find(key)
        if found is None:
            found, nbytes = make()
            self.keep(key, found, nbytes, room)
        return found

    def forget(self, run: Any) -> None:
        """Drop what belongs to a run: keys begin with it."""
        with self._lock:
            for key in [key for key in self._kept if isinstance(key, tuple) and key[:1] == (run,)]:
                self._drop(key)

    def _drop(self, key: Any) -> None:
        if key in self._kept:
            self.nbytes -= self._kept.pop(key)[1]


MEMORY = WorkerMemory()  # of this process


def forget(run: Any) -> None:
    """Drop what belongs to a run in this process."""
    MEMORY.forget(run)
