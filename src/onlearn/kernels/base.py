"""What a kernel is: examples prepared once, and blocks of kernel values, computed tile by tile.

A kernel asks for *views* of the examples: their numbers, their packed bits, their encoded strings. ``Points`` holds
the views that a kernel needs, so the parts of a composite kernel share those they have in common. A block is
computed in tiles that stay in the processor's cache: each part of a kernel fills the tile, and where several need the
products x.z these are computed once a tile. So nothing of the size of the block is ever made but the block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from numbers import Real
from typing import Any, Protocol

import numpy as np

from onlearn.kernels.family import Parameters
from onlearn.kernels.tiles import over_tiles
from onlearn.threads import cores

ROWS, COLUMNS = 512, 1024  # of a tile: enough for the BLAS to run at full speed, few enough to stay in the cache
LEAST = 64  # rows of a tile, so that there is one for every thread
MUCH = 1 << 23  # multiplications that are worth a second thread

SCALE = "scale the data, or normalise the kernel"

Path = tuple[Hashable, ...]  # which inner points (see ``compose``) a product belongs to; () are the points themselves


class ExampleError(ValueError):
    """An example that a kernel cannot take; ``why`` says so without the row, which files know better."""

    def __init__(self, row: int, why: str, message: str) -> None:
        super().__init__(message)
        self.row, self.why = row, why


class View(Protocol):
    """Examples as one kind of kernel wants to see them.

    It may say by ``effort(other)`` how many multiplications all pairs with another one take; else that is thought to be
    many.
    """

    @property
    def dtype(self) -> Any: ...
    def __len__(self) -> int: ...
    def take(self, rows: Any) -> Any: ...
    def join(self, others: Sequence[Any]) -> Any: ...


class Numbers:
    """A view of one number for each example, in double precision."""

    dtype = np.dtype(np.float32)  # it asks for no more than the other views have

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


class Points:
    """Examples prepared for a kernel; made by ``kernel.points(X)``."""

    def __init__(self, views: dict[Hashable, Any]) -> None:
        self.views = views

    def __len__(self) -> int:
        return len(next(iter(self.views.values())))

    def __getitem__(self, name: Hashable) -> Any:
        return self.views[name]

    @property
    def dtype(self) -> np.dtype:
        """Of the kernel values: single precision when all views are, else double."""
        return np.result_type(*(view.dtype for view in self.views.values()))

    def take(self, rows: Any) -> Points:
        """Some of them: a slice (which copies nothing) or an array of row numbers."""
        return Points({name: view.take(rows) for name, view in self.views.items()})

    def thinned(self, surely: bool = False) -> Points:
        """The same with dense rows that are mostly zeros made sparse; or with all of them, ``surely``."""
        views = self.views.items()
        return Points({n: view.thinned(surely) if hasattr(view, "thinned") else view for n, view in views})

    @property
    def thin(self) -> bool:
        """Whether zeros were left out."""
        return any(getattr(view, "thin", False) for view in self.views.values())

    def lasts(self) -> Points:
        """The same, for values that will be asked for again and again."""
        for view in self.views.values():
            if isinstance(view, Points):
                view.lasts()
            elif hasattr(view, "lasting"):
                view.lasting = True
        return self

    def join(self, others: Sequence[Points]) -> Points:
        """All of them in one, these first."""
        if not others:
            return self
        return Points({name: view.join([other.views[name] for other in others]) for name, view in self.views.items()})


class Room:
    """Arrays of the size of a tile, used again from tile to tile."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.free: list[np.ndarray] = []

    def borrow(self, shape: tuple[int, int]) -> np.ndarray:
        size = shape[0] * shape[1]
        try:
            flat = self.free.pop()  # at once, for several threads may ask
        except IndexError:
            flat = np.empty(size, self.dtype)
        return (flat if flat.size >= size else np.empty(size, self.dtype))[:size].reshape(shape)

    def give_back(self, array: np.ndarray) -> None:
        self.free.append(array.reshape(-1))


class Tile:
    """A few examples by a few others, and what the parts of a kernel share while they fill it."""

    def __init__(self, P: Points, Q: Points, users: Counter[Path], room: Room, path: Path = ()) -> None:
        self.P, self.Q, self.users, self.room, self.path = P, Q, users, room, path
        self.known: np.ndarray | None = None
        self.left = users[path]
        self.inner: dict[Hashable, Tile] = {}

    def products(self, out: np.ndarray) -> None:
        """x.z of all pairs into ``out``: computed there if nobody else will ask, else computed once and copied."""
        self.left -= 1
        if self.known is not None:
            out[...] = self.known
            if self.left <= 0:
                self.release()
            return
        self.P["vectors"].dots(self.Q["vectors"], out)
        if self.left > 0:
            self.known = self.borrow(out)
            self.known[...] = out

    def inside(self, name: Hashable) -> Tile:
        """The same tile over the inner points of that name."""
        if name not in self.inner:
            path = (*self.path, name)
            self.inner[name] = Tile(self.P[name], self.Q[name], self.users, self.room, path)
        return self.inner[name]

    def borrow(self, like: np.ndarray) -> np.ndarray:
        return self.room.borrow(like.shape)

    def give_back(self, array: np.ndarray) -> None:
        self.room.give_back(array)

    def release(self) -> None:
        """Give back whatever is still kept (a part may have found that it needs no products after all)."""
        if self.known is not None:
            self.give_back(self.known)
            self.known = None
        for tile in self.inner.values():
            tile.release()


