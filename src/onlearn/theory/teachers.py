"""Three ways to learn a concept: by queries, from a helpful teacher, from examples that nature draws.

- `QueryTeacher`: the learner proposes instances and is told their labels. From a positive example, n queries that
  change one attribute each find any conjunction: an attribute matters exactly if its change makes the label negative.
  For a monotone conjunction the instance of all ones is positive, so it needs no example.
- `HelpfulTeacher`: the teacher chooses the examples. A monotone conjunction of k literals needs k + 1: a positive one
  in which only its attributes are on, and for each of them a negative one in which only it is off. With negations
  allowed, one positive example cannot rule out both an attribute and its negation: there are two of them, opposite
  in what does not matter, and k + 2 in all, which is the fewest (S. Goldman and M. Kearns, On the complexity of
  teaching, 1995).
- `RandomTeacher`: nature draws the examples.

D. Angluin, Queries and concept learning, 1988.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlearn.theory.concepts import Concept, Conjunction, check_concept
from onlearn.theory.elimination import Elimination
from onlearn.theory.instances import Bools, as_count, as_instance, as_label, each_instance
from onlearn.theory.normal_form import Counted


@dataclass(frozen=True, eq=False, repr=False)
class Transcript:
    """What happened between a teacher and a learner.

    `queries` asked by the learner and `examples` given by the teacher; `mistakes`: how often the learner's prediction
    was wrong before it was told the label; the last `hypothesis`, and `steps`: the hypothesis after each query or
    example; `X` and `y`: these, in order; `bound`: the learner's bound on its mistakes, if it has one; the `target`. A
    learner without `hypothesis`, such as an estimator, is itself the hypothesis, and leaves no steps.
    """

    queries: int
    examples: int
    mistakes: int
    hypothesis: Any
    steps: tuple[Any, ...]
    X: Any
    y: NDArray[np.int64]
    bound: float | None
    target: Concept

    @property
    def exact(self) -> bool:
        """Whether the last hypothesis is the target, by meaning."""
        return bool(self.hypothesis == self.target)

    def __str__(self) -> str:
        counts = f"{self.queries} queries, {self.examples} examples, {self.mistakes} mistakes"
        promised = "" if self.bound is None else f" (at most {self.bound:.4g})"
        return f"{counts}{promised}\n{self.hypothesis}"

    __repr__ = __str__


class Asking(Protocol):
    """A learner that proposes the instances it wants to know the labels of."""

    def propose(self) -> ArrayLike | None:
        """The next instance, or None if it wants to know no more."""
        ...

    def predict_one(self, x: Any) -> Any: ...

    def learn_one(self, x: Any, y: Any) -> Any: ...


@runtime_checkable
class _Explicit(Protocol):
    """A learner that shows what it predicts with, and how many mistakes it may make."""

    @property
    def hypothesis(self) -> Any: ...

    @property
    def bound(self) -> float: ...


class QueryLearner:
    """Learns a conjunction by n queries: it changes one attribute of a positive example at a time.

    Its hypothesis is that of `Elimination`. Without negations (`monotone`) it begins with the instance of all ones;
    else it must be told a positive example before it asks.

    >>> learner = QueryLearner(3, monotone=True)
    >>> learner.propose().tolist()
    [False, True, True]
    """

    def __init__(self, n: int, monotone: bool = False) -> None:
        self.n = as_count("n", n, least=1)
        self._elimination = Elimination(self.n, monotone)
        self._positive = np.ones(self.n, dtype=bool) if monotone else None
        self._asked = 0

    @property
    def bound(self) -> float:
        """That of Elimination."""
        return self._elimination.bound

    @property
    def hypothesis(self) -> Conjunction:
        """The literals not denied so far."""
        return self._elimination.hypothesis

    def propose(self) -> Bools | None:
        """The positive example with the next attribute changed; None after the last."""
        if self._positive is None:
            raise ValueError("Queries find a conjunction with negations only after one positive example is known.")
        if self._asked == self.n:
            return None
        instance = self._positive.copy()
        instance[self._asked] ^= True
        self._asked += 1
        return instance

    def predict_one(self, x: ArrayLike) -> bool:
        """The value of the hypothesis."""
        return self._elimination.predict_one(x)

    def learn_one(self, x: ArrayLike, y: Any) -> QueryLearner:
        """Take in an answer, or a positive example to begin with."""
        self._elimination.learn_one(x, y)
        if self._positive is None and as_label(y):
            self._positive = as_instance(x, self.n).copy()
        return self


class QueryTeacher:
    """Answers the queries of a learner about a concept; it may show one positive example first.

    >>> teacher = QueryTeacher(Conjunction([2, 3, 4, 5, 100], n=100))
    >>> lesson = teacher.run()
    >>> lesson.queries, lesson.examples, lesson.hypothesis
    (100, 0, Conjunction([2, 3, 4, 5, 100], n=100))
    >>> QueryTeacher(Conjunction([1, -2], n=3), positive=[1, 0, 1]).run()
    3 queries, 1 examples, 2 mistakes (at most 4)
    x1 & ~x2
    """

    def __init__(self, concept: Concept, positive: ArrayLike | None = None) -> None:
        self.concept = check_concept(concept)
        self.positive = None if positive is None else as_instance(positive, concept.n)
        if self.positive is not None and not concept(self.positive):
            raise ValueError(f"The positive example must be one of {_brief(concept)}, but it is negative.")

    def run(self, learner: Asking | None = None) -> Transcript:
        """Answer until the learner (by default a `QueryLearner`) asks no more."""
        if learner is None:
            learner = QueryLearner(self.concept.n, monotone=self.positive is None)
            if self.positive is None and not self.concept(np.ones(self.concept.n, dtype=bool)):
                raise ValueError(
                    f"All ones is no positive example of {_brief(self.concept)}: queries find a conjunction with "
                    "negations only from a positive example, which is given as positive=."
                )
        if not callable(getattr(learner, "propose", None)):
            raise TypeError(f"A learner that asks needs propose(), as QueryLearner has it; {learner!r} has none.")
        lesson, told = _Lesson(learner, self.concept), []
        if self.positive is not None:
            lesson.show(self.positive, True)
            told.append(self.positive)
        examples = len(told)
        while (proposed := learner.propose()) is not None:
            instance = as_instance(proposed, self.concept.n)
            lesson.show(instance, self.concept(instance))
            told.append(instance)
        X = np.array(told, dtype=bool).reshape(-1, self.concept.n)
        return lesson.transcript(X, self.concept(X).astype(np.int64), queries=len(told) - examples)


class HelpfulTeacher:
    """Chooses the examples that a learner of conjunctions needs: k + 1 for k literals, k + 2 if some are negated.

    >>> lesson = HelpfulTeacher(Conjunction([2, 3, 4, 5, 100], n=100)).run()
    >>> lesson.examples, lesson.mistakes, lesson.exact
    (6, 1, True)
    """

    def __init__(self, concept: Concept) -> None:
        self.concept = check_concept(concept)
        self.literals = _literals(concept, "A helpful teacher teaches conjunctions")

    @property
    def monotone(self) -> bool:
        """Whether no literal is negated, so that the learner may rule negations out."""
        return all(literal > 0 for literal in self.literals)

    def examples(self) -> tuple[Bools, NDArray[np.int64]]:
        """The examples (X, y) in their order: the positive ones, then a negative one for each literal."""
        n, literals = self.concept.n, np.array(self.literals, dtype=np.int64)
        columns, signs = np.abs(literals) - 1, literals > 0
        alone, among = np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
        alone[columns] = among[columns] = signs
        positive = [alone] if self.monotone or len(literals) == n else [alone, among]
        negative = np.tile(among, (len(literals), 1))
        negative[np.arange(len(literals)), columns] ^= True
        y = np.repeat([1, 0], [len(positive), len(literals)])
        return np.concatenate([positive, negative]), y

    def run(self, learner: Any = None) -> Transcript:
        """Show the examples to a learner, by default `Elimination`."""
        if learner is None:
            learner = Elimination(self.concept.n, self.monotone)
        return _shown(learner, self.concept, *self.examples())


class RandomTeacher:
    """Shows examples that nature draws: m of them, as `Concept.sample` does with `how`, `noise` and `active`.

    >>> lesson = RandomTeacher(Conjunction([1, 3], n=6), m=100, random_state=0).run()
    >>> lesson.examples, lesson.mistakes, lesson.hypothesis
    (100, 4, Conjunction([1, 3], n=6))
    """

    def __init__(
        self,
        concept: Concept,
        m: int = 1000,
        how: str = "uniform",
        noise: float = 0.0,
        random_state: int | np.random.Generator | None = None,
        active: float = 20.0,
    ) -> None:
        self.concept = check_concept(concept)
        self.m = m
        self.how = how
        self.noise = noise
        self.random_state = random_state
        self.active = active

    def run(self, learner: Any = None) -> Transcript:
        """Show the examples to a learner with `predict_one` and `learn_one`; by default to `Elimination`."""
        if learner is None:
            literals = _literals(self.concept, "Elimination, the learner if none is given, learns conjunctions")
            learner = Elimination(self.concept.n, monotone=all(literal > 0 for literal in literals))
        X, y = self.concept.sample(self.m, self.how, self.noise, self.random_state, self.active)
        return _shown(learner, self.concept, X, y)


class _Lesson:
    """A transcript in the making."""

    def __init__(self, learner: Any, target: Concept) -> None:
        self.learner, self.target = learner, target
        self.steps: list[Any] = []
        self.mistakes = 0

    def show(self, x: Bools, label: bool) -> None:
        """Ask for a prediction, then tell the label. An estimator that has learned nothing predicts 0."""
        begun = not hasattr(self.learner, "get_params") or hasattr(self.learner, "classes_")
        predicted = bool(self.learner.predict_one(x)) if begun else False
        self.learner.learn_one(x, label)
        self.mistakes += predicted != label
        if isinstance(self.learner, _Explicit):
            self.steps.append(self.learner.hypothesis)

    def transcript(self, X: Any, y: NDArray[np.int64], queries: int) -> Transcript:
        explicit = isinstance(self.learner, _Explicit)
        return Transcript(
            queries=queries,
            examples=len(y) - queries,
            mistakes=self.mistakes,
            hypothesis=self.learner.hypothesis if explicit else self.learner,
            steps=tuple(self.steps),
            X=X,
            y=y,
            bound=self.learner.bound if explicit else None,
            target=self.target,
        )


def _shown(learner: Any, target: Concept, X: Any, y: NDArray[np.int64]) -> Transcript:
    if not all(callable(getattr(learner, name, None)) for name in ("predict_one", "learn_one")):
        raise TypeError(f"A learner needs predict_one(x) and learn_one(x, y); {learner!r} has not both.")
    lesson = _Lesson(learner, target)
    for x, label in zip(each_instance(X), y.tolist()):
        lesson.show(x, bool(label))
    return lesson.transcript(X, y, queries=0)


def _brief(concept: Concept) -> str:
    return shorten(str(concept), 100, placeholder=" ...")


def _literals(concept: Concept, who: str) -> list[int]:
    """The literals of a concept that is a conjunction, whatever its kind."""
    form = concept.normal_form()
    if not isinstance(form, Counted) or form.at_least != len(form.literals):
        raise ValueError(f"{who} that some instance satisfies, and {_brief(concept)} is none.")
    return sorted(form.literals, key=abs)
