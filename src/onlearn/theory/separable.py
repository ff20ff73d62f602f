"""Linear separability: a linear program decides, with a proof either way.

Gordan's theorem: either some (w, b) has y_i (w.x_i + b) > 0 for all i, or some lambda >= 0, not all zero,
has sum lambda_i y_i (x_i, 1) = 0, which says that the convex hulls of the two classes meet. One linear
program decides which:

    max sum lambda_i   over   lambda >= 0,  sum lambda_i y_i (x_i, 1) = 0,  sum lambda_i <= K.

Its optimum is K if the hulls meet, and lambda is the proof; else it is 0, and the dual variables are a
separator (w, b) with y_i (w.x_i + b) >= 1. Such programs are slow on many rows. There the squared hinge loss
goes first: its minimum decides the same, and its result is checked, so it often needs no program.

Rows are dense arrays or CSR. They are read in blocks, so that no dense copy of sparse rows and no float64
copy of a whole float32 matrix is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_BLOCK = 1 << 20  # numbers in a block of rows, 8 MB as float64
_TOLERANCE = 1e-12  # how near to one point the hulls must come, in units of each feature's range
_SMALL = 50_000  # numbers in X up to which a linear program is quick
_FARTHEST = 1000.0  # exponent of a scale: a float64 ends at 2^1024
_FIRST_ROWS = 1000  # rows of the first linear program, if the features are few


@dataclass(frozen=True, eq=False)
class Separability:
    """The answer and its proof; true if the classes are separable.

    `weights` and `intercept`: the separator, positive on `classes[1]` (None and 0 if there is none).
    `multipliers`: one for each row, with sum 1 over each class, so that the weighted sums of the rows of both
    classes are the same point (without an intercept: with sum 1 over all rows, and sum y_i multipliers_i x_i
    is zero); None if separable.
    """

    separable: bool
    classes: NDArray[Any]
    weights: Floats | None = None
    intercept: float = 0.0
    multipliers: Floats | None = None

    def __bool__(self) -> bool:
        return self.separable


def separable(X: Any, y: ArrayLike, fit_intercept: bool = True) -> Separability:
    """Whether a hyperplane has each of two classes strictly on its own side.

    Without `fit_intercept` it must pass through the origin. X is dense or sparse, y holds any two labels. A
    separator is checked on the data, rounding included, before it is returned; so is the point where the
    hulls meet, up to 1e-12 of each feature's range: classes nearer than that may count as touching. Dense
    data are centred where they are far from the origin, sparse data are not.

    >>> bool(separable([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 0, 0, 1]))
    True
    >>> answer = separable([[0, 0], [0, 1], [1, 0], [1, 1]], [0, 1, 1, 0])
    >>> bool(answer), answer.multipliers.round(6).tolist()
    (False, [0.5, 0.5, 0.5, 0.5])
    """
    X = as_rows(X)
    labels, classes = signs(y, X.shape[0])
    scaled = _Scaled(X, labels, fit_intercept)

    for v, rows, multipliers in _attempts(scaled.Z):
        separator = scaled.separator(v)
        if separator is not None:
            return Separability(True, classes, *separator)
        proof = scaled.proof(rows, multipliers)
        if proof is not None:
            return Separability(False, classes, multipliers=proof)
    raise ArithmeticError("The classes are too near to each other to decide if they are separable.")


def simplex_margin(X: Any, y: ArrayLike) -> tuple[float, Floats]:
    """(g, u): the largest g with y_i u.x_i >= g for all i, over u >= 0 with sum(u) = 1, and such a u.

    The bound and the best rate of normalised Winnow are stated in g, which is not positive if no such u
    separates. It is the value of the zero-sum game with the matrix y_i x_ij. y is -1 or +1, or any two
    labels.

    >>> g, u = simplex_margin([[1, 0, 1], [0, 1, -1]], [1, 1])
    >>> round(g, 6), u.round(6).tolist()
    (0.5, [0.5, 0.5, 0.0])
    """
    import scipy.sparse as sp
    from scipy.optimize import linprog

    X = as_rows(X)
    m, n = X.shape
    labels = signed_labels(y, m)
    peak = radii(X)[1] or 1.0
    A = sp.csr_array(scipy_rows(X)).astype(np.float64).multiply((-labels / peak)[:, None])
    A = sp.hstack([A, np.ones((m, 1))], format="csr")
    only_u, only_g = np.append(np.ones(n), 0.0), np.append(np.zeros(n), 1.0)
    answer = linprog(
        -only_g,
        A_ub=A,
        b_ub=np.zeros(m),
        A_eq=only_u[None, :],
        b_eq=[1.0],
        bounds=np.column_stack([np.where(only_u, 0.0, -np.inf), np.full(n + 1, np.inf)]),
        method="highs-ipm",  # simplex takes minutes where rows have no zeros
    )
    if answer.x is None:
        raise ArithmeticError(f"The linear program for the margin failed: {answer.message}")
    u = np.maximum(answer.x[:n], 0.0)
    u /= u.sum()
    return float((labels * scores(X, u)).min()), u


class _Scaled:
    """The rows z_i = r_i y_i (x_i - centre, 1) * columns: signed, of sizes near 1, as linear programs need.

    The factors r > 0 and those of the columns change no answer. They are powers of two, so they do not round.
    """

    def __init__(self, X: Any, labels: Floats, fit_intercept: bool) -> None:
        self.X, self.labels, self.fit_intercept = X, labels, fit_intercept
        n_rows, n_columns = X.shape
        Z: Any
        if is_sparse(X):
            import scipy.sparse as sp

            Z = scipy_rows(X).astype(np.float64)
            Z = sp.hstack([Z, np.ones((n_rows, 1))], format="csr") if fit_intercept else Z
        else:
            Z = np.ones((n_rows, n_columns + fit_intercept))
            Z[:, :n_columns] = X
            if fit_intercept:  # centre columns far from zero for their range; others keep their zeros
                low, high = Z[:, :n_columns].min(axis=0) / 2.0, Z[:, :n_columns].max(axis=0) / 2.0
                Z[:, :n_columns] -= np.where(np.abs(low + high) / 8.0 > high - low, low + high, 0.0)
        size = abs(Z)
        self.row_scale, self.column_scale = np.ones(n_rows), np.ones(Z.shape[1])
        # Each column to 1, whatever its unit; then Ruiz equilibration: rows and columns in turn, by the root.
        halves = ((1, self.row_scale, 0.5), (0, self.column_scale, 0.5))
        for axis, scale, power in ((0, self.column_scale, 1.0), *halves * 4):
            step = _power_of_two(_largest(size, axis), -power, scale)
            scale *= step
            size = _times(size, step, axis)
        self.largest = _largest(size, 0)
        self.Z = _times(_times(Z, self.column_scale, 0), self.row_scale * labels, 1)

    def separator(self, v: Floats) -> tuple[Floats, float] | None:
        """The separator of the original rows, from that of the scaled rows; None if it may be due to rounding."""
        n_columns = self.X.shape[1]
        if not np.isfinite(v).all():
            return None
        # The length of w does not matter, so it is such that no weight overflows.
        size = (np.frexp(v)[1] + np.frexp(self.column_scale)[1])[v != 0.0].max(initial=0)
        w = (np.ldexp(v, min(0, int(_FARTHEST) - int(size))) * self.column_scale)[:n_columns]
        s = scores(self.X, w)
        b = 0.0
        if self.fit_intercept:  # half-way between the classes is at least as good as the intercept of v
            b = -float(s[self.labels > 0].min() / 2.0 + s[self.labels < 0].max() / 2.0)
        rounding = (n_columns + 2) * np.finfo(np.float64).eps
        for start, block in blocks(self.X):
            end = start + block.shape[0]
            error = rounding * (dot(abs(block), np.abs(w)) + abs(b))
            # Not "any(... <= error)": a NaN must fail too.
            if not (self.labels[start:end] * (s[start:end] + b) > error).all():
                return None
        return w, b

    def proof(self, rows: NDArray[np.intp], multipliers: Floats) -> Floats | None:
        """The multipliers of the original rows; None if they do not give a common point of both hulls."""
        from scipy.sparse.linalg import lsqr

        rows, lam = rows[multipliers > 0.0], multipliers[multipliers > 0.0]
        if not len(rows):
            return None
        # The solvers stop at about 1e-10. The change to exact multipliers is tiny if there are any.
        Z, before = self.Z[rows], lam.sum()
        change = lsqr(Z.T, lam @ Z, atol=1e-15, btol=1e-15, iter_lim=2 * Z.shape[1] + 1000)[0]
        lam = np.maximum(lam - change, 0.0)
        if not (np.abs(lam @ Z) <= _TOLERANCE * before * self.largest).all() or lam.sum() < before / 2.0:
            return None
        full = np.zeros(self.X.shape[0])
        full[rows] = lam * self.row_scale[rows]
        if not self.fit_intercept:
            return np.asarray(full / full.sum())
        for side in (self.labels > 0, self.labels < 0):
            if not full[side].any():
                return None
            full[side] /= full[side].sum()
        return full


def _attempts(Z: Any) -> Iterator[tuple[Floats, NDArray[np.intp], Floats]]:
    """(v, rows, multipliers): v may separate, or the multipliers of the rows prove that nothing does."""
    n_rows, n_columns = Z.shape
    everything, small = np.arange(n_rows), n_rows * n_columns <= _SMALL
    v = np.zeros(n_columns) if small else _squared_hinge(Z)
    if not small:
        yield v, everything, np.maximum(0.0, 1.0 - Z @ v)
    # The linear program grows by the rows on which v is most wrong. A proof that some rows cannot be separated
    # holds for all, so it seldom needs all of them.
    chosen, size = np.zeros(n_rows, dtype=bool), max(_FIRST_ROWS, 2 * n_columns)
    while not chosen.all():
        order = np.argsort(Z @ v, kind="stable")
        chosen[order[~chosen[order]][:size]] = True
        rows, size = np.flatnonzero(chosen), 2 * size
        v, multipliers = _gordan(Z[rows])
        yield v, rows, multipliers
    if small:
        v = _squared_hinge(Z)
        yield v, everything, np.maximum(0.0, 1.0 - Z @ v)


def _squared_hinge(Z: Any) -> Floats:
    """argmin |max(0, 1 - Z v)|^2 by L-BFGS, then Newton, which usually decides.

    The minimum is 0 for separable rows, and v is a separator. Else the gradient, -2 lambda Z with lambda =
    max(0, 1 - Z v), is 0 there, and lambda is a proof. Only nearly separable rows need the linear program.
    """
    from scipy.optimize import minimize
    from scipy.sparse.linalg import lsqr

    def loss(v: Floats) -> tuple[float, Floats]:
        short = np.maximum(0.0, 1.0 - Z @ v)
        return float(short @ short), -2.0 * (short @ Z)

    start = np.zeros(Z.shape[1])
    v = np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x)
    for _ in range(10):
        short = 1.0 - Z @ v
        active = short > 0.0
        if (short < 1.0).all():
            break
        step = lsqr(Z[active], short[active], atol=1e-14, btol=1e-14)[0]
        if not loss(v + step)[0] < loss(v)[0]:
            break
        v = v + step
    return v


def _gordan(Z: Any) -> tuple[Floats, Floats]:
    """(v, 0) with Z v >= 1, or (0, lambda) with lambda >= 0, not 0, lambda Z = 0; (0, 0) if HiGHS fails."""
    from scipy.optimize import linprog

    m, n = Z.shape
    total = float(min(m, n + 1))  # at most so many multipliers are positive: about 1 each
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    attempts: tuple[dict[str, Any], ...] = (tight, {}, {"presolve": False})  # near rounding one works where others fail
    for options in attempts:
        answer = linprog(
            -np.ones(m),
            A_ub=np.ones((1, m)),
            b_ub=[total],
            A_eq=Z.T,
            b_eq=np.zeros(n),
            bounds=(0, None),
            options=options,
        )
        if answer.status == 0:
            return -answer.eqlin.marginals, answer.x
    return np.zeros(n), np.zeros(m)  # no answer


def scipy_rows(X: Any) -> Any:
    """Sparse rows as SciPy's solvers need them; dense rows unchanged."""
    if not is_sparse(X):
        return X
    import scipy.sparse as sp

    return sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)


