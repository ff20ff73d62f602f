"""How functions are compiled: on first use, for the types of their arguments, and kept on disk for every process after.

The compiler itself is in ``emit`` and not imported before something is to be compiled; what it made is loaded by
``machine``. A function's file is named by a digest of all that it is made of: functions that are ``compiled`` as they
stand may call each other across the files of their package, and so their folder is named by a digest of all of those.
Woven loops have a file of their own that holds all they do (see ``weave``), but for what this file and ``vectors`` add.

``prefetch`` asks the processor for a cache line that a later example will need. Shuffled rows lie anywhere in
memory; without it an epoch mostly waits. Compiled code makes no arrays; for a moment it may have a ``scratch`` of a
few numbers, or ``borrow`` more and ``give_back``.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from onlearn.compiler import object_code
from onlearn.compiler.object_code import Code, Dispatch, Made, Pointer

COMPILER = Path(__file__).parent
PACKAGE = COMPILER.parent

# Sums may be reordered (so that they vectorise) and fused, but NaN and infinity keep their meaning:
# the guards against them rely on it.
REORDER = {"reassoc", "contract", "nsz"}


def _interpreted() -> bool:
    if object_code.SETTINGS.exists():  # only Numba reads this
        return bool(import_module("numba").config.DISABLE_JIT)
    try:
        return bool(int(os.environ.get("NUMBA_DISABLE_JIT") or 0))
    except ValueError:  # as Numba has it
        return False


INTERPRETED = _interpreted()


class Later:
    """A module that is imported when something in it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


ir, types, cgutils = Later("llvmlite.ir"), Later("numba.types"), Later("numba.core.cgutils")  # for intrinsics


@cache
def cache_folder(kind: str = "loops", *sources: Path) -> str | None:
    """A writable folder for code compiled from some files: NUMBA_CACHE_DIR, the package's, the user's, or none."""
    digest = hashlib.blake2b(digest_size=8)
    for source in sources or sorted(COMPILER.glob("*.py")):
        digest.update(source.read_bytes())
    roots = [PACKAGE / "__pycache__"]
    with suppress(RuntimeError):  # there may be no home
        roots.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "onlearn")
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        roots.insert(0, Path(chosen))
    for root in roots:
        folder = root / f"{kind}-{digest.hexdigest()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return str(folder)
        except OSError:
            continue
    return None


class Compiled:
    """A function of numbers, arrays and tuples of them that is compiled for their types when first called with them.

    It makes no arrays and does not raise. So it need not count who uses those it is given, which in a short loop that
    calls others takes longer than all else.
    """

    __wrapped__: Any
    __name__: str

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._options = options
        self._dispatch = Dispatch(self._code)

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatch(arguments)

    def _code(self, arguments: tuple[Any, ...]) -> Code:
        return code(lambda: self.__wrapped__, *_home(self.__wrapped__), arguments, self._options)

    @cached_property
    def _dispatcher(self) -> Any:
        from onlearn.compiler.emit import dispatcher

        return dispatcher(self.__wrapped__, self._options)

    @property
    def _numba_type_(self) -> Any:  # what Numba asks for when a function it compiles calls this one
        return self._dispatcher._numba_type_

    def __reduce__(self) -> str:  # copies, which Numba makes of all that a function names, are the thing itself
        return self.__name__


class Known:
    """A function that compiled ones call, and that Numba is told about when it first compiles one that does."""

    __wrapped__: Any
    __name__: str

    def __init__(self, function: Any, tell: Callable[[Any], Any]) -> None:
        update_wrapper(self, function)
        self._tell = tell

    def __call__(self, *arguments: Any) -> Any:
        return self.__wrapped__(*arguments)

    @cached_property
    def _numba_type_(self) -> Any:
        return self._tell(self.__wrapped__)

    def __reduce__(self) -> str:
        return self.__name__


class Allocating:
    """A function that needs Numba also to run: it makes arrays, or calls what is in Numba's library alone (frexp)."""

    __wrapped__: Any
    __name__: str

    def __init__(self, function: Any) -> None:
        update_wrapper(self, function)

    @cached_property
    def _dispatcher(self) -> Any:
        from onlearn.compiler.emit import allocating

        return allocating(self.__wrapped__, _folder_beside(inspect.getfile(self.__wrapped__)))

    def __call__(self, *arguments: Any) -> Any:
        return self._dispatcher(*arguments)

    @property
    def _numba_type_(self) -> Any:
        return self._dispatcher._numba_type_

    def __reduce__(self) -> str:
        return self.__name__


def compiled(function: Any = None, **options: Any) -> Any:
    """Compile a plain function on first use, and keep it in the disk cache: see ``Compiled``."""
    if function is None:
        return lambda f: compiled(f, **options)
    return function if INTERPRETED else Compiled(function, options)


def allocating(function: Any) -> Any:
    """Like ``compiled``, for a function that makes arrays: see ``Allocating``."""
    return function if INTERPRETED else Allocating(function)


def intrinsic(definition: Any = None, **options: Any) -> Any:
    """A function written in LLVM's language: like Numba's, which is not imported before it is needed."""
    if definition is None:
        return lambda d: intrinsic(d, **options)

    def tell(definition: Any) -> Any:
        from onlearn.compiler.emit import of_intrinsic

        return of_intrinsic(definition, options)

    return Known(definition, tell)


def overloaded(choose: Callable[..., Any], **options: Any) -> Callable[[Any], Any]:
    """A function instead of which compiled ones call what is chosen by the types of its arguments."""

    def tell(function: Any) -> Any:
        from onlearn.compiler.emit import of_overloaded

        return of_overloaded(function, choose, options)

    return lambda function: function if INTERPRETED else Known(function, tell)


