"""The versions of what computes, here and on workers: results are the same to the bit only where they are the same."""

from __future__ import annotations

import hashlib
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("numpy", "numba", "llvmlite", "pyarrow", "dask", "distributed")


class Versions(NamedTuple):
    """What one process computes with."""

    python: str
    onlearn: str  # the version, and a digest of the source
    packages: dict[str, str]
    processor: str


@cache
def versions_here() -> Versions:
    """The versions of this process."""
    return Versions(
        ".".join(map(str, sys.version_info[:2])),
        f"{_version('onlearn')} ({_digest()})",
        {name: _version(name) for name in PACKAGES},
        _processor(),
    )


def differing(here: Versions, there: Versions) -> str | None:
    """The first difference that matters, as the end of a sentence about a worker; None if there is none.

    >>> here = versions_here()
    >>> differing(here, here._replace(packages={**here.packages, "numpy": "1.0"})).startswith("has numpy 1.0, and here")
    True
    """
    if here.onlearn != there.onlearn:
        return f"has onlearn {there.onlearn}, and here it is {here.onlearn}"
    if here.python != there.python:
        return f"has Python {there.python}, and here it is {here.python}"
    for name, mine in here.packages.items():
        if (other := there.packages.get(name, "none")) != mine:
            return f"has {name} {other}, and here it is {mine}"
    return None


def processors(all_versions: list[Versions]) -> list[str]:
    """A note if there are several kinds of processors, whose sums may differ in the last digits; else nothing."""
    kinds = sorted({one.processor for one in all_versions})
    if len(kinds) < 2:
        return []
    return [f"processors of {len(kinds)} kinds ({', '.join(kinds)}): their sums may differ in the last digits"]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


@cache
def _digest() -> str:
    """A digest of the package's source: a development version changes without another number."""
    root, made = Path(__file__).parent.parent, hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if "__pycache__" not in path.parts:
            made.update(str(path.relative_to(root)).encode())
            made.update(path.read_bytes())
    return made.hexdigest()[:8]


@cache
def _processor() -> str:
    """The name of the processor, by which loops are compiled."""
    try:
        import llvmlite.binding as llvm

        return str(llvm.get_host_cpu_name())
    except Exception:
        return platform.machine()
