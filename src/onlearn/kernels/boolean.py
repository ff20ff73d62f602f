"""Kernels of rows of 0 and 1: inner products of all conjunctions, of those of a size, of all products of columns.

A *literal* is a column or its negation; a conjunction of literals is a feature that is 1 where all of them hold. How
many conjunctions hold in both x and z follows from how many columns agree (Khardon, Roth and Servedio 2005), so a
kernel value is a count of bits and a look into a table. The table is computed with whole numbers. If its largest entry
is beyond 2^960, all of it is divided by the power of two that makes that entry 2^960 at most: a power that only
depends on the number of columns, so that a perceptron's decisions are what they were (``halvings`` is for whatever
there is beside the kernel, such as the constant feature of an intercept: it must be scaled along). Values that are
then below the smallest number (2^-1022) count as 0.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import comb, ldexp
from typing import Any

import numpy as np

from onlearn.kernels import explicit
from onlearn.kernels.base import Kernel, Points, Tile
from onlearn.kernels.bits import Bits, SparseOnes, look_up, ones_of
from onlearn.kernels.family import flag, kernel, spelled
from onlearn.kernels.vectors import numeric
from onlearn.spelling import param

SINGLE = 2.0**100  # values beyond it are not for single precision
LARGEST = 960  # leaves room for sums of very many large values


class Counting(Kernel):
    """A kernel that is a function of how many columns agree, or of how many are 1 in both."""

    of_bits = grows = True
    shared = False  # whether it counts columns that are 1 in both, rather than those that agree

    def counts(self, width: int) -> list[int]:
        """The values for 0..width columns, as whole numbers."""
        raise NotImplementedError

    def table(self, width: int) -> np.ndarray:
        """The value for each number of shared or of differing columns."""
        values, _ = _table(self, width)
        return values if self.shared else values[::-1]

    def halvings(self, P: Points) -> int:
        return _table(self, self.ones(P).width)[1]

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        ones = next((view for view in views.values() if isinstance(view, (Bits, SparseOnes))), None)
        ones = ones_of(X, self) if ones is None else ones
        views.setdefault(self.key(ones.width), ones if self.fits_single(ones.width) else ones.in_double())

    def key(self, width: int) -> Hashable:
        return "ones" if self.fits_single(width) else "ones in double"

    def fits_single(self, width: int) -> bool:
        """Whether single precision will do, if the data are of that."""
        return bool(self.table(width).max() < SINGLE)

    def ones(self, P: Points) -> Any:
        return P["ones"] if "ones" in P.views and self.fits_single(P["ones"].width) else P["ones in double"]

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = self.ones(tile.P), self.ones(tile.Q)
        look_up(P, Q, self.table(P.width), self.shared, out)

    def diagonal(self, P: Points) -> np.ndarray:
        ones = self.ones(P)
        return self.table(ones.width)[ones.counts if self.shared else np.zeros(len(ones), np.int64)]

    def literals(self, X: Any) -> list[Any]:
        """For each column the literals of it, as features."""
        self.points(X)  # which checks that there is nothing but 0 and 1
        X = numeric(X, self)
        columns = [X[:, [n]] for n in range(X.shape[1])]
        if self.shared:
            return columns
        return [explicit.beside([column, explicit.ones_like(column) - column]) for column in columns]


@lru_cache(maxsize=64)
def _table(kernel: Counting, width: int) -> tuple[np.ndarray, int]:
    """The counts for 0..width columns, scaled if need be, and by which power of two."""
    exact = kernel.counts(width)
    shift = max(0, exact[-1].bit_length() - 1 - LARGEST)
    values = np.array([_scaled(value, shift) for value in exact])
    values.flags.writeable = False
    return values, shift


def _scaled(value: int, shift: int) -> float:
    """value / 2^shift, also where value is beyond all floating-point numbers."""
    spare = max(0, value.bit_length() - 64)
    return ldexp(float(value >> spare), spare - shift)


@kernel("monomials")
class Monomials(Counting):
    """k(x, z) = 2^same(x, z): all 3^n conjunctions of literals

    >>> Monomials()([[1, 1, 0, 0]], [[1, 1, 0, 1]])
    array([[8.]])
    """

    def counts(self, width: int) -> list[int]:
        return [1 << n for n in range(width + 1)]

    def n_features(self, width: int) -> int | None:
        return 3**width

    def features(self, X: Any) -> Any:
        explicit.refuse_too_many(self, X)
        literals = self.literals(X)
        made = explicit.ones_like(literals[0])
        for pair in literals:
            made = explicit.outer(made, explicit.beside([explicit.ones_like(pair), pair]))
        return made


@kernel("conjunctions")
class Conjunctions(Counting):
    """How many conjunctions of ``size`` literals hold in both; of up to that many if not ``exactly``"""

    size: int = param(2, "how many literals", at_least=1)
    exactly: bool = flag(True, "of that size only, or also of smaller ones and the empty one")
    monotone: bool = flag(False, "without negated columns")

    def check(self) -> None:
        self.shared = self.monotone

    def sizes(self) -> range:
        return range(self.size if self.exactly else 0, self.size + 1)

    def counts(self, width: int) -> list[int]:
        # C(n, size) and their sums S(n) over sizes up to it, each from the one before (a sum afresh for every n takes
        # minutes where rows are wide): C(n, size) = C(n - 1, size) n / (n - size), and by Pascal's rule
        # S(n + 1) = 2 S(n) - C(n, size).
        size, chosen, total, found = self.size, 0, 1, []
        for n in range(width + 1):
            if n == size:
                chosen = 1
            elif n > size:
                chosen = chosen * n // (n - size)
            found.append(chosen if self.exactly else total)
            total = 2 * total - chosen
        return found

    def formula(self) -> str:
        rest = {key: value for key, value in self.changed().items() if key != "size"}
        return spelled(self.name, rest, str(self.size))

    def n_features(self, width: int) -> int | None:
        each = 1 if self.monotone else 2
        if self.exactly:
            return comb(width, self.size) * each**self.size
        made = total = 1
        for size in range(1, min(self.size, width) + 1):
            made = made * (width - size + 1) * each // size
            total += made
        return total

    def features(self, X: Any) -> Any:
        explicit.refuse_too_many(self, X)
        literals = self.literals(X)
        if self.exactly and self.size > len(literals):  # too few columns for any
            return literals[0][:, :0]
        made: list[Any] = [explicit.ones_like(literals[0])]  # of each size, over the columns so far
        for column in literals:
            for size in range(min(len(made), self.size), 0, -1):
                longer = explicit.outer(made[size - 1], column)
                if size == len(made):
                    made.append(longer)
                else:
                    made[size] = explicit.beside([made[size], longer])
        scaled = float(self.table(len(literals))[-1 if self.shared else 0])
        root = (scaled / self.counts(len(literals))[-1]) ** 0.5
        return explicit.beside([made[size] * root for size in self.sizes() if size < len(made)])
