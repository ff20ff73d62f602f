"""What gives way when the budget of support examples is spent. To add a policy: a choice and its rows, here.

A policy is a choice with ``rows(kernel, raw)``, the kind of rows that does its work, and ``numbers()``, what these
start with in ``rows.numbers``. It says ``adds_when_spent = False`` if examples never come in once the budget is spent,
``symmetric = False`` if what it keeps in ``rows.among`` is a lower triangle, ``compares = False`` if it keeps nothing
there. See ``budgetrows`` for the verbs that its rows may replace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler.inlining import helper
from onlearn.dual.budget_rows import (
    MIX,
    BudgetRows,
    budget_rows,
    enrol,
    give_way,
    let_go,
    represented,
    slot_of,
    took,
    write_down,
)
from onlearn.engine.protocol import clock, note, scale
from onlearn.engine.rows import lacks
from onlearn.engine.spec import Family, choice, param
from onlearn.kernels import Gaussian

POLICIES = Family("budget policy")
LEFT, RIGHT, WAY = np.uint64(13), np.uint64(7), np.uint64(17)
GOLDEN = (5.0**0.5 - 1.0) / 2.0
ROUGH, FINE = 8, 40  # turns of the golden section: to compare pairs, to place the point
FAR = 1e-12  # kernel value of two points that have nothing in common
NOTHING = 1e-300
EXACT = 1024.0  # units of rounding within which an example is a sum of others


# ---------------------------------------------------------------------- removing


@choice(POLICIES, "remove")
class Remove:
    """One is removed: any of them, or the oldest after all weights have been shrunk so that it matters little.

    "random" is the randomized budget perceptron (Cavallanti, Cesa-Bianchi & Gentile 2007): any but the newest, all
    with the same chance. "oldest" is the self-tuned Forgetron (Dekel, Shalev-Shwartz & Singer 2008).
    """

    which: str = param("random", "which one is removed", words=("random", "oldest"))

    @property
    def compares(self) -> bool:
        return self.which == "oldest"

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return RandomRows if self.which == "random" else OldestRows

    def numbers(self, dtype: np.dtype) -> np.ndarray:
        return np.zeros(3)


@budget_rows
class RandomRows(BudgetRows):
    __slots__ = ()


@budget_rows
class OldestRows(BudgetRows):
    """Its numbers: what removing has cost so far, the sum of all squared steps, how many there were."""

    __slots__ = ()


@enrol.on(RandomRows)
def _(rows, i, k):
    pass


@helper
def remove(rows: Any, k: int, outputs: int) -> None:
    """Undo the steps along the example in slot k, those of the constant feature too."""
    if rows.bias != 0.0:
        for line in rows.lines:
            for c in range(outputs):
                line[c] -= rows.bias * line[(k + 1) * outputs + c]
    let_go(rows, k, outputs)


@give_way.on(RandomRows, object, object)
def _(rows, g, st, outputs):
    x = rows.random[0]  # xorshift: Marsaglia (2003)
    x ^= x << LEFT
    x ^= x >> RIGHT
    x ^= x << WAY
    rows.random[0] = x
    remove(rows, np.int64(x % np.uint64(rows.used[0] - 1)), outputs)


@took.on(OldestRows, object)
def _(rows, i, g, square):
    rows.numbers[1] += square * scale(g, 0) * scale(g, 0) * max(rows.length[i], 0.0)
    rows.numbers[2] += 1.0


@give_way.on(OldestRows, object, object)
def _(rows, g, st, outputs):
    oldest = 0
    for k in range(rows.used[0]):
        if rows.ages[k] < rows.ages[oldest]:
            oldest = k
    # Of its weights s and its scores f: what removing it costs, once all is shrunk by phi, is at most
    # phi^2 (|s|^2 k(x,x) - 2 s.f) + 2 phi |s| sqrt(k(x,x)) u, where u is the usual length of a step and
    # k(x,x) counts the constant feature.
    square, product = 0.0, 0.0
    for c in range(outputs):
        f = rows.bias * g.w[c]
        for k in range(rows.used[0]):
            f += rows.among[oldest * rows.width + k] * g.w[np.uint64((k + 1) * outputs + c)]
        s = g.w[np.uint64((oldest + 1) * outputs + c)] * scale(g, c)
        square += s * s
        product += s * f * scale(g, c)
    square *= max(rows.among[oldest * rows.width + oldest] + rows.bias * rows.bias, 0.0)
    curve = square - 2.0 * product
    slope = 2.0 * np.sqrt(square * rows.numbers[1] / max(rows.numbers[2], 1.0))
    phi = shrinkage(curve, slope, 15.0 / 32.0 * rows.numbers[1] - rows.numbers[0])
    rows.numbers[0] += phi * phi * curve + phi * slope
    if phi < 1.0:
        for c in range(outputs):
            for k in range(rows.used[0] + 1):
                w = np.uint64(k * outputs + c)
                change = phi * g.w[w] - g.w[w]
                g.w[w] += change
                note(st, w, change, clock(st, c))
    remove(rows, oldest, outputs)


@helper
def shrinkage(curve: float, slope: float, room: float) -> float:
    """The largest phi of at most 1 with phi^2 curve + phi slope <= room."""
    phi = 1.0
    if curve + slope > room:
        phi = 2.0 * room / (slope + np.sqrt(max(slope * slope + 4.0 * curve * room, 0.0)))
    return min(max(phi, 0.0), 1.0) if phi == phi else 1.0


# ---------------------------------------------------------------------- projecting


@choice(POLICIES, "project")
class Project:
    """The step of an example is taken along its projection on the support examples.

    So it is for all once the budget is spent; before, for those whose distance from their projection is at most
    ``eta`` of their length (in feature space), and the others are added. This is what the Projectron++ does (Orabona,
    Keshet & Caputo 2009) with the steps of any rule; that one took them on mistakes and small margins.
    """

    eta: float = param(0.01, "distance from the support examples, as part of the length, that is no distance",
                       at_least=0, below=1)  # fmt: skip

    adds_when_spent = False
    symmetric = False

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return ProjectRows

    def numbers(self, dtype: np.dtype) -> np.ndarray:
        return np.array([max(self.eta**2, EXACT * np.finfo(dtype).eps)])


@budget_rows
class ProjectRows(BudgetRows):
    """``among`` holds the Cholesky factor L of the kernel values of the support examples with each other.

    Its last row is room for L^-1 of an example's kernel values. The number is eta squared.
    """

    __slots__ = ()


@lacks.on(ProjectRows)
def _(rows, i):
    k = slot_of(rows, i)
    return k < 0 and rows.slot[i] < 0 and rows.used[0] < rows.limit - 1


@represented.on(ProjectRows)
def _(rows, i):
    count, width = rows.used[0], rows.width
    line, values, rest = count * width, i * width, rows.own[i]
    for m in range(count):
        row, s = m * width, np.float64(rows.data[values + m])
        for j in range(m):
            s -= rows.among[np.uint64(row + j)] * rows.among[np.uint64(line + j)]
        s /= rows.among[row + m]
        rows.among[line + m] = s
        rest -= s * s
    by_others = count == rows.limit - 1 or rest <= rows.numbers[0] * rows.own[i]
    if by_others:
        for m in range(count):
            rows.mix[m] = rows.among[line + m]
        for n in range(count):
            m = count - 1 - n
            row, s = m * width, rows.mix[m] / rows.among[m * width + m]
            rows.mix[m] = s
            for j in range(m):
                rows.mix[np.uint64(j)] -= s * rows.among[np.uint64(row + j)]
    else:
        rows.among[line + count] = np.sqrt(rest)
    return by_others


@enrol.on(ProjectRows)
def _(rows, i, k):
    pass  # ``represented`` has written the new row of L


@give_way.on(ProjectRows, object, object)
def _(rows, g, st, outputs):
    pass  # there never is one too many


# ---------------------------------------------------------------------- merging


@choice(POLICIES, "merge")
class Merge:
    """Two become one: the one that matters least, and the one with which it is replaced at the least loss.

    With a Gaussian kernel on dense rows a point on the line between the two takes their place (Wang, Crammer &
    Vucetic 2012), else the better one of the two; its coefficient is the best one.
    """

    def rows(self, kernel: Any, raw: Any) -> type[BudgetRows]:
        return BlendRows if isinstance(kernel, Gaussian) and isinstance(raw, np.ndarray) else MergeRows

    def numbers(self, dtype: np.dtype) -> np.ndarray:
        return np.zeros(1)


@budget_rows
class MergeRows(BudgetRows):
    __slots__ = ()


@budget_rows
class BlendRows(BudgetRows):
    __slots__ = ()


@helper
def least(rows: Any, g: Any, outputs: int) -> int:
    """The slot whose part of the hypothesis is the smallest."""
    found, smallest = 0, np.inf
    for k in range(rows.used[0]):
        size = 0.0
        for c in range(outputs):
            w = g.w[(k + 1) * outputs + c]
            size += w * w
        size *= rows.among[k * rows.width + k]
        if size < smallest:
            found, smallest = k, size
    return found


@helper
def add_line(rows: Any, k: int, into: int, share: float, kept: float, outputs: int) -> None:
    """The weights of slot ``into``, times ``kept``, and those of slot k times ``share``."""
    for line in rows.lines:
        for c in range(outputs):
            j = (into + 1) * outputs + c
            line[j] = kept * line[j] + share * line[(k + 1) * outputs + c]


@give_way.on(MergeRows, object, object)
def _(rows, g, st, outputs):
    p, n = least(rows, g, outputs), rows.width
    gone, stays, smallest = p, p, np.inf
    for q in range(rows.used[0]):
        if q != p:
            for turn in range(2):
                a, b = (p, q) if turn == 0 else (q, p)  # a goes, b stays
                size, own = 0.0, rows.among[b * n + b]
                for c in range(outputs):
                    w = g.w[(a + 1) * outputs + c]
                    size += w * w
                part = rows.among[a * n + b] / own if own > 0.0 else 0.0
                loss = size * (rows.among[a * n + a] - part * rows.among[a * n + b])
                if loss < smallest:
                    gone, stays, smallest = a, b, loss
    own = rows.among[stays * n + stays]
    if gone != stays:
        add_line(rows, gone, stays, rows.among[gone * n + stays] / own if own > 0.0 else 0.0, 1.0, outputs)
    let_go(rows, gone, outputs)


@helper
def gain(square_p: float, cross: float, square_q: float, log_k: float, h: float) -> float:
    """|b|^2 of the best coefficients b of the point h p + (1 - h) q, which takes the place of p and q."""
    at_p, at_q = np.exp((1.0 - h) * (1.0 - h) * log_k), np.exp(h * h * log_k)
    return square_p * at_p * at_p + 2.0 * cross * at_p * at_q + square_q * at_q * at_q


@helper
def best_share(square_p: float, cross: float, square_q: float, log_k: float, turns: int) -> float:
    """The h with the largest gain, by golden section: nearer to q, which has the larger weight; 0 is q itself."""
    low, high = 0.0, 0.5
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = gain(square_p, cross, square_q, log_k, left), gain(square_p, cross, square_q, log_k, right)
    for _n in range(turns):
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
def between(a: float, b: float, h: float, log_k: float) -> float:
    """k(x, h p + (1 - h) q) for a = k(x, p) and b = k(x, q): for the Gaussian it depends on nothing else."""
    near = h * np.log(max(a, NOTHING)) + (1.0 - h) * np.log(max(b, NOTHING)) - h * (1.0 - h) * log_k
    return np.exp(min(near, 0.0))


@give_way.on(BlendRows, object, object)
def _(rows, g, st, outputs):
    p, n = least(rows, g, outputs), rows.width
    partner, smallest = p, np.inf
    square_p, cross, square_q = 0.0, 0.0, 0.0
    for c in range(outputs):
        square_p += g.w[(p + 1) * outputs + c] ** 2
    for q in range(rows.used[0]):
        if q != p:
            cross, square_q = 0.0, 0.0
            for c in range(outputs):
                w = g.w[(q + 1) * outputs + c]
                cross += g.w[(p + 1) * outputs + c] * w
                square_q += w * w
            k = rows.among[p * n + q]
            log_k = np.log(max(k, FAR))
            h = best_share(square_p, cross, square_q, log_k, ROUGH)
            loss = square_p + 2.0 * cross * k + square_q - gain(square_p, cross, square_q, log_k, h)
            if loss < smallest:
                partner, smallest = q, loss
    q, cross, square_q = partner, 0.0, 0.0
    for c in range(outputs):
        cross += g.w[(p + 1) * outputs + c] * g.w[(q + 1) * outputs + c]
        square_q += g.w[(q + 1) * outputs + c] ** 2
    k = rows.among[p * n + q]
    log_k = np.log(max(k, FAR))
    h = best_share(square_p, cross, square_q, log_k, FINE)
    gone = p
    if k <= FAR or h == 0.0:  # q stays as it is
        add_line(rows, p, q, k, 1.0, outputs)
    else:
        gone = q
        add_line(rows, q, p, np.exp(h * h * log_k), np.exp((1.0 - h) * (1.0 - h) * log_k), outputs)
        for r in range(rows.used[2], len(rows.slot)):
            rows.data[r * n + p] = between(np.float64(rows.data[r * n + p]), np.float64(rows.data[r * n + q]), h, log_k)
        for m in range(rows.used[0]):
            if m != p:
                value = between(rows.among[p * n + m], rows.among[q * n + m], h, log_k)
                rows.among[p * n + m] = value
                rows.among[m * n + p] = value
        rows.owner[p] = -1
        write_down(rows, MIX, p, q, h)
    let_go(rows, gone, outputs)
