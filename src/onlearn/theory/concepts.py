"""Concepts over n Boolean attributes: conjunctions, disjunctions, at least m of a set, exclusive or, DNF, functions.

Attributes count from 1, a negated one is a negative number: ``Conjunction([1, -3], n=5)`` is x1 & ~x3 over x1, ..., x5.
A concept is a function of one instance or of rows (dense or sparse), is printed as a formula, compares equal by meaning
with concepts of every kind, gives examples of itself (`sample`), and the linear threshold function that equals it
(`threshold`): of the conjunction of x1, x3 and x5 it is x1 + x3 + x5 >= 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onlearn.theory import normal_form, sampling
from onlearn.theory.instances import Bools, as_count, as_instance, as_instances, as_literals, each_instance
from onlearn.theory.linear_threshold import LinearThreshold, linear_threshold
from onlearn.theory.normal_form import TABULATED, Counted, NormalForm, Opaque, Parity

Given = tuple[NDArray[np.int64], Bools]  # columns, and rows of their values

WAYS = ("uniform", "balanced", "sparse")


@runtime_checkable
class Concept(Protocol):
    """A Boolean function of n Boolean attributes. A kind of concept says the first four, the rest follows."""

    n: int

    def values(self, X: Any) -> Bools:
        """The value for every row of checked instances."""
        ...

    def normal_form(self) -> NormalForm:
        """What all concepts of the same meaning have in common."""
        ...

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        """The attributes that matter, drawn given the labels; sparse if there is a density, else uniform."""
        ...

    def __call__(self, X: Any) -> Any:
        """The value for one instance, or an array of them for rows."""
        if not hasattr(X, "tocsr") and np.ndim(X) == 1:
            return bool(self.values(as_instance(X, self.n)[None])[0])
        return self.values(as_instances(X, self.n))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Concept):
            return NotImplemented
        return self.n == other.n and self.normal_form() == other.normal_form()

    def __hash__(self) -> int:
        return hash((self.n, self.normal_form()))

    def threshold(self) -> LinearThreshold:
        """(w, theta) such that the concept is w.x >= theta; an error if no linear threshold function equals it.

        >>> w, theta = Conjunction([1, 3, 5]).threshold()
        >>> w.tolist(), theta
        ([1.0, 0.0, 1.0, 0.0, 1.0], 3.0)
        """
        return linear_threshold(self.normal_form(), self.n, str(self))

    def sample(
        self,
        m: int,
        how: str = "uniform",
        noise: float = 0.0,
        random_state: int | np.random.Generator | None = None,
        active: float = 20.0,
    ) -> tuple[Any, NDArray[np.int64]]:
        """m examples (X, y) of the concept, y being 0 or 1.

        - how: "uniform" (every instance is equally likely), "balanced" (half of the labels are 1; every instance with
          that label is equally likely), "sparse" (half of the labels are 1; of the attributes that do not matter about
          `active` are on in a row; of those that do, few or many as makes both labels likely; SciPy's sparse rows).
        - noise: the probability that a label is wrong, for each of them independently.

        >>> X, y = Disjunction([1, 2], n=6).sample(4, "balanced", random_state=0)
        >>> X.shape, sorted(y.tolist()), bool((Disjunction([1, 2], n=6)(X) == y).all())
        ((4, 6), [0, 0, 1, 1], True)
        """
        m = as_count("m", m, least=1)
        if how not in WAYS:
            raise ValueError(f"how must be one of {', '.join(WAYS)}, but it is {how!r}.")
        if not isinstance(noise, Real) or not 0.0 <= noise <= 1.0:
            raise ValueError(f"noise must be a probability, but it is {noise}.")
        if not active >= 0.0:
            raise ValueError(f"active must not be negative, but it is {active}.")
        rng = np.random.default_rng(random_state)
        X: Any
        if how == "uniform":
            X = rng.integers(0, 2, (m, self.n), dtype=bool)
            labels = self.values(X)
        else:
            labels = sampling.half_and_half(m, rng)
            density = min(0.5, active / self.n) if how == "sparse" else None
            columns, bits = self.given(labels, rng, density)
            if how == "sparse":
                X = sampling.sparse_rows(columns, bits, self.n, min(active, self.n / 2), rng)
            else:
                X = rng.integers(0, 2, (m, self.n), dtype=bool)
                X[:, columns] = bits
        return X, (labels ^ (rng.random(m) < noise)).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Conjunction(Concept):
    """All of the literals hold. Without literals it is true everywhere.

    >>> Conjunction([2, -3], n=5)([[0, 1, 0, 0, 0], [0, 1, 1, 0, 0]]).tolist()
    [True, False]
    >>> print(Conjunction([2, -3], n=5))
    x2 & ~x3
    """

    literals: tuple[int, ...]
    n: int

    def __init__(self, literals: Iterable[int], n: int | None = None) -> None:
        _set_literals(self, literals, n)

    @property
    def monotone(self) -> bool:
        """Whether no literal is negated."""
        return all(literal > 0 for literal in self.literals)

    def values(self, X: Any) -> Bools:
        return _true(X, self.literals) == len(self.literals)

    def normal_form(self) -> Counted:
        return normal_form.counted(len(self.literals), self.literals)

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        return _given_form(self.normal_form(), labels, rng, density)

    def __str__(self) -> str:
        return _joined(self.literals, " & ", "true")

    def __repr__(self) -> str:
        return f"Conjunction({list(self.literals)}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Disjunction(Concept):
    """One of the literals holds. Without literals it is false everywhere.

    >>> print(Disjunction([2, -3], n=5))
    x2 | ~x3
    >>> Disjunction([4], n=5) == Conjunction([4], n=5)
    True
    """

    literals: tuple[int, ...]
    n: int

    def __init__(self, literals: Iterable[int], n: int | None = None) -> None:
        _set_literals(self, literals, n)

    @property
    def monotone(self) -> bool:
        """Whether no literal is negated."""
        return all(literal > 0 for literal in self.literals)

    def values(self, X: Any) -> Bools:
        return _true(X, self.literals) > 0

    def normal_form(self) -> Counted:
        return normal_form.counted(1, self.literals)

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        return _given_form(self.normal_form(), labels, rng, density)

    def __str__(self) -> str:
        return _joined(self.literals, " | ", "false")

    def __repr__(self) -> str:
        return f"Disjunction({list(self.literals)}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class AtLeast(Concept):
    """At least m of a set of literals hold: "m of k of n" for a set of k among n attributes.

    >>> print(AtLeast(2, [1, 2, -3], n=5))
    at least 2 of x1, x2, ~x3
    >>> AtLeast(1, [1, 2], n=5) == Disjunction([1, 2], n=5)
    True
    """

    m: int
    literals: tuple[int, ...]
    n: int

    def __init__(self, m: int, of: Iterable[int], n: int | None = None) -> None:
        object.__setattr__(self, "m", as_count("m", m))
        _set_literals(self, of, n)

    def values(self, X: Any) -> Bools:
        return _true(X, self.literals) >= self.m

    def normal_form(self) -> Counted:
        return normal_form.counted(self.m, self.literals)

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        return _given_form(self.normal_form(), labels, rng, density)

    def __str__(self) -> str:
        return f"at least {self.m} of {_joined(self.literals, ', ', 'none')}"

    def __repr__(self) -> str:
        return f"AtLeast({self.m}, {list(self.literals)}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Xor(Concept):
    """An odd number of the literals holds. Of two or more attributes it is no linear threshold function.

    >>> print(Xor([1, 4], n=5))
    x1 ^ x4
    >>> Xor([1, 4], n=5).threshold()
    Traceback (most recent call last):
        ...
    ValueError: No linear threshold function equals x1 ^ x4: it is a parity.
    """

    literals: tuple[int, ...]
    n: int

    def __init__(self, of: Iterable[int], n: int | None = None) -> None:
        _set_literals(self, of, n)

    def values(self, X: Any) -> Bools:
        return np.asarray(_true(X, self.literals) % 2 == 1)

    def normal_form(self) -> NormalForm:
        return normal_form.parity(self.literals)

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        return _given_form(self.normal_form(), labels, rng, density)

    def __str__(self) -> str:
        return _joined(self.literals, " ^ ", "false")

    def __repr__(self) -> str:
        return f"Xor({list(self.literals)}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class DNF(Concept):
    """One of several conjunctions (terms) holds: disjunctive normal form.

    >>> print(DNF([[1, 2], [-3]], n=5))
    (x1 & x2) | ~x3
    >>> DNF([[1, 2], [1, -2]], n=5) == Conjunction([1], n=5)
    True
    >>> DNF([[1], [2, 3]], n=3).threshold()
    LinearThreshold(w=array([2., 1., 1.]), theta=2.0)
    """

    terms: tuple[tuple[int, ...], ...]
    n: int

    def __init__(self, terms: Iterable[Iterable[int]], n: int | None = None) -> None:
        found = [tuple(_listed(term)) for term in _listed(terms)]
        size = _attributes([literal for term in found for literal in term], n)
        object.__setattr__(self, "terms", tuple(as_literals(term, size) for term in found))
        object.__setattr__(self, "n", size)

    def values(self, X: Any) -> Bools:
        value = np.zeros(X.shape[0], dtype=bool)
        for term in self.terms:
            value |= _true(X, term) == len(term)
        return value

    def normal_form(self) -> NormalForm:
        return normal_form.disjunctive(self.terms)

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        terms = [term for term in self.terms if len(set(map(abs, term))) == len(term)]
        columns = np.unique(np.abs([literal for term in terms for literal in term]).astype(np.int64)) - 1
        if not len(columns) or not all(terms):  # a constant
            return _given_form(normal_form.TRUE if terms else normal_form.FALSE, labels, rng, density)
        k = len(columns)
        local = [np.sign(term) * (np.searchsorted(columns + 1, np.abs(term)) + 1) for term in terms]
        bits = np.empty((len(labels), k), dtype=bool)
        bits[labels] = sampling.true_bits(local, k, int(labels.sum()), rng)
        alone = DNF([term.tolist() for term in local], n=k)
        bits[~labels] = sampling.bits_by_label(alone.values, k, labels[~labels], rng)
        return columns, bits

    def __str__(self) -> str:
        if not self.terms:
            return "false"
        alone = len(self.terms) == 1
        texts = [(_joined(term, " & ", "true"), alone or len(term) < 2) for term in self.terms]
        return " | ".join(text if bare else f"({text})" for text, bare in texts)

    def __repr__(self) -> str:
        return f"DNF({[list(term) for term in self.terms]}, n={self.n})"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Predicate(Concept):
    """A concept that is any Python function of a Boolean array of n attributes.

    Of up to 12 attributes it is tabulated to be compared with others and turned into a linear threshold function; of
    more it equals predicates of the same function only.

    >>> majority = Predicate(lambda x: x.sum() >= 2, n=3)
    >>> majority == AtLeast(2, [1, 2, 3])
    True
    """

    function: Callable[[Bools], Any]
    n: int
    name: str

    def __init__(self, function: Callable[[Bools], Any], n: int, name: str | None = None) -> None:
        if not callable(function):
            raise ValueError(f"A predicate needs a function, but it is {function!r}.")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "n", as_count("n", n, least=1))
        object.__setattr__(self, "name", name or getattr(function, "__name__", type(function).__name__))

    def values(self, X: Any) -> Bools:
        return np.array([bool(self.function(x)) for x in each_instance(X)], dtype=bool)

    def normal_form(self) -> NormalForm:
        if self.n > TABULATED:
            return Opaque(self.function)
        every = np.indices((2,) * self.n, dtype=np.int8).reshape(self.n, -1).T == 1
        return normal_form.tabulated(self.values(every).reshape((2,) * self.n))

    def given(self, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
        share = 0.5 if density is None else density
        return np.arange(self.n), sampling.bits_by_label(self.values, self.n, labels, rng, share)

    def __str__(self) -> str:
        return f"{self.name}(x1, ..., x{self.n})"

    def __repr__(self) -> str:
        return f"Predicate({self.name}, n={self.n})"


def check_concept(concept: Any) -> Concept:
    """The concept, or one sentence that says what it is instead."""
    if not isinstance(concept, Concept):
        raise ValueError(
            f"A concept is needed, but it is {concept!r}; Predicate(function, n=...) makes one of a function."
        )
    return concept


def _set_literals(concept: Any, literals: Iterable[int], n: int | None) -> None:
    found = _listed(literals)
    object.__setattr__(concept, "n", _attributes(found, n))
    object.__setattr__(concept, "literals", as_literals(found, concept.n))


def _listed(literals: Any) -> list[Any]:
    if isinstance(literals, str) or not isinstance(literals, Iterable):
        raise ValueError(f"Literals must be a list of whole numbers such as [1, -3], but they are {literals!r}.")
    return list(literals)


def _attributes(literals: list[int], n: int | None) -> int:
    """The number of attributes, by default up to the last that is named."""
    if n is not None:
        return as_count("n", n, least=1)
    if not literals:
        raise ValueError("A concept without literals needs n, the number of attributes.")
    wrong = [literal for literal in literals if not isinstance(literal, Real)]
    if wrong:
        raise ValueError(f"A literal must be a whole number such as 3, or -3 for a negation, but it is {wrong[0]!r}.")
    return max(int(abs(literal)) for literal in literals)


def _true(X: Any, literals: tuple[int, ...]) -> NDArray[np.int64]:
    """How many of the literals hold in each row."""
    numbers = np.array(literals, dtype=np.int64)
    negated = numbers < 0
    if isinstance(X, np.ndarray):
        plain, denied = X[:, numbers[~negated] - 1], X[:, -numbers[negated] - 1]
        return np.asarray(plain.sum(axis=1) + negated.sum() - denied.sum(axis=1))
    w = np.zeros(X.shape[1], dtype=np.int64)
    np.add.at(w, np.abs(numbers) - 1, np.sign(numbers))
    return np.asarray(np.rint(X @ w).astype(np.int64) + negated.sum())


def _given_form(form: NormalForm, labels: Bools, rng: np.random.Generator, density: float | None) -> Given:
    if isinstance(form, Parity):
        columns = np.array(sorted(form.attributes)) - 1
        return columns, sampling.parity_bits(len(columns), form.odd, labels, rng)
    assert isinstance(form, Counted)
    columns = np.abs(np.array(sampling.in_order(form.literals), dtype=np.int64)) - 1
    return columns, sampling.counted_bits(form, labels, rng, near=density is not None)


def _joined(literals: tuple[int, ...], between: str, empty: str) -> str:
    return between.join(f"x{literal}" if literal > 0 else f"~x{-literal}" for literal in literals) or empty
