"""Random kitchen sinks: a kernel as an inner product of a few random features (Rahimi and Recht 2007, 2008).

phi(x) = sqrt(2/D) [cos(w_1.x), ..., cos(w_D/2.x), sin(w_1.x), ..., sin(w_D/2.x)], so that
<phi(x), phi(z)> = the mean of cos(w.(x - z)) over the frequencies w, whose mean is the kernel.

Cosine and sine of one frequency, and not one cosine of w.x plus a random phase for each of twice as many frequencies:
for the Gaussian kernel the variance is lower at every distance (Sutherland and Schneider 2015), phi(x) has length 1
exactly as k(x, x) = 1 asks, and the matrix product, which is most of the work, is half as large. Polynomial kernels,
which no waves make, are sketched.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.compiler import compiled
from onlearn.dual.learner import OwnsKernel, own
from onlearn.engine.csr import as_rows
from onlearn.engine.rows import Dense
from onlearn.estimators import transformer
from onlearn.threads import cores, over_rows

# ----------------------------------------------------------------------------------------------------
# Random frequencies whose waves make a kernel: by Bochner's theorem k(x - z) = E[cos(w.(x - z))].
#
# A frequency w is a column. It is kept in turns (w / 2 pi), which is what ``waves`` takes.
#
# - Gaussian, exp(-gamma |x - z|^2): w normal with variance 2 gamma (Rahimi and Recht 2007).
# - The same, orthogonal: directions at right angles to each other, lengths as before (Yu et al. 2016). Each w by itself
#   has the same distribution, so the mean is the same; but they no longer crowd by chance, so the variance is lower.
# - Laplacian, exp(-gamma |x - z|_1): the coordinates of w are Cauchy with scale gamma. That is a product over the
#   coordinates, not a function of the direction alone, so there is no orthogonal form of it.


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


# ----------------------------------------------------------------------------------------------------
# Cosine and sine of many angles at once, in place, on all cores.
#
# Angles are in turns, not radians: then taking away whole turns is one exact subtraction, and what is left,
# f in [-1/2, 1/2], is folded to a quarter turn, where sin(2 pi w) = w P(w^2) with a short polynomial P (Chebyshev
# interpolation; 5 coefficients for single precision, 8 for double). No branch and no table, so it compiles to vectors.
# Errors are a few units in the last place: below 3e-7 in single, 1e-15 in double precision, of the angle as given.


COST = 8  # an angle is worth about that many multiplications


@compiled
def single_waves(out: Any, scale: Any, start: Any, stop: Any) -> None:
    """The first half of each row holds angles: it becomes their cosines, the second half their sines, all scaled."""
    half, quarter = np.float32(0.5), np.float32(0.25)
    c0, c1, c2 = np.float32(6.283185280154407), np.float32(-41.34168061334652), np.float32(81.60247636892518)
    c3, c4 = np.float32(-76.58117264427878), np.float32(39.759827085319486)
    pairs = np.uint64(out.shape[1]) >> np.uint64(1)
    for i in range(np.uint64(start), np.uint64(stop)):
        first, second = out[i, :pairs], out[i, pairs:]
        for j in range(pairs):
            f = first[j] - np.floor(first[j] + half)
            w = quarter - abs(f)
            u = w * w
            first[j] = scale * w * (c0 + u * (c1 + u * (c2 + u * (c3 + u * c4))))
            w = np.copysign(quarter - abs(w), f)
            u = w * w
            second[j] = scale * w * (c0 + u * (c1 + u * (c2 + u * (c3 + u * c4))))


@compiled
def double_waves(out: Any, scale: Any, start: Any, stop: Any) -> None:
    """The same in double precision."""
    c0, c1, c2, c3 = 6.283185307179585, -41.341702240398284, 81.60524927557977, -76.70585968963005
    c4, c5, c6, c7 = 42.05868995403576, -15.09450614307443, 3.817365663638809, -0.6925068490115035
    pairs = np.uint64(out.shape[1]) >> np.uint64(1)
    for i in range(np.uint64(start), np.uint64(stop)):
        first, second = out[i, :pairs], out[i, pairs:]
        for j in range(pairs):
            f = first[j] - np.floor(first[j] + 0.5)
            w = 0.25 - abs(f)
            u = w * w
            first[j] = scale * w * (c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * (c5 + u * (c6 + u * c7)))))))
            w = np.copysign(0.25 - abs(w), f)
            u = w * w
            second[j] = scale * w * (c0 + u * (c1 + u * (c2 + u * (c3 + u * (c4 + u * (c5 + u * (c6 + u * c7)))))))


def to_waves(out: np.ndarray, scale: float) -> None:
    """Turn [angles, anything] into [scale cos, scale sin], where an angle of 1 is a whole turn; angles are finite."""
    loop = single_waves if out.dtype == np.float32 else double_waves
    over_rows(lambda *part: loop(out, out.dtype.type(scale), *part), len(out), COST * out.size)


# ----------------------------------------------------------------------------------------------------
# TensorSketch: features of a polynomial kernel by convolution of hashed rows (Pham and Pagh 2013).
#
# (gamma x.z + c)^p is the inner product of the p-fold tensor powers of [sqrt(gamma) x, sqrt(c)]. A count sketch hashes
# the coordinates of a row to D columns with signs; that of a tensor product is the convolution of the factors'
# sketches,
# so p transforms, a product and a transform back make the sketch of the power, in O(p (d + D log D)) instead of d^p.
# The inner product of two sketches has the kernel as its mean.


def draw_sketch(width: int, columns: int, degree: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """For each factor and coordinate (the last one is the constant) a column and a sign."""
    shape = (degree, width + 1)
    return rng.integers(columns, size=shape, dtype=np.int64), rng.choice(np.array([-1.0, 1.0]), size=shape)


@compiled
def sketch_dense(data: Any, width: Any, places: Any, factors: Any, out: Any, start: Any, stop: Any) -> None:
    """out[i] = the count sketch of row i, whose last coordinate is the constant one."""
    d = np.uint64(width)
    for i in range(np.uint64(start), np.uint64(stop)):
        line = out[i]
        line[:] = 0
        line[np.uint64(places[d])] = factors[d]
        for j in range(d):
            line[np.uint64(places[j])] += factors[j] * data[i * d + j]


@compiled
def sketch_sparse(data: Any, indices: Any, indptr: Any, places: Any, factors: Any, out: Any, start: Any,
                  stop: Any) -> None:  # fmt: skip
    """The same for sparse rows."""
    last = np.uint64(len(places) - 1)
    for i in range(np.uint64(start), np.uint64(stop)):
        line = out[i]
        line[:] = 0
        line[np.uint64(places[last])] = factors[last]
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[p])
            line[np.uint64(places[j])] += factors[j] * data[p]


def count_sketch(X: Any, places: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """out = the count sketch of [X, 1], on all cores."""
    rows: Any = as_rows(X, 0.0)
    if rows is None:
        rows = as_rows(np.ascontiguousarray(X), 0.0)

    def work(start: int, stop: int) -> None:
        if isinstance(rows, Dense):
            sketch_dense(rows.data, rows.width, places, factors, out, start, stop)
        else:
            sketch_sparse(rows.data, rows.indices, rows.indptr, places, factors, out, start, stop)

    over_rows(work, len(out), out.size + len(rows.data))


def power(X: Any, places: np.ndarray, signs: np.ndarray, gamma: float, constant: float, columns: int) -> np.ndarray:
    """The sketch of the rows' tensor powers."""
    number = X.dtype.type
    out = np.empty((X.shape[0], columns), X.dtype)
    factors = signs * np.sqrt(gamma)
    factors[:, -1] = signs[:, -1] * np.sqrt(constant)
    factors = factors.astype(number)
    workers = cores()
    for tile in transformer.tiles(X.shape[0], 4 * columns * out.itemsize):
        part, some = out[tile], X[tile]
        count_sketch(some, places[0], factors[0], part)
        if len(places) == 1:
            continue
        product = scipy.fft.rfft(part, axis=1, workers=workers)
        for k in range(1, len(places)):
            count_sketch(some, places[k], factors[k], part)
            product *= scipy.fft.rfft(part, axis=1, workers=workers)
        part[:] = scipy.fft.irfft(product, columns, axis=1, workers=workers)
    return out


