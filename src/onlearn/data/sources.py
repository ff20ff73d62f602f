"""Sources of data: paths, patterns, URLs and standard input as streams of bytes."""

from __future__ import annotations

import glob
import os
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from onlearn.data import remote
from onlearn.data.bad_rows import DataError
from onlearn.data.parts import FileRange, Part, Span
from onlearn.data.pipe import Pipe, is_pipe
from onlearn.data.plain_text import NEWLINE, PlainText, is_utf16, line_end_in, lines_of

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2"}
NOT_TEXT = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # without BZh, with which a text may begin
STDIN = "-"
NEW_LINE = b"\n"
READ = 1 << 20  # bytes that are read at a time to look at the beginning
LONGEST = 64 << 20  # bytes of a line, unless ``read`` is told another limit
BEGINNINGS = (1 << 12, 1 << 16)  # bytes that decide what ends the lines: as many as have a newline


class Source(NamedTuple):
    """One file, a part of one, or standard input."""

    name: str  # in messages
    path: Path | None  # None: standard input, or a URL
    compression: str | None
    url: str | None = None
    part: Part | None = None  # None: the whole file
    format: str | None = None  # None: the extension or the first lines give it

    @property
    def is_stdin(self) -> bool:
        """Whether this is standard input."""
        return self.path is None and self.url is None

    @property
    def file(self) -> PurePath | None:
        """The path, or that in the URL, for its name; None for standard input."""
        return self.path if self.url is None else remote.path_in(self.url)

    @property
    def extensions(self) -> tuple[str, ...]:
        """The extensions, last one first, without the compression: (".train", ".txt") for ``a.txt.train.gz``."""
        if self.file is None:
            return ()
        suffixes = [suffix.lower() for suffix in self.file.suffixes]
        if suffixes and suffixes[-1] in COMPRESSIONS:
            suffixes.pop()
        return tuple(reversed(suffixes))

    @property
    def size(self) -> int | None:
        """The bytes of the file or of its part; None if it is not a regular file."""
        if self.part is not None:
            return self.part.size
        if self.url is not None:
            return remote.size_of(self.url)
        return self.path.stat().st_size if self.path is not None and self.path.is_file() else None

    @property
    def begins_inside(self) -> bool:
        """Whether this is a part of a text that does not begin where the file does."""
        return isinstance(self.part, Span) and self.part.start > 0

    def opened(self) -> Any:
        """The file, which can seek, as it is stored."""
        if self.url is not None:
            return remote.RemoteFile(self.url)
        assert self.path is not None
        return open(self.path, "rb", buffering=0)

    def between(self, start: int, stop: int) -> bytes:
        """Some bytes of the file as it is stored, fewer at its end."""
        if self.url is not None:
            return remote.bytes_of(self.url, start, stop)
        try:
            with self.opened() as file:
                file.seek(start)
                parts = []
                while start < stop and (part := file.read(stop - start)):
                    parts.append(part)
                    start += len(part)
                return b"".join(parts)
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}") from error


def sources(named: Any) -> list[Source]:
    """The files that a path, a pattern, a URL, ``"-"``, or a list of those stands for; a ``Source`` is its own."""
    if isinstance(named, (str, os.PathLike, Source)):
        named = [named]
    if not isinstance(named, Iterable):
        raise TypeError(f"data is named by a path, a pattern, '-' or a list of those, not {type(named).__name__}")
    found = [source for one in named for source in ([one] if isinstance(one, Source) else _sources(os.fspath(one)))]
    if not found:
        raise DataError("no file is named")
    if sum(source.is_stdin for source in found) > 1:
        raise DataError("standard input ('-') can be read only once")
    return found


def _sources(name: str) -> list[Source]:
    if name == STDIN:
        return [Source("standard input", None, None)]
    path = Path(name)
    if remote.is_url(name) and not path.exists():
        return [_remote_file(url) for url in remote.urls(name)]
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


def _remote_file(url: str) -> Source:
    return Source(url, None, COMPRESSIONS.get(remote.path_in(url).suffix.lower()), url)


def state_of(source: Source) -> list[Any]:
    """The name, size and time of a file, which change if the file does. Of a part, those of its file."""
    if source.url is not None:
        return remote.state_of_url(source.url)
    assert source.path is not None
    try:
        found = source.path.stat()
    except OSError as error:
        raise DataError(f"{source.path} cannot be read: {error.strerror or error}") from error
    return [source.path.name, found.st_size, found.st_mtime_ns]


