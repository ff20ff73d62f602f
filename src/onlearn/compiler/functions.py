"""Functions that are compiled on first use, for the types of their arguments, and kept on disk for later processes.

Each kind of function here is callable from Python and from other compiled functions. Neither the compiler nor Numba is
imported before something must be compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple

from onlearn.compiler import cache as files
from onlearn.compiler import object_code, shipped
from onlearn.compiler.backends import attempt, compiling, lock, made
from onlearn.compiler.cache import PACKAGE
from onlearn.compiler.object_code import Call, Code, Dispatch, ObjectFile, Pointer

# Sums may be reordered, so that they vectorise, and fused, but NaN and infinity keep their meaning:
# the guards against them rely on it.
REORDER = {"reassoc", "contract", "nsz"}
INTERPRETED = files.interpreted()


class LazyModule:
    """A module that is imported when something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


ir, types, cgutils = LazyModule("llvmlite.ir"), LazyModule("numba.types"), LazyModule("numba.core.cgutils")


class Identity(NamedTuple):
    """By what the code of a function is filed."""

    name: str  # begins with the function's own, which names its file
    kept: bool  # on disk

    @property
    def short(self) -> str:
        return self.name.partition(" ")[0]


class Replaced:
    """A function that stands for another one, which Numba compiles; copies, which Numba makes, are the thing itself."""

    __wrapped__: Any
    __name__: str

    def __init__(self, function: Any) -> None:
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        return self.__wrapped__(*arguments)

    @cached_property
    def for_numba(self) -> Any:
        """What compiled functions call instead, by Numba's public interface."""
        raise NotImplementedError

    def __reduce__(self) -> str:
        return self.__name__


class Compiled(Replaced):
    """A function of numbers, arrays and tuples of them that is compiled for their types when first called with them.

    It creates no arrays and does not raise. So it need not count references to those it is given, which in a short
    loop that calls other functions takes longer than everything else.
    """

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        super().__init__(function)
        self._options = options
        self._dispatch = Dispatch(self._code)

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatch(arguments)

    def _code(self, arguments: tuple[Any, ...]) -> Call:
        who = identity(self.__wrapped__, self._options)
        return code(lambda: self.__wrapped__, who, arguments, self._options, lambda: self.for_numba)

    @cached_property
    def for_numba(self) -> Any:
        from onlearn.compiler.numba_backend import dispatcher

        return dispatcher(self.__wrapped__, self._options)

    @cached_property
    def _dispatcher(self) -> Any:
        from onlearn.compiler.emit import dispatcher

        return dispatcher(self.__wrapped__, self._options)

    @property
    def _numba_type_(self) -> Any:  # Numba asks for it when a function it compiles calls this one
        return self._dispatcher._numba_type_


class Intrinsic(Replaced):
    """A function written in LLVM's language, which only compiled ones call."""

    def __init__(self, definition: Any, options: dict[str, Any], portable: Any) -> None:
        super().__init__(definition)
        self._options, self._portable = options, portable

    @cached_property
    def in_llvm(self) -> Any:
        from onlearn.compiler.numba_backend import intrinsic

        return intrinsic(self.__wrapped__, self._options)

    @cached_property
    def for_numba(self) -> Any:
        if self._portable is None:
            return self.in_llvm
        from onlearn.compiler.numba_backend import inner

        return inner(self._portable)

    @cached_property
    def _numba_type_(self) -> Any:
        from onlearn.compiler.emit import type_of

        return type_of(self.in_llvm)


class Overloaded(Replaced):
    """A function that compiled ones replace with another one for each type of its arguments."""

    choose: Any

    def __init__(self, function: Any, choose: Any, options: dict[str, Any]) -> None:
        super().__init__(function)
        self.choose, self._options = choose, options

    @cached_property
    def for_numba(self) -> Any:
        from onlearn.compiler.numba_backend import overload

        return overload(self.__wrapped__, self.choose, self._options)

    @cached_property
    def _numba_type_(self) -> Any:
        from onlearn.compiler.emit import type_of

        return type_of(self.for_numba)


class Allocating(Replaced):
    """A function that needs Numba also to run: it creates arrays, or calls functions of Numba's library (frexp)."""

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    @cached_property
    def for_numba(self) -> Any:
        from onlearn.compiler.numba_backend import dispatcher

        return dispatcher(self.__wrapped__, {})

    @cached_property
    def _dispatcher(self) -> Any:
        def fast() -> Any:
            from onlearn.compiler.emit import allocating

            return allocating(self.__wrapped__)

        with lock:
            return attempt(fast, lambda: self.for_numba)

    @property
    def _numba_type_(self) -> Any:
        return self._dispatcher._numba_type_


def compiled(function: Any = None, **options: Any) -> Any:
    """Compile a plain function on first use, and keep it in the disk cache: see ``Compiled``."""
    if function is None:
        return lambda f: compiled(f, **options)
    return function if INTERPRETED else Compiled(function, options)


def allocating(function: Any) -> Any:
    """Like ``compiled``, for a function that creates arrays: see ``Allocating``."""
    return function if INTERPRETED else Allocating(function)


def intrinsic(definition: Any = None, *, portable: Any = None, **options: Any) -> Any:
    """A function written in LLVM's language: like Numba's decorator, without importing Numba.

    ``portable`` is a plain function that is compiled instead where only Numba's public interface is used.
    """
    if definition is None:
        return lambda d: intrinsic(d, portable=portable, **options)
    return Intrinsic(definition, options, portable)


