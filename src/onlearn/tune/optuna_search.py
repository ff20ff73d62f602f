"""``search``: parameters of learners that cannot race, by Optuna.

A support vector machine or a network learns from all rows at once, and each trial is expensive: it pays to choose the
next configuration by what the ones before have shown. Optuna's tree-structured Parzen estimator (Bergstra et al. 2011)
does that. Each trial is scored by k-fold cross-validation; one that is below the median of the others after some of the
folds is pruned.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from onlearn.tune.candidates import spelled
from onlearn.tune.cross_validation import (
    corrected_interval,
    fold_numbers,
    fold_score,
    labels_of,
    row_count,
    scorer_of,
    splits_of,
)
from onlearn.tune.field import reason
from onlearn.tune.space import Log, Space, Whole, rounded

STARTUP = 4  # trials before any is pruned
PLAIN = (str, int, float, bool, type(None))  # values that Optuna stores as they are


@dataclass(frozen=True)
class Search:
    """The result of ``search``: the best estimator, fitted to all rows, and the table of trials."""

    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    low: float
    high: float
    trials: tuple[dict[str, Any], ...]
    folds: int
    seconds: float
    stopped: bool = False

    def __str__(self) -> str:
        states = [one["state"] for one in self.trials]
        pruned, failed = states.count("pruned"), states.count("failed")
        return (
            f"{spelled(self.best_estimator_)}: score {self.best_score_:.4f}, 95 % interval {self.low:.4f} to "
            f"{self.high:.4f} ({self.folds} folds); {len(states)} trials, {pruned} pruned, {failed} failed"
        )

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Everything but the estimator, as plain JSON."""
        return {
            "best": spelled(self.best_estimator_),
            "best_params": {name: plain(value) for name, value in self.best_params_.items()},
            "best_score": self.best_score_,
            "low": self.low,
            "high": self.high,
            "folds": self.folds,
            "trials": [dict(one) for one in self.trials],
            "seconds": round(self.seconds, 3),
            "stopped": self.stopped,
        }


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return value if isinstance(value, PLAIN) else repr(value)


def import_optuna() -> Any:
    """Optuna, which is an extra."""
    try:
        import optuna
    except ImportError:
        raise ImportError("Optuna is not installed: pip install 'onlearn[optuna]'") from None
    return optuna


def search(
    estimator: Any,
    space: Mapping[str, Any] | Space,
    X: Any,
    y: Any,
    *,
    trials: int = 30,
    folds: int = 5,
    time_limit: float | None = None,
    scoring: Any = None,
    prune: bool = True,
    random_state: int = 0,
) -> Search:
    """Search the parameters of any scikit-learn estimator, such as ``SVC``, ``MLPClassifier`` or ``CRF``.

    - space: parameters with lists of values, or ranges: ``{"C": Log(0.1, 100), "kernel": ["linear", "gaussian(1)"]}``
    - trials, time_limit: how many configurations are tried, at most, and for how many seconds
    - folds, scoring: as ``cross_validate`` has them
    - prune: whether a trial ends early that is worse than half of those before

    The parameters that the estimator has are tried first, if the space has them. A trial that fails is one of the table
    with the reason. After Ctrl-C the best so far is fitted. With one seed and no time limit the result is the same.

    >>> import onlearn
    >>> from onlearn.tune import Log
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> y = (X**2).sum(axis=1) > 1
    >>> found = search(onlearn.SVC(), {"C": Log(0.1, 100), "kernel": ["gaussian(1)"]}, X, y, trials=4, folds=3)
    >>> len(found.trials), found.best_score_ > 0.8
    (4, True)
    """
    optuna = import_optuna()
    made = space if isinstance(space, Space) else Space.of(space)
    check_space(estimator, made)
    if isinstance(trials, bool) or not isinstance(trials, (int, np.integer)) or trials < 1:
        raise ValueError(f"trials must be a whole number of at least 1, not {trials!r}")
    began = perf_counter()
    trial = _Trial(estimator, made, X, y, folds, scoring, random_state, optuna)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP) if prune else optuna.pruners.NopPruner()
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    stopped = False
    try:
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=random_state), pruner=pruner
        )
        if (present := trial.present()) is not None:
            study.enqueue_trial(present)
        try:
            study.optimize(trial, n_trials=int(trials), timeout=time_limit)
        except KeyboardInterrupt:
            stopped = True
    finally:
        optuna.logging.set_verbosity(level)
    return _result(trial, estimator, X, y, folds, perf_counter() - began, stopped)


