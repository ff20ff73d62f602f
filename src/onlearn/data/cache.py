"""The cache of sparse batches for the passes of one run: in memory up to a size, else in a temporary file.

The file holds the arrays one after another, each at a multiple of 64 bytes, and is mapped into memory when it is
complete. ``row_store`` holds rows for later runs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from onlearn.data.bad_rows import DataError
from onlearn.engine.csr import CSR

ALIGNMENT = 64
MEMORY = 512 << 20
ROOM = 128 << 20  # bytes of rows that are contiguous in memory
ARRAYS = ("data", "indices", "indptr", "codes", "weight")

Rows = tuple[Any, "np.ndarray | None", "np.ndarray | None"]


class Cache:
    """Stores sparse batches: ``append`` them, call ``finish``, and iterate over them as often as needed.

    Beyond ``memory`` bytes they go to a temporary file, which ``close`` removes.

    >>> import scipy.sparse as sp
    >>> with Cache() as cache:
    ...     cache.append(sp.csr_matrix([[0.0, 1.0], [2.0, 0.0]]), np.array([0, 1]))
    ...     cache.finish()
    ...     [(X.shape, codes.tolist(), weight) for X, codes, weight in cache]
    [((2, 2), [0, 1], None)]
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self.memory: int = memory
        self.ready: bool = False
        self.rows: int = 0
        self.nbytes: int = 0
        self.path: Path | None = None
        self._held: list[Rows] = []
        self._rooms: tuple[_Room, _Room] | None = None
        self._entries: list[dict[str, Any]] = []
        self._file: IO[bytes] | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._map: np.ndarray | None = None

    def append(self, X: Any, codes: np.ndarray | None = None, weight: np.ndarray | None = None) -> None:
        """Add a ``csr_matrix`` (or a ``CSR``), with labels (codes or numbers) and weights of its rows."""
        if self.ready:
            raise ValueError("the cache is complete: nothing can be added")
        self.rows += X.shape[0]
        self.nbytes += sum(array.nbytes for array in (X.data, X.indices, X.indptr, codes, weight) if array is not None)
        if self._file is None and self.nbytes <= self.memory:
            self._held.append((self._contiguous(X), codes, weight))
            return
        try:
            if self._file is None:
                self._temporary = tempfile.TemporaryDirectory(prefix="onlearn-")
                self.path = Path(self._temporary.name) / "cache"
                self._file = open(self.path, "wb")  # noqa: SIM115 (open until it is complete)
                for held in self._held:
                    self._write(*held)
                self._held, self._rooms = [], None
            self._write(X, codes, weight)
        except OSError as error:
            self._fail(error)

    def finish(self) -> None:
        """Complete the cache, so that it can be read."""
        if self._file is not None and self.path is not None:
            try:
                self._file.close()
                self._map = np.memmap(self.path, dtype=np.uint8, mode="c").view(np.ndarray)
            except OSError as error:
                self._fail(error)
            except ValueError:  # a file without a byte cannot be mapped
                self._map = np.empty(0, dtype=np.uint8)
            self._file = None
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
        """Free the memory and remove the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._held, self._rooms, self._map, self.ready = [], None, None, False
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None

    def _contiguous(self, X: Any) -> Any:
        """The matrix, with its arrays copied behind those of earlier matrices."""
        if self._rooms is None:
            each = min(self.memory, ROOM) // max(1, X.data.itemsize + X.indices.itemsize)
            self._rooms = _Room(each, X.data.dtype), _Room(each, X.indices.dtype)
        data, indices = (room.take(array) for room, array in zip(self._rooms, (X.data, X.indices)))
        if isinstance(X, CSR):
            return replace(X, data=data, indices=indices)
        X.data, X.indices = data, indices
        return X

    def _write(self, X: Any, codes: np.ndarray | None, weight: np.ndarray | None) -> None:
        entry: dict[str, Any] = {"shape": X.shape, "ours": isinstance(X, CSR)}
        if isinstance(X, CSR):
            entry["unique"], entry["finite"] = X.unique, X.finite
        assert self._file is not None
        for name, array in zip(ARRAYS, (X.data, X.indices, X.indptr, codes, weight)):
            if array is None:
                continue
            array = np.ascontiguousarray(array)
            start = self._file.tell()
            gap = -start % ALIGNMENT
            self._file.write(bytes(gap))
            self._file.write(array.view(np.uint8).data if array.size else b"")
            entry[name] = start + gap, len(array), array.dtype
        self._entries.append(entry)

    def _fail(self, error: OSError) -> None:
        where = self.path or "in a temporary folder"
        self.close()
        raise DataError(f"cannot write the cache {where}: {error.strerror or error}") from error

    def _read(self, entry: dict[str, Any]) -> Rows:
        assert self._map is not None
        arrays: dict[str, np.ndarray | None] = dict.fromkeys(ARRAYS)
        for name in ARRAYS:
            if name in entry:
                start, count, dtype = entry[name]
                arrays[name] = self._map[start : start + count * dtype.itemsize].view(dtype)
        flags = {name: entry[name] for name in ("unique", "finite") if name in entry}
        data, indices, indptr = (cast(np.ndarray, arrays[name]) for name in ("data", "indices", "indptr"))
        X = CSR(data, indices, indptr, entry["shape"], **flags)
        return X if entry["ours"] else X.to_scipy(), arrays["codes"], arrays["weight"]


class _Room:
    """Memory in which arrays are copied one behind another, so that they form one array without another copy.

    Pages of it that are never written take no memory.
    """

    def __init__(self, size: int, dtype: Any) -> None:
        self.room: np.ndarray = np.empty(size, dtype)
        self.used: int = 0

    def take(self, array: np.ndarray) -> np.ndarray:
        """The copy of an array, or the array itself if it does not fit."""
        stop = self.used + len(array)
        if array.dtype != self.room.dtype or stop > len(self.room):
            return array
        place = self.room[self.used : stop]
        place[:] = array
        self.used = stop
        return place
