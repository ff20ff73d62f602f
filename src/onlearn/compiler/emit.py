"""Compiling with Numba: from a function and the types of its arguments to an object file that needs no Numba.

Beside the function Numba compiled stands an *entry* that takes arguments as ``machine`` hands them over. Numba's own,
which makes them of Python's objects, would need Numba's library at run time.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from operator import index
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.typing import signature
from numba.extending import intrinsic, overload
from numba.np.arrayobj import populate_array

from onlearn.compiler import object_code
from onlearn.compiler.object_code import Made

OPTIONS = {"nogil": True, "error_model": "numpy"}
FREE = {"_nrt": False}  # of Numba's library: arrays are neither made nor are those who use them counted
WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
_alive: list[Any] = []  # Numba itself does not keep what it made
HEADER = object.__basicsize__  # of Python's objects; behind it NumPy's arrays have data, number, shape and strides
DATA, SHAPE, STRIDES = HEADER, HEADER + 16, HEADER + 24


class _Lowering(_FunctionCompiler):
    """Numba's compiler up to the point where it would make what calls the function from Python."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags


def dispatcher(function: Any, options: dict[str, Any]) -> Any:
    """What compiled functions know this one as that they call."""
    return numba.njit(**OPTIONS, **FREE, **options, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def of_intrinsic(definition: Any, options: dict[str, Any]) -> Any:
    """What compiled functions know code as that is written in LLVM's language."""
    return _registered(intrinsic(**options)(definition) if options else intrinsic(definition))


def of_overloaded(function: Any, choose: Any, options: dict[str, Any]) -> Any:
    """What compiled functions know a function as that is another one for each type."""
    overload(function, jit_options=options, inline="always")(choose)
    return _registered(function)


def _registered(made: Any) -> Any:
    _alive.append(made)
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(made)


@global_compiler_lock
def emit(symbol: str, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Made:
    """Machine code of a function for such arguments, whose entry has this symbol."""
    kinds = tuple(numba.typeof(one) for one in arguments)
    lowered = _lowered(function, kinds, None, options)
    target, library, returned = cpu_target.target_context, lowered.library, lowered.signature.return_type
    module = target.create_module("entry")
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [BYTES, BYTES]), symbol)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    slots = _Slots(target, builder, entry.args[0])
    values = [slots.value(kind) for kind in kinds]
    callee = target.declare_function(module, lowered.fndesc)
    status, value = target.call_conv.call_function(builder, callee, returned, lowered.fndesc.argtypes, values)
    with builder.if_then(status.is_ok):
        results = _store(target, builder, returned, value, entry.args[1])
    builder.ret(status.code)
    return Made(results, *_object(library, module, symbol))


@global_compiler_lock
def emit_pointer(symbol: str, function: Any, kind: Any) -> Made:
    """The same for a function that compiled ones call by its address; where it raises, it returns NaN."""
    lowered = _lowered(function, kind.args, kind.return_type, {})
    target = cpu_target.target_context
    module = target.create_module("pointer")
    result, *given = (target.get_value_type(one) for one in (kind.return_type, *kind.args))
    entry = ir.Function(module, ir.FunctionType(result, given), symbol)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    callee = target.declare_function(module, lowered.fndesc)
    status, value = target.call_conv.call_function(builder, callee, kind.return_type, kind.args, entry.args)
    builder.ret(builder.select(status.is_ok, value, ir.Constant(result, float("nan"))))
    return Made("", *_object(lowered.library, module, symbol))


def pointer_type(result: str, arguments: tuple[str, ...]) -> Any:
    """The type of a function that compiled ones call by its address; parts are spelled ``float64``, ``float64[]``."""
    parts = [numba.float64[::1] if name.endswith("[]") else getattr(types, name) for name in (result, *arguments)]
    return types.ExternalFunctionPointer(signature(*parts), index)


def own_pointer(function: Any, kind: Any) -> int:
    """The address of a function that is not kept; one that may need Numba's library is called as Numba has it."""
    symbol = f"onlearn_own_{next(_numbers)}"
    try:
        return object_code.place(symbol, emit_pointer(symbol, function, kind.sig).code)
    except (TypeError, NumbaError):
        made: Any = CFunc(function, (kind.sig.args, kind.sig.return_type), {}, {"error_model": "numpy"})
        made.compile()
        _alive.append(made)
        return int(made.address)


_numbers = count()


def _lowered(function: Any, kinds: Any, returned: Any, options: dict[str, Any]) -> Any:
    return _Lowering(function, cpu_target, {"nopython": True, **OPTIONS, **FREE, **options}, {}, Compiler).compile(
        tuple(kinds), returned
    )


