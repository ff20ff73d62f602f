"""The linear classifier: every rule, geometry, stabilizer and kind of multiclass, with scikit-learn's manners."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from onlearn.engine.calibration import Calibrated, HeldOut
from onlearn.engine.interrupts import all_or_nothing, to_the_end
from onlearn.engine.labels import (
    check_classes,
    check_labels,
    encode,
    from_nullable,
    joined,
    plain,
    running_balance,
    unique_labels,
)
from onlearn.engine.loops import HIGHEST_LOSS, LOSS, OUTPUTS
from onlearn.engine.passes import run_passes, warn
from onlearn.engine.scoring import narrow
from onlearn.estimators.base import LinearModel
from onlearn.estimators.checks import check_targets, check_weights, class_weights, multiplied
from onlearn.model_file import TRUTH, check_array, check_facts, either, pack_labels, unpack_labels


class OnlineClassifier(Calibrated, ClassifierMixin, LinearModel):
    """Learns a linear classifier from examples one at a time.

    Parameters
    ----------
    rule, geometry, stabilizer : choices or their spelling
        How large a step an example deserves, how it changes the weights, which hypothesis is handed out.
    multiclass : "auto", "one-vs-all", "true" or "softmax"
        How three or more classes are learned; "auto" is what suits the rule.
    fit_intercept : bool
        Whether there is a constant feature of size ``intercept_scaling``.
    epochs : int or None
        Passes over the data; None: until a pass makes no mistake, at most ``max_epochs``.
    shuffle : bool
        Whether ``fit`` visits the rows in a new random order each pass.
    tol : float or None
        Stop when the mean loss of a pass is not at least so much below that of the pass before.
    class_weight : dict, "balanced" or None
        Multiplies the steps of the examples of a class.
    init : "zeros" or "random"
    grow : bool or "features"
        Whether ``partial_fit`` takes in classes and features it has not seen before; or features only.
    intercept_scaling : float or "radius"
        Size of the constant feature; "radius" is max |x|, so that a mistake moves b by r y R^2.
    calibration : choice or its spelling
        Where probabilities come from: "auto", "online", "holdout(0.1)" or "own".

    Attributes
    ----------
    separable_ : bool or None
        True: a pass of ``fit`` made no mistake, so the classes can be separated. False: without ``shuffle``, the
        Perceptron came back to weights that it had before, which proves that they cannot. None: neither was seen; also
        where one-vs-all came back, which proves only that some class cannot be separated from all others together, or
        where steps are nothing beside the weights, for rounding swallows them.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onlearn import OnlineClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(0)) / X.std(0)
    >>> model = OnlineClassifier(rule="pa1(0.1)", random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.97
    True
    """

    def __init__(
        self,
        rule: Any = "perceptron",
        geometry: Any = "additive",
        stabilizer: Any = "averaged",
        multiclass: str = "auto",
        fit_intercept: bool = True,
        epochs: int | None = 5,
        max_epochs: int = 1000,
        shuffle: bool = True,
        tol: float | None = None,
        class_weight: Any = None,
        init: str = "zeros",
        grow: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        intercept_scaling: float | str = 1.0,
        calibration: Any = "auto",
    ) -> None:
        self.rule = rule
        self.geometry = geometry
        self.stabilizer = stabilizer
        self.multiclass = multiclass
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.tol = tol
        self.class_weight = class_weight
        self.init = init
        self.grow = grow
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling
        self.calibration = calibration

    # ------------------------------------------------------------------ learning

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineClassifier:
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended.

        Labels keep their type in ``classes_``, also those of pandas columns that allow for missing values.
        """
        self._check_settings()
        going_on = self.warm_start and hasattr(self, "_training")
        if going_on:
            self._hold_to_settings()
        X, checked = self._check_all_rows(X, sample_weight, going_on)
        y = self._check_labels(X, y)
        weight = check_weights(sample_weight, X.shape[0], sees_all=True)
        if not going_on:
            classes = unique_labels(y if weight.all() else y[weight > 0])
            if len(classes) < 2:
                raise ValueError(
                    f"a classifier needs examples of two classes or more; y holds only one class, {plain(classes[0])!r}"
                )
            training = self._new_training(X, y, classes, sees_all=True)
            training.checked = checked
            self.classes_, self._training, self._dtype = classes, training, X.dtype
            self._counts = np.zeros(len(classes) + 1)
        codes = self._codes(y, weight)
        if isinstance(self.class_weight, str):  # the passes go over the same rows, so they count once
            counts = np.bincount(codes, weights=weight, minlength=len(self.classes_))
            self._counts = np.concatenate([[counts.sum()], counts])
        weight = self._class_weighted(codes, weight)
        held = self._held_out_rows(len(y))
        if held.size:
            weight = weight.copy()
            weight[held] = 0.0
        self.separable_ = self._pass_over(X, self._targets(codes), weight)
        self._held_out = None
        if held.size:
            scores, fraction = self._per_class(self._row_scores(X, held)), self._choices()["calibration"].fraction
            self._held_out = HeldOut(scores, codes[held], fraction)
        return self

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> OnlineClassifier:
        """Learn from the rows once, in their order. Many small calls leave the same state as one large one."""
        self._check_settings()
        first = not hasattr(self, "_training")
        if not first:
            self._hold_to_settings()
        if self._choices()["calibration"].name == "holdout":
            raise ValueError("calibration='holdout' needs fit; partial_fit calibrates online")
        classes = None if classes is None else check_classes(classes)
        self._check_growing(first)
        if classes is None and first and self.grow is not True:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if not first and classes is not None and not np.array_equal(classes, np.sort(self.classes_)):
            raise ValueError(f"`classes={classes}` is not the same as on the last call to partial_fit: {self.classes_}")
        X = self._check_rows(X, reset=first or self._is_wider(X))
        y = self._check_labels(X, y)
        weight = check_weights(sample_weight, X.shape[0], sees_all=False)
        self._held_out = None  # whose scores were those of the hypothesis before
        if first:
            known = classes if classes is not None else unique_labels(y[weight > 0])
            if not known.size:
                raise ValueError("every sample_weight is zero, so that there is no class yet: pass classes")
            if len(known) < 2 and self.grow is not True:
                raise ValueError(
                    f"a classifier needs two classes or more; classes holds only one class, {plain(known[0])!r}"
                )
            training = self._new_training(X, y, known, sees_all=False)
            self.classes_, self._training, self._dtype = known, training, X.dtype
            self._counts = np.zeros(len(known) + 1)
        self._counts = self._counts.copy()
        if self.grow is True:
            y = self._take_in_labels(y, weight)
            self._training.grow(X.shape[1], max(2, len(self.classes_)))
        elif self.grow:
            self._training.grow(X.shape[1], self._training.outputs)
        codes = self._codes(y, weight)
        if isinstance(self.class_weight, str):
            weight = multiplied(weight, running_balance(codes, weight, self._counts))
        else:
            weight = self._class_weighted(codes, weight)
        self.separable_ = None
        self._learn_once(X, self._targets(codes), weight)
        return self

    def _check_growing(self, first: bool) -> None:
        """Refuse to grow from a training that has one output for two classes: it has no place for a third."""
        if self.grow is True and not first and self._training.output is None:
            raise ValueError(
                "learning began with two classes and without grow=True, so that there is no room for more: set grow "
                "back, or fit anew with grow=True"
            )

    def _take_in_labels(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Make classes of new labels, where examples count; returns y in the type of the classes."""
        counted = weight > 0
        self.classes_, labels = joined(self.classes_, y[counted])
        self._counts = np.concatenate([self._counts, np.zeros(1 + len(self.classes_) - len(self._counts))])
        y = np.full(len(y), self.classes_[0], dtype=self.classes_.dtype)
        y[counted] = labels
        return y

    def _pass_over(self, X: Any, y: np.ndarray, weight: np.ndarray) -> bool | None:
        """Learn from checked rows in as many passes as the settings say; what was learned about separability."""
        return run_passes(self._training, X, y, weight, self, self._seed)

    def _learn_once(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        """Learn from checked rows in their order."""
        with to_the_end(X.shape[0]):
            self._training.learn(X, y, weight, np.arange(X.shape[0]))

    def _row_scores(self, X: Any, rows: np.ndarray) -> np.ndarray:
        """Scores of some checked rows."""
        return self._scores_of_checked(X[rows])

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        self._check_settings()
        self.n_features_in_ = features
        empty = sp.csr_matrix((0, features), dtype=dtype)
        self.classes_, self._dtype, self._held_out = np.arange(len(counts)), np.dtype(dtype), None
        self._training = self._new_training(empty, self.classes_, self.classes_, sees_all=False)
        self._counts = np.concatenate([[counts.sum()], counts]).astype(np.float64)
        self.separable_ = None

    def take_in(self, features: int, classes: int) -> None:
        """Make room for features, and for classes 0 to K - 1, before they are met; for learners that grow."""
        new = classes - len(self.classes_)
        if self.grow is True and new > 0:
            self.classes_ = np.arange(classes)
            self._counts = np.concatenate([self._counts, np.zeros(new)])
        wider = max(features, self.n_features_in_)
        self.n_features_in_ = wider
        self._training.grow(wider, max(2, classes) if self.grow is True else self._training.outputs)

    def _again(self, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        codes = self._codes(np.asarray(y), weight)
        return self._targets(codes), self._class_weighted(codes, weight)  # by now the counts are known

    def _check_labels(self, X: Any, y: Any) -> np.ndarray:
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if not (type(y) is np.ndarray and y.ndim == 1):  # finding out takes longer than learning from a few rows
            y = column_or_1d(from_nullable(y), warn=True)
        if y.dtype.kind not in "iubU":  # what could be anything but labels
            check_labels(y)
        self._check_lengths(X, y)
        return y

    def _new_training(self, X: Any, y: np.ndarray, classes: np.ndarray, sees_all: bool) -> Any:
        rule = self._choices()["rule"]
        if not getattr(rule, "classification", True):
            raise ValueError(f"the rule {rule!r} is for regression; use it with OnlineRegressor")
        output = getattr(rule, "multiclass", "true") if self.multiclass == "auto" else self.multiclass
        if output not in OUTPUTS:
            raise ValueError(f"multiclass must be 'auto', {', '.join(map(repr, OUTPUTS))}, not {self.multiclass!r}")
        if output == "softmax" and rule.name != "logistic":
            raise ValueError(f"multiclass='softmax' is the logistic rule's; {rule!r} goes with 'true' or 'one-vs-all'")
        one = len(classes) == 2 and self.grow is not True
        return self._start(
            X,
            lambda: np.where(y == classes[-1], 1.0, -1.0),
            None if one else output,
            1 if one else max(2, len(classes)),
            sees_all,
        )

    def _codes(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Class indices; the label of an example of weight 0 is nobody's business."""
        return encode(y if weight.all() else np.where(weight > 0, y, self.classes_[0]), self.classes_)

    def _targets(self, codes: np.ndarray) -> np.ndarray:
        return codes if self._training.output is not None else 2.0 * codes - 1.0

    def _class_weighted(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if self.class_weight is None:
            return weight
        return multiplied(weight, class_weights(self.class_weight, self.classes_, self._counts[1:])[codes])

    # ------------------------------------------------------------------ what was learned

    @property
    def n_mistakes_(self) -> int:
        """Mistakes made while learning, over all passes."""
        return self._fitted_training("n_mistakes_").n_mistakes

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the hypothesis: (1, features) for two classes, (classes, features) for more."""
        w, _ = self._weights()
        return np.array(narrow(self._per_class(w).T, self._dtype))

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: (1,) for two classes, (classes,) for more."""
        _, b = self._weights()
        return np.array(narrow(self._per_class(b[None])[0], self._dtype))

    def _per_class(self, values: np.ndarray) -> np.ndarray:
        """A learner that may grow keeps two columns for two classes; users expect their difference."""
        two = values.shape[1] == 2 and len(self.classes_) == 2
        return values[:, 1:] - values[:, :1] if two else values[:, : max(1, len(self.classes_))]

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: one a row for two classes (positive: the second), one a class for more."""
        return self._shape(self._scores(X))

    def _shape(self, scores: np.ndarray) -> np.ndarray:
        scores = self._per_class(scores)
        return scores[:, 0] if scores.shape[1] == 1 and len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row; on a tie the first of them."""
        check_is_fitted(self)
        if len(self.classes_) > 2:
            best = self._best_outputs(X)
            # in place where that goes, for fresh memory takes longer than the rest
            return np.take(self.classes_, best, out=best if best.dtype == self.classes_.dtype else None, mode="clip")
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)]

    def certificate(self, X: Any, y: Any) -> Any:
        """What theory promises for these examples, and whether its assumptions hold; two classes only.

        The examples must be those trained on. No bound applies to fewer or more of them than a pass saw.
        """
        from onlearn.theory.certificate import certify

        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        y = self._check_labels(X, y)
        if len(self.classes_) != 2:
            raise ValueError(f"a certificate is for two classes; this learner has {len(self.classes_)}")
        training, geometry = self._training, self._training.geometry
        w, b = training.separator()
        certificate = certify(
            X,
            np.where(encode(y, self.classes_, grows=False) == 1, 1.0, -1.0),
            w,
            b,
            training.bias,
            training.n_mistakes,
            rule=training.rule.name if training.output is None else f"{training.rule.name}, {training.output}",
            geometry=geometry.name,
            passes=training.n_seen / X.shape[0],
            init_zero=self._settled["init"] == "zeros",
            single_rate=training.even
            and getattr(geometry, "schedule", "constant") == "constant"
            and not getattr(geometry, "drifts", False),
            threshold=training.theta,
            alpha=getattr(geometry, "alpha", None),
            eta=geometry.rate_of(training.g) if hasattr(geometry, "rate_of") else None,
        )
        return self._if_trained_on(certificate, X.shape[0])

    def _if_trained_on(self, certificate: Any, rows: int) -> Any:
        """The certificate, of which no bound applies if training did not go over so many rows in whole passes."""
        training = self._training
        return certificate if training.saw_passes_of(rows) else certificate.of_other_rows(training.n_seen)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # without negative weights only some problems can be learned
            tags.classifier_tags.poor_score = getattr(self._choices()["geometry"], "positive_weights", False)
        return tags

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        facts, arrays = super()._pack()
        spelled, labels = pack_labels(self.classes_)
        facts.update(classes=spelled, separable=self.separable_)
        arrays["counts"] = self._counts
        if labels is not None:
            arrays["classes"] = labels
        if self._held_out is not None:
            arrays["held_out.scores"], arrays["held_out.codes"], facts["held_out"] = self._held_out
        return facts, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._unpack(facts, arrays)
        self.classes_ = unpack_labels(facts["classes"], arrays.get("classes"))
        check_facts(facts, {"separable": either(None, TRUTH)})
        self.separable_, self._counts = facts["separable"], arrays["counts"]
        count, outputs = len(self.classes_), self._training.outputs
        # a learner that has grown has room for two classes when it has met one
        fits = count == 2 if self._training.output is None else max(2, count) == outputs
        if not fits:
            raise ValueError(f"{count} classes do not go with {outputs} outputs")
        check_array("counts", self._counts, "float64", (count + 1,), low=0)
        held_out = "held_out" in facts or "held_out.scores" in arrays
        self._held_out = HeldOut.unpack(facts, arrays, count) if held_out else None


# ----------------------------------------------------------------------------------------------------
# The linear regressor: least squares (with l2 ridge, with l1 lasso) and epsilon-insensitive, one example at a time.


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
