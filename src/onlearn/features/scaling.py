"""Scales of numeric columns, learned in one pass: mean and variance by Welford's method, and the largest size.

One value after another, so the result does not depend on how many came at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.compile import compiled

SCALES = ("standard", "max-abs", "log1p", "none")
LARGEST = 1e140  # in size; what is beyond counts as this much, so that squares, and their sum, stay finite
FACTS = 4  # count, mean, sum of squared differences from it, largest size


@compiled
def learn(values: Any, facts: Any) -> None:
    """Take values, but for the missing, into the facts (Welford 1962)."""
    count, mean, spread, largest = facts[0], facts[1], facts[2], facts[3]
    for x in values:
        if x == x:
            count += 1.0
            x = min(max(x, -LARGEST), LARGEST)
            change = x - mean
            mean += change / count
            spread += change * (x - mean)
            largest = max(largest, abs(x))
    facts[0], facts[1], facts[2], facts[3] = count, mean, spread, largest


def apply(values: np.ndarray, facts: np.ndarray, scale: str) -> np.ndarray:
    """Values on the scale; one too large for it is infinite, and becomes the largest when a matrix is made.

    "standard" puts a column that never changed, or was never seen, at its mean: 0.
    """
    if scale in ("standard", "max-abs"):
        values = np.clip(values, -LARGEST, LARGEST)  # as they were learned
    with np.errstate(over="ignore"):
        if scale == "standard":
            count, mean, spread, _ = facts
            deviation = np.sqrt(spread / count) if count else 0.0
            return (values - mean) / deviation if deviation > 0 else np.zeros_like(values)
        if scale == "max-abs":
            return values / facts[3] if facts[3] > 0 else values.copy()
    if scale == "log1p":
        return np.copysign(np.log1p(np.abs(values)), values)
    return values.copy()
