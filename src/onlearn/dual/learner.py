"""What the model file holds of a kernel classifier, besides what it holds of every learner."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from onlearn import kernels
from onlearn.dual.budget import BudgetTraining
from onlearn.dual.collapse import SAMPLE, SUPPORT, Reduction, seconds
from onlearn.dual.examples import Examples, pick
from onlearn.dual.policies import POLICIES
from onlearn.dual.supports import SupportSet, SupportSlots
from onlearn.dual.training import DualTraining
from onlearn.engine.training import Training
from onlearn.kernels.base import Kernel
from onlearn.kernels.formula import get

# ----------------------------------------------------------------------------------------------------
# The kernel as a parameter of an estimator: its own parameters by name, also where it is spelled as text.


def own(kernel: Kernel) -> Kernel:
    """A copy, inner kernels and all, so that who changes the kernel does not change what was learned with it."""
    made = copy.copy(kernel)
    for name, part in kernel.get_params(deep=False).items():
        if isinstance(part, Kernel):
            made.__dict__[name] = own(part)  # not set, which would check it all again
    return made


class OwnsKernel:
    """The part of an estimator that shows and sets ``kernel__sigma``, be the kernel an object or its formula."""

    kernel: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with those of the kernel as ``kernel__parameter``."""
        params: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep:
            try:
                owned = get(self.kernel).get_params(deep=True)
            except (TypeError, ValueError):  # a wrong spelling is reported by fit
                owned = {}
            params.update({f"kernel__{key}": value for key, value in owned.items()})
        return params

    def set_params(self, **params: Any) -> Any:
        """Change parameters."""
        from sklearn.base import clone

        nested = {key: params.pop(key) for key in list(params) if key.startswith("kernel__")}
        super().set_params(**params)  # type: ignore[misc]
        if nested:
            own = {key.removeprefix("kernel__"): value for key, value in nested.items()}
            self.kernel = clone(get(self.kernel)).set_params(**own)  # what was learned keeps the one it has
        return self


# ----------------------------------------------------------------------------------------------------
# What a fit in the dual will take, told before it begins.


EARLY = 0.25  # of the first pass: what has become of it says what to expect of the rest
KEPT = 0.1  # of the support examples: so many are learned from in three passes or more, and their values kept
MUCH = 2.0  # times as many support examples as were thought: worth saying


class Estimate(NamedTuple):
    """Time and memory of a fit, if one example in ten becomes a support example: a guess, for nobody can know."""

    rows: int
    supports: int
    seconds: float
    megabytes: float

    def __str__(self) -> str:
        return (
            f"about {self.seconds:.2g} s and {self.megabytes:.0f} MB beside the data for {self.rows:,} examples, "
            f"if {self.supports:,} of them become support examples; in proportion longer if more do"
        )

    def corrected(self, seen: int, supports: int) -> str | None:
        """What is to be said when so many of the examples seen have become support examples; None if nothing is."""
        likely = supports / seen * self.rows
        if likely <= MUCH * self.supports:
            return None
        return (
            f"{supports:,} of the first {seen:,} examples have become support examples: "
            f"if that goes on, about {self.seconds * likely / self.supports:.2g} s"
        )


@contextmanager
def report_estimate(training: Any, expected: Estimate, who: str) -> Iterator[None]:
    """Say what is expected, and again early in the first pass if it turns out to be much more."""
    seen, before = 0, len(training.supports)

    def look(examples: int) -> None:
        nonlocal seen
        seen += examples
        if seen >= EARLY * expected.rows:
            training.after_block = None
            if (more := expected.corrected(seen, len(training.supports) - before)) is not None:
                print(f"{who}: {more}", file=sys.stderr)

    print(f"{who}: {expected}", file=sys.stderr)
    training.after_block = look
    try:
        yield
    finally:
        training.after_block = None


def estimate(kernel: Any, points: Any, passes: int, cache_bytes: int, outputs: int, most: int | None) -> Estimate:
    """By timing a block of a sample: each row meets each support example once, and a few of them again each pass."""
    rows = len(points)
    some = points.take(np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64))
    each = seconds(lambda: kernel.block(some, some)) / len(some) ** 2
    supports = max(1, min(round(SUPPORT * rows), rows if most is None else most))
    room = cache_bytes / max(1, rows * points.dtype.itemsize)
    kept = min(KEPT * supports, room) if passes > 2 else 0.0
    numbers = rows * (kept * points.dtype.itemsize / 8 + outputs + 3) + supports * 2 * outputs
    return Estimate(rows, supports, each * rows * supports * (1 + 0.1 * (passes - 1)), numbers * 8 / 2**20)


