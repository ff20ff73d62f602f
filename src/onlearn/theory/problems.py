"""Problems to compare learners on: examples drawn anew as often as one likes, from a target and a domain.

A problem has one method, ``draw``. The ``world`` is a seed that fixes what stays the same in one repeat of an
experiment: which features are relevant, which rows are held out. ``target`` 0 and 1 are two concepts over the same
features, ``domain`` 0 and 1 two distributions of instances with the same concept; None is no particular one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlearn.theory.separable import as_rows, scipy_rows, scores

HELD_OUT = 0.3  # of the rows, for tests
MORE = 1.8  # times as often as usual features are on in the domain in which they are frequent


class Draw(NamedTuple):
    """What to draw examples from."""

    world: int
    target: int = 0
    domain: int | None = None
    held_out: bool = False


class Problem(Protocol):
    """Where examples come from."""

    classes: NDArray[Any]

    def draw(self, rng: np.random.Generator, rows: int, where: Draw) -> tuple[Any, NDArray[Any]]:
        """So many rows and their labels."""


@dataclass(frozen=True)
class MOfN:
    """Positive are the examples in which ``at_least`` of the ``relevant`` among ``n`` Boolean features are on.

    Half the examples are positive. The other features are on with probability ``active``; in a domain half of them are
    nine times as often on as the rest, and a quarter of the relevant ones never, in the other domain it is the other
    half and another quarter.

    >>> X, y = MOfN(n=50, relevant=6, at_least=2).draw(np.random.default_rng(0), 4, Draw(world=0))
    >>> X.shape, y.tolist()
    ((4, 50), [0, 1, 1, 1])
    """

    n: int = 100
    relevant: int = 10
    at_least: int = 3
    active: float = 0.1

    def __post_init__(self) -> None:
        if not 1 <= self.at_least <= self.relevant <= self.n:
            given = f"{self.at_least}, {self.relevant} and {self.n}"
            raise ValueError(f"MOfN needs 1 <= at_least <= relevant <= n, but they are {given}.")
        if not 0.0 <= self.active <= 0.5:
            raise ValueError(f"active must be from 0 to 0.5, but it is {self.active}.")

    @property
    def classes(self) -> NDArray[Any]:
        return np.array([0, 1])

    def draw(self, rng: np.random.Generator, rows: int, where: Draw) -> tuple[Any, NDArray[Any]]:
        m, least = self.relevant, self.at_least
        order = np.random.default_rng([where.world, where.target]).permutation(self.n)
        others = order[m:]
        chance = np.full(len(others), self.active)
        usable = np.ones(m)
        if where.domain is not None:
            # by the number of the feature, whatever the target
            chance = self.active * np.where(others % 2 == where.domain, MORE, 2.0 - MORE)
            missing = max(0, min(m // 4, m - least - 1))
            usable[:missing] = where.domain
            usable[m - missing :] = 1 - where.domain
        X = np.zeros((rows, self.n))
        X[:, others] = rng.random((rows, len(others))) < chance
        y = rng.integers(0, 2, rows)
        most = int(usable.sum())
        many = rng.integers(least, min(most, least + 2) + 1, rows)
        on = np.where(y == 1, many, rng.integers(max(0, least - 3), least, rows))
        # the features with the smallest random numbers; those that cannot be on have large ones
        places = np.argsort(rng.random((rows, m)) + 2.0 * (usable == 0.0), axis=1)[:, : least + 2]
        chosen = np.arange(places.shape[1]) < on[:, None]
        X[np.nonzero(chosen)[0], order[places[chosen]]] = 1.0
        return X, y


class Rows:
    """Rows and labels of one's own, drawn with replacement; a part of them is held out for tests.

    Target 1 has every label moved on to the next class. The domains are the halves of the rows on either side of a
    random plane.
    """

    def __init__(self, X: Any, y: ArrayLike) -> None:
        self.X, self.y = scipy_rows(as_rows(X)), np.asarray(y)
        if self.y.shape != (self.X.shape[0],):
            raise ValueError(f"y must hold one label for each of the {self.X.shape[0]} rows.")
        self.classes, self.codes = np.unique(self.y, return_inverse=True)
        if len(self.classes) < 2 or self.X.shape[0] < 20:
            raise ValueError("Learners are compared on at least 20 rows of two classes or more.")

    def draw(self, rng: np.random.Generator, rows: int, where: Draw) -> tuple[Any, NDArray[Any]]:
        fixed, m = np.random.default_rng([where.world, 7]), self.X.shape[0]
        order = fixed.permutation(m)
        held = max(1, round(HELD_OUT * m))
        part = order[:held] if where.held_out else order[held:]
        if where.domain is not None:
            side = scores(self.X, fixed.normal(size=self.X.shape[1]))[part]
            ranked = part[np.argsort(side, kind="stable")]
            half = max(1, len(ranked) // 2)
            part = ranked[:half] if where.domain == 0 else ranked[half:]
        some = part[rng.integers(0, len(part), rows)]
        codes = (self.codes[some] + where.target) % len(self.classes)
        return self.X[some], self.classes[codes]
