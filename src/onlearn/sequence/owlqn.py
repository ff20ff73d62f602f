"""OWL-QN (Andrew and Gao 2007): L-BFGS for a smooth function plus l1 |w|_1, with weights that are exactly zero.

In one orthant the penalty is linear. Each step chooses the orthant by the pseudo-gradient (the derivative in the
direction that falls fastest), makes an L-BFGS step, leaves out what goes against the pseudo-gradient, and sets to zero
every weight that would leave the orthant.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

PAIRS = 10  # of past steps and changes of the gradient
SHRINK, ENOUGH = 0.5, 1e-4  # of the line search: how the step shrinks, and the part of the slope that must be gained
TRIES = 40


def minimize_l1(
    smooth: Callable[[np.ndarray], tuple[float, np.ndarray]],
    w: np.ndarray,
    l1: float,
    iterations: int,
    is_over: Callable[[float, np.ndarray], bool],
) -> np.ndarray:
    """The minimum of ``smooth(w)`` + l1 |w|_1 from w on; ``is_over`` is asked after each iteration.

    >>> near = minimize_l1(lambda w: (0.5 * (w - 3) @ (w - 3), w - 3), np.zeros(2), 1.0, 50, lambda f, w: False)
    >>> near.round(6)
    array([2., 2.])
    """
    value, gradient = smooth(w)
    value += l1 * float(np.abs(w).sum())
    past: list[tuple[np.ndarray, np.ndarray, float]] = []
    for _ in range(iterations):
        slope = pseudo_gradient(w, gradient, l1)
        if not slope.any():
            break
        direction = -two_loops(slope, past)
        direction[direction * slope >= 0] = 0.0
        if not direction.any():  # what is known of the curvature misleads: begin anew
            past, direction = [], -slope
        orthant = np.where(w != 0, np.sign(w), -np.sign(slope))
        size = 1.0 if past else 1.0 / float(np.sqrt(direction @ direction))
        for _try in range(TRIES):
            ahead = w + size * direction
            ahead[ahead * orthant <= 0] = 0.0
            there, new = smooth(ahead)
            there += l1 * float(np.abs(ahead).sum())
            if there <= value + ENOUGH * float(slope @ (ahead - w)):
                break
            size *= SHRINK
        else:
            break  # rounding is all that is left
        step, change = ahead - w, new - gradient
        curvature = float(step @ change)
        if curvature > 0:
            past = [*past[-(PAIRS - 1) :], (step, change, curvature)]
        w, value, gradient = ahead, there, new
        if is_over(value, w):
            break
    return w


def pseudo_gradient(w: np.ndarray, gradient: np.ndarray, l1: float) -> np.ndarray:
    """The derivative of the penalised function in the direction in which it falls; 0 where it falls in none."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.asarray(np.where(w != 0, gradient + l1 * np.sign(w), at_zero))


def two_loops(slope: np.ndarray, past: list[tuple[np.ndarray, np.ndarray, float]]) -> np.ndarray:
    """The approximate inverse Hessian times the slope (Nocedal 1980)."""
    made, parts = slope.copy(), []
    for step, change, curvature in reversed(past):
        part = float(step @ made) / curvature
        made -= part * change
        parts.append(part)
    if past:
        _, change, curvature = past[-1]
        made *= curvature / float(change @ change)
    for (step, change, curvature), part in zip(past, reversed(parts)):
        made += (part - float(change @ made) / curvature) * step
    return made