class Estimated:
    """The part of a kernel classifier that tells beforehand what a fit will take."""

    budget: int | None
    epochs: int | None
    max_epochs: int
    cache_mb: float
    _kernel: Any
    _training: Any

    def estimate(self, X: Any) -> Estimate:
        """What ``fit`` would take on these examples in the dual, by timing the kernel on a few of them."""
        model: Any = clone(self).set_params(representation="dual")
        model._check_settings()
        return model._estimate(model._check_rows(X, reset=True))

    def _estimate(self, X: Any) -> Estimate:
        outputs = self._training.outputs if hasattr(self, "_training") else 1
        passes, room = self.epochs or min(10, self.max_epochs), int(self.cache_mb * 2**20)
        return estimate(self._kernel, X.points, passes, room, outputs, self.budget)


# ----------------------------------------------------------------------------------------------------
# What a run over files asks of a learner, in the dual: to start, and to learn from rows pass after pass.
#
# A support example is a row as it was learned from, so all rows must have their final width before the first is learned
# from, and they stay in memory: their kernel values will be needed again. A run that is left off goes on bit for
# bit, so
# the model file holds how its rows stood: their sums are rounded by the order in which they came about.


ON_NUMBERS = ("vectors", "matrix")  # kinds of data that have columns
TRIED = 64  # support examples whose kernel values must stay what they are when columns are added


class InPasses:
    """The part of a kernel classifier that learns from rows it is given once, in as many passes as are made."""

    kernel: Any
    representation: str
    epochs: int | None
    cache_mb: float
    budget: int | None
    _kernel: Any
    _training: Any
    _points: Any
    _current_scores: Any  # of the rows of a run that is not over
    _saved_scores: tuple[dict[str, Any], dict[str, np.ndarray]]  # the same as it was read from a file
    _constant_feature: Any

    def start(self, features: int, counts: np.ndarray, dtype: Any) -> None:
        """Make ready to learn from rows of this width, of classes 0 to K - 1 which come so often."""
        if self.representation == "primal":
            raise ValueError("rows that come in passes are learned from in the dual: leave representation='primal' out")
        self._kernel = own(kernels.get(self.kernel))
        self.representation_, self.representation_reason_ = "dual", "the rows come in passes"
        super().start(features, counts, dtype)  # type: ignore[misc]
        if self._kernel.data not in ON_NUMBERS:  # strings and trees have no columns
            del self.__dict__["n_features_in_"]

    def go_on(self, features: int, counts: np.ndarray) -> None:
        """Make ready to learn from more rows, which may be wider, of the same classes, which come so often."""
        self.release_rows()
        if self._kernel.data in ON_NUMBERS and features > self.__dict__["n_features_in_"]:
            self._widen(features)
        self.__dict__["_counts"] = self.__dict__["_counts"] + np.concatenate([[counts.sum()], counts])
        supports = self._training.supports
        if self.budget is None and len(supports):  # they are prepared as the rows will be
            examples = supports.examples()
            self._training.attach(SupportSet(self._kernel, examples, self._points(examples)))

    def _widen(self, features: int) -> None:
        """Give the support examples columns of zeros, if that means nothing to the kernel."""
        supports, new = self._training.supports, features - self.__dict__["n_features_in_"]
        if len(supports):
            wider = _widened(supports.examples(), features)
            few = np.arange(min(TRIED, len(supports)))
            values = [self._kernel(pick(some, few)) for some in (supports.examples(), wider)]
            if not np.allclose(*values):
                raise ValueError(
                    f"the rows have {new} features that the model has not met, and to {self._kernel} it matters how "
                    "many there are that two rows do not have: train anew on all data"
                )
            made = (
                SupportSet(self._kernel, wider)
                if self.budget is None
                else SupportSlots(self._kernel, self.budget, wider)
            )
            self._training.attach(made)
        self.__dict__["n_features_in_"] = features

    def prepare_rows(self, X: Any) -> Any:
        """All rows that there will be, checked, in the form that ``learn_rows`` takes them in.

        Before each pass call ``begin_pass`` of what is returned; when all is learned, ``release_rows``. A learner that
        is saved before that and loaded again resumes with the same rows: see ``is_unfinished``.
        """
        points = self._points(X)
        self._check_kernel(points)  # type: ignore[attr-defined]
        self.__dict__["_dtype"] = np.dtype(points.dtype)  # one precision for all
        self._training.explicit_passes = True
        if not self._training.n_seen:
            self._training.bias = self._constant_feature(points)
        room = 0 if self.epochs == 1 else int(self.cache_mb * 2**20)
        examples = Examples(X, points, X.shape[1] if hasattr(X, "shape") else 1)
        if self.is_unfinished():
            self._current_scores = self._training.resume(examples, room, self._points, self._saved_scores)
            del self._saved_scores
        else:
            self._current_scores = self._training.prepare(examples, room)
        return self._current_scores

    def is_unfinished(self) -> bool:
        """Whether this was read from a file in the middle of passes, and nothing was learned since."""
        return "_saved_scores" in self.__dict__ and int(self._saved_scores[0]["seen"]) == self._training.n_seen

    def release_rows(self) -> None:
        """The passes over the rows are over: let go of them."""
        for name in ("_current_scores", "_saved_scores"):
            self.__dict__.pop(name, None)

    def _pack_scores(self) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """How the rows stand, in the middle of passes."""
        if "_current_scores" in self.__dict__:
            facts, arrays = self._current_scores.pack()
            return {**facts, "seen": self._training.n_seen}, arrays
        return self._saved_scores if self.is_unfinished() else None

    def take_in(self, features: int, classes: int) -> None:
        raise ValueError("a kernel classifier cannot take in features or classes: its support examples lack them")

    def keep_features(self, kept: np.ndarray) -> None:
        raise ValueError("a kernel classifier cannot let go of features: it has weights of examples, not of features")


