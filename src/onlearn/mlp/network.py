"""A feed-forward network: layers of units, and back-propagation of errors.

Layer l of L has weights W_l, one column for each of its units, and a bias b_l. For a batch of examples, a row each:

    forward      A_0 = X,   Z_l = A_{l-1} W_l + b_l,   A_l = f(Z_l) for l < L,   scores S = Z_L

    error        E = (1/n) sum_i c_i E(S_i, y_i),      c_i the weight of example i, n the rows of the batch

    backward     D_L = dE/dS                           one row of ``judge`` for each example
                 dE/dW_l = A_{l-1}^T D_l,  dE/db_l = the sum of the rows of D_l
                 D_{l-1} = (D_l W_l^T) * f'(Z_{l-1})   f' is written in terms of A = f(Z)

That is the chain rule, from the last layer to the first (Rumelhart, Hinton & Williams 1986). All weights lie in one
flat array, W_1 first, then W_2 ... and behind them b_1, b_2, ...: an optimizer walks over them without knowing of
layers, and W_1 has a row for each feature, so that a sparse example touches few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from onlearn.compiler import compiled
from onlearn.compiler.inlining import Loop, Verb

# ----------------------------------------------------------------------------------------------------
# Units: f, in place on arrays; and one number at a time, as the loop over single examples has it.


class ReLU(NamedTuple):
    """max(0, z)."""

    @staticmethod
    def activate(z: np.ndarray) -> None:
        np.maximum(z, 0, out=z)

    @staticmethod
    def times_slope(d: np.ndarray, a: np.ndarray, room: np.ndarray) -> None:
        """d *= f', which is 1 where f is above 0."""
        zero_where_off(d.reshape(-1), a.reshape(-1))


class Tanh(NamedTuple):
    """(e^z - e^-z) / (e^z + e^-z)."""

    @staticmethod
    def activate(z: np.ndarray) -> None:
        np.tanh(z, out=z)

    @staticmethod
    def times_slope(d: np.ndarray, a: np.ndarray, room: np.ndarray) -> None:
        """d *= 1 - a^2."""
        np.multiply(a, a, out=room)
        np.subtract(1, room, out=room)
        np.multiply(d, room, out=d)


class Logistic(NamedTuple):
    """1 / (1 + e^-z) = (1 + tanh(z/2)) / 2, which overflows nowhere."""

    @staticmethod
    def activate(z: np.ndarray) -> None:
        np.multiply(z, 0.5, out=z)
        np.tanh(z, out=z)
        np.multiply(z, 0.5, out=z)
        np.add(z, 0.5, out=z)

    @staticmethod
    def times_slope(d: np.ndarray, a: np.ndarray, room: np.ndarray) -> None:
        """d *= a (1 - a)."""
        np.subtract(1, a, out=room)
        np.multiply(room, a, out=room)
        np.multiply(d, room, out=d)


UNITS: dict[str, Any] = {"relu": ReLU(), "tanh": Tanh(), "logistic": Logistic()}


@compiled
def zero_where_off(d, a):
    zero = d.dtype.type(0)
    for k in range(len(d)):
        d[k] = d[k] if a[k] > zero else zero


@Verb
def fire(unit, z):
    """f(z)."""


@Verb
def slope(unit, a):
    """f' where f is a."""


@fire.on(ReLU)
def _(unit, z):
    return z if z > 0 else z * 0  # keeps NaN, by which a network that diverges is noticed


@slope.on(ReLU)
def _(unit, a):
    return 1 if a > 0 else 0


@fire.on(Tanh)
def _(unit, z):
    return np.tanh(z)


@slope.on(Tanh)
def _(unit, a):
    return 1 - a * a


@fire.on(Logistic)
def _(unit, z):
    return 0.5 + 0.5 * np.tanh(0.5 * z)


@slope.on(Logistic)
def _(unit, a):
    return a * (1 - a)


# ----------------------------------------------------------------------------------------------------
# Losses. Targets are numbers in regression, else the number of the class; t_k is 1 for it, else 0 (with one output of
# two classes, t is the number of the class).


class Squared(NamedTuple):
    """E = (s - y)^2 / 2, of linear outputs."""


class SquaredLogistic(NamedTuple):
    """E = sum_k (o_k - t_k)^2 / 2 with o_k = 1 / (1 + e^-s_k): the textbook's network for classes."""


