"""K-fold cross-validation with a confidence interval.

The rows are dealt out to k folds; each fold is tested on by a learner that has learned from the others. Folds are
stratified: each has the same share of each class, but for one row.

The scores of the folds are not independent: any two of the learners share most of their rows. Their variance s^2 is too
small for that reason, and Nadeau & Bengio (2003) correct it: the mean of n scores has the variance

    (1/n + n_test/n_train) s^2,

with n_test/n_train = 1/(k - 1) for k folds; the interval is Student's, with n - 1 degrees of freedom. There is no
unbiased estimate of that variance (Bengio & Grandvalet 2004); this one is cautious.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.95


def fold_numbers(rows: int, folds: int, classes: Any = None, seed: int = 0) -> np.ndarray:
    """The fold of each row, from 0 on; stratified by ``classes``, an array of whatever can be sorted, if given.

    The sizes of folds differ by at most one row, and so do the counts of each class in them.

    >>> fold_numbers(6, 3, classes=["a", "a", "a", "b", "b", "b"]).reshape(2, 3).sum(axis=1).tolist()
    [3, 3]
    """
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise ValueError(f"folds must be a whole number of at least 2, not {folds!r}")
    if folds > rows:
        raise ValueError(f"there cannot be {folds} folds of {rows} rows: each must have one")
    order = np.random.default_rng([seed, rows]).permutation(rows)
    if classes is not None:
        codes = np.unique(np.asarray(classes), return_inverse=True)[1].reshape(-1)
        order = order[np.argsort(codes[order], kind="stable")]  # one class after the other, each in random order
    numbers = np.empty(rows, dtype=np.int64)
    numbers[order] = np.arange(rows) % folds
    return numbers


class Interval(NamedTuple):
    """A mean, the ends of its confidence interval, and the p-value of a mean of 0."""

    mean: float
    low: float
    high: float
    p: float


def corrected_interval(scores: Sequence[float] | np.ndarray, test_part: float, level: float = LEVEL) -> Interval:
    """The interval of Nadeau & Bengio; ``test_part`` is the number of test rows by that of training rows.

    >>> plain = np.array([0.90, 0.92, 0.91, 0.89, 0.93])
    >>> found = corrected_interval(plain, test_part=1 / 4)
    >>> round(found.mean, 3), round(found.low, 3), round(found.high, 3)
    (0.91, 0.881, 0.939)
    """
    from scipy.special import stdtr, stdtrit

    values = np.asarray(scores, dtype=np.float64)
    mean, count = float(values.mean()), len(values)
    if count < 2:
        return Interval(mean, math.nan, math.nan, math.nan)
    error = math.sqrt((1 / count + test_part) * float(values.var(ddof=1)))
    wide = float(stdtrit(count - 1, (1 + level) / 2)) * error
    if error == 0.0:
        return Interval(mean, mean, mean, 1.0 if mean == 0.0 else 0.0)
    return Interval(mean, mean - wide, mean + wide, float(2 * stdtr(count - 1, -abs(mean) / error)))


@dataclass(frozen=True)
class CrossValidation:
    """The scores of all folds, their mean, and its confidence interval; it prints as one line."""

    scores: tuple[float, ...]
    mean: float
    low: float
    high: float
    level: float
    folds: int
    repeats: int
    scoring: str
    seconds: float

    def __str__(self) -> str:
        times = f", {self.repeats} times" if self.repeats > 1 else ""
        return (
            f"{self.scoring} {self.mean:.4f}, {100 * self.level:g} % interval {self.low:.4f} to {self.high:.4f} "
            f"({self.folds} folds{times}, variance corrected by Nadeau & Bengio)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON."""
        return {**asdict(self), "scores": list(self.scores)}


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folds: int = 5,
    repeats: int = 1,
    scoring: Any = None,
    sample_weight: Any = None,
    level: float = LEVEL,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> CrossValidation:
    """Score any scikit-learn estimator by k-fold cross-validation, with a confidence interval of the mean.

    - folds, repeats: the rows are dealt out to so many folds, and that so many times, in other ways.
    - scoring: as scikit-learn has it, a name or a function of (estimator, X, y); by default the estimator's ``score``.
    - sample_weight: a weight for each row, passed on to ``fit``.
    - n_jobs: processes that share the folds.

    Folds are stratified if the estimator is a classifier. X may be an array, a sparse matrix, a data frame or a list.

    >>> import onlearn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> found = cross_validate(onlearn.LogisticRegression(random_state=0), X, X[:, 0] > 0, folds=5)
    >>> len(found.scores), found.low < found.mean < found.high
    (5, True)
    """
    from sklearn.base import is_classifier

    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level!r}")
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise ValueError(f"repeats must be a whole number of at least 1, not {repeats!r}")
    rows = row_count(X)
    if rows != len(y):
        raise ValueError(f"X has {rows} rows but y has {len(y)} entries")
    began, name, score = perf_counter(), _name_of(scoring), scorer_of(estimator, scoring)
    classes = labels_of(y) if is_classifier(estimator) else None
    splits = [
        fold
        for repeat in range(repeats)
        for fold in splits_of(fold_numbers(rows, folds, classes, random_state + repeat))
    ]
    work = [(estimator, X, y, train, test, score, sample_weight) for train, test in splits]
    if n_jobs in (None, 1):
        scores = [fold_score(*one) for one in work]
    else:
        from joblib import Parallel, delayed

        scores = list(Parallel(n_jobs=n_jobs)(delayed(fold_score)(*one) for one in work))
    found = corrected_interval(scores, 1 / (folds - 1), level)
    return CrossValidation(
        tuple(scores), found.mean, found.low, found.high, level, folds, repeats, name, perf_counter() - began
    )


