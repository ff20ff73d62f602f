"""Parsed rows that are kept from run to run, in a file beside the source or in a folder of the user's choice.

The file holds what a format made of each piece of the source, before any features: one Arrow IPC stream a piece, and at
the end one that says where they are and what they were made from. It is used only if that is so still: the same files
(size, time, inode), the same options, the same code; and only if it is the user's own or root's, and no one else can
write to it. Each stream has a checksum, and what it holds is checked before any loop runs over it, so a damaged or
forged file is not used. Nothing here can make a run fail: what cannot be kept or used is parsed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
import threading
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from onlearn.data.arrow import from_numpy, numbers
from onlearn.data.bad_rows import Bad
from onlearn.data.batch import rows_in
from onlearn.data.named_rows import NamedRows
from onlearn.data.registry import Parsed, readers
from onlearn.data.sources import Source
from onlearn.engine.csr import CSR
from onlearn.threads import ahead

MAGIC = b"onlearn rows 2\n\n"
PADDING = 64  # bytes after what was read: loops may look a little ahead
TAIL = 8 + 4 + len(MAGIC)  # where the index starts, its checksum, and the magic word
FACTS = b"facts"
WHOLE = [np.dtype(name) for name in ("u1", "u2", "u4", "i1", "i2", "i4")]
PLAIN = {"codes": "i8", "numbers": "f8", "weight": "f8", "groups": "i8", "lines": "i8"}
NAMED = {"indptr": "i8", "hashes": "u8", "values": "f8", "starts": "i8", "lengths": "i8", "groups": "u2", "text": "u1"}
MATRIX = {"data": ("f4", "f8"), "indices": ("i4", "i8"), "indptr": ("i4", "i8")}

Arrays = dict[str, np.ndarray]
Piece = tuple[int, Parsed, int]  # the number of its source, the rows, and how far into the sources they reach


class DamagedError(Exception):
    """The file does not hold what was written."""


class RowStore:
    """What was parsed of some sources before, if it is ``ready``; else a file to be filled, unless not ``writable``.

    ``said`` tells in a few words what became of it; ``used`` whether the rows came from the file.
    """

    def __init__(self, sources: list[Source], key: Any, folder: str | os.PathLike[str] | None = None) -> None:
        self.notes: list[str] = []
        self.found: dict[str, Any] = {}
        self.said: str | None = None
        self.ready = self.used = self.written = False
        self.writable = True
        self.path: Path | None = None
        self._paths = [source.path for source in sources if source.path is not None]
        self._key = key
        self._entries: list[dict[str, int]] = []
        self._file: IO[bytes] | None = None
        self._writing: Path | None = None
        if len(self._paths) < len(sources) or not all(path.is_file() for path in self._paths):
            self.writable, self.said = False, "not kept: what is read is not a file"
            return
        if not all(kind.__module__.startswith("onlearn.data.formats.") for kind in readers().values()):
            self.writable, self.said = False, "not kept: there are formats of your own, which may change"
            return
        self.path = place(self._paths, folder)
        self._origin = self._state()
        self.ready = self._open()

    def _state(self) -> Any:
        """What the rows depend on, as JSON has it."""
        files = []
        for path in self._paths:
            found = path.stat()
            files.append([path.name, found.st_size, found.st_mtime_ns, found.st_ino])
        return json.loads(json.dumps({"files": files, "key": self._key, "code": code()}, sort_keys=True, default=str))

    # ------------------------------------------------------------------ reading

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
            told = json.loads(index.schema.metadata[b"onlearn"])
            if told["origin"] != self._origin:
                return False
            entries = index.to_pylist()
            for entry in entries:
                require(0 <= entry["source"] < len(self._paths) and entry["position"] >= 0)
                require(0 <= entry["start"] <= entry["start"] + entry["size"] <= start)
            require(isinstance(told["notes"], list) and isinstance(told["found"], dict))
        except Exception:  # there is none, or it is damaged in whatever way: as good as none
            return False
        self.notes, self.found, self._entries = told["notes"], told["found"], entries
        return True

    def pieces(self, workers: int) -> Iterator[Piece]:
        """All that was kept, in order; raises ``DamagedError`` at a piece that is not what was written."""
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
        """The file is damaged: it is to be written anew."""
        self.ready = self.used = False
        self.said = None
        self._entries = []

    # ------------------------------------------------------------------ writing

    def append(self, source: int, parsed: Parsed, position: int) -> None:
        """Keep what was made of a piece."""
        if not self.writable:
            return
        packed = pack(parsed)
        if packed is None:
            self._abandon("not kept: sentences are not")
            return
        with self._or_not():
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
        """All is there: put the file into its place."""
        import pyarrow as pa

        if self._file is None or self._writing is None or self.path is None:
            return
        with self._or_not():
            if self._state() != self._origin:
                self._abandon("not kept: the data changed while they were read")
                return
            told = json.dumps({"origin": self._origin, "notes": notes, "found": found})
            columns = {name: [entry[name] for entry in self._entries] for name in self._entries[0]}
            start, raw = self._file.tell(), stream(pa.RecordBatch.from_pydict(columns, metadata={"onlearn": told}))
            self._file.write(raw)
            self._file.write(start.to_bytes(8, "little") + zlib.crc32(raw).to_bytes(4, "little") + MAGIC)
            size = self._file.tell()
            self._file.close()
            os.replace(self._writing, self.path)
            self._file = self._writing = None
            self.written, self.said = True, f"{size / 2**20:,.0f} MB in {self.path}"

    def close(self) -> None:
        """Leave nothing that is not whole."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
        if self._writing is not None:
            with contextlib.suppress(OSError):
                self._writing.unlink()
            self._writing = None

    def _begin(self) -> None:
        """Make a file beside its place that only those may read who may read the sources.

        Its name cannot be foretold, and it must be new: a link that waits for it in a shared folder is never followed.
        """
        assert self.path is not None
        remove_left_over(self.path)
        need = sum(path.stat().st_size for path in self._paths)
        if shutil.disk_usage(self.path.parent).free < 2 * need:
            raise OSError("there is little room on the disk")
        rights = 0o644
        for path in self._paths:
            rights &= path.stat().st_mode
        file, name = tempfile.mkstemp(".tmp", f"{self.path.name}.{os.getpid()}.", self.path.parent)
        self._writing = Path(name)
        self._file = open(file, "wb")  # noqa: SIM115 (open until all rows are there)
        if hasattr(os, "fchmod"):
            os.fchmod(file, rights | 0o600)

    @contextlib.contextmanager
    def _or_not(self) -> Iterator[None]:
        """What cannot be written is not kept."""
        try:
            yield
        except OSError as error:
            self._abandon(f"not kept: {error.strerror or error}")

    def _abandon(self, why: str) -> None:
        self.writable, self.said = False, why
        self.close()


