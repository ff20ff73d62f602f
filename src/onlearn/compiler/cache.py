"""The files that hold compiled code: their folders, their names, and who may have written them.

Whoever can write to a file of machine code, or to the folder that holds it, can run programs as whoever loads it. So
code is loaded, as ``ssh`` loads keys, only from files and folders that belong to the user or to root and that nobody
else can write to. A folder that is refused is named in the log, and the next candidate is used. One that the user
cannot write to, as in an image, is read, and the next is written to. If there is none, every process compiles anew, and
the log says so.

The names carry digests of everything the code depends on, so stale code cannot be loaded: the sources of the compiler
name the folder; the function with the sources of all it calls, the types of its arguments, the processor and the
versions of the compiler name the file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

COMPILER = Path(__file__).parent
PACKAGE = COMPILER.parent
CHECKSUM = 16  # bytes of the digest that a file begins with
SETTINGS_FILE = Path(".numba_config.yaml")  # Numba reads it from the working directory
# The variables that change the code that Numba compiles.
SETTINGS = (
    *("NUMBA_CPU", "NUMBA_OPT", "NUMBA_LOOP", "NUMBA_SLP", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUG"),
    *("NUMBA_ENABLE_AVX", "NUMBA_DISABLE_INTEL"),
)
POSIX = os.name == "posix"  # elsewhere there are no modes to check
log = logging.getLogger("onlearn.compiler")


class UntrustedError(PermissionError):
    """A folder or file that another user could have written."""


# ---------------------------------------------------------------------------------------------------- folders


PRIVATE, SHARED = 0o700, 0o755  # modes of folders
ADVICE = "set NUMBA_CACHE_DIR to a folder that only you can write to"


class Places(NamedTuple):
    """The folders of what is derived from some files."""

    readable: tuple[str, ...]  # in the order in which they are looked into
    writable: str | None  # the last of them


def cache_folder(kind: str = "code", *sources: Path) -> str | None:
    """A writable folder for what is derived from some files, or else from the compiler; None if there is none."""
    return places(kind, *sources).writable


def cache_folders(kind: str = "code", *sources: Path) -> tuple[str, ...]:
    """The folders in which it may be found."""
    return places(kind, *sources).readable


@cache
def places(kind: str, *sources: Path) -> Places:
    """The folders in NUMBA_CACHE_DIR, in the package and in the user's cache, up to the first one that is writable."""
    readable = []
    name = f"{kind}-{digest_of(*sources) if sources else compiler_digest()}"
    for root in _roots():
        folder = root / name
        try:
            # Whoever can write to the package can change its sources, so the folders above it need no check. And code
            # in it may be read by all who may read the sources: in an image these are other users than its maker.
            own = root.parent == PACKAGE
            _make(root, SHARED if own else PRIVATE)
            if not own:
                check_parents(folder)
            _make(folder, SHARED if own else PRIVATE)
            check_folder(folder)
        except UntrustedError as error:
            _warn_once(f"a folder is not used for compiled code: {error}; {ADVICE}")
        except OSError:
            continue
        else:
            readable.append(str(folder))
            if os.access(folder, os.W_OK):
                return Places(tuple(readable), str(folder))
    return Places(tuple(readable), None)


def folder_to_keep() -> str | None:
    """The folder for what is about to be compiled; without one, the log says once what that means."""
    folder = cache_folder()
    if folder is None:
        warn_not_kept(f"{' and '.join(map(str, _roots()))} cannot be written to")
    return folder


def warn_not_kept(why: str) -> None:
    """Say once that later processes have to compile again."""
    _warn_once(f"compiled code is not kept, so every process waits for the compiler: {why}; {ADVICE}")


@cache
def _warn_once(what: str) -> None:
    log.warning("%s", what)


def _make(folder: Path, mode: int) -> None:
    """Make a folder, with those above it, that only the user can write to."""
    if not folder.parent.exists():
        _make(folder.parent, mode)
    folder.mkdir(exist_ok=True, mode=mode)


def subfolder(folder: str | None, name: str) -> str | None:
    """A folder inside a cache folder."""
    if folder is None:
        return None
    inner = Path(folder, name)
    try:
        inner.mkdir(exist_ok=True, mode=0o700)
        check_folder(inner)
    except OSError:
        return None
    return str(inner)


def _roots() -> list[Path]:
    roots = [PACKAGE / "__pycache__"]
    with suppress(RuntimeError):  # there may be no home
        roots.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onlearn")
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        roots.insert(0, Path(chosen))
    return roots


def check_folder(folder: Path) -> None:
    """Raise ``UntrustedError`` unless only the user and root can change what is in a folder, which is no link."""
    if POSIX:
        _check(folder, os.lstat(folder), stat.S_ISDIR)


def check_parents(folder: Path) -> None:
    """Raise ``UntrustedError`` if another user could put something else in the place of a folder.

    Others may write to a folder above it only if that is sticky, as ``/tmp`` is: its entries are then their owners'.
    """
    if POSIX:
        for parent in Path(os.path.realpath(folder.parent), folder.name).parents:
            _check(parent, os.stat(parent), stat.S_ISDIR, sticky=True)


def _check(path: Path, facts: os.stat_result, is_kind: Any, sticky: bool = False) -> None:
    if not is_kind(facts.st_mode):
        raise UntrustedError(f"{path} is a link, or not what it should be")
    if facts.st_uid not in _trusted_owners():
        raise UntrustedError(f"{path} belongs to another user")
    writable = facts.st_mode & stat.S_IWOTH or (facts.st_mode & stat.S_IWGRP and not _is_private(facts.st_gid))
    if writable and not (sticky and facts.st_mode & stat.S_ISVTX):
        raise UntrustedError(f"other users can write to {path}")


