"""Finite classes of concepts, and what is left of them after some examples: the version space.

A set of concepts is a whole number with a bit for each, so that a few operations on long numbers deal with all
concepts at once. The conjunctions that hold at x are those without any literal that x denies: the intersection of n
sets that are made once, one for each literal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlearn.theory.concepts import DNF, Conjunction
from onlearn.theory.instances import Bools, as_count

_LARGEST = 1 << 24  # concepts in a class


@runtime_checkable
class ConceptClass(Protocol):
    """Numbered concepts over n attributes."""

    @property
    def n(self) -> int | None:
        """Attributes; None if any number will do."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Any:
        """The concept with this number, from 0."""
        ...

    def accepting(self, x: Bools) -> int:
        """The set of the concepts that hold at x, as bits."""
        ...


@dataclass(frozen=True, eq=False)
class Listed:
    """Concepts, or functions of an instance, in a list."""

    concepts: tuple[Any, ...]

    @cached_property
    def n(self) -> int | None:
        sizes = {concept.n for concept in self.concepts if hasattr(concept, "n")}
        if len(sizes) > 1:
            raise ValueError(f"The concepts of a class must have the same attributes, but n is {sorted(sizes)}.")
        return min(sizes, default=None)

    def __len__(self) -> int:
        return len(self.concepts)

    def __getitem__(self, number: int) -> Any:
        return self.concepts[number]

    def accepting(self, x: Bools) -> int:
        return as_bits(np.array([bool(concept(x)) for concept in self.concepts]))


@dataclass(frozen=True, eq=False, repr=False)
class Conjunctions:
    """Conjunctions over n attributes: +1, 0 or -1 for each attribute, a row for each conjunction."""

    signs: NDArray[np.int8]

    @property
    def n(self) -> int:
        return int(self.signs.shape[1])

    def __len__(self) -> int:
        return len(self.signs)

    def __iter__(self) -> Iterator[Conjunction]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> Conjunction:
        signs = self.signs[number].astype(np.int64)
        literals = signs * np.arange(1, self.n + 1)
        return Conjunction(literals[literals != 0].tolist(), n=self.n)

    @cached_property
    def _without(self) -> tuple[list[int], list[int]]:
        """For each attribute, the conjunctions that do not hold it plain, and those that do not hold it negated."""
        columns = self.signs.T
        return [as_bits(column != 1) for column in columns], [as_bits(column != -1) for column in columns]

    def accepting(self, x: Bools) -> int:
        plain, negated = self._without
        accepted = (1 << len(self)) - 1
        for attribute, on in enumerate(x.tolist()):
            accepted &= negated[attribute] if on else plain[attribute]
        return accepted

    def __repr__(self) -> str:
        return f"<{len(self)} conjunctions over {self.n} attributes>"


def conjunctions(n: int, k: int | None = None, monotone: bool = False) -> Conjunctions:
    """All conjunctions over n attributes: 3^n; of exactly k literals: C(n, k) 2^k; monotone: 2^n and C(n, k).

    >>> len(conjunctions(4)), len(conjunctions(4, k=2)), len(conjunctions(4, monotone=True))
    (81, 24, 16)
    >>> list(conjunctions(3, k=2, monotone=True))
    [Conjunction([1, 2], n=3), Conjunction([1, 3], n=3), Conjunction([2, 3], n=3)]
    """
    n = as_count("n", n, least=1)
    values = np.array([0, 1] if monotone else [0, 1, -1], dtype=np.int8)
    if k is None:
        _check_size(len(values) ** n)
        digits = [np.tile(np.repeat(values, len(values) ** j), len(values) ** (n - 1 - j)) for j in range(n)]
        return Conjunctions(np.stack(digits, axis=1))
    if as_count("k", k) > n:
        raise ValueError(f"A conjunction of k among n attributes needs k <= n, but k is {k} and n is {n}.")
    _check_size(math.comb(n, k) * (len(values) - 1) ** k)
    negated = (np.arange(1 if monotone else 2**k)[:, None] >> np.arange(k)) & 1
    patterns = (1 - 2 * negated).astype(np.int8)
    chosen = np.array(list(combinations(range(n), k)), dtype=np.int64).reshape(math.comb(n, k), k)
    signs = np.zeros((len(chosen) * len(patterns), n), dtype=np.int8)
    places = np.repeat(chosen, len(patterns), axis=0)
    np.put_along_axis(signs, places, np.tile(patterns, (len(chosen), 1)), axis=1)
    return Conjunctions(signs)


