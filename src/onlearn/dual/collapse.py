"""Smaller forms of a hypothesis in the dual: weights of features, or fewer examples."""

from __future__ import annotations

import copy
import time
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.scores import staged_scores
from onlearn.dual.supports import Supports, pick
from onlearn.dual.training import DualTraining
from onlearn.engine.protocol import layout
from onlearn.engine.training import Training
from onlearn.kernels.psd import in_words
from onlearn.theory.certificate import certify_scores

# ----------------------------------------------------------------------------------------------------
# A hypothesis over other features that are linear combinations of the old ones: collapsing and reducing.
#
# Everything an additive learner keeps for each weight (the weights, what averaging lacks, the best hypothesis) is
# linear
# in the features. So one matrix takes the whole state along, and learning can go on from it.


def map_state(training: Training, matrix: Any, into: Training) -> Training:
    """Give ``into`` the state of a training whose feature k is row k of the matrix in the new features."""
    if training.stabilizer.every_hypothesis:
        raise ValueError("a voted learner is many hypotheses, each a change of the one before: it cannot be collapsed")
    count, outputs = training.features + 1, training.outputs
    for part in ("g", "st"):
        old, fresh = getattr(training, part), getattr(into, part)
        fields = {}
        for name, holds in layout(type(old)).items():
            before = getattr(old, name)
            if holds == "weights":
                lines = before[: count * outputs].reshape(count, outputs)
                fields[name] = np.vstack([lines[:1], np.asarray(matrix.T @ lines[1:])]).reshape(-1)
            else:
                fields[name] = before.copy()
        setattr(into, part, type(fresh)(**fields))
    for name in ("tally", "doubling", "since", "by_pass"):
        setattr(into, name, getattr(training, name).copy())
    into.audit = type(training.audit)(*(array.copy() for array in training.audit))
    for name in ("passes", "classifies", "even", "stopped"):
        setattr(into, name, getattr(training, name))
    return into


# ----------------------------------------------------------------------------------------------------
# Primal or dual: weights of the kernel's features, or weights of examples? Decided by measuring both on a sample.


SAMPLE = 256  # examples
TURNS = 4
SUPPORT = 0.1  # of the examples, as a guess: the part on which steps are made
EACH = 2e-9  # seconds for a weight of an example in a linear pass
MOST = 1 << 30  # bytes that the features of all examples may take


class Choice(NamedTuple):
    name: str  # "primal" or "dual"
    reason: str


def choose(kernel: Any, raw: Any, points: Any, passes: int, forced: bool = False) -> Choice:
    """The cheaper representation for these examples; ``forced``: the primal, if there is one."""
    rows, width = len(points), raw.shape[1] if hasattr(raw, "shape") else 1
    features = kernel.n_features(width)
    if features is None:
        if forced:
            raise ValueError(f"{unlisted(kernel)}: use representation='dual'")
        return Choice("dual", unlisted(kernel))
    if forced:
        return Choice("primal", "asked for")
    size = rows * features * points.dtype.itemsize
    if size > MOST:
        room = f"{size / 2**30:.1f}" if size < 2**60 else in_words(size >> 30)
        return Choice("dual", f"{in_words(features)} features of {rows} examples would take {room} GiB")
    some = np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64)
    mapping = seconds(lambda: kernel.features(pick(raw, some))) * rows / len(some)
    primal = mapping + passes * rows * features * EACH
    sample = points.take(some)
    dual = seconds(lambda: kernel.block(sample, sample)) / len(some) ** 2 * rows * max(1.0, SUPPORT * rows)
    name = "primal" if primal < dual else "dual"
    return Choice(
        name,
        f"about {primal:.2g} s with {features} features, "
        f"{dual:.2g} s in the dual if {SUPPORT:.0%} of {rows} examples become support examples",
    )


def unlisted(kernel: Any) -> str:
    """Why there are no features to learn weights of."""
    if kernel.data in ("strings", "trees"):
        return f"the features of {kernel} are pieces of the {kernel.data} at hand, without a list known beforehand"
    return f"{kernel} has no finite list of features known beforehand"


def seconds(work: Any) -> float:
    """The time a piece of work takes when nothing comes between: the shortest of a few, after a first."""
    work()
    found = []
    for _ in range(TURNS):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


# ----------------------------------------------------------------------------------------------------
# The mistake bounds of a kernel learner: radius and margin in the feature space, by kernel values alone.


