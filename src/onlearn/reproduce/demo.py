"""A tour of the named learners: accuracy, mistakes and speed of each on three data sets.

Two of them are part of scikit-learn. The third is generated: a disjunction of 5 among 10,000 Boolean features, of
which some 60 are on in a row. There the mistake bounds apply, and explain why Winnow makes so few mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from onlearn.estimators.linear import NAMED
from onlearn.estimators.mixture import Mixture
from onlearn.theory import bounds
from onlearn.warm import MIXTURE, Loop, mixture_loops, named_loops

FEATURES, LITERALS, ACTIVE, EXAMPLES = 10_000, 5, 60, 6_000

# The concept's margin at |u|_1 = 1, by weights of 1 on its literals and -1/2 on the constant.
MARGIN_1 = 0.5 / (LITERALS + 0.5)

SETTINGS: dict[str, dict[str, Any]] = {
    "LinearSVM": dict(schedule="1/sqrt(t)", rate=0.3, l2=1e-3),
    "Winnow": dict(alpha=1.3),
}
# The settings of the theorems: the factor 2 of the textbook, and the best rate for the margin.
CONCEPT_SETTINGS: dict[str, dict[str, Any]] = {
    "Winnow": dict(alpha=2.0),
    "NormalizedWinnow": dict(eta="auto", margin=MARGIN_1),
}


class Result(NamedTuple):
    """One line of the table."""

    data: str
    learner: str
    accuracy: float  # on the test rows
    mistakes: int  # in training, over all passes
    bound: float | None  # the smallest mistake bound that applies
    theorem: str | None
    examples_per_second: float


class Split(NamedTuple):
    """Training rows and test rows; ``unit`` is the same rows with all values from 0 to 1."""

    rows: tuple[Any, Any]
    unit: tuple[Any, Any]
    y: tuple[np.ndarray, np.ndarray]


def digits(seed: int) -> Split:
    """1,797 images of 8 x 8 pixels, 10 classes."""
    X, y = load_digits(return_X_y=True)
    *rows, y_train, y_test = train_test_split(X / 16, y, test_size=0.25, random_state=seed, stratify=y)
    return Split(tuple(rows), tuple(rows), (y_train, y_test))


def cancer(seed: int) -> Split:
    """569 tumours by 30 measurements, benign or malignant."""
    X, y = load_breast_cancer(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    mean, deviation, low, high = train.mean(axis=0), train.std(axis=0), train.min(axis=0), train.max(axis=0)
    return Split(
        ((train - mean) / deviation, (test - mean) / deviation),
        tuple(np.clip((part - low) / (high - low), 0, 1) for part in (train, test)),
        (y_train, y_test),
    )


def concept(seed: int) -> Split:
    """6,000 sparse rows, positive where one of 5 of 10,000 features is on."""
    rng = np.random.default_rng(seed)
    literals = rng.choice(FEATURES, LITERALS, replace=False)
    columns = rng.integers(FEATURES, size=(EXAMPLES, ACTIVE))
    on = rng.random((EXAMPLES, LITERALS)) < 1 - 0.5 ** (1 / LITERALS)  # so that half the rows are positive
    row = np.concatenate([np.repeat(np.arange(EXAMPLES), ACTIVE), np.nonzero(on)[0]])
    column = np.concatenate([columns.ravel(), literals[np.nonzero(on)[1]]])
    X = sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(EXAMPLES, FEATURES))
    X.data[:] = 1.0  # a feature drawn twice is on, not 2
    y = np.asarray(X[:, literals].sum(axis=1)).ravel() > 0
    *rows, y_train, y_test = train_test_split(X, y.astype(int), test_size=0.25, random_state=seed, stratify=y)
    return Split(tuple(rows), tuple(rows), (y_train, y_test))


DATA = {function.__name__: function for function in (digits, cancer, concept)}


LEARNERS = {**NAMED, "Mixture": Mixture}


def loops_for(sets: list[str], learners: list[str]) -> list[Loop]:
    """The loops to compile for these data sets and learners."""
    kinds = {"digits": ("dense", True), "cancer": ("dense", False), "concept": ("sparse", False)}
    wanted = {kinds[name] for name in sets}
    loops = [*named_loops(name for name in learners if name in NAMED), *mixture_loops()]
    loops = [loop for loop in loops if loop.dtype == "float64" and (loop.geometry != MIXTURE or "Mixture" in learners)]
    return [loop for loop in loops if (loop.layout, loop.output is not None) in wanted]


def results(sets: list[str], learners: list[str], seed: int = 0) -> Iterator[Result]:
    """Train each learner on each data set.

    >>> [winnow] = results(["concept"], ["Winnow"])
    >>> winnow.theorem, winnow.mistakes <= winnow.bound
    ('winnow', True)
    """
    for name in sets:
        split = DATA[name](seed)
        for learner in learners:
            yield train(name, learner, split, seed)


def train(name: str, learner: str, split: Split, seed: int) -> Result:
    settings = {
        **SETTINGS.get(learner, {}),
        **(CONCEPT_SETTINGS.get(learner, {}) if name == "concept" else {}),
    }
    X, X_test = view(learner, split)
    y, y_test = split.y
    LEARNERS[learner](random_state=seed, **settings).fit(X, y)  # compiles, before the time is taken
    model = LEARNERS[learner](random_state=seed, **settings)
    start = perf_counter()
    model.fit(X, y)
    seconds = perf_counter() - start
    promises = list(applicable(name, learner, model, X, y))
    bound, theorem = min(promises, default=(None, None))
    speed = model.n_seen_ / seconds
    return Result(name, learner, float(model.score(X_test, y_test)), model.n_mistakes_, bound, theorem, speed)


def view(learner: str, split: Split) -> tuple[Any, Any]:
    """The rows in the form that a learner needs."""
    if learner == "Winnow":
        return tuple(with_complements(part) for part in split.unit)
    if learner == "NormalizedWinnow":
        return tuple(with_mirror_image(part) for part in split.unit)
    return split.rows


def with_complements(X: Any) -> Any:
    """Weights that are never negative need 1 - x as well as x; a monotone concept needs x only."""
    return X if sp.issparse(X) else np.hstack([X, 1 - X])


def with_mirror_image(X: Any) -> Any:
    """On the simplex a feature counts against by the weight of -x; constants of both signs are the threshold."""
    one = np.ones((X.shape[0], 1))
    if sp.issparse(X):
        return sp.hstack([X, -X, one, -one], format="csr")
    return np.hstack([2 * X - 1, 1 - 2 * X, one, -one])


def applicable(name: str, learner: str, model: Any, X: Any, y: np.ndarray) -> Iterator[tuple[float, str]]:
    """The mistake bounds that apply to this run, with the names of their theorems."""
    if len(model.classes_) == 2 and learner in NAMED:  # the theorem of a mixture is about its loss
        yield from ((bound.value, bound.name) for bound in model.certificate(X, y).bounds if bound.applies)
    # On data of this size the certificate uses the learned weights; the concept, which is known here, is better.
    if name == "concept" and learner == "NormalizedWinnow":
        yield bounds.normalized_winnow(X.shape[1], MARGIN_1), "normalized_winnow"
