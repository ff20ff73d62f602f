"""The kernel classifier: the rules, stabilizers and kinds of multiclass of the linear one, in the dual."""

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
from onlearn.dual.settings import KERNEL_CLASSIFIER
from onlearn.engine.compositions import FAMILIES, Composition
from onlearn.engine.csr import CSR
from onlearn.estimators.base import KERNEL
from onlearn.estimators.linear import MistakeDrivenClassifier
from onlearn.kernels.products import refuse_strings


class KernelClassifier(MistakeDrivenClassifier):
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

    families: ClassVar[dict[str, Any]] = {**FAMILIES, **KERNEL, "budget_policy": POLICIES}
    composition: ClassVar[Composition] = KERNEL_CLASSIFIER
    grow: bool | str = False
    _learner: DualLearner

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
        intercept_scaling: float = 1.0,
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.pairwise = kernels.get(self.kernel).data == "matrix"
        return tags

    def _new_learner(self) -> DualLearner:
        return DualLearner(warning=ConvergenceWarning)

    def _check_rows(self, X: Any, first: bool) -> tuple[Any, list[str] | None]:
        """Rows of numbers checked, with the names of their columns; other examples the learner checks."""
        kernel = kernels.get(self.kernel) if first else self._learner.kernel
        if kernel.data not in ON_NUMBERS:
            return X, None
        refuse_strings(X, kernel)
        return super()._check_rows(X, first)

    def estimate(self, X: Any) -> Estimate:
        """What ``fit`` would take on these examples in the dual, by timing the kernel on a few of them."""
        learner = DualLearner(**self._values())
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
        """What ``reduce`` lost, if it made this classifier."""
        reduction: Reduction | None = self._known("reduction")
        if reduction is None:
            raise AttributeError("this classifier was not made by reduce")
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
        """Weights of the support examples: (1, examples) for two classes, (classes, examples) for more."""
        return np.asarray(self._known("dual_coef_"))

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The scores by the hypothesis after each pass of ``fit``; needs ``keep_stages``."""
        _, X = self._fitted(X)
        return self._learner.staged_decision_function(X)

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> KernelClassifier:
        """The same classifier as weights of the kernel's features, if that is smaller or faster.

        ``representation_reason_`` of the new classifier says which. If it is neither, that is an error, unless
        ``force``. This classifier does not change, whatever the new one learns later.
        """
        check_is_fitted(self)
        return self._copy_with(self._learner.to_primal(force))

    def reduce(self, n: int, X: Any = None, y: Any = None) -> KernelClassifier:
        """A classifier with at most n support examples whose hypothesis is near this one, by projection.

        ``reduction_`` of the new classifier says how near; with X and y also what accuracy was lost on them.
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("the loss of accuracy is measured on X and y: give both, or neither")
        self._learner.configure(self._values())
        made = self._copy_with(self._learner.reduce(n))
        if X is not None:
            before, after = float(self.score(X, y)), float(made.score(X, y))
            made._learner.reduction = made.reduction_._replace(accuracy_before=before, accuracy_after=after)
        return made

    def _copy_with(self, learner: DualLearner) -> KernelClassifier:
        """A classifier that differs from this one only in its learner."""
        made = copy.copy(self)
        made._learner = learner
        return made


KernelPerceptron = KernelClassifier  # its name in textbooks