def splits_of(numbers: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each fold, the rows to learn from and the rows to test on."""
    for fold in range(int(numbers.max()) + 1):
        test = numbers == fold
        yield np.flatnonzero(~test), np.flatnonzero(test)


def fold_score(
    estimator: Any, X: Any, y: Any, train: np.ndarray, test: np.ndarray, score: Callable[..., Any], weight: Any = None
) -> float:
    """The score on some rows of a copy of the estimator that has learned from others."""
    from sklearn.base import clone

    weights = {} if weight is None else {"sample_weight": np.asarray(weight)[train]}
    made = clone(estimator).fit(take_rows(X, train), take_rows(y, train), **weights)
    return float(score(made, take_rows(X, test), take_rows(y, test)))


def scorer_of(estimator: Any, scoring: Any) -> Callable[..., Any]:
    """The function of (estimator, X, y) that a ``scoring`` means."""
    if scoring is None:
        if not hasattr(estimator, "score"):
            raise TypeError(f"{type(estimator).__name__} has no score: give scoring=")
        return _own_score
    from sklearn.metrics import check_scoring

    return check_scoring(estimator, scoring=scoring)


def _own_score(estimator: Any, X: Any, y: Any) -> float:
    return float(estimator.score(X, y))


def _name_of(scoring: Any) -> str:
    return (
        "score" if scoring is None else scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score")
    )


def labels_of(y: Any) -> np.ndarray | None:
    """One label for each row, to stratify by; None if rows have several, as sequences do."""
    if isinstance(y, (list, tuple)) and any(isinstance(one, (list, tuple, np.ndarray)) for one in y):
        return None
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        return None
    return labels.astype(str) if labels.dtype == object else labels


def row_count(X: Any) -> int:
    """The number of rows of an array, a sparse matrix, a data frame or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix, a data frame, a column or a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "column_names"):  # a table of Arrow
        return X.take(rows)
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    if isinstance(X, (list, tuple)):
        return [X[int(n)] for n in rows]
    return X[rows]