def overloaded(choose: Callable[..., Any], **options: Any) -> Callable[[Any], Any]:
    """A function that compiled ones replace with the one that is chosen by the types of its arguments."""
    return lambda function: function if INTERPRETED else Overloaded(function, choose, options)


# ---------------------------------------------------------------------------------------------------- code


def code(
    function: Callable[[], Any],
    who: Identity,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    for_numba: Callable[[], Any],
) -> Call:
    """Code for arguments of such types: from disk, or compiled of the function, which is asked for only then.

    ``for_numba`` provides the function as Numba compiles and calls it, for the portable backend.
    """

    def fast() -> Call:
        def compile_now(symbol: str) -> ObjectFile:
            from onlearn.compiler.emit import emit

            return emit(symbol, function(), arguments, options)

        results, address = _loaded(who, object_code.type_names(arguments), compile_now)
        return Code(object_code.layout_of(arguments), results, address)

    def portable() -> Call:
        from onlearn.compiler.numba_backend import call

        return call(for_numba(), who.short, arguments, who.kept)

    return attempt(fast, portable)


def pointer(function: Any, result: str, arguments: tuple[str, ...], keep: bool) -> Pointer:
    """A function that compiled ones call by its address, so that all functions of one signature are of one type.

    One that is not to be kept on disk may be anything that Numba compiles.
    """

    @cache
    def type_of() -> Any:
        from onlearn.compiler.emit import pointer_type

        return pointer_type(result, arguments)

    def compile_now(symbol: str) -> ObjectFile:
        from onlearn.compiler.emit import emit_pointer

        return emit_pointer(symbol, function, type_of().sig)

    def fast() -> int:
        who = identity(function, {}) if keep else _anonymous(function)
        return _loaded(who, f"{result}({', '.join(arguments)})", compile_now)[1]

    def portable() -> int:
        from onlearn.compiler.numba_backend import address

        return address(function, result, arguments, keep)

    with lock:  # a user's function may create arrays; that it then takes the portable way is nothing to report
        return Pointer(result, arguments, attempt(fast, portable, silent=not keep), type_of)


_addresses: dict[str, tuple[str, int]] = {}


def _loaded(who: Identity, types: str, compile_now: Callable[[str], ObjectFile]) -> tuple[str, int]:
    """The format of what code returns, and the address of its entry; compiled if it is not on disk."""
    with lock:
        known = f"{who.name} {types}"
        if known not in _addresses:
            _addresses[known] = (
                _shipped(who, types) or _found(who, types) or _compiled(who, _symbol(who, types), compile_now)
            )
        return _addresses[known]


def _shipped(who: Identity, types: str) -> tuple[str, int] | None:
    for level in shipped.levels() if who.kept else ():
        symbol = _symbol(who, types, level)
        content = shipped.read(level, _file_name(who, symbol))
        if content is not None:
            return _linked(symbol, content)
    return None


def _found(who: Identity, types: str) -> tuple[str, int] | None:
    if not who.kept or shipped.destination.folder is not None:
        return None
    symbol = _symbol(who, types)
    for folder in files.cache_folders():
        with suppress(OSError):
            if (linked := _linked(symbol, files.read(folder, _file_name(who, symbol)))) is not None:
                return linked
    return None


def _linked(symbol: str, content: bytes) -> tuple[str, int] | None:
    found = object_code.unpacked(content)
    with suppress(RuntimeError):  # it is compiled anew then
        if found is not None:
            return found.results, object_code.link(symbol, found.code)
    return None


def _compiled(who: Identity, symbol: str, compile_now: Callable[[str], ObjectFile]) -> tuple[str, int]:
    shipping = shipped.destination
    folder = files.folder_to_keep() if who.kept and shipping.folder is None else None
    with compiling(folder is not None):
        new = compile_now(symbol)
        address = object_code.link(symbol, new.code)
    if who.kept:
        made.append(who.short)
        if shipping.folder is not None:
            (shipping.folder / shipping.level / _file_name(who, symbol)).write_bytes(new.packed())
    if folder is not None:
        try:
            files.write(folder, _file_name(who, symbol), new.packed())
        except OSError as error:  # the disk is full, say: what is compiled serves all the same
            files.warn_not_kept(f"{folder}: {error.strerror}")
    return new.results, address


def _symbol(who: Identity, types: str, level: str = "") -> str:
    """The symbol of the entry of code for such arguments, for this processor or a level of processors.

    No other object file of this process has it.
    """
    level = level or shipped.destination.level
    key = shipped.key(level) if level else files.host_key()
    digest = hashlib.blake2b(f"{who.name} {types} {files.compiler_digest()}".encode(), digest_size=12, key=key)
    return f"onlearn_{digest.hexdigest()}"


def _file_name(who: Identity, symbol: str) -> str:
    return f"{who.short.strip('<>')}-{symbol}.code"


_numbers = count()


def _anonymous(function: Any) -> Identity:
    return Identity(f"{function.__qualname__} {next(_numbers)}", False)


def identity(function: Any, options: dict[str, Any]) -> Identity:
    """By what the code of a function is filed; not at all if its sources do not show all it depends on."""
    made_of, digest = function.__code__, files.function_digest(function)
    if digest is None:
        return _anonymous(function)
    described = {name: sorted(value) if isinstance(value, set) else value for name, value in options.items()}
    where = f"{function.__module__} {made_of.co_firstlineno}"
    if not made_of.co_filename.startswith(str(PACKAGE)):  # two of the same name may begin in one line
        where += f" {made_of.co_code.hex()} {[one for one in made_of.co_consts if not hasattr(one, 'co_code')]}"
    return Identity(f"{function.__qualname__} {where} {digest} {sorted(described.items())}", True)
