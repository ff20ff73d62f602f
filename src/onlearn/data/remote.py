"""Files that are named by URLs, such as ``s3://bucket/a.csv``, read through fsspec, which is imported for them only.

Credentials and options of a file system are those of its package, from the environment or from fsspec's configuration.
"""

from __future__ import annotations

import contextlib
import glob
import io
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from onlearn.data.bad_rows import DataError

URL = re.compile(r"[a-z][a-z0-9+.-]+(::|://)", re.IGNORECASE)  # one letter is a drive of Windows
BUFFER = 8 << 20  # bytes of a request, at least
# What file systems call the time of a file, or a digest of it.
FACTS = ("mtime", "created", "LastModified", "Last-Modified", "last_modified", "updated", "ETag", "etag", "md5Hash")


def is_url(name: str) -> bool:
    """Whether a name is a URL and not a path.

    >>> is_url("s3://bucket/a.csv"), is_url("simplecache::https://host/a.csv"), is_url("folder/a.csv"), is_url("C://a")
    (True, True, False, False)
    """
    return URL.match(name) is not None


def path_in(url: str) -> PurePosixPath:
    """The path of a URL, for its name and extensions.

    >>> path_in("https://host/folder/a.csv.gz?key=1.5").name
    'a.csv.gz'
    """
    path = url.rpartition("://")[2]
    return PurePosixPath(path.partition("?")[0] if is_http(url) else path)


def is_http(url: str) -> bool:
    """Whether a URL is read by HTTP, where a ? begins a query and is no pattern."""
    return re.search(r"(^|::)https?://", url, re.IGNORECASE) is not None


def urls(name: str) -> list[str]:
    """The files that a URL or a pattern of URLs stands for; refuses what is no file."""
    system, path = file_system(name)
    with refusing(name):
        if not (glob.has_magic(path) if not is_http(name) else "*" in path) or system.exists(path):
            if system.isdir(path) and not system.isfile(path):
                raise DataError(f"{name} is a directory: name a file in it, or a pattern such as {name.rstrip('/')}/*")
            if not system.exists(path):
                raise DataError(f"{name} does not exist")
            return [name]
        found = sorted(one for one, facts in system.glob(path, detail=True).items() if facts["type"] == "file")
        if not found:
            raise DataError(f"no file matches {name}")
        chain = name.rpartition("::")[0]
        return [f"{chain}::{system.unstrip_protocol(one)}" if chain else system.unstrip_protocol(one) for one in found]


class RemoteFile(io.RawIOBase):
    """An open file of a URL, which reads some megabytes at a time, and refuses in one sentence."""

    def __init__(self, url: str) -> None:
        super().__init__()
        system, path = file_system(url)
        self._url = url
        with refusing(url):
            self._file = system.open(path, "rb", block_size=BUFFER)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, view: Any) -> int:
        with refusing(self._url):
            return int(self._file.readinto(view) or 0)

    def seek(self, offset: int, whence: int = 0) -> int:
        with refusing(self._url):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def size_of(url: str) -> int | None:
    """The bytes of a file; None if the server does not say."""
    system, path = file_system(url)
    with refusing(url):
        size = system.info(path).get("size")
        return None if size is None else int(size)


def state_of_url(url: str) -> list[Any]:
    """The name of a file, and what its file system says about it that changes if the file does."""
    system, path = file_system(url)
    with refusing(url):
        system.invalidate_cache(path)
        facts = system.info(path)
        return [path_in(url).name, facts.get("size"), *(str(facts[fact]) for fact in FACTS if facts.get(fact))]


def bytes_of(url: str, start: int, stop: int) -> bytes:
    """Some bytes of a file."""
    system, path = file_system(url)
    with refusing(url):
        found = bytes(system.cat_file(path, start=start, end=stop))
        if len(found) > stop - start:
            raise DataError(f"{url} cannot be cut: its server gives whole files only")
        return found


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise DataError(f"{url} is a URL, which only fsspec can read: pip install fsspec") from error
    with refusing(url):
        system, path = url_to_fs(url)
        return system, str(path)


@contextlib.contextmanager
def refusing(url: str) -> Iterator[None]:
    """Turn what file systems raise into one sentence. Each has exceptions of its own."""
    try:
        yield
    except DataError:
        raise
    except ImportError as error:
        raise DataError(f"{url} cannot be read: {first_line(error)}") from error
    except FileNotFoundError as error:
        raise DataError(f"{url} does not exist") from error
    except PermissionError as error:
        raise DataError(f"{url} cannot be read: permission denied") from error
    except Exception as error:
        raise DataError(f"{url} cannot be read: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """The first line of what an exception says, or its name."""
    said = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(said).splitlines()[0].rstrip(".")
