"""Pipes, read by a thread, so that what has been written can be taken without waiting for more."""

from __future__ import annotations

import os
import stat
import threading
from collections import deque
from typing import Any

PIPE_READ = 1 << 16  # bytes read from a pipe at a time
PIPE_BUFFER = 8 << 20  # bytes of a pipe that wait in memory


def is_pipe(file: Any) -> bool:
    """Whether a file is a pipe, a terminal or a socket, to which more may be written."""
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # a file object in memory
        return False


class Pipe:
    """A pipe that a thread reads into memory, so that ``readinto`` gives all that has been written so far."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._parts: deque[bytes] = deque()
        self._size = self._taken = 0
        self._error: BaseException | None = None
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._pump, name="onlearn-pipe", daemon=True).start()

    def _pump(self) -> None:
        read = getattr(self._file, "read1", self._file.read)  # does not wait for more bytes
        while True:
            part, error = b"", None
            try:
                part = read(PIPE_READ)
            except BaseException as failed:  # raised again by ``readinto``
                error = failed
            with self._changed:
                self._changed.wait_for(lambda: self._size < PIPE_BUFFER)
                self._size += len(part)
                self._parts.append(part)
                self._error, self._ended = error, not part
                self._changed.notify_all()
            if not part:
                return

    def readinto(self, view: memoryview) -> int:
        """Wait for bytes, and take as many as fit; 0 at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._size or self._ended)
            if not self._size and self._error is not None:
                raise self._error
            done = 0
            while self._size and done < len(view):
                part = self._parts.popleft()
                count = min(len(part), len(view) - done)
                view[done : done + count] = part[:count]
                if count < len(part):
                    self._parts.appendleft(part[count:])
                done += count
                self._size -= count
            self._taken += done
            self._changed.notify_all()
            return done

    def tell(self) -> int:
        return self._taken

    def close(self) -> None:
        """Do nothing: the thread may still wait for the writer."""
