"""The row cache: a file with parsed rows for later runs, in the folder of the data or in one that the user chooses.

The file holds the parsed pieces of the sources, before any features: one Arrow IPC stream for each piece, and an index
at the end that records the files (size, time, inode), the options and the code that the rows come from. The cache is
used only if all of these are unchanged, if it belongs to the user or to root, and if no one else can write to it. Each
stream has a checksum, and its content is validated before any loop runs over it, so a damaged or forged file is not
used. The cache never makes a run fail: if it cannot be written or used, the files are parsed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from onlearn.data.arrow import from_numpy, numbers
from onlearn.data.bad_rows import Bad
from onlearn.data.batch import NamedRows, is_table, rows_in
from onlearn.data.formats.record_batches import is_plain
from onlearn.data.registry import Parsed, readers
from onlearn.data.sources import Source
from onlearn.engine.csr import CSR
from onlearn.threads import ahead
from onlearn.whole_file import FileBeside, remove_leftovers

MAGIC = b"onlearn rows 4\n\n"
PADDING = 64  # bytes after the content, which compiled loops may read
TAIL = 8 + 4 + len(MAGIC)  # where the index starts, its checksum, and the magic word
FACTS = b"facts"
FARTHEST = 1 << 48  # lines and columns of a file
LARGEST = np.finfo(np.float64).max
INTEGER_TYPES = [np.dtype(name) for name in ("u1", "u2", "u4", "i1", "i2", "i4")]
PLAIN = {"codes": "i8", "numbers": "f8", "weight": "f8", "groups": "i8", "lines": "i8"}
NAMED = {"indptr": "i8", "hashes": "u8", "values": "f8", "starts": "i8", "lengths": "i8", "groups": "u4", "text": "u1"}
MATRIX = {"data": ("f4", "f8"), "indices": ("i4", "i8"), "indptr": ("i4", "i8")}

Arrays = dict[str, np.ndarray]
Piece = tuple[int, Parsed, int]  # the number of the source, the rows, and the bytes of the sources read so far


class DamagedError(Exception):
    """The cache does not hold what was written to it."""


class RowStore:
    """The row cache of some sources: it can be read if ``ready``, else it is written if ``writable``.

    ``said`` describes the outcome in a few words; ``used`` says whether the rows come from the cache. ``alone`` says
    that rows depend on nothing but the sources and ``key``; else nothing is stored.
    """

    def __init__(
        self, sources: list[Source], key: Any, folder: str | os.PathLike[str] | None = None, alone: bool = True
    ) -> None:
        self.notes: list[str] = []
        self.found: dict[str, Any] = {}
        self.said: str | None = None
        self.ready: bool = False
        self.used: bool = False
        self.written: bool = False
        self.writable: bool = True
        self.path: Path | None = None
        self._paths = [source.path for source in sources if source.path is not None]
        self._key = key
        self._entries: list[dict[str, int]] = []
        self._file: IO[bytes] | None = None
        self._writing: FileBeside | None = None
        if len(self._paths) < len(sources) or not all(path.is_file() for path in self._paths):
            self.writable, self.said = False, "not kept: what is read is not a file"
            return
        if not alone or any(source.part is not None for source in sources):
            self.writable, self.said = False, "not kept: these are shards, or depend on other files"
            return
        if not all(kind.__module__.startswith("onlearn.data.formats.") for kind in readers().values()):
            self.writable, self.said = False, "not kept: there are formats of your own, which may change"
            return
        self.path = cache_path(self._paths, folder)
        self._origin = self._state()
        self.ready = self._open()

    def _state(self) -> Any:
        """All that the rows depend on, as JSON."""
        files = []
        for path in self._paths:
            found = path.stat()
            files.append([path.name, found.st_size, found.st_mtime_ns, found.st_ino])
        return json.loads(json.dumps({"files": files, "key": self._key, "code": code()}, sort_keys=True, default=str))

    def _open(self) -> bool:
        assert self.path is not None
        try:
            with open_trusted(self.path) as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(-TAIL, os.SEEK_END)
                tail = file.read()
                start, check = int.from_bytes(tail[:8], "little"), int.from_bytes(tail[8:12], "little")
                require(tail[12:] == MAGIC and start <= size - TAIL)
                file.seek(start)
                raw = file.read(size - start - TAIL)
            require(zlib.crc32(raw) == check)
            index = read_stream(raw)
            facts = json.loads(index.schema.metadata[b"onlearn"])
            if facts["origin"] != self._origin:
                return False
            entries = index.to_pylist()
            for entry in entries:
                require(0 <= entry["source"] < len(self._paths) and entry["position"] >= 0)
                require(0 <= entry["start"] <= entry["start"] + entry["size"] <= start)
            require(isinstance(facts["notes"], list) and isinstance(facts["found"], dict))
        except Exception:  # there is no cache, or it is damaged in any way
            return False
        self.notes, self.found, self._entries = facts["notes"], facts["found"], entries
        return True

    def pieces(self, workers: int) -> Iterator[Piece]:
        """The pieces in order; raises ``DamagedError`` at a piece that is damaged."""
        assert self.path is not None
        self.used, self.said = True, f"reused {self.path}"
        try:
            file = open_trusted(self.path)
        except OSError as error:
            raise DamagedError from error
        lock = threading.Lock()
        try:
            yield from ahead(self._entries, lambda entry: read_piece(file, lock, entry), workers)
        finally:
            with lock:
                file.close()

    def forget(self) -> None:
        """Discard a damaged cache, so that it is written again."""
        self.ready = self.used = False
        self.said = None
        self._entries = []

    def append(self, source: int, parsed: Parsed, position: int) -> None:
        """Write a piece."""
        if not self.writable:
            return
        packed = pack(parsed)
        if packed is None:
            self._abandon("not kept: sentences are not")
            return
        with self._abandon_on_error():
            if self._file is None:
                self._begin()
            assert self._file is not None
            start = self._file.tell()
            sink = CheckedFile(self._file)
            write_arrays(sink, *packed)
            size = self._file.tell() - start
            entry = {"source": source, "position": position, "start": start, "size": size, "check": sink.check}
            self._entries.append(entry)

    def finish(self, notes: list[str], found: dict[str, Any]) -> None:
        """Complete the file, and move it to its place."""
        import pyarrow as pa

        if self._file is None or self._writing is None or self.path is None:
            return
        with self._abandon_on_error():
            if self._state() != self._origin:
                self._abandon("not kept: the data changed while they were read")
                return
            facts = json.dumps({"origin": self._origin, "notes": notes, "found": found})
            columns = {name: [entry[name] for entry in self._entries] for name in self._entries[0]}
            start, raw = self._file.tell(), ipc_stream(pa.RecordBatch.from_pydict(columns, metadata={"onlearn": facts}))
            self._file.write(raw)
            self._file.write(start.to_bytes(8, "little") + zlib.crc32(raw).to_bytes(4, "little") + MAGIC)
            size = self._file.tell()
            self._file.close()
            self._writing.replace()
            self._file = self._writing = None
            self.written, self.said = True, f"{size / 2**20:,.0f} MB in {self.path}"

    def close(self) -> None:
        """Remove an incomplete file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
        if self._writing is not None:
            self._writing.discard()
            self._writing = None

    def _begin(self) -> None:
        """Create the temporary file, with the read permissions of the sources."""
        assert self.path is not None
        remove_leftovers(self.path)  # before the room on the disk is measured
        need = sum(path.stat().st_size for path in self._paths)
        if shutil.disk_usage(self.path.parent).free < 2 * need:
            raise OSError("there is little room on the disk")
        rights = 0o644
        for path in self._paths:
            rights &= path.stat().st_mode
        self._writing = FileBeside(self.path)
        self._file = self._writing.open()
        if hasattr(os, "fchmod"):
            os.fchmod(self._file.fileno(), rights | 0o600)

    @contextlib.contextmanager
    def _abandon_on_error(self) -> Iterator[None]:
        """Give up writing the cache after an error of the file system."""
        try:
            yield
        except OSError as error:
            self._abandon(f"not kept: {error.strerror or error}")

    def _abandon(self, why: str) -> None:
        self.writable, self.said = False, why
        self.close()


