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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
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


@contextmanager
def our_cache(*folder_of: Any) -> Iterator[bool]:
    """Let functions decorated inside use our cache folder (of a kind and files); yields whether there is one.

    Numba reads the folder from a process-wide setting when a function is decorated. It is set only
    for that moment, so that a user's own compiled functions keep their place.
    """
    folder = None if INTERPRETED else cache_folder(*folder_of)
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder or before
    try:
        yield folder is not None
    finally:
        numba.config.CACHE_DIR = before


def compiled(function: Any) -> Any:
    """Compile a plain function of scalars and arrays on first use, and keep it in the disk cache."""
    file = Path(inspect.getfile(function))
    package = Path(__file__).parent
    beside = file.parent.glob("*.py") if file.parent != package else [file]
    sources = sorted({package / "compile.py", package / "hashing.py", *beside})
    with our_cache("functions", *sources) as cached:
        return numba.njit(cache=cached, nogil=True, error_model="numpy")(function)


def ask(builder: Any, pointer: Any) -> None:
    """Code that asks for the cache line of a pointer."""
    byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    read, keep, data = (ir.Constant(word, n) for n in (0, 3, 1))
    builder.call(call, [builder.bitcast(pointer, byte), read, keep, data])


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
