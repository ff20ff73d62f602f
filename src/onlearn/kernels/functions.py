"""The functions that ``warp`` and ``compose`` know by name, so that kernels with them can be spelled and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.vectors import numeric, squared_lengths

Function = str | Callable[[Any], Any]


def _elementwise(step: Callable[[np.ndarray], np.ndarray], name: str, low: float = -np.inf) -> Callable[[Any], Any]:
    """A function of each number that leaves 0 as it is, and so sparse rows sparse."""

    def apply(X: Any) -> Any:
        X = numeric(X, f"compose with {name!r}")
        values = X.data if sp.issparse(X) else X
        if values.size and not values.min() > low:
            raise ValueError(f"compose: {name!r} needs numbers above {low:g}, but X holds {values.min():g}")
        if not sp.issparse(X):
            return step(X)
        return sp.csr_matrix((step(X.data), X.indices, X.indptr), shape=X.shape)

    return apply


def _unit(X: Any) -> Any:
    X = numeric(X, "compose with 'unit'")
    lengths = np.sqrt(squared_lengths(X))
    if (lengths == 0).any():
        raise ValueError(f"compose: 'unit' cannot make row {np.argmin(lengths)} as long as 1, for it is zero: drop it")
    scale = (1.0 / lengths).astype(X.dtype)
    return sp.csr_matrix(X.multiply(scale[:, None])) if sp.issparse(X) else X * scale[:, None]


MAPS: Mapping[str, Callable[[Any], Any]] = {
    "binary": _elementwise(lambda v: (v != 0).astype(v.dtype), "binary"),  # 1 where a number is not 0
    "log1p": _elementwise(np.log1p, "log1p", -1.0),  # log(1 + x)
    "sign": _elementwise(np.sign, "sign"),
    "unit": _unit,  # x / |x|
}

FACTORS: Mapping[str, Callable[[Any], Any]] = {
    "norm": lambda X: np.sqrt(squared_lengths(numeric(X, "warp with 'norm'"))),  # |x|
    "sum": lambda X: np.asarray(numeric(X, "warp with 'sum'").sum(axis=1), dtype=np.float64).ravel(),
}


def map_of(phi: Function) -> Callable[[Any], Any]:
    return _known(phi, MAPS, "compose: phi")


def factor_of(f: Function) -> Callable[[Any], Any]:
    return _known(f, FACTORS, "warp: f")


def _known(given: Function, named: Mapping[str, Callable[[Any], Any]], who: str) -> Callable[[Any], Any]:
    if callable(given):
        return given
    if isinstance(given, str) and given in named:
        return named[given]
    raise ValueError(f"{who} must be a function or one of {', '.join(map(repr, named))}, not {given!r}")


def shown(function: Function) -> str:
    """A function in a formula: a name that can be read back, or what it is called in Python."""
    if isinstance(function, str):
        return repr(function)
    return f"<{getattr(function, '__name__', type(function).__name__).strip('<>')}>"
