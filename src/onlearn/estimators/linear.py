"""The linear estimators: every rule, geometry, stabilizer and kind of multiclass, with scikit-learn's manners.

The named ones are made of the compositions of the engine, signature and docstring too.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import numpy as np

from onlearn.engine.compositions import COMPOSITIONS, Composition
from onlearn.engine.replay import Hypotheses
from onlearn.engine.trace import Callback, Trace
from onlearn.estimators.base import IncrementalClassifier, IncrementalRegressor, LearnerEstimator


class MistakeDrivenClassifier(IncrementalClassifier):
    """A classifier of which theory counts the mistakes: linear ones, those with a kernel, and mixtures."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        learner, X = self._fitted(X)
        return learner.predict_proba(X, self._calibration())

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class for one row, as of ``learn_one``, by class."""
        return self._begun().predict_proba_one(x, self._calibration())

    def calibrate(self, X: Any, y: Any) -> Any:
        """Fit probabilities to rows that were not learned from, and to none else until more is learned.

        Which kind of curve is fitted is still the choice of ``calibration``.
        """
        learner, X = self._fitted(X)
        learner.calibrate(X, self._check_targets(y))
        return self

    @property
    def separable_(self) -> bool | None:
        """Whether the classes are known to be separable (True), or not to be (False)."""
        separable: bool | None = self._known("separable_")
        return separable

    @property
    def n_mistakes_(self) -> int:
        """Mistakes made while learning, over all passes."""
        return int(self._known("n_mistakes_"))

    def certificate(self, X: Any, y: Any) -> Any:
        """What theory promises for these examples, and whether its assumptions hold; two classes only.

        The examples must be those trained on. No bound applies to fewer or more of them than a pass saw.
        """
        learner, X = self._fitted(X)
        return learner.certificate(X, self._check_targets(y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # without negative weights only some problems can be learned
            tags.classifier_tags.poor_score = self._geometry().positive_weights
        return tags

    def _calibration(self) -> Any:
        """Where probabilities come from: it may change after fit."""
        return getattr(self, "calibration", None)

    def _geometry(self) -> Any:
        """The geometry that the parameters mean."""
        return self._composition.choices(self._values())["geometry"]

    def _takes_positive_only(self) -> bool:
        return bool(self._geometry().positive_only)


class LinearEstimator(LearnerEstimator):
    """What linear estimators show of how they learned."""

    @property
    def trace_(self) -> Trace:
        """The steps that ``fit(..., trace=True)`` made, and the hypotheses between them."""
        trace: Trace = self._known("trace_")
        return trace

    @property
    def hypotheses_(self) -> Hypotheses:
        """The list of (v_i, c_i): weights and intercept of each hypothesis, and how many examples it survived.

        A voted learner always has it, of all that it learned from. Others have that of the last ``fit``, if it kept a
        trace.
        """
        hypotheses: Hypotheses = self._known("hypotheses_")
        return hypotheses

    @property
    def coef_last_(self) -> np.ndarray:
        """The weights of the last hypothesis, in the shape of ``coef_``, which may be the mean of all."""
        return np.asarray(self._known("coef_last_"))

    @property
    def intercept_last_(self) -> np.ndarray:
        """The intercept of the last hypothesis, in the shape of ``intercept_``."""
        return np.asarray(self._known("intercept_last_"))


class OnlineClassifier(MistakeDrivenClassifier, LinearEstimator):
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
        Where probabilities come from: "auto", "online", "holdout(0.1)" or "own"; ``method`` of "online" and "holdout"
        is the kind of curve: "sigmoid", "temperature" or "isotonic". ``calibrate`` fits it to other rows.
    max_names : int
        With ``grow``, the names of features that ``learn_one`` takes in; names beyond share as many columns by hash.

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
        max_names: int = 1 << 21,
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
        self.grow: bool = grow
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling
        self.calibration = calibration
        self.max_names = max_names

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        order: str = "pass",
        coef_init: Any = None,
        intercept_init: Any = None,
        trace: bool | Callback = False,
    ) -> Any:
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended.

        Labels keep their type in ``classes_``, also those of pandas columns that allow for missing values. A call that
        fails changes nothing.

        Parameters
        ----------
        order : "pass", "first", "random" or "worst"
            "pass": pass over the rows, as ``shuffle`` says. Else each step takes one of the rows that are misclassified
            now, the first, a random one or that of the smallest margin, until there is none, or as many steps were
            made as passes would see rows.
        coef_init, intercept_init : arrays or None
            Where learning begins, in the shapes of ``coef_`` and ``intercept_``; None: as usual. Winnow's weights must
            be positive, those of normalised Winnow are divided by their sum.
        trace : bool or function
            True keeps every step and the hypothesis after it, as ``trace_``. A function is called with that trace
            after each step, while ``fit`` learns.
        """
        start = {"coef_init": coef_init, "intercept_init": intercept_init}
        return self._fit(X, y, sample_weight, order=order, trace=trace, **start)

    @property
    def longest_run_(self) -> int:
        """How many examples in a row the survivor predicted without a mistake; its weights are ``coef_``."""
        return int(self._known("longest_run_"))


class OnlineRegressor(IncrementalRegressor, LinearEstimator):
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

    _composition: ClassVar[Composition] = COMPOSITIONS["OnlineRegressor"]

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
        max_names: int = 1 << 21,
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
        self.grow: bool = grow
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling
        self.max_names = max_names

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
        trace: bool | Callback = False,
    ) -> Any:
        """Learn from all rows. A call that fails changes nothing.

        ``coef_init``, ``intercept_init`` and ``trace`` are those of ``OnlineClassifier.fit``.
        """
        start = {"coef_init": coef_init, "intercept_init": intercept_init}
        return self._fit(X, y, sample_weight, trace=trace, **start)

    def _takes_positive_only(self) -> bool:
        return bool(self._composition.choices(self._values())["geometry"].positive_only)


# ----------------------------------------------------------------------------------------------------
# The named learners.


Cls = TypeVar("Cls", bound=type[OnlineClassifier])

NAMED: dict[str, Any] = {}


def named(cls: Cls) -> Cls:
    """Make a subclass of ``OnlineClassifier`` the composition of its name."""
    composition = COMPOSITIONS[cls.__name__]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    shown = [inspect.Parameter(name, kind, default=one.default) for name, one in composition.parameters.items()]
    signature = inspect.Signature([inspect.Parameter("self", kind), *shown])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            setattr(self, name, value)

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    cls.__init__, cls.__doc__, cls._composition = __init__, composition.docstring(), composition  # type: ignore[method-assign]
    NAMED[cls.__name__] = cls
    return cls


@named
class Perceptron(OnlineClassifier):
    pass


@named
class AveragedPerceptron(OnlineClassifier):
    pass


@named
class VotedPerceptron(OnlineClassifier):
    pass


@named
class MarginPerceptron(OnlineClassifier):
    pass


@named
class AggressivePerceptron(OnlineClassifier):
    pass


@named
class PassiveAggressive(OnlineClassifier):
    pass


@named
class Winnow(OnlineClassifier):
    pass


@named
class BalancedWinnow(OnlineClassifier):
    pass


@named
class NormalizedWinnow(OnlineClassifier):
    pass


@named
class Adaline(OnlineClassifier):
    pass


@named
class LinearSVM(OnlineClassifier):
    pass


@named
class LogisticRegression(OnlineClassifier):
    pass


@named
class AdaGrad(OnlineClassifier):
    pass


@named
class AROW(OnlineClassifier):
    pass


@named
class FTRL(OnlineClassifier):
    pass


@named
class ScInOL(OnlineClassifier):
    pass