def _object(library: Any, entry: Any, symbol: str) -> tuple[list[str], bytes]:
    """What a library and the module of its entry call, and machine code; an error if that is not in every process.

    What Numba does to make a library ready, but for putting it in its place. All names but the entry's are hidden, so
    that they cannot be taken for those of other object files.
    """
    library.add_ir_module(entry)
    module = library._final_module
    for other in dict.fromkeys(library._linking_libraries):
        module.link_in(other._get_module_for_linking(), preserve=True)
    library._optimize_final_module()
    module.verify()
    needs = []
    for one in (*module.functions, *module.global_variables):
        if one.name.startswith("numba.dynamic"):  # an address of this process
            needs.append(one.name)
        elif not one.is_declaration:
            one.linkage = one.linkage if one.name == symbol else "internal"
        elif not one.name.startswith("llvm."):
            needs.append(one.name)
    if missing := [name for name in needs if not object_code.is_here(name)]:
        raise TypeError(
            f"compiled code of {library.name} needs {', '.join(missing)}, which is in Numba's library alone"
        )
    return needs, bytes(library._codegen._tm.emit_object(module))


class _Slots:
    """Makes values of the types at hand of what is in the slots, one after another."""

    def __init__(self, target: Any, builder: Any, address: Any) -> None:
        self.target, self.builder = target, builder
        self.words = builder.bitcast(address, WORD.as_pointer())
        self.used = 0

    def value(self, kind: Any) -> Any:
        target, builder = self.target, self.builder
        if isinstance(kind, types.BaseTuple):
            return target.make_tuple(builder, kind, [self.value(one) for one in kind])
        if isinstance(kind, types.NoneType):
            return target.get_dummy_value()
        word = builder.load(builder.gep(self.words, [ir.Constant(WORD, self.used)]))
        self.used += 1
        if isinstance(kind, types.Array):
            return self.array(kind, word)
        if isinstance(kind, types.ExternalFunctionPointer):
            return builder.inttoptr(word, target.get_value_type(kind))
        if isinstance(kind, types.Boolean):
            return builder.icmp_unsigned("!=", word, ir.Constant(WORD, 0))
        if isinstance(kind, types.Integer):
            return builder.trunc(word, ir.IntType(kind.bitwidth)) if kind.bitwidth < 64 else word
        if isinstance(kind, types.Float):
            double = builder.bitcast(word, ir.DoubleType())
            return double if kind.bitwidth == 64 else builder.fptrunc(double, ir.FloatType())
        raise TypeError(f"compiled functions take numbers, arrays and tuples of them, not {kind}")

    def array(self, kind: Any, address: Any) -> Any:
        target, builder = self.target, self.builder
        made = target.make_array(kind)(target, builder)

        def field(offset: int, pointee: Any) -> Any:
            place = builder.add(address, ir.Constant(WORD, offset))
            return builder.load(builder.inttoptr(place, pointee.as_pointer().as_pointer()))

        def numbers(offset: int) -> Any:
            first = field(offset, WORD)
            return [builder.load(builder.gep(first, [ir.Constant(WORD, n)])) for n in range(kind.ndim)]

        populate_array(
            made,
            data=field(DATA, target.get_data_type(kind.dtype)),
            shape=numbers(SHAPE),
            strides=numbers(STRIDES),
            itemsize=target.get_constant(types.intp, target.get_abi_sizeof(target.get_data_type(kind.dtype))),
            meminfo=None,
        )
        return made._getvalue()


def _store(target: Any, builder: Any, kind: Any, value: Any, room: Any) -> str:
    """Store what a function returns; how it is packed, in parentheses if it is a tuple."""
    if isinstance(kind, types.NoneType):
        return ""
    several = isinstance(kind, types.BaseTuple)
    parts = list(zip(kind, cgutils.unpack_tuple(builder, value))) if several else [(kind, value)]
    words = builder.bitcast(room, WORD.as_pointer())
    letters = ""
    for n, (one, part) in enumerate(parts):
        if isinstance(one, types.Boolean):
            word, letter = builder.zext(part, WORD), "?7x"
        elif isinstance(one, types.Integer):
            extend = builder.sext if one.signed else builder.zext
            word, letter = extend(part, WORD) if one.bitwidth < 64 else part, "q" if one.signed else "Q"
        elif isinstance(one, types.Float):
            double = part if one.bitwidth == 64 else builder.fpext(part, ir.DoubleType())
            word, letter = builder.bitcast(double, WORD), "d"
        else:
            raise TypeError(f"compiled functions return numbers and tuples of them, not {kind}")
        builder.store(word, builder.gep(words, [ir.Constant(WORD, n)]))
        letters += letter
    return f"({letters})" if several else letters


# ------------------------------------------------------------------ functions that make arrays, which need Numba to run


class QuickCache(FunctionCache):
    """Numba's disk cache, without making the compiler ready for a function that is compiled already.

    That takes a third of a second, more than anything else between the start of a process and its first example. What
    is not in the cache is compiled, and the compiler makes itself ready then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # compiled code allocates memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        object_code.made.append(self._name)
        with suppress(OSError):  # the disk is full, say: what is compiled serves all the same
            super().save_overload(sig, data)


def allocating(function: Any, folder: str | None) -> Any:
    """A function as Numba compiles and calls it, kept in a folder.

    Numba reads the folder from a process-wide setting when the cache is made. It is set only for that moment, so that
    a user's own compiled functions keep their place.
    """
    compiler = numba.njit(**OPTIONS)(function)
    if folder is not None:
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = folder
        try:
            with suppress(RuntimeError):  # there is no file of it
                compiler._cache = QuickCache(function)
        finally:
            numba.config.CACHE_DIR = before
    return compiler
