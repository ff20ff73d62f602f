"""Parts of files: a range of bytes, or some of the groups of rows of a columnar file."""

from __future__ import annotations

from typing import Any, NamedTuple


class Span(NamedTuple):
    """Some bytes of a text file, which begin and end with a row."""

    start: int
    stop: int
    beginning: Any = None  # what the first rows of the file say about all of them, if its format needs that
    lines_before: int = 0  # added to the numbers of lines; see ``shards.numbered``

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.stop - self.start


class Groups(NamedTuple):
    """Some row groups of a Parquet file, or some record batches of an Arrow file."""

    start: int
    stop: int
    size: int  # the bytes of them, about
    lines_before: int = 0


Part = Span | Groups


class FileRange:
    """Some bytes of an open file, read as if they were a file."""

    def __init__(self, file: Any, start: int, stop: int) -> None:
        self._file = file
        self._size, self._taken = stop - start, 0
        file.seek(start)

    def readinto(self, view: memoryview) -> int:
        """Read as many bytes as the file gives at once; 0 at the end of the range or of the file."""
        count = self._file.readinto(view[: self._size - self._taken]) or 0
        self._taken += count
        return int(count)

    def tell(self) -> int:
        """The number of bytes that have been read."""
        return self._taken

    def close(self) -> None:
        """Close the file."""
        self._file.close()
