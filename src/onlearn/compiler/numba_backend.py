"""Compiling and calling with Numba's public interface alone.

It takes longer to start than object code, for Numba must be imported and made ready even if everything is compiled;
the loops themselves are the same. Compiled functions refer to others by the names of our own objects, which Numba does
not know. So each is compiled with globals in which Numba's objects are in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numba
from numba import extending, types

from onlearn.compiler.backends import compiling, lock, made
from onlearn.compiler.cache import (
    cache_folder,
    cache_folders,
    folder_to_keep,
    function_digest,
    subfolder,
    warn_not_kept,
)
from onlearn.compiler.functions import Replaced
from onlearn.compiler.object_code import Call, Pointer

Result = TypeVar("Result")
OPTIONS = {"nogil": True, "error_model": "numpy"}


def dispatcher(function: Any, options: dict[str, Any], digest: str | None = None) -> Any:
    """A function as Numba compiles and calls it, kept on disk if it has a digest of all it depends on."""
    with disk_cache(digest or function_digest(function)) as keep:
        return numba.njit(cache=keep, **OPTIONS, **options)(with_numba_globals(function))


def with_numba_globals(function: Any) -> Any:
    """The function, with Numba's objects instead of ours among its globals."""
    space = dict(function.__globals__)
    changed = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    changed.__qualname__, changed.__module__ = function.__qualname__, function.__module__
    for name in _names(function.__code__):
        value = space.get(name)
        if isinstance(value, Replaced) and value.__wrapped__ is not function:
            space[name] = value.for_numba
    return changed


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@contextmanager
def disk_cache(digest: str | None) -> Iterator[bool]:
    """Have Numba keep what is decorated in here in a folder of its own; yields whether there is one.

    Numba sees changes of a function's own file alone. The folder is named by all that the function depends on, so
    what is in it cannot be stale. Numba reads the setting when a function is decorated; a user's own compiled functions
    keep their place.
    """
    base = None if digest is None else folder_to_keep()
    folder = subfolder(base, f"numba-{digest}")
    if base is not None and folder is None:
        warn_not_kept(f"{base} cannot be written to")
    with lock:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder or before
        try:
            yield folder is not None
        finally:
            numba.config.CACHE_DIR = before


def call(compiled: Any, name: str, arguments: tuple[Any, ...], kept: bool) -> Call:
    """What calls a function for arguments of such types; it is compiled, or found on disk, now."""
    with lock:
        folder, hits = compiled.stats.cache_path, sum(compiled.stats.cache_hits.values())
        found = folder is not None and any(Path(folder).glob("*.nbi"))
        with compiling(kept and folder is not None and not found):
            kinds = tuple(numba.typeof(_for_numba(one)) for one in arguments)
            _tried(lambda _: compiled.compile(kinds))
        if kept and sum(compiled.stats.cache_hits.values()) == hits:
            made.append(name)

    return _Compiled(compiled)


ATTEMPTS = 100  # more than functions that call one another


def _tried(attempt: Callable[[bool], Result]) -> Result:
    """What an attempt to compile returns; it is told whether it is the first.

    Numba ends with an error if a file cannot be written, though the code is in memory by then, where the next attempt
    finds it; and if a file is damaged, that of the function itself or of one it calls. Then all of them are removed.
    """
    repaired = False
    for number in range(ATTEMPTS):
        try:
            return attempt(not number)
        except OSError as error:
            warn_not_kept(f"{cache_folder()}: {error.strerror or error}")
        except Exception as error:
            source = type(error).__module__.partition(".")[0] == "numba"  # is what the error is about
            if source or repaired or not _remove_compiled():
                raise
            repaired = True
    return attempt(False)


def _remove_compiled() -> bool:
    """Remove what Numba has kept; whether there was any."""
    found = [file for folder in cache_folders() for file in Path(folder).glob("numba-*/**/*.nb[ic]")]
    for file in found:
        with suppress(OSError):
            file.unlink()
    return bool(found)


class _Compiled:
    """A function that Numba has compiled; it takes the arguments themselves, not their slots."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, slots: list[Any], arguments: tuple[Any, ...]) -> Any:
        return self.function(*map(_for_numba, arguments))

    def bind(self, slots: list[Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
        return partial(self.function, *map(_for_numba, arguments))


# ---------------------------------------------------------------------------------------------------- functions called


def intrinsic(definition: Any, options: dict[str, Any]) -> Any:
    """A function in LLVM's language, as compiled ones call it."""
    return extending.intrinsic(**options)(definition) if options else extending.intrinsic(definition)


def inner(function: Any) -> Any:
    """A plain function, as compiled ones call it."""
    return numba.njit(**OPTIONS)(function)


def overload(function: Any, choose: Any, options: dict[str, Any]) -> Any:
    """A function that is another one for each type, as compiled ones call it."""
    extending.overload(function, jit_options=options, inline="always")(choose)
    return function


# ---------------------------------------------------------------------------------------------------- pointers


class _Address(types.WrapperAddressProtocol):
    """A function of a known address, which Numba takes as an argument."""

    def __init__(self, pointer: Pointer) -> None:
        self.pointer = pointer

    def __wrapper_address__(self) -> int:
        return self.pointer.address

    def signature(self) -> Any:
        return signature_of(self.pointer.result, self.pointer.arguments)


def _for_numba(argument: Any) -> Any:
    return _Address(argument) if isinstance(argument, Pointer) else argument


@cache
def signature_of(result: str, arguments: tuple[str, ...]) -> Any:
    """The signature of a function; its parts are spelled ``float64``, ``float64[]``."""
    kinds = [getattr(types, name.removesuffix("[]")) for name in (result, *arguments)]
    first, *rest = (
        kind[::1] if name.endswith("[]") else kind for kind, name in zip(kinds, (result, *arguments), strict=True)
    )
    return first(*rest)


_callbacks: list[Any] = []  # Numba itself does not keep them


def _callback(function: Any, signature: Any, keep: bool) -> Any:
    return numba.cfunc(signature, cache=keep, error_model="numpy")(with_numba_globals(function))


def address(function: Any, result: str, arguments: tuple[str, ...], keep: bool) -> int:
    """The address of a function that compiled ones call."""
    with disk_cache(function_digest(function) if keep else None) as kept, compiling(kept):
        made_here = _tried(lambda first: _callback(function, signature_of(result, arguments), kept and first))
    _callbacks.append(made_here)
    return int(made_here.address)
