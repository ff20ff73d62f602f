"""Calling compiled code without its compiler: loading object files, and passing arguments to them.

Numba takes a fifth of a second to import and to get ready, which a command that finds everything compiled need not
wait for. So what Numba compiles (see ``emit``) is kept as an object file of machine code that needs nothing of Numba.
Its entry is a C function of two addresses: the *slots* with the arguments, and the buffer for what it returns. LLVM's
linker, a small part of llvmlite, loads it.

A slot has eight bytes: the value of a number, or the address of a NumPy array's object, where the entry finds data,
shape and strides. A tuple has the slots of its members.

The linker ends the process if an object file needs a symbol that does not exist. So the symbols of every file are read
and looked up first, also those that LLVM itself adds (``memset``, ``pow``), which its intermediate code does not name.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.compiler import cache as files
from onlearn.compiler.backends import lock, made

__all__ = ["made"]  # for others; the rest is the compiler's own

# The flags of an array that code depends on: C and Fortran order, aligned, writeable.
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
FLAGS = C_ORDER | F_ORDER | ALIGNED | WRITEABLE
DIMENSIONS = 16  # the number of dimensions is kept above the flags, from this bit on
NO_MEMORY = 77  # the status of code that could not allocate memory; Numba's own are far from it

Types = tuple[Any, ...]


class LinkError(RuntimeError):
    """Object code that cannot be loaded into this process."""


class Pointer:
    """The address of a compiled function that others call; ``type_of`` returns the type it has for Numba."""

    result: str
    arguments: tuple[str, ...]
    address: int

    def __init__(self, result: str, arguments: tuple[str, ...], address: int, type_of: Callable[[], Any]) -> None:
        self.result, self.arguments, self.address, self._type_of = result, arguments, address, type_of
        self.signature: str = f"{result}({', '.join(arguments)})"

    def __index__(self) -> int:
        return self.address

    @property
    def _numba_type_(self) -> Any:
        return self._type_of()


class Call(Protocol):
    """Code for arguments of some types, whichever backend made it."""

    def __call__(self, slots: list[Any], arguments: tuple[Any, ...]) -> Any:
        """What the code returns for these arguments; ``slots`` holds what goes into their slots."""

    def bind(self, slots: list[Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
        """A function without arguments that calls the code with these, again and again."""


class Code:
    """An entry, ready to be called."""

    def __init__(self, layout: str, results: str, address: int) -> None:
        self.pack = struct.Struct(layout).pack
        self.address = address
        self.call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)(address)
        self.returns_tuple: bool = results.startswith("(")
        self.results = struct.Struct(results.strip("()"))
        self.buffer = ctypes.c_char * self.results.size

    def __call__(self, slots: list[Any], arguments: tuple[Any, ...]) -> Any:
        if not self.results.size:
            status, values = self.call(self.pack(*slots), None), None
        else:
            buffer = self.buffer()
            status = self.call(self.pack(*slots), buffer)
            values = self.results.unpack(buffer)
        if status:
            _refuse_status(status)
        return values if self.returns_tuple else values[0] if values else None

    def bind(self, slots: list[Any], arguments: tuple[Any, ...]) -> Callable[[], Any]:
        # Python's lock is kept: to give it back would take as long as such a short call.
        entry = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self.address)
        packed, buffer, unpack = ctypes.create_string_buffer(self.pack(*slots)), self.buffer(), self.results.unpack
        where, results = ctypes.c_void_p(ctypes.addressof(packed)), ctypes.c_void_p(ctypes.addressof(buffer))

        def call_for_all(kept: Any = (arguments, packed)) -> Any:  # which the slots point to
            if status := entry(where, results):
                _refuse_status(status)
            return unpack(buffer) or None

        def call_for_one(kept: Any = (arguments, packed)) -> Any:
            if status := entry(where, results):
                _refuse_status(status)
            return unpack(buffer)[0]

        return call_for_one if self.results.size and not self.returns_tuple else call_for_all


def _refuse_status(status: int) -> None:
    if status == NO_MEMORY:
        raise MemoryError("there is not enough memory to go on")
    raise RuntimeError(f"compiled code ended with status {status}")


class Dispatch:
    """Calls the code for the types of the arguments; ``find(arguments)`` provides it at their first call."""

    def __init__(self, find: Callable[[tuple[Any, ...]], Call]) -> None:
        self.find = find
        self.known: dict[Types, Call] = {}

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        code, slots = self._code(arguments)
        return code(slots, arguments)

    def bind(self, arguments: tuple[Any, ...]) -> Callable[[], Any]:
        """A function without arguments that calls the code with these very objects."""
        code, slots = self._code(arguments)
        return code.bind(slots, arguments)

    def _code(self, arguments: tuple[Any, ...]) -> tuple[Call, list[Any]]:
        types: list[Any] = []
        slots: list[Any] = []
        flatten(arguments, types, slots)
        code = self.known.get(key := tuple(types))
        if code is None:
            with lock:
                code = self.known.get(key)
                if code is None:
                    check_slots(arguments, slots)
                    code = self.find(arguments)
                self.known[key] = code
        return code, slots


def flatten(arguments: tuple[Any, ...], types: list[Any], slots: list[Any]) -> None:
    """Append the types of the arguments, as far as code depends on them, and what goes into their slots."""
    for one in arguments:
        kind = type(one)
        if kind is np.ndarray or isinstance(one, np.ndarray):
            if kind is not np.ndarray:  # Numba does not take all
                types.append(kind)
            types.append(one.dtype)
            types.append(one.flags.num & FLAGS | one.ndim << DIMENSIONS)
            slots.append(id(one))
        elif isinstance(one, tuple):
            types.append(kind)
            types.append(len(one))
            flatten(one, types, slots)
        else:
            types.append(one.signature if kind is Pointer else kind)
            if one is not None:
                slots.append(one)


def check_slots(arguments: tuple[Any, ...], slots: list[Any]) -> None:
    """Refuse numbers that do not fit into a slot, before code is compiled: Numba would take them for another type."""
    try:
        struct.pack(layout_of(arguments), *slots)
    except struct.error as error:
        raise OverflowError(f"a whole number is too large for compiled code: {error}") from None


def layout_of(arguments: tuple[Any, ...]) -> str:
    """The format, as of ``struct``, of the slots of these arguments."""
    return "".join(map(_format, arguments))


def _format(one: Any) -> str:
    if isinstance(one, tuple):
        return layout_of(one)
    if one is None:
        return ""
    if isinstance(one, (np.ndarray, Pointer)):
        return "Q"
    if isinstance(one, (bool, np.bool_)):
        return "?7x"
    if isinstance(one, (float, np.floating)):
        return "d"
    return "Q" if isinstance(one, np.unsignedinteger) else "q"


def type_names(arguments: tuple[Any, ...]) -> str:
    """The names of the arguments' types, by which code for them is filed; types with the same code share a name."""
    return ",".join(map(_type_name, arguments))


