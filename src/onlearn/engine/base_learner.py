"""What all learners share: parameters, columns and their names, classes, answers, the model file, runs over files.

A learner is a set of parameters (its ``composition``), a ``task`` (classes or numbers), and a ``training``: what it has
learned, None before. A training is a ``Chronicle``, so that examples, passes and mistakes are counted in one way.

A new kind of learner is one subclass:

- ``composition`` names its parameters, and ``engine.registry`` names it;
- ``_new_training`` makes an empty training (a ``BaseTraining``) for its columns and classes;
- ``_learn_once`` learns from checked rows that come in parts (``partial_fit``), ``_learn_all`` from all of them
  (``fit``); one that is ``whole`` has the latter only;
- ``_scores`` gives the scores of checked rows, a column for each output; with two classes one column will do;
- ``pack`` of its training and ``_unpack_training`` say what the model file holds;
- ``_probabilities``, ``contributions`` and ``described`` give probabilities, explanations and what commands tell;
- the facts below say how training runs over files have to treat it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from onlearn.engine import csr
from onlearn.engine.calibration import logarithms
from onlearn.engine.compositions import Composition, check_settings, refuse_changes, seed_of
from onlearn.engine.feature_names import FeatureNames
from onlearn.engine.inputs import check_heaviest, check_weights
from onlearn.engine.one_row import RowPath, is_one_row
from onlearn.engine.passes import all_or_nothing
from onlearn.engine.rules import with_rule, without_rule
from onlearn.engine.tasks import Classification, Regression
from onlearn.inert_text import as_line, facts_html, number, number_of
from onlearn.model_schema import (
    COUNT,
    NAMES,
    NESTED,
    PRECISION,
    SEED,
    Arrays,
    Record,
    check_facts,
    either,
    under,
)

if TYPE_CHECKING:
    from typing_extensions import Self


TRANSIENT = ("lock", "path", "passed_on", "interrupted")  # what copies and pickles have anew


class Contributions(NamedTuple):
    """What the parts of a row, or of what was learned, add to one score: the explanation of a prediction.

    ``numbers`` are columns of the row, or with ``of`` "examples" examples that the learner has kept. With several
    classes the score is that of class ``favours`` less that of class ``against``.
    """

    numbers: np.ndarray
    values: np.ndarray
    weights: np.ndarray
    amounts: np.ndarray
    intercept: float
    favours: int = 1
    against: int = 0
    of: str = "features"
    value_name: str | None = None  # what the values are; None: values of features, or kernel values
    note: str | None = None  # what a reader has to know, such as that it is an approximation
    are_shares: bool = False  # the weights are shares that add up to 1, of targets


# What files say of the rows that a learner takes.
ROWS = Record(n_features_in=COUNT, feature_names_in=either(None, NAMES), seed=SEED, dtype=PRECISION)


class BaseLearner:
    """What is the same for every learner; see the module for what a new one has to add."""

    name: str
    warning: type[Warning]
    seed: Any
    dtype: np.dtype
    training: Any

    # How training runs over files treat it.
    whole: bool = False  # it learns from all rows at once, by ``fit``; more rows are added by ``learn_more``
    waits: bool = (
        False  # all rows are read before it learns from the first: it can take in neither features nor classes
    )
    usual_passes: int | None = None  # over files; None: what suits linear learners
    is_progressive: bool = True  # it counts the mistakes of each row before it learns from it
    positive_only: bool = False  # it takes no negative values
    is_linear: bool = False  # it has one weight a feature and output
    usual_features: ClassVar[dict[str, dict[str, Any]]] = {}  # parameters of extractors of "text" and "number"
    wants_sources: bool = False  # it is told by ``take_sources`` what columns are made of
    wants_columns: bool = False  # it is told by ``take_columns`` which column of a table each feature is made of

    representation: str | None = None  # of a learner with a kernel: "dual" or "primal"
    kernel: Any = None  # what compares its examples, once learning has begun, if it has a kernel

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        self.name, self.warning = self.composition.name, warning
        self._prepare(params)

    def _prepare(self, params: dict[str, Any]) -> None:
        """The learner before it has learned anything."""
        self._checked: dict[str, Any] = {}  # values of parameters that were found right
        self.configure({**self.defaults(), **params})
        self.task: Any = Classification() if self.composition.task == "classify" else Regression()
        self.training = None  # once learning has begun
        self.began_with: dict[str, Any] = {}
        self.seed, self.dtype = 0, np.dtype(np.float64)
        self.features: int = 0  # columns of the rows
        self.feature_names: FeatureNames | None = None  # what they are called
        self.separable: bool | None = None
        self.held_out: Any = None  # rows for calibration
        self._make_transient()

    def _make_transient(self) -> None:
        """What copies and pickles do not hold."""
        # One thread learns while others predict: what learns holds the lock, and so does whoever takes a hypothesis.
        self.lock: Any = threading.RLock()
        self.passed_on: Any = None  # the parameters that the estimator around it last passed on
        self.interrupted: Callable[[], bool] | None = None  # asked by a learner that is ``whole``: is it to stop?

    @cached_property
    def path(self) -> RowPath:
        """The way of single rows."""
        return RowPath(self)

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        """Which parameters it has, and what they mean."""
        raise NotImplementedError

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

    def _repr_html_(self) -> str:
        return facts_html(repr(self), self.facts())

    def facts(self) -> list[tuple[str, str]]:
        """What a notebook shows of it: what it has learned from, how many mistakes it made, its loss."""
        if self.training is None:
            return [("learned", "nothing yet")]
        made = [("examples", number(int(self.n_seen_)))]
        if hasattr(self, "n_features_in_"):  # strings and trees have no columns
            made.append(("features", number(int(self.n_features_in_))))
        if self.task.classifies:
            made.insert(0, ("classes", number_of(list(self.classes_))))
        if self.is_progressive:
            if self.task.classifies:
                share = self.n_mistakes_ / max(1, self.n_seen_)
                made.append(("mistakes", f"{self.n_mistakes_:,} ({100 * share:.3g} %)"))
            passes = self.history_["passes"]
            if passes:
                made += [("passes", number(len(passes))), ("loss of the last", number(passes[-1]["loss"]))]
        return [*made, *((name.replace("_", " "), as_line(value)) for name, value in self.described().items())]

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
            if not self._grows():
                raise ValueError(f"X has {X.shape[1]} features, but {self.name} is expecting {width} features as input")
            X = csr.of_width(X, width)  # of wider rows as far as the features are known
        positive = self.positive_only
        if finite or positive:
            csr.check_finite(X, self.feature_names if names is None else names)
        if positive:
            csr.check_positive(X, self.name)
        return X

    def _holds_out(self) -> bool:
        """Whether ``fit`` holds rows out for calibration."""
        return False

    def takes_classes(self) -> bool:
        """Whether classes that it does not know are taken in as they come."""
        return self._grows() is True

    def _grows(self) -> Any:
        """Whether it takes in classes and features (True), or features only."""
        return getattr(self.settings, "grow", False)

    @property
    def _class_weight(self) -> Any:
        return getattr(self.settings, "class_weight", None)

    def _targets(self, X: Any, y: Any, sample_weight: Any, sees_all: bool) -> tuple[np.ndarray, np.ndarray]:
        """y and the weights of the rows, checked."""
        y = self.task.check(y, X.shape[0])
        if len(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)} entries: inconsistent numbers of samples")
        return y, check_weights(sample_weight, X.shape[0], sees_all=sees_all)

    def _call_columns(self, count: int, names: Any) -> None:
        known = names is None or isinstance(names, FeatureNames)
        self.features, self.feature_names = count, names if known else FeatureNames(names, self.limit_of_names())

    def _numbers(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Class indices of labels; numbers as they are."""
        return np.asarray(self.task.numbers(y, weight))

    # ------------------------------------------------------------------ learning

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, names: list[str] | None = None) -> Self:
        """Learn from all rows, anew; with ``warm_start`` from where the last fit ended."""
        self.check()
        going_on = bool(getattr(self.settings, "warm_start", False)) and self.training is not None
        if going_on:
            refuse_changes(self.began_with, self._depends_on())
        X = self._rows(X, first=not going_on, names=names)
        y, weight = self._targets(X, y, sample_weight, sees_all=True)
        if not going_on:
            self.task = self.task.of_all(y, weight)
            self._begin(X, y, names, sees_all=True)
        numbers = self._numbers(y, weight)
        if isinstance(self._class_weight, str):
            self.task = self.task.counted(numbers, weight)
        self._learn_all(X, numbers, self.task.weighted(numbers, weight, self._class_weight))
        return self

    def _learn_all(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        """Learn from all rows; the targets are class numbers, or numbers in regression."""
        self._learn_once(X, targets, weight)

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        """Learn from rows in their order; the targets are class numbers, or numbers in regression."""
        raise ValueError(f"{self.name} learns from all rows at once: use fit")

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Any:
        """A new training for data like X."""
        self.began_with = copy.deepcopy(self._depends_on())
        self.seed = seed_of(getattr(self.settings, "random_state", 0))
        self.dtype = np.dtype(getattr(X, "dtype", np.float64))
        self._call_columns(X.shape[1], names)
        self.training = self._new_training()
        self.training.classifies = self.task.classifies
        return self.training

    def _new_training(self) -> Any:
        """A training for ``self.features`` columns and the classes of ``self.task``, which has learned nothing."""
        raise NotImplementedError

    FIXED: tuple[str, ...] = ()  # parameters that must not change while learning goes on

    def _depends_on(self) -> dict[str, Any]:
        """The parameters that must not change while learning goes on."""
        return {name: getattr(self.settings, name) for name in self.FIXED}

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
        first, grow = self.training is None, self._grows()
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
        self._learn_once(X, numbers, weight)

    def learn_one(self, x: Any, y: Any, weight: float = 1.0) -> Self:
        """Learn from one example; the state is that of ``partial_fit`` with the row, to the last bit.

        ``x`` is a row of numbers, a sparse row, or a mapping from names to numbers, Booleans (1 and 0) and strings (the
        feature ``name=string`` is 1). With ``grow``, names and classes are taken in as they come. Without, learning
        begins with labels that are Booleans, or by ``partial_fit`` with ``classes``.

        >>> from onlearn.engine.learner import Learner
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
        if not self.task.classifies or self._grows() is True:
            return {}
        if not isinstance(y, (bool, np.bool_)):
            grows = "set grow=True, or " if "grow" in self.composition.parameters else ""
            raise ValueError(
                f"the first label is {y!r}, which does not say what other classes there are: {grows}name them all by "
                "partial_fit(..., classes=...) with the first row"
            )
        return {"classes": [False, True]}

    # ------------------------------------------------------------------ runs over files

    def _start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        self.check()
        empty = csr.CSR(np.zeros(0, dtype), np.zeros(0, np.int32), np.zeros(1, np.int32), (0, features))
        self.task, self.held_out, self.separable = self.task.numbered(counts), None, None
        self._begin(empty, np.arange(len(counts)), None, sees_all=False)

    def columns_told(self) -> int:
        """How many columns ``take_sources`` told of."""
        return 0

    def take_columns(self, columns: list[str]) -> None:
        """Be told which column of a table each feature is made of."""
        raise NotImplementedError

    def take_sources(self, codes: np.ndarray, sources: list[tuple[str, str]]) -> None:
        """What the next columns are made of: places in a list of pairs, as ``FeatureMap.sources_from`` gives them."""

    def _take_in(self, features: int, classes: int) -> None:
        """Make room for features, and for classes 0 to K - 1, before they are met; for learners that grow."""
        training = self._trained()
        outputs = training.outputs
        if self._grows() is True and self.task.classifies:
            self.task, outputs = self.task.with_classes(classes), max(2, classes)
        self.features = max(features, self.features)
        training.grow(self.features, outputs)

    def _learn_rows(self, X: Any, y: Any, sample_weight: Any, order: np.ndarray, *, first: bool) -> None:
        """Learn from the rows in the given order: for passes over data that ``fit`` cannot have all at once.

        What ``partial_fit`` does is done but for growing and checking: X and y must be sound. ``first`` says that these
        rows are met for the first time, so that their scores tell something about calibration.
        """
        numbers, weight = self._numbered(y, sample_weight, order)
        self._learn_once(csr.rows_at(X, order), numbers, weight)

    def _numbered(self, y: Any, sample_weight: Any, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The targets and weights of some rows, for there may be many more in X, which come in other calls."""
        weight = np.ones(len(order)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)[order]
        check_heaviest(weight, "the weight")
        numbers = self._numbers(np.asarray(y)[order], weight)
        return numbers, self.task.weighted(numbers, weight, self._class_weight)  # by now the counts are known

    def learn_more(self, X: Any, y: np.ndarray, sample_weight: Any, *, same_rows: bool) -> None:
        """Learn from more rows, all at once; for a learner that is ``whole``.

        ``same_rows``: they are those that an unfinished run has learned from, all of them in the same order.
        """
        raise ValueError(f"{self.name} cannot go on learning: train anew")

    def _finish_run(self) -> None:
        """A run over files has learned from all its rows, in all its passes."""

    def _end_pass(self) -> None:
        """A pass is over: count it in ``history_``."""
        self._trained().end_pass()

    def keep_features(self, kept: np.ndarray) -> None:
        """Forget all features but some, which are numbered anew in the given order."""
        raise ValueError(f"{self.name} cannot let go of features")

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

    def become(self, other: Self) -> Self:
        """Take over all that another learner has learned, which is not to be used any more."""
        own = {"lock": self.lock, "path": self.path, "passed_on": None, "interrupted": None}
        with self.lock:
            self.__dict__.update({**other.__dict__, **own})
        return self

    # ------------------------------------------------------------------ what was learned

    def _trained(self) -> Any:
        if self.training is None:
            raise AttributeError(f"this {self.name} has learned nothing yet")
        return self.training

    @property
    def explained(self) -> BaseLearner:
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

    def has_squared_loss(self) -> bool:
        """Whether the loss it counts in regression is half the squared error."""
        return False

    def kept_examples(self) -> Any:
        """The examples that a learner keeps, by number, as explanations name them; None if it keeps none."""
        return None

    def example_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Weights of the examples that it keeps, one row a class (one for two classes), and intercepts; None: none."""
        return None

    def scores_before_learning(self) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Classes, scores and probabilities of examples that were scored before they were learned from, as far as they
        are kept; None if there are none."""
        return None

    def described(self) -> dict[str, Any]:
        """What the report of training and ``inspect`` tell about it, by name; plain JSON."""
        return {}

    def contributions(self, X: Any) -> Contributions:
        """The explanation of the prediction for one row."""
        raise ValueError(f"predictions of {self.name} cannot be explained")

    # ------------------------------------------------------------------ predicting

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        """Scores of checked rows by output."""
        raise NotImplementedError

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        """The output with the highest score of each row, of two or more; the first among equals."""
        return np.argmax(self._scores(X, training), axis=1)

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        """The probabilities of checked rows by class; the largest is where the score is."""
        raise AttributeError(f"{self.name} has no probabilities")

    def _answer(self, X: Any, answer: Callable[[Any, Any, Any], Any]) -> Any:
        """What ``answer(rows, task, training)`` makes of rows by the present hypothesis; others may learn meanwhile.

        Linear learners see in the scores whether a row held NaN or infinity.
        """
        with self.lock:
            task, training, width = self.task, self._trained().snapshot(), self.features
            if training is self.training:  # there is no snapshot of it: learning waits
                return answer(self._rows(X, first=False, finite=not self.is_linear), task, training)
        return answer(self._rows(X, first=False, finite=not self.is_linear, width=width), task, training)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: one a row for two classes (positive: the second), one a class for more."""
        return np.asarray(self._answer(X, lambda X, task, training: task.shaped(self._scores(X, training))))

    def predict(self, X: Any) -> np.ndarray:
        """The class of each row, on a tie the first of them; in regression the number."""
        return np.asarray(self._answer(X, self._predicted))

    def _predicted(self, X: Any, task: Any, training: Any) -> Any:
        if not task.classifies:
            return self._scores(X, training)[:, 0]
        if len(task.classes) > 2:
            return task.named(self._best(X, training))
        return task.chosen(task.shaped(self._scores(X, training)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is."""
        if not self.task.classifies:
            raise AttributeError("regression has no probabilities")
        return np.asarray(self._answer(X, self._probabilities))

    def own_probabilities(self, scores: np.ndarray) -> np.ndarray | None:
        """What scores are as probabilities before any calibration; None where that has no meaning."""
        return None

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each class; minus infinity where that is 0."""
        return logarithms(self.predict_proba(X))

    def score_one(self, x: Any) -> Any:
        """The score of one row, as of ``learn_one``: a number for two classes and in regression, else a dict by class.

        It is by what would be handed out now, at the cost of the row alone.
        """
        return self.path.score(x)

    def predict_one(self, x: Any) -> Any:
        """The class of one row, on a tie the first of them; in regression the number."""
        return self.path.predict(x)

    def predict_proba_one(self, x: Any) -> dict[Any, float]:
        """The probability of each class for one row, by class."""
        with self.lock:
            X, _ = self.path.matrix(x, learning=False)
            return dict(zip(self.classes_.tolist(), self.predict_proba(X)[0].tolist()))

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
        return made, {**{f"training.{key}": array for key, array in arrays.items()}, **more}

    def _facts(self) -> dict[str, Any]:
        """What it knows of the rows."""
        return {
            "n_features_in": int(self.features),
            "feature_names_in": None if self.feature_names is None else list(map(str, self.feature_names.names)),
            "seed": self.seed,
            "dtype": self.dtype.name,
        }

    FILED: ClassVar[Record] = Record(estimator=ROWS, training=NESTED)  # the training checks its own

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        mine = facts["estimator"]
        self.seed, self.dtype, count = mine["seed"], np.dtype(mine["dtype"]), mine["n_features_in"]
        self.features = count
        training = self._unpack_training(facts["training"], under("training.", arrays), count)
        self.check()
        names = self._unpack_names(mine["feature_names_in"], count)
        if self.task.classifies:
            self.task = Classification.unpack(facts, arrays, training)
            self.separable = facts["separable"]
        self.training = training
        self._call_columns(count, names)
        self.began_with = copy.deepcopy(self._depends_on())

    def _unpack_names(self, names: list[str] | None, count: int) -> FeatureNames | None:
        """The names of so many columns, if they have some."""
        if names is None:
            return None
        made = FeatureNames(names, self.limit_of_names(), hashed=count > max(1, len(names)))
        if count != max(1, made.width):
            raise ValueError(f"{len(names)} names do not go with {count} features")
        return made

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> Any:
        """The training that a file describes, of rows of so many features."""
        raise NotImplementedError
