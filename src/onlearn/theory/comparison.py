"""Learners side by side: examples needed, time, robustness to label noise, and adaptation to change.

Every repeat has a world of its own (see ``problems``), in which all learners see the same examples in the same order.
Accuracy is measured on other examples with true labels, before any are learned from and at growing numbers of them:

- examples until the accuracy asked for is reached;
- accuracy at the end, with each share of the training labels changed to another class;
- when the target or the domain changes halfway: accuracy just after the change and at the end, and the examples until
  the accuracy is reached again;
- seconds for an example, measured alone, after all else.

Means are over repeats, with intervals of 95 % by Student's t. Examples until an accuracy is reached are a mean over the
repeats in which it is reached; how many these are is told.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pickle import PicklingError
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlearn import threads
from onlearn.engine.registry import (
    composition_of,
    full_name,
    make_learner,
    parameters_of_call,
    parse_call,
    parse_learner,
)
from onlearn.theory.learner import ContradictionError
from onlearn.theory.pac import one_at_a_time, takes_classes
from onlearn.theory.problems import Draw, MOfN, Problem, Rows

__all__ = ["Comparison", "MOfN", "Measure", "Rows", "compare_learners"]

TEST_ROWS = 1000
FIRST, GROWTH = 10, 1.25  # examples before the first test, and how they grow to the next

WORTHWHILE = 3.0  # seconds of work that are worth starting processes for
SEEDS = 1 << 31

_Found = dict[tuple[str, str], float]  # by learner and quantity


@dataclass(frozen=True)
class Measure:
    """One quantity of one learner: its mean over ``repeats``, and the ends of the interval of 95 % (nan if one)."""

    learner: str
    quantity: str
    mean: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True)
class Comparison:
    """All measures, by learner and quantity; it prints as a table."""

    learners: tuple[str, ...]
    quantities: tuple[str, ...]
    measures: tuple[Measure, ...]
    examples: int
    accuracy: float
    repeats: int

    def __getitem__(self, place: tuple[str, str]) -> Measure:
        """The measure of a (learner, quantity)."""
        for one in self.measures:
            if (one.learner, one.quantity) == place:
                return one
        raise KeyError(f"There is no {place[1]!r} of {place[0]!r}.")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON: what is no number is null."""
        fields = asdict(self)
        for measure in fields["measures"]:
            for name in ("mean", "low", "high"):
                measure[name] = measure[name] if math.isfinite(measure[name]) else None
        return fields

    def __str__(self) -> str:
        table = [["", *self.learners]]
        for quantity in self.quantities:
            table.append([quantity, *(self._cell(self[learner, quantity]) for learner in self.learners)])
        widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
            for row in table
        ]
        return "\n".join([f"{self.examples} examples, {self.repeats} repeats; intervals of 95 %", *lines])

    __repr__ = __str__

    def _cell(self, one: Measure) -> str:
        if one.repeats == 0:
            return "never"
        often = f" in {one.repeats} of {self.repeats}" if one.repeats < self.repeats else ""
        if one.quantity.startswith("seconds"):
            return f"{one.mean * 1e6:.2f} us [{one.low * 1e6:.2f}, {one.high * 1e6:.2f}]{often}"
        digits = 3 if one.quantity.startswith("accuracy") else 0
        return f"{one.mean:.{digits}f} [{one.low:.{digits}f}, {one.high:.{digits}f}]{often}"


def compare_learners(
    learners: Iterable[Any] | Mapping[str, Any],
    problem: Problem | tuple[Any, ArrayLike] | None = None,
    *,
    accuracy: float = 0.95,
    examples: int = 2000,
    noise: Iterable[float] = (0.05, 0.1, 0.2),
    repeats: int = 10,
    random_state: int = 0,
    workers: int | None = None,
) -> Comparison:
    """Compare learners on a problem; with one seed all but the times come out the same.

    - learners: names with parameters such as "Winnow(alpha=1.5)"; classifiers with ``partial_fit`` and ``predict``;
      objects with ``learn_one`` and ``predict_one``, or ``learn(x, y)`` and ``predict(x)`` for one instance, such as
      learners of concepts, which leave out what contradicts them; or functions that make such. In a mapping they have
      names.
    - problem: `MOfN` with its parameters, `Rows` or a pair (X, y) of one's own; anything with ``draw`` as they have it.
    - workers: processes that share the repeats, by default as many as there are processors; used where the first
      repeat shows that it is worth starting them.

    >>> result = compare_learners(["Perceptron", "Winnow(alpha=1.3)"], MOfN(n=300), examples=1000, repeats=2)
    >>> end = "accuracy at the end"
    >>> result["Winnow(alpha=1.3)", end].mean > result["Perceptron", end].mean
    True
    """
    makers = _makers(learners)
    drawn: Any = MOfN() if problem is None else Rows(*problem) if isinstance(problem, tuple) else problem
    levels = [float(share) for share in noise]
    _check(accuracy, examples, levels, repeats)
    worlds = [int(w) for w in np.random.SeedSequence(random_state).generate_state(repeats)]
    for make in makers.values():  # loops are compiled before anything is timed
        _learn(_Student(make(0), drawn.classes), _stream(drawn, FIRST, Draw(0), 0, 0.0))
    task = partial(_repeat, makers, drawn, accuracy=accuracy, examples=examples, noise=levels)
    found = _in_processes(task, worlds, threads.cores() if workers is None else workers)
    for n, world in enumerate(worlds):
        for name, make in makers.items():
            found[n][name, "seconds for an example"] = _seconds(make, drawn, world, examples)
    quantities = tuple(dict.fromkeys(quantity for _, quantity in found[0]))
    measures = tuple(
        _measure(name, quantity, [values[name, quantity] for values in found])
        for name in makers
        for quantity in quantities
    )
    return Comparison(tuple(makers), quantities, measures, examples, accuracy, repeats)


