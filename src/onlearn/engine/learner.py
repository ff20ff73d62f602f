"""The linear learner: a rule, a geometry and a stabilizer, taught from rows of numbers.

A ``Learner`` needs NumPy and the compiler only. Estimators are facades over it, with scikit-learn's checks of input;
training runs over files drive it directly. Rows are a dense array or sparse (``csr.CSR`` or a SciPy matrix in CSR
format), of floats; others are converted.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn.engine import csr, tasks
from onlearn.engine.calibration import CALIBRATIONS, HeldOut, fit_curve, held_out_rows
from onlearn.engine.compositions import (
    COMPOSITIONS,
    Composition,
    check_settings,
    constant_feature,
    refuse_changes,
    seed_of,
    what_learning_depends_on,
)
from onlearn.engine.feature_names import FeatureNames
from onlearn.engine.inputs import check_heaviest, check_weights, encode
from onlearn.engine.one_row import RowPath, is_one_row
from onlearn.engine.passes import all_or_nothing, run_passes, to_the_end, warn_caller
from onlearn.engine.rules import with_rule, without_rule
from onlearn.engine.scoring import best_by, certificate_by, hypothesis, narrow, scores_by
from onlearn.engine.spec import did_you_mean
from onlearn.engine.tasks import Classification, Regression
from onlearn.engine.training import Training
from onlearn.model_file import ESTIMATOR, check_facts

if TYPE_CHECKING:
    from typing_extensions import Self


TRANSIENT = ("lock", "path", "passed_on")  # what copies and pickles have anew


class Learner:
    """A linear learner by the name of its composition, such as "OnlineClassifier" or "AdaGrad", with its parameters.

    >>> X, y = np.array([[0.0], [1.0]]), np.array(["no", "yes"])
    >>> Learner("PassiveAggressive", aggressiveness=0.5, random_state=0).fit(X, y).predict(X)
    array(['no', 'yes'], dtype='<U3')
    """

    name: str
    seed: Any
    dtype: np.dtype

    representation: str | None = None  # of a learner with a kernel: "dual" or "primal"

    def __init__(self, name: str = "OnlineClassifier", *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        self.name, self.warning = name, warning
        self._checked: dict[str, Any] = {}  # values of parameters that were found right
        self.configure({**self.defaults(), **params})
        self.task: Any = Classification() if self.composition.task == "classify" else Regression()
        self.training: Training | None = None  # once learning has begun
        self.began_with: dict[str, Any] = {}
        self.seed, self.dtype = 0, np.dtype(np.float64)
        self.features = 0  # columns of the rows
        self.feature_names: FeatureNames | None = None  # what they are called
        self.separable: bool | None = None
        self.held_out: HeldOut | None = None  # rows for calibration
        self._make_transient()

    def _make_transient(self) -> None:
        """What copies and pickles do not hold."""
        # One thread learns while others predict: what learns holds the lock, and so does whoever takes a hypothesis.
        self.lock = threading.RLock()
        self.passed_on: Any = None  # the parameters that the estimator around it last passed on

    @cached_property
    def path(self) -> RowPath:
        """The way of single rows."""
        return RowPath(self)

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        """Which parameters it has, and what they mean."""
        if self.name not in COMPOSITIONS:
            raise ValueError(f"there is no learner {self.name!r}{did_you_mean(self.name, list(COMPOSITIONS))}")
        return COMPOSITIONS[self.name]

    def defaults(self) -> dict[str, Any]:
        """The parameters as they are if nothing is said."""
        return {name: one.default for name, one in self.composition.parameters.items()}

    def configure(self, values: dict[str, Any]) -> None:
        """Take the values of all parameters; those that learning depends on must not change while it goes on."""
        unknown = values.keys() - self.composition.parameters.keys()
        if unknown:
            raise TypeError(f"{self.name} has no parameter {min(unknown)!r}")
        self.settings: SimpleNamespace = SimpleNamespace(**self.composition.fixed, **values)
        self._choices: dict[str, Any] | None = None

    def get_params(self, deep: bool = False) -> dict[str, Any]:
        """The parameters by name, in alphabetical order."""
        return {name: getattr(self.settings, name) for name in sorted(self.composition.parameters)}

    def set_params(self, **params: Any) -> Self:
        """Change parameters."""
        self.configure({**self.get_params(), **params})
        return self

    @property
    def choices(self) -> dict[str, Any]:
        """The rule, geometry, stabilizer and calibration that the parameters mean."""
        if self._choices is None:
            self._choices = self.composition.choices(vars(self.settings))
        return self._choices

    def check(self) -> None:
        """Refuse parameters that cannot be."""
        values, known = vars(self.settings), self._checked
        if any(value is not known.get(name, self) for name, value in values.items()):
            check_settings(values, self.composition.own)
            self._checked = dict(values)
        self.choices  # noqa: B018  a wrong spelling raises

    def __repr__(self) -> str:
        usual = self.defaults()
        changed = [f"{name}={one!r}" for name, one in self.get_params().items() if repr(one) != repr(usual[name])]
        return f"{self.name}({', '.join(changed)})"

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:  # copies, for another thread may go on learning while they are pickled
            training, names = copy.deepcopy((self.training, self.feature_names))
            state = {**self.__dict__, "training": training, "feature_names": names, "_choices": None, "_checked": {}}
        for name in TRANSIENT:
            state.pop(name, None)
        return with_rule(state, getattr(self.settings, "rule", None))

    def __copy__(self) -> Self:
        made = self.__class__.__new__(self.__class__)
        with self.lock:
            made.__dict__.update({name: value for name, value in self.__dict__.items() if name not in TRANSIENT})
        made._make_transient()
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(without_rule(state))
        self._make_transient()

    # ------------------------------------------------------------------ rows

    @property
    def names(self) -> np.ndarray | None:
        """What the columns are called, if they have names."""
        return None if self.feature_names is None else self.feature_names.array()

    def column_name(self, column: int) -> str:
        """What a column is called."""
        return f"column {column}" if self.feature_names is None else str(self.feature_names[column])

    def limit_of_names(self) -> int:
        """How many names a learner that grows takes in."""
        return int(getattr(self.settings, "max_names", 1))

    def takes_objects(self) -> bool:
        """Whether examples are other things than rows of numbers."""
        return False

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        """Rows as the engine takes them; ``first`` if their width is not known yet, else it is made ``width``."""
        X = csr.as_floats(X)
        if csr.is_sparse(X):
            X = csr.without_duplicates(X)
        width = self.features if width is None else width
        if not first and X.shape[1] != width:
            if not self.settings.grow:
                raise ValueError(f"X has {X.shape[1]} features, but {self.name} is expecting {width} features as input")
            X = csr.of_width(X, width)  # of wider rows as far as the features are known
        positive = (self.choices["geometry"] if self.training is None else self.training.geometry).positive_only
        if finite or positive:
            csr.check_finite(X, self.feature_names if names is None else names)
        if positive:
            csr.check_positive(X, self.name)
        return X

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

    @property
    def _class_weight(self) -> Any:
        return getattr(self.settings, "class_weight", None)

    def _targets(self, X: Any, y: Any, sample_weight: Any, sees_all: bool) -> tuple[np.ndarray, np.ndarray]:
        """y and the weights of the rows, checked."""
        y = self.task.check(y, X.shape[0])
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)} entries: inconsistent numbers of samples")
        return y, check_weights(sample_weight, X.shape[0], sees_all=sees_all)

    # ------------------------------------------------------------------ learning

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, names: list[str] | None = None) -> Self:
        """Learn from all rows, in ``epochs`` passes; with ``warm_start`` go on from where the last fit ended."""
        self.check()
        going_on = bool(self.settings.warm_start) and self.training is not None
        if going_on:
            refuse_changes(self.began_with, self._depends_on())
        X, checked = self._rows_to_fit(X, sample_weight, names, going_on)
        y, weight = self._targets(X, y, sample_weight, sees_all=True)
        if not going_on:
            self.task = self.task.of_all(y, weight)
            self._begin(X, y, names, sees_all=True).checked = checked
        training: Any = self.training
        numbers = self._numbers(y, weight)
        if isinstance(self._class_weight, str):
            self.task = self.task.counted(numbers, weight)
        weight = self.task.weighted(numbers, weight, self._class_weight)
        held = held_out_rows(self.choices["calibration"], len(y), self.seed) if self._holds_out() else np.empty(0)
        if held.size:
            weight = weight.copy()
            weight[held] = 0.0
        self.separable = self._pass_over(X, self.task.targets(numbers, training.output), weight)
        self.held_out = None
        if held.size:
            scores = self.task.columns(self._scores(csr.rows_at(X, held)))
            self.held_out = HeldOut(scores, numbers[held], self.choices["calibration"].fraction)
        if not self.task.classifies:
            said = tasks.worse_than_mean(training, numbers, weight, lambda: self._scores(X)[:, 0])
            if said is not None:
                warn_caller(said, self.warning)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None,
                    names: list[str] | None = None) -> Self:  # fmt: skip
        """Learn from the rows once, in their order. Many small calls leave the same state as one large one."""
        usual = classes is None and sample_weight is None and names is None and self.training is not None
        if usual and is_one_row(X) and type(y) in (list, np.ndarray) and len(y) == 1:
            return self.learn_one(X[0], y[0])
        self._partial_fit(X, y, classes, sample_weight, names)
        return self

    @all_or_nothing
    def _partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, names: Any = None) -> None:
        self.check()
        first, grow = self.training is None, self.settings.grow
        if not first:
            refuse_changes(self.began_with, self._depends_on())
        if self._holds_out():
            raise ValueError("calibration='holdout' needs fit; partial_fit calibrates online")
        classes = self.task.expected(classes, grow is True, None if self.training is None else self.training.outputs)
        X = csr.as_floats(X) if grow else X
        wider = not first and bool(grow) and X.shape[1] > self.features
        if wider and names is None and self.feature_names is not None:
            raise ValueError(
                f"X has {X.shape[1]} columns without names, but the {self.features} known have names: new ones need "
                "names, too"
            )
        X = self._rows(X, first=first or wider, names=names)
        y, weight = self._targets(X, y, sample_weight, sees_all=False)
        self.held_out = None  # whose scores were those of the hypothesis before
        if first:
            self.task = self.task.of_stream(y, weight, classes, grow is True)
            self._begin(X, y, names, sees_all=False)
        elif wider:
            self._call_columns(X.shape[1], names)
        training: Any = self.training
        if grow is True and self.task.classifies:
            self.task, y = self.task.with_labels(y, weight)
            training.grow(X.shape[1], max(2, len(self.task.classes)))
        elif grow:
            training.grow(X.shape[1], training.outputs)
        numbers = self._numbers(y, weight)
        if isinstance(self._class_weight, str):
            self.task, weight = self.task.balanced(numbers, weight)
        else:
            weight = self.task.weighted(numbers, weight, self._class_weight)
        self.separable = None
        self._learn_once(X, self.task.targets(numbers, training.output), weight)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Self:
        """Learn from one example; the state is that of ``partial_fit`` with the row, to the last bit.

        ``x`` is a row of numbers, a sparse row, or a mapping from names to numbers, Booleans (1 and 0) and strings (the
        feature ``name=string`` is 1). With ``grow``, names and classes are taken in as they come. Without, learning
        begins with labels that are Booleans, or by ``partial_fit`` with ``classes``.

        >>> learner = Learner("AveragedPerceptron", grow=True)
        >>> learner.learn_one({"size": 3.5, "colour": "red"}, "apple").learn_one({"size": 9.0}, "melon").n_seen_
        2
        >>> learner.predict_one({"colour": "red"})
        'apple'
        """
        self.path.learn(x, y, weight)
        return self

    def _classes_of_first(self, y: Any) -> dict[str, Any]:
        """The classes that the label of a first example stands for, as an argument of ``partial_fit``."""
        if not self.task.classifies or self.settings.grow is True:
            return {}
        if not isinstance(y, (bool, np.bool_)):
            raise ValueError(
                f"the first label is {y!r}, which does not say what other classes there are: set grow=True, or name "
                "them all by partial_fit(..., classes=...) with the first row"
            )
        return {"classes": [False, True]}

    def _numbers(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Class indices of labels; numbers as they are."""
        return np.asarray(self.task.numbers(y, weight))

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> bool | None:
        """Learn from rows in as many passes as the settings say; what was learned about separability."""
        return run_passes(self._trained(), X, targets, weight, self.settings, self.seed, self.warning)

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        """Learn from rows in their order."""
        with to_the_end(len(targets)):
            self._trained().learn(X, targets, weight, np.arange(len(targets)))

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

    def _call_columns(self, count: int, names: Any) -> None:
        known = names is None or isinstance(names, FeatureNames)
        self.features, self.feature_names = count, names if known else FeatureNames(names, self.limit_of_names())

    # ------------------------------------------------------------------ passes over rows that come in parts

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        self.check()
        empty = csr.CSR(np.zeros(0, dtype), np.zeros(0, np.int32), np.zeros(1, np.int32), (0, features))
        self.task, self.held_out, self.separable = self.task.numbered(counts), None, None
        self._begin(empty, np.arange(len(counts)), None, sees_all=False)

    def take_in(self, features: int, classes: int) -> None:
        """Make room for features, and for classes 0 to K - 1, before they are met; for learners that grow."""
        training = self._trained()
        outputs = training.outputs
        if self.settings.grow is True and self.task.classifies:
            self.task, outputs = self.task.with_classes(classes), max(2, classes)
        self.features = max(features, self.features)
        training.grow(self.features, outputs)

    def learn_rows(self, X: Any, y: Any, sample_weight: Any, order: np.ndarray, *, first: bool) -> None:
        """Learn from the rows in the given order: for passes over data that ``fit`` cannot have all at once.

        What ``partial_fit`` does is done but for growing and checking: X and y must be sound. ``first`` says that these
        rows are met for the first time, so that their scores tell something about calibration.
        """
        training = self._trained()
        # Of these rows only, for there may be many more in X, which come in other calls.
        weight = np.ones(len(order)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
        check_heaviest(weight, "the weight")
        numbers = self._numbers(np.asarray(y)[order], weight)
        weight = self.task.weighted(numbers, weight, self._class_weight)  # by now the counts are known
        targets = self.task.targets(numbers, training.output)
        training.learn(X, targets, weight, order, audit=first, gathered=True)

    def end_pass(self) -> None:
        """A pass is over: count it in ``history_``."""
        self._trained().end_pass()

    def keep_features(self, kept: np.ndarray) -> None:
        """Forget all features but some, which are numbered anew in the given order."""
        self._trained().select(kept)
        self._call_columns(len(kept), None if self.names is None else self.names[kept])

    # ------------------------------------------------------------------ starting anew

    def renewed(self) -> Self:
        """A learner with the same parameters, classes and columns that has learned nothing."""
        with self.lock:
            made = copy.copy(self)
            made.separable = made.held_out = None
            made.feature_names = copy.deepcopy(self.feature_names)  # either may take in names of its own
            if self.training is not None:
                made.task, made.training = self.task.uncounted(), self._new_training()
        return made

    def _new_training(self) -> Training:
        """A training as the present one was when it began, but for what it has grown to since."""
        old = self._trained()
        new = Training(old.rule, old.geometry, old.stabilizer, old.output, old.features, old.outputs, old.bias)
        new.classifies = old.classifies
        if self.settings.init == "random":
            new.randomize(np.random.default_rng([self.seed, 1]))
        return new

    def become(self, other: Self) -> Self:
        """Take over all that another learner has learned, which is not to be used any more."""
        own = {"lock": self.lock, "path": self.path, "passed_on": None}
        with self.lock:
            self.__dict__.update({**other.__dict__, **own})
        return self

    # ------------------------------------------------------------------ what was learned

    def _trained(self) -> Training:
        if self.training is None:
            raise AttributeError(f"this {self.name} has learned nothing yet")
        return self.training

    @property
    def coef_(self) -> np.ndarray:
        """Weights: (1, features) for two classes, (classes, features) for more, (features,) in regression."""
        with self.lock:
            w, _ = hypothesis(self._trained())
        return np.array(narrow(self.task.columns(w).T if self.task.classifies else w[:, 0], self.dtype))

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the weighted sum: (1,) for two classes and in regression, (classes,) for more."""
        with self.lock:
            _, b = hypothesis(self._trained())
        return np.array(narrow(self.task.columns(b[None])[0] if self.task.classifies else b, self.dtype))

    @property
    def explained(self) -> Learner:
        """The learner whose weights explain predictions."""
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the classes."""
        self._trained()
        if not self.task.classifies:
            raise AttributeError("regression has no classes")
        return np.asarray(self.task.classes)

    @property
    def separable_(self) -> bool | None:
        """Whether the classes are known to be separable (True) or inseparable (False) by a hyperplane."""
        self._trained()
        return self.separable

    @property
    def n_features_in_(self) -> int:
        """Features of the rows learned from."""
        self._trained()
        return self.features

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns learned from, if they have names."""
        self._trained()
        if self.names is None:
            raise AttributeError("the columns learned from had no names")
        return np.asarray(self.names)

    @property
    def n_mistakes_(self) -> int:
        """Mistakes made while learning, over all passes."""
        if not self.task.classifies:
            raise AttributeError("regression makes no mistakes")
        return self._trained().n_mistakes

    @property
    def n_updates_(self) -> int:
        """Examples that changed the hypothesis, over all passes."""
        return self._trained().n_updates

    @property
    def n_seen_(self) -> int:
        """Examples learned from, over all passes."""
        return self._trained().n_seen

    @property
    def history_(self) -> dict[str, list[dict[str, float]]]:
        """``"passes"``: mistakes and mean loss of each pass. ``"doubling"``: the same, from the start, when the
        count of examples reached a power of two. Each example is counted before it is learned from."""
        return self._trained().history

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        """Scores of checked rows by output."""
        return scores_by(training or self._trained(), X, self.feature_names)

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        """The output with the highest score of each row, of two or more."""
        return best_by(training or self._trained(), X, self.feature_names)

    def _answer(self, X: Any, answer: Callable[[Any, Any, Any], Any]) -> Any:
        """What ``answer(rows, task, training)`` makes of rows by the present hypothesis; others may learn meanwhile."""
        with self.lock:
            task, training, width = self.task, self._trained().snapshot(), self.features
            if training is self.training:  # there is no snapshot of it: learning waits
                return answer(self._rows(X, first=False, finite=False), task, training)
        return answer(self._rows(X, first=False, finite=False, width=width), task, training)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: one a row for two classes (positive: the second), one a class for more."""
        return np.asarray(self._answer(X, lambda X, task, training: task.shaped(self._scores(X, training))))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, on a tie the first of them; in regression the number."""
        # In single precision many rows are scored otherwise: with their own, not with double precision.
        if is_one_row(X) and X.dtype == np.float64 and self.task.classifies:
            return np.array([self.predict_one(X[0])], dtype=self.task.classes.dtype)
        return np.asarray(self._answer(X, self._predicted))

    def _predicted(self, X: Any, task: Any, training: Any) -> Any:
        if not task.classifies:
            return self._scores(X, training)[:, 0]
        if len(task.classes) > 2:
            return task.named(self._best(X, training))
        return task.chosen(task.shaped(self._scores(X, training)))

    def predict_proba(self, X: Any, calibration: Any = None) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        with self.lock:
            choice = self.choices["calibration"] if calibration is None else CALIBRATIONS.get(calibration)
            curve = fit_curve(choice, self._trained(), self.task.columns, self.held_out)
        return curve.probabilities(self.decision_function(X))

    def score_one(self, x: Any) -> Any:
        """The score of one row, as of ``learn_one``: a number for two classes and in regression, else a dict by class.

        It is by what would be handed out now, at the cost of the row alone.
        """
        return self.path.score(x)

    def predict_one(self, x: Any) -> Any:
        """The class of one row, on a tie the first of them; in regression the number."""
        return self.path.predict(x)

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
        return certificate_by(self._trained(), X, signs, from_zero=self.began_with["init"] == "zeros")

    # ------------------------------------------------------------------ the model file

    @property
    def stored_as(self) -> str:
        """What the model file calls it."""
        return self.name

    def save(self, path: Any) -> None:
        """Write the learner to a ``.onl`` file, with all that it needs to go on learning."""
        from onlearn import model_file

        self._trained()
        with self.lock:  # learning waits, so that the file holds one state
            model_file.save(self, path)

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What the model file holds of this learner, besides its parameters."""
        facts, arrays = self._trained().pack()
        labels, more = self.task.pack(self.separable)
        made = {"training": facts, "estimator": self._facts(), **labels}
        kept = {**{f"training.{key}": array for key, array in arrays.items()}, **more}
        if self.held_out is not None:
            kept["held_out.scores"], kept["held_out.codes"], made["held_out"] = self.held_out
        return made, kept

    def _facts(self) -> dict[str, Any]:
        """What it knows of the rows."""
        return {
            "n_features_in": int(self.features),
            "feature_names_in": None if self.feature_names is None else list(map(str, self.feature_names.names)),
            "seed": self.seed,
            "dtype": self.dtype.name,
        }

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        prefix, mine = "training.", facts["estimator"]
        check_facts(mine, ESTIMATOR)
        kept = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
        count, names = mine["n_features_in"], mine["feature_names_in"]
        training = self._unpack_training(facts["training"], kept, count)
        if names is not None:
            names = FeatureNames(names, self.limit_of_names(), hashed=count > max(1, len(names)))
            if count != max(1, names.width):
                raise ValueError(f"{len(names)} names do not go with {count} features")
        if self.task.classifies:
            self.task = Classification.unpack(facts, arrays, training)
            self.separable = facts["separable"]
            if "held_out" in facts or "held_out.scores" in arrays:
                self.held_out = HeldOut.unpack(facts, arrays, len(self.task.classes))
        self.training, self.seed, self.dtype = training, mine["seed"], np.dtype(mine["dtype"])
        self._call_columns(count, names)
        self.began_with = copy.deepcopy(self._depends_on())

    def _unpack_training(self, facts: dict[str, Any], arrays: dict[str, np.ndarray], features: int) -> Training:
        """The training that a file describes, of rows of so many features."""
        training = Training.unpack(facts, arrays)
        if features != training.features:
            raise ValueError(f"{features} features do not go with {training.features} weights")
        return training
