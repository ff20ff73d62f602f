"""Which examples stand for all others: landmarks of a Nystrom approximation, chosen by their kernel values only.

- ``uniform``: each example alike.
- ``kmeans_plus_plus``: with probability in proportion to the squared distance, in feature space, to the closest one
  chosen so far (Arthur and Vassilvitskii 2007).
- ``rpcholesky``: randomly pivoted Cholesky: in proportion to k(x, x) - |phi(x)|^2, what those chosen so far leave
  unexplained (Chen, Epperly, Tropp and Webber 2023).

The last two draw one after another, which would be one thin matrix product each. But what is left only ever shrinks:
so draw a block at once by what is left now, and keep each with probability (what is left when its turn comes) / (what
was left when it was drawn). That is rejection sampling: those kept are distributed exactly as if drawn one by one
(Epperly, Tropp and Webber 2024), and their kernel columns are computed together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.approx import manners

ROOM = 1 << 26  # numbers that the factor of rpcholesky may hold: beyond it chooses among a sample of the examples
BLOCK = 128  # most candidates drawn at once


def uniform(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(P), min(count, len(P)), replace=False)


def kmeans_plus_plus(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spread out in feature space."""
    count, diagonal = min(count, len(P)), lengths(kernel, P)
    chosen = [int(rng.integers(len(P)))]
    left = np.full(len(P), np.inf)
    _come_closer(kernel, P, diagonal, np.array(chosen), left)
    while len(chosen) < count and left.sum() > _nothing(diagonal, P):
        drawn = _draw(left, _block(count), rng)
        some = P.take(drawn)
        apart = diagonal[drawn][:, None] + diagonal[drawn] - 2.0 * kernel.block(some, some)
        now, kept = left[drawn].copy(), list[int]()
        for i, luck in enumerate(rng.random(len(drawn))):
            if len(chosen) + len(kept) < count and luck * left[drawn[i]] < now[i]:
                kept.append(int(drawn[i]))
                now = np.minimum(now, apart[:, i])
                now[drawn == drawn[i]] = 0.0  # rounding must not bring one back
        if kept:
            _come_closer(kernel, P, diagonal, np.array(kept), left)
            chosen += kept
    return np.array(chosen)


def _come_closer(kernel: Any, P: Any, diagonal: np.ndarray, new: np.ndarray, left: np.ndarray) -> None:
    """Squared distances to the closest, now that there are new ones."""
    Q = P.take(new)
    for tile in manners.tiles(len(P), len(new) * P.dtype.itemsize):
        nearest = (diagonal[new] - 2.0 * kernel.block(P.take(tile), Q)).min(axis=1)
        left[tile] = np.clip(np.minimum(left[tile], diagonal[tile] + nearest), 0.0, None)
    left[new] = 0.0


def rpcholesky(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Those whose features explain the most, at random."""
    count = min(count, len(P))
    among = np.arange(len(P))
    if count * len(P) > ROOM:
        among = np.sort(rng.choice(len(P), max(count, ROOM // count), replace=False))
        P = P.take(among)
    diagonal = lengths(kernel, P)
    left = np.clip(diagonal, 0.0, None)
    F, size, chosen = np.empty((count, len(P)), P.dtype), 0, np.empty(count, np.int64)
    while size < count and left.sum() > _nothing(diagonal, P):
        drawn = _draw(left, _block(count), rng)
        some = P.take(drawn)
        explained = F[:size, drawn].astype(np.float64)
        H = kernel.block(some, some) - explained.T @ explained
        kept, columns = list[int](), list[np.ndarray]()
        floor = np.finfo(P.dtype).eps * diagonal[drawn]  # a smaller pivot is rounding
        for i, luck in enumerate(rng.random(len(drawn))):
            if size + len(kept) < count and H[i, i] > max(luck * left[drawn[i]], floor[i]):
                column = H[:, i] / np.sqrt(H[i, i])
                H = H - np.outer(column, column)
                H[:, drawn == drawn[i]] = H[drawn == drawn[i]] = 0.0  # rounding must not bring one back
                kept.append(i)
                columns.append(column)
        if not kept:
            left[drawn[np.diagonal(H) <= floor]] = 0.0
            continue
        new = drawn[kept]
        L = np.array(columns)[:, kept].T
        G = kernel.block(P.take(new), P)
        G -= F[:size, new].T @ F[:size]
        # The inverse of a small triangle in double precision is sound, and the product takes less time than solving.
        more = np.matmul(np.linalg.inv(L).astype(P.dtype), G, out=F[size : size + len(new)])
        left = np.clip(left - np.einsum("ij,ij->j", more, more, dtype=np.float64), 0.0, None)
        left[new] = 0.0
        chosen[size : size + len(new)] = new
        size += len(new)
    return among[chosen[:size]]


def lengths(kernel: Any, P: Any) -> np.ndarray:
    """k(x, x) of all examples, whose sum must be a number."""
    with np.errstate(over="ignore"):
        diagonal = np.asarray(kernel.diagonal(P))
        if not np.isfinite(diagonal.sum()):
            raise kernel.too_large(np.dtype(np.float64), f"row {int(np.argmax(diagonal))}")
    return diagonal


def _draw(left: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws in proportion to what is left."""
    edges = np.cumsum(left)
    return np.minimum(np.searchsorted(edges, rng.random(size) * edges[-1], side="right"), len(left) - 1)


def _block(count: int) -> int:
    return int(np.clip(count // 8, 8, BLOCK))


def _nothing(diagonal: np.ndarray, P: Any) -> float:
    """A sum that is nothing but rounding."""
    return float(8 * np.finfo(P.dtype).eps * np.abs(diagonal).sum())
