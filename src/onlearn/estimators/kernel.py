"""The estimators with a kernel: the rules, stabilizers and kinds of multiclass of the linear ones, in the dual."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.collapse import Reduction
from onlearn.dual.estimate import Estimate
from onlearn.dual.learner import ON_NUMBERS, DualLearner
from onlearn.dual.policies import POLICIES
from onlearn.dual.regressor import DualRegressor
from onlearn.dual.settings import KERNEL_CLASSIFIER, KERNEL_REGRESSOR
from onlearn.engine.compositions import FAMILIES, Composition
from onlearn.engine.csr import CSR
from onlearn.estimators.base import KERNEL, IncrementalRegressor, LearnerEstimator
from onlearn.estimators.linear import MistakeDrivenClassifier
from onlearn.kernels.products import refuse_strings


class KernelEstimator(LearnerEstimator):
    """The part of an estimator with a kernel that is the same whatever it learns."""

    _families: ClassVar[dict[str, Any]] = {**FAMILIES, **KERNEL, "budget_policy": POLICIES}
    _kind: ClassVar[type[DualLearner]] = DualLearner
    _learner: DualLearner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.pairwise = kernels.get(self.kernel).data == "matrix"
        return tags

    def _new_learner(self) -> DualLearner:
        return self._kind(warning=ConvergenceWarning)

    def _check_rows(self, X: Any, first: bool) -> tuple[Any, list[str] | None]:
        """Rows of numbers checked, with the names of their columns; other examples the learner checks."""
        kernel = kernels.get(self.kernel) if first else self._learner.kernel
        if kernel.data not in ON_NUMBERS:
            return X, None
        refuse_strings(X, kernel)
        return super()._check_rows(X, first)

    def estimate(self, X: Any) -> Estimate:
        """What ``fit`` would take on these examples in the dual, by timing the kernel on a few of them."""
        learner = self._kind(**self._values())
        learner.check()
        return learner.estimate(self._check_rows(X, first=True)[0])

    # ------------------------------------------------------------------ what was learned

    @property
    def representation_(self) -> str:
        """ "dual" or "primal": whether it has weights of examples or of the kernel's features."""
        return str(self._known("representation"))

    @property
    def representation_reason_(self) -> str:
        """Why it is so."""
        return str(self._known("reason"))

    @property
    def reduction_(self) -> Reduction:
        """What ``reduce`` lost, if it made this."""
        reduction: Reduction | None = self._known("reduction")
        if reduction is None:
            raise AttributeError(f"this {type(self).__name__} was not made by reduce")
        return reduction

    @property
    def stopped_(self) -> str | None:
        """Why the last ``fit`` ended early, if it did."""
        stopped: str | None = self._known("stopped_")
        return stopped

    @property
    def support_examples_(self) -> Any:
        """The examples on which steps were made, in the order of their first one."""
        examples = self._known("support_examples_")
        return examples.to_scipy() if isinstance(examples, CSR) else examples

    @property
    def n_support_(self) -> int:
        """How many support examples there are."""
        return int(self._known("n_support_"))

    @property
    def dual_coef_(self) -> np.ndarray:
        """Weights of the support examples: (classes, examples), (1, examples) for two classes and in regression."""
        return np.asarray(self._known("dual_coef_"))

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> Any:
        """The same hypothesis as weights of the kernel's features, if that is smaller or faster.

        ``representation_reason_`` of the new estimator says which. If it is neither, that is an error, unless
        ``force``. This one does not change, whatever the new one learns later.
        """
        check_is_fitted(self)
        return self._copy_with(self._learner.to_primal(force))

    def reduce(self, n: int, X: Any = None, y: Any = None, by: str = "projection") -> Any:
        """An estimator with at most n support examples whose hypothesis w' is near this one's, w.

        ``by`` is "projection", w' being the projection of w onto the span of examples chosen one by one; or "weight",
        which keeps the n examples of the largest weights |alpha| as they are. That takes no time, but loses more, and
        all the more the more equal the weights are. ``reduction_`` of the new estimator says what was lost:
        |w - w'| / |w|, and with X and y the accuracy on them (in regression R2) before and after.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("the loss of accuracy is measured on X and y: give both, or neither")
        self._learner.configure(self._values())
        made = self._copy_with(self._learner.reduce(n, by))
        if X is not None:
            before, after = float(self.score(X, y)), float(made.score(X, y))
            made._learner.reduction = made.reduction_._replace(accuracy_before=before, accuracy_after=after)
        return made

    def _copy_with(self, learner: DualLearner) -> Any:
        """An estimator that differs from this one only in its learner."""
        made = copy.copy(self)
        made._learner = learner
        return made


class KernelClassifier(MistakeDrivenClassifier, KernelEstimator):
    """Learns a classifier in the feature space of a kernel, from examples one at a time.

    The hypothesis is that of the serial algorithm: a weighted sum of the kernel's values with the support examples,
    those on which a step was made. How it is computed, in blocks, does not change what is learned.

    Parameters
    ----------
    kernel : Kernel or its spelling
        For instance ``kernels.Polynomial(4)`` or ``"0.5*gaussian(2) + linear"``.
    rule, stabilizer : choices or their spelling
        How large a step an example deserves, which hypothesis is handed out.
    budget : int or None
        The most support examples there may be; None: as many as steps are made on.
    budget_policy : choice or its spelling
        What gives way when the budget is spent: "project", "merge", "remove(random)" or "remove(oldest)".
    epochs : int or None
        Passes over the data; None: until a pass makes no mistake, at most ``max_epochs``.
    cache_mb : float
        Memory for kernel values that later passes need again; those beyond are computed again.
    representation : "dual", "primal" or "auto"
        "primal" learns weights of the kernel's features, where these can be listed; "auto" measures which is cheaper
        and says so in ``representation_reason_``.
    geometry : choice or its spelling
        Additive: rate, schedule and l2 of the steps.
    time_limit : float or None
        Seconds after which ``fit`` stops with what it has learned. In the dual it does so on Ctrl-C, too.
    keep_stages : bool
        Whether ``fit`` keeps the hypothesis after each pass, for ``staged_decision_function``; not with a budget.

    The other parameters are those of `OnlineClassifier`.

    Examples
    --------
    >>> from onlearn import KernelClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0]
    >>> KernelClassifier("polynomial(2)", stabilizer="last", epochs=None, random_state=0).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    _composition: ClassVar[Composition] = KERNEL_CLASSIFIER

    def __init__(
        self,
        kernel: Any = "gaussian",
        rule: Any = "perceptron",
        stabilizer: Any = "averaged",
        budget: int | None = None,
        budget_policy: Any = "project",
        epochs: int | None = 5,
        cache_mb: float = 1024,
        multiclass: str = "auto",
        fit_intercept: bool = True,
        representation: str = "dual",
        geometry: Any = "additive",
        max_epochs: int = 1000,
        shuffle: bool = True,
        tol: float | None = None,
        class_weight: Any = None,
        time_limit: float | None = None,
        keep_stages: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        intercept_scaling: float | str = 1.0,
        calibration: Any = "auto",
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.stabilizer = stabilizer
        self.budget = budget
        self.budget_policy = budget_policy
        self.epochs = epochs
        self.cache_mb = cache_mb
        self.multiclass = multiclass
        self.fit_intercept = fit_intercept
        self.representation = representation
        self.geometry = geometry
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.tol = tol
        self.class_weight = class_weight
        self.time_limit = time_limit
        self.keep_stages = keep_stages
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling
        self.calibration = calibration

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The scores by the hypothesis after each pass of ``fit``; needs ``keep_stages``."""
        _, X = self._fitted(X)
        return self._learner.staged_decision_function(X)


KernelPerceptron = KernelClassifier  # its name in textbooks


class KernelRegressor(IncrementalRegressor, KernelEstimator):
    """Learns a regression in the feature space of a kernel, from examples one at a time.

    The hypothesis is f(x) = b + sum_i alpha_i k(x_i, x). Every example on which a step was made is a support example;
    with least squares that is nearly every one, with "pa_epsilon" those with errors above epsilon.

    Parameters
    ----------
    kernel : Kernel or its spelling
        For instance ``kernels.Polynomial(4)`` or ``"0.5*gaussian(2) + linear"``.
    rule : choice or its spelling
        "nlms", least squares by steps that correct the error of their example at once, whatever the scale of the kernel
        and of y; "pa_epsilon(0.1)", the same for errors above 0.1, to the edge of that tube; or the gradient steps
        "lms" and "epsilon", whose rate must suit the kernel: below 2 / (k(x, x) + 1) for "lms".
    stabilizer : choice or its spelling
        "averaged" hands out the mean of all hypotheses, in which noise cancels; "last" is nearer to the data.
    init : "mean" or "zeros"
        The constant to begin with: the mean of y, in a stream (``partial_fit``) the first y.
    damping : "mean" or float
        With the first two rules, errors are divided by k(x, x), but by no less than this: by default its mean over the
        examples (in a stream, over those so far). So the steps of short examples do not throw the others about.
    geometry : choice or its spelling
        Additive: ``"additive(0.5)"`` makes half steps, ``"additive(0.5, l2=0.01)"`` lets the weights decay.

    The other parameters are those of `KernelClassifier`. With the first two rules the weight of an example is the part
    of a step that is made: in ``fit`` weights are relative to the largest, in a stream those above 1 count as 1.

    Examples
    --------
    >>> import numpy as np
    >>> from onlearn import KernelRegressor
    >>> x = np.linspace(0, 10, 200)[:, None]
    >>> model = KernelRegressor(random_state=0).fit(x, np.sin(x[:, 0]))
    >>> model.score(x, np.sin(x[:, 0])) > 0.99
    True
    """

    _composition: ClassVar[Composition] = KERNEL_REGRESSOR
    _kind: ClassVar[type[DualLearner]] = DualRegressor

    def __init__(
        self,
        kernel: Any = "gaussian",
        rule: Any = "nlms",
        stabilizer: Any = "averaged",
        budget: int | None = None,
        budget_policy: Any = "project",
        epochs: int | None = 10,
        cache_mb: float = 1024,
        fit_intercept: bool = True,
        representation: str = "dual",
        geometry: Any = "additive",
        init: str = "mean",
        damping: float | str = "mean",
        max_epochs: int = 1000,
        shuffle: bool = True,
        tol: float | None = None,
        time_limit: float | None = None,
        keep_stages: bool = False,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        intercept_scaling: float | str = 1.0,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.stabilizer = stabilizer
        self.budget = budget
        self.budget_policy = budget_policy
        self.epochs = epochs
        self.cache_mb = cache_mb
        self.fit_intercept = fit_intercept
        self.representation = representation
        self.geometry = geometry
        self.init = init
        self.damping = damping
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.tol = tol
        self.time_limit = time_limit
        self.keep_stages = keep_stages
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.intercept_scaling = intercept_scaling

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """The predictions by the hypothesis after each pass of ``fit``; needs ``keep_stages``."""
        _, X = self._fitted(X)
        return self._learner.staged_decision_function(X)
