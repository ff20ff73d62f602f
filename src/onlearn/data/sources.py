"""From what a user names to streams of bytes: paths, patterns, standard input; compressed or not."""

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
NOT_TEXT = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # of those; BZh may be how a name begins
STDIN = "-"
NEW_LINE = b"\n"
PIPE_READ = 1 << 16  # bytes read from a pipe at a time
PIPE_BUFFER = 8 << 20  # bytes of a pipe that are kept until they are wanted


class Source(NamedTuple):
    """One file, or standard input."""

    name: str  # as errors call it
    path: Path | None  # None: standard input
    compression: str | None

    @property
    def extensions(self) -> tuple[str, ...]:
        """What the name ends with, without the compression: of ``a.txt.train.gz`` it is (".train", ".txt")."""
        if self.path is None:
            return ()
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return tuple(reversed(suffixes))

    @property
    def size(self) -> int | None:
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None


def sources(named: Any) -> list[Source]:
    """All files that are meant by a path, a pattern, ``"-"``, or a list of those."""
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
    """What tells whether a file has changed."""
    try:
        found = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return [path.name, found.st_size, found.st_mtime_ns]


class Stream:
    """The bytes of a source, decompressed. ``head`` looks ahead without taking.

    ``live`` does not wait for more than there is: where the source is a pipe, ``head`` and ``fill`` give what has been
    written so far, if that is at least one line. ``ended`` says whether that was all.
    """

    def __init__(self, source: Source, live: bool = False) -> None:
        self.source = source
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
            if sys.stdin is None:  # so Python has it where the shell was told to close it (<&-)
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
        """Whether all bytes have been taken."""
        return self._ended and not self._head

    def head(self, size: int) -> bytes:
        """The next bytes, up to ``size`` of them, which stay to be read. Live, they may be fewer, but whole lines."""
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
        """A file that is compressed must be named so."""
        path = self.source.path
        if path is None or self.source.compression is not None:
            return
        for magic in NOT_TEXT:
            if self.head(len(magic)) == magic:
                end = next(end for end, kind in COMPRESSIONS.items() if kind == MAGIC[magic])
                raise DataError(f"{path} is compressed by {MAGIC[magic]}: name it {path.name}{end}")

    def skip(self, count: int) -> None:
        """Drop bytes that ``head`` has shown."""
        self._head = self._head[count:]

    def fill(self, buffer: np.ndarray) -> int:
        """Fill an array of bytes; how many there were. They are fewer than its length at the end, or live."""
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
        """Everything that is left, for formats that cannot be read as they come."""
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
        """Bytes of the file that have been taken, compressed as they are."""
        raw = self._raw if self._raw is not None else self._file
        try:
            return max(int(raw.tell()), self._reached)
        except (OSError, ValueError):
            return self._reached

    def set_progress(self, part: float) -> None:
        """Told by a format that reads the file by itself what part of it has been taken."""
        self._reached = int(part * self._size)

    def refuse_truncated(self, error: Exception | None = None) -> None:
        """At the end, or when nothing more could be read: was it because the file has become shorter meanwhile?"""
        if self.source.compression is None and self.position < self._size:
            size = self.source.size
            if size is not None and size < self._size:
                raise DataError(f"{self.source.name} was cut short while it was read") from error

    def close(self) -> None:
        if self.source.path is not None:
            self._file.close()


# ----------------------------------------------------------------------------------------------------
# Pipes that are read as they are written.


def is_pipe(file: Any) -> bool:
    """Whether more may be written to a file while it is read: a pipe, a terminal, a socket."""
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # a file of Python's, in memory
        return False


class Pipe:
    """A pipe that a thread reads into memory, so that all that was written meanwhile is read at a time."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._parts: deque[bytes] = deque()
        self._size = self._taken = 0
        self._error: BaseException | None = None
        self._ended = False
        self._changed = threading.Condition()
        threading.Thread(target=self._pump, name="onlearn-pipe", daemon=True).start()

    def _pump(self) -> None:
        read = getattr(self._file, "read1", self._file.read)  # what there is, without waiting for more
        while True:
            part, error = b"", None
            try:
                part = read(PIPE_READ)
            except BaseException as failed:  # raised where the bytes are wanted
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
        """Wait until there is something, and take all of it that fits; 0 at the end."""
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
        """Nothing: the thread may still wait for the writer."""


# ----------------------------------------------------------------------------------------------------
# A stream in blocks of whole lines, ready for the compiled parsers.


SIZE = 4 << 20
PADDING = 64  # newlines after the content: what a parser may look at without checking
NEWLINE = 10
BOM = b"\xef\xbb\xbf"


class Block(NamedTuple):
    text: np.ndarray  # uint8, followed by PADDING newlines
    stop: int  # where the content ends; its last byte is a newline


def last_line_end(text: np.ndarray, stop: int, final: bool) -> int:
    """Where the last whole line ends; 0 if there is none."""
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
    """Blocks of about ``size`` bytes that end where a line does; a longer line makes a longer block.

    The bytes are read to where they will be parsed, and only what follows the last line end is copied.
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
            text[stop] = NEWLINE  # there is padding for it
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
    """Drop a byte order mark; refuse what is UTF-16."""
    start = stream.head(4)
    if start.startswith(BOM):
        stream.skip(len(BOM))
    elif start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise DataError(f"{stream.source.name} is UTF-16: convert it to UTF-8")


def first_lines(stream: Stream, size: int = 1 << 16) -> list[bytes]:
    """The first whole lines, without taking them; all of a single long one."""
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
