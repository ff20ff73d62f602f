"""Compiling: functions and loops in Python become machine code, on first use and for the types of their arguments.

``functions`` has the decorators and ``inlining`` the loops; ``intrinsics`` are written in LLVM's language. Code is
compiled and called by one of two backends (``backends``): as ``object_code`` that ``emit`` makes and that runs without
Numba, or by ``numba_backend``. ``cache`` has the files that hold it, and names them.
"""

from __future__ import annotations

from onlearn.compiler.backends import before_compiling, compile_seconds
from onlearn.compiler.cache import cache_folder, cache_folders
from onlearn.compiler.functions import (
    INTERPRETED,
    REORDER,
    Compiled,
    allocating,
    compiled,
    intrinsic,
    ir,
    overloaded,
    pointer,
    types,
)
from onlearn.compiler.intrinsics import borrow, give_back, prefetch, scratch

__all__ = [
    "INTERPRETED",
    "REORDER",
    "Compiled",
    "allocating",
    "before_compiling",
    "borrow",
    "cache_folder",
    "cache_folders",
    "compile_seconds",
    "compiled",
    "give_back",
    "intrinsic",
    "ir",
    "overloaded",
    "pointer",
    "prefetch",
    "scratch",
    "types",
]
