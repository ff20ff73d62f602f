"""Is this a kernel? Eigenvalues of kernel matrices, verdicts in words, and repairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlearn.kernels.base import Kernel, Points

TOLERANCE = 1e-8  # relative to the largest eigenvalue; in single precision 1e-4
EXAMPLES = 500


def is_psd(K: Any, tol: float | None = None) -> bool:
    """Whether a matrix is symmetric and has no eigenvalue below ``-tol`` times the largest, in absolute size.

    >>> is_psd([[1.0, 0.5], [0.5, 1.0]]), is_psd([[1.0, 2.0], [2.0, 1.0]])
    (True, False)
    """
    K = square(K)
    tol = tolerance(K, tol)
    if asymmetry(K) > tol:
        return False
    values = eigenvalues(K)
    return bool(values.size == 0 or values[0] >= -tol * np.abs(values).max())


@dataclass(frozen=True)
class Verdict:
    """What ``check_kernel`` found."""

    kernel: str
    examples: int
    symmetric: bool
    smallest: float
    largest: float
    psd: bool
    sentence: str

    def __bool__(self) -> bool:
        return self.psd

    def __str__(self) -> str:
        return self.sentence


def check_kernel(kernel: Any, X: Any, sample: int = EXAMPLES, tol: float | None = None, seed: int = 0) -> Verdict:
    """Whether a kernel is one on (a sample of) these examples: true or false, with the reasons."""
    from onlearn.kernels.formula import get

    if isinstance(sample, bool) or not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample must be a whole number of at least 1, not {sample!r}")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:  # also where all rows are looked at
        raise ValueError(f"seed must be a whole number of at least 0, not {seed!r}")
    k: Kernel = get(kernel)
    P = k.points(X)
    if not len(P):
        raise ValueError("there are no examples to check the kernel on")
    if len(P) > sample:
        P = P.take(np.sort(np.random.default_rng(seed).choice(len(P), sample, replace=False)))
    return judge(k, P, tol)


def judge(k: Kernel, P: Points, tol: float | None = None) -> Verdict:
    """Whether a kernel is one on these points."""
    K = k.block(P, P)
    tol = tolerance(K, tol)
    symmetric = asymmetry(K) <= tol
    values = eigenvalues(K)
    smallest, largest = float(values[0]), float(values[-1])
    psd = symmetric and bool(smallest >= -tol * np.abs(values).max())
    where = f"on {len(P)} examples"
    if not symmetric:
        sentence = f"{k} is not a kernel: k(x, z) and k(z, x) differ {where}"
    elif not psd:
        sentence = f"{k} is not a kernel: its smallest eigenvalue {where} is {smallest:.3g}, below 0"
    elif k.always_psd:
        sentence = f"{k} is a kernel: it always is, and its smallest eigenvalue {where} is {smallest:.3g}"
    else:
        sentence = (
            f"{k} looks like a kernel {where} (smallest eigenvalue {smallest:.3g}), "
            "but it is not always one: other data may show a negative eigenvalue"
        )
    return Verdict(str(k), len(P), symmetric, smallest, largest, psd, sentence)


def repair(K: Any, how: str = "clip") -> np.ndarray:
    """K without negative eigenvalues: they become 0 (clip) or positive (flip), or all grow by the lowest (shift)."""
    K = square(K)
    refuse_asymmetric(K, "K")
    unit = unit_of(K)
    values, vectors = np.linalg.eigh(symmetric_part(K, unit))
    if how == "clip":
        values = np.maximum(values, 0.0)
    elif how == "flip":
        values = np.abs(values)
    elif how == "shift":
        values = values - values.min(initial=0.0)
    else:
        raise ValueError(f"how must be 'clip', 'flip' or 'shift', not {how!r}")
    made = (vectors * values) @ vectors.T
    with np.errstate(over="ignore"):  # told in words
        repaired: np.ndarray = ((made + made.T) / 2 * unit).astype(K.dtype)
    if not np.isfinite(repaired).all():
        raise OverflowError(f"the repaired matrix holds numbers too large for {K.dtype}: scale K")
    return repaired


def square(K: Any) -> np.ndarray:
    K = K.toarray() if sp.issparse(K) else np.asarray(K)
    if K.dtype.kind not in "biuf":
        raise TypeError(f"a kernel matrix must hold numbers, not {K.dtype}")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a kernel matrix of examples with themselves is square, not of shape {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError("the kernel matrix holds NaN or infinity")
    return K if K.dtype == np.float32 else K.astype(np.float64)


def asymmetry(K: np.ndarray) -> float:
    """The largest difference between K and its transpose, relative to the largest number in K."""
    most = np.abs(K).max(initial=0.0)
    scaled = K / most if most else K  # the difference of two large numbers may be too large
    return float(np.abs(scaled - scaled.T).max(initial=0.0))


def refuse_asymmetric(K: np.ndarray, what: str) -> None:
    if asymmetry(K) > tolerance(K):
        row, column = np.unravel_index(np.argmax(np.abs(K / 2 - K.T / 2)), K.shape)
        raise ValueError(
            f"{what} must be symmetric, but holds {K[row, column]:g} at ({row}, {column}) "
            f"and {K[column, row]:g} at ({column}, {row})"
        )


def eigenvalues(K: np.ndarray) -> np.ndarray:
    """Of the symmetric part, in ascending order, in double precision; those too large for it are as large as can be."""
    unit = unit_of(K)
    with np.errstate(over="ignore"):
        values = np.linalg.eigvalsh(symmetric_part(K, unit)) * unit
    most = np.finfo(np.float64).max
    return np.clip(values, -most, most)


def unit_of(K: np.ndarray) -> float:
    """A power of 2, so that nothing is rounded, in units of which no number is beyond 2 and sums stay in range."""
    most = float(np.abs(K).max(initial=0.0))
    return 2.0 ** (math.frexp(most)[1] - 1) if most else 1.0


def symmetric_part(K: np.ndarray, unit: float) -> np.ndarray:
    scaled = K.astype(np.float64) / unit
    return (scaled + scaled.T) / 2


def tolerance(K: np.ndarray, given: float | None = None) -> float:
    """How far below 0 an eigenvalue may be, relative to the largest: as given, or as the precision has it."""
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= given < np.inf:
            raise ValueError(f"tol must be a number of at least 0, or None, not {given!r}")
        return float(given)
    return 1e-4 if K.dtype == np.float32 else TOLERANCE


# ----------------------------------------------------------------------------------------------------
# The features behind a kernel, written down: columns side by side, outer products, and how many are too many.


MOST = 1 << 24  # features; beyond it no matrix of them is of use


def refuse_too_many(kernel: Any, X: Any, width: int | None = None) -> None:
    """Refuse before anything is computed."""
    if width is None:
        shape = X.shape if hasattr(X, "shape") else np.shape(X)
        width = int(shape[1]) if len(shape) == 2 else None
    size = None if width is None else kernel.n_features(width)
    if size is not None and size > MOST:
        raise ValueError(
            f"{kernel} of {width} columns has {in_words(size)} features, more than the {MOST:,} that can be written "
            "down: use the kernel itself"
        )


def in_words(count: int) -> str:
    """A number that may be beyond all floats, and longer than Python writes."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"