def _in_processes(task: Callable[[int], _Found], worlds: list[int], workers: int) -> list[_Found]:
    """The task in each world, in several processes if it takes long; one at a time if it cannot be sent to others."""
    start = perf_counter()
    found = [task(worlds[0])]
    rest = worlds[1:]
    if workers > 1 and (perf_counter() - start) * len(rest) > WORTHWHILE:
        from joblib import Parallel, delayed

        with suppress(PicklingError):
            return found + list(Parallel(n_jobs=min(workers, len(rest)))(delayed(task)(world) for world in rest))
    return found + [task(world) for world in rest]


def _check(accuracy: float, examples: int, noise: list[float], repeats: int) -> None:
    if not 0.0 < accuracy <= 1.0:
        raise ValueError(f"accuracy must be above 0 and at most 1, but it is {accuracy}.")
    if examples < 2 * FIRST:
        raise ValueError(f"examples must be at least {2 * FIRST}, but it is {examples}.")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, but it is {repeats}.")
    for share in noise:
        if not 0.0 < share < 1.0:
            raise ValueError(f"noise must be shares above 0 and below 1, but one is {share}.")


# -- learners


def _makers(learners: Iterable[Any] | Mapping[str, Any]) -> dict[str, Callable[[int], Any]]:
    """For each name a function from a seed to a new learner."""
    if isinstance(learners, str):
        learners = [learners]
    named = learners.items() if isinstance(learners, Mapping) else ((None, one) for one in learners)
    makers: dict[str, Callable[[int], Any]] = {}
    for name, one in named:
        shown = str(name or (one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__)))
        if shown in makers:
            raise ValueError(f"Two learners are called {shown!r}: give them names by a dict.")
        makers[shown] = _maker(one)
    if not makers:
        raise ValueError("There are no learners to compare.")
    return makers


@dataclass(frozen=True)
class _Spelled:
    """Makes the learner that a text spells; one that has a seed and does not say which gets that of the repeat."""

    text: str

    def __call__(self, seed: int) -> Any:
        name, values, named = parse_call(self.text)
        name = full_name(name)
        known = composition_of(name).parameters
        seeded = {"random_state": seed % SEEDS} if "random_state" in known else {}
        return make_learner(name, **{**seeded, **parameters_of_call(self.text, list(known), values, named)})


@dataclass(frozen=True)
class _Copied:
    """Makes copies of a learner that has learned nothing, with the seed of the repeat if it has none."""

    learner: Any

    def __call__(self, seed: int) -> Any:
        made = copy.deepcopy(self.learner)
        if hasattr(made, "get_params") and made.get_params().get("random_state", 0) is None:
            made.set_params(random_state=seed % SEEDS)
        return made


@dataclass(frozen=True)
class _Called:
    """Makes learners by a function or a class."""

    make: Callable[[], Any]

    def __call__(self, seed: int) -> Any:
        return self.make()


def _maker(one: Any) -> Callable[[int], Any]:
    if isinstance(one, str):
        parse_learner(one)  # what is wrong with it is said now
        return _Spelled(one)
    if isinstance(one, type) or not any(hasattr(one, name) for name in ("partial_fit", "learn_one", "learn")):
        if not callable(one):
            raise TypeError(f"{one!r} is no learner: it cannot learn, and cannot be called to make one that can.")
        return _Called(one)
    return _Copied(one)


class _Student:
    """A learner behind one face: rows to learn from, rows to predict."""

    def __init__(self, learner: Any, classes: NDArray[Any]) -> None:
        self.learner, self.classes = learner, classes
        self.by_rows = takes_classes(learner)
        if not self.by_rows:
            self.predict_one, self.learn_one = one_at_a_time(learner)
        self.begun = not self.by_rows

    def learn(self, X: Any, y: NDArray[Any]) -> None:
        if self.by_rows:
            self.learner.partial_fit(X, y, **({} if self.begun else {"classes": self.classes}))
            self.begun = True
        else:
            for i in range(len(y)):
                with suppress(ContradictionError):  # what leaves no concept is not learned
                    self.learn_one(_row(X, i), y[i])

    def predict(self, X: Any) -> NDArray[Any]:
        if self.by_rows:
            return np.asarray(self.learner.predict(X))
        return np.array([self.predict_one(_row(X, i)) for i in range(X.shape[0])])

    def accuracy(self, X: Any, y: NDArray[Any]) -> float:
        return float((self.predict(X) == y).mean()) if self.begun else 1.0 / len(self.classes)


