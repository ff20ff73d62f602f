"""Blocks of kernel values, computed tile by tile on all cores.

A tile is a few examples by a few others, small enough for its values to stay in the processor's cache while each part
of a kernel fills it. One thread computes a tile from the products x.z to the kernel values. Meanwhile the BLAS is kept
to one thread: its own threads would wait for the next product in a busy loop and take the processor from the work in
between.

A *pass* is a compiled loop that turns the products in a tile into kernel values, in place. It gets the tile as flat
memory with the distance from row to row: only then the compiler knows that the numbers of a row are adjacent, and uses
vector instructions. ``exponential`` is written out for the same reason: the mathematical library would be called for
each number.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onlearn.compiler import REORDER, compiled, overloaded, types
from onlearn.threads import cores, over_pieces, over_rows

if TYPE_CHECKING:
    from onlearn.kernels.base import Points

Path = tuple[Hashable, ...]  # the inner points (see ``compose``) of a product; () are the points themselves

ROWS, COLUMNS = 512, 1024  # of a tile: large enough for the BLAS to run at full speed, small enough for the cache
FEWEST = 64  # rows of a tile that is cut so that every thread has one
WORTHWHILE = 1 << 21  # multiplications below which a second thread costs more than it saves

FUSE = {"contract"}  # a product and a sum in one step, nothing else: ``exponential`` relies on the order of its sums

reordered = compiled(fastmath=REORDER)  # sums may be reordered, for vector instructions
fused = compiled(fastmath=FUSE)


class TileArrays:
    """Arrays of the size of a tile, reused from tile to tile."""

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.free: list[np.ndarray] = []

    def borrow(self, shape: tuple[int, int]) -> np.ndarray:
        size = shape[0] * shape[1]
        try:
            flat = self.free.pop()  # one step, since several threads borrow
        except IndexError:
            flat = np.empty(size, self.dtype)
        return (flat if flat.size >= size else np.empty(size, self.dtype))[:size].reshape(shape)

    def give_back(self, array: np.ndarray) -> None:
        self.free.append(array.reshape(-1))


class Tile:
    """A few examples by a few others, and the products x.z that the parts of a kernel share while they fill it.

    ``users`` counts how often the kernel asks for the products of each path.
    """

    users: Counter[Path]
    arrays: TileArrays
    path: Path
    left: int

    def __init__(self, P: Points, Q: Points, users: Counter[Path], arrays: TileArrays, path: Path = ()) -> None:
        self.P, self.Q, self.users, self.arrays, self.path = P, Q, users, arrays, path
        self.known: np.ndarray | None = None
        self.left = users[path]
        self.inner: dict[Hashable, Tile] = {}

    def products(self, out: np.ndarray) -> None:
        """Write x.z of all pairs to ``out``. The products are computed once, and kept if another part needs them."""
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
            self.inner[name] = Tile(self.P[name], self.Q[name], self.users, self.arrays, path)
        return self.inner[name]

    def borrow(self, like: np.ndarray) -> np.ndarray:
        return self.arrays.borrow(like.shape)

    def give_back(self, array: np.ndarray) -> None:
        self.arrays.give_back(array)

    def release(self) -> None:
        """Give back the products that no part has asked for."""
        if self.known is not None:
            self.give_back(self.known)
            self.known = None
        for tile in self.inner.values():
            tile.release()


def tile_shape(shape: tuple[int, int], threads: bool) -> tuple[int, int]:
    """Rows and columns of the tiles of a block: longer where it has few columns, wider where it has few rows.

    With ``threads``, the tiles are cut smaller until every thread has one.
    """
    rows = max(ROWS, ROWS * COLUMNS // max(1, shape[1]))
    columns = max(COLUMNS, ROWS * COLUMNS // max(1, shape[0]))
    if threads and shape[0] >= FEWEST * cores():
        rows = min(rows, max(FEWEST, -(-shape[0] // cores())))
    elif threads:
        columns = min(columns, max(FEWEST, -(-shape[1] // cores())))
    return rows, columns


def check_out(out: np.ndarray | None, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """``out`` if it fits a block, or a new array."""
    if out is None:
        return np.empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or (out.size and out.strides[1] != out.itemsize):
        raise ValueError(
            f"out must be {dtype} of shape {shape} with adjacent columns, not {out.dtype} of shape {out.shape}"
        )
    return out


# -- threads

_thread = threading.local()


def in_threads(work: Callable[[int, int], Any], rows: int, cost: int) -> None:
    """Call ``work(start, stop)`` until all rows are done, on all cores if ``cost`` (in multiplications) is worth it."""
    over_rows(work, rows, 0 if in_tile() else cost, WORTHWHILE)


def over_tiles(work: Callable[[int], Any], tiles: int, threads: bool) -> None:
    """Call ``work(n)`` for each tile, with ``threads`` on all cores, and with a BLAS of one thread."""

    def one(n: int) -> None:
        _thread.in_tile = True
        try:
            work(n)
        finally:
            _thread.in_tile = False

    if in_tile():
        for n in range(tiles):
            work(n)
        return
    with _single_blas:
        over_pieces(one, tiles, min(cores(), tiles) if threads else 1)


def in_tile() -> bool:
    """Whether the current thread computes a tile, while other threads compute others."""
    return getattr(_thread, "in_tile", False)


class SingleBlas:
    """Keeps the BLAS to one thread while any thread is inside this context.

    The number of BLAS threads is one setting of the whole process. The first thread that enters sets it to 1, the last
    one that leaves restores it; these may be different threads. Every thread needs it: products that several BLAS
    threads compute are rounded differently.
    """

    users: int

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before: list[tuple[Any, int]] = []  # the libraries that had more threads, and how many

    def __enter__(self) -> None:
        with self.lock:
            if not self.users and not self.before:
                self.before = [(library, n) for library in _blas() if (n := library.get_num_threads()) not in (None, 1)]
                for library, _ in self.before:
                    _set_threads(library, 1)
            self.users += 1

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.users -= 1
            if not self.users:
                for library, n in self.before:
                    _set_threads(library, n)
                self.before = []

    def forget_users(self) -> None:
        """After a fork: the threads inside do not exist in the child, so they neither leave nor release the lock."""
        self.lock, self.users = threading.Lock(), 0


@cache
def _blas() -> list[Any]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads from any thread: since 3.8 threadpoolctl obeys one thread only, unless it is reset."""
    reset = getattr(library, "clear_controlling_thread", None)
    if reset is not None:
        reset(force=True)
    library.set_num_threads(count)
    if reset is not None:
        reset(force=True)


