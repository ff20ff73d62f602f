"""How support vector machines learn, for classes and for numbers.

They learn from all rows at once. The kernel columns of the rows are shared by all problems that a call solves: those of
several classes, of several values of C, and of the folds of a cross-validation. A learner that was stopped, by a limit
or by Ctrl-C, has a usable hypothesis, and says why it stopped.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from onlearn import kernels
from onlearn.dual.examples import Examples, concatenate, pick
from onlearn.dual.supports import SupportSet
from onlearn.engine.inputs import check_weights
from onlearn.engine.passes import first_ctrl_c, warn_caller
from onlearn.svm import SOLVERS
from onlearn.svm.chunks import Blocks, Found, Way, in_blocks, learn_in_chunks, rows_at
from onlearn.svm.fitted import FittedMachine
from onlearn.svm.hypothesis import Hypothesis, of_examples
from onlearn.svm.multiclass import Machine
from onlearn.svm.path import Prepared, Validation, along, check_folds, check_values, validate
from onlearn.svm.problem import KernelColumns
from onlearn.svm.report import IN_WORDS, Report, progress_bar
from onlearn.svm.solving import Budget, Solved, Start, solve_all
from onlearn.svm.training import NO_CURVES

if TYPE_CHECKING:
    from typing_extensions import Self

CHUNK = 10_000  # examples that are learned from at a time, where they come in parts
SINGLE = 1e30  # the largest kernel value for single precision


class SVMLearner(FittedMachine):
    """What classification and regression share."""

    whole = True
    is_progressive = False
    usual_passes: int | None = 1

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

    # ------------------------------------------------------------------ learning

    def _machines(self, targets: np.ndarray, weight: np.ndarray) -> list[Machine]:
        """The problems of examples with these targets."""
        raise NotImplementedError

    def _learn_all(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> None:
        size = self.settings.chunk_size
        if size is None or size >= len(targets) or self.kernel.data == "matrix":
            self._solve(X, targets, weight)
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
            numbers, weight = made._begin_all(first, targets, weight, names)

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
            if settings.chunk_keep is not None:
                found = self._solved_once_more(found, blocks, size, targets, weight, budget)
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

    def _solved_once_more(self, found: Found, blocks: Blocks, size: int, targets: np.ndarray, weight: np.ndarray,
                          budget: Budget) -> Found:  # fmt: skip
        """The solution of the support vectors that were kept with the last chunk.

        Those of the largest weights alone are mostly on the wrong side, and the solution of all does not fit them.
        """
        last = np.arange(max(0, len(targets) - size), len(targets))
        rows = np.union1d(found.rows, last)
        X = self._examples(rows_at(blocks, rows))
        machines = self._machines(targets[rows], weight[rows])
        solved = solve_all(machines, self._columns(X), self.settings.C, self.settings.solver, self._bias, budget)
        reports = [
            new._replace(violation=max(new.violation, old.violation), stopped=old.stopped)
            for new, old in zip(solved.reports, found.reports, strict=True)
        ]
        coefs = solved.coefs(len(rows))
        held = np.flatnonzero((coefs != 0).any(axis=1))
        return found._replace(
            raw=pick(X.raw, held), rows=rows[held], coefs=coefs[held], intercepts=solved.intercepts,
            reports=tuple(reports),
        )  # fmt: skip

    def _curves_of_chunks(self, machines: list[Machine], found: Found, hypothesis: Hypothesis, blocks: Blocks,
                          rows: int) -> np.ndarray:  # fmt: skip
        return NO_CURVES

    def _solve(self, X: Examples, targets: np.ndarray, weight: np.ndarray, coefs: np.ndarray | None = None,
               seen: int | None = None) -> None:  # fmt: skip
        """Learn from these examples, of which ``seen`` (by default all) are new.

        ``coefs`` are weights to start from, examples x problems.
        """
        began = time.perf_counter()
        machines, columns = self._machines(targets, weight), self._columns(X)
        starts = None if coefs is None else [Start(one.start(coefs[:, n])) for n, one in enumerate(machines)]
        with self._budget(len(machines)) as budget:
            solved = solve_all(machines, columns, self.settings.C, self.settings.solver, self._bias, budget, starts)
            self._take(X, solved, columns, targets, weight, budget, began)
            self._trained().count(0 if seen is None else seen - len(targets))

    def _take(self, X: Examples, solved: Solved, columns: KernelColumns, targets: np.ndarray, weight: np.ndarray,
              budget: Budget, began: float, computed: int = 0) -> None:  # fmt: skip
        """Take over solutions; ``began`` is when work on them did, after so many values had been computed."""
        training, coefs = self._trained(), solved.coefs(X.shape[0])
        hypothesis = of_examples(self.kernel, X.raw, X.points, coefs, solved.intercepts, targets, weight)
        curves = self._curves(solved, columns, targets, budget)
        values = columns.misses * columns.n - computed
        report = Report(solved.reports, time.perf_counter() - began, columns.nbytes, values)
        training.count(len(targets), updates=len(hypothesis.rows))
        training.learned(hypothesis, curves, report)
        self._warn(report)

    def _columns(self, X: Examples) -> KernelColumns:
        """Kernel columns in single precision, where that holds the values: the solver sees to what it rounds off."""
        with np.errstate(over="ignore"):
            largest = float(np.max(np.abs(self.kernel.diagonal(X.points)), initial=0.0))
            single = self.kernel.data == "vectors" and largest < SINGLE and largest_value(X.raw) < SINGLE
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
            if before.kernel.data == "vectors" and X.shape[1] > self.features:
                before = replace(before, supports=before.supports.of_width(X.shape[1]))
                self._call_columns(X.shape[1], None)
                training.features = self.features
            assert before.supports is not None
            new = self._rows(X, first=False)
            targets, weight = self._numbered(y, sample_weight, np.arange(new.shape[0]))
            coefs = np.zeros((new.shape[0], before.outputs))
            if same_rows and (before.rows >= 0).all():
                coefs[before.rows] = before.coefs
                self._solve(new, targets, weight, coefs, seen=0)
                return
            old = Examples(before.supports.examples(), before.supports.all_points(), new.shape[1])
            examples = join_examples(old, new)
            self._solve(
                examples,
                np.concatenate([before.targets, targets]).astype(targets.dtype),
                np.concatenate([before.weight, weight]),
                np.concatenate([before.coefs, coefs]),
                seen=len(targets),
            )
            assert training.hypothesis is not None
            training.hypothesis = training.hypothesis.elsewhere()

    # ------------------------------------------------------------------ values of C

    def path_of(self, X: Any, y: Any, Cs: Any, sample_weight: Any = None, names: Any = None) -> list[Self]:
        """A learner for each value of C, solved from the smallest on, each starting from the one before."""
        values = check_values(Cs)
        ready = self._prepared(X, y, sample_weight, names)
        made: list[Any] = [None] * len(values)
        with ready.learner._budget(len(ready.machines)) as budget:
            began, computed = time.perf_counter(), 0
            for place, solved in along(ready, values, budget):
                one = copy.copy(ready.learner)
                one.set_params(C=values[place])
                one.training = one._new_training()
                one._take(ready.examples, solved, ready.columns, ready.targets, ready.weight, budget, began, computed)
                made[place], began, computed = one, time.perf_counter(), ready.columns.misses * ready.columns.n
        return made

    def cross_validate(self, X: Any, y: Any, Cs: Any, folds: Any = 5, sample_weight: Any = None) -> Validation:
        """The errors of each C in each fold: ``folds`` is how many there are, or the fold of each row."""
        began, values = time.perf_counter(), check_values(Cs)
        ready = self._prepared(X, y, sample_weight, None)
        fold_of = check_folds(folds, ready.targets, bool(ready.classes), ready.learner.seed)
        with ready.learner._budget(len(ready.machines)) as budget:
            return validate(ready, values, fold_of, budget, began)

    def _prepared(self, X: Any, y: Any, sample_weight: Any, names: Any) -> Prepared:
        """A learner that knows classes and columns, and the rows with targets and weights, as ``fit`` has them."""
        made = type(self)(warning=self.warning, **self.get_params())
        made.check()
        X = made._rows(X, first=True, names=names)
        y, weight = made._targets(X, y, sample_weight, sees_all=True)
        numbers, weight = made._begin_all(X, y, weight, names)
        machines, columns = made._machines(numbers, weight), made._columns(X)
        return Prepared(
            made, X, numbers, weight, machines, columns, self.settings.solver, made._bias, made._classes, made._kind
        )

    def _begin_all(self, X: Examples, y: np.ndarray, weight: np.ndarray, names: Any) -> tuple[np.ndarray, np.ndarray]:
        """Make ready to learn from all rows; their targets as numbers, and weights times those of their classes."""
        self.task = self.task.of_all(y, weight)
        self._begin(X, y, names, sees_all=True)
        numbers = self._numbers(y, weight)
        if isinstance(self._class_weight, str):
            self.task = self.task.counted(numbers, weight)
        return numbers, self.task.weighted(numbers, weight, self._class_weight)


def join_examples(old: Examples, new: Examples) -> Examples:
    """Support vectors, and more examples after them."""
    return Examples(concatenate([old.raw, new.raw]), old.points.join([new.points]), new.shape[1])


def largest_value(X: Any) -> float:
    """The largest size of a number in rows, dense or sparse."""
    values = X if isinstance(X, np.ndarray) else X.data
    return float(max(np.max(values, initial=0.0), -np.min(values, initial=0.0)))
