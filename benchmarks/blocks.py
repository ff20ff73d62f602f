"""Blocks of kernel values, float32, 784 columns, 512 rows by 4,000.

"Product alone" is the floor: the BLAS on the same rows, nothing else done.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from timing import OURS, Row, race

from onlearn import kernels

TOGETHER = 5  # blocks a turn


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 400 if quick else 4_000
    rng = np.random.default_rng(0)
    X, Z = (rng.random((n, 784), dtype=np.float32) / 28 for n in (512, rows))
    out = np.zeros((512, rows), np.float32)
    peers = {
        "polynomial(4)": lambda: polynomial_kernel(X, Z, 4, 1.0, 1.0),
        "gaussian(sigma=2.0)": lambda: rbf_kernel(X, Z, 1 / 8),
        "0.5*gaussian(sigma=2.0) + polynomial(2)": lambda: (
            0.5 * rbf_kernel(X, Z, 1 / 8) + polynomial_kernel(X, Z, 2, 1.0, 1.0)
        ),
        "linear + linear**2 + linear**3": lambda: (
            linear_kernel(X, Z) + linear_kernel(X, Z) ** 2 + linear_kernel(X, Z) ** 3
        ),
    }
    for name, peer in peers.items():
        kernel = kernels.get(name)
        P, Q = kernel.points(X), kernel.points(Z)

        def ours(kernel: kernels.Kernel = kernel, P: kernels.Points = P, Q: kernels.Points = Q) -> None:
            kernel.block(P, Q, out)

        contenders = {OURS: ours, "scikit-learn": peer, "product alone": lambda: np.matmul(X, Z.T, out=out)}
        ours()
        np.testing.assert_allclose(out, peer(), rtol=1e-3)
        yield race(name, {who: _several(run) for who, run in contenders.items()}, repeat)


def _several(run):
    def turn() -> None:
        for _ in range(TOGETHER):
            run()

    return turn
