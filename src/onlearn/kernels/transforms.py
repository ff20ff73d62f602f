"""New kernels from others by functions of the examples: factors f(x), maps phi(x), and cosines.

| kernel | k'(x, z) |
|---|---|
| `warp(k, f)` | f(x) k(x, z) f(z) |
| `compose(k, phi)` | k(phi(x), phi(z)) |
| `normalize(k)` | k(x, z) / sqrt(k(x, x) k(z, z)) |

``warp`` and ``compose`` take a Python function, or the name of one in ``FACTORS`` or ``MAPS``; with a name the kernel
can be written as a formula and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR, is_sparse
from onlearn.kernels import psd
from onlearn.kernels.algebra import Composite
from onlearn.kernels.base import SCALE, ExampleError, Kernel, Numbers, Points
from onlearn.kernels.family import kernel
from onlearn.kernels.products import is_scipy, numeric, squared_lengths, with_values
from onlearn.kernels.tiles import Path, Tile, factors_pass, over_tile

Function = str | Callable[[Any], Any]


@kernel("warp")
class Warp(Composite):
    """f(x) k(x, z) f(z), with f a function from the data to one number for each example, or its name"""

    k: Kernel
    f: Function

    def check(self) -> None:
        super().check()
        factor_of(self.f)

    @property
    def key(self) -> Hashable:
        return "warp", self.f

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        super().prepare(X, views)
        if self.key not in views:
            values = factor_of(self.f)(views["vectors"].X if "vectors" in views else X)
            views[self.key] = Numbers(one_number_each(values, len(Points(views)), self.f))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile, out)
        rescale(out, tile.P[self.key].values, tile.Q[self.key].values)

    def diagonal(self, P: Points) -> np.ndarray:
        return self.k.diagonal(P) * P[self.key].values ** 2

    def n_features(self, width: int) -> int | None:
        return self.k.n_features(width)

    def features(self, X: Any) -> Any:
        return psd.scale_rows(self.k.features(X), self.points(X)[self.key].values)

    def formula(self) -> str:
        return f"warp({self.k}, {shown(self.f)})"


@kernel("compose")
class Compose(Composite):
    """k(phi(x), phi(z)), with phi a function from the data to the data that k works on, or its name"""

    k: Kernel
    phi: Function

    def check(self) -> None:
        super().check()
        map_of(self.phi)
        if isinstance(self.phi, str) and self.k.data not in ("vectors", "any"):
            raise ValueError(f"compose: {self.phi!r} makes vectors, but {self.k} works on {self.k.data}")
        self.data = "vectors" if isinstance(self.phi, str) else "any"

    @property
    def key(self) -> Hashable:
        return "compose", self.phi

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        inner = views.setdefault(self.key, Points({}))
        self.k.prepare(self.mapped(X), inner.views)

    def mapped(self, X: Any) -> Any:
        """phi(X), which must have as many examples as X."""
        made = map_of(self.phi)(X)
        if _size(made) != _size(X):
            raise ValueError(
                f"compose: {shown(self.phi)} must give one example for each of the {_size(X)} examples, "
                f"but gave {'one value' if _size(made) is None else _size(made)}"
            )
        return made

    def uses(self) -> Iterator[Path]:
        for path in self.k.uses():
            yield self.key, *path

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return self.k.bounded(P[self.key], Q[self.key], dtype)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile.inside(self.key), out)

    def halvings(self, P: Points) -> int:
        return self.k.halvings(P[self.key])

    def diagonal(self, P: Points) -> np.ndarray:
        return self.k.diagonal(P[self.key])

    def n_features(self, width: int) -> int | None:
        # The named maps keep the number of columns; other functions may not.
        return self.k.n_features(width) if isinstance(self.phi, str) else None

    def features(self, X: Any) -> Any:
        return self.k.features(self.mapped(X))

    def formula(self) -> str:
        return f"compose({self.k}, {shown(self.phi)})"


class NormalisationError(ExampleError):
    """An example whose k(x, x) is not a finite number above 0."""

    def __init__(self, k: Kernel, row: int, value: float) -> None:
        why = f"k(x, x) is {value:g} for {k}, so the example cannot be normalised"
        if value == 0 and k.data == "strings":
            why = f"an empty text, or one too short for {k}, cannot be normalised (k(x, x) is 0): leave it out"
        elif value == 0:
            why = f"k(x, x) is 0 for {k}, so the example cannot be normalised: leave it out"
        elif value == np.inf:
            remedy = k.remedy()
            why = f"k(x, x) is too large for a float for {k}, so the kernel cannot be normalised as a whole; "
            why += "scale the data" if remedy == SCALE else remedy
        super().__init__(row, why, f"row {row}: {why}")


@kernel("normalize")
class Normalize(Composite):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine of the angle between the features of x and z"""

    k: Kernel

    def check(self) -> None:
        super().check()
        if not self.k.has_lengths:
            raise ValueError(
                f"{self.k} cannot be normalised: a precomputed matrix does not hold k(x, x) of examples to predict; "
                "normalise the kernel before the matrix is computed, normalize(k)(X)"
            )

    @property
    def key(self) -> Hashable:
        return "normalize", self.k

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        super().prepare(X, views)
        if self.key not in views and not self.k.own_cosine:
            views[self.key] = Numbers(self.scales(Points(views)))

    def scales(self, P: Points) -> np.ndarray:
        """k(x, x)^(-1/2)"""
        with np.errstate(over="ignore"):
            values = self.k.diagonal(P)
        bad = np.flatnonzero(~((values > 0) & np.isfinite(values)))
        if bad.size:
            raise NormalisationError(self.k, int(bad[0]), float(values[bad[0]]))
        return values**-0.5

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return self.k.own_cosine or super().bounded(P, Q, dtype)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        if self.k.own_cosine:
            self.k.cosine(tile, out)
        else:
            self.k.fill(tile, out)
            rescale(out, tile.P[self.key].values, tile.Q[self.key].values)

    def halvings(self, P: Points) -> int:
        return 0  # the powers of two cancel

    def eased(self) -> Kernel:
        return self  # a part that grows is already normalised

    def diagonal(self, P: Points) -> np.ndarray:
        return np.ones(len(P))

    def merged(self, P: Points, coefs: np.ndarray) -> Any:
        inner = None if self.k.own_cosine else self.k.merged(P, P[self.key].values[:, None] * coefs)
        return None if inner is None else Scaled(inner, self.key)

    def n_features(self, width: int) -> int | None:
        return self.k.n_features(width)

    def features(self, X: Any) -> Any:
        return psd.scale_rows(self.k.features(X), self.scales(self.points(X)))

    def formula(self) -> str:
        return f"normalize({self.k})"


