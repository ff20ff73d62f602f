"""Support vector machines as learners: ``SVCLearner`` for classes, ``SVRLearner`` for numbers.

Both learn from all rows at once. The kernel columns of the rows are shared by all problems that a call solves: those of
several classes, of several values of C, and of the folds of a cross-validation. A learner that was stopped, by a limit
or by Ctrl-C, has a usable hypothesis, and says why it stopped.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import kernels
from onlearn.dual.collapse import Reduction, check_kernel
from onlearn.dual.examples import Examples, check_examples, concatenate
from onlearn.dual.learner import ON_NUMBERS
from onlearn.dual.supports import SupportSet
from onlearn.engine.base_learner import BaseLearner, Contributions
from onlearn.engine.compositions import Composition
from onlearn.engine.inputs import check_weights
from onlearn.engine.passes import first_ctrl_c, warn_caller
from onlearn.kernels.formula import copied
from onlearn.kernels.products import in_precision, refuse_strings
from onlearn.svm import SOLVERS, multiclass, settings
from onlearn.svm.chunks import Blocks, Found, Way, drawn_rows, in_blocks, learn_in_chunks, sub_problem
from onlearn.svm.chunks import rows_at as chunk_rows
from onlearn.svm.hypothesis import Hypothesis, of_examples
from onlearn.svm.multiclass import Machine, class_scores
from onlearn.svm.path import Validation, along, check_folds, check_values, errors_of, fold_scores, stratified
from onlearn.svm.probabilities import fit_curve, left_out, probabilities
from onlearn.svm.problem import KernelColumns
from onlearn.svm.report import IN_WORDS, Report, progress_bar
from onlearn.svm.solving import Budget, Solved, Start, solve_all
from onlearn.svm.training import NO_CURVES, SVMTraining

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK = 10_000  # examples that are learned from at a time, where they come in parts
SINGLE = 1e30  # the largest kernel value for single precision

class SVMLearner(BaseLearner):
    """What classification and regression share."""

    whole = waits = True
    is_progressive = False
    usual_passes = 1

    training: SVMTraining | None

    def __init__(self, *, warning: type[Warning] = UserWarning, **params: Any) -> None:
        super().__init__(warning=warning, **params)
        self.kernel: Any = None  # the kernel that it learns with, once learning has begun

    # ------------------------------------------------------------------ parameters

    def check(self) -> None:
        super().check()
        kernels.get(self.settings.kernel)
        if self.settings.solver == "ascent" and self.settings.fit_intercept is True:
            raise ValueError(
                "solver='ascent' moves one variable at a time, which the constraint of an intercept does not allow: "
                "use fit_intercept='auto' or False, or another solver"
            )

    @property
    def _bias(self) -> bool:
        """Whether there is an intercept."""
        wanted = self.settings.fit_intercept
        return self.settings.solver != "ascent" if wanted == "auto" else bool(wanted)

    @property
    def _kind(self) -> str:
        """How several classes are learned."""
        return "one-vs-one"

    # ------------------------------------------------------------------ examples

    def takes_objects(self) -> bool:
        return kernels.get(self.settings.kernel).data not in ON_NUMBERS

    def _rows(self, X: Any, first: bool, finite: bool = True, names: Any = None, width: int | None = None) -> Any:
        """``Examples``; in the primal, rows as they are."""
        if first:
            self.kernel = copied(self.settings.kernel)
        kernel = self.kernel
        if kernel.data in ON_NUMBERS:
            refuse_strings(X, kernel)
            raw = super()._rows(X, first, True, names, width)
        else:
            raw = check_examples(X, kernel)
        if first:
            return self._first_examples(raw)
        if getattr(raw, "dtype", None) in (np.float32, np.float64):
            raw = in_precision(raw, self.dtype)  # that of the examples learned from
        if self._trained().hypothesis is not None and self._trained().known().supports is None:
            return raw
        return self._examples(raw)

    def _first_examples(self, raw: Any) -> Examples:
        kernel = self.kernel
        if kernel.data == "matrix" and raw.shape[0] != raw.shape[1]:
            raise ValueError(
                f"{kernel}: X has {raw.shape[0]} rows and {raw.shape[1]} columns, but the matrix to learn "
                "from must be square, with a column for each row's example"
            )
        made = self._examples(raw)
        check_kernel(kernel, made.points)
        return made

    def _examples(self, raw: Any) -> Examples:
        return Examples(raw, self.kernel.quick_points(raw), raw.shape[1] if hasattr(raw, "shape") else 1)

    # ------------------------------------------------------------------ learning

    def _new_training(self) -> SVMTraining:
        return SVMTraining(self.features, self._classes, self._kind)

    @property
    def _classes(self) -> int:
        """How many classes there are; 0 in regression."""
        return len(self.task.classes) if self.task.classifies else 0

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        """The problems of examples with these targets."""
        raise NotImplementedError

    def _learn_all(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        size = self.settings.chunk_size
        if size is None or size >= len(targets) or self.kernel.data == "matrix":
            self._solve(X, targets, weight, None)
        else:
            self._solve_chunks(in_blocks(X.raw, int(size)), targets, weight)

    def fit_blocks(self, blocks: Blocks, y: Any, sample_weight: Any = None, names: Any = None) -> Self:
        """Learn in chunks from rows that are not in memory, but their targets and weights.

        ``blocks()`` gives the rows, in parts, in the same order each time: it is called for every sweep.
        """
        with self.lock:
            made = type(self)(warning=self.warning, **self.get_params())
            made.check()
            first = made._rows(next(iter(blocks())), first=True, names=names)
            made.interrupted = self.interrupted
            targets, weight = made.task.check(y, len(y)), check_weights(sample_weight, len(y), sees_all=True)
            made.task = made.task.of_all(targets, weight)
            made._begin(first, targets, names, sees_all=True)
            numbers = made._numbers(targets, weight)
            if isinstance(made._class_weight, str):
                made.task = made.task.counted(numbers, weight)
            weight = made.task.weighted(numbers, weight, made._class_weight)

            def checked() -> Iterator[Any]:
                for rows in blocks():
                    yield made._rows(rows, first=False).raw

            made._solve_chunks(checked, numbers, weight)
            return self.become(made)

    def _solve_chunks(self, blocks: Blocks, targets: np.ndarray, weight: np.ndarray) -> None:
        training, settings, began = self._trained(), self.settings, time.perf_counter()
        machines = self._machines(targets, weight)
        room = int(settings.cache_mb * 2**20)
        single = np.float32 if self.kernel.data == "vectors" else None
        size = CHUNK if settings.chunk_size is None else int(settings.chunk_size)
        way = Way(self.kernel, float(settings.C), self._bias, size, settings.chunk_keep, room, single,
                  SOLVERS[settings.solver])  # fmt: skip
        with self._budget(len(machines)) as budget:
            found = learn_in_chunks(machines, blocks, way, budget)
            if settings.chunk_keep is not None and len(found.rows):
                found = self._solved_alone(found, targets, weight, budget)
        supports = SupportSet(self.kernel)
        if len(found.rows):
            supports.add(found.raw, self.kernel.quick_points(found.raw))
        hypothesis = Hypothesis(
            self.kernel, found.coefs, found.intercepts, supports, found.rows,
            targets[found.rows].astype(np.float64), weight[found.rows],
        )  # fmt: skip
        curves = self._curves_of_chunks(machines, found, hypothesis, blocks, len(targets))
        memory = min(room, found.most**2 * self.dtype.itemsize)
        report = Report(found.reports, time.perf_counter() - began, memory, 0, found.sweeps)
        training.count(len(targets), updates=len(found.rows))
        training.learned(hypothesis, curves, report)
        self._warn(report)

    def _solved_alone(self, found: Found, targets: np.ndarray, weight: np.ndarray, budget: Budget) -> Found:
        """The solution of the support vectors that were kept alone: that of all chunks does not fit without others."""
        machines, X = self._machines(targets[found.rows], weight[found.rows]), self._examples(found.raw)
        solved = solve_all(machines, self._columns(X), self.settings.C, self.settings.solver, self._bias, budget)
        reports = [
            new._replace(violation=max(new.violation, old.violation), stopped=old.stopped)
            for new, old in zip(solved.reports, found.reports, strict=True)
        ]
        return found._replace(
            coefs=solved.coefs(len(found.rows)), intercepts=solved.intercepts, reports=tuple(reports)
        )

    def _curves_of_chunks(self, machines: list[Machine], found: Found, hypothesis: Hypothesis, blocks: Blocks,
                          rows: int) -> np.ndarray:  # fmt: skip
        return NO_CURVES

    def _solve(self, X: Examples, targets: np.ndarray, weight: np.ndarray, coefs: np.ndarray | None) -> None:
        """Learn from these examples, starting from ``coefs`` if these are known: examples x problems."""
        training, began = self._trained(), time.perf_counter()
        machines, columns = self._machines(targets, weight), self._columns(X)
        starts = None if coefs is None else [Start(one.start(coefs[:, n])) for n, one in enumerate(machines)]
        with self._budget(len(machines)) as budget:
            solved = solve_all(machines, columns, self.settings.C, self.settings.solver, self._bias, budget, starts)
            curves = self._curves(solved, columns, targets, budget)
        hypothesis = self._hypothesis(X, solved, targets, weight)
        report = Report(solved.reports, time.perf_counter() - began, columns.nbytes, columns.misses * columns.n)
        training.count(len(targets), updates=len(hypothesis.rows))
        training.learned(hypothesis, curves, report)
        self._warn(report)

    def _columns(self, X: Examples) -> KernelColumns:
        """Kernel columns in single precision, where that holds the values: the solver sees to what it rounds off."""
        with np.errstate(over="ignore"):
            largest = float(np.max(np.abs(self.kernel.diagonal(X.points)), initial=0.0))
            single = self.kernel.data == "vectors" and largest < SINGLE
            room = int(self.settings.cache_mb * 2**20)
            return KernelColumns(self.kernel, X.points, room, np.float32 if single else None)

    def _tolerance(self) -> float:
        return float(self.settings.tol)

    @contextmanager
    def _budget(self, problems: int) -> Iterator[Budget]:
        """When to stop: a first Ctrl-C, or whoever runs this learner, may ask for it."""
        settings = self.settings
        limit = settings.time_limit
        deadline = None if limit is None else time.monotonic() + float(limit)
        names = self.task.classes if self.task.classifies else None
        with first_ctrl_c() as pressed, progress_bar(settings.verbose, problems) as show:
            asked = self.interrupted or pressed
            yield Budget(self._tolerance(), settings.max_iter, deadline, asked, show, names)

    def _hypothesis(self, X: Examples, solved: Solved, targets: np.ndarray, weight: np.ndarray) -> Hypothesis:
        coefs = solved.coefs(X.shape[0])
        return of_examples(self.kernel, X.raw, X.points, coefs, solved.intercepts, targets, weight)

    def _curves(self, solved: Solved, columns: KernelColumns, targets: np.ndarray, budget: Budget) -> np.ndarray:
        """A and B of the probabilities of each problem."""
        return NO_CURVES

    def _warn(self, report: Report) -> None:
        if report.stopped != "tol":
            warn_caller(
                f"{self.name} stopped before it converged: {IN_WORDS[report.stopped]}, with a largest KKT violation of "
                f"{report.violation:.3g} (tol={self.settings.tol:g}); what was learned is kept",
                self.warning,
            )

    # ------------------------------------------------------------------ going on

    def learn_more(self, X: Any, y: Any, sample_weight: Any, *, same_rows: bool) -> None:
        """Learn from more rows: the support vectors and the rows are the examples, the weights so far the start.

        ``same_rows``: they are the rows of before, so that nothing is added.
        """
        with self.lock:
            self.check()
            training = self._trained()
            before = training.known()
            if before.supports is None or not before.weight.size:
                raise ValueError(
                    f"this {self.name} has no support vectors with their classes any more (to_primal and reduce "
                    "leave none): train anew"
                )
            if before.kernel.data == "matrix" and not same_rows:
                raise ValueError("a precomputed matrix is learned from at once: which columns are these rows'?")
            new = self._rows(X, first=False)
            targets, weight = self._numbered(y, sample_weight, np.arange(new.shape[0]))
            coefs = np.zeros((new.shape[0], before.outputs))
            if same_rows and (before.rows >= 0).all():
                coefs[before.rows] = before.coefs
                self._solve(new, targets, weight, coefs)
                return
            old = Examples(before.supports.examples(), before.supports.all_points(), new.shape[1])
            examples = join_examples(old, new)
            self._solve(
                examples,
                np.concatenate([before.targets, targets]).astype(targets.dtype),
                np.concatenate([before.weight, weight]),
                np.concatenate([before.coefs, coefs]),
            )
            assert training.hypothesis is not None
            training.hypothesis = training.hypothesis.elsewhere()

    # ------------------------------------------------------------------ values of C

    def path_of(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None, names: Any = None) -> list[Self]:
        """A learner for each value of C, solved from the smallest on, each starting from the one before."""
        values = check_values(Cs)
        begun, X, targets, weight = self._begun(X, y, sample_weight, names)
        machines, columns = begun._machines(targets, weight), begun._columns(X)
        made: list[Any] = [None] * len(values)
        with begun._budget(len(machines)) as budget:
            began, values_before = time.perf_counter(), 0
            for place, solved in along(machines, columns, values, self.settings.solver, begun._bias, budget):
                one = copy.copy(begun)
                one.set_params(C=values[place])
                one.training = one._new_training()
                hypothesis = one._hypothesis(X, solved, targets, weight)
                one.training.count(len(targets), updates=len(hypothesis.rows))
                computed = columns.misses * columns.n
                now = time.perf_counter()
                report = Report(solved.reports, now - began, columns.nbytes, computed - values_before)
                one.training.learned(hypothesis, one._curves(solved, columns, targets, budget), report)
                one._warn(report)
                made[place], began, values_before = one, time.perf_counter(), computed
        return made

    def cross_validate(self, X: Any, y: Any, Cs: Any, folds: Any = 5, sample_weight: Any = None) -> Validation:
        """The errors of each C in each fold: ``folds`` is how many there are, or the fold of each row."""
        began, values = time.perf_counter(), check_values(Cs)
        begun, X, targets, weight = self._begun(X, y, sample_weight, None)
        fold_of = check_folds(folds, len(targets))
        if isinstance(fold_of, int):
            codes = targets if begun._classes else None
            fold_of = stratified(codes, len(targets), fold_of, begun.seed)
        machines, columns = begun._machines(targets, weight), begun._columns(X)
        count = int(fold_of.max()) + 1
        errors, supports = np.zeros((len(values), count)), np.zeros(len(values))
        seen = np.zeros(len(values), dtype=np.int64)
        columns.fill()
        with begun._budget(len(machines)) as budget:
            scored = fold_scores(machines, columns, values, fold_of, self.settings.solver, begun._bias, budget)
            for place, held, decisions, used in scored:
                error = errors_of(decisions, targets[held], weight[held], begun._classes, begun._kind)
                errors[place, seen[place]] = error
                supports[place] += used / count
                seen[place] += 1
        return Validation(np.array(values), errors, supports, time.perf_counter() - began)

    def _begun(self, X: Any, y: Any, sample_weight: Any, names: Any) -> tuple[Self, Any, np.ndarray, np.ndarray]:
        """A learner that knows classes and columns, and the rows with targets and weights, as ``fit`` has them."""
        made = type(self)(warning=self.warning, **self.get_params())
        made.check()
        X = made._rows(X, first=True, names=names)
        y, weight = made._targets(X, y, sample_weight, sees_all=True)
        made.task = made.task.of_all(y, weight)
        made._begin(X, y, names, sees_all=True)
        numbers = made._numbers(y, weight)
        if isinstance(made._class_weight, str):
            made.task = made.task.counted(numbers, weight)
        return made, X, numbers, made.task.weighted(numbers, weight, made._class_weight)

    # ------------------------------------------------------------------ what was learned

    @property
    def n_features_in_(self) -> int:
        self._trained()
        if self.kernel.data not in ON_NUMBERS:
            raise AttributeError("strings and trees have no columns")
        return self.features

    def _dual(self, name: str) -> Hypothesis:
        hypothesis = self._trained().known()
        if hypothesis.supports is None:
            raise AttributeError(f"there is no {name} in the primal, where nothing is kept but weights of features")
        return hypothesis

    @property
    def report_(self) -> Report:
        """What solving did."""
        report = self._trained().report
        if report is None:
            raise AttributeError("there is no report: nothing was solved")
        return report

    @property
    def stopped_(self) -> str | None:
        """Why learning stopped before it converged, if it did."""
        return self._trained().stopped

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver, in all problems."""
        return self.report_.iterations

    @property
    def support_(self) -> np.ndarray:
        """The rows of the support vectors in the data set of ``fit``; -1 if they are of another one."""
        return np.array(self._dual("support_").rows)

    @property
    def support_examples_(self) -> Any:
        """The support vectors as they were passed in; None if there are none."""
        supports = self._dual("support_examples_").supports
        return None if supports is None else supports.examples()

    def kept_examples(self) -> Any:
        return None if self.training is None or self.training.hypothesis is None else self.support_examples_

    @property
    def n_support_(self) -> np.ndarray:
        """How many support vectors there are of each class; in regression in all."""
        hypothesis = self._dual("n_support_")
        if not self._classes or not hypothesis.weight.size:
            return np.array([len(hypothesis.rows)])
        return np.bincount(hypothesis.targets.astype(np.int64), minlength=self._classes)

    @property
    def dual_coef_(self) -> np.ndarray:
        """a_i y_i of the support vectors, problems x support vectors."""
        return np.array(self._dual("dual_coef_").coefs.T)

    @property
    def intercept_(self) -> np.ndarray:
        """The intercept of each problem."""
        return np.array(self._trained().known().intercepts)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, problems x columns, or (columns,) in regression; of linear kernels, or in the primal."""
        hypothesis = self._trained().known()
        if hypothesis.supports is not None and self.kernel.name != "linear":
            raise AttributeError(
                f"with the kernel {self.kernel} there are weights of examples, dual_coef_; coef_ is for the linear one"
            )
        weights = hypothesis.feature_weights(self.features)
        return weights if self._classes else weights[0]

    def described(self) -> dict[str, Any]:
        hypothesis, report = self._trained().known(), self._trained().report
        made: dict[str, Any] = {"kernel": str(self.kernel)}
        if hypothesis.supports is not None:
            made["support_vectors"] = len(hypothesis.rows)
        if report is None:
            return made
        several = {"problems": len(report.problems)} if len(report.problems) > 1 else {}
        return {**made, **several, **report.described()}

    def example_weights(self) -> tuple[np.ndarray, np.ndarray] | None:
        hypothesis = self._trained().known()
        if hypothesis.supports is None:
            return None
        coefs, intercepts = hypothesis.coefs.T, hypothesis.intercepts
        if self._classes > 2 and self._kind == "one-vs-one":  # of a class the sums over its pairs
            which = multiclass.ballots(self._classes).T
            return which @ coefs, which @ intercepts
        return coefs, intercepts

    def contributions(self, X: Any) -> Contributions:
        X = self._rows(X, first=False)
        hypothesis = self._dual("explanation")
        assert hypothesis.supports is not None
        values = np.asarray(hypothesis.supports.products(X.points), dtype=np.float64)[0]
        decisions = values @ hypothesis.coefs + hypothesis.intercepts
        weights, intercept, favours, against = self._deciding(decisions, hypothesis)
        numbers = np.arange(len(values))
        return Contributions(numbers, values, weights, values * weights, intercept, favours, against, "examples")

    def _deciding(self, decisions: np.ndarray, of: Hypothesis) -> tuple[np.ndarray, float, int, int]:
        """The weights and the intercept that decide about a row, and the classes that they speak for and against."""
        classes = self._classes
        if classes <= 2:
            return of.coefs[:, 0], float(of.intercepts[0]), 1, 0
        scores = class_scores(decisions[None], classes, self._kind)[0]
        best, second = (int(one) for one in np.argsort(-scores, kind="stable")[:2])
        if self._kind == "one-vs-all":
            weights = of.coefs[:, best] - of.coefs[:, second]
            return weights, float(of.intercepts[best] - of.intercepts[second]), best, second
        problem = multiclass.pairs(classes, self._kind).index((min(best, second), max(best, second)))
        sign = 1.0 if best > second else -1.0
        return sign * of.coefs[:, problem], sign * float(of.intercepts[problem]), best, second

    # ------------------------------------------------------------------ predicting

    def _decisions(self, X: Any, training: Any = None) -> np.ndarray:
        """The scores of all problems."""
        hypothesis = (training or self._trained()).known()
        points = X.points if isinstance(X, Examples) else None
        return hypothesis.decisions(X.raw if isinstance(X, Examples) else X, points)

    def _scores(self, X: Any, training: Any = None) -> np.ndarray:
        return class_scores(self._decisions(X, training), self._classes, self._kind)

    # ------------------------------------------------------------------ smaller forms

    def to_primal(self, force: bool = False) -> Self:
        """The same with weights of the kernel's features, if that is smaller or faster; else an error.

        With ``force`` it is made in any case.
        """
        hypothesis = self._trained().known()
        if hypothesis.supports is None:
            return copy.copy(self)
        made, _ = hypothesis.to_primal(self.features if self.kernel.data in ON_NUMBERS else 1, force)
        return self._copy_with(made, None)

    def reduce(self, n: int) -> Self:
        """A machine with at most n support vectors whose hypothesis is near this one, by projection."""
        hypothesis = self._dual("reduce")
        if isinstance(n, bool) or not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n must be a whole number of at least 1, not {n!r}")
        smaller, lost = hypothesis.reduced(int(n))
        return self._copy_with(smaller, Reduction(len(hypothesis.rows), len(smaller.rows), lost, None, None))

    def _copy_with(self, hypothesis: Hypothesis, reduction: Reduction | None) -> Self:
        made = copy.copy(self)
        made.training = copy.copy(self._trained())
        made.training.hypothesis, made.training.reduction = hypothesis, reduction
        return made

    # ------------------------------------------------------------------ the model file

    def _unpack_training(self, facts: dict[str, Any], arrays: dict[str, np.ndarray], features: int) -> SVMTraining:
        training = SVMTraining.unpack(facts, arrays, features)
        if bool(training.classes) != self.task.classifies or training.kind != self._kind:
            raise ValueError("the problems of the file are not those of this learner")
        self.kernel = training.known().kernel
        if kernels.get(self.settings.kernel) != self.kernel:
            self.set_params(kernel=copied(self.kernel))
        return training


def join_examples(old: Examples, new: Examples) -> Examples:
    """Support vectors, and more examples after them."""
    return Examples(concatenate([old.raw, new.raw]), old.points.join([new.points]), new.shape[1])


class SVCLearner(SVMLearner):
    """The classifier.

    >>> X, y = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]]), np.array([0, 1, 1, 0])
    >>> SVCLearner(kernel="polynomial(2)", C=100).fit(X, y).predict(X)
    array([0, 1, 1, 0])
    """

    @property
    def composition(self) -> Composition:
        return settings.SVC

    @property
    def _kind(self) -> str:
        return str(self.settings.multiclass) if self.training is None else self.training.kind

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        return multiclass.classification(targets, weight, self._classes, self._kind)

    def _curves(self, solved: Solved, columns: KernelColumns, targets: np.ndarray, budget: Budget) -> np.ndarray:
        choice = self.choices["calibration"]
        if choice.name == "none":
            return NO_CURVES
        if choice.name == "cv" and not budget.interrupted():
            return np.array([fit_curve(*one) for one in self._fold_scores(solved, columns, targets, budget)])
        pairs = zip(solved.machines, solved.solutions, strict=True)
        made = [left_out(one, solution, columns, solved.C, self._bias, self.seed) for one, solution in pairs]
        return np.array([fit_curve(*one) for one in made])

    def _curves_of_chunks(self, machines: list[Machine], found: Found, hypothesis: Hypothesis, blocks: Blocks,
                          rows: int) -> np.ndarray:  # fmt: skip
        """The curves from rows drawn from all; folds of chunks would be learned anew, so the rows are left out."""
        if self.choices["calibration"].name == "none":
            return NO_CURVES
        C = float(self.settings.C)
        drawn, numbers = drawn_rows(machines, found, C, rows, self.seed)
        X = self._examples(chunk_rows(blocks, numbers))
        sums = hypothesis.decisions(X.raw, X.points) - found.intercepts
        coefs = np.zeros((len(numbers), len(machines)))
        held = np.isin(found.rows, numbers)
        coefs[np.searchsorted(numbers, found.rows[held])] = found.coefs[held]
        columns, made = self._columns(X), []
        for n, machine in enumerate(machines):
            some, solution, which = sub_problem(
                machine, numbers, drawn, coefs[:, n], sums[:, n], float(found.intercepts[n])
            )
            made.append(fit_curve(*left_out(some, solution, columns, C, self._bias, self.seed, which)))
        return np.array(made)

    def _fold_scores(self, solved: Solved, columns: KernelColumns, targets: np.ndarray,
                     budget: Budget) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:  # fmt: skip
        """The scores of the examples of each problem by the solutions of other folds, whether they are positive, and
        their weights."""
        folds = min(int(self.choices["calibration"].folds), len(targets))
        fold_of = stratified(targets, len(targets), folds, self.seed)
        decisions = np.zeros((len(targets), len(solved.machines)))
        quiet = budget._replace(show=None)
        for _, held, found, _ in fold_scores(
            solved.machines, columns, [solved.C], fold_of, self.settings.solver, self._bias, quiet
        ):
            decisions[held] = found
        for n, one in enumerate(solved.machines):
            yield decisions[one.examples, n], one.signs > 0, one.weight

    def _probabilities(self, X: Any, task: Any, training: Any) -> np.ndarray:
        if not len(training.curves):
            raise AttributeError("there are no probabilities: calibration was 'none' when this SVC learned")
        decisions = self._decisions(X, training)
        scores = class_scores(decisions, training.classes, training.kind)
        return probabilities(decisions, scores, training.curves, training.classes, training.kind)


class SVRLearner(SVMLearner):
    """The regression.

    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> SVRLearner(C=100, epsilon=0.01).fit(X, np.sin(X[:, 0])).predict(np.array([[1.5]])).round(2)
    array([1.])
    """

    @property
    def composition(self) -> Composition:
        return settings.SVR

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        self.spread = float(np.std(targets)) or 1.0
        return multiclass.regression(targets, weight, float(self.settings.epsilon))

    def _tolerance(self) -> float:
        """In units of the targets' deviation: what is little among millions is much among millionths."""
        return float(self.settings.tol) * self.spread

