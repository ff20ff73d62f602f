"""New kernels from old by what they do to the examples: factors f(x), maps phi(x), and cosines."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from onlearn.kernels import explicit
from onlearn.kernels.algebra import Composite
from onlearn.kernels.base import SCALE, ExampleError, Kernel, Numbers, Path, Points, Tile
from onlearn.kernels.family import kernel
from onlearn.kernels.functions import Function, factor_of, map_of, one_number_each, shown
from onlearn.kernels.passes import factors_pass, over_tile


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
        return explicit.scale_rows(self.k.features(X), self.points(X)[self.key].values)

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
        # The named maps keep the number of columns; of others we cannot know.
        return self.k.n_features(width) if isinstance(self.phi, str) else None

    def features(self, X: Any) -> Any:
        return self.k.features(self.mapped(X))

    def formula(self) -> str:
        return f"compose({self.k}, {shown(self.phi)})"


class NormalisationError(ExampleError):
    """An example whose k(x, x) is not a number above 0."""

    def __init__(self, k: Kernel, row: int, value: float) -> None:
        why = f"k(x, x) is {value:g} by {k}, which cannot be normalised"
        if value == 0 and k.data == "strings":
            why = f"an empty text, or one too short for {k}, cannot be normalised (k(x, x) is 0): leave it out"
        elif value == 0:
            why = f"k(x, x) is 0 by {k}, and that cannot be normalised: leave this example out"
        elif value == np.inf:
            told = k.remedy()
            why = f"k(x, x) is too large for a float by {k}, which cannot be normalised as a whole; "
            why += "scale the data" if told == SCALE else told
        super().__init__(row, why, f"row {row}: {why}")


@kernel("normalize")
class Normalize(Composite):
    """k(x, z) / sqrt(k(x, x) k(z, z)): the cosine of the angle between the features of x and z"""

    k: Kernel

    def check(self) -> None:
        super().check()
        if not self.k.has_lengths:
            raise ValueError(
                f"{self.k} cannot be normalised, for a precomputed matrix does not hold k(x, x) of examples to "
                "predict: normalise the kernel before the matrix is computed, normalize(k)(X)"
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
        return 0  # they cancel

    def eased(self) -> Kernel:
        return self  # a kernel that grows is normalised here already

    def diagonal(self, P: Points) -> np.ndarray:
        return np.ones(len(P))

    def merged(self, P: Points, coefs: np.ndarray) -> Any:
        inner = None if self.k.own_cosine else self.k.merged(P, P[self.key].values[:, None] * coefs)
        return None if inner is None else Scaled(inner, self.key)

    def n_features(self, width: int) -> int | None:
        return self.k.n_features(width)

    def features(self, X: Any) -> Any:
        return explicit.scale_rows(self.k.features(X), self.scales(self.points(X)))

    def formula(self) -> str:
        return f"normalize({self.k})"


class Scaled:
    """What another function scores, times a number of each example's own."""

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
