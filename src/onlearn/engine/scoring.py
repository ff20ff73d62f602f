"""Scores of many rows by a hypothesis, on all cores."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onlearn.compiler.inlining import Loop, helper
from onlearn.compiler.intrinsics import TILE, WIDTH, first_highest, score_tile
from onlearn.engine.csr import LAST, as_rows, check_finite, is_sparse
from onlearn.engine.protocol import handed
from onlearn.engine.rounds import mixing_of
from onlearn.engine.rows import FOUR, ONE, THREE, TWO, Dense, add_products, column, span
from onlearn.engine.stabilizers import cast_votes
from onlearn.threads import over_rows

LARGE = 1e25  # weights beyond which single precision might overflow
CACHED = 1 << 18  # bytes of weights up to which dense rows are faster a few at a time than by the BLAS


@Loop
def sparse_score(rows, w, b, out, start, stop):
    """out[i] = x_i . w + b[0]; returns whether all of them are finite."""
    strange = 0
    for i in range(start, stop):
        first, past = span(rows, i)
        s = b[0]
        for p in range(first, past):
            s += rows.data[p] * w[np.uint64(rows.indices[p])]
        out[i] = s
        strange += not abs(s) <= LAST
    return strange == 0


@Loop
def sparse_scores(rows, w, b, room, out, best, start, stop):
    """out[i, c] = x_i . w[c] + b[c], all flat; w has the outputs of a feature side by side.

    Or, if there is room in ``best``, the output with the highest score goes there, and nowhere else. ``room`` is a line
    of whole vectors, with the lowest of numbers beyond the outputs. Returns whether all scores are finite.
    """
    outputs, strange = len(b), 0
    scores = room[:outputs]
    for i in range(start, stop):
        for c in range(outputs):
            scores[c] = b[c]
        add_products(rows, i, w, np.uint64(0), scores)
        strange += choose(room, out, outputs, best, i)
    return strange == 0


@Loop
def dense_scores(x, width, outputs, w, room, out, best, start, stop):
    """The same for dense rows. Line 0 of w are the intercepts, line k + 1 the weights of column k.

    A tile of rows by up to three vectors of outputs at a time, so that what is loaded is used often.
    """
    d, padded = np.uint64(width), np.uint64(len(w)) // np.uint64(width + 1)
    vectors = padded // np.uint64(WIDTH // w.itemsize)
    strange = 0
    i, end = np.uint64(start), np.uint64(stop)
    while i < end:
        last = end - ONE  # for want of others it keeps itself company
        places = i * d, min(i + ONE, last) * d, min(i + TWO, last) * d, min(i + THREE, last) * d
        at, left = np.uint64(0), vectors
        while left > 0:
            if left == 3 or left > 4:  # four are two and two, since one alone would wait for its own sums
                score_tile(room, x, places, d, w, at, padded, 3)
                taken = THREE
            elif left > 1:
                score_tile(room, x, places, d, w, at, padded, 2)
                taken = TWO
            else:
                score_tile(room, x, places, d, w, at, padded, 1)
                taken = ONE
            left -= taken
            at += taken * np.uint64(WIDTH // w.itemsize)
        for k in range(min(FOUR, end - i)):
            strange += choose(room[k * padded : (k + ONE) * padded], out, outputs, best, i + k)
        i += FOUR
    return strange == 0


@helper
def choose(scores: Any, out: Any, outputs: Any, best: Any, i: Any) -> bool:
    """Put the scores of row i into out, or the first output with the highest into best; is a score not finite?"""
    first = first_highest(scores)
    if len(best) > 0:
        best[i] = first
    else:
        count, at = np.uint64(outputs), np.uint64(i) * np.uint64(outputs)
        for c in range(count):
            out[at + c] = scores[c]
    return first < 0


def narrow(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in another precision, the largest it has standing for those beyond."""
    if values.dtype == dtype:
        return values
    most = np.finfo(dtype).max
    return np.clip(values, -most, most).astype(dtype)


