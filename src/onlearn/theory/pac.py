"""From mistakes to a PAC guarantee: the longest-survivor conversion.

A hypothesis of error above epsilon survives m examples drawn independently with probability below (1 - epsilon)^m <=
e^(-epsilon m). A learner with the mistake bound M has at most M hypotheses that are not perfect. So one that survives
(1/epsilon) ln(M/delta) examples has error at most epsilon, except with probability delta. Without a bound the i-th
hypothesis must survive (1/epsilon) ln(i (i + 1)/delta), for sum 1/(i (i + 1)) = 1. M. Kearns et al., Recent results on
Boolean concept learning, 1987; D. Angluin, Queries and concept learning, Machine Learning 2, 1988; S. Gallant,
Perceptron-based learning algorithms, 1990.

A hypothesis must not change while it survives, so the learner is shown the examples that it gets wrong, and no others.
That makes any learner mistake-driven, and keeps the mistake bound of one that was.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlearn.engine.csr import CSR, is_sparse


@dataclass(frozen=True)
class Guarantee:
    """What is known of the present hypothesis; true once it carries the guarantee.

    With probability 1 - `delta` over the draw of the examples its error is at most `epsilon`, once it has survived
    `needed` of them: `survived` is its run without a mistake. The learner saw `examples` and made `mistakes`, of at
    most `mistake_bound` (None: not known). `most_examples` is when it must have stopped, if there is a bound.
    """

    epsilon: float
    delta: float
    mistake_bound: float | None
    needed: int
    survived: int
    examples: int
    mistakes: int

    @property
    def stopped(self) -> bool:
        return self.survived >= self.needed

    @property
    def most_examples(self) -> int | None:
        """Fewer than ``needed`` before each mistake, and so many after the last."""
        return None if self.mistake_bound is None else (math.floor(self.mistake_bound) + 1) * self.needed

    def __bool__(self) -> bool:
        return self.stopped

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {**asdict(self), "stopped": self.stopped, "most_examples": self.most_examples}

    def __str__(self) -> str:
        so_far = f"after {self.examples} examples and {self.mistakes} mistakes"
        if not self.stopped:
            return f"no guarantee yet: {so_far} the hypothesis survived {self.survived} of the {self.needed} it must"
        return (
            f"error at most {self.epsilon:g} with probability {1 - self.delta:g}: {so_far} the hypothesis survived "
            f"{self.survived} without a mistake"
        )


class PACLearner:
    """A learner that stops at a hypothesis with a guarantee; made by `to_pac`.

    `learn(x, y)` takes the examples one by one and returns whether it has stopped, from when on it changes nothing.
    `fit(X, y)` takes rows until it stops. `predict(x)` is the hypothesis; `guarantee` says what is known of it.
    """

    def __init__(
        self, learner: Any, epsilon: float, delta: float, mistake_bound: float | None, classes: ArrayLike | None
    ) -> None:
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if not 0.0 < value < 1.0:
                raise ValueError(f"{name} must be above 0 and below 1, but it is {value}.")
        if mistake_bound is not None and not 0.0 <= mistake_bound < math.inf:
            raise ValueError(f"mistake_bound must be finite and not negative, but it is {mistake_bound}.")
        self.learner, self.is_classifier = learner, takes_classes(learner)
        self.epsilon, self.delta, self.mistake_bound = float(epsilon), float(delta), mistake_bound
        self.classes = None if classes is None else np.asarray(classes)
        self.examples = self.mistakes = self.survived = 0
        self._predict, self._learn = one_at_a_time(learner)

    @property
    def needed(self) -> int:
        """How many examples the present hypothesis must survive."""
        number = self.mistakes + 1  # of the present hypothesis
        rivals = max(1.0, self.mistake_bound) if self.mistake_bound is not None else number * (number + 1.0)
        return math.ceil(math.log(rivals / self.delta) / self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(
            self.epsilon,
            self.delta,
            self.mistake_bound,
            self.needed,
            self.survived,
            self.examples,
            self.mistakes,
        )

    @property
    def stopped(self) -> bool:
        return self.survived >= self.needed

    def predict(self, x: Any) -> Any:
        """The label of one instance."""
        if not self._begun():
            raise ValueError("The learner has learned nothing yet: give it examples first.")
        return self._predict(x)

    def learn(self, x: Any, y: Any) -> bool:
        """Take one example, drawn independently of those before; returns whether the learner has stopped."""
        if self.stopped:
            return True
        if not self._begun():
            self._begin(x, y)
        elif bool(self._predict(x) == y):
            self.survived += 1
        else:
            if self.mistake_bound is not None and self.mistakes + 1 > self.mistake_bound:
                raise ValueError(
                    f"Example {self.examples + 1} is mistake {self.mistakes + 1}, which the bound of "
                    f"{self.mistake_bound:g} excludes: its assumptions do not hold for these examples."
                )
            self._learn(x, y)
            self.survived = 0
            self.mistakes += 1
        self.examples += 1
        return self.stopped

    def _begin(self, x: Any, y: Any) -> None:
        """Show the first example to an estimator, which has no hypothesis before; no mistake, for nothing was said."""
        if self.classes is None:
            self._learn(x, y)
        else:
            self.learner.partial_fit(_matrix(x), np.asarray([y]), classes=self.classes)

    def fit(self, X: Any, y: ArrayLike | None = None) -> PACLearner:
        """Take the rows of X with the labels y, or (x, y) pairs of any iterable, until the learner stops."""
        if y is not None and self.classes is None:
            self.classes = np.unique(np.asarray(y))
        dense = not hasattr(self.learner, "get_params")  # learners of concepts take an instance as an array
        for x, label in _pairs(X, y):
            if self.learn(x.toarray()[0] if dense and is_sparse(x) else x, label):
                break
        return self

    def _begun(self) -> bool:
        """Whether there is a hypothesis: estimators have none before the first example."""
        return not self.is_classifier or hasattr(self.learner, "classes_")

    def __repr__(self) -> str:
        return f"PACLearner({self.learner!r}): {self.guarantee}"


def to_pac(
    learner: Any,
    epsilon: float,
    delta: float,
    mistake_bound: float | None = None,
    *,
    classes: ArrayLike | None = None,
) -> PACLearner:
    """A learner that stops when its hypothesis has error at most epsilon, except with probability delta.

    - learner: an object with ``predict_one(x)`` and ``learn_one(x, y)``, or ``predict(x)`` and ``learn(x, y)`` for one
      instance. It learns in place.
    - mistake_bound: M, such as ``bounds.winnow(n, k)``; by default the ``bound`` of a learner of concepts. Without one
      every mistake makes the next hypothesis wait longer.
    - classes: all labels, for an estimator that must know them before the first example; `fit` finds them in y.

    The examples must be drawn independently, from where the later ones come from.

    >>> from onlearn.engine.learner import Learner
    >>> from onlearn.theory import bounds
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (5000, 20)).astype(float)
    >>> y = X[:, 3] > 0
    >>> winnow = Learner("Winnow", alpha=2.0, stabilizer="last")
    >>> pac = to_pac(winnow, epsilon=0.02, delta=0.05, mistake_bound=bounds.winnow(n=20, k=1)).fit(X, y)
    >>> pac.stopped, pac.guarantee.needed, pac.guarantee.examples < 1000
    (True, 295, True)
    """
    own = getattr(learner, "bound", None)
    if mistake_bound is None and isinstance(own, (int, float)) and math.isfinite(own):
        mistake_bound = float(own)
    return PACLearner(learner, epsilon, delta, mistake_bound, classes)


def takes_classes(learner: Any) -> bool:
    """Whether a learner is a classifier that is told all classes when it begins, as those of scikit-learn are."""
    method = getattr(learner, "partial_fit", None)
    return method is not None and "classes" in signature(method).parameters


def one_at_a_time(learner: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """The methods by which a learner predicts one instance and learns from one example."""
    for predict, learn in (("predict_one", "learn_one"), ("predict", "learn")):
        if callable(getattr(learner, predict, None)) and callable(getattr(learner, learn, None)):
            return getattr(learner, predict), getattr(learner, learn)
    raise TypeError(
        f"A learner needs predict_one and learn_one, or predict and learn for one instance, but "
        f"{type(learner).__name__} has neither pair."
    )


def _pairs(X: Any, y: ArrayLike | None) -> Iterable[tuple[Any, Any]]:
    if y is None:
        yield from X
        return
    labels = np.asarray(y)
    rows = X.tocsr() if hasattr(X, "tocsr") else X if is_sparse(X) else np.asarray(X)
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y must hold one label for each of the {rows.shape[0]} rows; its shape is {labels.shape}.")
    for i in range(len(labels)):
        yield rows.between(i, i + 1) if isinstance(rows, CSR) else rows[[i]] if is_sparse(rows) else rows[i], labels[i]


def _matrix(x: Any) -> Any:
    """One row as a matrix."""
    return x if hasattr(x, "shape") and len(x.shape) == 2 else np.asarray(x)[None, :]
