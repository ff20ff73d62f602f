"""Smaller forms of a hypothesis in the dual: weights of features, or fewer examples."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from onlearn.dual.mapping import map_state
from onlearn.dual.representation import Choice, seconds, unlisted
from onlearn.dual.scoring import staged_scores
from onlearn.dual.supports import Supports, pick
from onlearn.dual.training import DualTraining
from onlearn.training import Training

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
