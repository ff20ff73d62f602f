"""What ``KernelClassifier`` shares with linear classifiers, until it is a facade over a learner in the dual."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral, Real
from typing import Any, ClassVar, TypeGuard

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array as check_input
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_n_features, check_is_fitted, column_or_1d, validate_data

from onlearn.engine import csr, inputs
from onlearn.engine.calibration import HeldOut, fit_curve, held_out_rows
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
from onlearn.engine.loops import OUTPUTS
from onlearn.engine.passes import run_passes
from onlearn.engine.rules import with_rule, without_rule
from onlearn.engine.scoring import best_outputs, linear_scores, narrow, voted_scores
from onlearn.engine.settings import FAMILIES
from onlearn.engine.training import Training
from onlearn.engine.weighting import check_heaviest, check_weights, class_weights, multiplied
from onlearn.model_file import (
    ESTIMATOR,
    TRUTH,
    check_array,
    check_facts,
    either,
    pack_labels,
    unpack_labels,
)

# ----------------------------------------------------------------------------------------------------
# What learning began with, and holds to: a state made by one rule or geometry means nothing to another.


CHOICES = ("rule", "geometry", "stabilizer")
FIXED = ("multiclass", "fit_intercept", "intercept_scaling", "init")


class Settled:
    """The part of an estimator that refuses to go on learning with other parameters than it began with."""

    _choices: Any
    _settled: dict[str, Any]

    def _settle(self) -> None:
        """Learning begins: remember with what."""
        self._settled = self._settings()

    def _hold_to_settings(self) -> None:
        """Refuse parameters that were changed since learning began, and that would have no effect."""
        for name, now in self._settings().items():
            before = self._settled[name]
            if now != before:
                if repr(now) == repr(before) and type(now) is not type(before):
                    raise ValueError(
                        f"the {name} {before!r} was defined anew since learning began: give the learner the one before "
                        "as an object, or fit anew (without warm_start)"
                    )
                raise ValueError(
                    f"{name} was {before!r} when learning began and cannot change to {now!r} now: set it back, "
                    "or fit anew (without warm_start)"
                )

    def _settings(self) -> dict[str, Any]:
        """The parameters that what is learned depends on, as objects of our own."""
        choices = self._choices()
        settings = {name: copy.copy(choices[name]) for name in CHOICES}
        return {**settings, **{name: getattr(self, name) for name in FIXED if hasattr(self, name)}}


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


class LinearModel(Settled, BaseEstimator):
    """The part of a linear estimator that does not care what is predicted."""

    families: ClassVar[dict[str, Any]] = FAMILIES  # of the parameters that are choices
    epochs: int | None
    max_epochs: int
    shuffle: bool
    tol: float | None
    init: str
    fit_intercept: bool
    intercept_scaling: float | str
    grow: bool | str
    random_state: Any

    # ------------------------------------------------------------------ parameters

    @property
    def settings(self) -> Any:
        """Where the values of the parameters are."""
        return self

    @property
    def choices(self) -> dict[str, Any]:
        return self._choices()

    @property
    def training(self) -> Any:
        return self.__dict__.get("_training")

    def __getstate__(self) -> dict[str, Any]:
        return with_rule(super().__getstate__(), getattr(self, "rule", None))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(without_rule(state))

    def _choices(self) -> dict[str, Any]:
        """The choices this estimator is made of, as objects."""
        return {name: self.families[name].get(getattr(self, name)) for name in self.families if hasattr(self, name)}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those of the choices, as ``rule__aggressiveness``."""
        params = super().get_params(deep=False)
        if deep:
            for name in self.families.keys() & params.keys():
                try:
                    owned = self.families[name].get(params[name]).get_params()
                except (TypeError, ValueError):  # a wrong spelling is reported by fit
                    continue
                params.update({f"{name}__{key}": value for key, value in owned.items()})
        return params

    def set_params(self, **params: Any) -> Any:
        nested = {
            key: params.pop(key) for key in list(params) if "__" in key and key.partition("__")[0] in self.families
        }
        super().set_params(**params)
        for key, value in nested.items():
            name, _, own = key.partition("__")
            if name not in super().get_params(deep=False):
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}")
            setattr(self, name, self.families[name].get(getattr(self, name)).set_params(**{own: value}))
        return self

    def _check_settings(self) -> None:
        if self.epochs is not None and not (_is_count(self.epochs) and self.epochs >= 1):
            raise ValueError(f"epochs must be a whole number of at least 1, or None, not {self.epochs!r}")
        if not (_is_count(self.max_epochs) and self.max_epochs >= 1):
            raise ValueError(f"max_epochs must be a whole number of at least 1, not {self.max_epochs!r}")
        if self.init not in ("zeros", "random"):
            raise ValueError(f"init must be 'zeros' or 'random', not {self.init!r}")
        if not isinstance(self.grow, bool) and self.grow != "features":
            raise ValueError(f"grow must be True, False or 'features', not {self.grow!r}")
        if self.tol is not None and not (is_number(self.tol) and self.tol == self.tol):
            raise ValueError(f"tol must be a number or None, not {self.tol!r}")
        for name in ("shuffle", "fit_intercept", "warm_start"):
            value = getattr(self, name, False)
            if not (isinstance(value, (bool, np.bool_)) or (isinstance(value, Integral) and value in (0, 1))):
                raise ValueError(f"{name} must be True or False, not {value!r}")
        weights = getattr(self, "class_weight", None)
        if weights is not None and weights != "balanced" and not isinstance(weights, dict):
            raise ValueError(f"class_weight must be a dict of weights, 'balanced' or None, not {weights!r}")
        verbose = getattr(self, "verbose", 0)
        if not (isinstance(verbose, (Integral, np.bool_)) and int(verbose) >= 0):
            raise ValueError(f"verbose must be a whole number of at least 0, not {verbose!r}")
        size = self.intercept_scaling
        if size != "radius" and not (is_number(size) and 0 < size < np.inf):
            raise ValueError(f"intercept_scaling must be a number above 0 or 'radius', not {size!r}")

    # ------------------------------------------------------------------ input

    @inputs.huge_numbers_told
    def _check_rows(self, X: Any, reset: bool, finite: bool = True) -> Any:
        """X as a float array or CSR matrix, without copying one that is."""
        if not reset and self._is_plain(X):  # the long way says the same, in ten times the time
            if finite:
                self._check_finite(X)
            return X
        if isinstance(X, csr.CSR):  # from features, of which scikit-learn knows nothing
            if reset:
                self.n_features_in_ = X.shape[1]
                self.__dict__.pop("feature_names_in_", None)
            elif X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                    "features as input"
                )
            X = csr.without_duplicates(X)
            if finite:
                self._check_finite(X)
            return X
        names = inputs.column_names(X)
        if not reset and self._is_of_other_width(X):  # where scikit-learn would not look at them
            names = inputs.names_of_columns(X)
        if names and not reset:
            self._check_names(names)
        X = inputs.plain_table(X)
        X = X if reset else self._fit_width(X)
        how = {"accept_sparse": "csr", "dtype": inputs.number_types(X), "ensure_all_finite": False}
        if names:  # they have been checked, and scikit-learn would miss them
            X = check_input(X, estimator=self, **how)
            _check_n_features(self, X, reset=reset)
        else:
            X = validate_data(self, X, reset=reset, **how)
        if sp.issparse(X):
            X = csr.without_duplicates(X)
        if names and reset:
            self.feature_names_in_ = np.array(names, dtype=object)
        geometry = self._choices()["geometry"] if reset else self._training.geometry
        positive = getattr(geometry, "positive_only", False)
        if finite or positive:
            self._check_finite(X)
        if positive:
            csr.check_positive(X, type(self).__name__)
        return X

    def _check_names(self, names: list[str]) -> None:
        """Refuse a table with other columns than those learned from, or in another order.

        With grow there may be fewer, or more after those known.
        """
        known = getattr(self, "feature_names_in_", None)
        if known is None:
            return
        count = min(len(names), len(known)) if self.grow else max(len(names), len(known))
        for n in range(count):
            given, wanted = (str(some[n]) if n < len(some) else None for some in (names, known))
            if given != wanted:
                raise ValueError(
                    f"The feature names should match those that were passed during fit: column {n} is {given!r}, "
                    f"but was {wanted!r}"
                )

    def _check_all_rows(self, X: Any, sample_weight: Any, going_on: bool) -> tuple[Any, bool]:
        """What ``fit`` is to learn from, and whether it was searched for NaN and infinity.

        They show in the scores, so a new learner meets them before it learns from them; but not in rows without weight.
        """
        choices = self._choices()
        estimated = self.intercept_scaling == "radius" or getattr(choices["geometry"], "undecided", False)
        held_out = getattr(choices.get("calibration"), "name", None) == "holdout"
        weightless = held_out or sample_weight is not None or isinstance(getattr(self, "class_weight", None), dict)
        checked = going_on or estimated or weightless
        X = self._check_rows(X, reset=not going_on, finite=checked)
        if checked or not (sp.issparse(X) or isinstance(X, np.ndarray)):
            return X, True
        if hasattr(self, "feature_names_in_"):  # to name the column
            self._check_finite(X)
            return X, True
        return X, False

    def _is_plain(self, X: Any) -> bool:
        """Whether X is a plain array or CSR matrix of the width, number type and order that learning uses."""
        if type(X) not in (np.ndarray, sp.csr_matrix, sp.csr_array) or X.dtype not in (np.float64, np.float32):
            return False
        if X.ndim != 2 or X.shape[0] == 0 or X.shape[1] != self.n_features_in_ or hasattr(self, "feature_names_in_"):
            return False
        if "_training" not in self.__dict__ or getattr(self._training.geometry, "positive_only", False):
            return False
        return type(X) is np.ndarray or csr.without_duplicates(X) is X

    def _fit_width(self, X: Any) -> Any:
        """With grow, rows of another width are made to fit: wider ones as far as the features are known."""
        if not self._is_of_other_width(X):
            return X
        width, known = X.shape[1], self.n_features_in_
        if sp.issparse(X):
            X = X.tocsr(copy=True)
            if width < known:
                X.resize(X.shape[0], known)
                return X
            return X[:, :known]
        X = np.asarray(X)
        return X[:, :known] if width > known else np.pad(X, ((0, 0), (0, known - width)))

    def _is_of_other_width(self, X: Any) -> bool:
        """Whether X has fewer or more features than a learner knows that takes in new ones."""
        shape: tuple[int, ...] = getattr(X, "shape", ())
        return bool(self.grow) and len(shape) == 2 and shape[1] != getattr(self, "n_features_in_", shape[1])

    def _is_wider(self, X: Any) -> bool:
        """Whether X brings new features to a learner that takes them in; those it knows must come first."""
        if not self._is_of_other_width(X) or X.shape[1] < self.n_features_in_:
            return False
        names = inputs.names_of_columns(X)
        if names is None and hasattr(self, "feature_names_in_"):
            raise ValueError(
                f"X has {X.shape[1]} columns without names, but the {self.n_features_in_} known have names: "
                "new ones need names, too"
            )
        self._check_names(names or [])
        return True

    def _check_lengths(self, X: Any, y: np.ndarray) -> None:
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)} entries: inconsistent numbers of samples")

    def _start(self, X: Any, targets: Callable[[], np.ndarray], output: str | None, outputs: int,
               sees_all: bool) -> Training:  # fmt: skip
        """A new training for data like X; ``targets`` makes what ``Training.learn`` will be given, if need be."""
        self._settle()
        choices = self._choices()
        geometry = choices["geometry"]
        bias = float(self.fit_intercept)
        if self.fit_intercept and self.intercept_scaling == "radius":
            if not sees_all:
                raise ValueError(
                    "intercept_scaling='radius' needs fit, which sees all the data; for partial_fit give a number"
                )
            bias = csr.radius(X) or 1.0
        elif self.fit_intercept:
            bias = float(self.intercept_scaling)
        if getattr(geometry, "undecided", False):
            if not sees_all or output is not None:
                raise ValueError(f"{geometry!r} is estimated by fit from examples of two classes; here give the number")
            geometry = geometry.estimate(X, targets(), bias)
        random = check_random_state(self.random_state)
        self._seed = (
            int(self.random_state) if isinstance(self.random_state, Integral) else int(random.randint(2**31 - 1))
        )
        training = Training(choices["rule"], geometry, choices["stabilizer"], output, X.shape[1], outputs, bias)
        if self.init == "random":
            training.randomize(np.random.default_rng([self._seed, 1]))
        return training

    # ------------------------------------------------------------------ streams that come again

    def learn_rows(self, X: Any, y: Any, sample_weight: Any, order: np.ndarray, *, first: bool) -> None:
        """Learn from the rows in the given order: for passes over data that ``fit`` cannot have all at once.

        What ``partial_fit`` does is done but for growing and checking: X and y must be sound. ``first`` says that these
        rows are met for the first time, so that their scores tell something about calibration.
        """
        # Of these rows only, for there may be many more in X, which come in other calls.
        weight = np.ones(len(order)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
        check_heaviest(weight, "the weight")
        y, weight = self._again(np.asarray(y)[order], weight)
        self._training.learn(X, y, weight, order, audit=first, gathered=True)

    def _again(self, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets and weights as learning takes them."""
        return y, weight

    def end_pass(self) -> None:
        """A pass is over: count it in ``history_``."""
        self._training.end_pass()

    def keep_features(self, kept: np.ndarray) -> None:
        """Forget all features but some, which are numbered anew in the given order."""
        check_is_fitted(self)
        self._training.select(kept)
        self.n_features_in_ = len(kept)
        if hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = self.feature_names_in_[kept]

    # ------------------------------------------------------------------ what was learned

    def _weights(self) -> tuple[np.ndarray, np.ndarray]:
        """The hypothesis as (features x outputs) weights and (outputs) intercepts."""
        check_is_fitted(self)
        training = self._training
        if training.stabilizer.every_hypothesis:
            raise AttributeError("a voted learner is many hypotheses, which no single coef_ describes")
        handed = training.weights()
        return handed[1:], handed[0] * training.bias - training.theta

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._scores_of_checked(self._check_rows(X, reset=False, finite=False))

    def _scores_of_checked(self, X: Any) -> np.ndarray:
        """Scores of rows that may hold NaN or infinity, which are looked for when they show."""
        training = self._training
        if training.stabilizer.every_hypothesis:
            self._check_finite(X)
            rows = csr.as_rows(X if sp.issparse(X) else np.ascontiguousarray(X), training.bias)
            return voted_scores(rows, X.shape[0], training.theta, training.st, training.outputs)
        scores, finite = linear_scores(X, *self._weights())
        if not finite:  # NaN or infinity in X shows in the scores, so X need not be searched for them before
            self._check_finite(X)
            most = np.finfo(scores.dtype).max
            np.nan_to_num(scores, copy=False, nan=0.0, posinf=most, neginf=-most)
        return scores

    def _best_outputs(self, X: Any) -> np.ndarray:
        """The output with the highest score of each row, without keeping the scores."""
        check_is_fitted(self)
        if not self._training.stabilizer.every_hypothesis:
            X = self._check_rows(X, reset=False, finite=False)
            best, finite = best_outputs(X, *self._weights())
            if finite:
                return best
        return np.argmax(self._scores(X), axis=1)

    def _check_finite(self, X: Any) -> None:
        csr.check_finite(X, getattr(self, "feature_names_in_", None))

    @property
    def n_updates_(self) -> int:
        """Examples that changed the hypothesis, over all passes."""
        return self._fitted_training("n_updates_").n_updates

    @property
    def n_seen_(self) -> int:
        """Examples learned from, over all passes."""
        return self._fitted_training("n_seen_").n_seen

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        """``"passes"``: mistakes and mean loss of each pass. ``"doubling"``: the same, from the start, when the
        count of examples reached a power of two. Each example is counted before it is learned from."""
        return self._fitted_training("history_").history

    def _fitted_training(self, name: str) -> Training:
        try:
            return self.__dict__["_training"]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit") from None

    def save(self, path: Any) -> None:
        """Write the learner to a ``.onl`` file, with all that it needs to go on learning."""
        from onlearn import model_file

        check_is_fitted(self)
        model_file.save(self, path)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the model file holds of this learner, besides its parameters."""
        facts, arrays = self._training.pack()
        names = getattr(self, "feature_names_in_", None)
        mine = {
            "n_features_in": int(self.n_features_in_),
            "feature_names_in": None if names is None else [str(name) for name in names],
            "seed": self._seed,
            "dtype": np.dtype(self._dtype).name,
        }
        return {"training": facts, "estimator": mine}, {f"training.{key}": a for key, a in arrays.items()}

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        prefix = "training."
        mine = facts["estimator"]
        check_facts(mine, ESTIMATOR)
        kept = {key[len(prefix) :]: array for key, array in arrays.items() if key.startswith(prefix)}
        self._training = self._training_class().unpack(facts["training"], kept)
        self.n_features_in_ = mine["n_features_in"]
        if "dual" not in facts and self.n_features_in_ != self._training.features:  # with kernels they are not the same
            raise ValueError(f"{self.n_features_in_} features do not go with {self._training.features} weights")
        if mine["feature_names_in"] is not None:
            if len(mine["feature_names_in"]) != self.n_features_in_:
                raise ValueError(f"{len(mine['feature_names_in'])} names do not go with {self.n_features_in_} features")
            self.feature_names_in_ = np.array(mine["feature_names_in"], dtype=object)
        self._seed, self._dtype = mine["seed"], np.dtype(mine["dtype"])
        self._settle()

    def _training_class(self) -> type[Training]:
        """What to read a training from a file with."""
        return Training

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.positive_only = getattr(self._choices()["geometry"], "positive_only", False)
        return tags


class Calibrated:
    """The part of a classifier that turns its scores into probabilities."""

    families: ClassVar[dict[str, Any]]
    calibration: Any
    _choices: Any
    _training: Any
    _seed: int
    _per_class: Any
    decision_function: Any
    _held_out: HeldOut | None

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        scores = self.decision_function(X)
        choice = self.families["calibration"].get(self.calibration)
        return fit_curve(choice, self._training, self._per_class, self._held_out).probabilities(scores)

    def _held_out_rows(self, rows: int) -> np.ndarray:
        """The rows that fit keeps for calibration."""
        return held_out_rows(self._choices()["calibration"], rows, self._seed)


class KernelBase(Calibrated, ClassifierMixin, LinearModel):
    """The part of a kernel classifier that is not about kernels."""

    init = "zeros"

    # ------------------------------------------------------------------ learning

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelBase:
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
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> KernelBase:
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
        return run_passes(self._training, X, y, weight, self, self._seed, ConvergenceWarning)

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