@dataclass(frozen=True)
class Functions:
    """All 2^(2^n) Boolean functions. Bit i of a function's number is its value at x, where i = sum of 2^(j-1) x_j."""

    n: int

    def __len__(self) -> int:
        return 1 << (1 << self.n)

    def __iter__(self) -> Iterator[DNF]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, number: int) -> DNF:
        if not 0 <= number < len(self):
            raise IndexError(f"There are {len(self)} functions of {self.n} attributes, but {number} was asked for.")
        terms = (
            [attribute + 1 if i >> attribute & 1 else -attribute - 1 for attribute in range(self.n)]
            for i in range(1 << self.n)
            if number >> i & 1
        )
        return DNF(terms, n=self.n)

    @cached_property
    def _holding(self) -> list[int]:
        """For each instance, the functions that are 1 there: by turns 2^i without bit i and as many with it."""
        everything = (1 << len(self)) - 1
        halves = [1 << i for i in range(1 << self.n)]
        return [(((1 << half) - 1) << half) * (everything // ((1 << 2 * half) - 1)) for half in halves]

    def accepting(self, x: Bools) -> int:
        return self._holding[sum(1 << attribute for attribute, on in enumerate(x.tolist()) if on)]


def functions(n: int) -> Functions:
    """All Boolean functions of n <= 4 attributes.

    >>> len(functions(2)), print(functions(2)[8])
    x1 & x2
    (16, None)
    """
    if as_count("n", n, least=1) > 4:
        raise ValueError(f"All functions can be listed of up to 4 attributes, but n is {n}.")
    return Functions(int(n))


def as_class(concepts: Any) -> ConceptClass:
    """A class as it is, or an iterable of concepts as one."""
    if isinstance(concepts, ConceptClass):
        found = concepts
    elif isinstance(concepts, Iterable):
        found = Listed(tuple(concepts))
    else:
        raise ValueError(f"A class must be an iterable of concepts, but it is {concepts!r}.")
    if not len(found):
        raise ValueError("A class must hold at least one concept.")
    if isinstance(found, Listed) and not all(map(callable, found.concepts)):
        wrong = next(one for one in found.concepts if not callable(one))
        raise ValueError(f"A class must be an iterable of concepts, but it holds {wrong!r}.")
    return found


@dataclass(frozen=True, eq=False)
class VersionSpace:
    """The concepts of a class that agree with all examples so far."""

    concepts: ConceptClass
    bits: int

    @classmethod
    def whole(cls, concepts: ConceptClass) -> VersionSpace:
        return cls(concepts, (1 << len(concepts)) - 1)

    def accepting(self, x: Bools) -> VersionSpace:
        """Those that hold at x."""
        return VersionSpace(self.concepts, self.bits & self.concepts.accepting(x))

    def without(self, other: VersionSpace) -> VersionSpace:
        return VersionSpace(self.concepts, self.bits & ~other.bits)

    @property
    def first(self) -> Any:
        return self.concepts[(self.bits & -self.bits).bit_length() - 1]

    def __len__(self) -> int:
        return self.bits.bit_count()

    def __iter__(self) -> Iterator[Any]:
        packed = np.frombuffer(self.bits.to_bytes(-(-len(self.concepts) // 8), "little"), dtype=np.uint8)
        return map(self.concepts.__getitem__, np.flatnonzero(np.unpackbits(packed, bitorder="little")).tolist())


def as_bits(members: Bools) -> int:
    """A set as a whole number."""
    return int.from_bytes(np.packbits(members, bitorder="little").tobytes(), "little")


def _check_size(size: int) -> None:
    if size > _LARGEST:
        raise ValueError(f"A class may hold up to {_LARGEST} concepts, but it would have {size}.")
