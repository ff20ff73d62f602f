"""Other forms of a hypothesis in the dual (weights of features, fewer support examples), and its certificate.

A hypothesis w = sum_s a_s phi(s) collapses to the weights w themselves where the features phi can be listed. It is
reduced to n support examples by orthogonal matching pursuit (Pati, Rezaiifar & Krishnaprasad 1993; Vincent & Bengio
2002), with the weights of the projection of w onto their span.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from onlearn import kernels
from onlearn.dual.examples import pick
from onlearn.dual.scores import staged_scores
from onlearn.dual.supports import SupportSet
from onlearn.dual.training import STEPS, DualTraining
from onlearn.engine.csr import CSR, is_sparse
from onlearn.engine.passes import warn_caller
from onlearn.engine.protocol import layout
from onlearn.engine.rounds import mixing_of
from onlearn.engine.training import Training
from onlearn.kernels.psd import in_words
from onlearn.theory.certificate import certify_scores
from onlearn.theory.max_margin import maximum_margin_scores

SAMPLE = 256  # examples on which representations are timed
REPEATS = 4  # of a measurement
PASSES = 5  # assumed, if they are not given
SUPPORT = 0.1  # assumed share of the examples that become support examples
AGAIN = 0.5  # assumed steps of a later pass, for each support example
WEIGHT_SECONDS = 1e-9  # for a weight of an example in a linear pass
SUM_SECONDS = 1e-9  # for the sum of one example that a step in the dual changes
BLOCK_SECONDS = 1.2e-3  # for a block of examples in the dual, whatever its kernel values take
SHORTER = 2.0  # times as long as in a block of the sample a kernel value takes in blocks of a few rows
MOST_BYTES = 1 << 30  # that the features of all examples may take
MARGIN_EXAMPLES = 1000  # of which the maximum-margin separator is looked for, for a certificate
CHECKED = 200  # examples on which a function that may not be a kernel is tried
NEAR = 1e-10  # squared distance from the span, relative to the length, below which an example adds nothing
RIDGE = 1e-10  # relative to the diagonal: it keeps the weights of nearly equal examples small


class Choice(NamedTuple):
    """A representation and the reason for it."""

    name: str  # "primal" or "dual"
    reason: str


class Costs(NamedTuple):
    """What was measured on a sample of the examples."""

    mapping: float  # seconds to make the features of all examples
    value: float  # seconds for a kernel value


class Reduction(NamedTuple):
    """The outcome of ``reduce``, and its cost on the data given; accuracy is R2 in regression."""

    before: int  # support examples
    after: int
    lost: float  # |w - w'| / |w| in feature space
    accuracy_before: float | None
    accuracy_after: float | None
    by: str = "projection"


# Primal or dual: weights of the kernel's features, or weights of examples


def choose(kernel: Any, raw: Any, points: Any, settings: Any) -> Choice:
    """The representation that the settings ask for, or the cheaper one, by timing both on a sample of the examples."""
    if settings.representation == "dual":
        return Choice("dual", "asked for")
    forced = settings.representation == "primal"
    if settings.budget is not None:
        if forced:
            raise ValueError("a budget is for the dual: with representation='primal' there are no support examples")
        return Choice("dual", "a budget was given")
    rows, width = len(points), raw.shape[1] if hasattr(raw, "shape") else 1
    features = kernel.n_features(width)
    if features is None:
        if forced:
            raise ValueError(f"{no_features_reason(kernel)}: use representation='dual'")
        return Choice("dual", no_features_reason(kernel))
    if forced:
        return Choice("primal", "asked for")
    size = rows * features * points.dtype.itemsize
    if size > MOST_BYTES:
        room = f"{size / 2**30:.1f}" if size < 2**60 else in_words(size >> 30)
        return Choice("dual", f"{in_words(features)} features of {rows} examples would take {room} GiB")
    some = np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64)
    sample = points.take(some)
    costs = Costs(
        mapping=seconds(lambda: kernel.features(pick(raw, some))) * rows / len(some),
        value=seconds(lambda: kernel.block(sample, sample)) / len(some) ** 2,
    )
    return cheaper(costs, rows, features, settings.epochs or PASSES)


def cheaper(costs: Costs, rows: int, features: int, passes: int) -> Choice:
    """The representation that takes less time, by measured costs."""
    primal = costs.mapping + passes * rows * features * WEIGHT_SECONDS
    dual = dual_seconds(costs.value, rows, max(1, round(SUPPORT * rows)), passes)
    return Choice(
        "primal" if primal < dual else "dual",
        f"about {primal:.2g} s with {features} features, "
        f"{dual:.2g} s in the dual if {SUPPORT:.0%} of {rows} examples become support examples",
    )


def dual_seconds(value: float, rows: int, supports: int, passes: int) -> float:
    """The time of passes in the dual with so many support examples, if a kernel value takes ``value`` seconds.

    On small data most of it is spent between kernel values: each block of a few steps takes a while, and each step
    changes a sum of every example.
    """
    steps = supports * (1 + AGAIN * (passes - 1))
    blocks = passes + steps / STEPS
    return SHORTER * value * rows * supports + SUM_SECONDS * rows * steps + BLOCK_SECONDS * blocks


def no_features_reason(kernel: Any) -> str:
    """Why the features of a kernel cannot be listed."""
    if kernel.data in ("strings", "trees"):
        return f"the features of {kernel} are pieces of the given {kernel.data}, without a list known beforehand"
    return f"{kernel} has no finite list of features known beforehand"


def seconds(work: Any) -> float:
    """The shortest time of a few runs, after a first one."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