class Stream:
    """The bytes of a source, decompressed. ``head`` gives the next bytes without consuming them.

    With ``live``, ``head`` and ``fill`` do not wait for a pipe to deliver more: they return what has been written, if
    it is at least one line. ``checksum`` is the CRC-32 of the bytes read so far, of parts and of compressed files.
    """

    def __init__(self, source: Source, live: bool = False) -> None:
        self.source: Source = source
        self.checksum: int | None = 0 if source.compression is not None or isinstance(source.part, Span) else None
        self._ended = False
        self._head = b""
        self._plain: PlainText | None = None
        self._raw: Any = None
        self._reached = 0
        try:
            self._file = self._open()
            self.size: int = source.size or 0  # in bytes, when it was opened
            self._live = live and self._raw is None and is_pipe(self._file)
            if self._live:
                self._file = Pipe(self._file)
        except OSError as error:
            raise DataError(f"{source.name} cannot be read: {error.strerror or error}") from error

    def _open(self) -> Any:
        compression = self.source.compression
        source = self.source
        if source.is_stdin:
            if sys.stdin is None:  # the shell has closed it (<&-)
                raise DataError("standard input is closed, so nothing can be read from it")
            raw: Any = sys.stdin.buffer
            start = raw.peek(4)[:4] if hasattr(raw, "peek") else b""
            compression = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
        elif isinstance(source.part, Span):
            return FileRange(source.opened(), source.part.start, source.part.stop)
        elif compression is None or source.url is not None:
            raw = source.opened()
        if compression is None:
            return raw
        import pyarrow as pa

        self._raw = pa.OSFile(str(source.path)) if source.path is not None else pa.PythonFile(raw, "r")
        return pa.CompressedInputStream(self._raw, compression)

    @property
    def ended(self) -> bool:
        """Whether all bytes have been consumed."""
        return self._ended and not self._head

    def head(self, size: int) -> bytes:
        """The next bytes, at most ``size``, without consuming them. A live stream may give fewer, in whole lines."""
        if len(self._head) < size:
            known = bytearray(self._head)
            while len(known) < size and not (self._live and NEW_LINE in known):
                buffer = bytearray(min(size - len(known), READ))
                count = self._read(memoryview(buffer))
                if not count:
                    break
                known += memoryview(buffer)[:count]
            self._head = bytes(known)
        if self._live and len(self._head) < size and not self._ended:
            return self._head[: self._head.rfind(NEW_LINE) + 1]
        return self._head[:size]

    def refuse_compressed(self) -> None:
        """Refuse a compressed file whose name does not say so."""
        file = self.source.file
        if file is None or self.source.compression is not None or self.source.begins_inside:
            return
        for magic in NOT_TEXT:
            if self.head(len(magic)) == magic:
                end = next(end for end, kind in COMPRESSIONS.items() if kind == MAGIC[magic])
                raise DataError(f"{self.source.name} is compressed by {MAGIC[magic]}: name it {file.name}{end}")

    def skip(self, count: int) -> None:
        """Consume bytes that ``head`` has given."""
        self._head = self._head[count:]

    def unread(self, content: bytes) -> None:
        """Give back bytes that ``fill`` has given, from the start of a line: they come first again."""
        self._head = content + self._head
        if self._plain is not None:
            self._plain.give_back(len(content))

    def refuse_utf16(self) -> None:
        """Refuse text in UTF-16."""
        if not self.source.begins_inside and is_utf16(self.head(4)):
            raise DataError(f"{self.source.name} is UTF-16: convert it to UTF-8")

    def begin_text(self) -> None:
        """From now on, ``fill`` gives plain text, whose lines end with newlines."""
        self.refuse_utf16()
        self._plain = PlainText(self, line_end(self))

    def place_in_file(self, place: int) -> int:
        """Where a place of the text that ``fill`` has given is in the file, or in its part."""
        return place if self._plain is None else self._plain.place_in_stream(place)

    def fill(self, buffer: np.ndarray) -> int:
        """Fill an array; returns the number of bytes, which may be less than its length, and is 0 at the end."""
        count = self._fill(buffer)
        while self._plain is not None and count:
            if size := self._plain.clean(buffer[:count]):
                return size
            count = self._fill(buffer)  # there were marks only
        return count

    def _fill(self, buffer: np.ndarray) -> int:
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
            if self.checksum is not None:
                self.checksum = zlib.crc32(view[:count], self.checksum)
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
        self._reached = int(part * self.size)

    def refuse_truncated(self, error: Exception | None = None) -> None:
        """Raise if the file has become shorter while it was read; called at the end or after an error."""
        if self.source.compression is None and self.position < self.size:
            size = self.source.size
            if isinstance(self.source.part, Span) or (size is not None and size < self.size):
                raise DataError(f"{self.source.name} was cut short while it was read") from error

    def close(self) -> None:
        """Close the file."""
        if not self.source.is_stdin:
            self._file.close()


def line_end(stream: Stream) -> int:
    """The byte that ends the lines of a text, by its beginning. One that is cut into parts has newlines."""
    if stream.source.begins_inside:
        return NEWLINE
    head = b""
    for size in BEGINNINGS:
        if NEW_LINE not in head:
            head = stream.head(size)
    return line_end_in(head)


def first_lines(stream: Stream, size: int = 1 << 16, most: int = LONGEST) -> list[bytes]:
    """The first complete lines, without consuming them; at least one, cut after ``most`` bytes if it is longer."""
    while True:
        head = stream.head(size)
        if b"\n" in head or b"\r" in head or len(head) < size or size > most:
            break
        size = min(4 * size, most + 1)
    lines = lines_of(head)
    return lines[:-1] if len(lines) > 1 and len(head) == size else lines
