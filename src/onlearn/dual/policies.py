"""Budget policies: what happens to the support examples when there is one more than the budget allows.

- ``remove(random)``: the randomized budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007).
- ``remove(oldest)``: the self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2008).
- ``project``: the Projectron++ (Orabona, Keshet & Caputo 2009).
- ``merge``: budgeted merging (Wang, Crammer & Vucetic 2012).

To add a policy, add here a choice that derives from ``Policy`` and its type of rows. ``budget_rows`` has the verbs for
which these rows may register bodies.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from onlearn.compiler.inlining import helper
from onlearn.dual.budget_rows import (
    BLEND,
    BudgetRows,
    add_support,
    after_step,
    append_log,
    find_slot,
    free_slot,
    register_rows,
    represented,
    shrink,
)
from onlearn.engine.protocol import clock, note, scale
from onlearn.engine.rows import lacks
from onlearn.engine.spec import Family, choice, param
from onlearn.kernels import Gaussian

POLICIES = Family("budget policy")
SHIFT_A, SHIFT_B, SHIFT_C = np.uint64(13), np.uint64(7), np.uint64(17)
GOLDEN = (5.0**0.5 - 1.0) / 2.0
ROUGH, FINE = 8, 40  # iterations of the golden section: to compare pairs, to place the blended point
FAR = 1e-12  # kernel value below which two points have nothing in common
TINY = 1e-300  # so that the logarithm is finite
EXACT = 1024.0  # units of rounding within which an example is a sum of others


class Policy(ABC):
    """A choice of what to do when the budget is spent, with the usual facts as defaults."""

    adds_when_spent: ClassVar[bool] = True  # whether examples are still added then
    symmetric: ClassVar[bool] = True  # whether ``rows.gram`` is symmetric; else it is a lower triangle

    @property
    def keeps_gram(self) -> bool:
        """Whether the policy keeps a number for every pair of support examples in ``rows.gram``."""
        return True

    @abstractmethod
    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        """The type of rows that does the policy's work on such examples."""

    @abstractmethod
    def initial_state(self, dtype: np.dtype) -> np.ndarray:
        """The numbers that ``rows.policy_state`` starts with."""


# Removing


@choice(POLICIES, "remove")
class Remove(Policy):
    """Remove one support example.

    "random" is the randomized budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007): any but the newest, all
    with the same probability. "oldest" is the self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2008): the oldest,
    after all weights have been shrunk so that it matters little.
    """

    which: str = param("random", "which one is removed", words=("random", "oldest"))

    @property
    def keeps_gram(self) -> bool:
        return self.which == "oldest"

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return RandomRows if self.which == "random" else OldestRows

    def initial_state(self, dtype: np.dtype) -> np.ndarray:
        return np.zeros(3)


@register_rows
class RandomRows(BudgetRows):
    __slots__ = ()


@register_rows
class OldestRows(BudgetRows):
    """``policy_state``: the cost of removals so far, the sum of all squared steps, the number of steps."""

    __slots__ = ()


@add_support.on(RandomRows)
def _(rows, i, k):
    pass


@helper
def remove_support(rows: Any, k: int, outputs: int) -> None:
    """Undo the steps along the example in slot k, those of the constant feature, too."""
    if rows.bias != 0.0:
        for weights in rows.weight_arrays:
            for c in range(outputs):
                weights[c] -= rows.bias * weights[(k + 1) * outputs + c]
    free_slot(rows, k, outputs)


@shrink.on(RandomRows, object, object)
def _(rows, g, st, outputs):
    x = rows.random[0]  # xorshift: Marsaglia (2003)
    x ^= x << SHIFT_A
    x ^= x >> SHIFT_B
    x ^= x << SHIFT_C
    rows.random[0] = x
    remove_support(rows, np.int64(x % np.uint64(rows.counts[0] - 1)), outputs)


@after_step.on(OldestRows, object)
def _(rows, i, g, square):
    rows.policy_state[1] += square * scale(g, 0) * scale(g, 0) * max(rows.sqnorms[i], 0.0)
    rows.policy_state[2] += 1.0


@shrink.on(OldestRows, object, object)
def _(rows, g, st, outputs):
    oldest = 0
    for k in range(rows.counts[0]):
        if rows.arrivals[k] < rows.arrivals[oldest]:
            oldest = k
    # With its weights s and its scores f, the cost of removing it after all weights were multiplied by phi is at most
    # phi^2 (|s|^2 k(x,x) - 2 s.f) + 2 phi |s| sqrt(k(x,x)) u, where u is the root mean square length of a step and
    # k(x,x) includes the constant feature.
    square, product = 0.0, 0.0
    for c in range(outputs):
        f = rows.bias * g.w[c]
        for k in range(rows.counts[0]):
            f += rows.gram[oldest * rows.width + k] * g.w[np.uint64((k + 1) * outputs + c)]
        s = g.w[np.uint64((oldest + 1) * outputs + c)] * scale(g, c)
        square += s * s
        product += s * f * scale(g, c)
    square *= max(rows.gram[oldest * rows.width + oldest] + rows.bias * rows.bias, 0.0)
    curve = square - 2.0 * product
    slope = 2.0 * np.sqrt(square * rows.policy_state[1] / max(rows.policy_state[2], 1.0))
    phi = shrinkage(curve, slope, 15.0 / 32.0 * rows.policy_state[1] - rows.policy_state[0])
    rows.policy_state[0] += phi * phi * curve + phi * slope
    if phi < 1.0:
        for c in range(outputs):
            for k in range(rows.counts[0] + 1):
                w = np.uint64(k * outputs + c)
                change = phi * g.w[w] - g.w[w]
                g.w[w] += change
                note(st, w, change, clock(st, c))
    remove_support(rows, oldest, outputs)