def beside(parts: list[Any]) -> Any:
    """Columns side by side; sparse if one of them is."""
    if any(sp.issparse(part) for part in parts):
        return sp.hstack([sp.csr_matrix(part) for part in parts], format="csr")
    return np.concatenate(parts, axis=1)


def ones_like(features: Any) -> Any:
    """One feature that is always 1, in the manner of others."""
    ones = np.ones((features.shape[0], 1), features.dtype)
    return sp.csr_matrix(ones) if sp.issparse(features) else ones


def scale_rows(features: Any, factors: np.ndarray) -> Any:
    factors = factors.astype(features.dtype)[:, None]
    return sp.csr_matrix(features.multiply(factors)) if sp.issparse(features) else features * factors


def outer(A: Any, B: Any) -> Any:
    """All products of a feature of A with a feature of B, row by row."""
    if not sp.issparse(A) and not sp.issparse(B):
        return (A[:, :, None] * B[:, None, :]).reshape(len(A), A.shape[1] * B.shape[1])
    A, B = sp.csr_matrix(A), sp.csr_matrix(B)
    here, there = np.diff(A.indptr), np.diff(B.indptr)
    counts = here * there
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    row = np.repeat(np.arange(A.shape[0]), counts)
    place = np.arange(indptr[-1]) - indptr[row]
    p = A.indptr[row] + place // there[row]
    q = B.indptr[row] + place % there[row]
    columns = A.indices[p].astype(np.int64) * B.shape[1] + B.indices[q]
    return sp.csr_matrix((A.data[p] * B.data[q], columns, indptr), shape=(A.shape[0], A.shape[1] * B.shape[1]))


def monomials(X: Any, degree: int, weights: list[float]) -> Any:
    """All products of up to ``degree`` columns, with the square roots that make (w0 + w1 x.z + w2 (x.z)^2...) of them.

    weights[d] is the coefficient of (x.z)^d; each product of degree d then has the weight of its multinomial
    coefficient d! / (a1! a2! ...), with a1, a2... how often each column is in it.
    """
    from sklearn.preprocessing import PolynomialFeatures

    width = X.shape[1]
    # Products in the order of combinations with replacement. Putting a column before those of degree d - 1 that
    # start with it or a later one multiplies the coefficient by d / (how often it now is there).
    coefficients, repeats = np.ones(width), np.ones(width)
    firsts = np.arange(width + 1)  # where the products that start with each column begin; at last, where they end
    found = [np.full(1, weights[0]), coefficients * weights[1]]
    for d in range(2, degree + 1):
        sizes = firsts[-1] - firsts[:-1]
        grown, times = [], []
        for column in range(width):
            tail, run = coefficients[firsts[column] :], np.ones(sizes[column])
            same = firsts[column + 1] - firsts[column]
            run[:same] = repeats[firsts[column] : firsts[column + 1]] + 1
            grown.append(tail * d / run)
            times.append(run)
        coefficients, repeats = np.concatenate(grown), np.concatenate(times)
        firsts = np.concatenate([[0], np.cumsum(sizes)])
        found.append(coefficients * weights[d])
    roots = np.sqrt(np.concatenate(found)).astype(X.dtype)
    made = PolynomialFeatures(degree, include_bias=True).fit_transform(X)
    kept = np.flatnonzero(roots)
    if sp.issparse(made):
        return sp.csr_matrix(made.tocsc()[:, kept].multiply(roots[kept][None, :]))
    made *= roots
    return made if len(kept) == len(roots) else made[:, kept]