# Collapsing and reducing


def worth_collapsing(training: DualTraining, width: int) -> Choice:
    """Whether weights of features are smaller or faster than the support examples, and the numbers."""
    supports = training.supports
    kernel, count = supports.kernel, len(supports)
    features = kernel.n_features(width)
    if features is None:
        raise ValueError(
            f"{no_features_reason(kernel)}, so there are no weights of them to collapse to; it stays in the dual"
        )
    if not count:
        return Choice("primal", "there are no support examples")
    examples = supports.examples()
    numbers = _size(examples, width) // 8 + count * training.outputs
    few = pick(examples, np.arange(min(SAMPLE, count)))
    points = kernel.points(few)
    slow = seconds(lambda: supports.products(points))
    fast = seconds(lambda: kernel.features(few) @ np.zeros(features))
    smaller, faster = features * training.outputs < numbers, fast < slow
    compared = (
        f"{features * training.outputs} weights beside {numbers} numbers in the dual, "
        f"{fast / len(points):.2g} s an example beside {slow / len(points):.2g} s"
    )
    verdict = [word for word, true in (("smaller", smaller), ("faster", faster)) if true]
    return Choice(
        "primal" if verdict else "dual", f"{' and '.join(verdict) or 'neither smaller nor faster'}: {compared}"
    )


def _size(examples: Any, width: int) -> int:
    """Bytes that the examples take; an estimate for lists."""
    if is_sparse(examples):
        return int(examples.nnz) * 12
    return int(examples.nbytes) if isinstance(examples, np.ndarray) else 8 * len(examples) * width


def collapse(training: DualTraining) -> Training:
    """The same hypothesis as weights of the kernel's features."""
    kernel = training.supports.kernel
    examples = training.supports.examples()
    if examples is None:
        raise ValueError("there are no support examples yet, so there is nothing to collapse")
    matrix = kernel.features(examples)
    parts = training.rule, training.geometry, training.stabilizer, training.output
    into = Training(*parts, matrix.shape[1], training.outputs, training.bias)
    return map_state(training, matrix, into)


def reduce_supports(training: DualTraining, size: int, by: str) -> tuple[DualTraining, float]:
    """A hypothesis w' with at most ``size`` support examples near w, and its distance |w - w'| / |w|."""
    if by not in REDUCE:
        raise ValueError(f"by must be {' or '.join(map(repr, REDUCE))}, not {by!r}")
    return REDUCE[by](training, min(size, len(training.supports)))


def project(training: DualTraining, size: int) -> tuple[DualTraining, float]:
    """The projection of w onto the span of well chosen examples.

    Examples are chosen one by one (orthogonal matching pursuit): each is the one that brings the span of those chosen
    nearest to w. Their weights are those of the projection of w onto their span.
    """
    supports = training.supports
    count = len(supports)
    every = supports.all_points()
    length = supports.kernel.diagonal(every).astype(np.float64)
    rest = length.copy()  # squared distance of each from the span
    factor = np.zeros((count, size))  # of a pivoted Cholesky decomposition
    # Inner products of each with the residual of the hypothesis.
    weights = np.vstack([np.zeros((1, training.outputs)), training.weights()[1:]])
    left = staged_scores(training, every, [weights])[0] + training.theta
    whole = residual = float(np.sum(weights[1:] * left))  # |w|^2
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
        residual -= float(along @ along)
        rest = rest - factor[:, n] ** 2
        chosen.append(pivot)
    keep = np.array(chosen or [0])
    values = supports.products(every.take(keep)).astype(np.float64)
    small = values[:, keep]
    small[np.diag_indices(len(keep))] *= 1.0 + RIDGE
    into = _with_supports(training, keep, every)
    map_state(training, np.linalg.solve(small, values).T, into)
    return into, float(np.sqrt(max(0.0, residual) / whole)) if whole > 0 else 0.0


def keep_heaviest(training: DualTraining, size: int) -> tuple[DualTraining, float]:
    """The examples of the largest weights (|a|, over all outputs), with the weights that they have."""
    supports, weights = training.supports, training.weights()[1:]
    every = supports.all_points()
    heaviest = np.argsort(-np.sum(weights**2, axis=1), kind="stable")
    keep = np.sort(heaviest[:size])
    ones = np.isin(np.arange(len(supports)), keep)
    indptr = np.concatenate([[0], np.cumsum(ones)])
    into = _with_supports(training, keep, every)
    map_state(training, CSR(np.ones(size), np.arange(size), indptr, (len(supports), size)), into)
    rest = heaviest[size:]
    whole = _squared_length(training, weights, every)
    lost = _squared_length(training, np.where(ones[:, None], 0.0, weights), every.take(rest), rest)
    return into, float(np.sqrt(max(0.0, lost) / whole)) if whole > 0 else 0.0