class CrossEntropy(NamedTuple):
    """E = -sum_k t_k ln o_k + (1 - t_k) ln(1 - o_k) with o_k = 1 / (1 + e^-s_k)."""


class Softmax(NamedTuple):
    """E = -ln o_y with o_k = e^s_k / sum_j e^s_j."""


REGRESSION = Squared()
LOSSES: dict[str, Any] = {"logistic": CrossEntropy(), "softmax": Softmax(), "squared": SquaredLogistic()}


@Verb
def judge(loss, s, at, count, y, c):
    """The error E of one example with the scores at s[at:at + count], which become c dE/ds."""


@judge.on(Squared)
def _(loss, s, at, count, y, c):
    error = s[at] - y
    s[at] = c * error
    return 0.5 * error * error


@judge.on(CrossEntropy)
def _(loss, s, at, count, y, c):
    error = 0.0
    for k in range(count):
        t = y if count == 1 else 1.0 if k == y else 0.0
        z = np.float64(s[at + k])
        error += np.log(1.0 + np.exp(-abs(z))) + max(z, 0.0) - t * z
        s[at + k] = c * (0.5 + 0.5 * np.tanh(0.5 * z) - t)  # dE/ds = o - t
    return error


@judge.on(SquaredLogistic)
def _(loss, s, at, count, y, c):
    error = 0.0
    for k in range(count):
        t = y if count == 1 else 1.0 if k == y else 0.0
        o = 0.5 + 0.5 * np.tanh(0.5 * np.float64(s[at + k]))
        error += 0.5 * (o - t) * (o - t)
        s[at + k] = c * (o - t) * o * (1.0 - o)  # dE/ds = dE/do do/ds
    return error


@judge.on(Softmax)
def _(loss, s, at, count, y, c):
    top, total = np.float64(s[at]), 0.0
    for k in range(count):
        top = max(top, np.float64(s[at + k]))
    gold = np.float64(s[at + np.int64(y)]) - top
    for k in range(count):
        s[at + k] = np.exp(np.float64(s[at + k]) - top)
        total += s[at + k]
    for k in range(count):
        s[at + k] = c * (s[at + k] / total - (1.0 if k == y else 0.0))  # dE/ds_k = o_k - t_k
    return np.log(total) - gold


@Verb
def is_mistake(loss, s, at, count, y):
    """Whether another class than the right one has the largest score; on a tie the first class has."""


@is_mistake.on(Squared)
def _(loss, s, at, count, y):
    return False


@is_mistake.on(object)
def _(loss, s, at, count, y):
    best = 0
    for k in range(1, count):
        best = k if s[at + k] > s[at + best] else best
    said = best if count > 1 else 1 if s[at] > 0 else 0
    return said != y


@Loop
def judge_rows(loss, s, count, y, weight, tally):
    """``judge`` for all rows of a batch; adds their weighted errors, their mistakes and their number to the tally."""
    rows = len(y)
    for i in range(rows):
        if weight[i] != 0.0:
            tally[MISTAKES] += is_mistake(loss, s, i * count, count, y[i])
            tally[ERROR] += weight[i] * judge(loss, s, i * count, count, y[i], weight[i] / rows)
            tally[SEEN] += 1.0
        else:
            for k in range(count):
                s[i * count + k] = 0


ERROR, MISTAKES, SEEN = range(3)  # places in a tally


# ----------------------------------------------------------------------------------------------------
# The network.