def check_space(estimator: Any, space: Space) -> None:
    """Refuse parameters that the estimator does not have."""
    from onlearn.engine.spec import did_you_mean

    known = estimator.get_params()
    if not space.values:
        raise ValueError("the space has no parameters")
    for name in space.values:
        if name not in known:
            raise ValueError(f"{type(estimator).__name__} has no parameter {name!r}{did_you_mean(name, sorted(known))}")


class _Trial:
    """Called by Optuna for each trial; ``table`` tells how all of them went."""

    def __init__(
        self, estimator: Any, space: Space, X: Any, y: Any, folds: int, scoring: Any, seed: int, optuna: Any
    ) -> None:
        from sklearn.base import is_classifier

        classes = labels_of(y) if is_classifier(estimator) else None
        if row_count(X) != len(y):
            raise ValueError(f"X has {row_count(X)} rows but y has {len(y)} entries")
        self.splits: list[Any] = list(splits_of(fold_numbers(row_count(X), folds, classes, seed)))
        self.estimator, self.space, self.X, self.y = estimator, space, X, y
        self.score = scorer_of(estimator, scoring)
        self.seed: int = seed
        self.optuna: Any = optuna
        self.table: list[dict[str, Any]] = []
        self.params: list[dict[str, Any]] = []
        self.scores: list[list[float]] = []

    def present(self) -> dict[str, Any] | None:
        """The parameters that the estimator has now, as Optuna knows them; None if the space does not have them."""
        known = self.estimator.get_params()
        made: dict[str, Any] = {}
        for name, values in self.space.values.items():
            value = known[name]
            if isinstance(values, tuple):
                places = [n for n, one in enumerate(values) if one == value and type(one) is type(value)]
                if not places:
                    return None
                made[name] = places[0]
            elif isinstance(value, (int, float)) and values.low <= value <= values.high:
                made[name] = value
            else:
                return None
        return made

    def suggest(self, trial: Any) -> dict[str, Any]:
        """The parameters of a trial."""
        made: dict[str, Any] = {}
        for name, values in self.space.values.items():
            if isinstance(values, tuple):  # by their places: Optuna takes only plain values
                made[name] = values[trial.suggest_categorical(name, list(range(len(values))))]
            elif isinstance(values, Whole):
                made[name] = trial.suggest_int(name, values.low, values.high)
            else:
                made[name] = rounded(trial.suggest_float(name, values.low, values.high, log=isinstance(values, Log)))
        return made

    def __call__(self, trial: Any) -> float:
        params, began = self.suggest(trial), perf_counter()
        scores: list[float] = []
        entry: dict[str, Any] = {
            "number": trial.number, "params": {name: plain(value) for name, value in params.items()},
            "state": "stopped", "score": None, "folds": 0, "why": None, "seconds": 0.0,
        }  # fmt: skip
        self.table.append(entry)
        self.params.append(params)
        self.scores.append(scores)
        try:
            made = self._made(params)
            for fold, (train, test) in enumerate(self.splits):
                scores.append(fold_score(made, self.X, self.y, train, test, self.score))
                if not math.isfinite(scores[-1]):
                    raise ValueError("its score is not finite")
                entry.update(score=float(np.mean(scores)), folds=len(scores))
                trial.report(entry["score"], fold)
                if fold + 1 < len(self.splits) and trial.should_prune():
                    entry["state"] = "pruned"
                    raise self.optuna.TrialPruned
        except (KeyboardInterrupt, self.optuna.TrialPruned):
            raise
        except Exception as error:  # whatever a configuration does, the search goes on without it
            entry.update(state="failed", why=reason(error))
            raise self.optuna.TrialPruned from error
        finally:
            entry["seconds"] = round(perf_counter() - began, 3)
        entry["state"] = "complete"
        return float(entry["score"])

    def _made(self, params: dict[str, Any]) -> Any:
        from sklearn.base import clone

        made = clone(self.estimator).set_params(**params)
        if made.get_params(deep=False).get("random_state", 0) is None:
            made.set_params(random_state=self.seed)
        return made


def _result(trial: _Trial, estimator: Any, X: Any, y: Any, folds: int, seconds: float, stopped: bool) -> Search:
    done = [n for n, one in enumerate(trial.table) if one["state"] == "complete"]
    if not done:
        if stopped:
            raise KeyboardInterrupt
        why = next((one["why"] for one in trial.table if one["why"]), "the time was over")
        raise ValueError(f"no configuration of {type(estimator).__name__} could be scored: {why}")
    best = max(done, key=lambda n: (trial.table[n]["score"], -n))
    found = corrected_interval(trial.scores[best], 1 / (folds - 1))
    fitted = trial._made(trial.params[best]).fit(X, y)
    return Search(
        fitted, trial.params[best], found.mean, found.low, found.high, tuple(trial.table), folds, seconds, stopped
    )