def _row(X: Any, i: int) -> Any:
    row = X[[i]] if hasattr(X, "indptr") else X[i]
    return row.toarray()[0] if hasattr(row, "toarray") else row


# -- one repeat


class _Stream(NamedTuple):
    X: Any
    y: NDArray[Any]


def _stream(problem: Problem, rows: int, where: Draw, key: int, noise: float) -> _Stream:
    """Examples of a world; the key tells apart those for different uses."""
    rng = np.random.default_rng([where.world, key, where.target, 2 if where.domain is None else where.domain])
    X, y = problem.draw(rng, rows, where)
    if noise:
        classes = problem.classes
        code = np.searchsorted(classes, y)
        moved = (code + rng.integers(1, len(classes), rows)) % len(classes)
        y = classes[np.where(rng.random(rows) < noise, moved, code)]
    return _Stream(X, y)


class _Curve(NamedTuple):
    """Accuracy after so many examples."""

    counts: list[int]
    accuracies: list[float]

    def reaches(self, accuracy: float) -> float:
        return float(next((n for n, value in zip(self.counts, self.accuracies) if value >= accuracy), math.nan))


def _learn(student: _Student, stream: _Stream, test: _Stream | None = None) -> _Curve:
    """Learn in pieces that grow, and test before the first and after each; without a test all at once."""
    curve, done, rows = _Curve([], []), 0, len(stream.y)
    if test is None:
        student.learn(*stream)
        return curve
    while True:
        curve.counts.append(done)
        curve.accuracies.append(student.accuracy(*test))
        if done == rows:
            return curve
        upto = min(rows, max(FIRST, done + 1, math.ceil(done * GROWTH)))
        student.learn(stream.X[done:upto], stream.y[done:upto])
        done = upto


def _repeat(makers: dict[str, Callable[[int], Any]], problem: Problem, world: int, accuracy: float, examples: int,
            noise: list[float]) -> _Found:  # fmt: skip
    """All that is measured in one world but for the times."""
    found: _Found = {}
    reach = f"examples to accuracy {accuracy:g}"
    plain, half = Draw(world), examples // 2
    train = _stream(problem, examples, plain, 1, 0.0)
    test = _stream(problem, TEST_ROWS, plain._replace(held_out=True), 2, 0.0)
    noisy = {share: _stream(problem, examples, plain, 1, share) for share in noise}
    changes = {
        "target": (plain, plain._replace(target=1)),
        "domain": (plain._replace(domain=0), plain._replace(domain=1)),
    }
    halves = {name: tuple(_stream(problem, half, where, 3, 0.0) for where in both) for name, both in changes.items()}
    tests = {
        name: _stream(problem, TEST_ROWS, both[1]._replace(held_out=True), 4, 0.0) for name, both in changes.items()
    }
    for name, make in makers.items():

        def student(make: Callable[[int], Any] = make) -> _Student:
            return _Student(make(world), problem.classes)

        curve = _learn(student(), train, test)
        found[name, reach] = curve.reaches(accuracy)
        found[name, "accuracy at the end"] = curve.accuracies[-1]
        for share in noise:
            taught = student()
            _learn(taught, noisy[share])
            found[name, f"accuracy with {share:g} of the labels wrong"] = taught.accuracy(*test)
        for what in changes:
            taught = student()
            _learn(taught, halves[what][0])
            curve = _learn(taught, halves[what][1], tests[what])
            found[name, f"accuracy after a change of {what}"] = curve.accuracies[0]
            found[name, f"examples to accuracy {accuracy:g} again, {what}"] = curve.reaches(accuracy)
            found[name, f"accuracy at the end, {what} changed"] = curve.accuracies[-1]
    return found


def _seconds(make: Callable[[int], Any], problem: Problem, world: int, examples: int) -> float:
    stream = _stream(problem, examples, Draw(world), 1, 0.0)
    taught = _Student(make(world), problem.classes)
    taught.learn(stream.X[:FIRST], stream.y[:FIRST])
    start = perf_counter()
    taught.learn(stream.X[FIRST:], stream.y[FIRST:])
    return (perf_counter() - start) / (examples - FIRST)


def _measure(learner: str, quantity: str, values: list[float]) -> Measure:
    """Mean and interval of the values that are numbers."""
    there = np.array([value for value in values if not math.isnan(value)])
    count = len(there)
    if count == 0:
        return Measure(learner, quantity, math.nan, math.nan, math.nan, 0)
    mean, wide = float(there.mean()), math.nan
    if count > 1:
        from scipy.special import stdtrit

        wide = float(stdtrit(count - 1, 0.975)) * float(there.std(ddof=1)) / math.sqrt(count)
    low, high = mean - wide, mean + wide
    if quantity.startswith("accuracy"):
        low, high = max(low, 0.0), min(high, 1.0)
    return Measure(learner, quantity, mean, low, high, count)
