"""What a worker process keeps between tasks: rows that it has read, and the state that it computed with last.

A task does not depend on it: what is not here is made again from the same shard and the same messages. So it may be
lost with the process. When room is short, what other runs have left goes first. Of the rows of a run those stay that
came first: every round takes the shards in about the same order, and to drop the least recently used would be to drop
each just before it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class WorkerMemory:
    """Values by run and name, up to a number of bytes.

    >>> memory = WorkerMemory()
    >>> memory.get(("run", 0), lambda: (b"some rows", 9), room=10)
    b'some rows'
    >>> memory.get(("run", 1), lambda: (b"others", 6), room=10), memory.find(("run", 1))
    (b'others', None)
    """

    def __init__(self) -> None:
        self.nbytes: int = 0
        self._kept: dict[tuple[Any, ...], tuple[Any, int]] = {}
        self._lock = threading.Lock()

    def find(self, key: tuple[Any, ...]) -> Any:
        """The value of a key; None if it is not kept."""
        with self._lock:
            return self._kept[key][0] if key in self._kept else None

    def keep(self, key: tuple[Any, ...], value: Any, nbytes: int, room: int, first: bool = False) -> None:
        """Keep a value if there is room for it; others of the same run make place for what comes ``first``."""
        with self._lock:
            self._drop(key)
            others = [one for one in self._kept if one[0] != key[0]]
            mine = [one for one in self._kept if one[0] == key[0]] if first else []
            for one in [*others, *reversed(mine)]:
                if self.nbytes + nbytes <= room:
                    break
                self._drop(one)
            if self.nbytes + nbytes <= room:
                self._kept[key] = value, nbytes
                self.nbytes += nbytes

    def get(self, key: tuple[Any, ...], make: Callable[[], tuple[T, int]], room: int) -> T:
        """The value of a key; it is made, with its number of bytes, if it is not kept."""
        found: Any = self.find(key)
        if found is None:
            found, nbytes = make()
            self.keep(key, found, nbytes, room)
        return found

    def forget(self, run: Any) -> None:
        """Drop what belongs to a run."""
        with self._lock:
            for key in [key for key in self._kept if key[0] == run]:
                self._drop(key)

    def _drop(self, key: tuple[Any, ...]) -> None:
        if key in self._kept:
            self.nbytes -= self._kept.pop(key)[1]


MEMORY = WorkerMemory()  # of this process


def forget(run: Any) -> None:
    """Drop what belongs to a run in this process."""
    MEMORY.forget(run)
