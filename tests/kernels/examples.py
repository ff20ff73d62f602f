"""Kernels and data that several of the tests use."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from onlearn import kernels

LEAVES = [
    "linear",
    "polynomial(3, coef0=0.5, gamma=0.7)",
    "gaussian(2)",
    "gaussian(gamma=0.3)",
    "laplacian(0.5)",
    "bilinear([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 0.0]])",
    "subsets",
]
COMPOSITES = [
    "0.5*gaussian(2) + poly(2)",
    "linear*laplacian(0.5) + linear**3",
    "exp(0.1*linear)",
    "poly(linear, [0, 1, 2])",
    "warp(gaussian, norm)",
    "compose(linear + exp(normalize(linear)), log1p)",
    "normalize(linear + poly(2))",
    "(linear + gaussian)**2*normalize(subsets)",
    "compose(linear, unit) + compose(gaussian, unit) + linear",
]
BOOLEAN = [
    "monomials",
    "subsets",
    "conjunctions(2)",
    "conjunctions(3, exactly=False)",
    "conjunctions(2, monotone=True)",
    "conjunctions(3, exactly=False, monotone=True)",
]


def rows(count: int, width: int = 3, seed: int = 0) -> np.ndarray:
    """Positive numbers, as log1p wants them; some of them 0, and no zero row."""
    X = np.random.default_rng(seed).random((count, width))
    X[X < 0.3] = 0.0
    X[:, 0] += 0.1
    return X


def bits(count: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (count, width))


def some_kernels() -> st.SearchStrategy[kernels.Kernel]:
    """Formulas of all kinds over rows of three positive numbers."""
    leaves = st.sampled_from(LEAVES).map(kernels.get)

    def grow(inner: st.SearchStrategy) -> st.SearchStrategy:
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, b: a * b, inner, inner),
            st.builds(lambda c, k: c * k, st.floats(0.1, 3.0), inner),
            st.builds(lambda k, d: k**d, inner, st.integers(1, 3)),
            inner.map(lambda k: kernels.exp(0.05 * kernels.normalize(k))),
            st.builds(kernels.poly, inner, st.lists(st.floats(0.1, 2.0), min_size=1, max_size=3)),
            st.builds(kernels.warp, inner, st.sampled_from(["norm", "sum"])),
            st.builds(kernels.compose, inner, st.sampled_from(["binary", "log1p", "sign", "unit"])),
            inner.map(kernels.normalize),
        )

    return st.recursive(leaves, grow, max_leaves=4)