CHECKED = 200  # examples on which a function that may not be a kernel is tried


def verdict_on(kernel: Any, points: Any) -> Any:
    """Whether a function that need not be a kernel is one on (a sample of) these examples."""
    some = points.take(np.linspace(0, len(points) - 1, min(CHECKED, len(points))).astype(np.int64))
    return kernels.judge(kernel, some)


def dual_certificate(training: Any, points: Any, y: np.ndarray) -> Any:
    """The certificate of a learner of two classes on the examples that it was trained on."""
    supports, geometry = training.supports, training.geometry
    if supports.kernel.data == "matrix":
        supports = supports.found_in(points)
    handed = training.weights()
    line = handed if training.outputs == 1 else handed[:, 1:] - handed[:, :1]
    scores = staged_scores(training, points, [handed])[0]
    score = scores[:, 0] if training.outputs == 1 else scores[:, 1] - scores[:, 0]
    weights, constant = line[1:, 0], float(line[0, 0])
    every = supports.every() if len(supports) else None
    square = weights @ (supports.products(every).astype(np.float64) @ weights) if every is not None else 0.0
    lengths = supports.kernel.diagonal(points) + training.bias**2
    certificate = certify_scores(
        y * score,
        radius=float(np.sqrt(max(0.0, lengths.max()))),  # of what is no kernel it may be below 0
        norm=float(np.sqrt(max(0.0, square) + constant**2)),
        mistakes=training.n_mistakes,
        rule=training.rule.name if training.output is None else f"{training.rule.name}, {training.output}",
        passes=training.n_seen / len(points),
        single_rate=training.even and geometry.schedule == "constant" and not geometry.drifts,
    )
    verdict = None if supports.kernel.always_psd else verdict_on(supports.kernel, points)
    return certificate if verdict is None or verdict else certificate.beyond_theory(str(verdict))


TRIED = 256  # examples that prediction is timed on
NEAR = 1e-10  # squared distance from the span, relative to the length, below which an example adds nothing
RIDGE = 1e-10  # relative to the diagonal: what keeps nearly equal examples from having huge weights


class Reduction(NamedTuple):
    """What ``reduce`` did, and what it cost on the data given."""

    before: int  # support examples
    after: int
    lost: float  # |w - w'| / |w| in feature space
    accuracy_before: float | None
    accuracy_after: float | None


class SmallerForms:
    """The part of a kernel classifier that makes smaller ones of it."""

    _training: Any
    representation_: str
    _dual: Any
    leave: Any
    score: Any

    def to_primal(self, force: bool = False) -> Any:
        """The same classifier as weights of the kernel's features, if that is smaller or faster.

        ``representation_reason_`` of what is returned says which; if it is neither, that is an error, unless ``force``.
        This one stays as it is, whatever the other goes on to learn.
        """
        check_is_fitted(self)
        if self.representation_ == "primal":
            return self._alike(copy.deepcopy(self._training))
        training = self._dual("to_primal")
        verdict = worth_collapsing(training, self.n_features_in_ if hasattr(self, "n_features_in_") else 1)
        if verdict.name == "dual" and not force:
            raise ValueError(f"weights of features would be {verdict.reason}; force=True collapses all the same")
        made = self._alike(collapsed(training))
        made.representation_, made.representation_reason_ = "primal", verdict.reason
        return made

    def reduce(self, n: int, X: Any = None, y: Any = None) -> Any:
        """A classifier with n support examples whose hypothesis is as near as it gets, by projection.

        ``reduction_`` of what is returned says how near; with X and y also what accuracy was lost on them.
        """
        check_is_fitted(self)
        training = self._dual("reduce")
        if getattr(self, "budget", None) is not None:
            raise ValueError("this classifier holds to a budget already: learn with a smaller budget instead")
        if isinstance(n, bool) or not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n must be a whole number of at least 1, not {n!r}")
        if (X is None) != (y is None):
            raise ValueError("the accuracy that is lost is measured on X and y: give both, or neither")
        smaller, lost = reduced(training, int(n))
        made = self._alike(smaller)
        tried = X is not None
        made.reduction_ = Reduction(
            len(training.supports),
            len(smaller.supports),
            lost,
            float(self.score(X, y)) if tried else None,
            float(made.score(X, y)) if tried else None,
        )
        return made

    def _alike(self, training: Any) -> Any:
        """A classifier that differs from this one in its training only."""
        made = copy.copy(self)
        made._training = training
        made.leave()
        return made