class Layout:
    """Where the weights of layers of the given sizes lie in one flat array."""

    sizes: tuple[int, ...]
    starts: np.ndarray
    layers: int
    size: int
    biases: int  # where they begin

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(int(n) for n in sizes)
        pairs = list(zip(self.sizes, self.sizes[1:]))
        ends = np.cumsum([0, *(n * m for n, m in pairs), *self.sizes[1:]])
        self.starts = ends[:-1].astype(np.int64)  # of W_1 ... W_L, then of b_1 ... b_L
        self.layers, self.size, self.biases = len(pairs), int(ends[-1]), int(ends[len(pairs)])

    def views(self, flat: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The weights W_l and biases b_l in a flat array."""
        pieces = np.split(flat, self.starts[1:])
        shapes = zip(pieces[: self.layers], self.sizes, self.sizes[1:])
        return [piece.reshape(n, m) for piece, n, m in shapes], pieces[self.layers :]


class Workspace:
    """The numbers of one batch: everything that forward and backward write to, made once."""

    rows: int
    x: np.ndarray
    a: list[np.ndarray]
    d: list[np.ndarray]
    room: list[np.ndarray]
    ones: np.ndarray

    def __init__(self, layout: Layout, rows: int, dtype: Any, first: bool = True) -> None:
        self.rows = rows
        self.x = np.empty((rows, layout.sizes[0]) if first else (0, 0), dtype)  # for a dense batch
        self.a = [np.empty((rows, n), dtype) for n in layout.sizes[1:]]  # A_1 ... A_{L-1}, and S
        self.d = [np.empty((rows, n), dtype) for n in layout.sizes[1:-1]]
        self.room = [np.empty((rows, n), dtype) for n in layout.sizes[1:-1]]
        self.ones = np.ones(rows, dtype)

    def part(self, rows: int) -> Workspace:
        """The same for fewer rows."""
        made = Workspace.__new__(Workspace)
        made.rows, made.x, made.ones = rows, self.x[:rows], self.ones[:rows]
        made.a, made.d, made.room = ([one[:rows] for one in some] for some in (self.a, self.d, self.room))
        return made


def forward(unit: Any, W: list[np.ndarray], b: list[np.ndarray], x: np.ndarray | None, space: Workspace) -> np.ndarray:
    """The scores of a batch. A_1 ... A_{L-1} stay in the workspace; with no ``x``, Z_1 is there already."""
    last = len(W) - 1
    for l in range(len(W)):  # noqa: E741  the textbook's letter
        z = space.a[l]
        if l > 0 or x is not None:
            before: Any = space.a[l - 1] if l else x
            np.dot(before, W[l], out=z)
        np.add(z, b[l], out=z)
        if l < last:
            unit.activate(z)
    return space.a[last]


def backward(unit: Any, W: list[np.ndarray], x: np.ndarray | None, space: Workspace, dW: list[np.ndarray],
             db: list[np.ndarray]) -> np.ndarray:  # fmt: skip
    """The gradients, from dE/dS, which stands in the scores' place; returns D_1. With no ``x``, dW_1 is left out."""
    d = space.a[-1]
    for l in range(len(W) - 1, -1, -1):  # noqa: E741
        before = space.a[l - 1] if l else x
        if before is not None:
            np.dot(before.T, d, out=dW[l])
        np.dot(space.ones, d, out=db[l])
        if l:
            np.dot(d, W[l].T, out=space.d[l - 1])
            unit.times_slope(space.d[l - 1], space.a[l - 1], space.room[l - 1])
            d = space.d[l - 1]
    return d


# ----------------------------------------------------------------------------------------------------
# The weights to begin with: uniform within +-sqrt(6 / (units before + units behind)) (Glorot & Bengio 2010), for ReLU
# within +-sqrt(6 / units before) (He et al. 2015). Weight k of a layer depends on the seed, the layer and k alone.

DRAWN = 1 << 16  # numbers at a time


def draw(out: np.ndarray, seed: Any, bound: float) -> None:
    """Fill with numbers from -bound to bound, by splitmix64 (Steele, Lea & Flood 2014)."""
    for start in range(0, len(out), DRAWN):
        some = out[start : start + DRAWN]
        x = np.arange(start + 1, start + 1 + len(some), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
            seed
        )
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        some[...] = bound * ((x >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0)


def bound_of(unit: Any, before: int, behind: int, hidden: bool) -> float:
    """The largest weight to begin with."""
    before = max(before, 1)
    return float(np.sqrt(6 / before if hidden and isinstance(unit, ReLU) else 6 / (before + behind)))


def initialise(unit: Any, layout: Layout, w: np.ndarray, seed: int) -> None:
    """Draw the weights of all layers; biases are zero."""
    W, _ = layout.views(w)
    w[layout.biases :] = 0
    for l, one in enumerate(W):  # noqa: E741
        words = np.random.SeedSequence([seed, l]).generate_state(1, np.uint64)
        before, behind = one.shape
        draw(one.reshape(-1), words[0], bound_of(unit, before, behind, hidden=l + 1 < layout.layers))