# ---------------------------------------------------------------------- files


def place(paths: list[Path], folder: str | os.PathLike[str] | None) -> Path:
    """Where rows of some files are kept: one place for the same files, whatever the options."""
    name = paths[0].name
    if len(paths) > 1 or folder is not None:
        several = hashlib.blake2b("\0".join(str(path.resolve()) for path in paths).encode(), digest_size=6)
        name += f"-{several.hexdigest()}"
    return (paths[0].parent if folder is None else Path(folder)) / f".{name}.onlearn-cache"


def open_trusted(path: Path) -> IO[bytes]:
    """Open a file of the user's own or of root's that no one else can write to; not through a link."""
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


def remove_left_over(path: Path) -> None:
    """Remove what a run that was killed has left: half a file, under the number of a process that is no more."""
    if os.name != "posix":
        return  # elsewhere, to ask about a process may end it
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)\.(\w+\.)?tmp")
    for other in os.scandir(path.parent):
        if (found := pattern.fullmatch(other.name)) is None:
            continue
        try:
            os.kill(int(found[1]), 0)
        except ProcessLookupError:
            with contextlib.suppress(OSError):
                os.unlink(other.path)
        except (OSError, OverflowError):
            pass  # it lives, under another user; or there can be no such process


@cache
def code() -> str:
    """A digest of the code that reads, so that rows of another version are not taken for those of this one."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# ---------------------------------------------------------------------- pieces


def read_piece(file: IO[bytes], lock: threading.Lock, entry: dict[str, int]) -> Piece:
    """One piece of an open file."""
    try:
        room = np.empty(entry["size"] + PADDING, dtype=np.uint8)
        raw = room[: entry["size"]]
        room[entry["size"] :] = 0
        with lock:
            file.seek(entry["start"])
            count = file.readinto(raw.data)  # type: ignore[attr-defined]
        require(count == len(raw) and zlib.crc32(raw.data) == entry["check"])
        return entry["source"], unpack(*read_arrays(raw)), entry["position"]
    except Exception as error:  # whatever is wrong with it
        raise DamagedError from error


def require(sound: bool) -> None:
    if not sound:
        raise DamagedError


def pack(parsed: Parsed) -> tuple[dict[str, Any], Arrays] | None:
    """What a format made of a piece, as facts for JSON and plain arrays; None for rows of a kind that is not kept."""
    rows = parsed.rows
    arrays: Arrays = {name: array for name in PLAIN if (array := getattr(parsed, name)) is not None}
    bad = [[one.line, one.column, one.reason, one.raw.decode("latin-1")] for one in parsed.bad]
    facts: dict[str, Any] = {"line_count": parsed.line_count, "names": parsed.names, "bad": bad}
    if parsed.ids is not None:
        facts["ids"] = parsed.ids.tolist()
    if isinstance(rows, NamedRows):
        facts["prefixes"] = list(rows.prefixes)
        arrays.update({f"rows.{name}": getattr(rows, name) for name in NAMED})
    elif hasattr(rows, "column_names"):
        arrays["rows.table"] = np.frombuffer(stream(rows), dtype=np.uint8)
    elif isinstance(rows, CSR):
        facts["shape"] = [int(size) for size in rows.shape]
        facts["unique"], facts["finite"] = rows.unique, rows.finite
        arrays.update({f"rows.{name}": getattr(rows, name) for name in MATRIX})
    else:
        return None
    facts["types"] = {name: array.dtype.str for name, array in arrays.items()}
    return facts, arrays


def unpack(facts: dict[str, Any], arrays: Arrays) -> Parsed:
    """What ``pack`` was given."""
    names, line_count = facts["names"], facts["line_count"]
    bad = [Bad(line, column, reason, raw.encode("latin-1")) for line, column, reason, raw in facts["bad"]]
    require(isinstance(line_count, int) and all(isinstance(name, str) for name in names))
    plain: dict[str, Any] = {name: taken(arrays, name, kind) for name, kind in PLAIN.items() if name in arrays}
    if "ids" in facts:
        plain["ids"] = np.array(facts["ids"], dtype=object)
    rows: Any
    if "prefixes" in facts:
        rows = named_rows(arrays, facts["prefixes"])
    elif "rows.table" in arrays:
        rows = read_stream(arrays["rows.table"])
    else:
        rows = matrix(arrays, facts)
    count = rows_in(rows)
    require(all(array.shape == (count,) for array in plain.values()))
    if "codes" in plain and count:
        require(plain["codes"].min() >= -1 and plain["codes"].max() < len(names))
    return Parsed(rows, line_count=line_count, names=names, bad=bad, **plain)


def taken(arrays: Arrays, name: str, *kinds: str) -> np.ndarray:
    """An array that must be of one of some types."""
    array = arrays[name]
    require(array.dtype in [np.dtype(kind) for kind in kinds])
    return array


def named_rows(arrays: Arrays, prefixes: Any) -> NamedRows:
    parts = {name: taken(arrays, f"rows.{name}", kind) for name, kind in NAMED.items()}
    count = len(parts["hashes"])
    check_pointers(parts["indptr"], count)
    require(all(len(parts[name]) == count for name in ("values", "starts", "lengths", "groups")))
    require(isinstance(prefixes, list) and all(isinstance(prefix, str) for prefix in prefixes))
    if count:
        starts, lengths = parts["starts"], parts["lengths"]
        require(starts.min() >= 0 and lengths.min() >= 0 and lengths.max() <= len(parts["text"]))
        require(starts.max() <= len(parts["text"]) and (starts + lengths).max() <= len(parts["text"]))
        require(parts["groups"].max() < len(prefixes))
    return NamedRows(**parts, prefixes=tuple(prefixes))


def matrix(arrays: Arrays, facts: dict[str, Any]) -> CSR:
    rows, columns = facts["shape"]
    require(isinstance(rows, int) and isinstance(columns, int))
    data, indices, indptr = (taken(arrays, f"rows.{name}", *kinds) for name, kinds in MATRIX.items())
    check_pointers(indptr, len(data))
    require(len(indptr) == rows + 1 and len(indices) == len(data))
    require(not len(indices) or (indices.min() >= 0 and indices.max() < columns))
    return CSR(data, indices, indptr, (rows, columns), facts["unique"] is True, facts["finite"] is True)


def check_pointers(indptr: np.ndarray, count: int) -> None:
    """Rows must follow one another, and take up all."""
    require(len(indptr) > 0 and indptr[0] == 0 and indptr[-1] == count and bool((indptr[1:] >= indptr[:-1]).all()))


# ---------------------------------------------------------------------- Arrow


class CheckedFile:
    """A file to write to that makes a checksum on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.check, self.closed = file, 0, False

    def write(self, raw: Any) -> int:
        self.check = zlib.crc32(raw, self.check)
        return self.file.write(raw)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def write_arrays(file: CheckedFile, facts: dict[str, Any], arrays: Arrays) -> None:
    """Write a stream of one row, in which each array is a list; whole numbers take no more bytes than they need."""
    import pyarrow as pa

    columns = {}
    for name, array in arrays.items():
        values = from_numpy(narrowed(np.ascontiguousarray(array)))
        columns[name] = pa.LargeListArray.from_arrays(from_numpy(np.array([0, len(values)])), values)
    batch = pa.RecordBatch.from_pydict(columns, metadata={FACTS: json.dumps(facts)})
    with pa.ipc.new_stream(pa.PythonFile(file, mode="w"), batch.schema) as writer:
        writer.write(batch)


