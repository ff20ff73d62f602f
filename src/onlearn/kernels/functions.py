"""The functions that ``warp`` and ``compose`` know by name, so that kernels with them can be spelled and stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.base import Kernel
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
    if isinstance(given, Kernel):
        raise TypeError(f"{who} must be a function of examples, not a kernel, which is one of pairs of them: {given}")
    if callable(given):
        return partial(_untouched, given, who)
    if isinstance(given, str) and given in named:
        return named[given]
    raise ValueError(f"{who} must be a function or one of {', '.join(map(repr, named))}, not {given!r}")


def _untouched(function: Callable[[Any], Any], who: str, X: Any) -> Any:
    """``function(X)``, of which the user's data stay as they are."""
    if isinstance(X, np.ndarray):
        X = X.view()
        X.flags.writeable = False
    elif sp.issparse(X) or hasattr(X, "iloc"):  # read-only, SciPy could not even sort its indices
        X = X.copy()
    elif isinstance(X, list):
        X = list(X)
    try:
        return function(X)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(f"{who} must not change the examples, but {shown(function)} does: let it copy them") from error


def one_number_each(values: Any, size: int, f: Function) -> np.ndarray:
    """The factors that f gave for so many examples."""
    try:
        made = np.asarray(values)
        if made.dtype.kind not in "biuf":
            made = np.array(list(map(_number, made.ravel().tolist()))).reshape(made.shape)
        made = made.astype(np.float64)
    except (TypeError, ValueError):
        found = "what is no number"
    else:
        if made.shape in ((size,), (size, 1)) and np.isfinite(made).all():
            return made.reshape(-1)
        bad = made[~np.isfinite(made)]
        found = f"an array of shape {made.shape}" + (f" with {bad[0]} in it" if bad.size else "")
    raise ValueError(f"warp: {shown(f)} must give one finite number for each of the {size} examples, but gave {found}")


def _number(value: Any) -> float:
    if not isinstance(value, (Real, Decimal)):  # float() would read texts
        raise TypeError(f"{value!r} is no number")
    return float(value)


def shown(function: Function) -> str:
    """A function in a formula: a name that can be read back, or what it is called in Python."""
    if isinstance(function, str):
        return repr(function)
    return f"<{getattr(function, '__name__', type(function).__name__).strip('<>')}>"