def _largest(size: Any, axis: int) -> Floats:
    largest = size.max(axis=axis)
    return np.asarray(largest if isinstance(largest, np.ndarray) else largest.todense(), dtype=np.float64).ravel()


def _power_of_two(size: Floats, power: float, scale: Floats) -> Floats:
    """The power of two nearest to size^power; 1 for a row or column of zeros. Times the scale it stays finite."""
    exponent = np.round(power * np.log2(np.where(size > 0.0, size, 1.0)))
    before = np.log2(scale)
    return np.ldexp(1.0, (np.clip(before + exponent, -_FARTHEST, _FARTHEST) - before).astype(np.intc))


def _times(Z: Any, scale: Floats, axis: int) -> Any:
    """Z with its rows (axis 1) or columns (axis 0) multiplied, in place if dense."""
    factors = scale[:, None] if axis == 1 else scale[None, :]
    if not isinstance(Z, np.ndarray):
        return Z.multiply(factors).tocsr()
    Z *= factors
    return Z


# -- rows, dense or sparse


@dataclass(frozen=True, eq=False)
class Entries:
    """A block of sparse rows: the value in each row and column that is stored."""

    row: NDArray[np.int64]
    column: NDArray[Any]
    value: Floats
    shape: tuple[int, int]

    def __abs__(self) -> Entries:
        return Entries(self.row, self.column, np.abs(self.value), self.shape)


