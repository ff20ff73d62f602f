"""How the loops are compiled: the disk cache, and prefetching.

Numba's disk cache notices only that the file of the compiled function itself has changed. A woven loop's file holds
all that it does (see ``weave``), so that is enough; but for what this file and the weaver add to it, and so the cache
folder is named by a digest of these two. Functions that are ``compiled`` as they stand may call each other across
the files of their package, and so their folder is named by a digest of all of those.

``prefetch`` asks the processor for a cache line that a later example will need. Shuffled rows lie anywhere in
memory; without it an epoch mostly waits. ``add_rows`` is the inner loop of scoring several outputs, in vectors: LLVM
makes none of the plain loop, for it cannot know that the arrays are apart and that a handful of outputs is worth it.
"""

from __future__ import annotations

import hashlib
import inspect
import os
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
    for source in sources or (package / "compile.py", package / "weave.py"):
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
        made._cache = QuickCache(function)
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: Any) -> Any:
    """Compile a plain function of scalars and arrays on first use, and keep it in the disk cache."""
    file = Path(inspect.getfile(function))
    package = Path(__file__).parent
    beside = file.parent.glob("*.py") if file.parent != package else [file]
    sources = sorted({package / "compile.py", package / "hashing.py", *beside})
    return jit(function, ("functions", *sources))


if INTERPRETED:

    def prefetch(array: Any, index: Any) -> None:
        """Interpreted code has no use for it."""

    def add_rows(out: Any, w: Any, places: Any, factors: Any) -> None:
        """out += factors[0] * w[places[0]:] + ... + factors[3] * w[places[3]:], over the length of out."""
        for place, factor in zip(places, factors, strict=True):
            out += factor * w[int(place) : int(place) + len(out)]

else:

    @intrinsic
    def prefetch(context: Any, array: Any, index: Any) -> Any:
        """Ask for the cache line of ``array[index]``; never faults, never waits."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = target.make_array(signature.args[0])(target, builder, arguments[0])
            pointer = builder.gep(view.data, [arguments[1]])
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
            read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
            builder.call(call, [builder.bitcast(pointer, byte), read, keep, data])
            return target.get_dummy_value()

        return types.void(array, types.uint64), generate

    @intrinsic
    def add_rows(context: Any, out: Any, w: Any, places: Any, factors: Any) -> Any:
        """out += factors[0] * w[places[0]:] + ... + factors[3] * w[places[3]:], over the length of out."""

        def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sums, weights = (target.make_array(signature.args[n])(target, builder, arguments[n]) for n in (0, 1))
            bases, scalars = (cgutils.unpack_tuple(builder, arguments[n]) for n in (2, 3))
            number = target.get_data_type(signature.args[0].dtype)
            size, word = target.get_abi_sizeof(number), ir.IntType(64)
            count = builder.extract_value(sums.shape, 0)
            done = cgutils.alloca_once_value(builder, ir.Constant(word, 0))
            for lanes in (8, 4, 1):
                kind = ir.VectorType(number, lanes) if lanes > 1 else number
                spread = [_spread(builder, value, kind, lanes) for value in scalars]
                again, body, after = (builder.append_basic_block(name) for name in ("again", "body", "after"))
                builder.branch(again)
                builder.position_at_end(again)
                p, beyond = builder.load(done), builder.add(builder.load(done), ir.Constant(word, lanes))
                builder.cbranch(builder.icmp_unsigned("<=", beyond, count), body, after)
                builder.position_at_end(body)
                here = builder.bitcast(builder.gep(sums.data, [p]), kind.as_pointer())
                total = builder.load(here, align=size)
                for base, factor in zip(bases, spread, strict=True):
                    there = builder.bitcast(builder.gep(weights.data, [builder.add(base, p)]), kind.as_pointer())
                    product = builder.fmul(factor, builder.load(there, align=size), flags=["contract"])
                    total = builder.fadd(total, product, flags=["contract"])
                builder.store(total, here, align=size)
                builder.store(beyond, done)
                builder.branch(again)
                builder.position_at_end(after)
            return target.get_dummy_value()

        number = out.dtype
        return types.void(out, w, types.UniTuple(types.uint64, 4), types.UniTuple(number, 4)), generate


def _spread(builder: Any, value: Any, kind: Any, lanes: int) -> Any:
    """A vector with one value in all its lanes."""
    if lanes == 1:
        return value
    vector = ir.Constant(kind, ir.Undefined)
    for lane in range(lanes):
        vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), lane))
    return vector
