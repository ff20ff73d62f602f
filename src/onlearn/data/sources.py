"""Sources of data: paths, patterns and standard input as streams of bytes, and these as blocks of whole lines."""

from __future__ import annotations

import glob
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onlearn.data.bad_rows import DataError

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
NOT_TEXT = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # without BZh, with which a text may begin
STDIN = "-"
NEW_LINE = b"\n"
PIPE_READ = 1 << 16  # bytes read from a pipe at a time
PIPE_BUFFER = 8 << 20  # bytes of a pipe that wait in memory
SIZE = 4 << 20  # of a block
PADDING = 64  # newlines after the content of a block, which parsers may read without a check
NEWLINE = 10
BOM = b"\xef\xbb\xbf"


class Source(NamedTuple):
    """One file, or standard input."""

    name: str  # in messages
    path: Path | None  # None: standard input
    compression: str | None

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions, last one first, without the compression: (".train", ".txt") for ``a.txt.train.gz``."""
        if self.path is None:
            return ()
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return tuple(reversed(suffixes))

    @property
    def size(self) -> int | None:
        """The bytes of the file; None if it is not a regular file."""
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None


def sources(named: Any) -> list[Source]:
    """The files that a path, a pattern, ``"-"``, or a list of those stands for."""
    if isinstance(named, (str, os.PathLike)):
        named = [named]
    if not isinstance(named, Iterable):
        raise TypeError(f"data is named by a path, a pattern, '-' or a list of those, not {type(named).__name__}")
    found = [source for one in named for source in _sources(os.fspath(one))]
    if not found:
        raise DataError("no file is named")
    if sum(source.path is None for source in found) > 1:
        raise DataError("standard input ('-') can be read only once")
    return found


def _sources(name: str) -> list[Source]:
    if name == STDIN:
        return [Source("standard input", None, None)]
    path = Path(name)
    if not path.exists() and glob.has_magic(name):
        matches = sorted(match for match in glob.glob(name, recursive=True) if os.path.isfile(match))
        if not matches:
            raise DataError(f"no file matches {name}")
        return [_file(Path(match)) for match in matches]
    return [_file(path)]


def _file(path: Path) -> Source:
    if path.is_dir():
        raise DataError(f"{path} is a directory: name a file in it, or a pattern such as {path / '*'}")
    if not path.exists():
        raise DataError(f"{path} does not exist")
    if not os.access(path, os.R_OK):
        raise DataError(f"{path} cannot be read: permission denied")
    return Source(str(path), path, COMPRESSIONS.get(path.suffix.lower()))


def state_of(path: Path) -> list[Any]:
    """The name, size and time of a file, which change if the file does."""
    try:
        found = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return [path.name, found.st_size, found.st_mtime_ns]


class Stream:
    """The bytes of a source, decompressed. ``head`` gives the next bytes without consuming them.

    With ``live``, ``head`` and ``fill`` do not wait for a pipe to deliver more: they return what has been written, if
    it is at least one line.
    """

    def __init__(self, source: Source, live: bool = False) -> None:
        self.source: Source = source
        self._ended = False
        self._head = b""
        self._raw: Any = None
        self._reached = 0
        try:
            self._file = self._open()
            self._size = source.size or 0
            self._live = live and self._raw is None and is_pipe(self._file)
            if self._live:
                self._file = Pipe(self._file)
        except OSError as error:
            raise DataError(f"{source.name} cannot be read: {error.strerror or error}") from error

    def _open(self) -> Any:
        compression = self.source.compression
        if self.source.path is None:
            if sys.stdin is None:  # the shell has closed it (<&-)
                raise DataError("standard input is closed, so nothing can be read from it")
            raw: Any = sys.stdin.buffer
            start = raw.peek(4)[:4] if hasattr(raw, "peek") else b""
            compression = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
        elif compression is None:
            return open(self.source.path, "rb", buffering=0)
        if compression is None:
            return raw
        import pyarrow as pa

        self._raw = pa.PythonFile(raw, "r") if self.source.path is None else pa.OSFile(str(self.source.path))
        return pa.CompressedInputStream(self._raw, compression)

    @property
    def ended(self) -> bool:
        """Whether all bytes have been consumed."""
        return self._ended and not self._head

    def head(self, size: int) -> bytes:
        """The next bytes, at most ``size``, without consuming them. A live stream may give fewer, in whole lines."""
        while len(self._head) < size and not (self._live and NEW_LINE in self._head):
            buffer = bytearray(size - len(self._head))
            count = self._read(memoryview(buffer))
            if not count:
                break
            self._head += bytes(buffer[:count])
        if self._live and len(self._head) < size and not self._ended:
            return self._head[: self._head.rfind(NEW_LINE) + 1]
        return self._head[:size]

    def refuse_compressed(self) -> None:
        """Refuse a compressed file whose name does not say so."""
        path = self.source.path
        if path is None or self.source.compression is not None:
            return
        for magic in NOT_TEXT:
            if self.head(len(magic)) == magic:
                end = next(end for end, kind in COMPRESSIONS.items() if kind == MAGIC[magic])
                raise DataError(f"{path} is compressed by {MAGIC[magic]}: name it {path.name}{end}")

    def skip(self, count: int) -> None:
        """Consume bytes that ``head`` has given."""
        self._head = self._head[count:]

    def fill(self, buffer: np.ndarray) -> int:
        """Fill an array; returns the number of bytes, less than its length at the end or for a live stream."""
        done = min(len(self._head), len(buffer))
        if done:
            buffer[:done] = np.frombuffer(self._head, dtype=np.uint8, count=done)
            self._head = self._head[done:]
        view = memoryview(buffer)  # type: ignore[arg-type]
        while done < len(buffer) and not (self._live and done):
            count = self._read(view[done:])
            if not count:
                break
            done += count
        return done

    def all(self) -> bytes:
        """All remaining bytes, for formats that need to seek."""
        self._live = False
        parts = []
        while part := self.head(1 << 24):
            parts.append(part)
            self.skip(len(part))
        return b"".join(parts)

    def _read(self, view: memoryview) -> int:
        try:
            count = self._file.readinto(view) or 0
            self._ended = not count
            return count
        except (OSError, EOFError) as error:
            what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if self._raw is not None:
                what = f"the compressed data is damaged or cut short ({what.strip().splitlines()[0]})"
            raise DataError(f"{self.source.name} cannot be read: {what}") from error

    @property
    def position(self) -> int:
        """The bytes of the file that have been read, before decompression."""
        raw = self._raw if self._raw is not None else self._file
        try:
            return max(int(raw.tell()), self._reached)
        except (OSError, ValueError):
            return self._reached

    def set_progress(self, part: float) -> None:
        """Set the share of the file that has been read, for a format that reads the file itself."""
        self._reached = int(part * self._size)

    def refuse_truncated(self, error: Exception | None = None) -> None:
        """Raise if the file has become shorter while it was read; called at the end or after an error."""
        if self.source.compression is None and self.position < self._size:
            size = self.source.size
            if size is not None and size < self._size:
                raise DataError(f"{self.source.name} was cut short while it was read") from error

    def close(self) -> None:
        """Close the file."""
        if self.source.path is not None:
            self._file.close()


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


class Block(NamedTuple):
    """Whole lines of a text, with padding."""

    text: np.ndarray  # uint8, followed by PADDING newlines
    stop: int  # the end of the content, whose last byte is a newline


def last_line_end(text: np.ndarray, stop: int, final: bool) -> int:
    """The end of the last complete line; 0 if there is none."""
    window = 1 << 12
    while stop > 0:
        start = max(0, stop - window)
        found = np.flatnonzero(text[start:stop] == NEWLINE)
        if found.size:
            return start + int(found[-1]) + 1
        stop, window = start, window * 4
    return 0


def blocks(
    stream: Stream, size: int = SIZE, cut: Callable[[np.ndarray, int, bool], int] = last_line_end
) -> Iterator[Block]:
    """Cut a stream into blocks of about ``size`` bytes that end with a line; a longer line makes a longer block.

    Only the bytes after the last line end are copied. ``cut`` gives the place where a block ends.
    """
    check_encoding(stream)
    rest = np.empty(0, dtype=np.uint8)
    while True:
        room = max(size, 2 * len(rest))
        text = np.empty(room + PADDING, dtype=np.uint8)
        text[: len(rest)] = rest
        stop = len(rest) + stream.fill(text[len(rest) : room])
        final = stream.ended
        if final and stop and text[stop - 1] != NEWLINE:
            text[stop] = NEWLINE  # in the padding
            stop += 1
        end = cut(text, stop, final)
        if final:
            end = stop
        rest = text[end:stop].copy()
        if end:
            text[end : end + PADDING] = NEWLINE
            yield Block(text[: end + PADDING], end)
        if final:
            return


def check_encoding(stream: Stream) -> None:
    """Skip a byte order mark, and refuse UTF-16."""
    start = stream.head(4)
    if start.startswith(BOM):
        stream.skip(len(BOM))
    elif start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{stream.source.name} is UTF-16: convert it to UTF-8")


def first_lines(stream: Stream, size: int = 1 << 16) -> list[bytes]:
    """The first complete lines, without consuming them; at least one, however long it is."""
    while True:
        head = stream.head(size).removeprefix(BOM)
        if b"\n" in head or len(head) < size - len(BOM):
            break
        size *= 4
    lines = head.splitlines()
    return lines[:-1] if len(lines) > 1 and len(head) >= size - len(BOM) else lines


def raw_line(text: Any, start: int, stop: int) -> bytes:
    """The line that begins at ``start``."""
    end = int(start)
    window = 256
    while end < stop:
        found = np.flatnonzero(text[end : min(end + window, stop)] == NEWLINE)
        if found.size:
            return text[start : end + int(found[0])].tobytes()
        end, window = end + window, window * 4
    return text[start:stop].tobytes()
