"""Distances between rows, each as an index in which neighbours are searched.

| metric | d(x, z) |
|---|---|
| `euclidean` | sqrt(sum_j w_j ((x_j - z_j) / s_j)^2) |
| `manhattan` | sum_j w_j abs(x_j - z_j) / s_j |
| `cosine` | 1 - x.z / (abs(x) abs(z)), of standardised rows; 1 if one of them is zero |
| `hamming` | sum_j w_j [x_j != z_j] / sum_j w_j |
| `mixed` | sqrt(sum over numbers w_j ((x_j - z_j) / s_j)^2 + sum over categories w_j [x_j != z_j]) |
| a kernel | sqrt(k(x, x) - 2 k(x, z) + k(z, z)) |

s_j is the standard deviation of column j, or 1 without ``scale``; w_j is the weight of the column.

Dense Euclidean distances come from products of matrices in single precision, of rows less a mean, as bounds:
fl(|x|^2 + |z|^2 - 2 x.z) is off by at most (n + 16) u (|x|^2 + |z|^2), with n columns and the unit roundoff u. What the
bounds do not exclude is measured by differences: see ``selection``. Cosine distances are Euclidean ones of rows of
length 1: |x - z|^2 / 2 = 1 - x.z.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR
from onlearn.kernels.bits import Bits, is_binary, ones_of
from onlearn.kernels.products import Vectors, squared_lengths, take_rows, with_values
from onlearn.kernels.vectors import distances as differences
from onlearn.neighbors.columns import Columns, Spread, extremes, power_of_two, spread_of
from onlearn.neighbors.search import Heaps
from onlearn.neighbors.selection import (
    DensePairs,
    SparsePairs,
    add_mismatches,
    sparse_mismatches,
    take_bits,
    take_bounded,
    take_exact,
)

ROWS = 2048  # of a tile
SPARSE_ROWS = 4096
BIT_ROWS = 4096
KERNEL_ROWS = 1 << 14
SAMPLE = 1000  # rows that the centre is taken from
ROUNDING = 16 * 2.0**-53  # of k(x, x) + k(z, z)
CHUNK = 1 << 21  # numbers that are converted at a time
FAR = 1e15  # in units of the largest number, beyond which single precision is no use
SINGLE, DOUBLE = 2.0**-24, 2.0**-53  # unit roundoffs
DENSE = 1 / 3  # the share of numbers that are not zero from which on dense rows take less memory

METRICS = ("euclidean", "manhattan", "cosine", "hamming", "mixed")


def make_index(metric: str, X: Any, columns: Columns, scale: bool) -> Any:
    """The rows X, a dense array or CSR with columns in order, as an index for a metric.

    Sparse rows that are hardly sparse are made dense, which is faster and takes no more memory.
    """
    if isinstance(X, CSR) and X.nnz > DENSE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    if metric == "hamming":
        return hamming_index(X, columns.weights)
    spread = spread_of(X, columns, scale)
    if metric == "cosine":
        return Cosine(X, columns, spread)
    if metric == "manhattan":
        return Manhattan(X, columns.weights / spread.deviations)
    root = np.sqrt(columns.weights)
    return SparseEuclidean(X, root / spread.deviations) if isinstance(X, CSR) else Euclidean(X, columns, spread)


def like_rows(X: Any, rows: Any) -> Any:
    """Queries in the layout and precision of the rows."""
    if isinstance(rows, CSR):
        X = X if isinstance(X, CSR) else CSR.of(X)
        return with_values(X, X.data.astype(rows.dtype, copy=False))
    X = X.toarray() if isinstance(X, CSR) else X
    return np.ascontiguousarray(X, dtype=rows.dtype)


def by_columns(rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Rows in parts of that many, each turned, so that the values of a column are adjacent."""
    return [np.ascontiguousarray(rows[start : start + size].T) for start in range(0, len(rows), size)]


def fixed(array: np.ndarray) -> np.ndarray:
    """Read-only always, so that compiled code meets one type whether the user's array is or not."""
    view = array.view()
    view.flags.writeable = False
    return view


def parts_of(X: CSR) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return fixed(X.data), fixed(X.indices), fixed(X.indptr)


class Exact:
    """What indices have in common that find all neighbours."""

    approximate = False
    alone = False
    rows: Any

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def prepare(self) -> None:
        """Make what the first search would make."""

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return values


# ---------------------------------------------------------------------------------------------------- Euclidean


