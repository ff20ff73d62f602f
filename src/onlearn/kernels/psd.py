"""Is it a kernel? Eigenvalues of kernel matrices, verdicts and repairs; and the features of a kernel as matrices.

A symmetric function k is a kernel (an inner product of features) if and only if no kernel matrix of it has a negative
eigenvalue (Mercer 1909; Aronszajn 1950). The explicit features that the second half computes prove it for a kernel that
has finitely many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR, is_sparse
from onlearn.kernels.base import Kernel, Points
from onlearn.kernels.products import as_csr, dense_rows, is_scipy, with_values
from onlearn.kernels.sparse_products import Lines, transposed

TOLERANCE = 1e-8  # relative to the largest eigenvalue; in single precision 1e-4
EXAMPLES = 500  # a kernel is checked on, by default
MOST = 1 << 24  # features; a matrix of more is of no use


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
    """The result of ``check_kernel``; true if the function is a kernel on the examples."""

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
    """Whether a kernel is positive semi-definite on (a sample of) these examples, with the reasons."""
    from onlearn.kernels.formula import get

    if isinstance(sample, bool) or not isinstance(sample, Integral) or sample < 1:
        raise ValueError(f"sample must be a whole number of at least 1, not {sample!r}")
    if isinstance(seed, bool) or not isinstance(seed, Integral) or seed < 0:  # also where no sample is drawn
        raise ValueError(f"seed must be a whole number of at least 0, not {seed!r}")
    k: Kernel = get(kernel)
    P = k.points(X)
    if not len(P):
        raise ValueError("there are no examples to check the kernel on")
    if len(P) > sample:
        P = P.take(np.sort(np.random.default_rng(seed).choice(len(P), sample, replace=False)))
    return judge(k, P, tol)


def judge(k: Kernel, P: Points, tol: float | None = None) -> Verdict:
    """Whether a kernel is positive semi-definite on these points."""
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
    """K without negative eigenvalues: they become 0 (clip), change sign (flip), or all are raised equally (shift)."""
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
    with np.errstate(over="ignore"):  # reported below
        repaired: np.ndarray = ((made + made.T) / 2 * unit).astype(K.dtype)
    if not np.isfinite(repaired).all():
        raise OverflowError(f"the repaired matrix holds numbers too large for {K.dtype}: scale K")
    return repaired


def square(K: Any) -> np.ndarray:
    K = dense_rows(as_csr(K)) if is_sparse(K) or is_scipy(K) else np.asarray(K)
    if K.dtype.kind not in "biuf":
        raise TypeError(f"a kernel matrix must hold numbers, not {K.dtype}")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"a kernel matrix of examples with themselves must be square, not of shape {K.shape}")
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
    """Eigenvalues of the symmetric part, ascending, in double precision; those beyond its range are clipped to it."""
    unit = unit_of(K)
    with np.errstate(over="ignore"):
        values = np.linalg.eigvalsh(symmetric_part(K, unit)) * unit
    most = np.finfo(np.float64).max
    return np.clip(values, -most, most)


def unit_of(K: np.ndarray) -> float:
    """A power of 2 (so that dividing does not round) by which K is divided, so that sums stay in range."""
    most = float(np.abs(K).max(initial=0.0))
    return 2.0 ** (math.frexp(most)[1] - 1) if most else 1.0


def symmetric_part(K: np.ndarray, unit: float) -> np.ndarray:
    scaled = K.astype(np.float64) / unit
    return (scaled + scaled.T) / 2


def tolerance(K: np.ndarray, given: float | None = None) -> float:
    """How far below 0 an eigenvalue may be, relative to the largest: as given, or by the precision."""
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= given < np.inf:
            raise ValueError(f"tol must be a number of at least 0, or None, not {given!r}")
        return float(given)
    return 1e-4 if K.dtype == np.float32 else TOLERANCE


# -- explicit features


def refuse_too_many(kernel: Any, X: Any, width: int | None = None) -> None:
    """Refuse a kernel with more than ``MOST`` features before anything is computed."""
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
    """A whole number as text; one too long to print by its power of ten."""
    return f"{count:,}" if count < 10**15 else f"about 10^{int(math.log10(count))}"


def beside(parts: list[Any]) -> Any:
    """Matrices of features side by side; sparse if one of them is."""
    if not any(is_sparse(part) for part in parts):
        return np.concatenate(parts, axis=1)
    rows = [_sparse(part) for part in parts]
    counts = [np.diff(part.indptr) for part in rows]
    indptr = np.concatenate([[0], np.cumsum(sum(counts[1:], start=counts[0]), dtype=np.int64)])
    data = np.empty(indptr[-1], np.result_type(*(part.dtype for part in rows)))
    indices = np.empty(indptr[-1], np.int64)
    starts, width = indptr[:-1].copy(), 0
    for part, count in zip(rows, counts, strict=True):
        places = np.repeat(starts - part.indptr[:-1], count) + np.arange(part.nnz)
        data[places], indices[places] = part.data, part.indices + np.int64(width)
        starts, width = starts + count, width + part.shape[1]
    return _in_type_of(parts, data, indices, indptr, width)


def outer(A: Any, B: Any) -> Any:
    """All products of a feature of A and a feature of B, row by row."""
    if not is_sparse(A) and not is_sparse(B):
        return (A[:, :, None] * B[:, None, :]).reshape(len(A), A.shape[1] * B.shape[1])
    X, Z = _sparse(A), _sparse(B)
    here, there = np.diff(X.indptr), np.diff(Z.indptr)
    counts = here * there
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    row = np.repeat(np.arange(X.shape[0]), counts)
    place = np.arange(indptr[-1]) - indptr[row]
    p = X.indptr[row] + place // there[row]
    q = Z.indptr[row] + place % there[row]
    indices = X.indices[p].astype(np.int64) * Z.shape[1] + Z.indices[q]
    return _in_type_of([A, B], X.data[p] * Z.data[q], indices, indptr, X.shape[1] * Z.shape[1])


def ones_like(features: Any) -> Any:
    """One feature that is always 1, in the type of others."""
    count = features.shape[0]
    if not is_sparse(features):
        return np.ones((count, 1), features.dtype)
    return _in_type_of([features], np.ones(count, features.dtype), np.zeros(count, int), np.arange(count + 1), 1)


def complement(column: Any) -> Any:
    """1 - x for a feature x that is 0 or 1."""
    if not is_sparse(column):
        return 1 - column
    X = as_csr(column)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    zero = np.ones(X.shape[0], dtype=bool)
    zero[rows[X.data != 0]] = False
    indptr = np.concatenate([[0], np.cumsum(zero)])
    return _in_type_of([column], np.ones(indptr[-1], X.dtype), np.zeros(indptr[-1], int), indptr, 1)


def columns(X: Any) -> list[Any]:
    """Each column as a matrix of one feature."""
    if not is_sparse(X):
        return [X[:, [n]] for n in range(X.shape[1])]
    by_column, found = transposed(as_csr(X)), []
    for n in range(X.shape[1]):
        held = slice(by_column.indptr[n], by_column.indptr[n + 1])
        rows = by_column.indices[held]
        indptr = np.searchsorted(rows, np.arange(X.shape[0] + 1))
        found.append(_in_type_of([X], by_column.data[held], np.zeros(len(rows), int), indptr, 1))
    return found


def empty_like(features: Any) -> Any:
    """No features, for as many rows."""
    count = features.shape[0]
    if not is_sparse(features):
        return np.empty((count, 0), features.dtype)
    return _in_type_of([features], np.empty(0, features.dtype), np.empty(0, int), np.zeros(count + 1, int), 0)


def scale(features: Any, factor: float) -> Any:
    return with_values(features, features.data * factor) if is_sparse(features) else features * factor


def scale_rows(features: Any, factors: np.ndarray) -> Any:
    factors = factors.astype(features.dtype)
    if is_sparse(features):
        return with_values(features, features.data * np.repeat(factors, np.diff(features.indptr)))
    return features * factors[:, None]


def monomials(X: Any, degree: int, weights: list[float]) -> Any:
    """The features of the kernel w0 + w1 x.z + w2 (x.z)^2 + ...: weighted products of up to ``degree`` columns.

    ``weights[d]`` is the coefficient of (x.z)^d. The kernel gives a product of degree d the weight of its multinomial
    coefficient d! / (a1! a2! ...), where a1, a2... say how often each column occurs in it; its feature has the square
    root of that. Products are in the order of combinations with replacement, those of a lower degree first.
    """
    width = X.shape[1]
    # Putting a column in front of a product of degree d - 1 that begins with it, or with a later one, multiplies the
    # coefficient by d / (how often the column now occurs).
    coefficients, repeats = np.ones(width), np.ones(width)
    firsts = np.arange(width + 1)  # where the products that begin with each column start; the last entry is their end
    found, starts = [np.full(1, weights[0]), coefficients * weights[1]], [firsts]
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
        starts.append(firsts)
    roots = np.sqrt(np.concatenate(found)).astype(X.dtype)
    kept = roots != 0
    if not is_sparse(X):
        made = _dense_products(X, starts)
        made *= roots
        return made if kept.all() else made[:, kept]
    made = as_csr(beside([ones_like(X), *_sparse_products(as_csr(X), degree)]))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(made.indptr))[kept[made.indices]]
    data = (made.data * roots[made.indices])[kept[made.indices]]
    indices = (np.cumsum(kept) - 1)[made.indices[kept[made.indices]]]
    indptr = np.searchsorted(rows, np.arange(X.shape[0] + 1))
    return _in_type_of([X], data, indices, indptr, int(kept.sum()))


def _dense_products(X: np.ndarray, starts: list[np.ndarray]) -> np.ndarray:
    """1, the columns, and the products of 2 and more of them; ``starts`` has the ``firsts`` of each degree."""
    rows, width = X.shape
    made = np.empty((rows, 1 + sum(int(firsts[-1]) for firsts in starts)), X.dtype)
    made[:, 0] = 1
    made[:, 1 : 1 + width] = X
    before, at = made[:, 1 : 1 + width], 1 + width
    for firsts, grown in pairwise(starts):
        for column in range(width):
            part = made[:, at + grown[column] : at + grown[column + 1]]
            np.multiply(before[:, firsts[column] :], X[:, column : column + 1], out=part)
        before, at = made[:, at : at + grown[-1]], at + int(grown[-1])
    return made


def _sparse_products(X: CSR, degree: int) -> list[CSR]:
    """The columns, and for each higher degree the products of that many columns."""
    rows, width = X.shape
    row, last, number, value = np.repeat(np.arange(rows), np.diff(X.indptr)), np.arange(X.nnz), X.indices, X.data
    ends = X.indptr[1:].astype(np.int64)
    highest = np.arange(width)  # of each product of one degree: its last column
    found = [X]
    for _ in range(2, degree + 1):
        # A product is continued by its last column and by later ones, in ``last`` the place of that in X.
        choices = width - highest
        first = np.cumsum(choices) - choices
        counts = ends[row] - last
        place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        before = np.repeat(np.arange(len(row)), counts)
        last = last[before] + place
        number = first[number[before]] + X.indices[last] - highest[number[before]]
        row, value = row[before], value[before] * X.data[last]
        highest = np.arange(choices.sum()) - np.repeat(first - highest, choices)
        indptr = np.searchsorted(row, np.arange(rows + 1))
        found.append(CSR(value, number, indptr, (rows, len(highest))))
    return found


def _sparse(part: Any) -> CSR:
    return as_csr(part) if is_sparse(part) else Lines.of(np.ascontiguousarray(part)).to_csr(part.shape[1])


def _in_type_of(given: list[Any], data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int) -> Any:
    """Sparse rows as CSR, or as a SciPy matrix if one of the given matrices is one."""
    kind = np.int32 if max(width, len(data)) < 2**31 else np.int64
    rows = CSR(data, indices.astype(kind, copy=False), indptr.astype(kind, copy=False), (len(indptr) - 1, width))
    return rows.to_scipy() if any(is_scipy(part) for part in given) else rows
