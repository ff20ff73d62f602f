"""Normal forms of Boolean concepts: two concepts are the same function exactly if their normal forms are equal.

- `Counted`: at least m of some literals, 1 <= m <= their number, no two of one attribute. Every attribute matters,
  its sign says in which direction, and m is the fewest that do: so m and the literals follow from the function.
- `Parity`: an odd (or even) number of two or more attributes is on.
- `Implicants`: all prime implicants, for every other function (the canonical form of A. Blake, 1937). From terms they
  are found by consensus: of "a and t", "b and not t" follows "a and b"; terms that hold another one are dropped
  (W. Quine, The problem of simplifying truth functions, 1952). From a table: by comparing each cube with its halves.
- `Opaque`: a function of too many attributes to be tabulated, equal to itself alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlearn.theory.instances import Bools

Term = frozenset[int]  # of literals

TABULATED = 12  # attributes up to which all 2^n values and all 3^n terms are looked at
_MOST_IMPLICANTS = 1000  # new ones at a time: comparing all pairs of more takes too long


@dataclass(frozen=True)
class Counted:
    """At least `at_least` of the literals hold."""

    at_least: int
    literals: Term


@dataclass(frozen=True)
class Parity:
    """The number of attributes that are on is odd, or even."""

    attributes: frozenset[int]
    odd: bool


@dataclass(frozen=True)
class Implicants:
    """One of the terms, which are the prime implicants, holds."""

    terms: frozenset[Term]


@dataclass(frozen=True)
class Opaque:
    """A function known by its values alone."""

    function: Callable[..., Any]


NormalForm = Counted | Parity | Implicants | Opaque

TRUE = Counted(0, frozenset())
FALSE = Counted(1, frozenset())


def counted(at_least: int, literals: Iterable[int]) -> Counted:
    """At least so many of the literals; of an attribute and its negation exactly one holds.

    >>> counted(2, [1, -1, 3]) == counted(1, [3])
    True
    """
    all_literals = frozenset(literals)
    single = frozenset(literal for literal in all_literals if -literal not in all_literals)
    at_least -= (len(all_literals) - len(single)) // 2
    if at_least <= 0:
        return TRUE
    return Counted(at_least, single) if at_least <= len(single) else FALSE


def parity(literals: Iterable[int]) -> NormalForm:
    """An odd number of the literals holds; a negation is one more, and two of one attribute cancel.

    >>> parity([1, 2, -1])
    Counted(at_least=1, literals=frozenset({-2}))
    """
    attributes: frozenset[int] = frozenset()
    odd = True
    for literal in literals:
        attributes ^= {abs(literal)}
        odd ^= literal < 0
    if not attributes:
        return FALSE if odd else TRUE
    if len(attributes) == 1:
        (attribute,) = attributes
        return Counted(1, frozenset([attribute if odd else -attribute]))
    return Parity(attributes, odd)


def disjunctive(terms: Iterable[Iterable[int]]) -> NormalForm:
    """One of the terms holds.

    >>> disjunctive([[1, 2], [-1, 2]])
    Counted(at_least=1, literals=frozenset({2}))
    """
    found = _absorbed(term for term in map(frozenset, terms) if not any(-literal in term for literal in term))
    literals = frozenset[int]().union(*found)
    attributes = np.array(sorted(set(map(abs, literals))), dtype=np.int64)
    if len(attributes) == len(literals):  # no attribute both plain and negated: all of them are prime
        return _recognized(found)
    if len(attributes) > TABULATED:
        return _recognized(_by_consensus(found))
    table = np.zeros((2,) * len(attributes), dtype=bool)
    for term in found:
        signs = [1 if j in term else 0 if -j in term else slice(None) for j in attributes.tolist()]
        table[tuple(signs)] = True
    return _recognized(_primes(table, attributes))


def tabulated(table: Bools) -> NormalForm:
    """The function whose value at (x1, ..., xn) is table[x1, ..., xn].

    >>> tabulated(np.array([[False, True], [True, False]]))
    Parity(attributes=frozenset({1, 2}), odd=True)
    """
    cubes = np.asarray(table, dtype=bool)
    return _recognized(_primes(cubes, np.arange(1, cubes.ndim + 1)))


def _primes(cubes: Bools, attributes: NDArray[np.int64]) -> list[Term]:
    """The prime implicants of a table with an axis for each attribute."""
    for axis in range(cubes.ndim):  # place 2 of an axis: the attribute is not in the term
        halves = cubes.take(0, axis) & cubes.take(1, axis)
        cubes = np.concatenate([cubes, np.expand_dims(halves, axis)], axis)
    prime = cubes.copy()
    for axis in range(cubes.ndim):  # not prime if it holds without this attribute as well
        np.moveaxis(prime, axis, 0)[:2] &= ~np.moveaxis(cubes, axis, 0)[2]
    literals = np.array([-1, 1, 0])[np.argwhere(prime)] * attributes
    return [frozenset(row[row != 0].tolist()) for row in literals]


def _by_consensus(found: list[Term]) -> list[Term]:
    """The prime implicants of a disjunction of terms."""
    while True:
        derived = {
            consensus
            for a, b in combinations(found, 2)
            if (consensus := _consensus(a, b)) is not None and not any(term <= consensus for term in found)
        }
        if not derived:
            return found
        if len(derived) > _MOST_IMPLICANTS:
            raise ValueError(
                f"More than {_MOST_IMPLICANTS} implicants follow from a formula in one step: it is too complex to "
                "find out what it equals."
            )
        found = _absorbed([*found, *derived])


def _absorbed(terms: Iterable[Term]) -> list[Term]:
    """The terms that no other one follows from."""
    kept: list[Term] = []
    for term in sorted(set(terms), key=len):
        if not any(shorter <= term for shorter in kept):
            kept.append(term)
    return kept


def _consensus(a: Term, b: Term) -> Term | None:
    opposed = [literal for literal in a if -literal in b]
    if len(opposed) != 1:
        return None
    return (a - {opposed[0]}) | (b - {-opposed[0]})


def _recognized(primes: list[Term]) -> NormalForm:
    """The form of a function with these prime implicants."""
    if not primes:
        return FALSE
    if not primes[0]:
        return TRUE
    literals = frozenset().union(*primes)
    attributes = frozenset(map(abs, literals))
    sizes = {len(term) for term in primes}
    size = min(sizes)
    if len(sizes) == 1 and len(literals) == len(attributes) and len(primes) == math.comb(len(literals), size):
        return Counted(size, literals)
    # As many whole assignments as that, of which no two join: the values alternate between neighbours.
    if sizes == {len(attributes)} and len(primes) == 2 ** (size - 1):
        return Parity(attributes, sum(literal > 0 for literal in primes[0]) % 2 == 1)
    return Implicants(frozenset(primes))
