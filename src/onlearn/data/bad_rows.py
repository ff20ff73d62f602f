"""Rows that cannot be read: their number, places and reasons, and the limit on their number."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, NamedTuple

from onlearn.inert_text import escaped

SHOWN = 5
TOLD = 1000  # bad rows of a piece of a file that are told one by one
EARLY_CHECK = 1000  # rows after which too many bad rows raise before the end of the data


class DataError(ValueError):
    """Data that cannot be read; the message is one sentence for the owner of the file."""


class Bad(NamedTuple):
    """One bad row: its line and column (both from 1; column 0 is the whole row), the reason, and its bytes.

    It may stand for the further bad ``rows`` of a piece of a file, too: with the place of the first of them, and the
    bytes of all, a newline between each two.
    """

    line: int
    column: int
    reason: str
    raw: bytes = b""
    rows: int = 1


class PieceBad:
    """Gathers the bad rows of a piece of a file: those after the first ``TOLD`` become one ``Bad``.

    So a piece needs little more memory than its bytes, even if all of its rows are bad.

    >>> found = PieceBad(Bad(line, 0, "it is too short", b"x") for line in range(3000))
    >>> len(found.all()), found.all()[-1].line, found.all()[-1].rows
    (1001, 1000, 2000)
    """

    def __init__(self, bad: Iterable[Bad] = ()) -> None:
        self._first: list[Bad] = []
        self._next: Bad | None = None  # the first of the further ones
        self._rows = 0
        self._raw = bytearray()
        self.extend(bad)

    def append(self, bad: Bad) -> None:
        """Add a bad row; rows are added in the order of their lines."""
        if len(self._first) < TOLD:
            self._first.append(bad)
            return
        self._next = self._next or bad
        self._rows += bad.rows
        self._raw += bad.raw.rstrip(b"\r\n") + b"\n"

    def extend(self, bad: Iterable[Bad]) -> None:
        """Add bad rows."""
        for one in bad:
            self.append(one)

    def all(self) -> list[Bad]:
        """All bad rows."""
        if self._next is None:
            return list(self._first)
        return [*self._first, self._next._replace(raw=bytes(self._raw[:-1]), rows=self._rows)]


class BadRows:
    """Collects the bad rows of a run.

    ``limit`` is the share of all rows that may be bad; ``strict`` allows none. The bytes of bad rows are written to
    ``path``, if given.

    >>> bad = BadRows(limit=0.5)
    >>> bad.seen(3)
    >>> bad.add("a.svm", Bad(2, 5, "the value is not a number"))
    >>> bad.check()
    >>> print(bad.summary())
    1 of 4 rows could not be read:
      a.svm, line 2, column 5: the value is not a number
    """

    def __init__(
        self, path: str | os.PathLike[str] | None = None, limit: float = 0.01, strict: bool = False, shown: int = SHOWN
    ) -> None:
        if not 0 <= limit <= 1:
            raise ValueError(f"limit is a part of all rows, from 0 to 1, not {limit}")
        self.path: Path | None = None if path is None else Path(path)
        self.limit: float = limit
        self.strict: bool = strict
        self.shown: int = shown
        self.count: int = 0
        self.rows: int = 0  # good and bad
        self.examples: list[tuple[str, Bad]] = []
        self._file: IO[bytes] | None = None
        self._begun = False  # whether the file of bad rows is of this run

    def seen(self, good: int) -> None:
        """Count some good rows."""
        self.rows += good

    def add(self, file: str, bad: Bad) -> None:
        """Record a bad row."""
        self.count += bad.rows
        self.rows += bad.rows
        if len(self.examples) < self.shown:
            self.examples.append((file, bad))
        if self.path is not None:
            self._write(bad.raw)
        if self.strict:
            raise DataError(f"{place(file, bad)}: {bad.reason}")
        if self.rows >= EARLY_CHECK and self.count > 2 * self.limit * self.rows:
            self._too_many()

    def untold(self, count: int) -> None:
        """Count bad rows that are only counted, as those of a part of the data beyond the first few."""
        self.count += count
        self.rows += count

    def reject(self, file: str, bad: Bad) -> None:
        """Record a row that was counted as a good one: it could be read, but not be used."""
        self.rows -= 1
        self.add(file, bad)

    def check(self) -> None:
        """Raise if there are more bad rows than allowed; called at the end of the data."""
        if self._file is not None:
            self._file.flush()
        if self.count > self.limit * self.rows:
            self._too_many()

    def summary(self) -> str:
        """The number of bad rows, and the first few with place and reason."""
        if not self.count:
            return f"all {self.rows} rows could be read"
        lines = [f"{self.count} of {self.rows} rows could not be read:"]
        lines += [escaped(f"  {place(file, bad)}: {bad.reason}", kept="") for file, bad in self.examples]
        if self.count > len(self.examples):
            lines.append(f"  and {self.count - len(self.examples)} more")
        return "\n".join(lines)

    def first(self) -> str:
        """The first bad row, with place and reason, as the end of a sentence."""
        file, bad = self.examples[0] if self.examples else ("", Bad(0, 0, ""))
        return f"the first: {place(file, bad)}: {bad.reason}"

    def close(self) -> None:
        """Close the file of bad rows."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, raw: bytes) -> None:
        try:
            if self._file is None:
                mode = "ab" if self._begun else "wb"
                self._file = open(self.path or os.devnull, mode)  # noqa: SIM115 (open until the run ends)
                self._begun = True
            self._file.write(raw.rstrip(b"\r\n") + b"\n")
        except OSError as error:
            raise DataError(f"cannot write bad rows to {self.path}: {error.strerror or error}") from error

    def _too_many(self) -> None:
        if self._file is not None:
            self._file.flush()
        raise DataError(
            f"{self.count} of {self.rows} rows cannot be read, more than {100 * self.limit:g} % are too many; "
            f"{self.first()}"
        )


def place(file: str, bad: Bad) -> str:
    """The place of a bad row, for messages."""
    column = f", column {bad.column}" if bad.column else ""
    return f"{file}, line {bad.line}{column}"
