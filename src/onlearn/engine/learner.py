"""The linear learner: a rule, a geometry and a stabilizer, taught from rows of numbers.

A ``Learner`` needs NumPy and the compiler only. Estimators are facades over it, with scikit-learn's checks of input;
training runs over files drive it directly. Rows are a dense array or sparse (``csr.CSR`` or a SciPy matrix in CSR
format), of floats; others are converted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.engine import csr, reserve, tasks
from onlearn.engine.base_learner import BaseLearner
from onlearn.engine.calibration import CALIBRATIONS, KEEP_BACK, MOST_GIVEN, HeldOut, fit_curve, held_out_rows, own_curve
from onlearn.engine.compositions import (
    COMPOSITIONS,
    Composition,
    constant_feature,
    refuse_changes,
    seed_of,
    what_learning_depends_on,
)
from onlearn.engine.initial_weights import begin_at
from onlearn.engine.inputs import encode, plain
from onlearn.engine.mistake_order import check_order, learn_located
from onlearn.engine.one_row import is_one_row
from onlearn.engine.passes import all_or_nothing, run_passes, to_the_end, warn_caller
from onlearn.engine.replay import Hypotheses, Shape, voted_hypotheses
from onlearn.engine.scoring import best_by, certificate_by, hypothesis, narrow, scores_by
from onlearn.engine.spec import did_you_mean
from onlearn.engine.trace import Callback, Recorder, Trace, last_weights
from onlearn.engine.training import Training
from onlearn.model_schema import Arrays

if TYPE_CHECKING:
    from typing_extensions import Self


class Learner(BaseLearner):
    """A linear learner by the name of its composition, such as "OnlineClassifier" or "AdaGrad", with its parameters.

    >>> X, y = np.array([[0.0], [1.0]]), np.array(["no", "yes"])
    >>> Learner("PassiveAggressive", aggressiveness=0.5, random_state=0).fit(X, y).predict(X)
    array(['no', 'yes'], dtype='<U3')
    """

    is_linear = True
    trace: Trace | None = None  # of the last fit, if one was wanted
    trace_until: int = 0  # examples that had been seen at its end

    def __init__(self, name: str = "OnlineClassifier", *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        self.name, self.warning = name, warning
        self._prepare(params)

    @property
    def composition(self) -> Composition:
        if self.name not in COMPOSITIONS:
            raise ValueError(f"there is no learner {self.name!r}{did_you_mean(self.name, list(COMPOSITIONS))}")
        return COMPOSITIONS[self.name]

    @property
    def positive_only(self) -> bool:  # type: ignore[override]
        """Whether the geometry takes no negative values."""
        geometry = self.choices["geometry"] if self.training is None else self.training.geometry
        return bool(geometry.positive_only)

    # ------------------------------------------------------------------ rows

    def _rows_to_fit(self, X: Any, sample_weight: Any, names: Any, going_on: bool) -> tuple[Any, bool]:
        """What ``fit`` is to learn from, and whether it was searched for NaN and infinity.

        They show in the scores, so a new learner meets them before it learns from them; but not in rows without weight.
        Where columns have names, the name is said.
        """
        estimated = self.settings.intercept_scaling == "radius" or self.choices["geometry"].undecided
        weightless = self._holds_out() or sample_weight is not None or isinstance(self._class_weight, dict)
        finite = going_on or estimated or weightless or names is not None
        return self._rows(X, first=not going_on, finite=finite, names=names), finite

    def _holds_out(self) -> bool:
        return self.task.classifies and self.choices["calibration"].name == "holdout"

    # ------------------------------------------------------------------ learning

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, names: list[str] | None = None, *,
            order: str = "pass", coef_init: Any = None, intercept_init: Any = None,
            trace: bool | Callback = False) -> Self:  # fmt: skip
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended.

        ``order`` other than "pass" takes one mistake of all rows at a time: see ``mistake_order``. ``coef_init`` and
        ``intercept_init`` are where a new learner begins, in the shapes of ``coef_`` and ``intercept_``.
        ``trace=True`` keeps every step, as ``trace_``; if it is a function, it is called with the trace after each.
        """
        self.check()
        check_order(order, self.settings, self.task.classifies)
        own_start = coef_init is not None or intercept_init is not None
        if (own_start or order != "pass" or trace is not False) and type(self) is not Learner:
            raise ValueError(f"order, coef_init, intercept_init and trace are for linear learners, not for {self.name}")
        going_on = bool(self.settings.warm_start) and self.training is not None
        if going_on and own_start:
            raise ValueError("warm_start goes on from where the last fit ended: leave coef_init and intercept_init out")
        if going_on:
            refuse_changes(self.began_with, self._depends_on())
        X, checked = self._rows_to_fit(X, sample_weight, names, going_on)
        y, weight = self._targets(X, y, sample_weight, sees_all=True)
        if not going_on:
            self.task = self.task.of_all(y, weight)
            self._begin(X, y, names, sees_all=True).checked = checked
            if own_start:
                two_classes = self.task.classifies and len(self.task.classes) == 2
                begin_at(self._trained(), coef_init, intercept_init, two_classes)
        training: Any = self.training
        numbers = self._numbers(y, weight)
        if isinstance(self._class_weight, str):
            self.task = self.task.counted(numbers, weight)
        weight = self.task.weighted(numbers, weight, self._class_weight)
        held = held_out_rows(self.choices["calibration"], len(y), self.seed) if self._holds_out() else np.empty(0)
        if held.size:
            weight = weight.copy()
            weight[held] = 0.0
        targets = self.task.targets(numbers, training.output)
        with self._traced(trace):
            if order == "pass":
                kept = self._kept_back(numbers, weight) if trace is False and not going_on else None
                if kept is None:
                    self.separable = self._pass_over(X, targets, weight)
                else:
                    self.separable = run_passes(
                        training, X, targets, weight, self.settings, self.seed, self.warning, kept
                    )
            else:
                self.separable = learn_located(training, X, targets, weight, order, self.settings, self.seed,
                                               self.warning)  # fmt: skip
        self.held_out = None
        if held.size:
            scores = self.task.columns(self._scores(csr.rows_at(X, held)))
            self.held_out = HeldOut(scores, numbers[held], self.choices["calibration"].fraction)
        if not self.task.classifies:
            said = tasks.worse_than_mean(training, numbers, weight, lambda: self._scores(X)[:, 0])
            if said is not None:
                warn_caller(said, self.warning)
        return self

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> bool | None:
        """Learn from rows in as many passes as the settings say; what was learned about separability."""
        return run_passes(self._trained(), X, targets, weight, self.settings, self.seed, self.warning)

    def _kept_back(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray | None:
        """The rows that passes keep back for calibration, until the last has ended."""
        passes = self.settings.epochs
        many = passes is not None and passes > 1 and self.settings.shuffle
        return reserve.of_rows(codes, weight) if many and self.keeps_back() else None

    def keeps_back(self) -> bool:
        """Whether several passes keep rows back for calibration."""
        if type(self) is not Learner or not self.task.classifies:
            return False
        # shares of votes do not grow with the hypotheses
        return self.choices["calibration"].name in KEEP_BACK and not self.choices["stabilizer"].every_hypothesis

    @contextmanager
    def _traced(self, trace: bool | Callback) -> Iterator[None]:
        """What is learned meanwhile makes a trace, if one is wanted."""
        self.trace = None
        if trace is False:
            yield
            return
        if trace is not True and not callable(trace):
            raise TypeError(f"trace must be True, False or a function of a trace, not {trace!r}")
        training = self._trained()
        training.recorder = recorder = Recorder(training, self._shape(), None if trace is True else trace)
        try:
            yield
        finally:
            training.recorder = None
        self.trace, self.trace_until = recorder.trace, training.n_seen

    def _shape(self) -> Shape:
        """How weights are shown."""
        training = self._trained()
        two = self.task.classifies and len(self.task.classes) == 2 and training.outputs == 2
        return Shape(training.features, training.bias, training.theta, difference=two)

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        """Learn from rows in their order."""
        training = self._trained()
        with to_the_end(len(targets)):
            training.learn(X, self.task.targets(targets, training.output), weight, np.arange(len(targets)))

    def _depends_on(self) -> dict[str, Any]:
        """The parameters that must not change while learning goes on."""
        return what_learning_depends_on(self.choices, vars(self.settings))

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Training:
        """A new training for data like X; what needs all the data is refused unless these are all."""
        settings, choices, geometry = self.settings, self.choices, self.choices["geometry"]
        self.began_with = copy.deepcopy(self._depends_on())
        if self.task.classifies:
            output, outputs = self.task.outputs(choices["rule"], settings.multiclass, settings.grow is True)
        else:
            tasks.check_regression_choices(choices, settings.epochs, settings.tol)
            output, outputs = None, 1
        bias = constant_feature(settings, X, sees_all)
        if geometry.undecided:
            if not sees_all or output is not None:
                raise ValueError(f"{geometry!r} is estimated by fit from examples of two classes; here give the number")
            geometry = geometry.estimate(X, self.task.signs(y), bias)
        self.seed = seed_of(settings.random_state)
        training = Training(choices["rule"], geometry, choices["stabilizer"], output, X.shape[1], outputs, bias)
        training.classifies = self.task.classifies
        if settings.init == "random":
            training.randomize(np.random.default_rng([self.seed, 1]))
        self.training, self.dtype = training, np.dtype(X.dtype)
        self._call_columns(X.shape[1], names)
        return training

    # ------------------------------------------------------------------ runs over files

    def _learn_rows(self, X: Any, y: Any, sample_weight: Any, order: np.ndarray, *, first: bool) -> None:
        numbers, weight = self._numbered(y, sample_weight, order)
        training = self._trained()
        training.learn(X, self.task.targets(numbers, training.output), weight, order, audit=first, gathered=True)

    def keep_features(self, kept: np.ndarray) -> None:
        """Forget all features but some, which are numbered anew in the given order."""
        self._trained().select(kept)
        self._call_columns(len(kept), None if self.names is None else self.names[kept])

    # ------------------------------------------------------------------ starting anew

    def renewed(self) -> Self:
        made = super().renewed()
        made.trace = None
        return made

    def _new_training(self) -> Training:
        """A training as the present one was when it began, but for what it has grown to since."""
        old = self._trained()
        new = Training(old.rule, old.geometry, old.stabilizer, old.output, old.features, old.outputs, old.bias)
        new.classifies = old.classifies
        if self.settings.init == "random":
            new.randomize(np.random.default_rng([self.seed, 1]))
        return new

    # ------------------------------------------------------------------ what was learned

    @property
    def coef_(self) -> np.ndarray:
        """Weights: (1, features) for two classes, (classes, features) for more, (features,) in regression."""
        with self.lock:
            return self._shown(*hypothesis(self._trained()))[0]

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: (1,) for two classes and in regression, (classes,) for more."""
        with self.lock:
            return self._shown(*hypothesis(self._trained()))[1]

    def _shown(self, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights by output and intercepts as users see them."""
        if self.task.classifies:
            w, b = self.task.columns(w).T, self.task.columns(b[None])[0]
        else:
            w = w[:, 0]
        return np.array(narrow(w, self.dtype)), np.array(narrow(b, self.dtype))

    @property
    def trace_(self) -> Trace:
        """The steps that ``fit(..., trace=True)`` made, and the hypotheses between them."""
        self._trained()
        if self.trace is None:
            raise AttributeError("there is no trace: fit(X, y, trace=True) keeps one")
        return self.trace

    @property
    def hypotheses_(self) -> Hypotheses:
        """The list of (v_i, c_i): hypotheses with their intercepts, and how many examples each survived.

        A voted learner always has it, of all that it learned from. Others have that of the last ``fit``, if they kept a
        trace.
        """
        with self.lock:
            training = self._trained()
            if training.stabilizer.every_hypothesis:
                return voted_hypotheses(training.st, self._shape(), training.geometry.normalised)
        if self.trace is None:
            raise AttributeError("only a voted learner keeps its hypotheses: fit(X, y, trace=True) keeps them")
        if training.n_seen != self.trace_until:
            raise AttributeError(
                "examples were learned since the fit that was traced: there is no list of all hypotheses"
            )
        return self.trace.hypotheses()

    @property
    def coef_last_(self) -> np.ndarray:
        """The last hypothesis, beside what is handed out of all: weights, in the shape of ``coef_``."""
        return self._last()[0]

    @property
    def intercept_last_(self) -> np.ndarray:
        """The intercept of the last hypothesis, in the shape of ``intercept_``."""
        return self._last()[1]

    def _last(self) -> tuple[np.ndarray, np.ndarray]:
        with self.lock:
            training = self._trained()
            handed = last_weights(training, (training.features + 1) * training.outputs).reshape(-1, training.outputs)
        w, b = handed[1:], handed[0] * training.bias - training.theta
        return self._shown(w, b)

    @property
    def longest_run_(self) -> int:
        """How many examples in a row the survivor, which is handed out, predicted without a mistake."""
        training = self._trained()
        if training.stabilizer.name != "survivor":
            raise AttributeError(f"the longest run is that of stabilizer 'survivor', not {training.stabilizer.name!r}")
        return int(training.st.run.max())

    def has_squared_loss(self) -> bool:
        return self.choices["rule"].name in ("lms", "nlms")

    @property
    def separable_(self) -> bool | None:
        """Whether the classes are known to be separable (True) or inseparable (False) by a hyperplane."""
        self._trained()
        return self.separable

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        """Scores of checked rows by output."""
        return scores_by(training or self._trained(), X, self.feature_names)

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        """The output with the highest score of each row, of two or more."""
        return best_by(training or self._trained(), X, self.feature_names)

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, on a tie the first of them; in regression the number."""
        # In single precision many rows are scored otherwise: with their own, not with double precision.
        if is_one_row(X) and X.dtype == np.float64 and self.task.classifies:
            return np.array([self.predict_one(X[0])], dtype=self.task.classes.dtype)
        return super().predict(X)

    def predict_proba(self, X: Any, calibration: Any = None) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        with self.lock:
            choice = self.choices["calibration"] if calibration is None else CALIBRATIONS.get(calibration)
            curve = fit_curve(choice, self._trained(), self.task.columns, self.held_out)
        return curve.probabilities(self.decision_function(X))

    @all_or_nothing
    def calibrate(self, X: Any, y: Any) -> Self:
        """Fit probabilities to rows that were not learned from, and to none else until more is learned.

        Which kind of curve is fitted is still the choice of ``calibration``; "own" takes no notice of the rows.

        >>> X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
        >>> learner = Learner("Perceptron", random_state=0).fit(X, y)
        >>> float(learner.calibrate(X, np.array([0, 1, 0, 1])).predict_proba(X)[:, 1].max()) < 0.9
        True
        """
        self._trained()
        X = self._rows(X, first=False)
        y, weight = self._targets(X, y, None, sees_all=False)
        strange = ~np.isin(y, self.task.classes)
        if strange.any():
            raise ValueError(
                f"row {int(np.argmax(strange))} has the label {plain(y[strange][0])!r}, which was not learned"
            )
        self.calibrate_by(self.task.columns(self._scores(X)), self.task.numbers(y, weight, grows=False))
        return self

    def calibrate_by(self, scores: np.ndarray, codes: np.ndarray) -> None:
        """Fit probabilities to scores by the present hypothesis, a column for each class (one for two), and classes."""
        if not self.task.classifies:
            raise AttributeError("regression has no probabilities")
        some = np.arange(0, len(codes), max(1, -(-len(codes) // MOST_GIVEN)))
        self.held_out = HeldOut(np.ascontiguousarray(scores[some], dtype=np.float64), codes[some], None, given=True)

    def own_probabilities(self, scores: np.ndarray) -> np.ndarray | None:
        training = self._trained()
        if training.stabilizer.every_hypothesis or not self.task.classifies:
            return None
        scores = scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores
        return own_curve(training).probabilities(scores)

    def scores_before_learning(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        with self.lock:
            training = self._trained()
            scores, gold = training.audited()
            if not self.task.classifies or not len(gold):
                return None
            shaped = self.task.shaped(scores)
            curve = fit_curve(self.choices["calibration"], training, self.task.columns, self.held_out)
            codes = (gold > 0 if training.output is None else gold).astype(np.int64)
            return codes, shaped.reshape(len(codes), -1), curve.probabilities(shaped)

    def predict_proba_one(self, x: Any, calibration: Any = None) -> dict[Any, float]:
        """The probability of each class for one row, by class."""
        if not self.task.classifies:
            raise AttributeError("regression has no probabilities")
        return self.path.probabilities(x, calibration)

    def certificate(self, X: Any, y: Any) -> Any:
        """What theory promises for these examples, and whether its assumptions hold; two classes only."""
        with self.lock:
            training = self._trained()
            X = self._rows(X, first=False)
            y, _ = self._targets(X, y, None, sees_all=False)
            if len(self.task.classes) != 2:
                raise ValueError(f"a certificate is for two classes; this learner has {len(self.task.classes)}")
            certificate = self._certify(X, np.where(encode(y, self.task.classes, grows=False) == 1, 1.0, -1.0))
            return certificate if training.saw_passes_of(X.shape[0]) else certificate.of_other_rows(training.n_seen)

    def _certify(self, X: Any, signs: np.ndarray) -> Any:
        """What theory promises for rows of which these are the classes, if they are those learned from."""
        from_zero = self.began_with["init"] == "zeros" and not self._trained().own_start
        return certificate_by(self._trained(), X, signs, from_zero=from_zero)

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        made, kept = super()._pack()
        if self.held_out is not None:
            kept["held_out.scores"], kept["held_out.codes"], made["held_out"], given = self.held_out
            made.update({"held_out_given": True} if given else {})
        return made, kept

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        super()._unpack(facts, arrays)
        if self.task.classifies and ("held_out" in facts or "held_out.scores" in arrays):
            self.held_out = HeldOut.unpack(facts, arrays, len(self.task.classes))

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> Training:
        """The training that a file describes, of rows of so many features."""
        training = Training.unpack(facts, arrays)
        if features != training.features:
            raise ValueError(f"{features} features do not go with {training.features} weights")
        return training
