"""What every learner of concepts can do: predict one instance, learn from one example, count its mistakes.

The names are those of the estimators: `predict_one`, `learn_one`, `partial_fit`, `fit`. So a teacher takes either.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from onlearn.theory.instances import as_instances, as_labels, each_instance


class ContradictionError(ValueError):
    """No concept of the learner's class agrees with all examples; `example` is the first, from 1, that left none."""

    def __init__(self, example: int, why: str) -> None:
        super().__init__(f"Example {example} leaves no concept: {why}.")
        self.example = example
        self.why = why

    def __reduce__(self) -> Any:
        return ContradictionError, (self.example, self.why)


class ConceptLearner(Protocol):
    """A mistake-driven learner of concepts over n Boolean attributes, with a bound on its mistakes."""

    n: int
    mistakes: int
    examples: int

    @property
    def bound(self) -> float:
        """The most mistakes it makes on examples of a concept of its class, in any order."""
        ...

    @property
    def hypothesis(self) -> Any:
        """What it predicts with now."""
        ...

    def predict_one(self, x: ArrayLike) -> bool:
        """The label of one instance."""
        ...

    def learn_one(self, x: ArrayLike, y: Any) -> Any:
        """Learn from one example; `ContradictionError`, and nothing has changed, if no concept agrees with it."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...

    def partial_fit(self, X: Any, y: ArrayLike) -> Any:
        """Learn from the rows, dense or sparse, one after the other. After an error, those before it are learned."""
        rows = as_instances(X, self.n)
        for x, label in zip(each_instance(rows), as_labels(y, rows.shape[0]).tolist()):
            self.learn_one(x, label)
        return self

    def fit(self, X: Any, y: ArrayLike) -> Any:
        """Forget everything, then learn from the rows once, in their order."""
        self.reset()
        return self.partial_fit(X, y)

    def within_bound(self) -> bool:
        """Whether the mistakes are within the bound."""
        return self.mistakes <= self.bound
