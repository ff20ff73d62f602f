"""Learners over any finite class of concepts: CON and Halving.

Both remember which concepts agree with all examples so far (the version space). CON predicts with one of them: a
mistake removes it at least, so there are at most |C| - 1. Halving predicts with their majority: a mistake removes half
of them at least, so there are at most log2 |C|. D. Angluin, Queries and concept learning, 1988; N. Littlestone,
Learning quickly when irrelevant attributes abound, 1988.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.theory import bounds
from onlearn.theory.concept_class import ConceptClass, VersionSpace, as_class
from onlearn.theory.instances import Bools, as_count, as_instance, as_instances, as_label, each_instance
from onlearn.theory.learner import ConceptLearner, ContradictionError


class Consistent(ConceptLearner):
    """CON: predicts with the first concept that agrees with all examples; at most |C| - 1 mistakes.

    `concepts` is an iterable of concepts or of functions, or a class such as ``conjunctions(5)``. Functions do not say
    how many attributes they have: then give `n`.

    >>> from onlearn.theory import Conjunction
    >>> learner = Consistent([Conjunction([1], n=2), Conjunction([2], n=2), Conjunction([1, 2], n=2)])
    >>> learner.learn_one([1, 0], 0).hypothesis, learner.mistakes, learner.bound
    (Conjunction([2], n=2), 1, 2.0)
    """

    def __init__(self, concepts: ConceptClass | Iterable[Callable[..., Any]], n: int | None = None) -> None:
        self.concepts = as_class(concepts)
        self.n = _attributes(self.concepts, n)
        self.reset()

    def reset(self) -> None:
        self.version_space = VersionSpace.whole(self.concepts)
        self.mistakes = self.examples = 0

    @property
    def bound(self) -> float:
        """|C| - 1"""
        return bounds.consistent(len(self.concepts))

    @property
    def hypothesis(self) -> Any:
        """The first concept that agrees with all examples."""
        return self.version_space.first

    def predict_one(self, x: ArrayLike) -> bool:
        return bool(self.hypothesis(as_instance(x, self.n)))

    def learn_one(self, x: ArrayLike, y: Any) -> Consistent:
        instance, label = as_instance(x, self.n), as_label(y)
        left = _agreeing(self.version_space, self.version_space.accepting(instance), label, self.examples)
        self.mistakes += self.predict_one(instance) != label
        self.examples += 1
        self.version_space = left
        return self


class Halving(ConceptLearner):
    """Predicts with the majority of the concepts that agree with all examples; at most log2 |C| mistakes.

    `concepts` and `n` as for `Consistent`. A tie is predicted as 0.

    >>> from onlearn.theory import Conjunction, conjunctions
    >>> learner = Halving(conjunctions(3))
    >>> learner.learn_one([1, 1, 0], 1).learn_one([1, 0, 1], 1).hypothesis
    <majority of 2 concepts over 3 attributes>
    >>> learner.learn_one([0, 1, 1], 0).hypothesis, learner.mistakes, round(learner.bound, 2)
    (Conjunction([1], n=3), 2, 4.75)
    """

    def __init__(self, concepts: ConceptClass | Iterable[Callable[..., Any]], n: int | None = None) -> None:
        self.concepts = as_class(concepts)
        self.n = _attributes(self.concepts, n)
        self.reset()

    def reset(self) -> None:
        self.version_space = VersionSpace.whole(self.concepts)
        self.mistakes = self.examples = 0

    @property
    def bound(self) -> float:
        """log2 |C|"""
        return bounds.halving(len(self.concepts))

    @property
    def hypothesis(self) -> Any:
        """The vote of the concepts left; the concept itself if it is the only one."""
        if len(self.version_space) == 1:
            return self.version_space.first
        return Majority(self.version_space, self.n)

    def predict_one(self, x: ArrayLike) -> bool:
        return _vote(self.version_space, self.version_space.accepting(as_instance(x, self.n)))

    def learn_one(self, x: ArrayLike, y: Any) -> Halving:
        instance, label = as_instance(x, self.n), as_label(y)
        accepting = self.version_space.accepting(instance)
        left = _agreeing(self.version_space, accepting, label, self.examples)
        self.mistakes += _vote(self.version_space, accepting) != label
        self.examples += 1
        self.version_space = left
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Majority:
    """The vote of a version space: 1 where more than half of its concepts hold."""

    version_space: VersionSpace
    n: int

    def __call__(self, X: Any) -> Any:
        """The value for one instance, or an array of them for rows."""
        if not hasattr(X, "tocsr") and np.ndim(X) == 1:
            return _vote(self.version_space, self.version_space.accepting(as_instance(X, self.n)))
        rows: Iterable[Bools] = each_instance(as_instances(X, self.n))
        return np.array([_vote(self.version_space, self.version_space.accepting(x)) for x in rows], dtype=bool)

    def __repr__(self) -> str:
        return f"<majority of {len(self.version_space)} concepts over {self.n} attributes>"


def _vote(version_space: VersionSpace, accepting: VersionSpace) -> bool:
    return 2 * len(accepting) > len(version_space)


def _agreeing(version_space: VersionSpace, accepting: VersionSpace, label: bool, examples: int) -> VersionSpace:
    """The concepts that give an example its label."""
    left = accepting if label else version_space.without(accepting)
    if not left.bits:
        why = f"all {len(version_space)} that agree with the examples before it give it the label {int(not label)}"
        raise ContradictionError(examples + 1, why)
    return left if left.bits != version_space.bits else version_space  # one long number for many steps


def _attributes(concepts: ConceptClass, n: int | None) -> int:
    known = concepts.n
    if known is None and n is None:
        raise ValueError("The number of attributes n must be given for functions that do not say it.")
    if known is not None and n is not None and n != known:
        raise ValueError(f"The concepts have {known} attributes, but n is {n}.")
    return known if known is not None else as_count("n", n, least=1)