def _type_name(one: Any) -> str:
    if isinstance(one, np.ndarray):
        flags = one.flags.num
        order = "C" if flags & C_ORDER else "F" if flags & F_ORDER else "A"
        access = ("" if flags & ALIGNED else "u") + ("" if flags & WRITEABLE else "r")
        dtype = one.dtype.str if one.dtype.names is None else str(one.dtype.descr)
        subclass = "" if type(one) is np.ndarray else _class_name(one)
        return f"{subclass}{dtype}{one.ndim}{order}{access}"
    if isinstance(one, tuple):
        name = "" if type(one) is tuple else f"{_class_name(one)}{getattr(one, '_fields', '')}"
        return f"{name}({type_names(one)})"
    if isinstance(one, np.generic):
        return one.dtype.str
    return one.signature if isinstance(one, Pointer) else _class_name(one)


def _class_name(one: Any) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


# ---------------------------------------------------------------------------------------------------- object files


class ObjectFile(NamedTuple):
    """Compiled code."""

    results: str  # the format of what the entry returns; in parentheses if that is a tuple
    code: bytes

    def packed(self) -> bytes:
        """The content of a file."""
        return files.with_checksum(f"{self.results}\n".encode() + self.code)


def unpacked(content: bytes) -> ObjectFile | None:
    """The object code in a file; None if the file is damaged, or needs symbols that this process does not have."""
    body = files.without_checksum(content)
    if body is None:
        return None
    results, _, code = body.partition(b"\n")
    try:
        return None if missing_symbols(code) else ObjectFile(results.decode(), code)
    except LinkError:
        return None


def missing_symbols(code: bytes) -> list[str]:
    """The symbols that an object file needs and this process does not have."""
    return [name for name in undefined_symbols(code) if not is_resolvable(name)]


def is_resolvable(name: str) -> bool:
    """Whether a function is in this process, and would be there without Numba."""
    import llvmlite.binding as llvm

    return not name.startswith(("NRT_", "numba", "_numba")) and bool(llvm.address_of_symbol(name))


# The ELF format: offsets and layouts in the header of a 64-bit little-endian file, in section headers and in symbols.
MAGIC = b"\x7fELF\x02\x01"
SECTIONS_AT, SECTION_COUNT_AT = 40, 58
SECTION, SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
SYMBOL_TABLE = 2  # a section's type


def undefined_symbols(code: bytes) -> list[str]:
    """The names of the symbols that an object file uses and does not define."""
    if not code.startswith(MAGIC):
        raise LinkError("the object file is not of 64-bit little-endian ELF")
    try:
        (first,) = struct.unpack_from("<Q", code, SECTIONS_AT)
        size, count = struct.unpack_from("<HH", code, SECTION_COUNT_AT)
        sections = [SECTION.unpack_from(code, first + n * size) for n in range(count)]
        found = []
        for _, kind, _, _, start, length, names, *_ in sections:
            if kind != SYMBOL_TABLE:
                continue
            strings = sections[names][4]
            for name, _, _, section, _, _ in SYMBOL.iter_unpack(code[start : start + length]):
                if section == 0 and name:
                    begin = strings + name
                    found.append(code[begin : code.index(b"\0", begin)].decode())
        return found
    except (struct.error, IndexError, ValueError) as error:
        raise LinkError(f"the object file cannot be read: {error}") from None


def link(symbol: str, code: bytes) -> int:
    """Load code into the process; returns the address of its entry."""
    if missing := missing_symbols(code):
        raise LinkError(f"compiled code needs {', '.join(missing)}, which this process does not have")
    import llvmlite.binding as llvm

    linker = _linker()
    linker.add_object_file(llvm.ObjectFileRef.from_data(code))
    linker.finalize_object()
    address = int(linker.get_function_address(symbol))
    if not address:
        raise LinkError(f"compiled code has no entry {symbol}")
    return address


@cache
def _linker() -> Any:
    """LLVM's linker, which owns the memory that the code is in. One for all: another one takes a millisecond."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