def is_sparse(X: Any) -> bool:
    """Whether X is compressed sparse rows, of the package or of SciPy."""
    return hasattr(X, "indptr")


def as_rows(X: Any) -> Any:
    """X as a 2-D array or compressed sparse rows, with at least one row and one column, all of it finite."""
    if hasattr(X, "tocsr"):  # SciPy
        X = X.tocsr()
    elif not is_sparse(X):
        X = np.asarray(X)
    if len(X.shape) != 2 or 0 in X.shape:
        raise ValueError(f"X must have rows and columns, but its shape is {X.shape}.")
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X must hold real numbers, but its type is {X.dtype}.")
    for start, block in blocks(X):
        row, column, value = stored(block)
        finite = np.isfinite(value)
        if not finite.all():
            where = int(np.argmin(finite))
            raise ValueError(f"X has NaN or infinity in row {start + row[where]}, column {column[where]}.")
    return X


def signs(y: ArrayLike, n_rows: int) -> tuple[Floats, NDArray[Any]]:
    """The labels as -1.0 and +1.0, and the two labels (the second one is +1)."""
    y = np.asarray(y)
    if y.shape != (n_rows,):
        raise ValueError(f"y must hold one label for each of the {n_rows} rows, but its shape is {y.shape}.")
    if y.dtype.kind == "f" and np.isnan(y).any():
        raise ValueError(f"y has NaN in row {int(np.argmax(np.isnan(y)))}.")
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold two classes, but it holds {len(classes)}.")
    return np.where(y == classes[1], 1.0, -1.0), classes


