"""Random features: transform by RandomKitchenSinks against scikit-learn's RBFSampler, 1,000 of them, and its memory.

RBFSampler adds a random phase to each of 1,000 frequencies and takes the cosine; onlearn takes cosine and sine of 500.
"product" is the floor: the bare matrix product of onlearn's half as many frequencies. Where rows are sparse, so is
the product. Polynomial kernels are put against PolynomialCountSketch. Memory is what the arrays made on the way take
at most, the result included; RBFSampler's own default is double precision.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import data
import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from timing import OURS, Row, race

import onlearn

COMPONENTS = 1000


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 2_000 if quick else 20_000
    for dtype in (np.float32, np.float64):
        X = data.dense_rows(rows, 784, dtype)
        name = np.dtype(dtype).name
        contenders = against(X, onlearn.RandomKitchenSinks("gaussian(gamma=1)", COMPONENTS, random_state=0))
        W, out = np.ones((784, COMPONENTS // 2), dtype), np.empty((rows, COMPONENTS // 2), dtype)
        contenders["product"] = lambda X=X, W=W, out=out: np.matmul(X, W, out=out)
        yield race(f"{rows} x 784, {name}", contenders, repeat)
        if dtype == np.float32:
            taken = {key: [peak(run)] for key, run in contenders.items() if key != "product"}
            wide = X.astype(np.float64)
            taken["RBFSampler, float64"] = [peak(against(wide, None)["RBFSampler"])]
            yield Row("the same: memory", taken, {}, unit="bytes")
    S = data.sparse_rows(rows, 20_000, 50, "zipf").astype(np.float32)
    sinks = onlearn.RandomKitchenSinks("gaussian(gamma=1)", COMPONENTS, random_state=0)
    yield race(f"{rows} x 20,000, 50 non-zeros a row", against(S, sinks), repeat)
    X = data.dense_rows(rows // 4, 784, np.float32)
    ours = onlearn.RandomKitchenSinks("polynomial(2)", COMPONENTS, random_state=0).fit(X)
    theirs = PolynomialCountSketch(degree=2, coef0=1, n_components=COMPONENTS, random_state=0).fit(X)
    contenders = {OURS: lambda: ours.transform(X) is None, "PolynomialCountSketch": lambda: theirs.transform(X) is None}
    yield race(f"polynomial(2), {rows // 4} x 784, float32", contenders, repeat)


def against(X: Any, sinks: Any) -> dict[str, Callable[[], Any]]:
    """Both, fitted."""
    theirs = RBFSampler(gamma=1.0, n_components=COMPONENTS, random_state=0).fit(X)
    ours = None if sinks is None else sinks.fit(X)
    return {OURS: lambda: ours.transform(X) is None, "RBFSampler": lambda: theirs.transform(X) is None}


def peak(run: Callable[[], Any]) -> float:
    """Bytes of arrays at most, beyond what was there before."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return float(most)
