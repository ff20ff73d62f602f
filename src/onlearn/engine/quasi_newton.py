"""L-BFGS (Nocedal 1980), and OWL-QN (Andrew and Gao 2007) for a penalty l1 |w|_1 that makes weights exactly zero.

In one orthant the penalty is linear. Each step chooses the orthant by the pseudo-gradient (the derivative in the
direction that falls fastest), makes an L-BFGS step, leaves out what goes against the pseudo-gradient, and sets to zero
every weight that would leave the orthant. Without a penalty this is L-BFGS.

SciPy's L-BFGS-B provides for bounds, and takes as long again as the likelihood of a field with half a million weights.
Here the recursion of L-BFGS is over products of the past steps (Chen, Wang and Zhou 2014), not over the steps
themselves, which an iteration reads four times. The loops are our own: threads of a BLAS would wait for those that sum
up likelihoods, and what it adds up depends on how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onlearn.compiler import REORDER, compiled
from onlearn.threads import cores, over_pieces

Smooth = Callable[[np.ndarray], "tuple[float, np.ndarray]"]  # the value and the gradient

PAIRS = 8  # of past steps and changes of the gradient
SHRINK, ENOUGH = 0.5, 1e-4  # of the line search: how the step shrinks, and the part of the slope that must be gained
TRIES = 40
PIECES, MANY = 4, 50_000  # vectors are read in so many pieces, by several threads if they are longer than that
TILE = 1024  # places of a vector that are summed up at a time, so that they stay in the cache


def minimize(
    smooth: Smooth,
    w: np.ndarray,
    l1: float,
    iterations: int,
    is_over: Callable[[float, np.ndarray], bool],
) -> np.ndarray:
    """The minimum of ``smooth(w)`` + l1 |w|_1 from w on; ``is_over`` is asked after each iteration.

    >>> near = minimize(lambda w: (0.5 * (w - 3) @ (w - 3), w - 3), np.zeros(2), 1.0, 50, lambda f, w: False)
    >>> near.round(6)
    array([2., 2.])
    """
    descent = Descent(smooth, w, l1)
    for _ in range(iterations):
        if not descent.advance() or is_over(descent.value, descent.w):
            break
    return descent.w


class Descent:
    """A minimisation on its way: where it is, and what it knows of the curvature.

    ``advance`` is one iteration. Between two of them all that the next depends on is in ``pack``, from which ``resume``
    goes on as if nothing had happened. The first ``free`` weights are free of the penalty l1.

    ``scale`` says how far each weight may be expected to go; what is known of the curvature is of w / scale. That it
    comes near the inverse root of the diagonal of the Hessian is what L-BFGS, which begins with a multiple of the
    identity, gains by it. The minimum is the same.
    """

    w: np.ndarray
    value: float
    gradient: np.ndarray
    scale: np.ndarray | None

    def __init__(
        self, smooth: Smooth, w: np.ndarray, l1: float = 0.0, free: int = 0, scale: np.ndarray | None = None
    ) -> None:
        self.smooth, self.l1, self.free, self.scale, self.w = smooth, float(l1), free, scale, w
        self.value, self.gradient = smooth(w)
        self.value += self.l1 * float(np.abs(w[free:]).sum())
        self.past: Past = Past(len(w))
        self.values: list[float] = [self.value]  # at the beginning, and after each iteration
        self.evaluations: int = 1  # of ``smooth``

    @property
    def iterations(self) -> int:
        return len(self.values) - 1

    def slope(self) -> np.ndarray:
        """The pseudo-gradient, which is zero at the minimum."""
        slope = np.empty_like(self.w)
        find_slope(self.w, self.gradient, self.l1, self.free, slope)
        return slope

    def slope_size(self) -> float:
        """|pseudo-gradient|"""
        slope = self.slope()
        return float(np.sqrt(dot(slope, slope)))

    def advance(self) -> bool:
        """Make one iteration; returns whether there was a lower place, as far as rounding lets one see."""
        slope, l1, free = self.slope(), self.l1, self.free
        if not slope.any():
            return False
        scale: Any = 1.0 if self.scale is None else self.scale
        direction = self.past.direction(slope) if self.scale is None else scale * self.past.direction(scale * slope)
        if not keep_falling(direction, slope, l1, free) < 0:  # what is known of the curvature misleads: begin anew
            self.past, direction = Past(len(self.w)), -slope * scale**2
        size = 1.0
        if not self.past.count:  # a step of length 1, or on a scale no longer than that
            first = direction if self.scale is None else direction / scale
            length = float(np.sqrt(dot(first, first)))
            size /= length if self.scale is None else max(1.0, length)
        for _try in range(TRIES):
            ahead = np.empty_like(self.w)
            gain, penalty = step_along(self.w, size, direction, slope, l1, free, ahead)
            there, new = self.smooth(ahead)
            there += l1 * penalty
            self.evaluations += 1
            if there <= self.value + ENOUGH * gain:
                break
            if self.value + gain == self.value:
                return False  # rounding is all that is left
            size *= SHRINK
        else:
            return False
        self.past.add((ahead - self.w) / scale, (new - self.gradient) * scale)
        self.w, self.value, self.gradient = ahead, there, new
        self.values.append(self.value)
        return True

    def pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Everything but ``smooth`` and the penalty, as plain facts and arrays."""
        facts = {"count": self.past.count, "evaluations": self.evaluations, "values": self.values}
        lines, products = self.past.lines, self.past.products
        arrays = {"w": self.w, "gradient": self.gradient, "lines": lines, "products": products}
        return facts, arrays if self.scale is None else {**arrays, "scale": self.scale}

    @classmethod
    def resume(
        cls, smooth: Smooth, l1: float, free: int, facts: dict[str, Any], arrays: dict[str, np.ndarray]
    ) -> Descent:
        """The minimisation that ``pack`` took apart."""
        self = cls.__new__(cls)
        self.smooth, self.l1, self.free, self.scale = smooth, float(l1), free, arrays.get("scale")
        self.w, self.gradient, self.past = arrays["w"], arrays["gradient"], Past(len(arrays["w"]))
        self.past.lines, self.past.products = arrays["lines"].copy(), arrays["products"].copy()
        self.past.count, self.evaluations = facts["count"], facts["evaluations"]
        self.values = list(facts["values"])
        self.value = self.values[-1]
        return self


