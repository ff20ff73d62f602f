"""Primal or dual: weights of the kernel's features, or weights of examples? Decided by measuring both on a sample."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from onlearn.dual.supports import pick
from onlearn.kernels.explicit import in_words

SAMPLE = 256  # examples
TURNS = 4
SUPPORT = 0.1  # of the examples, as a guess: the part on which steps are made
EACH = 2e-9  # seconds for a weight of an example in a linear pass
MOST = 1 << 30  # bytes that the features of all examples may take


class Choice(NamedTuple):
    name: str  # "primal" or "dual"
    reason: str


def choose(kernel: Any, raw: Any, points: Any, passes: int, forced: bool = False) -> Choice:
    """The cheaper representation for these examples; ``forced``: the primal, if there is one."""
    rows, width = len(points), raw.shape[1] if hasattr(raw, "shape") else 1
    features = kernel.n_features(width)
    if features is None:
        if forced:
            raise ValueError(f"{unlisted(kernel)}: use representation='dual'")
        return Choice("dual", unlisted(kernel))
    if forced:
        return Choice("primal", "asked for")
    size = rows * features * points.dtype.itemsize
    if size > MOST:
        room = f"{size / 2**30:.1f}" if size < 2**60 else in_words(size >> 30)
        return Choice("dual", f"{in_words(features)} features of {rows} examples would take {room} GiB")
    some = np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64)
    mapping = seconds(lambda: kernel.features(pick(raw, some))) * rows / len(some)
    primal = mapping + passes * rows * features * EACH
    sample = points.take(some)
    dual = seconds(lambda: kernel.block(sample, sample)) / len(some) ** 2 * rows * max(1.0, SUPPORT * rows)
    name = "primal" if primal < dual else "dual"
    return Choice(
        name,
        f"about {primal:.2g} s with {features} features, "
        f"{dual:.2g} s in the dual if {SUPPORT:.0%} of {rows} examples become support examples",
    )


def unlisted(kernel: Any) -> str:
    """Why there are no features to learn weights of."""
    if kernel.data in ("strings", "trees"):
        return f"the features of {kernel} are pieces of the {kernel.data} at hand, without a list known beforehand"
    return f"{kernel} has no finite list of features known beforehand"


def seconds(work: Any) -> float:
    """The time a piece of work takes when nothing comes between: the shortest of a few, after a first."""
    work()
    found = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)
