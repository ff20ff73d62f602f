"""Parsed rows that are kept from run to run, in a file beside the source or in a folder of one's choice.

The file holds what a format made of each piece of the source, before any features: arrays at multiples of 64 bytes,
and at the end a JSON footer that says where they are and what they were made from. It is used only if that is so
still: the same files (size, time, inode), the same options, the same code. Each piece has a checksum, for a file that
is damaged must not be learned from. Nothing here can make a run fail: what cannot be kept or used is parsed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from onlearn.data.packing import pack, restored, squeezed, unpack
from onlearn.data.registry import Parsed, readers
from onlearn.data.sources import Source
from onlearn.threads import ahead

MAGIC = b"onlearn rows 1\n\n"
ALIGNMENT = 64
TAIL = 8 + 4 + len(MAGIC)  # where the footer starts, its checksum, and the magic word

Piece = tuple[int, Parsed, int]  # the number of its source, the rows, and how far into the sources they reach


class DamagedError(Exception):
    """The file does not hold what was written."""


class Kept:
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
        self._entries: list[dict[str, Any]] = []
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
            with open(self.path, "rb") as file:
                found = os.fstat(file.fileno())
                if hasattr(os, "getuid") and found.st_uid not in (os.getuid(), self._paths[0].stat().st_uid):
                    return False  # somebody else's
                file.seek(-TAIL, os.SEEK_END)
                tail = file.read()
                start, check = int.from_bytes(tail[:8], "little"), int.from_bytes(tail[8:12], "little")
                file.seek(start)
                raw = file.read(found.st_size - start - TAIL)
            if tail[12:] != MAGIC or zlib.crc32(raw) != check:
                return False
            footer = json.loads(raw)
            if footer["origin"] != self._origin:
                return False
        except (OSError, ValueError, KeyError, TypeError):
            return False  # there is none, or it is damaged: as good as none
        self.notes, self.found, self._entries = footer["notes"], footer["found"], footer["pieces"]
        return True

    def pieces(self, workers: int) -> Iterator[Piece]:
        """All that was kept, in order; raises ``DamagedError`` at a piece that is not what was written."""
        assert self.path is not None
        self.used, self.said = True, f"reused {self.path}"
        try:
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115 (open while threads read)
        except OSError as error:
            raise DamagedError from error
        try:
            yield from ahead(self._entries, lambda entry: read_piece(file.fileno(), entry), workers)
        finally:
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
            facts, arrays = packed
            start = self._file.tell()
            check, places = 0, {}
            for name, array in arrays.items():
                how, stored = squeezed(array)
                gap = bytes(-self._file.tell() % ALIGNMENT)
                raw = stored.view(np.uint8).data if stored.size else b""
                how["at"] = self._file.tell() + len(gap) - start
                self._file.write(gap)
                self._file.write(raw)
                check, places[name] = zlib.crc32(raw, check), how
            size = self._file.tell() - start
            entry = {"source": source, "position": position, "start": start, "size": size, "check": check}
            self._entries.append({**entry, "facts": facts, "arrays": places})
            self._file.write(bytes(-size % ALIGNMENT))

    def finish(self, notes: list[str], found: dict[str, Any]) -> None:
        """All is there: put the file into its place."""
        if self._file is None or self._writing is None or self.path is None:
            return
        with self._or_not():
            if self._state() != self._origin:
                self._abandon("not kept: the data changed while they were read")
                return
            footer = {"origin": self._origin, "notes": notes, "found": found, "pieces": self._entries}
            raw = json.dumps(footer).encode()
            start = self._file.tell()
            self._file.write(raw + start.to_bytes(8, "little") + zlib.crc32(raw).to_bytes(4, "little") + MAGIC)
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
        """Open a file beside its place that only those may read who may read the sources."""
        assert self.path is not None
        remove_left_over(self.path)
        need = sum(path.stat().st_size for path in self._paths)
        if shutil.disk_usage(self.path.parent).free < 2 * need:
            raise OSError("there is little room on the disk")
        rights = 0o666
        for path in self._paths:
            rights &= path.stat().st_mode
        self._writing = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        self._file = open(os.open(self._writing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, rights | 0o200), "wb")  # noqa: SIM115

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


def read_piece(file: int, entry: dict[str, Any]) -> Piece:
    """One piece of an open file; by ``pread``, so that several threads may."""
    try:
        raw = np.empty(entry["size"], dtype=np.uint8)
        if os.preadv(file, [raw.data], entry["start"]) != len(raw):
            raise DamagedError
        check, arrays = 0, {}
        for name, how in entry["arrays"].items():
            kind = np.dtype(how.get("stored", how["dtype"]))
            count = 0 if "same" in how else how["count"] - ("first" in how)
            stored = raw[how["at"] : how["at"] + count * kind.itemsize]
            check = zlib.crc32(stored.data, check)
            arrays[name] = how, stored.view(kind)
        if check != entry["check"]:
            raise DamagedError
    except OSError as error:
        raise DamagedError from error
    parsed = unpack(entry["facts"], {name: restored(how, stored) for name, (how, stored) in arrays.items()})
    return entry["source"], parsed, entry["position"]


def place(paths: list[Path], folder: str | os.PathLike[str] | None) -> Path:
    """Where rows of some files are kept: one place for the same files, whatever the options."""
    name = paths[0].name
    if len(paths) > 1 or folder is not None:
        several = hashlib.blake2b("\0".join(str(path.resolve()) for path in paths).encode(), digest_size=6)
        name += f"-{several.hexdigest()}"
    return (paths[0].parent if folder is None else Path(folder)) / f".{name}.onlearn-cache"


def remove_left_over(path: Path) -> None:
    """Remove what a run that was killed has left: half a file, under the number of a process that is no more."""
    pattern = re.compile(re.escape(path.name) + r"\.(\d+)\.tmp")
    for other in os.scandir(path.parent):
        if (found := pattern.fullmatch(other.name)) is None:
            continue
        try:
            os.kill(int(found[1]), 0)
        except ProcessLookupError:
            with contextlib.suppress(OSError):
                os.unlink(other.path)
        except OSError:
            pass  # it lives, under another user


@cache
def code() -> str:
    """A digest of the code that reads, so that rows of another version are not taken for those of this one."""
    digest = hashlib.blake2b(digest_size=16)
    package = Path(__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