def _squared_length(training: DualTraining, weights: np.ndarray, points: Any, rows: Any = slice(None)) -> float:
    """|w|^2 of such weights of the support examples, which are zero but for these points in these rows."""
    if not len(points):
        return 0.0
    scores = staged_scores(training, points, [np.vstack([np.zeros((1, training.outputs)), weights])])[0]
    return float(np.sum(weights[rows] * (scores + training.theta)))


REDUCE = {"projection": project, "weight": keep_heaviest}


def _with_supports(training: DualTraining, keep: np.ndarray, every: Any) -> DualTraining:
    """A training like this one for some of its support examples, without their weights."""
    into = DualTraining(
        training.rule, training.geometry, training.stabilizer, training.output, len(keep), training.outputs,
        training.bias,
    )  # fmt: skip
    fewer = SupportSet(training.supports.kernel)
    fewer.add(pick(training.supports.examples(), keep), every.take(keep))
    into.attach(fewer)
    return into


def map_state(training: Training, matrix: Any, into: Training) -> Training:
    """Give ``into`` the state of a training whose feature k is row k of the matrix in terms of new features.

    All that an additive learner keeps for each weight (the weights, the sums of averaging, the best hypothesis) is
    linear in the features, so one matrix maps the entire state, and learning can continue from it.
    """
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
                fields[name] = np.vstack([lines[:1], _transposed_product(matrix, lines[1:])]).reshape(-1)
            else:
                fields[name] = before.copy()
        setattr(into, part, type(fresh)(**fields))
    for name in ("tally", "doubling", "since", "by_pass"):
        setattr(into, name, getattr(training, name).copy())
    into.audit = type(training.audit)(*(array.copy() for array in training.audit))
    for name in ("passes", "classifies", "even", "stopped"):
        setattr(into, name, getattr(training, name))
    return into


def _transposed_product(matrix: Any, lines: np.ndarray) -> np.ndarray:
    """matrix' lines, for a dense or sparse matrix."""
    if not isinstance(matrix, CSR):
        return np.asarray(matrix.T @ lines)
    out = np.zeros((matrix.shape[1], lines.shape[1]))
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    held = slice(int(matrix.indptr[0]), int(matrix.indptr[-1]))
    np.add.at(out, matrix.indices[held], matrix.data[held, None] * lines[rows])
    return out


# Functions that may not be kernels, and the certificate


def check_kernel(kernel: Any, points: Any) -> None:
    """Warn of a function that is not a kernel on these examples; refuse one that is not even symmetric."""
    if kernel.always_psd:
        return
    verdict = judge_sample(kernel, points)
    if not verdict.symmetric:
        raise ValueError(f"{verdict}; nothing can be learned with it")
    if not verdict:
        warn_caller(f"{verdict}; what theory says of kernels need not hold", UserWarning)


def judge_sample(kernel: Any, points: Any) -> Any:
    """Whether a function that may not be a kernel is one on a sample of these examples."""
    some = points.take(np.linspace(0, len(points) - 1, min(CHECKED, len(points))).astype(np.int64))
    return kernels.judge(kernel, some)


def dual_certificate(training: Any, points: Any, y: np.ndarray) -> Any:
    """The mistake bounds of a learner of two classes on its training examples.

    The radius and the margin in feature space are computed from kernel values alone.
    """
    supports, geometry = training.supports, training.geometry
    if supports.kernel.data == "matrix":
        supports = supports.located_in(points)
    handed = training.weights()
    line = handed if training.outputs == 1 else handed[:, 1:] - handed[:, :1]
    scores = staged_scores(training, points, [handed])[0]
    score = scores[:, 0] if training.outputs == 1 else scores[:, 1] - scores[:, 0]
    weights, constant = line[1:, 0], float(line[0, 0])
    every = supports.all_points() if len(supports) else None
    square = weights @ (supports.products(every).astype(np.float64) @ weights) if every is not None else 0.0
    lengths = supports.kernel.diagonal(points) + training.bias**2
    radius = float(np.sqrt(max(0.0, lengths.max())))  # it may be below 0 if the function is no kernel
    widest = None
    if supports.kernel.always_psd and len(points) <= MARGIN_EXAMPLES and (
        training.rule.name == "perceptron" and training.output is None
    ):  # fmt: skip
        gram = supports.kernel.block(points, points).astype(np.float64)
        widest = maximum_margin_scores(gram, y, constant=training.bias)
    certificate = certify_scores(
        y * score,
        radius=radius,
        norm=float(np.sqrt(max(0.0, square) + constant**2)),
        widest=widest,
        mistakes=training.n_mistakes,
        rule=training.rule.name if training.output is None else f"{training.rule.name}, {training.output}",
        passes=training.n_seen / len(points),
        single_rate=training.even and geometry.schedule == "constant" and not geometry.drifts,
        mixing=mixing_of(training, len(points)),
    )
    verdict = None if supports.kernel.always_psd else judge_sample(supports.kernel, points)
    return certificate if verdict is None or verdict else certificate.beyond_theory(str(verdict))
