"""Support vector machines with scikit-learn's manners: ``SVC`` for classes, ``SVR`` for numbers."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlearn import data, kernels
from onlearn.dual.collapse import Reduction
from onlearn.dual.learner import ON_NUMBERS
from onlearn.engine import inputs
from onlearn.engine.compositions import Composition
from onlearn.engine.csr import CSR
from onlearn.estimators.base import KERNEL, LearnerClassifier, LearnerEstimator, LearnerRegressor
from onlearn.kernels.products import refuse_strings
from onlearn.svm import settings
from onlearn.svm.base import SVMLearner
from onlearn.svm.learner import SVCLearner, SVRLearner
from onlearn.svm.path import Validation
from onlearn.svm.probabilities import CALIBRATIONS
from onlearn.svm.report import Report


class SVMEstimator(LearnerEstimator):
    """What ``SVC`` and ``SVR`` share."""

    _families: ClassVar[dict[str, Any]] = KERNEL
    _learner_type: ClassVar[type[SVMLearner]] = SVMLearner
    kernel: Any
    _learner: SVMLearner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.pairwise = kernels.get(self.kernel).data == "matrix"
        return tags

    def _new_learner(self) -> SVMLearner:
        return self._learner_type(warning=ConvergenceWarning)

    def _check_rows(self, X: Any, first: bool) -> tuple[Any, list[str] | None]:
        """Rows of numbers checked, with the names of their columns; other examples the learner checks."""
        kernel = kernels.get(self.kernel) if first else self._learner.kernel
        if kernel.data not in ON_NUMBERS:
            return X, None
        refuse_strings(X, kernel)
        return super()._check_rows(X, first)

    # ------------------------------------------------------------------ data larger than memory

    def fit_reader(self, source: Any, **reading: Any) -> Any:
        """Learn in chunks from rows that are read again in each sweep: of the rows, ``chunk_size`` (by default 10,000)
        and the support vectors are in memory, of targets and weights all.

        ``source`` is what ``onlearn.data.read`` takes, with its options, or its reader; or something that can be
        iterated again and again over its batches, or over tuples of rows, targets and (if they have some) weights; or
        a function that returns such an iterator.

        >>> from onlearn import SVC
        >>> parts = [([[0.0], [1.0]], [0, 1]), ([[0.2], [0.8]], [0, 1])]
        >>> SVC(C=100, chunk_size=2).fit_reader(parts).predict([[0.1], [0.9]])
        array([0, 1])
        """
        learner = self._new_learner()
        learner.configure(self._values())
        learner.check()
        parts = Parts(source, {"task": self._composition.task, **reading})
        y, weight = parts.targets()
        learner.fit_blocks(parts.rows, self._check_targets(y), weight)
        self._learner = learner
        return self

    # ------------------------------------------------------------------ values of C

    def path(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None) -> list[Any]:
        """A fitted estimator for each value of C, in their order.

        They are solved from the smallest C on, each starting from the one before, with kernel values that all share.
        """
        learner = self._new_learner()
        learner.configure(self._values())
        learner.check()
        X, names = self._check_rows(X, first=True)
        found = learner.path_of(X, self._check_targets(y), Cs, sample_weight, names)
        return [self._copy_with(one).set_params(C=one.settings.C) for one in found]

    def cross_validate(self, X: Any, y: Any, Cs: Any, folds: Any = 5, sample_weight: Any = None) -> Validation:
        """The errors of values of C, each by cross-validation: ``errors`` (values of C x folds), ``mean``, ``best_C``.

        ``folds`` is how many folds there are (of each class all have about as many rows, at random by
        ``random_state``), or the fold of each row. All folds and values of C share the kernel values.
        """
        learner = self._new_learner()
        learner.configure(self._values())
        learner.check()
        X, _ = self._check_rows(X, first=True)
        return learner.cross_validate(X, self._check_targets(y), Cs, folds, sample_weight)

    # ------------------------------------------------------------------ what was learned

    @property
    def report_(self) -> Report:
        """What solving did: iterations, objective, duality gap, largest KKT violation, support vectors that are free
        and at C, margin, seconds, memory, and why it stopped; of each problem in ``problems``."""
        report: Report = self._known("report_")
        return report

    @property
    def stopped_(self) -> str | None:
        """Why ``fit`` stopped before it converged, if it did."""
        stopped: str | None = self._known("stopped_")
        return stopped

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, in all problems."""
        return int(self._known("n_iter_"))

    @property
    def support_(self) -> np.ndarray:
        """The rows of the support vectors in the data of ``fit``; -1 for those of other data."""
        return np.asarray(self._known("support_"))

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, in the order of ``support_``."""
        examples = self._known("support_examples_")
        return examples.to_scipy() if isinstance(examples, CSR) else examples

    support_examples_ = support_vectors_  # what a learner with a kernel calls them

    @property
    def n_support_(self) -> np.ndarray:
        """How many support vectors there are of each class; in regression in all."""
        return np.asarray(self._known("n_support_"))

    @property
    def dual_coef_(self) -> np.ndarray:
        """a_i y_i of the support vectors, one row a problem."""
        return np.asarray(self._known("dual_coef_"))

    @property
    def reduction_(self) -> Reduction:
        """What ``reduce`` lost, if it made this estimator."""
        reduction: Reduction | None = self._known("training").reduction
        if reduction is None:
            raise AttributeError("this estimator was not made by reduce")
        return reduction

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> Any:
        """The same with weights of the kernel's features, if it is smaller or faster, or ``force``; else an error."""
        check_is_fitted(self)
        return self._copy_with(self._learner.to_primal(force))

    def reduce(self, n: int, X: Any = None, y: Any = None, by: str = "projection") -> Any:
        """An estimator with at most n support vectors whose hypothesis w' is near this one's, w.

        ``by`` is "projection", w' being the projection of w onto the span of support vectors chosen one by one; or
        "weight", which keeps those of the largest weights as they are. ``reduction_`` of the new estimator says what
        was lost: |w - w'| / |w|, and with X and y the score on them before and after.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("the loss of accuracy is measured on X and y: give both, or neither")
        made = self._copy_with(self._learner.reduce(n, by))
        if X is not None:
            before, after = float(self.score(X, y)), float(made.score(X, y))
            training = made._learner.training
            training.reduction = training.reduction._replace(accuracy_before=before, accuracy_after=after)
        return made

    def _copy_with(self, learner: SVMLearner) -> Any:
        """An estimator that differs from this one only in its learner."""
        made = copy.copy(self)
        made._learner = learner
        return made


class Parts:
    """Rows that come in parts, from a source that is gone through again for each sweep."""

    def __init__(self, source: Any, reading: dict[str, Any]) -> None:
        self.source, self.reading = source, reading
        self.width = 0  # of sparse rows, of which a part may know only some columns
        if isinstance(source, Iterator) and not isinstance(source, data.Reader):
            raise TypeError(
                "the rows are read once for each sweep, and an iterator gives them only once: pass the files, a list "
                "of parts, or a function that returns an iterator"
            )

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Rows, targets and weights of each part."""
        if callable(self.source):
            yield from map(_part, self.source())
        elif isinstance(self.source, data.Reader):
            with self.source.again() as reader:
                yield from map(_part, reader)
        elif isinstance(self.source, (str, os.PathLike)) or _are_files(self.source):
            with data.read(self.source, **self.reading) as reader:
                yield from map(_part, reader)
        else:
            yield from map(_part, self.source)

    def targets(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of all rows; finds out about the width of the rows."""
        found = [(y, weight, rows.shape[0] if hasattr(rows, "shape") else len(rows)) for rows, y, weight in self._met()]
        if not found:
            raise ValueError("there are no rows to learn from")
        y = np.concatenate([np.asarray(y) for y, _, _ in found])
        if y.dtype == object and all(isinstance(one, str) for one in y):
            y = y.astype(str)
        if all(weight is None for _, weight, _ in found):
            return y, None
        return y, np.concatenate([np.ones(n) if weight is None else np.asarray(weight) for _, weight, n in found])

    def _met(self) -> Iterator[tuple[Any, Any, Any]]:
        for rows, y, weight in self:
            if isinstance(rows, CSR):
                self.width = max(self.width, rows.shape[1])
            yield rows, y, weight

    def rows(self) -> Iterator[Any]:
        """The rows of each part."""
        for rows, _, _ in self:
            yield rows.of_width(self.width) if isinstance(rows, CSR) else rows


def _are_files(source: Any) -> bool:
    return (
        isinstance(source, (list, tuple))
        and bool(source)
        and all(isinstance(one, (str, os.PathLike)) for one in source)
    )


def _part(part: Any) -> tuple[Any, Any, Any]:
    """Rows, targets and weights of a batch or a tuple."""
    if isinstance(part, data.Batch):
        rows, y, weight = part.parsed, part.y, part.weight
        if isinstance(rows, data.Sentences) or hasattr(rows, "prefixes"):
            raise TypeError("rows of named features or sentences have no columns of numbers: use onlearn.train")
    else:
        rows, y, weight = (*part, None)[:3]
    rows = CSR.of(rows) if hasattr(rows, "tocsr") else inputs.plain_table(rows)
    return (np.asarray(rows, dtype=np.float64) if _is_rows(rows) else rows), y, weight


def _is_rows(rows: Any) -> bool:
    """Whether these are rows of numbers in lists, or of whole numbers."""
    if isinstance(rows, np.ndarray):
        return rows.dtype.kind in "biu"
    return isinstance(rows, (list, tuple)) and bool(rows) and not isinstance(rows[0], (str, bytes, tuple))


def _has_probabilities(estimator: SVC) -> bool:
    learner = estimator.__dict__.get("_learner")
    if learner is not None and learner.training.hypothesis is not None:
        return bool(len(learner.training.curves))
    return CALIBRATIONS.get(estimator.calibration).name != "none"


class SVC(SVMEstimator, LearnerClassifier):
    """The support vector machine with a soft margin, in the feature space of a kernel.

    It maximises sum_i a_i - 1/2 sum_ij a_i a_j y_i y_j k(x_i, x_j) subject to 0 <= a_i <= C_i, and with an intercept
    sum_i a_i y_i = 0. C_i is C times the weights of the example and of its class.

    Parameters
    ----------
    kernel : Kernel or its formula
        For instance ``"gaussian(gamma=0.1)"``, ``kernels.Polynomial(4)`` or ``"0.5*gaussian(2) + linear"``.
    C : float
        The price of an example within the margin, or on the wrong side.
    solver : "smo", "ascent" or "qp"
        Pairs of variables; single variables one after another, which goes without an intercept only; or a QP package,
        by ``qpsolvers``.
    fit_intercept : bool or "auto"
        Whether there is an intercept; "auto": unless the solver is "ascent".
    multiclass : "one-vs-one" or "one-vs-all"
        How three or more classes are learned.
    tol : float
        The largest violation of the KKT conditions to stop at.
    max_iter : int or None
        The most iterations for a problem of two classes.
    time_limit : float or None
        Seconds after which ``fit`` stops with what it has; it does so on Ctrl-C, too.
    cache_mb : float
        Memory for kernel values.
    chunk_size, chunk_keep : int or None
        Examples that are learned from at a time, beside the support vectors (None: all at once), and how many support
        vectors are kept, those of the largest weights (None: all).
    class_weight : dict, "balanced" or None
        Multiplies C for the examples of a class.
    calibration : "loo", "cv(5)" or "none"
        Which scores the probabilities are fitted to: those of examples left out one by one, estimated from the
        solution; of cross-validation; or there are no probabilities.
    random_state : int, RandomState or None
        What folds and samples for the probabilities depend on; the solution does not.
    verbose : int
        Above 0: show progress.

    Examples
    --------
    >>> from onlearn import SVC
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> SVC("polynomial(2)", C=100).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    _families: ClassVar[dict[str, Any]] = {**KERNEL, "calibration": CALIBRATIONS}
    _composition: ClassVar[Composition] = settings.SVC
    _learner_type: ClassVar[type[SVMLearner]] = SVCLearner

    def __init__(
        self,
        kernel: Any = "gaussian",
        C: float = 1.0,
        solver: str = "smo",
        fit_intercept: Any = "auto",
        multiclass: str = "one-vs-one",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        cache_mb: float = 1024,
        chunk_size: int | None = None,
        chunk_keep: int | None = None,
        class_weight: Any = None,
        calibration: Any = "loo",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.multiclass = multiclass
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_mb = cache_mb
        self.chunk_size = chunk_size
        self.chunk_keep = chunk_keep
        self.class_weight = class_weight
        self.calibration = calibration
        self.random_state = random_state
        self.verbose = verbose

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class; the largest is where ``predict`` is. Not with ``calibration="none"``."""
        return super().predict_proba(X)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of the probability of each class. Not with ``calibration="none"``."""
        return super().predict_log_proba(X)


class SVR(SVMEstimator, LearnerRegressor):
    """Support vector regression: the flattest function of a kernel's feature space within epsilon of most examples.

    It minimises 1/2 |w|^2 + sum_i C_i max(0, |f(x_i) - y_i| - epsilon). C_i is C times the weight of the example.

    Parameters
    ----------
    kernel : Kernel or its formula
        For instance ``"gaussian(gamma=0.1)"``, ``kernels.Polynomial(4)`` or ``"0.5*gaussian(2) + linear"``.
    C : float
        The price of an error beyond epsilon.
    epsilon : float
        Errors up to this are none.

    The other parameters are those of `SVC`.

    Examples
    --------
    >>> import numpy as np
    >>> from onlearn import SVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> SVR(C=100, epsilon=0.01).fit(X, np.sin(X[:, 0])).predict([[1.5]]).round(2)
    array([1.])
    """

    _composition: ClassVar[Composition] = settings.SVR
    _learner_type: ClassVar[type[SVMLearner]] = SVRLearner

    def __init__(
        self,
        kernel: Any = "gaussian",
        C: float = 1.0,
        epsilon: float = 0.1,
        solver: str = "smo",
        fit_intercept: Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        time_limit: float | None = None,
        cache_mb: float = 1024,
        chunk_size: int | None = None,
        chunk_keep: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_mb = cache_mb
        self.chunk_size = chunk_size
        self.chunk_keep = chunk_keep
        self.random_state = random_state
        self.verbose = verbose