def cache_path(paths: list[Path], folder: str | os.PathLike[str] | None) -> Path:
    """The path of the cache of some files, which does not depend on the options."""
    name = paths[0].name
    if len(paths) > 1 or folder is not None:
        digest = hashlib.blake2b(b"\0".join(os.fsencode(path.resolve()) for path in paths), digest_size=6)
        name += f"-{digest.hexdigest()}"
    return (paths[0].parent if folder is None else Path(folder)) / f".{name}.onlearn-cache"


def open_trusted(path: Path) -> IO[bytes]:
    """Open a file that belongs to the user or to root and that no one else can write to; links are not followed."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = os.open(path, flags)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a file")
        if hasattr(os, "getuid") and (found.st_uid not in (os.getuid(), 0) or found.st_mode & 0o022):
            raise OSError("others can write to it")
        return open(file, "rb", buffering=0)
    except BaseException:
        os.close(file)
        raise


@cache
def code() -> str:
    """A digest of the code of this package, so that rows of another version are not used."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_piece(file: IO[bytes], lock: threading.Lock, entry: dict[str, int]) -> Piece:
    """Read one piece of an open file."""
    try:
        room = np.empty(entry["size"] + PADDING, dtype=np.uint8)
        raw = room[: entry["size"]]
        room[entry["size"] :] = 0
        with lock:
            file.seek(entry["start"])
            count = file.readinto(raw.data)  # type: ignore[attr-defined]
        require(count == len(raw) and zlib.crc32(raw.data) == entry["check"])
        return entry["source"], unpack(*read_arrays(raw)), entry["position"]
    except Exception as error:  # any kind of damage
        raise DamagedError from error


