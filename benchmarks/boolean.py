"""Boolean kernels of 10,000 by 10,000 rows of 256 bits, from packed bits.

How many pairs of columns agree (or are both 1) in two rows: C(count, 2) from a table. "By products" counts the same
with one product of float32 matrices and the formula in place; "product alone" is that product and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from timing import OURS, Row, race

from onlearn import kernels

BITS = 256
TILE = 512  # rows at a time, which is kinder to the memory


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    count = 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    X, Z = (rng.integers(0, 2, (count, BITS)).astype(np.float32) for _ in range(2))
    ours, theirs = (np.zeros((count, count), np.float32) for _ in range(2))
    for monotone in (False, True):
        kernel = kernels.Conjunctions(2, monotone=monotone)
        P, Q = kernel.points(X), kernel.points(Z)

        def by_products(monotone: bool = monotone) -> None:
            for top in range(0, count, TILE):
                few, some = X[top : top + TILE], theirs[top : top + TILE]
                np.matmul(few, Z.T, out=some)
                if not monotone:  # both 1, and both 0
                    some *= 2
                    some -= few.sum(axis=1)[:, None]
                    some += BITS - Z.sum(axis=1)
                np.multiply(some, some - 1, out=some)
                some /= 2

        contenders = {
            OURS: lambda kernel=kernel, P=P, Q=Q: kernel.block(P, Q, ours),
            "by products": by_products,
            "product alone": lambda: np.matmul(X, Z.T, out=theirs),
        }
        kernel.block(P, Q, ours)
        by_products()
        if not np.array_equal(ours, theirs):
            raise AssertionError(f"{kernel} is not what the products give")
        yield race(f"{kernel}, {count:,} x {count:,}", contenders, repeat)