def _trusted_owners() -> set[int]:
    # In a user namespace files of root may show as those of nobody; so does the root folder then.
    return {os.geteuid(), 0, os.stat("/").st_uid}


@cache
def _is_private(group: int) -> bool:
    """Whether a group is the user's alone, as where every user has one of the same name and makes folders for it."""
    if group == 0:
        return True
    try:
        import grp
        import pwd

        user, found = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return False
    return group == user.pw_gid and found.gr_name == user.pw_name and set(found.gr_mem) <= {user.pw_name}


# ---------------------------------------------------------------------------------------------------- files


def read(folder: str | Path, name: str) -> bytes:
    """The content of a file that only the user or root can have written; links are not followed."""
    if not POSIX:
        return Path(folder, name).read_bytes()
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check(Path(folder), os.fstat(directory), stat.S_ISDIR)
        with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory), "rb") as file:
            _check(Path(folder, name), os.fstat(file.fileno()), stat.S_ISREG)
            return file.read()
    finally:
        os.close(directory)


def write(folder: str | Path, name: str, content: bytes) -> None:
    """Write a file under a random name that did not exist, and move it into place.

    Whoever may read the folder may read it.
    """
    descriptor, beside = tempfile.mkstemp(suffix=".tmp", dir=folder)
    try:
        if POSIX:
            os.fchmod(descriptor, 0o600 | os.stat(folder).st_mode & 0o044)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(beside, Path(folder, name))
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
        raise


def with_checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECKSUM).digest() + body


def without_checksum(content: bytes) -> bytes | None:
    """What was written with a checksum; None if it is damaged."""
    body = content[CHECKSUM:]
    return body if content == with_checksum(body) else None


# ---------------------------------------------------------------------------------------------------- digests


def compiler_digest() -> str:
    return digest_of(*sorted(COMPILER.glob("*.py")))


@cache
def digest_of(*files: Path) -> str:
    """A digest of the content of some files."""
    digest = hashlib.blake2b(digest_size=8)
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@cache
def host_key() -> bytes:
    """A digest of what code depends on beside its source: the processor, and the compiler with its settings."""
    import llvmlite.binding as llvm

    facts = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)]
    with suppress(RuntimeError):  # LLVM does not know them for every processor
        facts.append(llvm.get_host_cpu_features().flatten())
    with suppress(OSError):
        facts.append(SETTINGS_FILE.read_text())
    facts += [llvm.get_host_cpu_name(), str(object.__basicsize__), _version("numba"), _version("llvmlite")]
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=8).digest()


def _version(package: str) -> str:
    """The version of a package that is not imported."""
    home: Any = find_spec(package)
    try:
        return Path(home.origin).with_name("_version.py").read_text()
    except OSError:
        from importlib.metadata import version  # takes longer than all else here

        return version(package)


def interpreted() -> bool:
    """Whether NUMBA_DISABLE_JIT says that nothing is to be compiled."""
    if SETTINGS_FILE.exists():  # only Numba reads this
        return bool(import_module("numba").config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT") or 0))
    except ValueError:  # as Numba has it
        return False


# A function calls others, perhaps from other files, and reads global constants. Its digest covers the files of all
# functions it reaches and the values of the constants, so code is compiled anew when any of them changes.


@cache
def function_digest(function: Any) -> str | None:
    """The digest of a function; None if it is defined in no file, or has values of an enclosing function."""
    reached = _Reached()
    reached.add(function)
    if reached.unknown:
        return None
    parts = [*sorted(digest_of(file) for file in reached.files if file.parent != COMPILER), *sorted(reached.constants)]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


class _Reached:
    """The files and constants that a function reaches by its globals."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.constants: set[str] = set()
        self.unknown = False
        self._seen: set[Any] = set()

    def add(self, function: Any) -> None:
        function = _python_function(function)
        if function in self._seen:
            return
        self._seen.add(function)
        file = Path(function.__code__.co_filename)
        if function.__closure__ or not file.is_file():
            self.unknown = True
            return
        self.files.add(file)
        for name in _names(function.__code__):
            if name in function.__globals__:
                self._add_value(name, function.__globals__[name])

    def _add_value(self, name: str, value: Any) -> None:
        if _python_function(value) is not None:
            self.add(value)
            if (choose := getattr(value, "choose", None)) is not None:  # of functions for each type
                self.add(choose)
        elif isinstance(value, ModuleType):
            if value.__name__.startswith("onlearn.") and value.__file__:
                self.files.add(Path(value.__file__))
        else:
            self.constants.add(f"{name} = {_described(value)}")


def _python_function(value: Any) -> Any:
    """The Python function behind a decorated one, of ours or of Numba's; None if it is none."""
    for attribute in ("__wrapped__", "py_func"):
        inner = value.__dict__.get(attribute) if hasattr(value, "__dict__") else None
        value = inner if isinstance(inner, FunctionType) else value
    return value if isinstance(value, FunctionType) else None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _described(value: Any) -> str:
    """A constant in words that are the same in every process and for all versions of Python and NumPy."""
    if isinstance(value, np.generic):
        return f"{value.dtype.str} {value.item()!r}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str} {value.shape} {hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest()}"
    if isinstance(value, tuple):
        return f"{type(value).__name__}({', '.join(map(_described, value))})"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value)
    return type(value).__qualname__
