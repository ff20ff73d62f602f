"""Sparse matrices of later passes: widened, joined, and with fewer columns, without looking all of them over."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.data.cache import in_one


def widened(X: sp.csr_matrix, width: int) -> sp.csr_matrix:
    return X if X.shape[1] == width else csr(X.data, X.indices, X.indptr, (X.shape[0], width))


def csr(data_: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> sp.csr_matrix:
    """A matrix of sound parts; the constructor would look all of them over."""
    X = sp.csr_matrix(shape, dtype=data_.dtype)
    X.data, X.indices, X.indptr = data_, indices, indptr.astype(indices.dtype, copy=False)
    return X


def joined(batches: list[Any], small: bool) -> list[Any]:
    """Batches that fit into memory as one, so that the order is one over all rows."""
    if not small or len(batches) <= 1:
        return batches
    width = max(X.shape[1] for X, _, _ in batches)
    weights = [weight for _, _, weight in batches]
    starts = np.cumsum([0, *(X.nnz for X, _, _ in batches)])
    indptr = np.concatenate([[0], *(X.indptr[1:] + start for (X, _, _), start in zip(batches, starts))])
    data_, indices = (in_one([getattr(X, name) for X, _, _ in batches]) for name in ("data", "indices"))
    X = csr(data_, indices, indptr.astype(indices.dtype if starts[-1] < 2**31 else np.int64), (len(indptr) - 1, width))
    y = np.concatenate([y for _, y, _ in batches])
    return [(X, y, None if weights[0] is None else np.concatenate(weights))]


def select(X: sp.csr_matrix, kept: np.ndarray, width: int) -> sp.csr_matrix:
    """The columns that were kept, numbered anew."""
    new = kept[X.indices]
    stay = new >= 0
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(stay)])
    return sp.csr_matrix((X.data[stay], new[stay].astype(X.indices.dtype), before[X.indptr]), shape=(X.shape[0], width))
