"""Kernels that the user supplies: a matrix A between the columns, the kernel matrix itself, or a function.

| kernel | k(x, z) |
|---|---|
| `Bilinear(A)` | x'A z |
| `Precomputed()` | the entry of the matrix that is passed as X |
| `Callable(f)` | f(x, z) |
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from onlearn.engine.csr import CSR
from onlearn.kernels.base import Kernel, Points, View
from onlearn.kernels.family import flag, kernel
from onlearn.kernels.products import Vectors, as_csr, dense_rows, is_scipy, number_rows, numeric, squared_lengths
from onlearn.kernels.psd import asymmetry, refuse_asymmetric, tolerance
from onlearn.kernels.sparse_products import by_rows
from onlearn.kernels.tiles import Tile
from onlearn.kernels.transforms import shown

LONGEST = 36  # numbers of a matrix that a formula shows
TOLERANCE = 1e-9  # by which an eigenvalue of A may be negative, relative to the largest
SAMPLE = 200  # examples that show whether a matrix is that of examples with themselves


@kernel("bilinear")
class Bilinear(Kernel):
    """k(x, z) = x'A z, with A symmetric and positive semi-definite

    A = L L', so the kernel values are the inner products of the rows of X L, which are computed once.
    """

    A: Any

    def check(self) -> None:
        self.A = np.asarray(dense_rows(as_csr(self.A)), dtype=np.float64)
        if self.A.ndim != 2 or self.A.shape[0] != self.A.shape[1] or not self.A.size:
            raise ValueError(f"bilinear: A must be a square matrix, not of shape {self.A.shape}")
        if not np.isfinite(self.A).all():
            raise ValueError("bilinear: A holds NaN or infinity")
        refuse_asymmetric(self.A, "bilinear: A")
        values, vectors = np.linalg.eigh((self.A + self.A.T) / 2)
        size = max(abs(values[0]), abs(values[-1]))
        if values[0] < -TOLERANCE * size:
            raise ValueError(
                f"bilinear: A must be positive semi-definite, but its smallest eigenvalue is {values[0]:.3g}; "
                "see onlearn.kernels.repair"
            )
        kept = values > size * len(values) * np.finfo(np.float64).eps
        self._factor = vectors[:, kept] * np.sqrt(values[kept])

    @property
    def key(self) -> Hashable:
        return "bilinear", self.A.shape, self.A.tobytes()

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if self.key not in views:
            made = self.features(X)
            views[self.key] = Vectors(made, squared_lengths(made))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        tile.P[self.key].dots(tile.Q[self.key], out)

    def diagonal(self, P: Points) -> np.ndarray:
        return np.array(P[self.key].squares)

    def n_features(self, width: int) -> int | None:
        return int(self._factor.shape[1])

    def features(self, X: Any) -> Any:
        X = number_rows(X, self)
        if X.shape[1] != len(self.A):
            raise ValueError(f"bilinear: A is for {len(self.A)} columns, but X has {X.shape[1]}")
        factor = self._factor.astype(X.dtype)
        if not isinstance(X, CSR):
            return np.ascontiguousarray(X @ factor)
        out = np.empty((X.shape[0], factor.shape[1]), X.dtype)
        by_rows(X, factor.T, out)
        return out

    def formula(self) -> str:
        size = len(self.A)
        return f"bilinear({self.A.tolist() if self.A.size <= LONGEST else f'<{size} x {size}>'})"


class Matrix(View):
    """Rows of a kernel matrix: the whole matrix, and the numbers of the rows."""

    rows: np.ndarray
    dtype: Any

    def __init__(self, X: np.ndarray, rows: np.ndarray) -> None:
        self.X, self.rows, self.dtype = X, rows, X.dtype

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Any) -> Matrix:
        return Matrix(self.X, self.rows[rows])

    def digest(self) -> str:
        """A hash of the matrix, row by row so that nothing large is copied."""
        made = hashlib.blake2b(repr(self.X.shape).encode(), digest_size=16)
        for line in self.X:
            made.update((line + 0.0).astype(self.dtype.newbyteorder("<"), copy=False).tobytes())  # -0 is 0
        return made.hexdigest()

    def refuse_new_examples(self) -> None:
        """Refuse a matrix whose rows are not the examples of its columns: it does not hold k(x, x)."""
        self.refuse_columns_alone()
        rows, columns = self.X.shape
        some = np.linspace(0, rows - 1, min(SAMPLE, rows)).astype(np.int64)
        if rows == columns and asymmetry(self.X[np.ix_(some, some)]) <= tolerance(self.X):
            return
        found = "not symmetric" if rows == columns else f"{rows} by {columns}"
        raise ValueError(
            "precomputed: k(x, x) is known of the training examples alone, from their symmetric matrix, "
            f"but this matrix is {found}"
        )

    def refuse_columns_alone(self) -> None:
        if not self.X.size and len(self):
            raise ValueError(
                "precomputed: the kernel values of support examples with each other are not in a model file, but in "
                "the training matrix: do this before saving, or after another fit with warm_start=True"
            )

    def join(self, others: Sequence[Matrix]) -> Matrix:
        if all(other.X is self.X for other in others):
            return Matrix(self.X, np.concatenate([self.rows, *(other.rows for other in others)]))
        raise ValueError("rows of different precomputed matrices cannot be joined, since their columns may differ")


def by_columns(which: np.ndarray) -> Points:
    """Training examples known by their columns alone; that is enough to compare others with them."""
    return Points({"matrix": Matrix(np.empty((0, 0), np.float32), which)})


@kernel("precomputed")
class Precomputed(Kernel):
    """The kernel matrix itself is the data: X[i, j] = k(x_i, z_j), with z the training examples"""

    data = "matrix"
    always_psd = False
    has_lengths = False

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "matrix" not in views:
            X = dense_rows(number_rows(X, self))
            views["matrix"] = Matrix(X, np.arange(len(X)))

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["matrix"], tile.Q["matrix"]
        self.refuse_unknown(P, Q)
        out[...] = P.X[P.rows[:, None], Q.rows]

    def diagonal(self, P: Points) -> np.ndarray:
        view = P["matrix"]
        view.refuse_new_examples()
        return view.X[view.rows, view.rows].astype(np.float64)

    def refuse_unknown(self, P: Matrix, Q: Matrix) -> None:
        P.refuse_columns_alone()
        if Q.rows.max(initial=-1) >= P.X.shape[1]:
            raise ValueError(
                f"precomputed: X has {P.X.shape[1]} columns, one for each training example, but example "
                f"{Q.rows.max()} has none: the training matrix must be square"
            )


class Objects(View):
    """Examples of any type, which only the user's function looks into."""

    items: Any
    dtype: Any

    def __init__(self, items: Any, dtype: Any) -> None:
        self.items, self.dtype = items, np.dtype(dtype)

    def effort(self, other: Objects) -> float:
        return 0.0  # one thread calls the user's function, which need not be safe for several

    def __len__(self) -> int:
        return int(self.items.shape[0]) if hasattr(self.items, "shape") else len(self.items)

    def take(self, rows: Any) -> Objects:
        if isinstance(self.items, list) and not isinstance(rows, slice):
            return Objects([self.items[int(n)] for n in np.arange(len(self))[rows]], self.dtype)
        return Objects(self.items[rows], self.dtype)

    def join(self, others: Sequence[Objects]) -> Objects:
        dtype = np.result_type(self.dtype, *(other.dtype for other in others))
        parts = [self.items, *(other.items for other in others)]
        if all(isinstance(part, np.ndarray) for part in parts):
            return Objects(np.concatenate(parts), dtype)
        if any(is_scipy(part) for part in parts):
            import scipy.sparse as sp

            return Objects(sp.vstack(parts, format="csr"), dtype)
        return Objects([item for part in parts for item in part], dtype)