@helper
def shrinkage(curve: float, slope: float, room: float) -> float:
    """The largest phi of at most 1 with phi^2 curve + phi slope <= room."""
    phi = 1.0
    if curve + slope > room:
        phi = 2.0 * room / (slope + np.sqrt(max(slope * slope + 4.0 * curve * room, 0.0)))
    return min(max(phi, 0.0), 1.0) if phi == phi else 1.0


# Projecting


@choice(POLICIES, "project")
class Project(Policy):
    """Take the step of an example along its projection on the span of the support examples.

    Once the budget is spent, every step is taken so. Before, it is for examples whose distance from their projection
    is at most ``eta`` of their length in feature space; the others are added. This is the Projectron++ (Orabona,
    Keshet & Caputo 2009) with the steps of any rule; the published algorithm steps on mistakes and small margins.
    """

    eta: float = param(0.01, "relative distance from the span of the support examples up to which a step is projected",
                       at_least=0, below=1)  # fmt: skip

    adds_when_spent = False
    symmetric = False

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return ProjectRows

    def initial_state(self, dtype: np.dtype) -> np.ndarray:
        return np.array([max(self.eta**2, EXACT * float(np.finfo(dtype).eps))])


@register_rows
class ProjectRows(BudgetRows):
    """``gram`` holds the Cholesky factor L of the kernel values of the support examples with each other.

    Its last row is space for L^-1 times an example's kernel values. ``policy_state`` is eta squared.
    """

    __slots__ = ()


@lacks.on(ProjectRows)
def _(rows, i):
    k = find_slot(rows, i)
    return k < 0 and rows.column_of[i] < 0 and rows.counts[0] < rows.capacity - 1


@represented.on(ProjectRows)
def _(rows, i):
    count, width = rows.counts[0], rows.width
    line, values, rest = count * width, i * width, rows.diagonal[i]
    for m in range(count):
        row, s = m * width, np.float64(rows.data[values + m])
        for j in range(m):
            s -= rows.gram[np.uint64(row + j)] * rows.gram[np.uint64(line + j)]
        s /= rows.gram[row + m]
        rows.gram[line + m] = s
        rest -= s * s
    is_represented = count == rows.capacity - 1 or rest <= rows.policy_state[0] * rows.diagonal[i]
    if is_represented:
        for m in range(count):
            rows.coefficients[m] = rows.gram[line + m]
        for n in range(count):
            m = count - 1 - n
            row, s = m * width, rows.coefficients[m] / rows.gram[m * width + m]
            rows.coefficients[m] = s
            for j in range(m):
                rows.coefficients[np.uint64(j)] -= s * rows.gram[np.uint64(row + j)]
    else:
        rows.gram[line + count] = np.sqrt(rest)
    return is_represented


@add_support.on(ProjectRows)
def _(rows, i, k):
    pass  # ``represented`` has written the new row of L


@shrink.on(ProjectRows, object, object)
def _(rows, g, st, outputs):
    pass  # there is never one too many


# Merging


@choice(POLICIES, "merge")
class Merge(Policy):
    """Merge two support examples: the one that matters least, and the one for which the merge loses least.

    With a Gaussian kernel on dense rows a point on the line between the two replaces them (Wang, Crammer & Vucetic
    2012), else the better one of the two. Its coefficient minimises the loss.
    """

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return BlendRows if isinstance(kernel, Gaussian) and isinstance(raw, np.ndarray) else MergeRows

    def initial_state(self, dtype: np.dtype) -> np.ndarray:
        return np.zeros(1)


@register_rows
class MergeRows(BudgetRows):
    __slots__ = ()


@register_rows
class BlendRows(BudgetRows):
    __slots__ = ()


@helper
def weakest_slot(rows: Any, g: Any, outputs: int) -> int:
    """The slot whose term of the hypothesis has the smallest norm."""
    found, smallest = 0, np.inf
    for k in range(rows.counts[0]):
        size = 0.0
        for c in range(outputs):
            w = g.w[(k + 1) * outputs + c]
            size += w * w
        size *= rows.gram[k * rows.width + k]
        if size < smallest:
            found, smallest = k, size
    return found