_single_blas = SingleBlas()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_single_blas.forget_users)


# -- passes over a tile


def over_tile(step: Callable[..., Any], tile: np.ndarray, *arguments: Any, cost: int = 1) -> None:
    """Run a compiled pass over a tile: ``step(flat, stride, columns, start, stop, *arguments)``."""
    rows, columns = tile.shape
    if not tile.size:
        return
    stride = tile.strides[0] // tile.itemsize if rows > 1 else columns
    if stride == columns:
        flat = tile.reshape(-1)
    else:
        flat = as_strided(tile, ((rows - 1) * stride + columns,), (tile.itemsize,))

    def work(start: int, stop: int) -> None:
        step(flat, stride, columns, start, stop, *arguments)

    in_threads(work, rows, cost * tile.size)


def with_buffer(step: Callable[..., Any]) -> Callable[..., Any]:
    """A pass that gets a buffer for one row of the tile, a different one in each thread."""

    def called(flat: Any, stride: int, columns: int, start: int, stop: int, *arguments: Any) -> None:
        step(flat, stride, columns, start, stop, np.empty(columns, flat.dtype), *arguments)

    return called


@overloaded(lambda x: _single if x == types.float32 else _double, fastmath=FUSE)
def exponential(x):
    """e^x for x <= 0, in the precision of x.

    x = k log 2 + r with whole k, found by adding a number so large that its last binary place is 1. Then a polynomial
    or a fraction for e^r (the coefficients are those of the Cephes library), and k into the exponent.
    """
    return _single(x) if isinstance(x, np.float32) else _double(x)