def require(valid: bool) -> None:
    """Raise ``DamagedError`` unless a condition holds."""
    if not valid:
        raise DamagedError


def pack(parsed: Parsed) -> tuple[dict[str, Any], Arrays] | None:
    """A parsed piece as facts for JSON and plain arrays; None for rows that cannot be stored."""
    rows = parsed.rows
    arrays: Arrays = {name: array for name in PLAIN if (array := getattr(parsed, name)) is not None}
    bad = [[one.line, one.column, one.reason, one.raw.decode("latin-1"), one.rows] for one in parsed.bad]
    facts: dict[str, Any] = {"line_count": parsed.line_count, "names": parsed.names, "bad": bad}
    if parsed.ids is not None:
        facts["ids"] = parsed.ids.tolist()
    if isinstance(rows, NamedRows):
        facts["prefixes"] = list(rows.prefixes)
        arrays.update({f"rows.{name}": getattr(rows, name) for name in NAMED})
    elif is_table(rows):
        arrays["rows.table"] = np.frombuffer(ipc_stream(rows), dtype=np.uint8)
    elif isinstance(rows, CSR):
        facts["shape"] = [int(size) for size in rows.shape]
        facts["unique"], facts["finite"] = rows.unique, rows.finite
        arrays.update({f"rows.{name}": getattr(rows, name) for name in MATRIX})
    else:
        return None
    facts["types"] = {name: array.dtype.str for name, array in arrays.items()}
    return facts, arrays


def unpack(facts: dict[str, Any], arrays: Arrays) -> Parsed:
    """The parsed piece that was packed; raises ``DamagedError`` if it is not valid."""
    names, line_count = facts["names"], facts["line_count"]
    bad = [Bad(line, column, reason, raw.encode("latin-1"), rows) for line, column, reason, raw, rows in facts["bad"]]
    numbers = [line_count, *(number for one in bad for number in (one.line, one.column, one.rows))]
    require(all(isinstance(number, int) and 0 <= number < FARTHEST for number in numbers))
    require(all(isinstance(name, str) for name in names))
    require(all(isinstance(one.reason, str) for one in bad))
    plain: dict[str, Any] = {name: typed_array(arrays, name, kind) for name, kind in PLAIN.items() if name in arrays}
    if "ids" in facts:
        require(isinstance(facts["ids"], list) and all(id is None or isinstance(id, str) for id in facts["ids"]))
        plain["ids"] = np.array(facts["ids"], dtype=object)
    rows: Any
    if "prefixes" in facts:
        rows = named_rows(arrays, facts["prefixes"])
    elif "rows.table" in arrays:
        rows = read_stream(arrays["rows.table"])
        require(all(map(is_plain, rows.schema.types)))
    else:
        rows = matrix(arrays, facts)
    count = rows_in(rows)
    require(all(array.shape == (count,) for array in plain.values()))
    require(in_range(plain.get("codes"), -1, len(names) - 1) and in_range(plain["lines"], 0, line_count - 1))
    require(in_range(plain.get("groups"), -1, None) and in_range(plain.get("weight"), 0.0, LARGEST))
    require("numbers" not in plain or not np.isinf(plain["numbers"]).any())
    return Parsed(rows, line_count=line_count, names=names, bad=bad, **plain)


def in_range(array: np.ndarray | None, low: float, high: float | None) -> bool:
    """Whether all numbers of an array, if there is one, are from ``low`` to ``high``; NaN is not."""
    if array is None or not len(array):
        return True
    return bool(array.min() >= low and (high is None or array.max() <= high))


def typed_array(arrays: Arrays, name: str, *kinds: str) -> np.ndarray:
    """An array, which must have one of some types."""
    array = arrays[name]
    require(array.dtype in [np.dtype(kind) for kind in kinds])
    return array