def linear_scores(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """X w + b with w of shape (features, outputs), in the precision of X if that can hold it; are they all finite?"""
    w, b = _precision(X, w, b)
    if _for_the_blas(X, w):
        with np.errstate(over="ignore", invalid="ignore"):  # it is told below
            scores = X @ w
            scores += b
        return scores, bool(np.isfinite(scores).all())
    out = np.empty(X.shape[0] * len(b), w.dtype)
    finite = _one(X, w, b, out) if len(b) == 1 else _several(X, w, b, out, np.empty(0, dtype=np.int64))
    return out.reshape(-1, len(b)), finite


def best_outputs(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    """For each row the first output with the highest score, of two or more; are all scores finite?"""
    w, b = _precision(X, w, b)
    if _for_the_blas(X, w):
        scores, finite = linear_scores(X, w, b)
        return np.argmax(scores, axis=1), finite
    best = np.empty(X.shape[0], dtype=np.int64)
    return best, _several(X, w, b, np.empty(0, w.dtype), best)


def _precision(X: Any, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    single = X.dtype == np.float32 and max(np.abs(w).max(initial=0.0), np.abs(b).max(initial=0.0)) < LARGE
    return (narrow(w, X.dtype), narrow(b, X.dtype)) if single else (w, b)


def _for_the_blas(X: Any, w: np.ndarray) -> bool:
    return not is_sparse(X) and (not X.flags.c_contiguous or w.shape[1] == 1 or w.nbytes > CACHED)


def _one(X: Any, w: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """Score all sparse rows by one output."""
    rows, line = as_rows(X, 0.0), np.ascontiguousarray(w[:, 0])
    return all(over_rows(lambda *part: sparse_score(rows, line, b, out, *part), X.shape[0], X.nnz))


def _several(X: Any, w: np.ndarray, b: np.ndarray, out: np.ndarray, best: np.ndarray) -> bool:
    """Score all rows by several outputs, into ``out`` or ``best``."""
    rows: Any = as_rows(X, 0.0)
    lanes = WIDTH // w.itemsize
    # a place beyond the outputs, which is there to fill a vector, never has the highest score, nor a strange one
    beyond = np.full(-(-len(b) // lanes) * lanes, np.finfo(w.dtype).min, w.dtype)
    if isinstance(rows, Dense):
        lines = np.zeros((1 + len(w), len(beyond)), w.dtype)
        lines[0] = beyond
        lines[0, : len(b)], lines[1:, : len(b)] = b, w
        cost, room = X.size * len(b), np.empty(TILE * len(beyond), w.dtype)
        loop: Any = partial(dense_scores, rows.data, rows.width, len(b), lines.reshape(-1))
    else:
        cost, room = X.nnz * len(b), beyond
        loop = partial(sparse_scores, rows, np.ascontiguousarray(w).reshape(-1), b)
    return all(over_rows(lambda *part: loop(room.copy(), out, best, *part), X.shape[0], cost))


@Loop
def score_row(rows, g, st, theta, out):
    """The scores of row 0 by what would be handed out now, of which only the weights that the row needs are made.

    Returns the output that is predicted (of one output: 1 above zero, else 0), or -1 if a score is not finite.
    """
    start, stop = span(rows, 0)
    outputs = np.uint64(len(out))
    for c in range(outputs):
        s = rows.bias * handed(st, g, c, c)
        for p in range(start, stop):
            s += rows.data[p] * handed(st, g, (column(rows, p, start) + ONE) * outputs + c, c)
        out[c] = s - theta
    best, strange = 0, 0
    for c in range(len(out)):
        strange += not abs(out[c]) <= LAST
        best = c if out[c] > out[best] else best
    if len(out) == 1:
        best = 1 if out[0] > 0.0 else 0
    return best if strange == 0 else -1


@Loop
def vote(rows, theta, st, x, s, out, start, stop):
    """The votes on a range of rows."""
    for i in range(start, stop):
        cast_votes(st, rows, i, theta, x, s, out[i])


def voted_scores(rows: Any, count: int, theta: float, st: Any, outputs: int) -> np.ndarray:
    """The share of votes of each output (for one output: for less against) by all hypotheses of an electorate."""
    out = np.empty((count, outputs))

    def work(start: int, stop: int) -> None:
        vote(rows, theta, st, np.zeros(len(st.base) // outputs), np.empty(outputs), out, start, stop)

    over_rows(work, count, int(st.used[0]) * count)
    return out


# ----------------------------------------------------------------------------------------------------
# The scores of a learner, by the hypothesis that its training hands out.


def hypothesis(training: Any) -> tuple[np.ndarray, np.ndarray]:
    """The hypothesis as (features x outputs) weights and (outputs) intercepts."""
    if training.stabilizer.every_hypothesis:
        raise AttributeError("a voted learner is many hypotheses, which no single coef_ describes")
    handed = training.weights()
    return handed[1:], handed[0] * training.bias - training.theta


def scores_by(training: Any, X: Any, names: Any = None) -> np.ndarray:
    """Scores by output of rows that may hold NaN or infinity, which are looked for when they show."""
    if training.stabilizer.every_hypothesis:
        check_finite(X, names)
        rows = as_rows(X if is_sparse(X) else np.ascontiguousarray(X), training.bias)
        return voted_scores(rows, X.shape[0], training.theta, training.st, training.outputs)
    scores, finite = linear_scores(X, *hypothesis(training))
    if not finite:  # NaN or infinity in X shows in the scores, so X need not be searched for them before
        check_finite(X, names)
        most = np.finfo(scores.dtype).max
        np.nan_to_num(scores, copy=False, nan=0.0, posinf=most, neginf=-most)
    return scores


def best_by(training: Any, X: Any, names: Any = None) -> np.ndarray:
    """The output with the highest score of each row, of two or more; where that goes without keeping the scores."""
    if not training.stabilizer.every_hypothesis:
        best, finite = best_outputs(X, *hypothesis(training))
        if finite:
            return best
    return np.argmax(scores_by(training, X, names), axis=1)


def certificate_by(training: Any, X: Any, signs: np.ndarray, from_zero: bool) -> Any:
    """What theory promises for rows of two classes, -1 and +1; ``from_zero``: whether all weights began as 0."""
    from onlearn.theory.certificate import certify

    geometry, (w, b) = training.geometry, training.separator()
    return certify(
        X,
        signs,
        w,
        b,
        training.bias,
        training.n_mistakes,
        rule=training.rule.name if training.output is None else f"{training.rule.name}, {training.output}",
        geometry=geometry.name,
        passes=training.visits(X.shape[0]),
        init_zero=from_zero,
        single_rate=training.even and geometry.schedule == "constant" and not geometry.drifts,
        threshold=training.theta,
        alpha=geometry.alpha,
        eta=geometry.rate_of(training.g),
        seen=training.n_seen if training.n_chosen else None,
        mixing=mixing_of(training, X.shape[0]),
    )
