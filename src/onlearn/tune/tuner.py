"""``Tuner``: an estimator that races others and becomes the winner.

All configurations learn side by side from the same shuffled rows; the worse half is dropped at doubling counts of
examples (see ``race``). The few that are left make further passes, judged by rows held out, which decides between them
and about the number of passes. Then the winner learns from all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from onlearn.engine.inputs import check_weights
from onlearn.engine.passes import first_ctrl_c
from onlearn.tune.candidates import Candidate, candidates, spelled
from onlearn.tune.cross_validation import fold_numbers, splits_of
from onlearn.tune.field import ArrayContestant, usual_field
from onlearn.tune.race import PASSES, Race, Stopwatch

FEWEST = 20  # rows that can be raced over
FINALISTS = 4
SAMPLE = 1 << 13  # rows from which on the first part of the race takes a sample of them: one in four
MANY = 12_000  # rows of which one part held out tells enough
USUAL = 5  # passes of an estimator that does not say how many it makes


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the winner has a method; before there is one, whether the task allows it."""

    def check(tuner: Any) -> bool:
        if hasattr(tuner, "best_estimator_"):
            return hasattr(tuner.best_estimator_, method)
        return bool(tuner._task() == "classify")

    return check


class Tuner(BaseEstimator):
    """Races configurations of learners, drops the worse half again and again, and becomes the winner.

    Parameters
    ----------
    space : None, list of estimators, or mapping, by default None
        What takes part. None: learners that suit rows of numbers. A list: estimators with ``partial_fit``, ours or
        others, or names of ours. A mapping: parameters of ``estimator`` with lists of values, or ranges
        (``onlearn.tune.Log(0.01, 1)``, ``Uniform``, ``Whole``); with "learner", a list of names of ours.
    n_configurations : int, by default 16
        How many configurations take part, at most.
    estimator : estimator or None, by default None
        Whose parameters a mapping means; None: logistic regression, or linear regression.
    task : "classify", "regress" or None, by default None
        None: what the first estimator does.
    max_passes : int or None, by default None
        The most passes over the rows. None: 20, but of more than 12,000 rows no more than the estimator usually makes,
        so that the whole costs about three times what one of them does.
    time_limit : float or None, by default None
        Seconds after which the race ends, with the best so far.
    random_state : int, RandomState or None, by default None
        What the order of the rows and the configurations depend on.
    n_jobs : int or None, by default None
        Threads in which configurations learn; None: one for each processor. Within ``onlearn.cluster.races.on(client)``
        they learn on the workers of a Dask cluster instead. The result depends on neither.

    Attributes
    ----------
    best_estimator_ : the winner, fitted to all rows
    best_params_ : the parameters by which it differs; of a list of estimators, all of them
    best_index_ : its number in the table
    results_ : the table of the race, plain JSON
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn

    >>> import onlearn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 4))
    >>> y = X[:, 0] > X[:, 1]
    >>> tuner = Tuner({"rate": [1e-6, 0.1]}, estimator=onlearn.LogisticRegression(), random_state=0).fit(X, y)
    >>> tuner.best_params_["rate"], tuner.score(X, y) > 0.95
    (0.1, True)
    """

    def __init__(
        self,
        space: Any = None,
        n_configurations: int = 16,
        *,
        estimator: Any = None,
        task: str | None = None,
        max_passes: int | None = None,
        time_limit: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.space = space
        self.n_configurations = n_configurations
        self.estimator = estimator
        self.task = task
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.random_state = random_state
        self.n_jobs = n_jobs

    # ------------------------------------------------------------------ what scikit-learn asks

    def _task(self) -> str:
        """The task that is given, or that of the first estimator."""
        if self.task is not None:
            return str(self.task)
        first = self.estimator
        if first is None and isinstance(self.space, (list, tuple)) and self.space:
            first = self.space[0]
        if isinstance(first, str):
            return "regress" if "Regressor" in first or "SVR" in first else "classify"
        return "regress" if hasattr(first, "__sklearn_tags__") and is_regressor(first) else "classify"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self._task() == "classify":
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Tuner:
        """Race, and fit the winner to all rows."""
        began = perf_counter()
        self._check()
        X, y = self._checked(X, y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(y), sees_all=True)
        classes = np.unique(y) if self._task() == "classify" else None
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        found = candidates(self.space, self.estimator, task=self._task(), count=self.n_configurations, seed=seed % 1000)
        found = [Candidate(options, _ready(one, seed)) for options, one in found]
        clock = Stopwatch(self.time_limit)
        with first_ctrl_c() as pressed:
            race = self._race(found, X, y, classes, weight, seed, lambda: clock() or pressed())
        winner = race.winner
        if winner is None:
            reasons = "; ".join(f"{found[one.number].spelling}: {one.why}" for one in race.standings[:3])
            raise ValueError(f"no configuration could learn from these rows: {reasons}")
        if pressed():
            warnings.warn("Ctrl-C ended the race; the best configuration so far is fitted", stacklevel=2)
        self._adopt(found, race, winner, X, y, classes, weight, seed)
        self.results_["seconds"] = round(perf_counter() - began, 3)
        return self

    def _check(self) -> None:
        """Refuse parameters that cannot be."""
        if self._task() not in ("classify", "regress"):
            raise ValueError(f"task must be 'classify', 'regress' or None, not {self.task!r}")
        for name in ("n_configurations", "max_passes"):
            value = getattr(self, name)
            if name == "max_passes" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, not {value!r}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit must be a number of seconds above 0 or None, not {self.time_limit!r}")

    def _checked(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        classify = self._task() == "classify"
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], y_numeric=not classify, multi_output=False
        )
        if classify:
            check_classification_targets(y)
            if len(np.unique(y)) < 2:
                raise ValueError("y has only one class, so there is nothing to tell apart: Tuner needs two or more")
        return X, np.asarray(y)

    def _race(
        self, found: list[Candidate], X: Any, y: np.ndarray, classes: Any, weight: Any, seed: int,
        over: Callable[[], bool],
    ) -> Race:  # fmt: skip
        def contestant(number: int) -> Any:
            one = found[number].estimator
            return one if isinstance(one, str) else ArrayContestant(
                clone(one), X, y, classes=classes, sample_weight=weight
            )  # fmt: skip

        rows = len(y)
        field = usual_field(None if self.n_jobs is None or self.n_jobs < 0 else self.n_jobs)
        contestants = [contestant(n) for n in range(len(found))]
        race = Race(contestants, keep=FINALISTS, default=self.space is None, over=over, field=field)
        if rows < FEWEST or len(race.alive) < 2:
            return race
        order = np.random.default_rng([seed, 1]).permutation(rows)
        race.run(order[: max(SAMPLE // 2, rows // 4)] if rows > SAMPLE else order)
        if race.ended_early or len(race.alive) == 0:
            return race
        judged = [self._passes(one, rows) for one in found]
        race.finals(
            self._folds(y, classes, seed),
            lambda number, fold: contestant(number),
            lambda number: judged[number][0],
            lambda number: judged[number][1],
            seed=seed,
        )
        return race

    def _folds(self, y: np.ndarray, classes: Any, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and rows held out, several times if there are few."""
        numbers = fold_numbers(len(y), 5, None if classes is None else y, seed)
        count = 5 if len(y) < 3_000 else 3 if len(y) < MANY else 1
        return list(splits_of(numbers))[:count]

    def _passes(self, one: Candidate, rows: int) -> tuple[list[int], int]:
        """The numbers of passes after which a finalist is judged, and the usual one."""
        if isinstance(one.estimator, str):
            return [1], 1
        epochs = getattr(one.estimator, "epochs", USUAL) or USUAL
        if "epochs" in one.options:
            return [epochs], epochs
        most = self.max_passes or (PASSES[-1] if rows < MANY else int(epochs))
        usual = min(int(epochs), most)
        return sorted({usual, *(n for n in PASSES if n <= most)}), usual

    def _adopt(
        self, found: list[Candidate], race: Race, winner: int, X: Any, y: np.ndarray, classes: Any, weight: Any,
        seed: int,
    ) -> None:  # fmt: skip
        """Fit the winner to all rows, and tell how the race went."""
        chosen = found[winner]
        passes = race.standings[winner].passes
        fitted = fit_passes(clone(chosen.estimator), passes, X, y, classes, weight, seed)
        self.best_estimator_ = fitted
        self.best_index_ = winner
        own = {name: value for name, value in chosen.options.items() if name != "learner"}
        shown = own if own and "learner" not in chosen.options else fitted.get_params(deep=False)
        self.best_params_ = {**shown, **({"epochs": fitted.epochs} if hasattr(fitted, "epochs") else {})}
        if classes is not None:
            self.classes_ = classes
        table = sorted((one.to_json() for one in race.finish()), key=lambda one: one["number"])
        self.results_ = {
            "configurations": [
                {"number": n, "options": _plain(one.options), "spelling": one.spelling, **table[n]}
                for n, one in enumerate(found)
            ],
            "winner": winner,
            "passes": passes,
            "best": spelled(fitted),
            "examples": race.learned,
            "ended_early": race.ended_early,
        }

    # ------------------------------------------------------------------ predicting

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, or the number."""
        X = self._rows(X)
        return np.asarray(self.best_estimator_.predict(X))

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class."""
        X = self._rows(X)
        return np.asarray(self.best_estimator_.predict_proba(X))

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of the probabilities."""
        X = self._rows(X)
        return np.asarray(self.best_estimator_.predict_log_proba(X))

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """The score of each class; with two classes that of the second."""
        X = self._rows(X)
        return np.asarray(self.best_estimator_.decision_function(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are predicted right; in regression R2."""
        found = self.predict(X)
        judge = accuracy_score if self._task() == "classify" else r2_score
        return float(judge(y, found, sample_weight=sample_weight))


def _ready(estimator: Any, seed: int) -> Any:
    """A copy of an estimator that can take part, with a seed if it has none; or why it cannot."""
    if isinstance(estimator, str):
        return estimator
    if not hasattr(estimator, "partial_fit"):
        return f"{type(estimator).__name__} has no partial_fit: onlearn.tune.search tunes it"
    made = clone(estimator)
    if made.get_params(deep=False).get("random_state", 0) is None:
        made.set_params(random_state=seed)
    return made


def fit_passes(estimator: Any, passes: int | None, X: Any, y: np.ndarray, classes: Any, weight: Any, seed: int) -> Any:
    """Fit an estimator by so many passes; None: as it does by itself.

    What has a number of passes as its parameter is told; other estimators learn by ``partial_fit``.
    """
    weights = {} if weight is None else {"sample_weight": weight}
    if passes is None:
        return estimator.fit(X, y, **weights)
    if "epochs" in estimator.get_params(deep=False):
        return estimator.set_params(epochs=passes).fit(X, y, **weights)
    for turn in range(passes):
        order = np.random.default_rng([seed, 2, turn]).permutation(len(y))
        first = {"classes": classes} if classes is not None and not turn else {}
        part = {} if weight is None else {"sample_weight": weight[order]}
        estimator.partial_fit(X[order], y[order], **first, **part)
    return estimator


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    """Options as JSON has them."""
    kinds = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, kinds) else repr(value) for name, value in options.items()}
