"""Rows as a network takes them: all dense, scaled as batches are made of them, or all sparse and scaled before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onlearn.engine.csr import CSR, is_sparse, stacked
from onlearn.mlp import loops
from onlearn.mlp.network import Workspace
from onlearn.mlp.scaling import Scaler

DENSE = 6  # a sparse batch with more than one value in so many places is learned from as a dense one,
WIDEST = 1 << 14  # unless it has more columns


class Unscaled(NamedTuple):
    """Dense rows in C order, that are scaled when a batch of them is made."""

    rows: np.ndarray
    scaler: Scaler


def as_kind(X: Any, sparse: bool) -> Any:
    """Rows as sparse ones, or as dense ones in C order."""
    if sparse:
        return X if isinstance(X, CSR) else CSR.of(X)
    return np.ascontiguousarray(X.toarray() if is_sparse(X) else X)


def scaled(X: Any, sparse: bool, scaler: Scaler, dtype: Any) -> Any:
    """Rows of their kind, scaled now or later."""
    if not sparse:
        return Unscaled(X, scaler)
    X = X.between(0, X.shape[0])
    return replace(X, data=scaler.apply_sparse(X.data, X.indices, dtype))


def has_room(sparse: bool, features: int) -> bool:
    """Whether sparse rows may be spread out."""
    return not sparse or features <= WIDEST


def dense_batch(X: Any, rows: np.ndarray, sparse: bool, space: Workspace) -> np.ndarray | None:
    """Some rows as a dense batch, in the workspace; None if they are better left sparse."""
    if isinstance(X, Unscaled):
        X.scaler.apply(X.rows, rows, space.x)
    elif not sparse:
        np.take(X, rows, axis=0, out=space.x, mode="clip")
    else:
        width = X.shape[1]
        values = int((X.indptr[rows + 1] - X.indptr[rows]).sum())
        if not has_room(sparse, width) or values * DENSE < len(rows) * width:
            return None
        space.x[...] = 0
        loops.spread(X.data, X.indices, X.indptr, rows, width, flat(space.x))
    return space.x


def copied_rows(X: Any, rows: np.ndarray, dtype: Any) -> Any:
    """Some scaled rows, to be kept."""
    if isinstance(X, CSR):
        return X.take(rows)
    if isinstance(X, Unscaled):
        out = np.empty((len(rows), X.rows.shape[1]), dtype)
        X.scaler.apply(X.rows, rows, out)
        return out
    return X[rows]


def below(X: Any, more: Any) -> Any:
    """The rows of both, one below the other."""
    return stacked([X, more]) if isinstance(X, CSR) else np.concatenate([X, more])


def flat(matrix: np.ndarray) -> np.ndarray:
    """A matrix in C order as one line of numbers."""
    return matrix.reshape(-1)
