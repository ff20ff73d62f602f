"""Elimination: the most specific conjunction, from which positive examples remove the literals that they deny.

    h = all literals (monotone: all attributes);   on a positive example x with h(x) = 0:   h = h without what x denies

The first positive example removes n of the 2n literals, every other mistake at least one: at most n + 1 mistakes, and n
if no attribute is negated. The literals of the target are never removed, so h is right about negative examples.
L. Valiant, A theory of the learnable, 1984. Literals and instances are packed into words of 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlearn.theory import bounds
from onlearn.theory.concepts import Conjunction
from onlearn.theory.instances import Bools, as_count, as_instance, as_label
from onlearn.theory.learner import ConceptLearner, ContradictionError

Words = NDArray[np.uint64]


class Elimination(ConceptLearner):
    """Learns conjunctions over n attributes, with at most n + 1 mistakes, or n if `monotone`.

    Negative examples change nothing, but are kept: so the first example that no conjunction agrees with is told.

    >>> learner = Elimination(4, monotone=True)
    >>> learner.learn_one([1, 1, 0, 1], 1).hypothesis
    Conjunction([1, 2, 4], n=4)
    >>> learner.learn_one([1, 0, 0, 1], 0).learn_one([0, 1, 1, 1], 1).hypothesis
    Conjunction([2, 4], n=4)
    >>> learner.mistakes, learner.bound
    (2, 4.0)
    >>> learner.learn_one([0, 1, 0, 1], 0)
    Traceback (most recent call last):
        ...
    onlearn.theory.learner.ContradictionError: Example 4 leaves no concept: it is negative, but every conjunction that
    agrees with the positive examples before it holds there.
    """

    def __init__(self, n: int, monotone: bool = False) -> None:
        self.n = as_count("n", n, least=1)
        self.monotone = bool(monotone)
        self.reset()

    def reset(self) -> None:
        everything = _packed(np.ones(self.n, dtype=bool))
        self._plain = everything
        self._negated = np.zeros_like(everything) if self.monotone else everything
        self._negatives = np.empty((16, len(everything)), dtype=np.uint64)
        self._n_negatives = 0
        self._hypothesis: Conjunction | None = None
        self.mistakes = self.examples = 0

    @property
    def bound(self) -> float:
        """n, or n + 1 if literals may be negated."""
        return bounds.elimination(self.n, self.monotone)

    @property
    def hypothesis(self) -> Conjunction:
        """The conjunction of all literals that no positive example has denied."""
        if self._hypothesis is None:
            plain, negated = _unpacked(self._plain, self.n), _unpacked(self._negated, self.n)
            self._hypothesis = Conjunction([*plain, *(-attribute for attribute in negated)], n=self.n)
        return self._hypothesis

    def predict_one(self, x: ArrayLike) -> bool:
        return not bool(self._denied(_packed(as_instance(x, self.n)), self._plain, self._negated).any())

    def learn_one(self, x: ArrayLike, y: Any) -> Elimination:
        bits, label = _packed(as_instance(x, self.n)), as_label(y)
        predicted = not self._denied(bits, self._plain, self._negated).any()
        if predicted and not label:
            raise ContradictionError(
                self.examples + 1,
                "it is negative, but every conjunction that agrees with the positive examples before it holds there",
            )
        if label and not predicted:
            plain, negated = self._plain & bits, self._negated & ~bits
            negatives = self._negatives[: self._n_negatives]
            if not self._denied(negatives, plain, negated).any(axis=1).all():
                raise ContradictionError(
                    self.examples + 1,
                    "it is positive, but every conjunction that holds there and at the positive examples before it "
                    "holds at a negative one",
                )
            self._plain, self._negated, self._hypothesis = plain, negated, None
            self.mistakes += 1
        elif not label:
            self._remember(bits)
        self.examples += 1
        return self

    def _denied(self, bits: Words, plain: Words, negated: Words) -> Words:
        """The literals of a conjunction that are false in one instance or in each of several."""
        return (plain & ~bits) | (negated & bits)

    def _remember(self, negative: Words) -> None:
        if self._n_negatives == len(self._negatives):
            self._negatives = np.concatenate([self._negatives, np.empty_like(self._negatives)])
        self._negatives[self._n_negatives] = negative
        self._n_negatives += 1


def _packed(bits: Bools) -> Words:
    """64 attributes in a word; places beyond the last are 0."""
    packed = np.packbits(bits, bitorder="little")
    words = np.zeros(-(-len(packed) // 8) * 8, dtype=np.uint8)
    words[: len(packed)] = packed
    return words.view(np.uint64)


def _unpacked(words: Words, n: int) -> list[int]:
    """The attributes, from 1, whose bits are set."""
    bits = np.unpackbits(words.view(np.uint8), count=n, bitorder="little")
    return [place + 1 for place in np.flatnonzero(bits).tolist()]