def named_rows(arrays: Arrays, prefixes: Any) -> NamedRows:
    """Named rows, after validation."""
    parts = {name: typed_array(arrays, f"rows.{name}", kind) for name, kind in NAMED.items()}
    count = len(parts["hashes"])
    check_pointers(parts["indptr"], count)
    require(all(len(parts[name]) == count for name in ("values", "starts", "lengths", "groups")))
    require(isinstance(prefixes, list) and all(isinstance(prefix, str) for prefix in prefixes))
    if count:
        starts, lengths = parts["starts"], parts["lengths"]
        require(starts.min() >= 0 and lengths.min() >= 0 and lengths.max() <= len(parts["text"]))
        require(starts.max() <= len(parts["text"]) and (starts + lengths).max() <= len(parts["text"]))
        require(parts["groups"].max() < len(prefixes) and bool(np.isfinite(parts["values"]).all()))
    return NamedRows(**parts, prefixes=tuple(prefixes))


def matrix(arrays: Arrays, facts: dict[str, Any]) -> CSR:
    """A matrix, after validation."""
    rows, columns = facts["shape"]
    require(isinstance(rows, int) and isinstance(columns, int))
    data, indices, indptr = (typed_array(arrays, f"rows.{name}", *kinds) for name, kinds in MATRIX.items())
    check_pointers(indptr, len(data))
    require(len(indptr) == rows + 1 and len(indices) == len(data))
    require(not len(indices) or (indices.min() >= 0 and indices.max() < columns))
    unique = facts["unique"] is True and in_order(indices, indptr)
    require(bool(np.isfinite(data).all()))
    return CSR(data, indices, indptr, (rows, columns), unique, facts["finite"] is True)


def in_order(indices: np.ndarray, indptr: np.ndarray) -> bool:
    """Whether the columns of each row are in order, and none comes twice; else loops find out whether one does."""
    rising = indices[1:] > indices[:-1]
    ends = indptr[1:-1]
    rising[ends[(ends > 0) & (ends < len(indices))] - 1] = True  # where a row ends and another begins
    return bool(rising.all())


def check_pointers(indptr: np.ndarray, count: int) -> None:
    """Require that the rows follow one another and cover all features."""
    require(len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == count and bool((indptr[1:] >= indptr[:-1]).all()))


class CheckedFile:
    """A file that computes the checksum of what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file: IO[bytes] = file
        self.check: int = 0
        self.closed: bool = False

    def write(self, raw: Any) -> int:
        self.check = zlib.crc32(raw, self.check)
        return self.file.write(raw)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def write_arrays(file: CheckedFile, facts: dict[str, Any], arrays: Arrays) -> None:
    """Write a stream of one row, in which each array is a list; whole numbers take as few bytes as possible."""
    import pyarrow as pa

    columns = {}
    for name, array in arrays.items():
        values = from_numpy(narrowed(np.ascontiguousarray(array)))
        columns[name] = pa.LargeListArray.from_arrays(from_numpy(np.array([0, len(values)])), values)
    batch = pa.RecordBatch.from_pydict(columns, metadata={FACTS: json.dumps(facts)})
    with pa.ipc.new_stream(pa.PythonFile(file, mode="w"), batch.schema) as writer:
        writer.write(batch)


def narrowed(array: np.ndarray) -> np.ndarray:
    """The same whole numbers in the smallest type that can hold them."""
    if array.dtype.kind in "iu" and array.itemsize > 1 and len(array):
        low, high = int(array.min()), int(array.max())
        for dtype in INTEGER_TYPES:
            if dtype.itemsize < array.itemsize and np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return array.astype(dtype)
    return array


def read_arrays(raw: np.ndarray) -> tuple[dict[str, Any], Arrays]:
    """Read the arrays with their original types. They are writable and use the memory of ``raw`` where possible."""
    table = read_stream(raw)
    facts, arrays = json.loads(table.schema.metadata[FACTS]), {}
    require(table.num_rows == 1)
    for name in table.column_names:
        values = numbers(table.column(name).chunk(0).values)
        dtype = np.dtype(facts["types"][name])
        require(values.dtype.kind in "iuf" and dtype.kind in "iuf")
        start = values.ctypes.data - raw.ctypes.data
        inside = 0 <= start <= len(raw) - values.nbytes and values.flags.aligned
        if values.dtype == dtype and inside:
            arrays[name] = raw[start : start + values.nbytes].view(dtype)
        else:
            arrays[name] = values.astype(dtype)
    return facts, arrays


def ipc_stream(rows: Any) -> Any:
    """A table or a record batch as an IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def read_stream(raw: Any) -> Any:
    """Read the table of a stream, and validate it."""
    import pyarrow as pa

    table = pa.ipc.open_stream(pa.py_buffer(raw)).read_all()
    table.validate(full=True)
    return table
