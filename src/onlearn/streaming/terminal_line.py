"""One line in the terminal that is rewritten in place."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from onlearn.inert_text import escaped

INTERVAL = 0.1  # seconds


class TerminalLine:
    """Shows how things stand on stderr, ten times a second at most; nothing if it is not shown."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self._due = 0.0
        self._written = False

    def update(self, text: Callable[[], str]) -> None:
        """Show the text, if it is time."""
        if self.shown and time.monotonic() >= self._due:
            self.write(text())

    def write(self, text: str) -> None:
        """Show the text now."""
        if self.shown:
            width = shutil.get_terminal_size().columns - 1
            shown = escaped(text, kept="")
            sys.stderr.write(f"\r\x1b[K{shown[:width]}")
            sys.stderr.flush()
            self._due, self._written = time.monotonic() + INTERVAL, True

    def close(self) -> None:
        """End the line, so that what follows begins on the next."""
        if self._written:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._written = False


def is_terminal() -> bool:
    """Whether somebody looks at stderr."""
    return sys.stderr is not None and sys.stderr.isatty()
