"""Random frequencies whose waves make a kernel: by Bochner's theorem k(x - z) = E[cos(w.(x - z))].

A frequency w is a column. It is kept in turns (w / 2 pi), which is what ``waves`` takes.

- Gaussian, exp(-gamma |x - z|^2): w normal with variance 2 gamma (Rahimi and Recht 2007).
- The same, orthogonal: directions at right angles to each other, lengths as before (Yu et al. 2016). Each w by itself
  has the same distribution, so the mean is the same; but they no longer crowd by chance, so the variance is lower.
- Laplacian, exp(-gamma |x - z|_1): the coordinates of w are Cauchy with scale gamma. That is a product over the
  coordinates, not a function of the direction alone, so there is no orthogonal form of it.
"""

from __future__ import annotations

import numpy as np

TURN = 2 * np.pi


def gaussian(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((width, count)) * (np.sqrt(2 * gamma) / TURN)


def orthogonal(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """As many at right angles to each other as the width allows, and again."""
    W = np.empty((width, count))
    for start in range(0, count, width):
        size = min(width, count - start)
        Q, R = np.linalg.qr(rng.standard_normal((width, size)))
        signs = np.where(np.diagonal(R) < 0, -1.0, 1.0)  # without them the directions would not be uniform
        lengths = np.sqrt(rng.chisquare(width, size))
        W[:, start : start + size] = Q * (signs * lengths)
    W *= np.sqrt(2 * gamma) / TURN
    return W


def laplacian(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_cauchy((width, count)) * (gamma / TURN)


FREQUENCIES = {"gaussian": gaussian, "laplacian": laplacian}  # by the name of the kernel