@compiled
def find_slope(w: Any, gradient: Any, l1: Any, free: Any, slope: Any) -> None:
    """The pseudo-gradient: the derivative in the direction in which the sum falls; 0 where it falls in none."""
    for n in range(len(w)):
        g, most = gradient[n], l1 if n >= free else 0.0
        if w[n] > 0.0:
            slope[n] = g + most
        elif w[n] < 0.0:
            slope[n] = g - most
        else:
            slope[n] = max(g - most, 0.0) if g > 0.0 else min(g + most, 0.0)


@compiled
def keep_falling(direction: Any, slope: Any, l1: Any, free: Any) -> Any:
    """With a penalty, leave out the parts of a direction along which the sum rises; returns direction.slope."""
    total = 0.0
    for n in range(len(slope)):
        part = direction[n] * slope[n]
        if l1 > 0.0 and part >= 0.0 and n >= free:
            direction[n] = 0.0
        else:
            total += part
    return total


@compiled
def step_along(w: Any, size: Any, direction: Any, slope: Any, l1: Any, free: Any, ahead: Any) -> Any:
    """A step, with a penalty only within the orthant; returns slope.step and the sum of sizes of the new weights."""
    gain, penalty = 0.0, 0.0
    for n in range(len(w)):
        there = w[n] + size * direction[n]
        if l1 > 0.0 and n >= free and there * (w[n] if w[n] != 0.0 else -slope[n]) <= 0.0:
            there = 0.0
        gain += slope[n] * (there - w[n])
        penalty += abs(there) if n >= free else 0.0
        ahead[n] = there
    return gain, penalty