def worth_collapsing(training: DualTraining, width: int) -> Choice:
    """Whether weights of features would be smaller or faster than the support examples, and why."""
    supports = training.supports
    kernel, count = supports.kernel, len(supports)
    features = kernel.n_features(width)
    if features is None:
        raise ValueError(f"{unlisted(kernel)}, so there are no weights of them to collapse to; it stays in the dual")
    if not count:
        return Choice("primal", "there are no support examples")
    examples = supports.examples()
    size = examples.nnz * 12 if hasattr(examples, "nnz") else getattr(examples, "nbytes", 8 * count * width)
    numbers = size // 8 + count * training.outputs
    some = np.arange(min(TRIED, count))
    few = pick(examples, some)
    points = kernel.points(few)
    slow = seconds(lambda: supports.products(points))
    fast = seconds(lambda: kernel.features(few) @ np.zeros(features))
    smaller, faster = features * training.outputs < numbers, fast < slow
    told = (
        f"{features * training.outputs} weights beside {numbers} numbers in the dual, "
        f"{fast / len(some):.2g} s an example beside {slow / len(some):.2g} s"
    )
    verdict = [word for word, true in (("smaller", smaller), ("faster", faster)) if true]
    return Choice("primal" if verdict else "dual", f"{' and '.join(verdict) or 'neither smaller nor faster'}: {told}")


def collapsed(training: DualTraining) -> Training:
    """The same hypothesis as weights of the kernel's features."""
    kernel = training.supports.kernel
    examples = training.supports.examples()
    if examples is None:
        raise ValueError("there are no support examples yet, so there is nothing to collapse")
    matrix = kernel.features(examples)
    parts = training.rule, training.geometry, training.stabilizer, training.output
    into = Training(*parts, matrix.shape[1], training.outputs, training.bias)
    return map_state(training, matrix, into)


def reduced(training: DualTraining, size: int) -> tuple[DualTraining, float]:
    """The nearest hypothesis with so many support examples, and how far it is: |w - w'| / |w|.

    Examples are chosen one by one (orthogonal matching pursuit): each is the one that brings the span of those chosen
    nearest to the hypothesis. Their weights are those of the projection onto their span.
    """
    supports = training.supports
    count = len(supports)
    if size < 1:
        raise ValueError(f"a hypothesis needs at least one support example, not {size}")
    size = min(size, count)
    every = supports.every()
    length = supports.kernel.diagonal(every).astype(np.float64)
    rest = length.copy()  # the squared distance of each from the span
    factor = np.zeros((count, size))  # of a pivoted Cholesky decomposition
    # the products of each with what is left of the hypothesis
    weights = np.vstack([np.zeros((1, training.outputs)), training.weights()[1:]])
    left = staged_scores(training, every, [weights])[0] + training.theta
    whole = rest_of_it = float(np.sum(weights[1:] * left))  # |w|^2
    chosen: list[int] = []
    for n in range(size):
        far = rest > NEAR * length
        gain = np.where(far, np.sum(left**2, axis=1) / np.where(far, rest, 1.0), -1.0)
        gain[chosen] = -1.0
        pivot = int(np.argmax(gain))
        if gain[pivot] <= 0.0:
            break
        column = supports.products(every.take(np.array([pivot])))[0].astype(np.float64)
        factor[:, n] = (column - factor[:, :n] @ factor[pivot, :n]) / np.sqrt(rest[pivot])
        along = left[pivot] / np.sqrt(rest[pivot])
        left -= np.outer(factor[:, n], along)
        rest_of_it -= float(along @ along)
        rest = rest - factor[:, n] ** 2
        chosen.append(pivot)
    keep = np.array(chosen or [0])
    among = supports.products(every.take(keep)).astype(np.float64)
    small = among[:, keep]
    small[np.diag_indices(len(keep))] *= 1.0 + RIDGE
    matrix = np.linalg.solve(small, among).T
    into = DualTraining(
        training.rule, training.geometry, training.stabilizer, training.output, len(keep), training.outputs,
        training.bias,
    )  # fmt: skip
    fewer = Supports(supports.kernel)
    fewer.add(pick(supports.examples(), keep), every.take(keep))
    into.attach(fewer)
    map_state(training, matrix, into)
    return into, float(np.sqrt(max(0.0, rest_of_it) / whole)) if whole > 0 else 0.0
