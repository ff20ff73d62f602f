"""The kernel classifier: the rules, stabilizers and kinds of multiclass of the linear one, in the dual."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.budget import BudgetTraining
from onlearn.dual.collapse import Choice, choose, dual_certificate, judge_sample
from onlearn.dual.examples import Examples, check_examples
from onlearn.dual.learner import ON_NUMBERS, Estimated, Filed, InPasses, OwnsKernel, own, report_estimate
from onlearn.dual.policies import POLICIES
from onlearn.dual.scores import dual_scores, staged_scores
from onlearn.dual.supports import SupportSet, SupportSlots
from onlearn.dual.training import DualTraining, stop_on_ctrl_c
from onlearn.engine.labels import encode
from onlearn.engine.settings import FAMILIES
from onlearn.estimators.kernel_base import KernelBase, Settled, is_number
from onlearn.estimators.smaller_forms import SmallerForms
from onlearn.kernels.products import in_precision, refuse_strings

# ----------------------------------------------------------------------------------------------------
# What learning in the dual began with, and holds to: a kernel's feature space means nothing in another's.


FIXED = ("representation", "keep_stages")


class SettledKernel(Settled):
    """The part of a kernel classifier that refuses to go on learning with other parameters than it began with."""

    kernel: Any
    budget: int | None

    def _settings(self) -> dict[str, Any]:
        settings = {"kernel": own(kernels.get(self.kernel)), "budget": self.budget, **super()._settings()}
        if self.budget is not None:
            settings["budget_policy"] = self._choices()["budget_policy"]
        return {**settings, **{name: getattr(self, name) for name in FIXED}}


REPRESENTATIONS = ("dual", "primal", "auto")


class KernelClassifier(Estimated, InPasses, Filed, SettledKernel, SmallerForms, OwnsKernel, KernelBase):
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

    families: ClassVar = {**FAMILIES, "budget_policy": POLICIES}
    grow = False
    _training: Any  # a DualTraining, or in the primal a Training
    representation_: str

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

    init = "zeros"

    # ------------------------------------------------------------------ parameters

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            tags.input_tags.pairwise = kernels.get(self.kernel).data == "matrix"
        return tags

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.representation not in REPRESENTATIONS:
            raise ValueError(f"representation must be 'dual', 'primal' or 'auto', not {self.representation!r}")
        if not (is_number(self.cache_mb) and 0 <= self.cache_mb < np.inf):
            raise ValueError(f"cache_mb must be a number of at least 0, not {self.cache_mb!r}")
        if self.time_limit is not None and not (is_number(self.time_limit) and self.time_limit > 0):
            raise ValueError(f"time_limit must be a number of seconds above 0, or None, not {self.time_limit!r}")
        counted = isinstance(self.budget, Integral) and not isinstance(self.budget, bool)
        if self.budget is not None and not (counted and self.budget >= 1):
            raise ValueError(f"budget must be a whole number of at least 1, or None, not {self.budget!r}")
        POLICIES.get(self.budget_policy)
        if self.budget is not None and self.keep_stages:
            raise ValueError("keep_stages has no use with a budget: earlier hypotheses are lost with their examples")
        if self.intercept_scaling == "radius":
            raise ValueError("intercept_scaling must be a number: the radius of the data depends on the kernel")
        geometry = self._choices()["geometry"]
        if geometry.name != "additive" or geometry.l1:
            raise ValueError(
                f"a kernel classifier learns additively, without l1: its weights belong to examples, not features; "
                f"{geometry!r} is not for it"
            )

    # ------------------------------------------------------------------ input

    def _check_rows(self, X: Any, reset: bool, finite: bool = True) -> Any:
        """The rows, checked, as the representation at hand learns from them."""
        if reset:
            self._kernel = own(kernels.get(self.kernel))  # which somebody may change
        if self._kernel.data in ON_NUMBERS:
            refuse_strings(X, self._kernel)
            raw = super()._check_rows(X, reset, True)
            if not reset and self.representation_ == "dual":  # one precision for all, that of the first examples
                raw = in_precision(raw, self._dtype)
        else:
            raw = check_examples(X, self._kernel)
            if not reset and getattr(raw, "dtype", None) in (np.float32, np.float64):
                raw = in_precision(raw, self._dtype)
        if reset:
            if self._kernel.data == "matrix" and raw.shape[0] != raw.shape[1]:
                raise ValueError(
                    f"{self._kernel}: X has {raw.shape[0]} rows and {raw.shape[1]} columns, but the matrix to learn "
                    "from must be square, with a column for each row's example"
                )
            points = self._points(raw)
            self._check_kernel(points)
            chosen = self._choose(raw, points)
            self.representation_, self.representation_reason_ = chosen.name, chosen.reason
        elif self.representation_ == "dual":
            points = self._points(raw)
        if self.representation_ == "primal":
            return self._kernel.features(raw)
        return Examples(raw, points, raw.shape[1] if hasattr(raw, "shape") else 1)

    def _check_kernel(self, points: Any) -> None:
        """Warn of a function that is not a kernel on these examples; refuse one that is not even symmetric."""
        if self._kernel.always_psd:
            return
        verdict = judge_sample(self._kernel, points)
        if not verdict.symmetric:
            raise ValueError(f"{verdict}; a classifier cannot learn with it")
        if not verdict:
            warnings.warn(f"{verdict}; what theory says of kernels need not hold", UserWarning, stacklevel=6)

    def _points(self, raw: Any) -> Any:
        """The examples as the kernel wants to see them; a budget makes for few kernel values."""
        return self._kernel.quick_points(raw) if self.budget is None else self._kernel.points(raw)

    def _choose(self, raw: Any, points: Any) -> Choice:
        if self.representation == "dual":
            return Choice("dual", "asked for")
        if self.budget is not None:
            if self.representation == "primal":
                raise ValueError("a budget is for the dual: with representation='primal' there are no support examples")
            return Choice("dual", "a budget was given")
        return choose(self._kernel, raw, points, self.epochs or 5, forced=self.representation == "primal")

    def _start(self, X: Any, targets: Any, output: str | None, outputs: int, sees_all: bool) -> Any:
        if self.representation_ == "primal":
            return super()._start(X, targets, output, outputs, sees_all)
        self._settle()
        choices = self._choices()
        random = check_random_state(self.random_state)
        whole = isinstance(self.random_state, Integral)
        self._seed = int(self.random_state) if whole else int(random.randint(2**31 - 1))
        bias = self._constant_feature(getattr(X, "points", None))
        parts = choices["rule"], choices["geometry"], choices["stabilizer"]
        if self.budget is not None:
            if self._kernel.data == "matrix":
                raise ValueError("a budget needs the examples themselves; a precomputed matrix has them all at hand")
            limited = BudgetTraining(*parts, output, 0, outputs, bias)
            limited.set_budget(int(self.budget), choices["budget_policy"], self._seed)
            training: DualTraining = limited.attach(SupportSlots(self._kernel, int(self.budget)))
        else:
            training = DualTraining(*parts, output, 0, outputs, bias).attach(SupportSet(self._kernel))
        training.stages = [] if self.keep_stages else None
        return training

    def _constant_feature(self, points: Any) -> float:
        """The feature that the intercept is the weight of, in the units of the kernel's if these are known yet."""
        size = float(self.intercept_scaling) if self.fit_intercept else 0.0
        return size if points is None else size * 2.0 ** (-0.5 * self._kernel.halvings(points))

    # ------------------------------------------------------------------ learning

    def _codes(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        labels = y if weight.all() else np.where(weight > 0, y, self.classes_[0])
        return encode(labels, self.classes_, grows=False)

    def _pass_over(self, X: Any, y: np.ndarray, weight: np.ndarray) -> bool | None:
        training = self._training
        training.deadline = None if self.time_limit is None else time.monotonic() + self.time_limit
        try:
            if self.representation_ == "primal":
                return super()._pass_over(X, y, weight)
            return self._pass_in_blocks(X, y, weight)
        finally:
            training.deadline = None  # it is that of this fit

    def _pass_in_blocks(self, X: Any, y: np.ndarray, weight: np.ndarray) -> bool | None:
        training = self._training
        self.release_rows()
        later = (self.epochs or self.max_epochs) > 1
        telling = report_estimate(training, self._estimate(X), type(self).__name__) if self.verbose else nullcontext()
        scores = training.prepare(X, int(self.cache_mb * 2**20) if later else 0)
        scores.find_supports()  # with warm_start, they may be the rows of the last fit
        with stop_on_ctrl_c(training), telling:
            return super()._pass_over(scores, y, weight)

    def _learn_once(self, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        if self.representation_ == "dual":
            if self._kernel.data == "matrix" and self._training.n_seen:
                raise ValueError("a precomputed matrix is learned from at once: which columns are these rows'?")
            self.release_rows()
            scores = self._training.prepare(X, 0)
            with stop_on_ctrl_c(self._training):
                self._training.learn(scores, y, weight, np.arange(len(y)))
            if self._training.stopped:
                raise KeyboardInterrupt
        else:
            super()._learn_once(X, y, weight)

    # ------------------------------------------------------------------ what was learned

    @property
    def stopped_(self) -> str | None:
        """Why the last ``fit`` ended early, if it did."""
        return self._fitted_training("stopped_").stopped

    @property
    def support_examples_(self) -> Any:
        """The examples on which steps were made, in the order of their first one."""
        return self._dual("support_examples_").supports.examples()

    @property
    def n_support_(self) -> int:
        """How many support examples there are."""
        return len(self._dual("n_support_").supports)

    @property
    def dual_coef_(self) -> np.ndarray:
        """Weights of the support examples: (1, examples) for two classes, (classes, examples) for more."""
        self._dual("dual_coef_")
        return np.array(self._per_class(self._weights()[0]).T)

    @property
    def coef_(self) -> np.ndarray:
        if self.__dict__.get("representation_") == "dual":
            raise AttributeError(
                "in the dual there are weights of examples, dual_coef_; to_primal() makes those of features"
            )
        return super().coef_

    def _dual(self, name: str) -> DualTraining:
        training = self._fitted_training(name)
        if not isinstance(training, DualTraining):
            raise AttributeError(f"there is no {name} in the primal, where nothing is kept but weights: coef_")
        return training

    def _row_scores(self, X: Any, rows: np.ndarray) -> np.ndarray:
        if self.representation_ == "primal":
            return super()._row_scores(X, rows)
        return dual_scores(self._training, X.points.take(rows))

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        if self.representation_ == "primal":
            return super()._scores(X)
        return dual_scores(self._training, self._check_rows(X, reset=False).points)

    def _best_outputs(self, X: Any) -> np.ndarray:
        return np.argmax(self._scores(X), axis=1) if self.representation_ == "dual" else super()._best_outputs(X)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The scores by the hypothesis after each pass of ``fit``; needs ``keep_stages``."""
        check_is_fitted(self)
        stages = self._dual("staged_decision_function").stages
        if stages is None:
            raise ValueError(
                "the hypotheses after each pass were not kept: set keep_stages before fit (what reduce makes has none)"
            )
        if self._training.stabilizer.every_hypothesis:
            raise ValueError("a voted learner is all of its hypotheses at once; stages are for the other stabilizers")
        if not stages:
            raise ValueError(
                "there is no stage yet: one is the hypothesis after a pass of fit, and partial_fit has none"
            )
        for scores in staged_scores(self._training, self._check_rows(X, reset=False).points, stages):
            yield self._shape(scores)

    # ------------------------------------------------------------------ what theory says

    def certificate(self, X: Any, y: Any) -> Any:
        """What theory promises in the feature space of the kernel for these examples; two classes only."""
        check_is_fitted(self)
        if self.representation_ == "primal":
            certificate = super().certificate(X, y)
        else:
            data = self._check_rows(X, reset=False)
            y = self._check_labels(data, y)
            if len(self.classes_) != 2:
                raise ValueError(f"a certificate is for two classes; this learner has {len(self.classes_)}")
            codes = encode(y, self.classes_, grows=False)
            certificate = dual_certificate(self._training, data.points, np.where(codes == 1, 1.0, -1.0))
            certificate = self._if_trained_on(certificate, len(codes))
        if self._settled["budget"] is None:
            return certificate
        return certificate.beyond_theory("there was a budget, and the proof is for learners that keep all they learned")


KernelPerceptron = KernelClassifier  # its name in textbooks
