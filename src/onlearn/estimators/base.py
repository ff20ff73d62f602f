"""What the estimators share: parameters, checks of input, and the learner inside.

An estimator has scikit-learn's manners; everything it has learned is in its ``Learner``.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from operator import is_, itemgetter
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from onlearn.engine import csr, inputs
from onlearn.engine.calibration import logarithms
from onlearn.engine.compositions import COMPOSITIONS, FAMILIES, Composition
from onlearn.engine.inputs import from_nullable
from onlearn.engine.passes import InterruptedAfterwards
from onlearn.engine.registry import make_learner
from onlearn.engine.rules import with_rule, without_rule
from onlearn.inert_text import facts_html
from onlearn.kernels.formula import copied


class NestedEstimator(BaseEstimator):
    """An estimator of which parameters have parameters: a rule, a geometry, a kernel."""

    _families: ClassVar[dict[str, Any]] = {}  # of the parameters that are choices

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with ``deep`` also those of the choices, as ``rule__aggressiveness``."""
        params: dict[str, Any] = super().get_params(deep=False)
        return with_nested(params, self._families) if deep else params

    def set_params(self, **params: Any) -> Any:
        """Change parameters, also those of choices as ``rule__aggressiveness``."""
        nested = take_nested(params, self._families)
        super().set_params(**params)
        set_nested(self, nested, self._families)
        return self

    # Notebooks show scikit-learn's diagram, and below it what was learned.

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        shown = {"text/plain": repr(self)}
        return {**shown, "text/html": self._html()} if get_config()["display"] == "diagram" else shown

    @property
    def _repr_html_(self) -> Any:
        if get_config()["display"] != "diagram":
            raise AttributeError("notebooks show HTML if scikit-learn's option display is 'diagram'")
        return self._html

    def _html(self) -> str:
        diagram = str(estimator_html_repr(self))
        learner = self.__dict__.get("_learner")
        return diagram if learner is None else diagram + facts_html("What was learned", learner.facts())


