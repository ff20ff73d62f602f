"""New kernels from others: sums, products, positive multiples, powers, exp, series.

Each of these is an inner product if its parts are (Haussler 1999; Shawe-Taylor and Cristianini 2004, proposition
3.22). They are evaluated tile by tile, and share the products x.z.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import numpy as np

from onlearn.engine.spec import param
from onlearn.kernels import psd
from onlearn.kernels.base import SCALE, Kernel, Points, as_number
from onlearn.kernels.family import kernel
from onlearn.kernels.tiles import Path, Tile, in_threads, over_tile, polynomial_pass, series_pass


class Composite(Kernel):
    """A kernel made of others, over the same examples."""

    part_names: ClassVar[tuple[str, ...]] = ("k",)  # the fields that are kernels

    def parts(self) -> list[Kernel]:
        return [getattr(self, name) for name in self.part_names]

    def check(self) -> None:
        from onlearn.kernels.formula import get

        for name in self.part_names:
            setattr(self, name, get(getattr(self, name)))
        self.data: str = common_data(self.parts())
        self.always_psd: bool = all(part.always_psd for part in self.parts())
        self.has_lengths: bool = all(part.has_lengths for part in self.parts())
        self.of_products: bool = all(part.of_products for part in self.parts())
        self.of_bits: bool = any(part.of_bits for part in self.parts())

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        for part in self.parts():
            part.prepare(X, views)
        self.halvings(Points(views))  # refuses parts that are scaled differently

    def halvings(self, P: Points) -> int:
        return self.common_halvings(P, *self.parts())

    def common_halvings(self, P: Points, *parts: Kernel | None) -> int:
        """The halvings of all parts, or an error if they differ; None stands for a constant, which has none."""
        found = [0 if part is None else part.halvings(P) for part in parts]
        if min(found) != max(found):
            raise OverflowError(
                f"{self} cannot be computed for rows this wide: its part {parts[int(np.argmax(found))]} is so large "
                f"that it is divided by 2^{max(found)}, but other parts by less; {self.remedy()}"
            )
        return found[0]

    def uses(self) -> Iterator[Path]:
        for part in self.parts():
            yield from part.uses()

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return all(part.bounded(P, Q, dtype) for part in self.parts()) and super().bounded(P, Q, dtype)

    def remedy(self) -> str:
        eased = self.eased()
        if eased != self:
            return f"normalise the part that grows so large: {eased}"
        return next((remedy for part in self.parts() if (remedy := part.remedy()) != SCALE), SCALE)

    def eased(self) -> Kernel:
        from onlearn.kernels.transforms import Normalize

        parts = zip(self.part_names, self.parts(), strict=True)
        eased = {name: Normalize(k) if k.grows else k.eased() for name, k in parts}
        return type(self)(**self.get_params(deep=False) | eased)

    def inside(self, part: Kernel, least: int) -> str:
        """The formula of a part, in brackets if it binds more loosely than ``least``."""
        return str(part) if part.level >= least else f"({part})"


def common_data(parts: list[Kernel]) -> str:
    kinds = {part.data: part for part in parts if part.data != "any"}
    if len(kinds) > 1:
        (first, k1), (second, k2) = list(kinds.items())[:2]
        raise ValueError(f"{k1} works on {first} and {k2} on {second}: use compose, so that both work on the same data")
    return next(iter(kinds), "any")


@kernel("sum")
class Sum(Composite):
    """k1(x, z) + k2(x, z)"""

    k1: Kernel
    k2: Kernel

    part_names: ClassVar[tuple[str, ...]] = ("k1", "k2")
    level = 0

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k1.fill(tile, out)
        other = tile.borrow(out)
        self.k2.fill(tile, other)
        out += other
        tile.give_back(other)

    def diagonal(self, P: Points) -> np.ndarray:
        return self.k1.diagonal(P) + self.k2.diagonal(P)

    def n_features(self, width: int) -> int | None:
        first, second = self.k1.n_features(width), self.k2.n_features(width)
        return None if first is None or second is None else first + second

    def features(self, X: Any) -> Any:
        return psd.beside([self.k1.features(X), self.k2.features(X)])

    def formula(self) -> str:
        return f"{self.k1} + {self.inside(self.k2, 1)}"


@kernel("product")
class Product(Composite):
    """k1(x, z) k2(x, z)"""

    k1: Kernel
    k2: Kernel

    part_names: ClassVar[tuple[str, ...]] = ("k1", "k2")
    level = 1

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k1.fill(tile, out)
        other = tile.borrow(out)
        self.k2.fill(tile, other)
        out *= other
        tile.give_back(other)

    def halvings(self, P: Points) -> int:
        return self.k1.halvings(P) + self.k2.halvings(P)

    def diagonal(self, P: Points) -> np.ndarray:
        return self.k1.diagonal(P) * self.k2.diagonal(P)

    def n_features(self, width: int) -> int | None:
        first, second = self.k1.n_features(width), self.k2.n_features(width)
        return None if first is None or second is None else first * second

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        return psd.outer(self.k1.features(X), self.k2.features(X))

    def formula(self) -> str:
        return f"{self.inside(self.k1, 1)}*{self.inside(self.k2, 2)}"


@kernel("scale")
class Scale(Composite):
    """factor k(x, z)"""

    k: Kernel
    factor: float = param(1.0, "the factor", above=0)

    level = 1

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile, out)
        out *= out.dtype.type(self.factor)

    def diagonal(self, P: Points) -> np.ndarray:
        return self.factor * self.k.diagonal(P)

    def n_features(self, width: int) -> int | None:
        return self.k.n_features(width)

    def features(self, X: Any) -> Any:
        return psd.scale(self.k.features(X), self.factor**0.5)

    def formula(self) -> str:
        return f"{self.factor!r}*{self.inside(self.k, 2)}"


@kernel("power")
class Power(Composite):
    """k(x, z)^degree"""

    k: Kernel
    degree: int = param(2, "the power", at_least=1, below=2**31)

    level = 2

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile, out)
        over_tile(polynomial_pass, out, out.dtype.type(1), out.dtype.type(0), self.degree)

    def halvings(self, P: Points) -> int:
        return self.degree * self.k.halvings(P)

    def diagonal(self, P: Points) -> np.ndarray:
        return self.k.diagonal(P) ** self.degree

    def n_features(self, width: int) -> int | None:
        size = self.k.n_features(width)
        return None if size is None else size**self.degree

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        base = made = self.k.features(X)
        for _ in range(self.degree - 1):
            made = psd.outer(made, base)
        return made

    def formula(self) -> str:
        return f"{self.inside(self.k, 3)}**{self.degree}"


@kernel("exp")
class Exp(Composite):
    """exp(k(x, z))"""

    k: Kernel

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile, out)

        def work(start: int, stop: int) -> None:
            with np.errstate(over="ignore"):  # each thread has its own setting
                np.exp(out[start:stop], out=out[start:stop])

        in_threads(work, len(out), 4 * out.size)

    def halvings(self, P: Points) -> int:
        return self.common_halvings(P, self.k, None)  # exp is a series, with a constant

    def diagonal(self, P: Points) -> np.ndarray:
        return np.exp(self.k.diagonal(P))

    def formula(self) -> str:
        return f"exp({self.k})"


@kernel("poly")
class Poly(Composite):
    """coefs[0] + coefs[1] k(x, z) + coefs[2] k(x, z)^2 + ..., no coefficient below 0"""

    k: Kernel
    coefs: Any

    def check(self) -> None:
        super().check()
        if isinstance(self.coefs, np.ndarray):
            self.coefs = self.coefs.tolist()
        found = [as_number(c) for c in self.coefs] if isinstance(self.coefs, (list, tuple)) else [None]
        good = all(isinstance(c, float) for c in found)
        values = np.array(found) if good else np.zeros(0)
        if not good or not np.isfinite(values).all() or (values < 0).any() or not (values > 0).any():
            raise ValueError(
                "poly: coefs must be a list of numbers of at least 0, not all 0 (with a negative one it is not a "
                f"kernel), not {self.coefs!r}"
            )

    def identity(self) -> tuple[Any, ...]:
        return (type(self), self.k, tuple(float(c) for c in self.coefs))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        self.k.fill(tile, out)
        over_tile(series_pass, out, np.array(self.coefs, dtype=out.dtype))

    def halvings(self, P: Points) -> int:
        powers = np.flatnonzero(self.coefs)
        if len(powers) == 1:
            return int(powers[0]) * self.k.halvings(P)
        return self.common_halvings(P, self.k, None)  # k and k^2 are scaled differently, as k and a constant are

    def diagonal(self, P: Points) -> np.ndarray:
        return np.asarray(np.polynomial.polynomial.polyval(self.k.diagonal(P), self.coefs))

    def n_features(self, width: int) -> int | None:
        size = self.k.n_features(width)
        return None if size is None else sum(size**n for n, c in enumerate(self.coefs) if c)

    def features(self, X: Any) -> Any:
        psd.refuse_too_many(self, X)
        base = self.k.features(X)
        made, found = psd.ones_like(base), []
        for n, c in enumerate(self.coefs):
            if n:
                made = psd.outer(made, base)
            if c:
                found.append(psd.scale(made, float(c) ** 0.5))
        return psd.beside(found)

    def formula(self) -> str:
        return f"poly({self.k}, {[float(c) for c in self.coefs]!r})"


def exp(k: Any) -> Exp:
    """exp(k(x, z))"""
    return Exp(k)


def poly(k: Any, coefs: Any) -> Poly:
    """coefs[0] + coefs[1] k(x, z) + coefs[2] k(x, z)^2 + ..."""
    return Poly(k, coefs)