class Scaled:
    """The scores of another object, times one factor for each example."""

    inner: Any
    key: Hashable

    def __init__(self, inner: Any, key: Hashable) -> None:
        self.inner, self.key = inner, key

    def scores(self, P: Points) -> np.ndarray:
        return np.asarray(self.inner.scores(P)) * P[self.key].values[:, None]


def _size(X: Any) -> int | None:
    """How many examples there are; None if X is not a collection."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if hasattr(X, "__len__") else None
    return int(shape[0]) if len(shape) else None


def rescale(out: np.ndarray, a: np.ndarray, b: np.ndarray) -> None:
    over_tile(factors_pass, out, a.astype(out.dtype), b.astype(out.dtype))


def warp(k: Any, f: Function) -> Warp:
    """f(x) k(x, z) f(z)"""
    return Warp(k, f)


def compose(k: Any, phi: Function) -> Compose:
    """k(phi(x), phi(z))"""
    return Compose(k, phi)


def normalize(k: Any) -> Normalize:
    """k(x, z) / sqrt(k(x, x) k(z, z))"""
    return Normalize(k)


# -- functions of examples


def _elementwise(step: Callable[[np.ndarray], np.ndarray], name: str, low: float = -np.inf) -> Callable[[Any], Any]:
    """A function of each number that maps 0 to 0, so that sparse rows stay sparse."""

    def apply(X: Any) -> Any:
        X = numeric(X, f"compose with {name!r}")
        values = X.data if is_sparse(X) else X
        if values.size and not values.min() > low:
            raise ValueError(f"compose: {name!r} needs numbers above {low:g}, but X holds {values.min():g}")
        return with_values(X, step(X.data)) if is_sparse(X) else step(X)

    return apply


def _unit(X: Any) -> Any:
    X = numeric(X, "compose with 'unit'")
    lengths = np.sqrt(squared_lengths(X))
    if (lengths == 0).any():
        row = np.argmin(lengths)
        raise ValueError(f"compose: 'unit' cannot scale row {row} to length 1, since all of it is 0: drop the row")
    return psd.scale_rows(X, 1.0 / lengths)


def _sums(X: Any) -> np.ndarray:
    X = numeric(X, "warp with 'sum'")
    if not is_sparse(X):
        return np.asarray(X.sum(axis=1), dtype=np.float64)
    sums, rows = np.zeros(X.shape[0]), np.flatnonzero(np.diff(X.indptr))
    sums[rows] = np.add.reduceat(X.data, X.indptr[rows]) if len(rows) else 0.0
    return sums


MAPS: Mapping[str, Callable[[Any], Any]] = {
    "binary": _elementwise(lambda v: (v != 0).astype(v.dtype), "binary"),  # 1 where a number is not 0
    "log1p": _elementwise(np.log1p, "log1p", -1.0),  # log(1 + x)
    "sign": _elementwise(np.sign, "sign"),
    "unit": _unit,  # x / |x|
}

FACTORS: Mapping[str, Callable[[Any], Any]] = {
    "norm": lambda X: np.sqrt(squared_lengths(numeric(X, "warp with 'norm'"))),  # |x|
    "sum": _sums,
}


def map_of(phi: Function) -> Callable[[Any], Any]:
    return _known(phi, MAPS, "compose: phi")


def factor_of(f: Function) -> Callable[[Any], Any]:
    return _known(f, FACTORS, "warp: f")


def _known(given: Function, named: Mapping[str, Callable[[Any], Any]], who: str) -> Callable[[Any], Any]:
    if isinstance(given, Kernel):
        raise TypeError(f"{who} must be a function of examples, not a kernel, a function of pairs of examples: {given}")
    if callable(given):
        return partial(_call, given, who)
    if isinstance(given, str) and given in named:
        return named[given]
    raise ValueError(f"{who} must be a function or one of {', '.join(map(repr, named))}, not {given!r}")


def _call(function: Callable[[Any], Any], who: str, X: Any) -> Any:
    """``function(X)``; the function gets sparse rows as a SciPy matrix, and cannot change the user's data."""
    if isinstance(X, np.ndarray):
        X = X.view()
        X.flags.writeable = False
    elif isinstance(X, CSR):
        X = X.to_scipy().copy()
    elif is_scipy(X) or hasattr(X, "iloc"):  # SciPy could not sort the indices of a read-only matrix
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
    """The result of f as one number for each of ``size`` examples."""
    try:
        made = np.asarray(values)
        if made.dtype.kind not in "biuf":
            made = np.array(list(map(_number, made.ravel().tolist()))).reshape(made.shape)
        made = made.astype(np.float64)
    except (TypeError, ValueError):
        found = "something that is not a number"
    else:
        if made.shape in ((size,), (size, 1)) and np.isfinite(made).all():
            return made.reshape(-1)
        bad = made[~np.isfinite(made)]
        found = f"an array of shape {made.shape}" + (f" with {bad[0]} in it" if bad.size else "")
    raise ValueError(f"warp: {shown(f)} must give one finite number for each of the {size} examples, but gave {found}")


def _number(value: Any) -> float:
    if not isinstance(value, (Real, Decimal)):  # float() would also convert text
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def shown(function: Function) -> str:
    """A function in a formula: a name that can be read back, or its name in Python."""
    if isinstance(function, str):
        return repr(function)
    return f"<{getattr(function, '__name__', type(function).__name__).strip('<>')}>"