class LearnerEstimator(NestedEstimator):
    """A facade over a ``Learner``: of the fitted attributes, all are the learner's."""

    _families: ClassVar[dict[str, Any]] = FAMILIES  # of the parameters that are choices
    _composition: ClassVar[Composition] = COMPOSITIONS["OnlineClassifier"]
    _learner: Any  # the learner, once it is fitted

    # ------------------------------------------------------------------ parameters

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._composition.parameters}

    def _as_learner(self) -> Any:
        """The learner inside, with the present parameters; a new one if nothing was learned yet."""
        learner = self.__dict__.get("_learner")
        if learner is None:
            learner = self._new_learner()
        elif learner.passed_on is not None and learner.passed_on.holds_for(self):
            return learner
        values = self._values()
        learner.configure(values)
        learner.passed_on = PassedOn(values)
        return learner

    def _new_learner(self) -> Any:
        return make_learner(self._composition.name, warning=ConvergenceWarning)

    def __getstate__(self) -> dict[str, Any]:
        return with_rule(super().__getstate__(), getattr(self, "rule", None))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(without_rule(state))

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.positive_only = self._takes_positive_only()
        return tags

    def _takes_positive_only(self) -> bool:
        """Whether the learner takes no negative values."""
        return False

    # ------------------------------------------------------------------ learning

    def _fit(self, X: Any, y: Any, sample_weight: Any, **how: Any) -> Any:
        going_on = getattr(self, "warm_start", False) and "_learner" in self.__dict__
        learner = self._learner if going_on else self._new_learner()
        learner.configure(self._values())
        learner.check()
        X, names = self._check_rows(X, first=not going_on)
        learner.fit(X, self._check_targets(y), sample_weight, names, **how)
        self._learner = learner
        return self

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, **classes: Any) -> Any:
        learner = self._as_learner()
        learner.check()
        first = learner.training is None
        if first or not self._is_plain(X):
            X, names = self._check_rows(X, first=first or self._is_wider(X))
        else:
            names = None
        try:
            learner.partial_fit(X, self._check_targets(y), sample_weight=sample_weight, names=names, **classes)
        except InterruptedAfterwards:
            self._learner = learner
            raise
        self._learner = learner
        return self

    # ------------------------------------------------------------------ starting anew

    def renewed(self) -> Any:
        """An estimator with the same parameters, classes and columns that has learned nothing."""
        made = copy.copy(self)
        if "_learner" in self.__dict__:
            made._learner = self._as_learner().renewed()
        return made

    def become(self, other: Any) -> Any:
        """Take over all that another estimator of this kind has learned, which is not to be used any more."""
        self.__dict__ = dict(other.__dict__)  # at once, for whoever predicts meanwhile
        return self

    # ------------------------------------------------------------------ input

    def _check_targets(self, y: Any) -> np.ndarray:
        raise NotImplementedError

    def _check_rows(self, X: Any, first: bool) -> tuple[Any, list[str] | None]:
        """X as a float array or CSR matrix, without copying one that is, and the names of its columns."""
        # Of what is plain scikit-learn says the same, in ten times the time; sparse rows of ours the learner checks.
        if isinstance(X, csr.CSR) or (not first and self._is_plain(X)):
            return X, None
        known = None if first else getattr(self, "feature_names_in_", None)
        other_width = not first and self._is_of_other_width(X)
        return check_rows(self, X, first=first, names=known, grow=self._grow, other_width=other_width)

    @property
    def _grow(self) -> bool | str:
        """Whether it takes in new features; of learners that cannot, there is no such parameter."""
        grow: bool | str = getattr(self, "grow", False)
        return grow

    def _is_plain(self, X: Any) -> bool:
        """Whether X is a plain array or CSR matrix of the width and number type that learning uses."""
        if type(X) not in (np.ndarray, sp.csr_matrix, sp.csr_array) or X.dtype not in (np.float64, np.float32):
            return False
        learner = self._learner
        return X.ndim == 2 and X.shape[0] > 0 and X.shape[1] == learner.features and learner.feature_names is None

    def _is_of_other_width(self, X: Any) -> bool:
        """Whether X has fewer or more features than a learner knows that takes in new ones."""
        shape: tuple[int, ...] = getattr(X, "shape", ())
        return bool(self._grow) and len(shape) == 2 and shape[1] != self._learner.features

    def _is_wider(self, X: Any) -> bool:
        """Whether X brings new features to a learner that takes them in; those it knows must come first."""
        if "_learner" not in self.__dict__ or not self._is_of_other_width(X) or X.shape[1] < self._learner.features:
            return False
        names = inputs.names_of_columns(X)
        if names is None and self._learner.names is not None:
            raise ValueError(
                f"X has {X.shape[1]} columns without names, but the {self._learner.features} known have names: "
                "new ones need names, too"
            )
        check_names(names or [], self._learner.names, grow=True)
        return True

    # ------------------------------------------------------------------ what was learned

    def _fitted(self, X: Any) -> tuple[Any, Any]:
        """The learner, and X as it takes it."""
        learner = self._begun()
        return learner, X if self._is_plain(X) else self._check_rows(X, first=False)[0]

    def _begun(self) -> Any:
        """The learner, which has learned something."""
        try:
            return self._learner
        except AttributeError:
            check_is_fitted(self)
            raise

    def score_one(self, x: Any) -> Any:
        """The score of one row, as of ``learn_one``: a number for two classes and in regression, else a dict by class.

        It is by what would be handed out now, at the cost of the row alone.
        """
        return self._begun().path.score(x)

    def predict_one(self, x: Any) -> Any:
        """The class of one row, on a tie the first of them; in regression the number."""
        return self._begun().path.predict(x)

    def _known(self, name: str) -> Any:
        """An attribute of the learner, which there is none of before fit."""
        if "_learner" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no {name} before fit")
        return getattr(self._learner, name)

    @property
    def n_features_in_(self) -> int:
        """Features of the rows learned from."""
        return int(self._known("n_features_in_"))

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns learned from, if they have names."""
        return np.asarray(self._known("feature_names_in_"))

    @property
    def coef_(self) -> np.ndarray:
        """Weights: (1, features) for two classes, (classes, features) for more, (features,) in regression."""
        return np.asarray(self._known("coef_"))

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: (1,) for two classes and in regression, (classes,) for more."""
        return np.asarray(self._known("intercept_"))

    @property
    def n_updates_(self) -> int:
        """Examples that changed the hypothesis, over all passes."""
        return int(self._known("n_updates_"))

    @property
    def n_seen_(self) -> int:
        """Examples learned from, over all passes."""
        return int(self._known("n_seen_"))

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        """``"passes"``: mistakes and mean loss of each pass. ``"doubling"``: the same, from the start, when the
        count of examples reached a power of two. Each example is counted before it is learned from."""
        return dict(self._known("history_"))

    @property
    def _training(self) -> Any:
        """The state of the learner, once learning has begun."""
        return self._learner.training if "_learner" in self.__dict__ else None

    def save(self, path: Any) -> None:
        """Write the learner to a ``.onl`` file, with all that it needs to go on learning."""
        from onlearn import model_file

        with self._begun().lock:  # learning waits, so that the file holds one state
            model_file.save(self, path)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._learner._pack()

    @classmethod
    def _around(cls, learner: Any) -> Any:
        """The estimator of a learner that was read from a file."""
        made = cls(**learner.get_params())
        learner.warning = ConvergenceWarning
        made._learner = learner
        return made


