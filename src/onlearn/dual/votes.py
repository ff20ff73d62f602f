"""The votes of all hypotheses of a voted learner in the dual, by sums of tripled precision.

Each hypothesis is the one before plus a few terms, weight times kernel value. Large terms cancel, and where kernel
values are alike (columns of a few values, say) sums are often exactly zero, which counts as a vote against. A plain sum
leaves something of the size of its rounding instead, whose sign is chance, and a hypothesis may have very many votes.
So the rounding of each product and sum is computed, too (Dekker 1971, Knuth 1969), and summed; and so is that of this
sum (Klein 2006). A double is not enough for it: of products that nearly cancel, kernel values have digits far below
1e-16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compiler import compiled
from onlearn.threads import over_rows

SPLIT = 2.0**27 + 1.0  # cuts a double into two halves, whose products are exact
HUGE = 2.0**990  # beyond, the halves would overflow
COST = 16  # operations for a term


def exact_votes(values: np.ndarray, bias: float, theta: float, st: Any, outputs: int) -> np.ndarray:
    """The share of votes of each output (for one output: for less against), by kernel values with all supports."""
    out = np.zeros((len(values), outputs))
    values = np.ascontiguousarray(values)
    base = np.flatnonzero(st.base)  # weights at the start
    changes = st.at[: st.used[0]], st.change[: st.used[0]], st.start[: st.used[1] + 1]
    hypotheses = st.votes[: st.used[1] + 1], st.scales[: (st.used[1] + 1) * outputs]

    def work(start: int, stop: int) -> None:
        sums = np.zeros((3, outputs))
        count_votes(values, bias, theta, base, st.base[base], *changes, *hypotheses, sums, out, start, stop)

    over_rows(work, len(values), COST * int(st.used[0]) * len(values))
    return out


@compiled
def count_votes(values: Any, bias: float, theta: float, base: Any, based: Any, at: Any, change: Any, begins: Any,
                votes: Any, scales: Any, sums: Any, out: Any, start: int, stop: int) -> None:  # fmt: skip
    """The votes on a range of rows; ``sums`` is room for the sums and what rounding leaves out of them, twice."""
    outputs, last = sums.shape[1], len(votes) - 1
    for i in range(start, stop):
        line, total = values[i], 0.0
        for c in range(outputs):
            sums[0, c] = sums[1, c] = sums[2, c] = 0.0
        for n in range(len(base)):
            add_term(sums, base[n], based[n], line, bias)
        for h in range(last + 1):
            if h > 0:
                end = begins[h + 1] if h < last else len(at)
                for n in range(begins[h], end):
                    add_term(sums, at[n], change[n], line, bias)
            total += votes[h]
            if outputs == 1:
                a = scales[h]
                above = ((sums[0, 0] * a - theta) + sums[1, 0] * a) + sums[2, 0] * a
                out[i, 0] += votes[h] if above > 0.0 else -votes[h]
            else:
                best = 0
                for c in range(1, outputs):
                    a, b = scales[h * outputs + c], scales[h * outputs + best]
                    ahead = sums[0, c] * a - sums[0, best] * b
                    ahead += sums[1, c] * a - sums[1, best] * b
                    ahead += sums[2, c] * a - sums[2, best] * b
                    if ahead > 0.0:
                        best = c
                out[i, best] += votes[h]
        for c in range(outputs):
            out[i, c] /= max(total, 1.0)


@compiled
def add_term(sums: Any, place: int, weight: float, line: Any, bias: float) -> None:
    """Add a weight times its feature to the sum of its output."""
    outputs = sums.shape[1]
    feature, c = place // outputs, place % outputs
    x = bias if feature == 0 else np.float64(line[feature - 1])
    product = weight * x
    add(sums, c, 0, product)
    if abs(weight) < HUGE and abs(x) < HUGE and abs(product) < HUGE:
        t = SPLIT * weight
        a = t - (t - weight)
        b = weight - a
        t = SPLIT * x
        p = t - (t - x)
        q = x - p
        add(sums, c, 1, ((a * p - product) + a * q + b * p) + b * q)


@compiled
def add(sums: Any, c: int, level: int, term: float) -> None:
    """Add a term to the sum of this level, and what rounding leaves out to those below."""
    for n in range(level, 3):
        if term != 0.0:
            before = sums[n, c]
            s = before + term
            back = s - before
            term = (before - (s - back)) + (term - back)
            sums[n, c] = s