def is_row(x: Any) -> bool:
    """Whether this is one row of numbers, as scikit-learn passes to functions that compare two examples."""
    if isinstance(x, (list, tuple)):
        return bool(x) and all(isinstance(value, Real) for value in x)
    return isinstance(x, np.ndarray) and x.ndim == 1 and x.size > 0 and x.dtype.kind in "biuf"


def as_number(value: Any) -> Any:
    """A number as a float, also one in an array without axes; all else, true and false too, as it is."""
    value = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(value, Real) or isinstance(value, bool):
        return value
    try:
        return float(value)
    except OverflowError:
        raise OverflowError("a kernel goes with a number that a float can hold, and this one is too large") from None


class Kernel(Parameters):
    """A similarity k(x, z) that is an inner product of features of x and z.

    To make one: decorate a class of ``param`` fields with ``@kernel("name")`` and give it ``prepare``, ``fill`` and
    ``diagonal``; ``n_features`` and ``features`` if its features can be written down.
    """

    data: str = "vectors"  # what it works on: "vectors", "strings", "trees", "matrix" or "any"
    always_psd: bool = True  # whether it is an inner product whatever the data
    __array_ufunc__ = None  # a NumPy number times a kernel is a kernel, not an array
    of_products: bool = False  # whether it is computed from products x.z alone
    of_bits: bool = False  # whether it is meant for columns of 0 and 1
    grows: bool = False  # whether its values are soon too large, however the data are scaled: then it is normalised
    has_lengths: bool = True  # whether k(x, x) can be had of every example, not only of those learned from
    own_cosine: bool = False  # whether it normalises itself, by ``cosine``

    # -- what a kernel defines

    def prepare(self, X: Any, views: dict[Hashable, Any]) -> None:
        """Check X and add the views of it that this kernel needs, if they are not there yet."""
        raise NotImplementedError

    def fill(self, tile: Tile, out: np.ndarray) -> None:
        """The kernel values of a tile into ``out``."""
        raise NotImplementedError

    def diagonal(self, P: Points) -> np.ndarray:
        """k(x, x) of each example, in double precision."""
        raise NotImplementedError

    def n_features(self, width: int) -> int | None:
        """How many features ``features`` makes of rows of this width; None if it cannot or that is not known."""
        return None

    def features(self, X: Any) -> Any:
        """Features whose inner products are the kernel: ``features(X) @ features(Z).T == k(X, Z)``."""
        raise ValueError(f"{self} has no finite list of features; use the kernel itself or an approximation of it")

    def cosine(self, tile: Tile, out: np.ndarray) -> None:
        """k(x, z) / sqrt(k(x, x) k(z, z)) of a tile, also where k itself is too large; if it says ``own_cosine``."""
        raise NotImplementedError

    def merged(self, P: Points, coefs: np.ndarray) -> Any:
        """Something whose ``scores(points)`` are sum_i coefs[i] k(x, p_i) at a cost that does not grow with the p_i.

        None if there is no such thing. ``coefs`` has a row for each of P and a column for each output.
        """
        return None

    def halvings(self, P: Points) -> int:
        """How many times all values with such examples are halved, so as not to be beyond all numbers."""
        return 0

    def uses(self) -> Iterator[Path]:
        """The products x.z that filling a tile asks for, once for each time."""
        return iter(())

    # -- what follows from it

    def points(self, X: Any) -> Points:
        """The examples X, checked and prepared."""
        views: dict[Hashable, Any] = {}
        self.prepare(X, views)
        return Points(views)

    def quick_points(self, X: Any) -> Points:
        """The same, made ready for very many kernel values: rows that are mostly zeros are then multiplied as such."""
        points = self.points(X)
        return points.thinned() if self.of_products else points

    def block(self, P: Points, Q: Points, out: np.ndarray | None = None, safe: bool = False) -> np.ndarray:
        """k of all pairs, ``len(P) x len(Q)``, into ``out`` if given.

        ``safe`` says that k(x, x) is not too large for any of them.
        """
        dtype = np.result_type(P.dtype, Q.dtype)
        shape = len(P), len(Q)
        if out is None:
            out = np.empty(shape, dtype)
        elif out.shape != shape or out.dtype != dtype or (out.size and out.strides[1] != out.itemsize):
            raise ValueError(
                f"out must be {dtype} of shape {shape} with adjacent columns, not {out.dtype} of shape {out.shape}"
            )
        room, users, safe = Room(dtype), Counter(self.uses()), (safe and self.always_psd) or self.bounded(P, Q, dtype)

        def work(n: int) -> None:
            top, left = tiles[n]
            few = P.take(slice(top, top + rows)) if shape[0] > rows else P
            some = Q.take(slice(left, left + columns)) if shape[1] > columns else Q
            part = out[top : top + rows, left : left + columns]
            tile = Tile(few, some, users, room)
            with np.errstate(over="ignore", invalid="ignore"):  # looked for below, and told in words
                self.fill(tile, part)
            tile.release()
            if not safe and not np.isfinite(part).all():
                row, column = np.argwhere(~np.isfinite(part))[0]
                raise self.too_large(dtype, f"row {top + row} by row {left + column}")

        much = self.much(P, Q)
        rows = max(ROWS, ROWS * COLUMNS // max(1, shape[1]))  # few columns: longer tiles
        columns = max(COLUMNS, ROWS * COLUMNS // max(1, shape[0]))  # few rows: wider ones
        if much and shape[0] >= LEAST:
            rows = min(rows, max(LEAST, -(-shape[0] // cores())))
        elif much:
            columns = min(columns, max(LEAST, -(-shape[1] // cores())))
        tiles = [(top, left) for left in range(0, shape[1], columns) for top in range(0, shape[0], rows)]
        over_tiles(work, len(tiles), much)
        return out

    def much(self, P: Points, Q: Points) -> bool:
        """Whether the values of all pairs are worth a second thread."""
        many = float(len(P) * len(Q) * MUCH)
        return max(v.effort(Q[name]) if hasattr(v, "effort") else many for name, v in P.views.items()) > MUCH

    def bounded(self, P: Points, Q: Points, dtype: np.dtype) -> bool:
        """Whether no value can be too large: |k(x, z)|^2 <= k(x, x) k(z, z) if k is an inner product."""
        if not self.always_psd or self.data != "vectors":
            return False  # of strings, k(x, x) may take as long as the block
        most = np.sqrt(np.finfo(dtype).max)
        with np.errstate(over="ignore", invalid="ignore"):
            return all(np.max(self.diagonal(A), initial=0.0) < most**2 / 2 for A in (P, Q))

    def __call__(self, X: Any, Z: Any = None) -> Any:
        """The kernel matrix of the rows of X by those of Z (or of X); of two single rows of numbers, the number."""
        if self.data == "vectors" and Z is not None and is_row(X) and is_row(Z):
            return float(self.block(self.points([X]), self.points([Z]))[0, 0])
        P = self.points(X)
        return self.block(P, P if Z is None else self.points(Z))

    def too_large(self, dtype: np.dtype, where: str) -> OverflowError:
        """What to say of a value that is too large."""
        return OverflowError(
            f"{self} is too large for {dtype} at {where}: {self.remedy()}"
            + (", or pass float64" if dtype == np.float32 else "")
        )

    def remedy(self) -> str:
        """What helps if values are too large."""
        return f"normalise the kernel: normalize({self})" if self.grows else SCALE

    def eased(self) -> Kernel:
        """The same with each part that ``grows`` normalised."""
        return self

    # -- the algebra

    def __add__(self, other: Any) -> Kernel:
        from onlearn.kernels.algebra import Poly, Sum

        other = as_number(other)
        if isinstance(other, float):  # a constant is a kernel too, if it is not negative
            return Poly(self, [other, 1.0]) if other != 0 else self
        if not isinstance(other, Kernel):
            raise TypeError(f"a number or a kernel is added to a kernel, not {other!r}")
        return Sum(self, other)

    __radd__ = __add__  # only ever called for a number: two kernels meet in __add__

    def __mul__(self, other: Any) -> Kernel:
        from onlearn.kernels.algebra import Product, Scale

        other = as_number(other)
        if isinstance(other, float):
            return Scale(self, other)
        if not isinstance(other, Kernel):
            raise TypeError(f"a kernel is multiplied by a number or by a kernel, not by {other!r}")
        return Product(self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Kernel:
        other = as_number(other)
        if not isinstance(other, float):
            raise TypeError(f"a kernel is divided by a number, not by {other!r}: a quotient need not be a kernel")
        if not other > 0:
            raise ValueError(f"a kernel is divided by a number above 0, not by {other:g}")
        return self * (1.0 / other)

    def __rtruediv__(self, other: Any) -> Kernel:
        raise TypeError(f"{other!r} cannot be divided by {self}: the inverse of a kernel need not be a kernel")

    def __sub__(self, other: Any) -> Kernel:
        raise TypeError(f"{other!r} cannot be taken off {self}: a difference of kernels need not be a kernel")

    def __rsub__(self, other: Any) -> Kernel:
        raise TypeError(f"{self} cannot be taken off {other!r}: a difference of kernels need not be a kernel")

    def __neg__(self) -> Kernel:
        raise TypeError(f"-{self} would not be a kernel: k(x, x) is never below 0")

    def __pow__(self, degree: Any) -> Kernel:
        from onlearn.kernels.algebra import Power

        return Power(self, degree)

    def diag(self, X: Any) -> np.ndarray:
        """k(x, x) of each row of X, in the precision of ``k(X)``."""
        P = self.points(X)
        with np.errstate(over="ignore"):
            values = self.diagonal(P).astype(P.dtype, copy=False)
        if not np.isfinite(values).all():
            raise self.too_large(P.dtype, f"row {np.argmin(np.isfinite(values))}")
        return values
