"""Compiled code without its compiler: loading it, and calling it.

Numba takes a fifth of a second to import and make ready, which a command that finds everything compiled need not wait
for. So what Numba compiles (see ``emit``) is kept as an object file of machine code that needs nothing of Numba: its
entry is a C function of two addresses, the *slots* with the arguments and the room for what it returns. LLVM's linker,
a small part of llvmlite, puts it in its place.

Eight bytes a slot: of a number its value, of an array the address of NumPy's object, where the entry finds data, shape
and strides; of tuples those of their members.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# What is told of an array's flags: C and Fortran order, aligned, writeable.
C_ORDER, F_ORDER, ALIGNED, WRITEABLE = 0x1, 0x2, 0x100, 0x400
TOLD = C_ORDER | F_ORDER | ALIGNED | WRITEABLE
DIMENSIONS = 16  # bits by which their number stands above the flags
CHECK = 16  # bytes of the digest that tells a damaged file
# How Numba is told about the processor, and how to compile.
TELLING = (
    *("NUMBA_CPU", "NUMBA_OPT", "NUMBA_LOOP", "NUMBA_SLP", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUG"),
    *("NUMBA_ENABLE_AVX", "NUMBA_DISABLE_INTEL"),
)
SETTINGS = Path(".numba_config.yaml")  # where Numba looks, too
NO_MEMORY = 77  # the status of code that could not borrow memory; Numba's own are far from it

Kinds = tuple[Any, ...]
made: list[str] = []  # the names of functions that this process compiled because none before it had
loading = threading.RLock()  # threads that share out rows meet new code at the same moment


class Pointer:
    """The address of a compiled function that others call; ``type_of`` says what Numba knows it as."""

    def __init__(self, signature: str, address: int, type_of: Callable[[], Any]) -> None:
        self.signature, self.address, self._type_of = signature, address, type_of

    def __index__(self) -> int:
        return self.address

    @property
    def _numba_type_(self) -> Any:
        return self._type_of()


class Code:
    """An entry, ready to be called."""

    def __init__(self, form: str, results: str, address: int) -> None:
        self.pack = struct.Struct(form).pack
        self.call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_void_p)(address)
        self.several = results.startswith("(")
        self.results = struct.Struct(results.strip("()"))
        self.room = ctypes.c_char * self.results.size

    def __call__(self, slots: list[Any]) -> Any:
        if not self.results.size:
            status, found = self.call(self.pack(*slots), None), None
        else:
            room = self.room()
            status = self.call(self.pack(*slots), room)
            found = self.results.unpack(room)
        if status == NO_MEMORY:
            raise MemoryError("there is not enough memory to go on")
        if status:
            raise RuntimeError(f"compiled code ended with status {status}")
        return found if self.several else found[0] if found else None


class Dispatch:
    """Calls the code for the kinds of the arguments; ``find(arguments)`` is asked for it at their first call."""

    def __init__(self, find: Callable[[tuple[Any, ...]], Code]) -> None:
        self.find = find
        self.known: dict[Kinds, Code] = {}

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        kinds: list[Any] = []
        slots: list[Any] = []
        walk(arguments, kinds, slots)
        code = self.known.get(key := tuple(kinds))
        if code is None:
            with loading:
                code = self.known.get(key)
                if code is None:
                    check(arguments, slots)
                    code = self.find(arguments)
                self.known[key] = code
        return code(slots)


def walk(arguments: tuple[Any, ...], kinds: list[Any], slots: list[Any]) -> None:
    """What the arguments are, as far as the code depends on it, and what goes into the slots for them."""
    for one in arguments:
        kind = type(one)
        if kind is np.ndarray or isinstance(one, np.ndarray):
            if kind is not np.ndarray:  # Numba does not take all
                kinds.append(kind)
            kinds.append(one.dtype)
            kinds.append(one.flags.num & TOLD | one.ndim << DIMENSIONS)
            slots.append(id(one))
        elif isinstance(one, tuple):
            kinds.append(kind)
            kinds.append(len(one))
            walk(one, kinds, slots)
        else:
            kinds.append(one.signature if kind is Pointer else kind)
            if one is not None:
                slots.append(one)


def check(arguments: tuple[Any, ...], slots: list[Any]) -> None:
    """Refuse numbers that do not fit into a slot, before code is made for them: Numba would think of another type."""
    try:
        struct.pack(form_of(arguments), *slots)
    except struct.error as error:
        raise OverflowError(f"a whole number is too large for compiled code: {error}") from None


def form_of(arguments: tuple[Any, ...]) -> str:
    """How the slots of these arguments are packed."""
    return "".join(map(_letters, arguments))


def _letters(one: Any) -> str:
    if isinstance(one, tuple):
        return form_of(one)
    if one is None:
        return ""
    if isinstance(one, (np.ndarray, Pointer)):
        return "Q"
    if isinstance(one, (bool, np.bool_)):
        return "?7x"
    if isinstance(one, (float, np.floating)):
        return "d"
    return "Q" if isinstance(one, np.unsignedinteger) else "q"


def told(arguments: tuple[Any, ...]) -> str:
    """The kinds of arguments in words, by which code for them is filed: what makes no difference has one name."""
    return ",".join(map(_word, arguments))


def _word(one: Any) -> str:
    if isinstance(one, np.ndarray):
        flags = one.flags.num
        order = "C" if flags & C_ORDER else "F" if flags & F_ORDER else "A"
        fit = ("" if flags & ALIGNED else "u") + ("" if flags & WRITEABLE else "r")
        dtype = one.dtype.str if one.dtype.names is None else str(one.dtype.descr)
        made_by = "" if type(one) is np.ndarray else _class(one)
        return f"{made_by}{dtype}{one.ndim}{order}{fit}"
    if isinstance(one, tuple):
        name = "" if type(one) is tuple else f"{_class(one)}{getattr(one, '_fields', '')}"
        return f"{name}({told(one)})"
    if isinstance(one, np.generic):
        return one.dtype.str
    return one.signature if isinstance(one, Pointer) else _class(one)


def _class(one: Any) -> str:
    return f"{type(one).__module__}.{type(one).__qualname__}"


# ---------------------------------------------------------------------------------------------------- files


@cache
def made_for() -> bytes:
    """What compiled code depends on beside its source: the processor, who compiles, and how that was told to."""
    import llvmlite.binding as llvm

    told = [f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith(TELLING)]
    with suppress(RuntimeError):  # LLVM does not know them for every processor
        told.append(llvm.get_host_cpu_features().flatten())
    with suppress(OSError):
        told.append(SETTINGS.read_text())
    told += [llvm.get_host_cpu_name(), str(object.__basicsize__), _version("numba"), _version("llvmlite")]
    return hashlib.blake2b("\n".join(told).encode(), digest_size=8).digest()


def _version(package: str) -> str:
    """The version of a package that is not imported."""
    home: Any = find_spec(package)
    try:
        return Path(home.origin).with_name("_version.py").read_text()
    except OSError:
        from importlib.metadata import version  # takes longer than all else here

        return version(package)


def symbol_of(name: str, arguments: str, folder: str | None) -> str:
    """The symbol of the entry of code for such arguments; it is in no other object file of this process."""
    digest = hashlib.blake2b(f"{name} {arguments} {folder}".encode(), digest_size=12, key=made_for())
    return f"onlearn_{digest.hexdigest()}"


class Made(NamedTuple):
    """What was compiled."""

    results: str  # how the entry packs what it returns; in parentheses: a tuple
    needs: list[str]  # functions of the C library that the code calls
    code: bytes

    def packed(self) -> bytes:
        """The content of a file."""
        body = f"{self.results}\n{' '.join(self.needs)}\n".encode() + self.code
        return hashlib.blake2b(body, digest_size=CHECK).digest() + body


def unpacked(content: bytes) -> Made | None:
    """What is in a file; None if it is damaged, or calls what this process has not."""
    body = content[CHECK:]
    if content[:CHECK] != hashlib.blake2b(body, digest_size=CHECK).digest():
        return None
    results, needs, code = body.split(b"\n", 2)
    made = Made(results.decode(), needs.decode().split(), code)
    return made if all(map(is_here, made.needs)) else None


def is_here(name: str) -> bool:
    """Whether a function is in this process, and would be without Numba."""
    import llvmlite.binding as llvm

    return not name.startswith(("NRT_", "numba", "_numba")) and bool(llvm.address_of_symbol(name))


def write(file: Path, content: bytes) -> None:
    """Write a file beside its place and move it there."""
    beside = file.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        beside.write_bytes(content)
        os.replace(beside, file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def place(symbol: str, code: bytes) -> int:
    """Put code in its place; the address of its entry."""
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return int(engine.get_function_address(symbol))


@cache
def _engine() -> Any:
    """LLVM's linker, which owns the memory that the code is in. One for all: to make another takes a millisecond."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