class Past:
    """The last steps s and changes y of the gradient, and the products of them all: what is known of the curvature.

    They are kept in single precision: a direction needs no more, and is checked.
    """

    def __init__(self, weights: int) -> None:
        self.lines: np.ndarray = np.zeros((2 * PAIRS, weights), np.float32)  # the steps, then the changes
        self.products: np.ndarray = np.zeros((2 * PAIRS, 2 * PAIRS))
        self.count: int = 0

    def add(self, step: np.ndarray, change: np.ndarray) -> None:
        """Take in a step, unless the function does not curve upward along it."""
        if not dot(step, change) > 0:
            return
        slot = self.count % PAIRS
        self.lines[slot], self.lines[PAIRS + slot] = step, change
        for k in (slot, PAIRS + slot):
            self.products[k] = self.products[:, k] = self._times(self.lines[k])
        self.count += 1

    def _times(self, vector: np.ndarray) -> np.ndarray:
        """The product of each line and a vector; sums of pieces, added in order."""
        sums, size = np.zeros((PIECES, 2 * PAIRS)), len(vector)

        def work(n: int) -> None:
            multiply(self.lines, vector, size * n // PIECES, size * (n + 1) // PIECES, sums[n])

        over_pieces(work, PIECES, workers(size))
        return np.asarray(sums.sum(axis=0))

    def direction(self, slope: np.ndarray) -> np.ndarray:
        """Minus the approximate inverse Hessian times the slope.

        The usual recursion over the past, newest first and back again, with q = a slope + sum_k parts[k] lines[k].
        """
        if not self.count:
            return -slope
        along, parts, G = self._times(slope.astype(np.float32)), np.zeros(2 * PAIRS), self.products
        newest_first = [n % PAIRS for n in range(self.count - 1, max(-1, self.count - 1 - PAIRS), -1)]
        shares = {}
        for n in newest_first:
            shares[n] = (along[n] + G[n] @ parts) / G[n, PAIRS + n]  # s.q / s.y
            parts[PAIRS + n] -= shares[n]
        newest = newest_first[0]
        a = G[newest, PAIRS + newest] / G[PAIRS + newest, PAIRS + newest]  # s.y / y.y
        parts *= a
        for n in reversed(newest_first):
            parts[n] += shares[n] - (a * along[PAIRS + n] + G[PAIRS + n] @ parts) / G[n, PAIRS + n]  # y.q / s.y
        made, size = np.empty(len(slope)), len(slope)

        def work(n: int) -> None:
            combine(self.lines, -parts, slope, -a, size * n // PIECES, size * (n + 1) // PIECES, made)

        over_pieces(work, PIECES, workers(size))
        return made


def workers(weights: int) -> int:
    """How many threads are worth their while."""
    return min(cores(), PIECES) if weights > MANY else 1


@compiled(fastmath=REORDER)
def dot(a: Any, b: Any) -> Any:
    """The product of two vectors."""
    total = 0.0
    for n in range(len(a)):
        total += a[n] * b[n]
    return total


@compiled(fastmath=REORDER)
def multiply(lines: Any, vector: Any, start: Any, stop: Any, out: Any) -> None:
    """The products of lines and a vector, of the places from ``start`` to ``stop``; double only from tile to tile."""
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        for k in range(len(lines)):
            total = np.float32(0.0)
            for n in range(first, last):
                total += lines[k, n] * vector[n]
            out[k] += np.float64(total)


@compiled
def combine(lines: Any, parts: Any, slope: Any, a: Any, start: Any, stop: Any, out: Any) -> None:
    """a slope + sum_k parts[k] lines[k], at the places from ``start`` to ``stop``."""
    for first in range(start, stop, TILE):
        last = min(first + TILE, stop)
        for n in range(first, last):
            out[n] = a * slope[n]
        for k in range(len(lines)):
            for n in range(first, last):
                out[n] += parts[k] * np.float64(lines[k, n])