class PassedOn:
    """The parameters that a learner has from its estimator: to check them takes longer than to learn from a row.

    A parameter is the same if it is equal, and if it is a choice, as long as the choice has not changed.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = tuple(values.values())
        self.take = itemgetter(*values)
        self.choices = [(vars(one), dict(vars(one))) for one in self.values if hasattr(one, "__dict__")]

    def holds_for(self, estimator: Any) -> bool:
        """Whether the estimator has these parameters still."""
        if self.values != self.take(estimator.__dict__):
            return False
        for now, then in self.choices:
            if now.keys() != then.keys() or not all(map(is_, now.values(), then.values())):
                return False
        return True


class LearnerClassifier(ClassifierMixin, LearnerEstimator):
    """The part of a classifier that is the same whatever learns."""

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended.

        Labels keep their type in ``classes_``, also those of pandas columns that allow for missing values. A call that
        fails changes nothing.
        """
        return self._fit(X, y, sample_weight)

    def _check_targets(self, y: Any) -> np.ndarray:
        return check_column(y, "label", type(self).__name__)

    # ------------------------------------------------------------------ what was learned

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the classes."""
        return np.asarray(self._known("classes_"))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: one a row for two classes (positive: the second), one a class for more."""
        learner, X = self._fitted(X)
        return learner.decision_function(X)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row; on a tie the first of them."""
        learner, X = self._fitted(X)
        return learner.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        learner, X = self._fitted(X)
        return learner.predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each class; minus infinity where that is 0."""
        return logarithms(self.predict_proba(X))

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class for one row, as of ``predict_one``, by class."""
        return self._begun().predict_proba_one(x)


class LearnerRegressor(RegressorMixin, LearnerEstimator):
    """The part of a regression that is the same whatever learns."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from all rows. A call that fails changes nothing."""
        return self._fit(X, y, sample_weight)

    def _check_targets(self, y: Any) -> np.ndarray:
        return check_column(y, "number", type(self).__name__)

    def predict(self, X: Any) -> np.ndarray:
        """The number predicted for each row."""
        learner, X = self._fitted(X)
        return learner.predict(X)


class IncrementalClassifier(LearnerClassifier):
    """A classifier that learns from examples as they come."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from the rows once, in their order. Many small calls leave the same state as one large one."""
        return self._partial_fit(X, y, sample_weight, classes=classes)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn from one example; the state is that of ``partial_fit`` with the row, to the last bit.

        ``x`` is a row of numbers, a sparse row, or a mapping from names to numbers, Booleans (1 and 0) and strings (the
        feature ``name=string`` is 1). With ``grow``, names and classes are taken in as they come. Without, learning
        begins with labels that are Booleans, or by ``partial_fit`` with ``classes``.

        One thread may learn while others predict: they see the hypothesis before an example or after it.
        """
        learner = self._as_learner()
        learner.path.learn(x, y, weight)
        if "_learner" not in self.__dict__:
            self._learner = learner
        return self


class IncrementalRegressor(LearnerRegressor):
    """A regression that learns from examples as they come."""

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from the rows once, in their order. Many small calls leave the same state as one large one."""
        return self._partial_fit(X, y, sample_weight)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Any:
        """Learn from one example; the state is that of ``partial_fit`` with the row, to the last bit.

        ``x`` is a row as ``IncrementalClassifier.learn_one`` takes it.
        """
        learner = self._as_learner()
        learner.path.learn(x, y, weight)
        if "_learner" not in self.__dict__:
            self._learner = learner
        return self