def code(
    function: Callable[[], Any], folder: str | None, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> Code:
    """Code for arguments of such types, from disk, or compiled of the function that is then asked for.

    No other function of the folder has the name.
    """

    def compile_now(symbol: str) -> Made:
        from onlearn.compiler.emit import emit

        return emit(symbol, function(), arguments, options)

    results, address = _kept(folder, name, object_code.told(arguments), compile_now)
    return Code(object_code.form_of(arguments), results, address)


def pointer(function: Any, result: str, arguments: tuple[str, ...], keep: bool) -> Pointer:
    """A function that compiled ones call by its address, so that all of one signature are of one type.

    One that is not to be kept may be anything that Numba compiles.
    """

    @cache
    def kind() -> Any:
        from onlearn.compiler.emit import pointer_type

        return pointer_type(result, arguments)

    def compile_now(symbol: str) -> Made:
        from onlearn.compiler.emit import emit_pointer

        return emit_pointer(symbol, function, kind().sig)

    signature = f"{result}({', '.join(arguments)})"
    if keep:
        folder, name = _home(function)
        _, address = _kept(folder, name, signature, compile_now)
    else:
        from onlearn.compiler.emit import own_pointer

        address = own_pointer(function, kind())
    return Pointer(signature, address, kind)


_placed: dict[str, tuple[str, int]] = {}


def _kept(folder: str | None, name: str, arguments: str, compile_now: Callable[[str], Made]) -> tuple[str, int]:
    """What code returns, and the address of its entry; compiled if it is not on disk."""
    with object_code.loading:
        symbol = object_code.symbol_of(name, arguments, folder)
        if symbol in _placed:
            return _placed[symbol]
        short = name.partition(" ")[0]
        file = None if folder is None else Path(folder, f"{short.strip('<>')}-{symbol}.code")
        found = None
        if file is not None:
            with suppress(OSError):
                found = object_code.unpacked(file.read_bytes())
        if found is None:
            found = compile_now(symbol)
            object_code.made.append(short)
            if file is not None:
                with suppress(OSError):  # the disk is full, say: what is compiled serves all the same
                    object_code.write(file, found.packed())
        _placed[symbol] = found.results, object_code.place(symbol, found.code)
        return _placed[symbol]


_anonymous = count()


def _home(function: Any) -> tuple[str | None, str]:
    """The cache folder of a function, and a name that no other in it has.

    One with values of its own from around it is kept nowhere, for its text does not tell them.
    """
    short, made_of, file = function.__qualname__, function.__code__, inspect.getfile(function)
    if function.__closure__:
        return None, f"{short} {next(_anonymous)}"
    plain = [one for one in made_of.co_consts if isinstance(one, (int, float, str, bytes))]
    where = f"{Path(file).name} {made_of.co_firstlineno}"
    return _folder_beside(file), f"{short} {where} {made_of.co_code.hex()} {plain}"


@cache
def _folder_beside(name: str) -> str | None:
    """The cache folder of functions of a file."""
    beside = Path(name).parent.glob("*.py")
    always = {*COMPILER.glob("*.py"), PACKAGE / "data" / "named_rows.py"}  # called from several packages
    return cache_folder("functions", *sorted(always.union(beside)))


def ask(builder: Any, address: Any) -> None:
    """Code that asks for the cache line of an address."""
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
    builder.call(call, [builder.bitcast(address, byte), read, keep, data])


if INTERPRETED:

    def prefetch(array: Any, index: Any) -> None:
        """Interpreted code has no use for it."""

    def scratch(count: int) -> Any:
        return np.empty(count)

    def borrow(count: Any) -> Any:
        return np.zeros(count)

    def give_back(array: Any) -> None:
        """Python looks after its arrays itself."""

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array[index]``; never faults, never waits."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            ask(builder, builder.gep(view.data, [arguments[1]]))
            return target.get_dummy_value()

        return types.void(array, types.uint64), generate

    @intrinsic(prefer_literal=True)
    def scratch(context: Any, count: Any) -> Any:
        """Room for so many numbers, a constant, on the stack: it is there until the function ends."""
        given = count.literal_value

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = cgutils.alloca_once(builder, ir.DoubleType(), size=given)
            return _doubles(target, builder, signature.return_type, data, ir.Constant(ir.IntType(64), given))

        return types.float64[::1](count), generate

    @intrinsic
    def borrow(context: Any, count: Any) -> Any:
        """So many zeros, until they are given back."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, byte = ir.IntType(64), ir.IntType(8).as_pointer()
            calloc = cgutils.get_or_insert_function(builder.module, ir.FunctionType(byte, [word, word]), "calloc")
            room = builder.call(calloc, [arguments[0], ir.Constant(word, 8)])
            with builder.if_then(cgutils.is_null(builder, room), likely=False):
                target.call_conv._return_errcode_raw(builder, ir.Constant(ir.IntType(32), object_code.NO_MEMORY))
            data = builder.bitcast(room, ir.DoubleType().as_pointer())
            return _doubles(target, builder, signature.return_type, data, arguments[0])

        return types.float64[::1](types.int64), generate

    @intrinsic
    def give_back(context: Any, array: Any) -> Any:
        """Return what was borrowed."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            free = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [byte]), "free")
            data = target.make_array(signature.args[0])(target, builder, arguments[0]).data
            builder.call(free, [builder.bitcast(data, byte)])
            return target.get_dummy_value()

        return types.void(array), generate

    def _doubles(target: Any, builder: Any, kind: Any, data: Any, count: Any) -> Any:
        """An array of so many numbers at an address."""
        made, size = target.make_array(kind)(target, builder), ir.Constant(ir.IntType(64), 8)
        fill = import_module("numba.np.arrayobj").populate_array
        fill(made, data=data, shape=[count], strides=[size], itemsize=size, meminfo=None)
        return made._getvalue()
