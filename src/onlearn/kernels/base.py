"""What a kernel is: examples prepared once, and blocks of kernel values.

A kernel asks for *views* of the examples: their numbers, their packed bits, their encoded strings. ``Points`` holds
the views that a kernel needs; the parts of a composite kernel share the views they have in common. A block is computed
tile by tile (see ``tiles``): each part of the kernel fills the tile, and products x.z that several parts need are
computed once a tile. So nothing as large as the block is allocated but the block itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from onlearn.kernels.family import Parameters
from onlearn.kernels.tiles import ROWS, Path, Tile, TileArrays, check_out, in_threads, over_tiles, tile_shape

THREADED = 1 << 23  # multiplications that are worth a second thread

SCALE = "scale the data, or normalise the kernel"

Self = TypeVar("Self", bound="View")


class ExampleError(ValueError):
    """An example that a kernel cannot use. ``why`` leaves out the row, which the reader of a file names better."""

    row: int
    why: str

    def __init__(self, row: int, why: str, message: str) -> None:
        super().__init__(message)
        self.row, self.why = row, why


class View:
    """Examples in the form that one kind of kernel works on.

    A subclass defines ``dtype``, ``__len__``, ``take`` and ``join``; the rest has defaults.
    """

    dtype: Any
    thin: bool = False  # whether zeros were left out of dense rows
    lasting: bool = False  # whether products with these examples will be asked for many times

    def __len__(self) -> int:
        raise NotImplementedError

    def take(self: Self, rows: Any) -> Self:
        """Some of the examples: a slice or an array of row numbers."""
        raise NotImplementedError

    def join(self: Self, others: Sequence[Any]) -> Any:
        """The examples of several views in one, these first."""
        raise NotImplementedError

    def effort(self, other: Any) -> float:
        """The multiplications that all pairs with another view take; unless a subclass knows, many."""
        return float(len(self) * len(other) * THREADED)

    def thinned(self, surely: bool = False) -> Any:
        """The same view with dense rows that are mostly zeros made sparse; with ``surely`` all of them."""
        return self

    def lasts(self: Self) -> Self:
        """The same view, for values that will be asked for many times."""
        self.lasting = True
        return self


class Numbers(View):
    """A view of one number for each example, in double precision."""

    dtype: Any = np.dtype(np.float32)  # the kernel values have the precision of the other views

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def effort(self, other: Any) -> float:
        return float(len(self) * len(other))

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Any) -> Numbers:
        return Numbers(self.values[rows])

    def join(self, others: Sequence[Numbers]) -> Numbers:
        return Numbers(np.concatenate([self.values, *(other.values for other in others)]))


class Points(View):
    """Examples prepared for a kernel; made by ``kernel.points(X)``."""

    def __init__(self, views: dict[Hashable, Any]) -> None:
        self.views = views

    def __len__(self) -> int:
        return len(next(iter(self.views.values())))

    def __getitem__(self, name: Hashable) -> Any:
        return self.views[name]

    @property
    def dtype(self) -> np.dtype:
        """Of the kernel values: single precision if all views are, else double."""
        return np.result_type(*(view.dtype for view in self.views.values()))

    def take(self, rows: Any) -> Points:
        """Some of them: a slice (which copies nothing) or an array of row numbers."""
        return Points({name: view.take(rows) for name, view in self.views.items()})

    def join(self, others: Sequence[Points]) -> Points:
        """All of them in one, these first."""
        if not others:
            return self
        return Points({name: view.join([other.views[name] for other in others]) for name, view in self.views.items()})

    def thinned(self, surely: bool = False) -> Points:
        """The same points with dense rows that are mostly zeros made sparse; with ``surely`` all of them."""
        return Points({name: view.thinned(surely) for name, view in self.views.items()})

    @property
    def thin(self) -> bool:  # type: ignore[override]
        """Whether zeros were left out."""
        return any(view.thin for view in self.views.values())

    def lasts(self) -> Points:
        """The same points, for values that will be asked for many times."""
        for view in self.views.values():
            view.lasts()
        return self


def is_row(x: Any) -> bool:
    """Whether this is one row of numbers, as scikit-learn passes to functions that compare two examples."""
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(value, Real) for value in x)
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.size > 0 and x.dtype.kind in "biuf"


def as_number(value: Any) -> Any:
    """A number (also one in an array without axes) as a float; anything else, True and False too, unchanged."""
    value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(value, Real) or isinstance(value, bool):
        return value
    try:
        return float(value)
    except OverflowError:
        raise OverflowError(
            "a number beside a kernel must be one that a float can hold, but this one is too large"
        ) from None


class Kernel(Parameters):
    """A similarity k(x, z) that is an inner product of features of x and z.

    To make one: decorate a class of ``param`` fields with ``@kernel("name")`` and define ``prepare``, ``fill`` and
    ``diagonal``; also ``n_features`` and ``features`` if its features can be listed.
    """

    data: str = "vectors"  # what it works on: "vectors", "strings", "trees", "matrix" or "any"
    always_psd: bool = True  # whether it is an inner product for all data
    of_products: bool = False  # whether it is computed from products x.z alone
    of_bits: bool = False  # whether it is meant for columns of 0 and 1
    grows: bool = False  # whether values overflow however the data are scaled, so that it should be normalised
    has_lengths: bool = True  # whether k(x, x) is known for all examples, not only for those of training
    own_cosine: bool = False  # whether it normalises itself, by ``cosine``
    level: int = 3  # how tightly its formula binds: 0 a sum, 1 a product, 2 a power, 3 a name
    __array_ufunc__ = None  # a NumPy number times a kernel is a kernel, not an array

    # -- what a kernel defines

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        """Check X and add the views of it that this kernel needs to ``views``, unless they are there."""
        raise NotImplementedError

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        """Write the kernel values of a tile to ``out``."""
        raise NotImplementedError

    def diagonal(self, P: Points) -> np.ndarray:
        """k(x, x) of each example, in double precision."""
        raise NotImplementedError

    def n_features(self, width: int) -> int | None:
        """The number of features that ``features`` makes of rows of this width; None if there are none or unknown."""
        return None

    def features(self, X: Any) -> Any:
        """Features whose inner products are the kernel: ``features(X) @ features(Z).T == k(X, Z)``.

        Features of sparse rows are sparse rows of the same type.
        """
        raise ValueError(f"{self} has no finite list of features; use the kernel itself or an approximation of it")

    def cosine(self, tile: Tile, out: np.ndarray) -> None:
        """Write k(x, z) / sqrt(k(x, x) k(z, z)) of a tile, also where k itself overflows; if ``own_cosine``."""
        raise NotImplementedError

    def merged(self, P: Points, coefs: np.ndarray) -> Any:
        """An object whose ``scores(points)`` are sum_i coefs[i] k(x, p_i), at a cost independent of the number of p_i.

        None if the kernel has no such form. ``coefs`` has a row for each of P and a column for each output.
        """
        return None

    def halvings(self, P: Points) -> int:
        """n if all values for such examples are divided by 2^n, so that none overflows."""
        return 0

    def uses(self) -> Iterator[Path]:
        """The paths of the products x.z that ``fill`` asks for, one for each time."""
        return iter(())

    # -- what follows from the definition

    def points(self, X: Any) -> Points:
        """The examples X, checked and prepared."""
        views: dict[Hashable, Any] = {}
        self.prepare(X, views)
        return Points(views)

    def quick_points(self, X: Any) -> Points:
        """The same, prepared for very many kernel values: dense rows that are mostly zeros are made sparse."""
        points = self.points(X)
        return points.thinned() if self.of_products else points

    def block(self, P: Points, Q: Points, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """k of all pairs, ``len(P) x len(Q)``, written to ``out`` if given.

        With ``safe`` the caller knows that k(x, x) of none of the examples overflows.
        """
        dtype = np.result_type(P.dtype, Q.dtype)
        shape = len(P), len(Q)
        values = check_out(out, shape, dtype)
        arrays, users = TileArrays(dtype), Counter(self.uses())
        safe = (safe and self.always_psd) or self.bounded(P, Q, dtype)
        threads = self.worth_threads(P, Q)
        rows, columns = tile_shape(shape, threads)
        tiles = [(top, left) for left in range(0, shape[1], columns) for top in range(0, shape[0], rows)]

        def fill_tile(n: int) -> None:
            top, left = tiles[n]
            few = P.take(slice(top, top + rows)) if shape[0] > rows else P
            others = Q.take(slice(left, left + columns)) if shape[1] > columns else Q
            part = values[top : top + rows, left : left + columns]
            tile = Tile(few, others, users, arrays)
            with np.errstate(over="ignore", invalid="ignore"):  # reported below
                self.fill(tile, part)
            tile.release()
            if not safe and not np.isfinite(part).all():
                row, column = np.argwhere(~np.isfinite(part))[0]
                raise self.too_large(dtype, f"row {top + row} by row {left + column}")

        over_tiles(fill_tile, len(tiles), threads)
        return values

    def worth_threads(self, P: Points, Q: Points) -> bool:
        """Whether the values of all pairs take long enough for a second thread."""
        return max(view.effort(Q[name]) for name, view in P.views.items()) > THREADED

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        """Whether no value can overflow: |k(x, z)|^2 <= k(x, x) k(z, z) if k is an inner product."""
        if not self.always_psd or self.data != "vectors":
            return False  # k(x, x) of strings may take as long as the block
        most = np.sqrt(np.finfo(dtype).max)
        with np.errstate(over="ignore", invalid="ignore"):
            return all(np.max(self.diagonal(A), initial=0.0) < most**2 / 2 for A in (P, Q))

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """The kernel matrix of the examples X by Z (by default X); of two single rows of numbers, one number."""
        if self.data == "vectors" and Z is not None and is_row(X) and is_row(Z):
            return float(self.block(self.points([X]), self.points([Z]))[0, 0])
        P = self.points(X)
        return self.block(P, P if Z is None else self.points(Z))

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row of X, in the precision of ``k(X)``."""
        P = self.points(X)
        with np.errstate(over="ignore"):
            values = self.diagonal(P).astype(P.dtype, copy=False)
        if not np.isfinite(values).all():
            raise self.too_large(P.dtype, f"row {np.argmin(np.isfinite(values))}")
        return values

    def too_large(self, dtype: np.dtype, where: str) -> OverflowError:
        """The error for a value that overflows."""
        return OverflowError(
            f"{self} is too large for {dtype} at {where}: {self.remedy()}"
            + (", or pass float64" if dtype == np.float32 else "")
        )

    def remedy(self) -> str:
        """What the user can do where values overflow."""
        return f"normalise the kernel: normalize({self})" if self.grows else SCALE

    def eased(self) -> Kernel:
        """The same kernel with each part that ``grows`` normalised."""
        return self

    # -- the algebra

    def __add__(self, other: Any) -> Kernel:
        from onlearn.kernels.algebra import Poly, Sum

        other = as_number(other)
        if isinstance(other, float):  # a constant that is not negative is a kernel, too
            return Poly(self, [other, 1.0]) if other != 0 else self
        if not isinstance(other, Kernel):
            raise TypeError(f"only a number or a kernel can be added to a kernel, not {other!r}")
        return Sum(self, other)

    __radd__ = __add__  # called for numbers only: __add__ handles two kernels

    def __mul__(self, other: Any) -> Kernel:
        from onlearn.kernels.algebra import Product, Scale

        other = as_number(other)
        if isinstance(other, float):
            return Scale(self, other)
        if not isinstance(other, Kernel):
            raise TypeError(f"a kernel can be multiplied by a number or a kernel, not by {other!r}")
        return Product(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Kernel:
        other = as_number(other)
        if not isinstance(other, float):
            raise TypeError(f"a kernel can be divided by a number, not by {other!r}: a quotient need not be a kernel")
        if not other > 0:
            raise ValueError(f"a kernel can only be divided by a number above 0, not by {other:g}")
        return self * (1.0 / other)

    def __rtruediv__(self, other: Any) -> Kernel:
        raise TypeError(f"{other!r} cannot be divided by {self}: the inverse of a kernel need not be a kernel")

    def __sub__(self, other: Any) -> Kernel:
        raise TypeError(f"{other!r} cannot be subtracted from {self}: a difference of kernels need not be a kernel")

    def __rsub__(self, other: Any) -> Kernel:
        raise TypeError(f"{self} cannot be subtracted from {other!r}: a difference of kernels need not be a kernel")

    def __neg__(self) -> Kernel:
        raise TypeError(f"-{self} is not a kernel: k(x, x) must not be negative")

    def __pow__(self, degree: Any) -> Kernel:
        from onlearn.kernels.algebra import Power

        return Power(self, degree)


# ----------------------------------------------------------------------------------------------------
# Kernels that compiled code computes pair by pair, such as those of strings and trees.
#
# Tiles gain nothing there, so ``fill`` gets the whole block. Where both sides are the same points, it may compute each
# pair once.


MULTIPLICATIONS = 16  # a nanosecond, to express a cost as ``in_threads`` expects it
DECAY = "choose a smaller decay"


def share(work: Callable[[int, int], Any], rows: int, nanoseconds: float) -> None:
    """Call ``work(start, stop)`` until all rows are done, in threads if it takes long enough."""
    in_threads(work, rows, int(MULTIPLICATIONS * nanoseconds))


class Pairwise(Kernel):
    """A kernel of strings or trees, in double precision."""

    def block(self, P: Points, Q: Points, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """As for other kernels. The values are always checked, so ``safe`` saves nothing."""
        values = check_out(out, (len(P), len(Q)), np.dtype(np.float64))
        self.fill(Tile(P, Q, Counter(), TileArrays(values.dtype)), values)
        for top in range(0, len(P), ROWS):
            finite = np.isfinite(values[top : top + ROWS])
            if not finite.all():
                row, column = np.argwhere(~finite)[0]
                raise self.too_large(values.dtype, f"row {top + row} by row {column}")
        return values

    def diag(self, X: Any) -> np.ndarray:
        values = self.diagonal(self.points(X))
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise self.too_large(values.dtype, f"row {row} by row {row}")
        return values

    def remedy(self) -> str:
        return DECAY

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        return False  # in a composite kernel, checking the values takes less time than the diagonal


def listed(X: Any, who: str, what: str) -> list[Any]:
    """The examples as a list; one string is not a list of characters, and a table not one of column names."""
    if len(getattr(X, "shape", ())) == 2 and X.shape[1] == 1:  # a table of one column is that column
        X = _first_column(X)
    if isinstance(X, (str, bytes, bytearray, Mapping, Set)) or not isinstance(X, Iterable):
        raise TypeError(f"{who}: X must be a list of {what}, not {shown(X)}")
    shape = getattr(X, "shape", (0,))
    if len(shape) != 1:
        raise TypeError(f"{who}: X must be a flat list of {what}, or one column of a table, but its shape is {shape}")
    return X.to_pylist() if hasattr(X, "to_pylist") else list(X)


def _first_column(table: Any) -> Any:
    """The first column of a table of pandas, PyArrow, polars or NumPy."""
    if hasattr(table, "iloc"):
        return table.iloc[:, 0]
    return table.column(0) if hasattr(table, "column_names") else table[:, 0]


def shown(value: Any) -> str:
    """A value in an error message."""
    if value is None:
        return "None"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