def signed_labels(y: ArrayLike, n_rows: int) -> Floats:
    """Labels that are -1 and +1 as they are, even if all are alike; of any other two the second one is +1."""
    labels = np.asarray(y)
    plain = labels.shape == (n_rows,) and labels.dtype.kind in "iuf" and bool(np.isin(labels, (-1, 1)).all())
    return labels.astype(np.float64) if plain else signs(labels, n_rows)[0]


def blocks(X: Any) -> Iterator[tuple[int, Any]]:
    """(first row, block of rows in float64) for all of X; a block is an array, or ``Entries`` of sparse rows."""
    n_rows, n_columns = X.shape
    per_row = max(1, X.nnz // n_rows) if is_sparse(X) else n_columns
    step = max(1, _BLOCK // per_row)
    for start in range(0, n_rows, step):
        if not is_sparse(X):
            # A copy unless X is float64: bool and float32 rows become numbers that add up exactly.
            yield start, X[start : start + step].astype(np.float64, copy=False)
            continue
        indptr = X.indptr[start : start + step + 1]
        held = slice(indptr[0], indptr[-1])
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        value = X.data[held].astype(np.float64, copy=False)
        yield start, Entries(row, X.indices[held], value, (len(indptr) - 1, n_columns))


def stored(block: Any) -> tuple[NDArray[Any], NDArray[Any], Floats]:
    """Row, column and value of the numbers of a block that are not zero, or are stored."""
    if isinstance(block, Entries):
        return block.row, block.column, block.value
    row, column = np.nonzero(block)
    return row, column, block[row, column]


def dot(block: Any, w: Floats) -> Floats:
    """block @ w"""
    if not isinstance(block, Entries):
        return np.asarray(block @ w)
    return np.bincount(block.row, block.value * w[block.column], block.shape[0]).astype(np.float64, copy=False)


def scores(X: Any, w: Floats) -> Floats:
    """X @ w in float64."""
    return np.concatenate([dot(block, w) for _, block in blocks(X)])


def radii(X: Any) -> tuple[float, float]:
    """(max |x|_2, max |x|_inf) over the rows; no square overflows."""
    radius, peak = 0.0, 0.0
    for _, block in blocks(X):
        values = block.value if isinstance(block, Entries) else block
        top = float(np.abs(values).max(initial=0.0))
        if top > 0.0:
            if isinstance(block, Entries):
                scaled = values * (1.0 / top)
                firsts = np.flatnonzero(np.diff(block.row, prepend=-1))
                squares = np.add.reduceat(scaled * scaled, firsts)
            else:
                scaled = values / top
                squares = np.einsum("ij,ij->i", scaled, scaled)
            radius = max(radius, top * float(np.sqrt(squares.max())))
            peak = max(peak, top)
    return radius, peak
