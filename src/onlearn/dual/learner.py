"""The learner with a kernel: a ``Learner`` whose weights belong to support examples, or to the kernel's features.

Of a linear learner it has the labels, the passes, the calibration and the settings. Its examples are rows, strings or
trees, as the kernel takes them. ``representation`` says what it learns: "dual", weights of support examples, or
"primal", weights of the features of the kernel, as a linear learner does. It learns classes; numbers are learned by
``regressor.DualRegressor``.

In a run over files it learns from rows that it is given once, pass after pass. A support example is a row as it was
when it was learned from, so all rows have their final width before the first is learned from, and stay in memory. A run
that is interrupted goes on bit for bit, so the model file holds the sums of its rows as they are rounded.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from onlearn import kernels
from onlearn.dual.budget import BUDGET, BudgetTraining
from onlearn.dual.collapse import (
    Reduction,
    check_kernel,
    choose,
    collapse,
    dual_certificate,
    reduce_supports,
    worth_collapsing,
)
from onlearn.dual.estimate import Estimate, estimate, report_estimate
from onlearn.dual.examples import Examples, check_examples
from onlearn.dual.policies import POLICIES
from onlearn.dual.scores import dual_scores, staged_scores
from onlearn.dual.settings import KERNEL_CLASSIFIER
from onlearn.dual.supports import SupportSet, SupportSlots
from onlearn.dual.training import DualTraining, TrainingSet, stop_on_ctrl_c
from onlearn.engine.compositions import Composition, seed_of
from onlearn.engine.learner import Learner
from onlearn.engine.scoring import hypothesis
from onlearn.engine.training import Training
from onlearn.kernels.formula import copied
from onlearn.kernels.products import in_precision, refuse_strings
from onlearn.model_schema import (
    COUNT,
    FINITE,
    NESTED,
    TEXT,
    TRUTH,
    Arrays,
    OrMissing,
    Record,
    check_facts,
    either,
    one_of,
    under,
)

if TYPE_CHECKING:
    from typing_extensions import Self

ON_NUMBERS = ("vectors", "matrix")  # kinds of data that have columns
FIXED = ("budget", "representation", "keep_stages")  # parameters that must not change while learning goes on

REDUCTION = Record(
    before=COUNT, after=COUNT, lost=FINITE, accuracy_before=either(None, FINITE), accuracy_after=either(None, FINITE),
    by=TEXT,
)  # fmt: skip
# What files say of a learner with a kernel, besides what they say of every learner.
DUAL = Record(
    representation=one_of("dual", "primal"),
    reason=TEXT,
    kernel=NESTED,
    kernel_as_text=OrMissing(TRUTH),
    stopped=OrMissing(TEXT),
    reduction=OrMissing(REDUCTION),
    budget=OrMissing(BUDGET),
    standing=OrMissing(Record(seen=COUNT, passes=COUNT, form=OrMissing(one_of("gram")))),
)

Packed = tuple[dict[str, Any], dict[str, np.ndarray]]


class DualLearner(Learner):
    """A classifier in the feature space of a kernel.

    >>> X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> DualLearner(kernel="polynomial(2)", stabilizer="last", epochs=None, random_state=0).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    kind: ClassVar[Composition] = KERNEL_CLASSIFIER
    is_linear = False

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        super().__init__(self.kind.name, warning=warning, **params)
        self.kernel: Any = None  # the kernel that it learns with, once learning has begun
        self.reason = ""  # for the representation
        self.reduction: Reduction | None = None  # if it was made by ``reduce``
        self.current: TrainingSet | None = None  # the rows of a run that is not over
        self.saved: Packed | None = None  # the same as it was read from a file

    # ------------------------------------------------------------------ parameters

    @property
    def composition(self) -> Composition:
        return self.kind

    def check(self) -> None:
        super().check()
        settings, geometry = self.settings, self.choices["geometry"]
        limit = settings.time_limit
        number = isinstance(limit, Real) and not isinstance(limit, bool)
        if limit is not None and not (number and float(limit) > 0):
            raise ValueError(f"time_limit must be {self.composition.own['time_limit'].allowed}, not {limit!r}")
        if settings.budget is not None and settings.keep_stages:
            raise ValueError("keep_stages has no use with a budget: earlier hypotheses are lost with their examples")
        if geometry.name != "additive" or geometry.l1:
            raise ValueError(
                f"a learner with a kernel learns additively, without l1: its weights belong to examples, not features; "
                f"{geometry!r} is not for it"
            )

    def _depends_on(self) -> dict[str, Any]:
        fixed = {name: getattr(self.settings, name) for name in FIXED}
        policy = {} if fixed["budget"] is None else {"budget_policy": self.choices["budget_policy"]}
        return {"kernel": copied(self.settings.kernel), **super()._depends_on(), **fixed, **policy}

    # ------------------------------------------------------------------ examples

    def takes_objects(self) -> bool:
        return kernels.get(self.settings.kernel).data not in ON_NUMBERS

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        """``Examples``, or in the primal rows of the kernel's features."""
        if first:
            self.kernel = copied(self.settings.kernel)
        if self.kernel.data in ON_NUMBERS:
            refuse_strings(X, self.kernel)
            raw = super()._rows(X, first, True, names, width)
        else:
            raw = check_examples(X, self.kernel)
        if first:
            points = self._first_points(raw)
        elif self.representation == "dual":
            if getattr(raw, "dtype", None) in (np.float32, np.float64):
                raw = in_precision(raw, self.dtype)  # that of the first examples
            points = self._points(raw)
        if self.representation == "primal":
            return self.kernel.features(raw)
        return Examples(raw, points, raw.shape[1] if hasattr(raw, "shape") else 1)

    def _first_points(self, raw: Any) -> Any:
        """The first examples as the kernel takes them; chooses the representation."""
        if self.kernel.data == "matrix" and raw.shape[0] != raw.shape[1]:
            raise ValueError(
                f"{self.kernel}: X has {raw.shape[0]} rows and {raw.shape[1]} columns, but the matrix to learn "
                "from must be square, with a column for each row's example"
            )
        self.features = raw.shape[1] if self.kernel.data in ON_NUMBERS else 0
        points = self._points(raw)
        check_kernel(self.kernel, points)
        self.representation, self.reason = choose(self.kernel, raw, points, self.settings)
        return points

    def _rows_to_fit(self, X: Any, sample_weight: Any, names: Any, going_on: bool) -> tuple[Any, bool]:
        return self._rows(X, first=not going_on, names=names), self.representation == "dual"

    def _points(self, raw: Any) -> Any:
        """The examples as the kernel takes them; with a budget few kernel values are computed."""
        return self.kernel.quick_points(raw) if self.settings.budget is None else self.kernel.points(raw)

    def estimate(self, X: Any) -> Estimate:
        """The time and memory that ``fit`` would take on these examples in the dual, by timing the kernel on a few."""
        fresh = type(self)(**{**self.get_params(), "representation": "dual"})
        fresh.check()
        return fresh._estimate(fresh._rows(X, first=True), outputs=1)

    def _estimate(self, X: Examples, outputs: int) -> Estimate:
        settings = self.settings
        passes = settings.epochs or min(10, settings.max_epochs)
        return estimate(self.kernel, X.points, passes, self._cache_bytes, outputs, settings.budget)

    @property
    def _cache_bytes(self) -> int:
        return int(self.settings.cache_mb * 2**20)

    # ------------------------------------------------------------------ learning

    def _begin(self, X: Any, y: np.ndarray, names: Any, sees_all: bool) -> Training:
        width = self.features  # of the examples, whatever features the kernel makes of them
        if self.representation == "primal":
            training = super()._begin(X, y, names, sees_all)
        else:
            training = self._begin_dual(X, sees_all)
        self._call_columns(width, names)
        return training

    def _begin_dual(self, X: Any, sees_all: bool) -> DualTraining:
        """A new training in the dual; X may have no examples yet."""
        settings, choices = self.settings, self.choices
        self.began_with = {name: copy.copy(one) for name, one in self._depends_on().items()}
        self.seed = seed_of(settings.random_state)
        output, outputs = self._outputs()
        bias = self._constant_feature(X.points if isinstance(X, Examples) else None, sees_all)
        if settings.budget is not None and self.kernel.data == "matrix":
            raise ValueError("a budget needs the examples themselves; a precomputed matrix has them all at hand")
        training = self._empty_training(
            choices["rule"], choices["geometry"], choices["stabilizer"], output, 0, outputs, bias
        )
        self.training, self.dtype = training, np.dtype(X.dtype)
        return training

    def _outputs(self) -> tuple[str | None, int]:
        """The kind of multiclass, if it is one, and how many outputs there are."""
        output, outputs = self.task.outputs(self.choices["rule"], self.settings.multiclass, False)
        return output, outputs

    def _empty_training(self, *parts: Any) -> DualTraining:
        """A training in the dual without support examples."""
        budget = self.settings.budget
        if budget is None:
            training = DualTraining(*parts).attach(SupportSet(self.kernel))
        else:
            limited = BudgetTraining(*parts)
            limited.set_budget(int(budget), self.choices["budget_policy"], self.seed)
            training = limited.attach(SupportSlots(self.kernel, int(budget)))
        training.stages = [] if self.settings.keep_stages else None
        return training

    def renewed(self) -> Self:
        made = super().renewed()
        made.reduction = None
        made.release_rows()
        return made

    def _new_training(self) -> Training:
        old = self._trained()
        if not isinstance(old, DualTraining):
            return super()._new_training()
        return self._empty_training(old.rule, old.geometry, old.stabilizer, old.output, 0, old.outputs, old.bias)

    def _constant_feature(self, points: Any, sees_all: bool) -> float:
        """The feature whose weight is the intercept, in the units of the kernel's if these are known yet."""
        size = self.settings.intercept_scaling
        if not self.settings.fit_intercept:
            return 0.0
        if points is None:
            return 1.0 if size == "radius" else float(size)
        if size != "radius":
            return float(size) * 2.0 ** (-0.5 * self.kernel.halvings(points))
        if not sees_all:
            raise ValueError(
                "intercept_scaling='radius' needs fit, which sees all the data; for partial_fit give a number"
            )
        return float(np.sqrt(max(0.0, self.kernel.diagonal(points).max(initial=0.0)))) or 1.0

    def _numbers(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return np.asarray(self.task.numbers(y, weight, grows=False))

    def _pass_over(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> bool | None:
        training, settings = self._trained(), self.settings
        training.deadline = None if settings.time_limit is None else time.monotonic() + settings.time_limit
        try:
            if not isinstance(training, DualTraining):
                return super()._pass_over(X, targets, weight)
            self.release_rows()
            later = (settings.epochs or settings.max_epochs) > 1
            expected = self._estimate(X, training.outputs) if settings.verbose else None
            dataset = training.prepare(X, self._cache_bytes if later else 0)
            dataset.find_supports()  # with warm_start, they may be the rows of the last fit
            reporting = nullcontext() if expected is None else report_estimate(training, expected, self.name)
            with stop_on_ctrl_c(training), reporting:
                return super()._pass_over(dataset, targets, weight)
        finally:
            training.deadline = None

    def _learn_once(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        training = self._trained()
        if not isinstance(training, DualTraining):
            super()._learn_once(X, targets, weight)
            return
        if self.kernel.data == "matrix" and training.n_seen:
            raise ValueError("a precomputed matrix is learned from at once: which columns are these rows'?")
        self.release_rows()
        dataset = training.prepare(X, 0)
        with stop_on_ctrl_c(training):
            training.learn(dataset, self.task.targets(targets, training.output), weight, np.arange(len(targets)))
        if training.stopped:
            raise KeyboardInterrupt

    # ------------------------------------------------------------------ runs over files

    def _start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        if self.settings.representation == "primal":
            raise ValueError("rows that come in passes are learned from in the dual: leave representation='primal' out")
        self.kernel = copied(self.settings.kernel)
        self.features = features if self.kernel.data in ON_NUMBERS else 0
        self.representation, self.reason = "dual", "the rows come in passes"
        super()._start(features, counts, dtype)

    def go_on(self, features: int, counts: np.ndarray) -> None:
        """Make ready to learn from more rows, which may be wider, of the same classes, which come so often."""
        self.release_rows()
        training = self._dual("go_on")
        if self.kernel.data in ON_NUMBERS and features > self.features:
            training.attach(training.supports.of_width(features))
            self.features = features
        self.task = self.task.met(counts)
        supports = training.supports
        if self.settings.budget is None and len(supports):  # they are prepared as the rows will be
            examples = supports.examples()
            training.attach(SupportSet(self.kernel, examples, self._points(examples)))

    def prepare_rows(self, X: Any) -> TrainingSet:
        """All rows of a run, checked, in the form that ``_learn_rows`` takes them in.

        Before each pass call ``begin_pass`` of what is returned; when all is learned, ``release_rows``. A learner that
        is saved before that and loaded again resumes with the same rows: see ``is_unfinished``.
        """
        training, points = self._dual("prepare_rows"), self._points(X)
        check_kernel(self.kernel, points)
        self.dtype = np.dtype(points.dtype)  # one precision for all
        training.explicit_passes = True
        if not training.n_seen:
            training.bias = self._constant_feature(points, sees_all=True)
        room = 0 if self.settings.epochs == 1 else self._cache_bytes
        examples = Examples(X, points, X.shape[1] if hasattr(X, "shape") else 1)
        if self.is_unfinished():
            self.current = training.resume(examples, room, self._points, self.saved)
            self.saved = None
        else:
            self.current = training.prepare(examples, room)
        return self.current

    def is_unfinished(self) -> bool:
        """Whether this was read from a file in the middle of passes, and nothing was learned since."""
        return self.saved is not None and int(self.saved[0]["seen"]) == self._trained().n_seen

    def release_rows(self) -> None:
        """The passes over the rows are over: release their memory."""
        self.current = self.saved = None

    def _take_in(self, features: int, classes: int) -> None:
        raise ValueError("a learner with a kernel cannot take in features or classes: its support examples lack them")

    def keep_features(self, kept: np.ndarray) -> None:
        raise ValueError("a learner with a kernel cannot let go of features: its weights belong to examples")

    # ------------------------------------------------------------------ what was learned

    def _dual(self, name: str) -> DualTraining:
        training = self._trained()
        if not isinstance(training, DualTraining):
            raise AttributeError(f"there is no {name} in the primal, where nothing is kept but weights: coef_")
        return training

    @property
    def n_features_in_(self) -> int:
        self._trained()
        if self.kernel.data not in ON_NUMBERS:
            raise AttributeError("strings and trees have no columns")
        return self.features

    @property
    def stopped_(self) -> str | None:
        """Why the last ``fit`` ended early, if it did."""
        return self._trained().stopped

    @property
    def support_examples_(self) -> Any:
        """The examples on which steps were made, in the order of their first one; None if there are none."""
        return self._dual("support_examples_").supports.examples()

    @property
    def n_support_(self) -> int:
        """How many support examples there are."""
        return len(self._dual("n_support_").supports)

    @property
    def dual_coef_(self) -> np.ndarray:
        """Weights of the support examples: (classes, examples), (1, examples) for two classes and in regression."""
        return np.array(self.task.columns(hypothesis(self._dual("dual_coef_"))[0]).T)

    @property
    def coef_(self) -> np.ndarray:
        if self.representation == "dual":
            raise AttributeError(
                "in the dual there are weights of examples, dual_coef_; to_primal() makes those of features"
            )
        return super().coef_

    def kept_examples(self) -> Any:
        return self.support_examples_

    def kernel_values(self, X: Any) -> np.ndarray:
        """The kernel values of examples with the support examples, one row an example."""
        supports = self._dual("kernel_values").supports
        return np.asarray(supports.products(self._rows(X, first=False).points), dtype=np.float64)

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        return dual_scores(self.training, X.points) if isinstance(X, Examples) else super()._scores(X, training)

    def _best(self, X: Any, training: Any = None) -> np.ndarray:
        return np.argmax(self._scores(X), axis=1) if isinstance(X, Examples) else super()._best(X, training)

    def staged_decision_function(self, X: Any) -> Iterator[np.ndarray]:
        """The scores by the hypothesis after each pass of ``fit``; needs ``keep_stages``."""
        training = self._dual("staged_decision_function")
        stages = training.stages
        if stages is None:
            raise ValueError(
                "the hypotheses after each pass were not kept: set keep_stages before fit (what reduce makes has none)"
            )
        if training.stabilizer.every_hypothesis:
            raise ValueError("a voted learner is all of its hypotheses at once; stages are for the other stabilizers")
        if not stages:
            raise ValueError(
                "there is no stage yet: one is the hypothesis after a pass of fit, and partial_fit has none"
            )
        for scores in staged_scores(training, self._rows(X, first=False).points, stages):
            yield self.task.shaped(scores)

    def certificate(self, X: Any, y: Any) -> Any:
        certificate = super().certificate(X, y)
        if self.began_with["budget"] is None:
            return certificate
        return certificate.beyond_theory("there was a budget, and the proof is for learners that keep all they learned")

    def _certify(self, X: Any, signs: np.ndarray) -> Any:
        if isinstance(X, Examples):
            return dual_certificate(self.training, X.points, signs)
        return super()._certify(X, signs)

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> Self:
        """The same hypothesis as weights of the kernel's features, if that is smaller or faster; else an error.

        With ``force`` it is made in any case. This learner does not change, whatever the new one learns later.
        """
        if self.representation == "primal":
            return self._copy_with(copy.deepcopy(self._trained()))
        training = self._dual("to_primal")
        verdict = worth_collapsing(training, self.features if self.kernel.data in ON_NUMBERS else 1)
        if verdict.name == "dual" and not force:
            raise ValueError(f"weights of features would be {verdict.reason}; force=True collapses nevertheless")
        made = self._copy_with(collapse(training))
        made.representation, made.reason = "primal", verdict.reason
        return made

    def reduce(self, n: int, by: str = "projection") -> Self:
        """A learner with at most n support examples whose hypothesis is near this one.

        They are chosen and weighed anew "by" projection, or those of the largest weights are kept as they are.
        """
        training = self._dual("reduce")
        if self.settings.budget is not None:
            raise ValueError("this learner has a budget already: learn with a smaller budget instead")
        if isinstance(n, bool) or not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n must be a whole number of at least 1, not {n!r}")
        smaller, lost = reduce_supports(training, int(n), by)
        made = self._copy_with(smaller)
        made.reduction = Reduction(len(training.supports), len(smaller.supports), lost, None, None, by)
        return made

    def _copy_with(self, training: Training) -> Self:
        """A learner that differs from this one only in its training."""
        made = copy.copy(self)
        made.training = training
        made.release_rows()
        return made

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> Packed:
        facts, arrays = super()._pack()
        training = self._trained()
        mine: dict[str, Any] = {"representation": self.representation, "reason": self.reason}
        mine["kernel"], more = kernels.pack(self.kernel)
        arrays.update(more)
        mine["kernel_as_text"] = isinstance(self.settings.kernel, str)
        mine["stopped"] = training.stopped
        if self.reduction is not None:
            mine["reduction"] = self.reduction._asdict()
        if isinstance(training, DualTraining):
            more_facts, more = training.pack_supports()
            mine.update(more_facts)
            arrays.update(more)
            if (packed := self._pack_scores()) is not None:
                mine["standing"], more = packed
                arrays.update({f"standing.{key}": array for key, array in more.items()})
        return {**facts, "dual": mine}, arrays

    def _pack_scores(self) -> Packed | None:
        """The current scores of the rows, in the middle of passes."""
        if self.current is not None:
            facts, arrays = self.current.pack()
            return {**facts, "seen": self._trained().n_seen}, arrays
        return self.saved if self.is_unfinished() else None

    FILED: ClassVar[Record] = Record({**Learner.FILED.facts, "dual": DUAL})

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self.FILED)
        mine = facts["dual"]
        self.representation, self.reason = mine["representation"], mine["reason"]
        self.kernel = kernels.unpack(mine["kernel"], arrays)
        limit = mine.get("budget")
        if self.representation == "dual":  # a budget that was set since learning began was never learned with
            self.set_params(budget=None if limit is None else limit["budget"])
        if not mine.get("kernel_as_text") or kernels.get(self.settings.kernel) != self.kernel:
            self.set_params(kernel=copied(self.kernel))
        super()._unpack(facts, arrays)
        training = self._trained()
        training.stopped = mine.get("stopped")
        if mine.get("reduction") is not None:
            self.reduction = Reduction(*(mine["reduction"][name] for name in REDUCTION.facts))
        if isinstance(training, DualTraining):
            training.unpack_supports(self.kernel, mine, arrays)
            if not training.supports.are_of_width(self.features):
                raise ValueError(f"the support examples are not rows of {self.features} columns")
            if mine.get("standing") is not None:
                self.saved = mine["standing"], under("standing.", arrays)
        if isinstance(training, BudgetTraining) and POLICIES.get(self.settings.budget_policy) != training.policy:
            self.set_params(budget_policy=training.policy)
        self.began_with = self._depends_on()

    def _unpack_training(self, facts: dict[str, Any], arrays: Arrays, features: int) -> Training:
        dual = DualTraining if self.settings.budget is None else BudgetTraining
        return (dual if self.representation == "dual" else Training).unpack(facts, arrays)
