"""The features behind a kernel, written down: columns side by side, outer products, and how many are too many."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

MOST = 1 << 24  # features; beyond it no matrix of them is of use


def refuse_too_many(kernel: Any, X: Any, width: int | None = None) -> None:
    """Refuse before anything is computed."""
    if width is None:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        width = int(shape[1]) if len(shape) == 2 else None
    size = None if width is None else kernel.n_features(width)
    if size is not None and size > MOST:
        raise ValueError(
            f"{kernel} of {width} columns has {in_words(size)} features, more than the {MOST:,} that can be written "
            "down: use the kernel itself"
        )


def in_words(count: int) -> str:
    """A number that may be beyond all floats, and longer than Python writes."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"


def beside(parts: list[Any]) -> Any:
    """Columns side by side; sparse if one of them is."""
    if any(sp.issparse(part) for part in parts):
        return sp.hstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.concatenate(parts, axis=1)


def ones_like(features: Any) -> Any:
    """One feature that is always 1, in the manner of others."""
    ones = np.ones((features.shape[0], 1), features.dtype)
    return sp.csr_matrix(ones) if sp.issparse(features) else ones


def scale_rows(features: Any, factors: np.ndarray) -> Any:
    factors = factors.astype(features.dtype)[:, None]
    return sp.csr_matrix(features.multiply(factors)) if sp.issparse(features) else features * factors


def outer(A: Any, B: Any) -> Any:
    """All products of a feature of A with a feature of B, row by row."""
    if not sp.issparse(A) and not sp.issparse(B):
        return (A[:, :, None] * B[:, None, :]).reshape(len(A), A.shape[1] * B.shape[1])
    A, B = sp.csr_matrix(A), sp.csr_matrix(B)
    here, there = np.diff(A.indptr), np.diff(B.indptr)
    counts = here * there
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    row = np.repeat(np.arange(A.shape[0]), counts)
    place = np.arange(indptr[-1]) - indptr[row]
    p = A.indptr[row] + place // there[row]
    q = B.indptr[row] + place % there[row]
    columns = A.indices[p].astype(np.int64) * B.shape[1] + B.indices[q]
    return sp.csr_matrix((A.data[p] * B.data[q], columns, indptr), shape=(A.shape[0], A.shape[1] * B.shape[1]))


def monomials(X: Any, degree: int, weights: list[float]) -> Any:
    """All products of up to ``degree`` columns, with the square roots that make (w0 + w1 x.z + w2 (x.z)^2...) of them.

    weights[d] is the coefficient of (x.z)^d; each product of degree d then has the weight of its multinomial
    coefficient d! / (a1! a2! ...), with a1, a2... how often each column is in it.
    """
    from sklearn.preprocessing import PolynomialFeatures

    width = X.shape[1]
    # Products in the order of combinations with replacement. Putting a column before those of degree d - 1 that
    # start with it or a later one multiplies the coefficient by d / (how often it now is there).
    coefficients, repeats = np.ones(width), np.ones(width)
    firsts = np.arange(width + 1)  # where the products that start with each column begin; at last, where they end
    found = [np.full(1, weights[0]), coefficients * weights[1]]
    for d in range(2, degree + 1):
        sizes = firsts[-1] - firsts[:-1]
        grown, times = [], []
        for column in range(width):
            tail, run = coefficients[firsts[column] :], np.ones(sizes[column])
            same = firsts[column + 1] - firsts[column]
            run[:same] = repeats[firsts[column] : firsts[column + 1]] + 1
            grown.append(tail * d / run)
            times.append(run)
        coefficients, repeats = np.concatenate(grown), np.concatenate(times)
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        found.append(coefficients * weights[d])
    roots = np.sqrt(np.concatenate(found)).astype(X.dtype)
    made = PolynomialFeatures(degree, include_bias=True).fit_transform(X)
    kept = np.flatnonzero(roots)
    if sp.issparse(made):
        return sp.csr_matrix(made.tocsc()[:, kept].multiply(roots[kept][None, :]))
    made *= roots
    return made if len(kept) == len(roots) else made[:, kept]