@helper
def merge_weights(rows: Any, k: int, into: int, share: float, kept: float, outputs: int) -> None:
    """Replace the weights of slot ``into`` by ``kept`` times them plus ``share`` times the weights of slot k."""
    for weights in rows.weight_arrays:
        for c in range(outputs):
            j = (into + 1) * outputs + c
            weights[j] = kept * weights[j] + share * weights[(k + 1) * outputs + c]


@shrink.on(MergeRows, object, object)
def _(rows, g, st, outputs):
    p, n = weakest_slot(rows, g, outputs), rows.width
    removed, stays, smallest = p, p, np.inf
    for q in range(rows.counts[0]):
        if q != p:
            for turn in range(2):
                a, b = (p, q) if turn == 0 else (q, p)  # a is removed, b stays
                size, self_value = 0.0, rows.gram[b * n + b]
                for c in range(outputs):
                    w = g.w[(a + 1) * outputs + c]
                    size += w * w
                part = rows.gram[a * n + b] / self_value if self_value > 0.0 else 0.0
                loss = size * (rows.gram[a * n + a] - part * rows.gram[a * n + b])
                if loss < smallest:
                    removed, stays, smallest = a, b, loss
    self_value = rows.gram[stays * n + stays]
    if removed != stays:
        merge_weights(
            rows, removed, stays, rows.gram[removed * n + stays] / self_value if self_value > 0.0 else 0.0, 1.0, outputs
        )
    free_slot(rows, removed, outputs)


@helper
def gain(square_p: float, cross: float, square_q: float, log_k: float, h: float) -> float:
    """|b|^2 of the best coefficients b of the point h p + (1 - h) q that replaces p and q."""
    at_p, at_q = np.exp((1.0 - h) * (1.0 - h) * log_k), np.exp(h * h * log_k)
    return square_p * at_p * at_p + 2.0 * cross * at_p * at_q + square_q * at_q * at_q


@helper
def best_share(square_p: float, cross: float, square_q: float, log_k: float, iterations: int) -> float:
    """The h in [0, 1/2] with the largest gain, by golden section: q has the larger weight, and h = 0 is q itself."""
    low, high = 0.0, 0.5
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = gain(square_p, cross, square_q, log_k, left), gain(square_p, cross, square_q, log_k, right)
    for _n in range(iterations):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = gain(square_p, cross, square_q, log_k, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = gain(square_p, cross, square_q, log_k, right)
    h = left if at_left > at_right else right
    end = gain(square_p, cross, square_q, log_k, 0.0)
    return 0.0 if end >= max(at_left, at_right) else h


@helper
def blended_value(a: float, b: float, h: float, log_k: float) -> float:
    """k(x, h p + (1 - h) q) of a Gaussian kernel, from a = k(x, p), b = k(x, q) and log k(p, q) alone."""
    near = h * np.log(max(a, TINY)) + (1.0 - h) * np.log(max(b, TINY)) - h * (1.0 - h) * log_k
    return np.exp(min(near, 0.0))


@shrink.on(BlendRows, object, object)
def _(rows, g, st, outputs):
    p, n = weakest_slot(rows, g, outputs), rows.width
    partner, smallest = p, np.inf
    square_p, cross, square_q = 0.0, 0.0, 0.0
    for c in range(outputs):
        square_p += g.w[(p + 1) * outputs + c] ** 2
    for q in range(rows.counts[0]):
        if q != p:
            cross, square_q = 0.0, 0.0
            for c in range(outputs):
                w = g.w[(q + 1) * outputs + c]
                cross += g.w[(p + 1) * outputs + c] * w
                square_q += w * w
            k = rows.gram[p * n + q]
            log_k = np.log(max(k, FAR))
            h = best_share(square_p, cross, square_q, log_k, ROUGH)
            loss = square_p + 2.0 * cross * k + square_q - gain(square_p, cross, square_q, log_k, h)
            if loss < smallest:
                partner, smallest = q, loss
    q, cross, square_q = partner, 0.0, 0.0
    for c in range(outputs):
        cross += g.w[(p + 1) * outputs + c] * g.w[(q + 1) * outputs + c]
        square_q += g.w[(q + 1) * outputs + c] ** 2
    k = rows.gram[p * n + q]
    log_k = np.log(max(k, FAR))
    h = best_share(square_p, cross, square_q, log_k, FINE)
    removed = p
    if k <= FAR or h == 0.0:  # q stays as it is
        merge_weights(rows, p, q, k, 1.0, outputs)
    else:
        removed = q
        merge_weights(rows, q, p, np.exp(h * h * log_k), np.exp((1.0 - h) * (1.0 - h) * log_k), outputs)
        for r in range(rows.counts[2], len(rows.column_of)):
            rows.data[r * n + p] = blended_value(
                np.float64(rows.data[r * n + p]), np.float64(rows.data[r * n + q]), h, log_k
            )
        for m in range(rows.counts[0]):
            if m != p:
                value = blended_value(rows.gram[p * n + m], rows.gram[q * n + m], h, log_k)
                rows.gram[p * n + m] = value
                rows.gram[m * n + p] = value
        rows.row_in[p] = -1
        append_log(rows, BLEND, p, q, h)
    free_slot(rows, removed, outputs)
