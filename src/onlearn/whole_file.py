"""Files that appear whole: written beside their place and renamed when complete, so nobody ever sees half of one.

A process that is killed leaves what it was writing. A process that writes holds a lock on its file, which ends with it,
however it ends: so the next one that writes to the same place knows the leftovers by this, that they can be locked, and
removes them. It need not know which processes there are, here or in other containers.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LONG = 24 * 3600  # seconds since the last change after which a file is a leftover, where files cannot be locked


class FileBeside:
    """A new file in the folder of ``target``, locked while it is written, which ``replace`` puts in its place.

    Its name is random and it must be new, so a link that someone places in a shared folder is never followed.
    """

    def __init__(self, target: Path) -> None:
        self.target: Path = target
        remove_leftovers(target)
        while True:
            handle, name = tempfile.mkstemp(suffix=".tmp", prefix=f"{_hidden(target)}.", dir=target.parent)
            self.path: Path = Path(name)
            self.handle: int = handle
            with contextlib.suppress(OSError):  # a file system may have no locks
                _lock(handle, wait=True)
            if os.fstat(handle).st_nlink or fcntl is None:
                break
            os.close(handle)  # before it was locked, it was taken for a leftover
        if fcntl is None:  # Windows renames no open file
            self._close()

    def open(self) -> IO[bytes]:
        """The file to write to; closing it keeps it locked."""
        return open(self.handle, "wb", closefd=False) if self.handle >= 0 else open(self.path, "wb")

    def replace(self) -> None:
        """Put it in the place of the target."""
        os.replace(self.path, self.target)
        self._close()  # only now: what is not locked is a leftover

    def discard(self) -> None:
        """Remove it."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        self._close()

    def _close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
        self.handle = -1


def _hidden(target: Path) -> str:
    """The name of the target as that of a hidden file."""
    return f".{target.name.removeprefix('.')}"


def remove_leftovers(target: Path) -> None:
    """Remove what processes that have ended were writing for the same target; only our own files."""
    pattern = re.compile(rf"{re.escape(_hidden(target))}\.\w{{8}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # neither links nor pipes
    handle = os.open(path, flags)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
            return
        try:
            _lock(handle, wait=False)
        except BlockingIOError:
            return
        except OSError:
            if time.time() - found.st_mtime < LONG:
                return
        if fcntl is not None:
            os.unlink(path)
    finally:
        os.close(handle)
    if fcntl is None:
        os.unlink(path)


def _lock(handle: int, wait: bool) -> None:
    """Lock an open file until it is closed; an ``OSError`` where there are no locks."""
    if fcntl is None:
        raise OSError("there are no locks")
    fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file beside its place, then rename it."""
    with whole_file(path) as temporary:
        Path(temporary).write_bytes(content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name of a file to write, beside its place; renamed when that went well."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a directory, not a file to write to")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no directory {target.parent} to write {target.name} to")
    try:
        beside = FileBeside(target)
    except OSError as error:
        raise _about(target, error) from error
    temporary = str(beside.path)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(target))
        beside.replace()
    except BaseException as error:
        beside.discard()
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, temporary):
            raise _about(target, error) from error
        raise


def _about(target: Path, error: OSError) -> OSError:
    """The error as one about the target: the temporary name is nobody's business."""
    return OSError(error.errno, f"cannot be written: {error.strerror}", str(target))


def _mode(target: Path) -> int:
    """The permissions of a file that is replaced, or those of a new one: what was private stays so."""
    with contextlib.suppress(OSError):
        found = target.lstat()
        if stat.S_ISREG(found.st_mode):
            return stat.S_IMODE(found.st_mode)
    return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
