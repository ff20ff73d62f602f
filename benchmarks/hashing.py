"""Feature hashing and random projection, against scikit-learn's.

Names, dicts and pairs: 10,000 rows of 100 features out of 50,000; categories: 20 columns of texts. Going through Python
objects is most of it. "Columns": a matrix of a million columns hashed to 65,536, which scikit-learn does not do.
Projections: 5,000 rows of 2,000 columns to 500, dense (Gaussian) and sparse (1/sqrt(columns) of the entries).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import data
import numpy as np
import sklearn.feature_extraction
import sklearn.random_projection as projections
from timing import OURS, Row, race

import onlearn


def bench(quick: bool, repeat: int) -> Iterator[Row]:
    rows = 1_000 if quick else 10_000
    rng = np.random.default_rng(0)
    vocabulary = [f"word{k}" for k in range(50_000)]
    names = [[vocabulary[k] for k in rng.integers(50_000, size=100)] for _ in range(rows)]
    dicts = [{name: float(k) for k, name in enumerate(row)} for row in names]
    works: dict[str, tuple[Any, str]] = {
        "names": (names, "string"),
        "dicts": (dicts, "dict"),
        "pairs": ([list(row.items()) for row in dicts], "pair"),
        "categories": ([{f"column{k}": name for k, name in enumerate(row[:20])} for row in names], "dict"),
    }
    for name, (X, kind) in works.items():
        ours, theirs = onlearn.FeatureHasher(), sklearn.feature_extraction.FeatureHasher(input_type=kind)
        yield race(name, both(ours, theirs, X), repeat)
    S = data.sparse_rows(rows, 1_000_000, 100, "zipf").astype(np.float32)
    narrow = onlearn.FeatureHasher(1 << 16)
    yield race("columns", {OURS: lambda: narrow.transform(S)}, repeat)
    X = data.dense_rows(rows // 2, 2_000)
    T = data.sparse_rows(rows // 2, 20_000, 50, "zipf").astype(np.float32)
    for name, density, peer in (
        ("dense", None, projections.GaussianRandomProjection),
        ("sparse", "auto", projections.SparseRandomProjection),
    ):
        for kind, A in (("rows", X), ("sparse rows", T)):
            mine = onlearn.RandomProjection(500, density=density, random_state=0).fit(A)
            its = peer(500, random_state=0).fit(A)
            yield race(f"{name} projection, {kind}", both(mine, its, A), repeat)


def both(ours: Any, theirs: Any, X: Any) -> dict[str, Callable[[], Any]]:
    return {OURS: lambda: ours.transform(X), "scikit-learn": lambda: theirs.transform(X)}
