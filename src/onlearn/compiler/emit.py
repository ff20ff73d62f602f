"""Compiling with Numba's private parts: from a function and its argument types to an object file that needs no Numba.

The object file holds the function that Numba compiles and an *entry* that takes arguments as ``object_code`` passes
them. Numba's own entry, which takes Python objects, would need Numba's library at run time.

Whatever here fails because a part of Numba has changed is done by ``numba_backend`` instead: see ``backends``.
"""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.np.arrayobj import populate_array

from onlearn.compiler import object_code
from onlearn.compiler.backends import made
from onlearn.compiler.cache import function_digest
from onlearn.compiler.numba_backend import OPTIONS, disk_cache, signature_of
from onlearn.compiler.object_code import LinkError, ObjectFile

NO_RUNTIME = {"_nrt": False}  # without Numba's library: arrays are not created, nor references to them counted
WORD, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
HEADER = object.__basicsize__  # of Python objects; NumPy's arrays go on with data, dimensions, shape and strides
DATA, SHAPE, STRIDES = HEADER, HEADER + 16, HEADER + 24


class _Lowering(_FunctionCompiler):
    """Numba's compiler, without the wrappers that call the function from Python and C."""

    def _customize_flags(self, flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags


def dispatcher(function: Any, options: dict[str, Any]) -> Any:
    """The function as other compiled ones call it."""
    return numba.njit(**OPTIONS, **NO_RUNTIME, **options, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def type_of(registered: Any) -> Any:
    """The type that a function which is registered with Numba has for it."""
    cpu_target.typing_context.refresh()
    return cpu_target.typing_context.resolve_value_type(registered)


@global_compiler_lock
def emit(symbol: str, function: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> ObjectFile:
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
    return ObjectFile(results, _object(library, module, symbol))


@global_compiler_lock
def emit_pointer(symbol: str, function: Any, kind: Any) -> ObjectFile:
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
    return ObjectFile("", _object(lowered.library, module, symbol))


def pointer_type(result: str, arguments: tuple[str, ...]) -> Any:
    """The type of a function that compiled ones call by its address."""
    return types.ExternalFunctionPointer(signature_of(result, arguments), index)


def _lowered(function: Any, kinds: Any, returned: Any, options: dict[str, Any]) -> Any:
    return _Lowering(
        function, cpu_target, {"nopython": True, **OPTIONS, **NO_RUNTIME, **options}, {}, Compiler
    ).compile(tuple(kinds), returned)


def _object(library: Any, entry: Any, symbol: str) -> bytes:
    """The object file of a library with an entry; an error if it needs functions that not every process has.

    This is what Numba does to finish a library, except for loading it. All names but the entry's are made local, so
    that they cannot be mistaken for those of other object files.
    """
    library.add_ir_module(entry)
    module = library._final_module
    for other in dict.fromkeys(library._linking_libraries):
        module.link_in(other._get_module_for_linking(), preserve=True)
    library._optimize_final_module()
    module.verify()
    for one in (*module.functions, *module.global_variables):
        if one.name.startswith("numba.dynamic"):
            raise LinkError(f"compiled code of {library.name} holds an address of this process")
        if not one.is_declaration and one.name != symbol:
            one.linkage = "internal"
    code = bytes(library._codegen._tm.emit_object(module))
    if missing := object_code.missing_symbols(code):
        raise LinkError(f"compiled code of {library.name} needs {', '.join(missing)}, which only Numba's library has")
    return code


class _Slots:
    """Reads values of given types from the slots, one after another."""

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
            where = builder.add(address, ir.Constant(WORD, offset))
            return builder.load(builder.inttoptr(where, pointee.as_pointer().as_pointer()))

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


def _store(target: Any, builder: Any, kind: Any, value: Any, buffer: Any) -> str:
    """Store what a function returns; the format, as of ``struct``, in parentheses if it is a tuple."""
    if isinstance(kind, types.NoneType):
        return ""
    is_tuple = isinstance(kind, types.BaseTuple)
    parts = list(zip(kind, cgutils.unpack_tuple(builder, value))) if is_tuple else [(kind, value)]
    words = builder.bitcast(buffer, WORD.as_pointer())
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
    return f"({letters})" if is_tuple else letters


# ---------------------------------------------------------------------------------------- with Numba's library


class QuickCache(FunctionCache):
    """Numba's disk cache, which does not prepare the compiler for a function that is compiled already.

    To prepare it takes a third of a second, more than anything else between the start of a process and its first
    example. What is not in the cache is compiled, and the compiler prepares itself then.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # compiled code allocates memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        made.append(self._name)
        with suppress(OSError):  # the disk is full, say: what is compiled serves all the same
            super().save_overload(sig, data)


def allocating(function: Any) -> Any:
    """A function that creates arrays, as Numba compiles, keeps and calls it."""
    compiler = numba.njit(**OPTIONS)(function)
    with disk_cache(function_digest(function)) as keep:
        if keep:
            compiler._cache = QuickCache(function)
    return compiler
