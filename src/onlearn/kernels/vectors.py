"""Kernels of rows of numbers: functions of x.z and the lengths of x and z, or of the distance of x and z.

| kernel | k(x, z) |
|---|---|
| `linear` | x.z |
| `polynomial` | (gamma x.z + coef0)^degree |
| `gaussian` | exp(-gamma |x - z|^2) |
| `laplacian` | exp(-gamma |x - z|_1) |
| `sigmoid` | tanh(gamma x.z + coef0) |
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import comb
from typing import Any

import numpy as np

from onlearn.engine.spec import param
from onlearn.kernels import psd
from onlearn.kernels.base import Kernel, Points
from onlearn.kernels.family import kernel, spelled
from onlearn.kernels.products import Vectors, numeric, same_width, vectors
from onlearn.kernels.tiles import (
    Path,
    Tile,
    decay_pass,
    gaussian_pass,
    in_threads,
    over_tile,
    polynomial_pass,
    reordered,
)

EXPONENTIAL = 6  # multiplications that take as long as one exponential
COARSE = 1e-4  # the largest error of gamma |x - z|^2 that is accepted for speed


def prepare_vectors(X: Any, views: dict[Hashable, Any], who: Kernel) -> None:
    if "vectors" not in views:
        views["vectors"] = vectors(X, who)


class OfProducts(Kernel):
    """A kernel that is computed from the products x.z."""

    of_products = True

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        prepare_vectors(X, views, self)

    def uses(self) -> Iterator[Path]:
        yield ()


@kernel("linear")
class Linear(OfProducts):
    """k(x, z) = x.z"""

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        tile.products(out)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.array(P["vectors"].squares)

    def n_features(self, width: int) -> int | None:
        return width

    def features(self, X: Any) -> Any:
        return numeric(X, self)


@kernel("polynomial")
class Polynomial(OfProducts):
    """k(x, z) = (gamma x.z + coef0)^degree"""

    degree: int = param(2, "the degree", at_least=1, below=2**31)
    coef0: float = param(1.0, "what is added to x.z; 0 leaves only the terms of the highest degree", at_least=0)
    gamma: float = param(1.0, "what x.z is multiplied by", above=0)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        tile.products(out)
        number = out.dtype.type
        over_tile(polynomial_pass, out, number(self.gamma), number(self.coef0), self.degree)

    def diagonal(self, P: Points) -> np.ndarray:
        return (self.gamma * P["vectors"].squares + self.coef0) ** self.degree

    def formula(self) -> str:
        rest = {key: value for key, value in self.changed().items() if key != "degree"}
        return spelled(self.name, rest, str(self.degree))

    def n_features(self, width: int) -> int | None:
        return comb(width + self.degree, self.degree) if self.coef0 else comb(width + self.degree - 1, self.degree)

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        d = self.degree
        weights = [comb(d, n) * self.coef0 ** (d - n) * self.gamma**n for n in range(d + 1)]
        return psd.monomials(numeric(X, self), d, weights)


@kernel("gaussian")
class Gaussian(OfProducts):
    """k(x, z) = exp(-|x - z|^2 / (2 sigma^2)) = exp(-gamma |x - z|^2); give one of sigma and gamma (sigma = 1)."""

    sigma: float | None = param(None, "the width of the bell", above=0, words=(None,))
    gamma: float | None = param(None, "1 / (2 sigma^2)", above=0, words=(None,))

    def check(self) -> None:
        if self.sigma is not None and self.gamma is not None:
            raise ValueError("gaussian: give sigma or gamma, not both")
        if not 0 < self.rate < np.inf:
            raise ValueError(
                f"gaussian: sigma={self.sigma!r} is out of range: 1 / (2 sigma^2) must be a number above 0"
            )

    @property
    def rate(self) -> float:
        """gamma, whichever of the two was given."""
        if self.gamma is not None:
            return self.gamma
        square = (1.0 if self.sigma is None else self.sigma) ** 2
        return 0.5 / square if square else np.inf

    def identity(self) -> tuple[Any, ...]:
        return type(self), self.rate  # sigma and gamma are two parameters for one value

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["vectors"], tile.Q["vectors"]
        number = out.dtype.type
        # |x|^2 + |z|^2 - 2 x.z has a rounding error of the size of |x||z|, which gamma may make too large.
        if self.rate * np.sqrt(P.longest * Q.longest) * np.finfo(out.dtype).eps > COARSE:
            distances(P, Q, out, squared=True)
            over_tile(decay_pass, out, number(self.rate), cost=EXPONENTIAL)
        else:
            tile.products(out)
            a, b = P.squares.astype(out.dtype), Q.squares.astype(out.dtype)
            over_tile(gaussian_pass, out, number(self.rate), a, b, cost=EXPONENTIAL)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.ones(len(P))


@kernel("laplacian")
class Laplacian(Kernel):
    """k(x, z) = exp(-gamma |x - z|_1)"""

    gamma: float = param(1.0, "how fast it falls with the distance", above=0)

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        prepare_vectors(X, views, self)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        distances(tile.P["vectors"], tile.Q["vectors"], out, squared=False)
        over_tile(decay_pass, out, out.dtype.type(self.gamma), cost=EXPONENTIAL)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.ones(len(P))


@kernel("sigmoid")
class Sigmoid(OfProducts):
    """k(x, z) = tanh(gamma x.z + coef0). Not always a kernel: see ``check_kernel``."""

    gamma: float = param(1.0, "what x.z is multiplied by", above=0)
    coef0: float = param(0.0, "what is added to it")

    always_psd = False

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        tile.products(out)
        over_tile(polynomial_pass, out, out.dtype.type(self.gamma), out.dtype.type(self.coef0), 1)
        np.tanh(out, out=out)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.tanh(self.gamma * P["vectors"].squares + self.coef0)


# -- distances by differences: |x - z|_1, and |x - z|^2 where |x|^2 + |z|^2 - 2 x.z would lose it to rounding


def distances(P: Vectors, Q: Vectors, out: np.ndarray, squared: bool) -> None:
    """Write |x - z|^2 or |x - z|_1 of all pairs to ``out``."""
    same_width(P, Q)
    step: Any
    lines: tuple[Any, ...]
    if P.sparse and Q.sparse:
        lines = P.X.data, P.X.indices, P.X.indptr, Q.X.data, Q.X.indices, Q.X.indptr
        step = sparse_squared if squared else sparse_absolute
        cost = len(P) * Q.X.nnz + len(Q) * P.X.nnz
    else:
        lines = P.dense, Q.dense
        step = dense_squared if squared else dense_absolute
        cost = len(P) * len(Q) * P.width

    def work(start: int, stop: int) -> None:
        step(*lines, out, start, stop)

    in_threads(work, len(P), cost)


@reordered
def dense_squared(X, Z, out, start, stop):
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, total = Z[j], out.dtype.type(0)
            for n in range(width):
                total += (x[n] - z[n]) * (x[n] - z[n])
            out[i, j] = total


@reordered
def dense_absolute(X, Z, out, start, stop):
    width = np.uint64(X.shape[1])
    for i in range(start, stop):
        x = X[i]
        for j in range(Z.shape[0]):
            z, total = Z[j], out.dtype.type(0)
            for n in range(width):
                total += abs(x[n] - z[n])
            out[i, j] = total


@reordered
def sparse_squared(data, indices, indptr, values, places, starts, out, start, stop):
    """The two rows are merged; their columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, total = indptr[i], starts[j], out.dtype.type(0)
            while p < indptr[i + 1] or q < starts[j + 1]:
                left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int64).max
                right = places[q] if q < starts[j + 1] else np.iinfo(np.int64).max
                gap = (data[p] if left <= right else data.dtype.type(0)) - (
                    values[q] if right <= left else data.dtype.type(0)
                )
                total += gap * gap
                p += left <= right
                q += right <= left
            out[i, j] = total


@reordered
def sparse_absolute(data, indices, indptr, values, places, starts, out, start, stop):
    """The two rows are merged; their columns are in order."""
    for i in range(start, stop):
        for j in range(len(starts) - 1):
            p, q, total = indptr[i], starts[j], out.dtype.type(0)
            while p < indptr[i + 1] or q < starts[j + 1]:
                left = indices[p] if p < indptr[i + 1] else np.iinfo(np.int64).max
                right = places[q] if q < starts[j + 1] else np.iinfo(np.int64).max
                gap = (data[p] if left <= right else data.dtype.type(0)) - (
                    values[q] if right <= left else data.dtype.type(0)
                )
                total += abs(gap)
                p += left <= right
                q += right <= left
            out[i, j] = total
