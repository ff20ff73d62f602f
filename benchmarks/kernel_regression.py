"""Kernel regression on Friedman's function of ten columns, with noise: KernelRegressor against scikit-learn's.

onlearn makes ten passes of normalised least mean squares, averaged; "tube" is its passive-aggressive rule with the
epsilon of SVR. KernelRidge solves for all weights at once, SVR is LIBSVM. Gaussian kernel, sigma 2; columns and y
have mean 0 and deviation 1; the peers' alpha and C at their defaults. '%' is R2 on 2,000 test rows without noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.svm import SVR
from timing import OURS, Row, race

import onlearn

SIGMA, EPSILON = 2.0, 0.1
GAMMA = 1 / (2 * SIGMA**2)
MOST = 8000  # rows of KernelRidge, whose time grows with their cube


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    for rows in (500, 1000) if quick else (1000, 5000, 20000):
        X, y, Xt, yt = friedman(rows)

        def ours(rule: str = "nlms", X: Any = X, y: Any = y) -> Any:
            return onlearn.KernelRegressor(f"gaussian({SIGMA})", rule, random_state=0).fit(X, y).predict

        contenders: dict[str, Any] = {
            OURS: ours,
            "onlearn, tube": lambda ours=ours: ours(f"pa_epsilon({EPSILON})"),
            "KernelRidge": (lambda X=X, y=y: KernelRidge(kernel="rbf", gamma=GAMMA).fit(X, y).predict)
            if rows <= MOST
            else None,
            "SVR": lambda X=X, y=y: SVR(gamma=GAMMA, epsilon=EPSILON, cache_size=1000).fit(X, y).predict,
        }
        reached = {name: [r2_score(yt, run()(Xt))] for name, run in contenders.items() if run is not None}
        there = {name: run for name, run in contenders.items() if run is not None}
        yield race(f"{rows:,} rows", there, repeat)._replace(accuracy=reached)


def friedman(rows: int) -> tuple[np.ndarray, ...]:
    """Training rows with noise, and test rows without, in units of the training rows."""
    X, y = make_friedman1(rows, noise=1.0, random_state=0)
    Xt, yt = make_friedman1(2000, random_state=1)
    mean, size, level, scale = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()
    return (X - mean) / size, (y - level) / scale, (Xt - mean) / size, (yt - level) / scale