def narrowed(array: np.ndarray) -> np.ndarray:
    """The same numbers in fewer bytes, if all of them fit."""
    if array.dtype.kind in "iu" and array.itemsize > 1 and len(array):
        low, high = int(array.min()), int(array.max())
        for dtype in WHOLE:
            if dtype.itemsize < array.itemsize and np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
                return array.astype(dtype)
    return array


def read_arrays(raw: np.ndarray) -> tuple[dict[str, Any], Arrays]:
    """What was written, of the types it had. Arrays lie in ``raw`` and can be written to, as those of parsers can."""
    table = read_stream(raw)
    facts, arrays = json.loads(table.schema.metadata[FACTS]), {}
    require(table.num_rows == 1)
    for name in table.column_names:
        values = numbers(table.column(name).chunk(0).values)
        dtype = np.dtype(facts["types"][name])
        require(values.dtype.kind in "iuf" and dtype.kind in "iuf")
        start = values.ctypes.data - raw.ctypes.data
        if values.dtype == dtype and 0 <= start <= len(raw) - values.nbytes:
            arrays[name] = raw[start : start + values.nbytes].view(dtype)
        else:
            arrays[name] = values.astype(dtype)
    return facts, arrays


def stream(rows: Any) -> Any:
    """A table or a batch as the bytes of an IPC stream."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    return sink.getvalue()


def read_stream(raw: Any) -> Any:
    """The table in a stream, if it is a sound one."""
    import pyarrow as pa

    table = pa.ipc.open_stream(pa.py_buffer(raw)).read_all()
    table.validate(full=True)
    return table
