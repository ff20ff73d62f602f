"""How the loops are compiled: the disk cache, and prefetching.

Numba's disk cache notices only that the file of the compiled function itself has changed. A woven loop's file holds
all that it does (see ``weave``), so that is enough; but for what this file, the weaver and ``vectors`` add to it, and
so the cache folder is named by a digest of these three. Functions that are ``compiled`` as they stand may call each
other across the files of their package, and so their folder is named by a digest of all of those.

``prefetch`` asks the processor for a cache line that a later example will need. Shuffled rows lie anywhere in
memory; without it an epoch mostly waits.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils, sigutils
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.runtime import rtsys
from numba.experimental import function_type  # noqa: F401  (a compiled function as an argument: known by this import)
from numba.extending import intrinsic

INTERPRETED = bool(numba.config.DISABLE_JIT)

# Sums may be reordered (so that they vectorise) and fused, but NaN and infinity keep their meaning:
# the guards against them rely on it.
REORDER = {"reassoc", "contract", "nsz"}


@cache
def cache_folder(kind: str = "loops", *sources: Path) -> str | None:
    """A writable folder for code compiled from some files: NUMBA_CACHE_DIR, the package's, the user's, or none."""
    package = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for source in sources or (package / "compile.py", package / "vectors.py", package / "weave.py"):
        digest.update(source.read_bytes())
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    roots = [package / "__pycache__", user / "onlearn"]
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
        with suppress(OSError):  # the disk is full, say: what is compiled serves all the same
            super().save_overload(sig, data)


def jit(function: Any, folder_of: tuple[Any, ...] = (), **options: Any) -> Any:
    """Compile a function on first use, and keep it in our cache folder (of a kind and files)."""
    made = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if not INTERPRETED:
        _keep(made, function, cache_folder(*folder_of))
    return made


def pointer(function: Any, signature: Any, keep: bool) -> Any:
    """A function compiled for C's way of calling, so that all of one signature are of one type."""
    made = CFunc(function, sigutils.normalize_signature(signature), {}, {"error_model": "numpy"})
    _keep(made, function, cache_folder() if keep else None)
    made.compile()
    return made


def _keep(made: Any, function: Any, folder: str | None) -> None:
    """Have compiled code kept in a folder.

    Numba reads the folder from a process-wide setting when the cache is made. It is set only for that moment, so that
    a user's own compiled functions keep their place.
    """
    if folder is None:
        return
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        with suppress(RuntimeError):  # there is no file of it
            made._cache = QuickCache(function)
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: Any) -> Any:
    """Compile a plain function of scalars and arrays on first use, and keep it in the disk cache.

    It makes no arrays. So it need not count who uses those it is given, which in a short loop that calls others takes
    longer than all else.
    """
    return jit(function, _beside(function), _nrt=False)


def allocating(function: Any) -> Any:
    """Like ``compiled``, for a function that makes arrays."""
    return jit(function, _beside(function))


def _beside(function: Any) -> tuple[Any, ...]:
    """The kind of cache folder of a function, and the files it may be made of."""
    return _made_of(inspect.getfile(function))


@cache
def _made_of(name: str) -> tuple[Any, ...]:
    file, package = Path(name), Path(__file__).parent
    beside = file.parent.glob("*.py") if file.parent != package else [file]
    return ("functions", *sorted({package / "compile.py", package / "hashing.py", *beside}))


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

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array[index]``; never faults, never waits."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            ask(builder, builder.gep(view.data, [arguments[1]]))
            return target.get_dummy_value()

        return types.void(array, types.uint64), generate
