"""Sequential minimal optimisation of a few variables, with the square of the kernel matrix that they need.

With a bias, y'a = 0 stays true if two variables change together: a_i += y_i t, a_j -= y_j t. With s_k = -y_k G_k the
objective falls by (s_i - s_j) t - (K_ii + K_jj - 2 K_ij) t^2 / 2. Variable i is the one with the largest s_i of those
that may move up; j is the one that promises the largest fall, (s_i - s_j)^2 / (2 (K_ii + K_jj - 2 K_ij)) (Fan, Chen and
Lin 2005). Without a bias one variable changes, the one whose step makes the objective fall most.

The pass that updates s finds the next i: it keeps the largest s of every ``STRIP`` variables, which vector instructions
do, so that only one strip is searched. ``up`` (``down``) has -infinity for variables that may not move so, else 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled

STRIP = 128  # variables of which the best is remembered; a working set is filled up to a multiple of it
NO_NAN = {"reassoc", "contract", "nsz", "nnan"}  # a maximum of numbers of which none is NaN takes vector instructions

strips: Any = compiled(fastmath=NO_NAN)


@strips
def best_place(values, best):
    """Where the largest of ``values`` is; ``best`` has the largest of every strip."""
    top = 0
    for b in range(len(best)):
        if best[b] > best[top]:
            top = b
    place = top * STRIP
    for k in range(top * STRIP, (top + 1) * STRIP):
        if values[k] > values[place]:
            place = k
    return place


@strips
def solve_pairs(K, diagonal, a, s, y, C, up, down, values, best, floor, tol, most):
    """Steps on pairs until the largest violation is at most ``tol``, or ``most`` were made. Returns their number.

    ``floor`` is the smallest curvature that a step reckons with: for pairs of equal examples it is 0, and with a kernel
    that is none it may be negative. All arrays have a multiple of STRIP numbers; those that only fill it have C = 0.
    """
    size = len(a)
    width = np.uint64(STRIP)
    for k in range(size):
        values[k] = s[k] + up[k]
    for b in range(len(best)):
        m = -np.inf
        for k in range(np.uint64(b * STRIP), np.uint64(b * STRIP) + width):
            m = max(m, values[k])
        best[b] = m
    steps = 0
    while steps < most:
        i = best_place(values, best)
        si = values[i]
        if si == -np.inf:
            break
        row, kii = K[i], diagonal[i]
        lowest = np.inf
        for b in range(len(best)):
            m, least = -np.inf, np.inf
            for k in range(np.uint64(b * STRIP), np.uint64(b * STRIP) + width):
                gap = si - s[k] + down[k]  # -infinity for those that may not move down
                least = min(least, s[k] - down[k])
                curve = max(kii + diagonal[k] - 2.0 * row[k], floor)
                gap = max(gap, 0.0)
                gain = gap * gap / curve
                values[k] = gain
                m = max(m, gain)
            best[b] = m
            lowest = min(lowest, least)
        if si - lowest <= tol:
            break
        j = best_place(values, best)
        if not values[j] > 0.0:
            break
        other = K[j]
        t = (si - s[j]) / max(kii + diagonal[j] - 2.0 * row[j], floor)
        room = C[i] - a[i] if y[i] > 0 else a[i]
        left = a[j] if y[j] > 0 else C[j] - a[j]
        t = min(t, min(room, left))
        a[i] += y[i] * t
        a[j] -= y[j] * t
        if t >= room:  # exactly at the bound, whatever the rounding
            a[i] = C[i] if y[i] > 0 else 0.0
        if t >= left:
            a[j] = 0.0 if y[j] > 0 else C[j]
        for p in (i, j):
            rises, falls = (a[p] < C[p], a[p] > 0.0) if y[p] > 0 else (a[p] > 0.0, a[p] < C[p])
            up[p] = 0.0 if rises else -np.inf
            down[p] = 0.0 if falls else -np.inf
        for b in range(len(best)):
            m = -np.inf
            for k in range(np.uint64(b * STRIP), np.uint64(b * STRIP) + width):
                v = s[k] - t * (row[k] - other[k])
                s[k] = v
                v += up[k]
                values[k] = v
                m = max(m, v)
            best[b] = m
        steps += 1
    return steps


@strips
def solve_singles(K, diagonal, a, s, y, C, up, down, values, best, floor, tol, most):
    """The same for problems without a bias: steps on one variable, each the one that lets the objective fall most."""
    width = np.uint64(STRIP)
    steps = 0
    t = 0.0
    row = K[0]
    while steps < most:
        worst = 0.0
        for b in range(len(best)):
            m, far = -np.inf, 0.0
            for k in range(np.uint64(b * STRIP), np.uint64(b * STRIP) + width):
                v = s[k] - t * row[k]
                s[k] = v
                fall = v * y[k]  # -G_k
                curve = max(diagonal[k], floor)
                step = min(max(a[k] + fall / curve, 0.0), C[k]) - a[k]
                gain = step * (fall - 0.5 * curve * step)
                far = max(far, abs(fall) if step != 0.0 else 0.0)
                values[k] = gain
                m = max(m, gain)
            best[b] = m
            worst = max(worst, far)
        t = 0.0
        if worst <= tol:
            break
        i = best_place(values, best)
        if not values[i] > 0.0:
            break
        new = min(max(a[i] + s[i] * y[i] / max(diagonal[i], floor), 0.0), C[i])
        t = (new - a[i]) * y[i]
        a[i] = new
        row = K[i]
        steps += 1
    if t != 0.0:  # the last step
        for k in range(np.uint64(len(s))):
            s[k] -= t * row[k]
    return steps