def _single(x):
    f = np.float32
    y = max(x, f(-87.0))
    t = y * f(1.44269504) + f(12582912.0)
    k = t - f(12582912.0)
    r = (y - k * f(0.693359375)) + k * f(2.12194440e-4)
    p = f(1.9875691500e-4) * r + f(1.3981999507e-3)
    p = p * r + f(8.3334519073e-3)
    p = p * r + f(4.1665795894e-2)
    p = p * r + f(1.6666665459e-1)
    p = p * r + f(5.0000001201e-1)
    p = p * r * r + r + f(1.0)
    bits = np.int32((f(t).view(np.int32) << np.int32(23)) + f(p).view(np.int32))
    return bits.view(np.float32) if x > f(-87.0) else f(0.0)


def _double(x):
    y = max(x, -708.0)
    t = y * 1.4426950408889634 + 6755399441055744.0
    k = t - 6755399441055744.0
    r = (y - k * 6.93145751953125e-1) - k * 1.42860682030941723212e-6
    s = r * r
    above = r * ((1.26177193074810590878e-4 * s + 3.02994407707441961300e-2) * s + 9.99999999999999999910e-1)
    below = ((3.00198505138664455042e-6 * s + 2.52448340349684104192e-3) * s + 2.27265548208155028766e-1) * s + 2.0
    p = 1.0 + 2.0 * above / (below - above)
    bits = np.int64((np.float64(t).view(np.int64) << np.int64(52)) + np.float64(p).view(np.int64))
    return bits.view(np.float64) if x > -708.0 else 0.0


@fused
def gaussian_pass(flat, stride, columns, start, stop, gamma, a, b):
    """x.z -> exp(-gamma (|x|^2 + |z|^2 - 2 x.z)), with a and b the squared lengths."""
    width, zero, two = np.uint64(columns), flat.dtype.type(0), flat.dtype.type(2)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        x = a[i]
        for j in range(width):
            line[j] = exponential(-gamma * max(zero, x + b[j] - two * line[j]))


@fused
def decay_pass(flat, stride, columns, start, stop, gamma):
    """A distance d -> exp(-gamma d)."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        for j in range(width):
            line[j] = exponential(-gamma * line[j])


@with_buffer
@fused
def polynomial_pass(flat, stride, columns, start, stop, buffer, gamma, coef0, degree):
    """v -> (gamma v + coef0)^degree."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        if degree == 2:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v * v
        elif degree == 3:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v * v * v
        elif degree == 4:
            for j in range(width):
                v = gamma * line[j] + coef0
                v = v * v
                line[j] = v * v
        else:
            for j in range(width):
                v = gamma * line[j] + coef0
                line[j] = v
                buffer[j] = v
            for _ in range(degree - 1):  # row by row, so that the row stays in the nearest cache
                for j in range(width):
                    line[j] *= buffer[j]


@with_buffer
@fused
def series_pass(flat, stride, columns, start, stop, buffer, coefs):
    """v -> coefs[0] + coefs[1] v + coefs[2] v^2 + ... by Horner's rule."""
    width, last = np.uint64(columns), len(coefs) - 1
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        for j in range(width):
            buffer[j] = line[j]
            line[j] = coefs[last]
        for n in range(last - 1, -1, -1):
            c = coefs[n]
            for j in range(width):
                line[j] = line[j] * buffer[j] + c


@fused
def factors_pass(flat, stride, columns, start, stop, a, b):
    """v -> a[i] v b[j]."""
    width = np.uint64(columns)
    for i in range(start, stop):
        line = flat[np.uint64(i * stride) : np.uint64(i * stride) + width]
        x = a[i]
        for j in range(width):
            line[j] = x * line[j] * b[j]
