"""Parsed rows kept for later passes: in memory while they are few, else in a file beside the source.

The file is one array after another, each at a multiple of 64 bytes, and a JSON footer that says where they are and
what they were made from. Reading maps it into memory. It is written under another name and renamed when complete, so
that it is there whole or not at all; it is used only if source files and options are what they were.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from onlearn.data.badrows import DataError

MAGIC = b"onlearn cache 1\n"
ALIGNMENT = 64
MEMORY = 512 << 20
ARRAYS = ("data", "indices", "indptr", "codes", "weight")

Rows = tuple[Any, "np.ndarray | None", "np.ndarray | None"]


class Cache:
    """A spool of sparse batches: ``append`` them, ``finish``, then go through them as often as needed.

    ``source`` is the file, or files, that the rows come from, and ``key`` whatever else they depend on (anything JSON
    can hold). If there is a file of the same source and key, the cache is ``ready`` at once. Without a source, what
    does not fit into ``memory`` bytes goes to a temporary file.

    >>> import scipy.sparse as sp
    >>> with Cache() as cache:
    ...     cache.append(sp.csr_matrix([[0.0, 1.0], [2.0, 0.0]]), np.array([0, 1]))
    ...     cache.finish({"labels": ["no", "yes"]})
    ...     [(X.shape, codes.tolist(), weight) for X, codes, weight in cache]
    [((2, 2), [0, 1], None)]
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
        key: Any = None,
        memory: int = MEMORY,
    ) -> None:
        if source is None:
            source = []
        self.sources = [Path(source)] if isinstance(source, (str, os.PathLike)) else [Path(one) for one in source]
        self.memory = memory
        self.meta: Any = None
        self.ready = False
        self.rows = self.nbytes = 0
        self._origin = {"files": [state_of(path) for path in self.sources], "key": digest(key)}
        self._held: list[Rows] = []
        self._entries: list[dict[str, Any]] = []
        self._file: IO[bytes] | None = None
        self._writing: Path | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self.path = None if not self.sources else beside(self.sources[0])
        self._map: np.ndarray | None = None
        if self.path is not None and os.path.exists(self.path):
            self._open()

    def append(self, X: Any, codes: np.ndarray | None = None, weight: np.ndarray | None = None) -> None:
        """Add a ``csr_matrix``, with labels (codes or numbers) and weights of its rows."""
        if self.ready:
            raise ValueError("the cache is complete: nothing can be added")
        self.rows += X.shape[0]
        self.nbytes += sum(array.nbytes for array in (X.data, X.indices, X.indptr, codes, weight) if array is not None)
        if self._file is None and self.nbytes <= self.memory:
            self._held.append((X, codes, weight))
            return
        if self._file is None:
            self._begin()
            for held in self._held:
                self._write(*held)
            self._held.clear()
        self._write(X, codes, weight)

    def finish(self, meta: Any = None) -> None:
        """All rows are here. ``meta`` is kept with them, as JSON."""
        self.meta = meta
        if self._file is not None and self._writing is not None and self.path is not None:
            footer = json.dumps({"origin": self._origin, "rows": self.rows, "batches": self._entries, "meta": meta})
            try:
                start = self._file.tell()
                self._file.write(footer.encode() + start.to_bytes(8, "little") + MAGIC)
                self._file.close()
                os.replace(self._writing, self.path)
            except OSError as error:
                self._fail(error)
            self._file = self._writing = None
            self._open()
            if not self.ready:
                raise DataError(f"the cache {self.path} changed while it was written: is another run at work here?")
        self.ready = True

    def __iter__(self) -> Iterator[Rows]:
        if not self.ready:
            raise ValueError("the cache is not complete: call finish first")
        if self._map is None:
            yield from self._held
            return
        for entry in self._entries:
            yield self._read(entry)

    def __len__(self) -> int:
        return len(self._entries) if self._map is not None else len(self._held)

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of memory and of what was not finished; a finished file stays beside its source."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self._writing is not None:
            with contextlib.suppress(OSError):
                self._writing.unlink()
            self._writing = None
        self._held, self._map, self.ready = [], None, False
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _begin(self) -> None:
        """Open a new file beside the source; in a temporary folder where that is not possible."""
        if self.path is not None:
            name = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
            with contextlib.suppress(OSError):
                self._file, self._writing = open(name, "wb"), name  # noqa: SIM115 (open until it is complete)
        if self._file is None:
            try:
                self._temporary = tempfile.TemporaryDirectory(prefix="onlearn-")
                self.path = Path(self._temporary.name) / "cache"
                self._writing = self.path.with_suffix(".tmp")
                self._file = open(self._writing, "wb")  # noqa: SIM115
            except OSError as error:
                self._fail(error)

    def _write(self, X: Any, codes: np.ndarray | None, weight: np.ndarray | None) -> None:
        entry: dict[str, Any] = {"shape": list(X.shape), "canonical": bool(X.has_canonical_format)}
        entry["sorted"] = bool(X.has_sorted_indices)
        assert self._file is not None
        try:
            for name, array in zip(ARRAYS, (X.data, X.indices, X.indptr, codes, weight)):
                if array is None:
                    continue
                array = np.ascontiguousarray(array)
                start = self._file.tell()
                gap = -start % ALIGNMENT
                self._file.write(bytes(gap))
                self._file.write(array.view(np.uint8).data if array.size else b"")
                entry[name] = [start + gap, len(array), array.dtype.str]
        except OSError as error:
            self._fail(error)
        self._entries.append(entry)

    def _fail(self, error: OSError) -> None:
        where = self._writing or self.path or "a temporary file"
        self.close()
        raise DataError(f"cannot write the cache {where}: {error.strerror or error}") from error

    def _open(self) -> None:
        """Map the file, if it is whole and of the same source and key."""
        assert self.path is not None
        try:
            content = np.memmap(self.path, dtype=np.uint8, mode="c").view(np.ndarray)
            tail = len(content) - len(MAGIC) - 8
            if tail < 0 or content[tail + 8 :].tobytes() != MAGIC:
                return
            start = int.from_bytes(content[tail : tail + 8].tobytes(), "little")
            footer = json.loads(content[start:tail].tobytes())
            places = [batch[name] for batch in footer["batches"] for name in ARRAYS if name in batch]
            if any(place + count * np.dtype(kind).itemsize > start for place, count, kind in places):
                return
        except (OSError, ValueError, KeyError, TypeError):
            return  # damaged: as good as none
        if footer["origin"] == json.loads(json.dumps(self._origin)):
            self._map, self._entries, self.meta = content, footer["batches"], footer["meta"]
            self.rows, self.nbytes = footer["rows"], start
            self.ready = True

    def _read(self, entry: dict[str, Any]) -> Rows:
        from scipy.sparse import csr_matrix

        assert self._map is not None
        arrays: dict[str, np.ndarray | None] = dict.fromkeys(ARRAYS)
        for name in ARRAYS:
            if name in entry:
                start, count, kind = entry[name]
                dtype = np.dtype(kind)
                arrays[name] = self._map[start : start + count * dtype.itemsize].view(dtype)
        X = csr_matrix(tuple(entry["shape"]), dtype=arrays["data"].dtype if arrays["data"] is not None else None)
        X.data, X.indices, X.indptr = arrays["data"], arrays["indices"], arrays["indptr"]
        X.has_sorted_indices, X.has_canonical_format = entry["sorted"], entry["canonical"]
        return X, arrays["codes"], arrays["weight"]


def beside(source: Path) -> Path:
    return source.with_name(f".{source.name}.onlearn-cache")


def state_of(path: Path) -> list[Any]:
    """What tells whether a file has changed."""
    try:
        found = path.stat()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return [path.name, found.st_size, found.st_mtime_ns]


def digest(key: Any) -> str:
    return hashlib.blake2b(json.dumps(key, sort_keys=True, default=str).encode(), digest_size=16).hexdigest()
