"""Machine code that comes with the package, so that a first run neither compiles nor imports Numba.

Wheels for Linux on x86-64 hold the code of the named learners, the readers and the features (``make wheel``), once for
each of two *levels* of processors, which are sets of instructions: x86-64-v2 (from 2009 on) and x86-64-v3 (with AVX2,
from 2013 on). The best level that the processor has is used.

The code is trusted like the sources it lies among. Its names hold digests of these sources, so if one of them is
changed, what depends on it is compiled as usual. So it is on other processors, and for those who tell Numba how to
compile. The versions of Python, NumPy, Numba and llvmlite make no difference: the code knows only the layout of NumPy's
array objects, of which the size of Python's object header, in the names too, is the part that varies.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from onlearn.compiler.cache import COMPILER, PACKAGE, SETTINGS, SETTINGS_FILE, digest_of

FOLDER = COMPILER / "shipped"
TEXTS = "inlined"  # the folder of the texts of loops, which are the same for all levels
V2 = ("cx16", "sahf", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
V3 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = {"x86-64-v3": (*V2, *V3), "x86-64-v2": V2}  # the best first


class Destination:
    """Where code is put that is to be shipped, and for which level; in all other processes nowhere."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.level = ""


destination = Destination()


def ship_to(folder: Path, level: str) -> None:
    """Have this process compile for a level, and put what it compiles into a folder."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    destination.folder, destination.level = folder, level
    for inner in (level, TEXTS):
        (folder / inner).mkdir(parents=True, exist_ok=True)


def key(level: str) -> bytes:
    """What stands for the processor in the names of code for a level."""
    return hashlib.blake2b(f"{level} {object.__basicsize__}".encode(), digest_size=8).digest()


@cache
def levels() -> tuple[str, ...]:
    """The levels that code is shipped for and that this processor has, the best first."""
    there = [level for level in LEVELS if (FOLDER / level).is_dir()]
    if not there or any(name.startswith(SETTINGS) for name in os.environ) or SETTINGS_FILE.exists():
        return ()
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:
        return ()
    return tuple(level for level in there if all(features.get(name) for name in LEVELS[level]))


def read(level: str, name: str) -> bytes | None:
    """A file of shipped code; None if there is none."""
    with suppress(OSError):
        return (FOLDER / level / name).read_bytes()
    return None


def text(name: str) -> str | None:
    """The inlined text of a loop, if it was shipped and is of the sources that are here."""
    if not levels():
        return None
    content = read(TEXTS, f"{name}.txt")
    if content is None:
        return None
    first, _, rest = content.decode().partition("\n")
    return rest if first == f"# {package_digest()}" else None


def write_text(name: str, content: str) -> None:
    """Ship the inlined text of a loop, if this process ships anything."""
    if destination.folder is not None:
        (destination.folder / TEXTS / f"{name}.txt").write_text(f"# {package_digest()}\n{content}", encoding="utf-8")


@cache
def package_digest() -> str:
    """A digest of all sources of the package."""
    sources = []
    for folder, inner, names in os.walk(PACKAGE):
        inner[:] = set(inner) - {"__pycache__"}
        sources += [Path(folder, name) for name in names if name.endswith(".py")]
    return digest_of(*sorted(sources))
