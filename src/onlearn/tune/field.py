"""The field of a race: where its contestants learn, side by side.

What a contestant is after a turn depends on what it was before and on the rows alone. So contestants may learn in
threads of this process (``Threads``), or on the workers of a cluster (``onlearn.cluster.races``), and the result is the
same. Rows are numbers of rows in data that contestants share; a ``Portion`` tells them in few words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlearn.threads import cores, over_pieces
from onlearn.tune.losses import Losses, of_answers, of_numbers, of_probabilities, of_scores


class Contestant(Protocol):
    """One configuration at work. ``rows`` are the data, which others may share; the rest is what it has learned."""

    rows: Any

    def judge(self, rows: np.ndarray) -> Losses:
        """What rows of these numbers cost by the present hypothesis."""
        ...

    def learn(self, rows: np.ndarray) -> None:
        """Learn from rows of these numbers, in this order."""
        ...


class Portion(NamedTuple):
    """Part of a list of numbers of rows, in its order or shuffled by a seed.

    >>> Portion(np.array([7, 5, 3, 1]), 1, 3).numbers()
    array([5, 3])
    """

    order: np.ndarray
    start: int = 0
    stop: int | None = None
    seed: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """How many there are."""
        return len(range(*slice(self.start, self.stop).indices(len(self.order))))

    def numbers(self) -> np.ndarray:
        """The numbers of the rows."""
        part = self.order[self.start : self.stop]
        return part if self.seed is None else np.random.default_rng(self.seed).permutation(part)


class Turn(NamedTuple):
    """What a contestant does in one turn: it learns from rows, and is judged ``before`` or ``after`` it, or not."""

    learn: Portion
    before: Portion | None = None
    after: Portion | None = None


class Failed(NamedTuple):
    """A contestant that cannot go on, and the reason."""

    why: str


Outcome = Losses | Failed | None  # None: it was not judged


def take_turn(contestant: Contestant, turn: Turn) -> Outcome:
    """Let a contestant take its turn; whatever error it raises is an outcome, for the race goes on without it."""
    found: Outcome = None
    try:
        with np.errstate(all="ignore"):
            if turn.before is not None:
                found = contestant.judge(turn.before.numbers())
            contestant.learn(turn.learn.numbers())
            if turn.after is not None:
                found = contestant.judge(turn.after.numbers())
    except Exception as error:
        return Failed(reason(error))
    return found


def reason(error: BaseException) -> str:
    """Why a contestant was dropped, in one line."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class Field(Protocol):
    """Where contestants learn."""

    def enter(self, contestant: Contestant) -> Any:
        """What stands for a contestant from now on; its memory is free when this is forgotten."""
        ...

    def take_turns(self, turns: Sequence[tuple[Any, Turn]], over: Callable[[], bool]) -> list[Outcome] | None:
        """Let contestants take a turn each; None if the turns were given up, because the race is ``over`` early."""
        ...


class Threads:
    """Contestants learn in threads of this process, since compiled loops release Python's lock."""

    def __init__(self, count: int | None = None) -> None:
        """None: one thread for each processor."""
        self.count: int = cores() if count is None else count

    def enter(self, contestant: Contestant) -> Contestant:
        return contestant

    def take_turns(self, turns: Sequence[tuple[Any, Turn]], over: Callable[[], bool]) -> list[Outcome] | None:
        found: list[Outcome] = [None] * len(turns)

        def piece(n: int) -> None:
            found[n] = take_turn(*turns[n])

        over_pieces(piece, len(turns), min(self.count, max(1, len(turns))))
        return found


# ---------------------------------------------------------------------- the field that is used if none is named

_usual: ContextVar[Field | None] = ContextVar("_usual", default=None)


def usual_field(threads: int | None = None) -> Field:
    """The field of races that are given none: the one of ``racing_on``, else so many threads."""
    return _usual.get() or Threads(threads)


@contextmanager
def racing_on(field: Field) -> Iterator[None]:
    """Within, races that are given no field are run on this one."""
    before = _usual.set(field)
    try:
        yield
    finally:
        _usual.reset(before)


# ---------------------------------------------------------------------- estimators as contestants


class Arrays(NamedTuple):
    """Rows with targets and weights; ``classes`` None is regression."""

    X: Any
    y: np.ndarray
    classes: np.ndarray | None
    weight: np.ndarray | None


class ArrayContestant:
    """An estimator with ``partial_fit`` on arrays: one of onlearn, of scikit-learn, or of anybody.

    It is judged by ``decision_function``, else ``predict_proba``, else ``predict``. ``classes`` None is regression.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, *, classes: Any = None, sample_weight: Any = None) -> None:
        self.estimator: Any = estimator
        self.rows: Arrays = Arrays(
            X,
            np.asarray(y),
            None if classes is None else np.asarray(classes),
            None if sample_weight is None else np.asarray(sample_weight),
        )
        self._begun: bool = False

    def learn(self, rows: np.ndarray) -> None:
        _, y, classes, weight = self.rows
        options: dict[str, Any] = {}
        if classes is not None and not self._begun:
            options["classes"] = classes
        if weight is not None:
            options["sample_weight"] = weight[rows]
        self.estimator.partial_fit(self._features(rows), y[rows], **options)
        self._begun = True

    def judge(self, rows: np.ndarray) -> Losses:
        _, y, classes, weight = self.rows
        X, y = self._features(rows), y[rows]
        weight = None if weight is None else weight[rows]
        if classes is None:
            return of_numbers(self.estimator.predict(X), y, weight)
        numbers = np.searchsorted(classes, y)
        if hasattr(self.estimator, "decision_function"):
            return of_scores(self.estimator.decision_function(X), numbers, weight)
        if hasattr(self.estimator, "predict_proba"):
            return of_probabilities(self.estimator.predict_proba(X), numbers, weight)
        return of_answers(np.asarray(self.estimator.predict(X)) == y, len(classes), weight)

    def _features(self, rows: np.ndarray) -> Any:
        X = self.rows.X
        return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