@kernel("callable")
class Callable(Kernel):
    """k(x, z) = f(x, z), a function of two examples; with ``pairs=False`` f takes two lists and returns a matrix"""

    f: Any
    pairs: bool = flag(True, "whether f compares two examples, or two lists of examples")

    data = "any"
    always_psd = False

    def check(self) -> None:
        if not callable(self.f):
            raise TypeError(f"callable: f must be a function of two arguments, not {self.f!r}")

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        if "objects" not in views:
            if not hasattr(X, "__len__") and not hasattr(X, "shape"):
                raise TypeError(f"{self} works on a list or an array of examples, not on {type(X).__name__}")
            if is_scipy(X):
                X = X.tocsr()
            elif isinstance(X, CSR):  # the function gets rows of a SciPy matrix
                X = X.to_scipy()
            elif hasattr(X, "iloc") or type(X).__module__.startswith(("polars", "pyarrow")):
                X = numeric(X, self)
            elif isinstance(X, tuple):
                X = list(X)
            single = getattr(X, "dtype", None) in (np.float16, np.float32)
            views["objects"] = Objects(X, np.float32 if single else np.float64)

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        P, Q = tile.P["objects"].items, tile.Q["objects"].items
        if not self.pairs:
            values = np.asarray(self.f(P, Q))
            if values.shape != out.shape or values.dtype.kind not in "biuf":
                raise ValueError(
                    f"{self} must return numbers of shape {out.shape} for so many examples by so many, "
                    f"not {values.dtype} of shape {values.shape}"
                )
            out[...] = values
        else:
            for i in range(out.shape[0]):
                for j in range(out.shape[1]):
                    out[i, j] = self.number(P[i], Q[j])
        if np.isnan(out).any():
            row, column = np.argwhere(np.isnan(out))[0]
            raise ValueError(f"{self} returned NaN for example {row} by example {column} of a block")

    def diagonal(self, P: Points) -> np.ndarray:
        items = P["objects"].items
        if self.pairs:
            return np.array([self.number(items[n], items[n]) for n in range(len(P))], dtype=np.float64)
        one = (items[n : n + 1] for n in range(len(P)))
        return np.array([np.asarray(self.f(x, x)).reshape(()) for x in one], dtype=np.float64)

    def number(self, x: Any, z: Any) -> float:
        try:
            return float(self.f(x, z))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self} must be a function of two examples that returns a number: {error}") from error

    def formula(self) -> str:
        return f"callable({shown(self.f)}{'' if self.pairs else ', pairs=False'})"