class Euclidean(Exact):
    """Dense rows: numbers, and categories of which it counts those that differ."""

    rows: np.ndarray
    split: tuple[np.ndarray, np.ndarray]  # columns of numbers, and of categories
    numbers: np.ndarray
    codes: np.ndarray  # categories
    weights: np.ndarray  # of categories
    scale: np.ndarray  # of numbers
    offsets: np.ndarray  # added to squared distances, by row
    centre: np.ndarray
    unit: float  # what numbers are multiplied by for the bounds
    bound: float

    def __init__(self, X: np.ndarray, columns: Columns, spread: Spread, offsets: np.ndarray | None = None) -> None:
        self.rows = X
        chosen, weights = columns.categories, columns.weights
        self.split = np.flatnonzero(~chosen), np.flatnonzero(chosen)
        self.numbers, self.codes = self._parts(X)
        self.weights = weights[chosen]
        self.scale = (np.sqrt(weights) / spread.deviations)[~chosen]
        self.offsets = np.zeros(len(X)) if offsets is None else offsets
        self.centre = np.zeros(len(self.scale))  # any row near all of them serves
        self.unit = 1.0
        if self.numbers.size:
            self.centre = self.numbers[:: 1 + len(X) // SAMPLE].mean(axis=0, dtype=np.float64)
            self.unit = float(power_of_two(self.reach(self.numbers)))
        self.bound = 1 - (X.shape[1] + 16) * SINGLE

    def _parts(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and categories of rows; where there are no categories, the rows themselves."""
        numbers, categories = self.split
        if not len(categories):
            return fixed(X), fixed(np.empty((len(X), 0), X.dtype))
        return fixed(np.ascontiguousarray(X[:, numbers])), fixed(np.ascontiguousarray(X[:, categories]))

    def reach(self, X: np.ndarray) -> float:
        """The largest number of rows less the centre."""
        lowest, highest = extremes(X)
        return float((np.maximum(highest - self.centre, self.centre - lowest) * self.scale).max())

    @cached_property
    def coarse(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows in single precision, less the centre and in units of the largest, and lower bounds of |z|^2."""
        rows, squares = self._coarse(self.numbers)
        return rows, (self.bound * squares + self.unit**2 * self.offsets).astype(np.float32)

    def _coarse(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        made, squares = np.empty(X.shape, np.float32), np.empty(len(X))
        step = max(1, CHUNK // max(1, X.shape[1]))
        scale = self.scale * self.unit
        for start in range(0, len(X), step):
            with np.errstate(over="ignore"):
                some = made[start : start + step]
                some[...] = (X[start : start + step] - self.centre) * scale
            squares[start : start + step] = np.einsum("ij,ij->i", some, some, dtype=np.float64)
        return made, squares

    def prepare(self) -> None:
        self.coarse  # noqa: B018  made when it is first asked for

    @cached_property
    def turned_codes(self) -> list[np.ndarray]:
        return by_columns(self.codes, ROWS)

    def queries(self, X: Any) -> EuclideanQueries:
        return EuclideanQueries(self, like_rows(X, self.rows))

    def effort(self, queries: Any) -> float:
        return float(len(queries)) * len(self) * (len(self.scale) + len(self.weights))

    def take(self, queries: EuclideanQueries, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        rows, squares = self.coarse
        few, lengths = queries.coarse(top, stop)
        slack = np.array([8 * SINGLE, 1e-37])
        tiles = np.empty((stop - top) * min(ROWS, max(1, len(self))), np.float32)
        weights = self.weights * self.unit**2
        for first in range(0, len(self), ROWS):
            past = min(len(self), first + ROWS)
            tile = tiles[: (stop - top) * (past - first)].reshape(stop - top, past - first)
            np.matmul(few, rows[first:past].T, out=tile)
            if len(weights):
                add_mismatches(tile, queries.codes[top:stop], self.turned_codes[first // ROWS], weights)
            b = squares[first:past]
            take_bounded(queries.pairs, tile, lengths, b, slack, first, top, skip, *heaps)

    def distances(self, queries: EuclideanQueries, values: np.ndarray) -> np.ndarray:
        return np.sqrt(values) / queries.units[:, None]


class EuclideanQueries:
    """Rows to search the neighbours of among dense ones."""

    index: Euclidean
    numbers: np.ndarray
    codes: np.ndarray
    offsets: np.ndarray
    units: np.ndarray  # by row
    pairs: DensePairs

    def __init__(self, index: Euclidean, X: np.ndarray, offsets: np.ndarray | None = None) -> None:
        self.index, (self.numbers, self.codes) = index, index._parts(X)
        self.offsets = np.zeros(len(X)) if offsets is None else offsets
        self.units = np.full(len(X), index.unit)
        if self.numbers.size and index.reach(self.numbers) * index.unit > FAR:
            largest = np.abs((self.numbers - index.centre) * index.scale).max(axis=1) * index.unit
            far = largest > FAR  # beyond single precision: all rows are measured
            self.units[far] *= power_of_two(largest[far])
        self.pairs = DensePairs(
            self.numbers,
            self.units,
            index.numbers,
            index.scale,
            self.codes,
            index.codes,
            index.weights,
            self.offsets,
            index.offsets,
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def coarse(self, top: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """-2 x in single precision, and lower bounds of |x|^2; minus infinity if bounds are of no use."""
        index = self.index
        rows, squares = index._coarse(self.numbers[top:stop])
        rows *= -2
        squares *= index.bound
        squares += index.unit**2 * self.offsets[top:stop]
        far = self.units[top:stop] != index.unit
        rows[far], squares[far] = 0, -np.inf
        return rows, squares


class SparseEuclidean(Exact):
    """Sparse rows: products in double precision."""

    rows: CSR
    offsets: np.ndarray
    unit: float
    scale: np.ndarray
    bound: float

    def __init__(self, X: CSR, scale: np.ndarray, offsets: np.ndarray | None = None) -> None:
        self.rows, self.offsets = X, np.zeros(X.shape[0]) if offsets is None else offsets
        largest = np.abs(X.data * scale[X.indices]).max(initial=0.0)
        self.unit = float(power_of_two(largest))
        self.scale = scale * self.unit
        self.bound = 1 - (X.shape[1] + 16) * DOUBLE

    @cached_property
    def parts(self) -> list[Vectors]:
        """The rows in units of the largest number, a tile at a time."""
        rows = self.vectors(self.rows)
        return [rows.take(slice(n, n + SPARSE_ROWS)).lasts() for n in range(0, len(self), SPARSE_ROWS)]

    def vectors(self, X: CSR) -> Vectors:
        scaled = with_values(X, X.data * self.scale[X.indices])
        return Vectors(scaled, squared_lengths(scaled))

    def queries(self, X: Any) -> SparseQueries:
        return SparseQueries(self, like_rows(X, self.rows))

    def effort(self, queries: SparseQueries) -> float:
        return sum(queries.vectors.effort(part) for part in self.parts)

    def take(self, queries: SparseQueries, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        few = queries.vectors.take(slice(top, stop))
        a = self.bound * few.squares + queries.offsets[top:stop]
        a[~np.isfinite(few.squares)] = -np.inf
        slack = np.array([8 * DOUBLE, 1e-290])
        for n, part in enumerate(self.parts):
            tile = np.empty((stop - top, len(part)))
            with np.errstate(over="ignore", invalid="ignore"):
                few.dots(part, tile)
            tile *= -2
            tile[~np.isfinite(a)] = 0
            first = n * SPARSE_ROWS
            b = self.bound * part.squares + self.offsets[first : first + len(part)]
            take_bounded(queries.pairs, tile, a, b, slack, first, top, skip, *heaps)

    def distances(self, queries: SparseQueries, values: np.ndarray) -> np.ndarray:
        return np.sqrt(values) / self.unit


class SparseQueries:
    """Rows to search the neighbours of among sparse ones."""

    vectors: Vectors
    offsets: np.ndarray
    pairs: SparsePairs

    def __init__(self, index: SparseEuclidean, X: CSR, offsets: np.ndarray | None = None) -> None:
        self.vectors, Z = index.vectors(X), index.rows
        self.offsets = np.zeros(X.shape[0]) if offsets is None else offsets
        self.pairs = SparsePairs(*parts_of(X), *parts_of(Z), index.scale, self.offsets, index.offsets)

    def __len__(self) -> int:
        return len(self.vectors)


# ---------------------------------------------------------------------------------------------------- cosine


class Cosine(Exact):
    """Rows of length 1; those that are zero are at distance 1 of all, by an offset of 1 on each side."""

    rows: Any
    root: np.ndarray  # of the weights of columns
    spread: Spread

    def __init__(self, X: Any, columns: Columns, spread: Spread) -> None:
        self.rows, self.root, self.spread = X, np.sqrt(columns.weights), spread
        unit, zero = self.of_length_one(X)
        plain = Columns.of(X.shape[1])
        if isinstance(X, CSR):
            self.inner: Any = SparseEuclidean(unit, plain.weights, zero)
        else:
            self.inner = Euclidean(unit, plain, Spread(np.zeros(X.shape[1]), plain.weights), zero)

    def of_length_one(self, X: Any) -> tuple[Any, np.ndarray]:
        """Standardised rows divided by their lengths, and which of them are zero. Sparse rows keep their mean."""
        factor = self.root / self.spread.deviations
        if isinstance(X, CSR):
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            values = X.data * factor[X.indices]
            largest = np.zeros(X.shape[0])
            np.maximum.at(largest, rows, np.abs(values))
            values = values * power_of_two(largest)[rows]
            lengths = np.sqrt(np.bincount(rows, values * values, X.shape[0]))
            return with_values(X, values / np.where(lengths, lengths, 1)[rows]), (lengths == 0).astype(np.float64)
        made, zero = np.empty(X.shape), np.zeros(len(X))
        step = max(1, CHUNK // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            some = (X[start : start + step] - self.spread.means) * factor
            some *= power_of_two(np.abs(some).max(axis=1, initial=0.0))[:, None]
            lengths = np.sqrt(np.einsum("ij,ij->i", some, some))
            made[start : start + step] = some / np.where(lengths, lengths, 1)[:, None]
            zero[start : start + step] = lengths == 0
        return made, zero

    def queries(self, X: Any) -> Any:
        unit, zero = self.of_length_one(like_rows(X, self.rows))
        made = SparseQueries if isinstance(unit, CSR) else EuclideanQueries
        return made(self.inner, unit, zero)

    def prepare(self) -> None:
        self.inner.prepare()

    def effort(self, queries: Any) -> float:
        return float(self.inner.effort(queries))

    def take(self, queries: Any, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        self.inner.take(queries, top, stop, skip, heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return values / self.inner.unit**2 / 2


# --------------------------------------------------------------------------------------------- Manhattan, Hamming


class Manhattan(Exact):
    """Rows, dense or sparse, in units of their deviations."""

    rows: Any
    scale: np.ndarray

    def __init__(self, X: Any, scale: np.ndarray) -> None:
        self.rows, self.scale = X, scale

    def scaled(self, X: Any) -> Vectors:
        if isinstance(X, CSR):
            X = with_values(X, X.data * self.scale[X.indices])
        else:
            X = X * self.scale
        return Vectors(X, np.zeros(X.shape[0]))

    @cached_property
    def parts(self) -> list[Vectors]:
        rows = self.scaled(self.rows)
        return [rows.take(slice(n, n + ROWS)) for n in range(0, len(self), ROWS)]

    def queries(self, X: Any) -> Vectors:
        return self.scaled(like_rows(X, self.rows))

    def effort(self, queries: Vectors) -> float:
        return float(len(queries)) * self.rows.nnz if isinstance(self.rows, CSR) else queries.X.size * float(len(self))

    def take(self, queries: Vectors, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        few = queries.take(slice(top, stop))
        for n, part in enumerate(self.parts):
            tile = np.empty((stop - top, len(part)))
            differences(few, part, tile, squared=False)
            take_exact(tile, n * ROWS, skip, *heaps)


def hamming_index(X: Any, weights: np.ndarray) -> Any:
    """Rows of 0 and 1 as bits, if all columns count alike; others as they are."""
    if np.ptp(weights) == 0 and is_binary(X):
        bits = ones_of(X, "hamming")
        if isinstance(bits, Bits):
            return HammingBits(X, bits)
    return SparseHamming(X, weights) if isinstance(X, CSR) else Hamming(X, weights)


class HammingBits(Exact):
    """Rows of 0 and 1, 64 to a word: the places where words differ are counted."""

    rows: Any
    bits: Bits
    turned: list[np.ndarray]

    def __init__(self, X: Any, bits: Bits) -> None:
        self.rows, self.bits = X, bits
        self.turned = by_columns(bits.words, BIT_ROWS)

    @cached_property
    def plain(self) -> Any:
        """The same rows for queries that hold other numbers, too."""
        weights = np.ones(self.rows.shape[1])
        return SparseHamming(self.rows, weights) if isinstance(self.rows, CSR) else Hamming(self.rows, weights)

    def queries(self, X: Any) -> Any:
        X = like_rows(X, self.rows)
        return ones_of(X, "hamming") if is_binary(X) else self.plain.queries(X)

    def effort(self, queries: Any) -> float:
        return float(len(queries)) * self.bits.words.size * 2

    def take(self, queries: Any, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        if not isinstance(queries, Bits):
            self.plain.take(queries, top, stop, skip, heaps)
            return
        words, found = queries.words[top:stop], np.empty(BIT_ROWS, np.uint64)
        for n, turned in enumerate(self.turned):
            take_bits(words, turned, n * BIT_ROWS, found, skip, *heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return values / self.rows.shape[1]


class Hamming(Exact):
    """Dense rows whose values are compared."""

    rows: np.ndarray
    weights: np.ndarray
    turned: list[np.ndarray]

    def __init__(self, X: np.ndarray, weights: np.ndarray) -> None:
        self.rows, self.weights = X, weights
        self.turned = by_columns(X, ROWS)

    def queries(self, X: Any) -> np.ndarray:
        return fixed(like_rows(X, self.rows))

    def effort(self, queries: np.ndarray) -> float:
        return float(len(queries)) * self.rows.size

    def take(self, queries: np.ndarray, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        for n, turned in enumerate(self.turned):
            tile = np.zeros((stop - top, turned.shape[1]))
            add_mismatches(tile, queries[top:stop], turned, self.weights)
            take_exact(tile, n * ROWS, skip, *heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return values / self.weights.sum()


class SparseHamming(Exact):
    """Sparse rows whose values are compared, column by column."""

    rows: CSR
    weights: np.ndarray

    def __init__(self, X: CSR, weights: np.ndarray) -> None:
        self.rows, self.weights = X, weights

    def queries(self, X: Any) -> Vectors:
        X = like_rows(X, self.rows)
        return Vectors(X, np.zeros(X.shape[0]))

    def effort(self, queries: Any) -> float:
        return float(len(queries)) * self.rows.nnz

    def take(self, queries: Any, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        few = take_rows(queries.X, slice(top, stop))
        for first in range(0, len(self), ROWS):
            some = take_rows(self.rows, slice(first, min(len(self), first + ROWS)))
            tile = np.empty((stop - top, some.shape[0]))
            sparse_mismatches(*parts_of(few), *parts_of(some), self.weights, tile, 0, stop - top)
            take_exact(tile, first, skip, *heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return values / self.weights.sum()


# ---------------------------------------------------------------------------------------------------- kernels


class Induced(Exact):
    """Examples of any kind that a kernel takes, in the kernel's feature space.

    Differences that rounding alone may make are none: equal examples are at distance 0.
    """

    alone = True  # the blocks of a kernel are computed by all cores
    kernel: Any
    points: Any
    squares: np.ndarray  # k(x, x)

    def __init__(self, examples: Any, kernel: Any) -> None:
        self.kernel, self.points = kernel, kernel.points(_in_double(examples))
        self.squares = lengths_by(kernel, self.points)

    def __len__(self) -> int:
        return len(self.points)

    def queries(self, X: Any) -> KernelQueries:
        points = self.kernel.points(_in_double(X))
        return KernelQueries(points, lengths_by(self.kernel, points))

    def effort(self, queries: Any) -> float:
        return np.inf

    def take(self, queries: KernelQueries, top: int, stop: int, skip: np.ndarray, heaps: Heaps) -> None:
        few, own = queries.points.take(slice(top, stop)), queries.squares[top:stop, None]
        for first in range(0, len(self), KERNEL_ROWS):
            rows = slice(first, first + KERNEL_ROWS)
            tile = self.kernel.block(few, self.points.take(rows) if len(self) > KERNEL_ROWS else self.points)
            lengths = own + self.squares[rows]
            tile = lengths - 2 * tile
            tile[tile < ROUNDING * lengths] = 0
            take_exact(tile, first, skip, *heaps)

    def distances(self, queries: Any, values: np.ndarray) -> np.ndarray:
        return np.sqrt(values)


class KernelQueries:
    points: Any
    squares: np.ndarray

    def __init__(self, points: Any, squares: np.ndarray) -> None:
        self.points, self.squares = points, squares

    def __len__(self) -> int:
        return len(self.points)


def lengths_by(kernel: Any, points: Any) -> np.ndarray:
    """k(x, x) of each example."""
    with np.errstate(over="ignore"):
        found = np.asarray(kernel.diagonal(points), np.float64)
    if not np.isfinite(found).all():
        raise kernel.too_large(np.dtype(np.float64), f"row {int(np.argmin(np.isfinite(found)))}")
    return found


def _in_double(X: Any) -> Any:
    """Rows of numbers in double precision: the difference of kernel values has fewer places than they have."""
    if isinstance(X, CSR):
        return with_values(X, X.data.astype(np.float64, copy=False))
    return X.astype(np.float64, copy=False) if isinstance(X, np.ndarray) and X.dtype == np.float32 else X
