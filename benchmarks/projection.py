"""Sparse random projections: rows on 500 directions, against scikit-learn's SparseRandomProjection.

Both have the same matrix, drawn beforehand, and make dense projections of dense rows. Of sparse rows scikit-learn makes
sparse ones, or with ``dense_output`` dense ones, as ours are. "auto" is a density of 1 / sqrt(columns).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.random_projection import SparseRandomProjection
from timing import OURS, Row, race

import onlearn

DIRECTIONS = 500


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    scale = 10 if quick else 1
    rng = np.random.default_rng(0)
    tables = {
        "dense, 4,000 x 2,000": rng.normal(size=(4000 // scale, 2000)),
        "dense, 1,000 x 20,000, single": rng.normal(size=(1000 // scale, 20_000)).astype(np.float32),
        "sparse, 10,000 x 50,000, 0.2 %": sp.random(10_000 // scale, 50_000, 0.002, "csr", random_state=0),
    }
    for name, X in tables.items():
        for density in ("auto", 1 / 3):
            ours = onlearn.RandomProjection(DIRECTIONS, density=density, random_state=0).fit(X[:10])
            ways = {OURS: lambda X=X, ours=ours: ours.transform(X)}
            for peer, dense in (("scikit-learn", False), ("scikit-learn, dense", True)):
                if dense and not sp.issparse(X):
                    continue
                theirs = SparseRandomProjection(DIRECTIONS, density=density, dense_output=dense, random_state=0)
                theirs.fit(X[:10])
                ways[peer] = lambda X=X, theirs=theirs: theirs.transform(X)
            shown = density if isinstance(density, str) else f"{density:.2f}"
            yield race(f"{name}, density {shown}", ways, repeat)