# ----------------------------------------------------------------------------------------------------
# Rows and targets as users pass them in: scikit-learn's checks, and what it does not look at.


@inputs.huge_numbers_told
def check_rows(
    estimator: Any, X: Any, *, first: bool, names: Any, grow: bool | str, other_width: bool
) -> tuple[Any, list[str] | None]:
    """X as a float array or CSR matrix, and the names of its columns.

    ``first`` if nothing is known of the columns yet, else ``names`` are those that are known; ``other_width`` if there
    are more or fewer columns, for a learner that grows.
    """
    found = inputs.names_of_columns(X) if first or other_width else inputs.column_names(X)
    if found and not first:
        check_names(found, names, grow)
    X = inputs.plain_table(X)
    how: Any = {"accept_sparse": "csr", "dtype": inputs.number_types(X), "ensure_all_finite": False}
    if first or found or other_width:  # where scikit-learn would miss the names, or refuse the width
        X = check_array(X, input_name="X", estimator=estimator, **how)
    else:
        X = validate_data(estimator, X, reset=False, **how)
    return X, found


def check_names(names: list[str], known: Any, grow: bool | str) -> None:
    """Refuse a table with other columns than those learned from, or in another order.

    With grow there may be fewer, or more after those known.
    """
    if known is None:
        return
    count = min(len(names), len(known)) if grow else max(len(names), len(known))
    for n in range(count):
        given, wanted = (str(some[n]) if n < len(some) else None for some in (names, known))
        if given != wanted:
            raise ValueError(
                f"The feature names should match those that were passed during fit: column {n} is {given!r}, "
                f"but was {wanted!r}"
            )


def check_column(y: Any, what: str, who: str) -> np.ndarray:
    """Labels or numbers as a plain array, one a row."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    if type(y) is np.ndarray and y.ndim == 1:  # finding out takes longer than learning from a few rows
        return y
    return np.asarray(column_or_1d(from_nullable(y, what), warn=True))


# ----------------------------------------------------------------------------------------------------
# Parameters of choices and kernels as parameters of the estimator that has them: ``rule__aggressiveness``.


KERNEL: dict[str, Any] = {"kernel": SimpleNamespace(get=copied)}  # a parameter that is a kernel, as a choice is


def with_nested(params: dict[str, Any], families: dict[str, Any]) -> dict[str, Any]:
    """Parameters by name, and those of the choices among them as ``name__parameter``."""
    made = dict(params)
    for name in families.keys() & params.keys():
        try:
            owned = families[name].get(params[name]).get_params()
        except (TypeError, ValueError):  # a wrong spelling is reported by fit
            continue
        made.update({f"{name}__{key}": value for key, value in owned.items()})
    return made


def take_nested(params: dict[str, Any], families: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Take the parameters of choices out of ``params``: by the name of the choice."""
    nested: dict[str, dict[str, Any]] = {}
    for key in list(params):
        name, inside, own = key.partition("__")
        if inside and name in families:
            nested.setdefault(name, {})[own] = params.pop(key)
    return nested


def set_nested(estimator: Any, nested: dict[str, dict[str, Any]], families: dict[str, Any]) -> None:
    """Change parameters of choices; what was learned keeps the choices it has."""
    for name, values in nested.items():
        if name not in estimator.get_params(deep=False):
            raise ValueError(f"{type(estimator).__name__} has no parameter {name!r}")
        setattr(estimator, name, families[name].get(getattr(estimator, name)).set_params(**values))