class RandomKitchenSinks(OwnsKernel, transformer.Numeric):
    """Turns rows into ``n_components`` random features whose inner products approximate a kernel.

    ``kernel``: a Gaussian, Laplacian or polynomial kernel, as an object of ``onlearn.kernels`` or as text, such as
    "gaussian(sigma=2)".
    ``orthogonal``: frequencies of a Gaussian kernel at right angles to each other, which makes the error smaller.

    The error of one kernel value is about 1/sqrt(n_components). Only the width is learned from the data.
    Fitted: ``n_components_``, the number of features that were drawn.

    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> phi = RandomKitchenSinks("gaussian(sigma=1)", n_components=20_000, random_state=0).fit_transform(X)
    >>> (phi @ phi.T).round(1)  # exp(-1) = 0.37
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    kernel_: Any  # its own parameters are what counts here
    n_components_: int

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int = 1000,
        *,
        orthogonal: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomKitchenSinks:
        """Draw the features; of the rows only their width matters."""
        return self._draw(transformer.checked_rows(self, X, reset=True))

    def partial_fit(self, X: Any, y: Any = None) -> RandomKitchenSinks:
        """The first batch draws the features; later ones are checked only."""
        fresh = not hasattr(self, "kernel_")
        X = transformer.checked_rows(self, X, reset=fresh)
        return self._draw(X) if fresh else self

    def _draw(self, X: Any) -> RandomKitchenSinks:
        kernel: Any
        kernel, count, width = (
            own(kernels.get(self.kernel)),
            transformer.whole_number(self.n_components, "n_components"),
            X.shape[1],
        )
        if kernel.name not in DRAWN:
            raise ValueError(
                f"there are no random features of {kernel}, only of {', '.join(DRAWN)} kernels: use Nystroem"
            )
        if self.orthogonal and kernel.name != "gaussian":
            raise ValueError(f"orthogonal=True is for a gaussian kernel; there is no orthogonal form of {kernel}")
        seed = transformer.drawn_seed(self.random_state)
        rng = np.random.default_rng(seed)
        if kernel.name == "polynomial":
            made = dict(zip(("places_", "signs_"), draw_sketch(width, count, kernel.degree, rng), strict=True))
        else:
            draw = orthogonal if self.orthogonal else FREQUENCIES[kernel.name]
            rate = getattr(kernel, "rate", kernel.gamma)
            made = {"frequencies_": draw(width, (count + 1) // 2, rate, rng), "phase_": rng.random(1)}
        for name in ARRAYS:
            self.__dict__.pop(name, None)
        self.__dict__.update(made)
        self.kernel_, self.n_components_, self._seed = kernel, count, seed
        self._casts: dict[Any, Any] = {}
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The rows' features."""
        check_is_fitted(self)
        X = transformer.checked_rows(self, X, reset=False)
        if self.kernel_.name == "polynomial":
            return self._sketch(X)
        W = transformer.cast(self, "W", X.dtype, lambda: self.frequencies_.astype(X.dtype))
        self._check_size(X, W)
        count, size = self.n_components_, W.shape[1]
        out = np.empty((X.shape[0], count), X.dtype)
        for tile in transformer.tiles(X.shape[0], 2 * size * out.itemsize):
            part = out[tile] if count == 2 * size else np.empty((tile.stop - tile.start, 2 * size), X.dtype)
            transformer.multiply(X[tile], W, part[:, :size])
            if count < 2 * size:  # the last frequency has no room for its sine: a random phase makes up for that
                part[:, size - 1] += X.dtype.type(self.phase_[0])
            to_waves(part, np.sqrt(2 / count))
            if count < 2 * size:
                out[tile] = part[:, :count]
        return out

    def _sketch(self, X: Any) -> np.ndarray:
        k = self.kernel_
        with np.errstate(over="ignore", invalid="ignore"):
            out = power(X, self.places_, self.signs_, k.gamma, k.coef0, self.n_components_)
        if not np.isfinite(out).all():
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise OverflowError(f"the features of row {row} are too large for {X.dtype}: scale the data")
        return out

    def _check_size(self, X: Any, W: np.ndarray) -> None:
        """Refuse rows so large that w.x could overflow: the cosine of infinity is no number."""
        values = X.data if sp.issparse(X) else X
        most = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        largest = transformer.cast(self, "most", W.dtype, lambda: np.abs(W).max(initial=0.0))
        if most * float(largest) * X.shape[1] > np.finfo(X.dtype).max / 4:
            raise OverflowError(f"X has values of size {most:g}, too large for {X.dtype}: scale the data")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        arrays = {name: getattr(self, name) for name in ARRAYS if hasattr(self, name)}
        kernel = {"kernel": repr(self.kernel_), "kernel_as_text": isinstance(self.kernel, str)}
        drawn = {"seed": self._seed, "n_components": self.n_components_}
        return {"width": transformer.pack_width(self), **kernel, **drawn}, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        transformer.unpack_width(self, facts["width"])
        self.kernel_, self._seed = kernels.get(facts["kernel"]), int(facts["seed"])
        if not facts.get("kernel_as_text", True):
            self.kernel = kernels.get(self.kernel)
        width, count = self.n_features_in_, int(facts.get("n_components", self.n_components))
        self.n_components_ = transformer.whole_number(count, "n_components")
        if self.kernel_.name == "polynomial":
            shapes: dict[str, Any] = dict.fromkeys(("places_", "signs_"), (self.kernel_.degree, width + 1))
        else:
            shapes = {"frequencies_": (width, (count + 1) // 2), "phase_": (1,)}
        for name, shape in shapes.items():
            if arrays[name].shape != shape:
                raise ValueError(f"{name} has shape {arrays[name].shape}, not {shape}")
            setattr(self, name, arrays[name])
        places = arrays.get("places_")
        if places is not None and not ((places >= 0) & (places < count)).all():
            raise ValueError("places_ holds columns that are not there")


DRAWN = ("gaussian", "laplacian", "polynomial")
ARRAYS = ("frequencies_", "phase_", "places_", "signs_")