def _widened(X: Any, width: int) -> Any:
    """Rows with columns of zeros added."""
    if sp.issparse(X):
        return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    return np.pad(X, ((0, 0), (0, width - X.shape[1])))


class Filed:
    """The part of a kernel classifier that writes it to a model file, and reads it back."""

    kernel: Any
    budget: int | None
    budget_policy: Any
    representation_: str
    representation_reason_: str
    _kernel: Any
    _training: Any
    _settle: Any
    _pack_scores: Any
    _saved_scores: Any

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        mine: dict[str, Any] = {"representation": self.representation_, "reason": self.representation_reason_}
        missing = object()
        width = self.__dict__.get("n_features_in_", missing)
        if width is missing:  # strings and trees have no columns
            self.__dict__["n_features_in_"] = 0
        try:
            facts, arrays = super()._pack()  # type: ignore[misc]
        finally:
            if width is missing:
                del self.__dict__["n_features_in_"]
        mine["kernel"], more = kernels.pack(self._kernel)
        mine["kernel_as_text"] = isinstance(self.kernel, str)
        mine["stopped"] = self._training.stopped
        if "reduction_" in self.__dict__:
            mine["reduction"] = self.__dict__["reduction_"]._asdict()
        arrays.update(more)
        if self.representation_ == "dual":
            mine["support"], more = self._training.supports.pack()
            arrays.update({f"support.{key}": array for key, array in more.items()})
            if self._training.stages is not None:
                mine["stages"] = len(self._training.stages)
                arrays.update({f"stage.{n}": stage for n, stage in enumerate(self._training.stages)})
            if isinstance(self._training, BudgetTraining):
                mine["budget"], more = self._training.pack_budget()
                arrays.update(more)
            if (left := self._pack_scores()) is not None:
                mine["standing"], more = left
                arrays.update({f"standing.{key}": array for key, array in more.items()})
        return {**facts, "dual": mine}, arrays

    def _training_class(self) -> type[Training]:
        dual = BudgetTraining if self.budget is not None else DualTraining
        return dual if self.representation_ == "dual" else Training

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        mine = facts["dual"]
        self.representation_, self.representation_reason_ = mine["representation"], mine["reason"]
        self._kernel = kernels.unpack(mine["kernel"], arrays)
        if not mine.get("kernel_as_text") or kernels.get(self.kernel) != self._kernel:
            self.kernel = own(self._kernel)
        limit = mine.get("budget")
        if self.representation_ == "dual":  # what was set since learning began was never learned with
            self.budget = None if limit is None else int(limit["budget"])
        super()._unpack(facts, arrays)  # type: ignore[misc]
        self._training.stopped = mine.get("stopped")
        if mine.get("reduction") is not None:
            self.__dict__["reduction_"] = Reduction(**mine["reduction"])
        if self.representation_ == "dual":
            kept = _under("support.", arrays)
            if self.budget is None:
                self._training.attach(SupportSet.unpack(self._kernel, mine["support"], kept))
            else:
                some = None if mine["support"]["kind"] == "none" else kernels.unpack_data(mine["support"], kept)
                self._training.attach(SupportSlots(self._kernel, int(self.budget), some))
                self._training.unpack_budget(limit, arrays)
                if POLICIES.get(self.budget_policy) != self._training.policy:
                    self.budget_policy = self._training.policy
            if mine.get("stages") is not None:
                self._training.stages = _stages(self._training, [arrays[f"stage.{n}"] for n in range(mine["stages"])])
            if "standing" in mine:
                self._saved_scores = mine["standing"], _under("standing.", arrays)
        if self._kernel.data not in ON_NUMBERS:
            del self.__dict__["n_features_in_"]
        self._settle()


def _stages(training: Any, stages: list[np.ndarray]) -> list[np.ndarray]:
    """The hypotheses after each pass, of which none has more support examples than there are now."""
    most = training.features + 1
    for stage in stages:
        if (
            stage.dtype != np.float64
            or stage.ndim != 2
            or not (1 <= len(stage) <= most and stage.shape[1] == training.outputs)
        ):
            raise ValueError("the hypothesis after a pass does not have the shape that this learner has")
    return stages


def _under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
