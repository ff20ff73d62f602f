"""The linear regressor: least squares (with l2 ridge, with l1 lasso) and epsilon-insensitive, one example at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import RegressorMixin

from onlearn.atomic import all_or_nothing, to_the_end
from onlearn.estimator import LinearModel
from onlearn.fitting import run_passes, warn
from onlearn.loops import HIGHEST_LOSS, LOSS
from onlearn.predicting import narrow
from onlearn.targets import check_targets
from onlearn.weighing import check_weights

ALIKE = 1e-9  # a deviation of y, as a part of its size, that is as good as none


class OnlineRegressor(RegressorMixin, LinearModel):
    """Learns a linear regression from examples one at a time: least squares, ridge, lasso, epsilon-insensitive.

    Parameters are those of ``OnlineClassifier`` that have a meaning here.

    Steps have a size of their own, so how soon the weights get there depends on the scale of y, as on that of X: y of
    mean 0 and deviation 1 suits the defaults. scikit-learn's ``TransformedTargetRegressor(OnlineRegressor(),
    transformer=StandardScaler())`` learns such y, and predicts in the units of yours. ``fit`` warns if the mean of y
    would have predicted better than what was learned.

    >>> import numpy as np
    >>> from onlearn import OnlineRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = OnlineRegressor(random_state=0).fit(X, X @ [1.0, 2.0, 0.0] + 3)
    >>> model.score(X, X @ [1.0, 2.0, 0.0] + 3) > 0.99
    True
    """

    def __init__(
        self,
        rule: Any = "lms",
        geometry: Any = "adagrad",
        stabilizer: Any = "averaged",
        fit_intercept: bool = True,
        epochs: int | None = 5,
        max_epochs: int = 1000,
        shuffle: bool = True,
        tol: float | None = None,
        init: str = "zeros",
        grow: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        intercept_scaling: float | str = 1.0,
    ) -> None:
        self.rule = rule
        self.geometry = geometry
        self.stabilizer = stabilizer
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.tol = tol
        self.init = init
        self.grow = grow
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended."""
        self._check_settings()
        going_on = self.warm_start and hasattr(self, "_training")
        if going_on:
            self._hold_to_settings()
        X, checked = self._check_all_rows(X, sample_weight, going_on)
        y = self._check_targets(X, y)
        weight = check_weights(sample_weight, X.shape[0], sees_all=True)
        if not going_on:
            self._training, self._dtype = self._new_training(X, y, sees_all=True), X.dtype
            self._training.checked = checked
        run_passes(self._training, X, y, weight, self, self._seed)
        self._warn_if_useless(X, y, weight)
        return self

    def _warn_if_useless(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        """Say so if the mean of y would have been a better prediction of the rows learned from."""
        total, highest = weight.sum(), np.abs(y).max()
        if highest == 0.0:
            return
        with np.errstate(over="ignore", invalid="ignore"):  # all in units of the highest y, whose square may overflow
            relative = y / highest
            variance = weight @ (relative - weight @ relative / total) ** 2 / total
            if variance <= ALIKE**2:
                return
            # An average of hypotheses is no worse than they were on average, so that most often no row need be scored.
            training = self._training
            known = training.rule.name == "lms" and training.tally[LOSS] < HIGHEST_LOSS  # else some loss was cut short
            losses = training.record(np.zeros(len(training.tally)))["loss"], training.by_pass[-1]["loss"]
            if known and 2 * max(losses) / highest / highest < variance:
                return
            error = weight @ (self._scores_of_checked(X)[:, 0] / highest - relative) ** 2 / total
            ratio = error / variance
        if not ratio <= 1.0:
            warn(
                "the mean squared error on the rows learned from is more than the variance of y, "
                + (f"{ratio:#.4g} times as large" if np.isfinite(ratio) else "and beyond all numbers")
                + ": the steps do not suit the scale of X or y, so standardise them "
                "(y by TransformedTargetRegressor), give more epochs or another rate"
            )

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width."""
        self._check_settings()
        self.n_features_in_ = features
        self._training = self._new_training(sp.csr_matrix((0, features), dtype=dtype), np.zeros(0), sees_all=False)
        self._dtype = np.dtype(dtype)

    def take_in(self, features: int, classes: int) -> None:
        """Make room for features before they are met."""
        self.n_features_in_ = max(features, self.n_features_in_)
        self._training.grow(self.n_features_in_, 1)

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineRegressor:
        """Learn from the rows once, in their order. Many small calls leave the same state as one large one."""
        self._check_settings()
        first = not hasattr(self, "_training")
        if not first:
            self._hold_to_settings()
        X = self._check_rows(X, reset=first or self._is_wider(X))
        y = self._check_targets(X, y)
        weight = check_weights(sample_weight, X.shape[0], sees_all=False)
        if first:
            self._training, self._dtype = self._new_training(X, y, sees_all=False), X.dtype
        if self.grow:
            self._training.grow(X.shape[1], 1)
        with to_the_end(X.shape[0]):
            self._training.learn(X, y, weight, np.arange(X.shape[0]))
        return self

    def _check_targets(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = check_targets(y)
        self._check_lengths(X, y)
        return y

    def _new_training(self, X: Any, y: np.ndarray, sees_all: bool) -> Any:
        choices = self._choices()
        if not getattr(choices["rule"], "regression", False):
            raise ValueError(
                f"the rule {choices['rule']!r} is for classification; regression has 'lms' and 'epsilon', or your own"
            )
        if getattr(choices["geometry"], "undecided", False):
            raise ValueError(
                f"{choices['geometry']!r} is estimated from examples of two classes; for regression give the number"
            )
        if choices["stabilizer"].name not in ("last", "averaged"):
            raise ValueError(
                f"stabilizer {choices['stabilizer'].name!r} counts mistakes, which regression has not: "
                "use 'last' or 'averaged'"
            )
        if self.epochs is None and self.tol is None:
            raise ValueError("epochs=None needs tol in regression, where no pass is free of error")
        training = self._start(X, lambda: y, None, 1, sees_all)
        training.classifies = False
        return training

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the hypothesis, (features,)."""
        return np.array(narrow(self._weights()[0][:, 0], self._dtype))

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum, (1,)."""
        return narrow(self._weights()[1], self._dtype)

    def predict(self, X: Any) -> np.ndarray:
        return self._scores(X)[:, 0]
