"""Random kitchen sinks: a kernel as the inner product of a few random features (Rahimi and Recht 2007, 2008).

phi(x) = sqrt(2/D) [cos(w_1.x), ..., cos(w_D/2.x), sin(w_1.x), ..., sin(w_D/2.x)], so <phi(x), phi(z)> is the mean of
cos(w.(x - z)) over the random frequencies w, whose expectation is the kernel (Bochner's theorem).

Each frequency gives a cosine and a sine. The alternative is one cosine of w.x plus a random phase, for twice as many
frequencies. For the Gaussian kernel the variance of the pair is lower at every distance (Sutherland and Schneider
2015), phi(x) has length 1 exactly, like k(x, x) = 1, and the matrix product, which is most of the work, is half as
large.

Polynomial kernels are not shift-invariant; they are sketched (TensorSketch, Pham and Pagh 2013).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.fft
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.compiler import compiled
from onlearn.engine.csr import as_rows, is_sparse
from onlearn.engine.rows import Dense
from onlearn.estimators.base import KERNEL
from onlearn.estimators.transformer import WIDTH, NumericTransformer, check_whole_number, draw_seed, multiply, tiles
from onlearn.kernels.formula import copied
from onlearn.model_schema import SEED, TEXT, TRUTH, Arrays, OrMissing, Record, check_facts, whole
from onlearn.threads import cores, over_rows

TURN = 2 * np.pi
COST = 8  # multiplications that one angle is worth, about
KERNELS = ("gaussian", "laplacian", "polynomial")
ARRAYS = ("frequencies_", "phase_", "places_", "signs_")

# Frequencies. A frequency w is a column, in turns (w / 2 pi), which is what ``to_waves`` takes.


def gaussian(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """For exp(-gamma |x - z|^2): w is normal with variance 2 gamma (Rahimi and Recht 2007)."""
    return rng.standard_normal((width, count)) * (np.sqrt(2 * gamma) / TURN)


def orthogonal(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """For the Gaussian kernel: orthogonal directions, with the lengths of normal vectors (Yu et al. 2016).

    Each w has the same distribution as in ``gaussian``, so the mean is the same; the directions of up to ``width``
    frequencies are orthogonal, so the variance is lower.
    """
    W = np.empty((width, count))
    for start in range(0, count, width):
        size = min(width, count - start)
        Q, R = np.linalg.qr(rng.standard_normal((width, size)))
        signs = np.where(np.diagonal(R) < 0, -1.0, 1.0)  # without them the directions are not uniform
        lengths = np.sqrt(rng.chisquare(width, size))
        W[:, start : start + size] = Q * (signs * lengths)
    W *= np.sqrt(2 * gamma) / TURN
    return W


def laplacian(width: int, count: int, gamma: float, rng: np.random.Generator) -> np.ndarray:
    """For exp(-gamma |x - z|_1): the coordinates of w are Cauchy with scale gamma (Rahimi and Recht 2007).

    The density is a product over the coordinates, not a function of the length alone, so there is no orthogonal form.
    """
    return rng.standard_cauchy((width, count)) * (gamma / TURN)


FREQUENCIES = {"gaussian": gaussian, "laplacian": laplacian}  # by the name of the kernel


# Cosine and sine of many angles at once, in place.
#
# Angles are in turns, not radians: then removing whole turns is one exact subtraction, and the rest, f in [-1/2, 1/2],
# is folded to a quarter turn, where sin(2 pi w) = w P(w^2) with a short polynomial P (Chebyshev interpolation; 5
# coefficients for single precision, 8 for double). There is no branch and no table, so the loop compiles to vectors.
# Errors are a few units in the last place: below 3e-7 in single, 1e-15 in double precision.


@compiled
def single_waves(out: Any, scale: Any, start: Any, stop: Any) -> None:
    """Replace the angles in the first half of each row by their cosines, and the second half by their sines, scaled."""
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
    """The same as ``single_waves`` in double precision."""
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
    """Replace [angles, anything] by [scale cos, scale sin], on all cores; a (finite) angle of 1 is a whole turn."""
    loop = single_waves if out.dtype == np.float32 else double_waves
    over_rows(lambda *part: loop(out, out.dtype.type(scale), *part), len(out), COST * out.size)


# TensorSketch: features of a polynomial kernel by convolution of hashed rows.
#
# (gamma x.z + c)^p is the inner product of the p-fold tensor powers of [sqrt(gamma) x, sqrt(c)]. A count sketch hashes
# the coordinates of a row to D columns with signs; that of a tensor product is the convolution of the sketches of its
# factors. So p Fourier transforms, a product and an inverse transform make the sketch of the power, in
# O(p (d + D log D)) instead of d^p. The expected inner product of two sketches is the kernel.


def draw_sketch(width: int, columns: int, degree: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A column and a sign for each factor of the power and each coordinate, of which the last one is the constant."""
    shape = (degree, width + 1)
    return rng.integers(columns, size=shape, dtype=np.int64), rng.choice(np.array([-1.0, 1.0]), size=shape)


@compiled
def sketch_dense(data: Any, width: Any, places: Any, factors: Any, out: Any, start: Any, stop: Any) -> None:
    """Set out[i] to the count sketch of row i, whose last coordinate is the constant one."""
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
    """The same as ``sketch_dense`` for sparse rows."""
    last = np.uint64(len(places) - 1)
    for i in range(np.uint64(start), np.uint64(stop)):
        line = out[i]
        line[:] = 0
        line[np.uint64(places[last])] = factors[last]
        for p in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j = np.uint64(indices[p])
            line[np.uint64(places[j])] += factors[j] * data[p]


def count_sketch(X: Any, places: np.ndarray, factors: np.ndarray, out: np.ndarray) -> None:
    """Set out to the count sketch of [X, 1], on all cores."""
    rows: Any = as_rows(X, 0.0)
    if rows is None:
        rows = as_rows(np.ascontiguousarray(X), 0.0)

    def work(start: int, stop: int) -> None:
        if isinstance(rows, Dense):
            sketch_dense(rows.data, rows.width, places, factors, out, start, stop)
        else:
            sketch_sparse(rows.data, rows.indices, rows.indptr, places, factors, out, start, stop)

    over_rows(work, len(out), out.size + len(rows.data))


def sketch_power(
    X: Any, places: np.ndarray, signs: np.ndarray, gamma: float, constant: float, columns: int
) -> np.ndarray:
    """The sketch of the rows' tensor powers."""
    number = X.dtype.type
    out = np.empty((X.shape[0], columns), X.dtype)
    factors = signs * np.sqrt(gamma)
    factors[:, -1] = signs[:, -1] * np.sqrt(constant)
    factors = factors.astype(number)
    workers = cores()
    for tile in tiles(X.shape[0], 4 * columns * out.itemsize):
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


class RandomKitchenSinks(NumericTransformer):
    """Transform rows to ``n_components`` random features whose inner products approximate a kernel.

    ``kernel``: a Gaussian, Laplacian or polynomial kernel, as an object of ``onlearn.kernels`` or as text, such as
    "gaussian(sigma=2)".
    ``orthogonal``: draw orthogonal frequencies of a Gaussian kernel, which makes the error smaller.

    The error of one kernel value is about 1/sqrt(n_components). ``fit`` uses only the width of the data.
    Fitted: ``n_components_``, the number of features drawn.

    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> phi = RandomKitchenSinks("gaussian(sigma=1)", n_components=20_000, random_state=0).fit_transform(X)
    >>> (phi @ phi.T).round(1)  # exp(-1) = 0.37
    array([[1. , 0.4],
           [0.4, 1. ]])
    """

    _families: ClassVar[dict[str, Any]] = KERNEL
    kernel_: Any
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
        """Draw the features; only the width of the rows matters."""
        return self._draw(self._check_rows(X, reset=True))

    def partial_fit(self, X: Any, y: Any = None) -> RandomKitchenSinks:
        """Draw the features at the first batch; only check later ones."""
        fresh = not hasattr(self, "kernel_")
        X = self._check_rows(X, reset=fresh)
        return self._draw(X) if fresh else self

    def _draw(self, X: Any) -> RandomKitchenSinks:
        kernel: Any = copied(self.kernel)
        count, width = check_whole_number(self.n_components, "n_components"), X.shape[1]
        if kernel.name not in KERNELS:
            raise ValueError(
                f"there are no random features of {kernel}, only of {', '.join(KERNELS)} kernels: use Nystroem"
            )
        if self.orthogonal and kernel.name != "gaussian":
            raise ValueError(f"orthogonal=True is for a gaussian kernel; there is no orthogonal form of {kernel}")
        seed = draw_seed(self.random_state)
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
        self._clear_casts()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The features of the rows."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        if self.kernel_.name == "polynomial":
            return self._sketch(X)
        W = self._cast("W", X.dtype, lambda: self.frequencies_.astype(X.dtype))
        self._check_magnitude(X, W)
        count, size = self.n_components_, W.shape[1]
        out = np.empty((X.shape[0], count), X.dtype)
        for tile in tiles(X.shape[0], 2 * size * out.itemsize):
            part = out[tile] if count == 2 * size else np.empty((tile.stop - tile.start, 2 * size), X.dtype)
            multiply(X[tile], W, part[:, :size])
            if count < 2 * size:  # no column is left for the last sine: a random phase replaces it
                part[:, size - 1] += X.dtype.type(self.phase_[0])
            to_waves(part, np.sqrt(2 / count))
            if count < 2 * size:
                out[tile] = part[:, :count]
        return out

    def _sketch(self, X: Any) -> np.ndarray:
        k = self.kernel_
        with np.errstate(over="ignore", invalid="ignore"):
            out = sketch_power(X, self.places_, self.signs_, k.gamma, k.coef0, self.n_components_)
        if not np.isfinite(out).all():
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise OverflowError(f"the features of row {row} are too large for {X.dtype}: scale the data")
        return out

    def _check_magnitude(self, X: Any, W: np.ndarray) -> None:
        """Refuse rows so large that w.x could overflow: the cosine of infinity is NaN."""
        values = X.data if is_sparse(X) else X
        most = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        largest = self._cast("most", W.dtype, lambda: np.abs(W).max(initial=0.0))
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
        return {"width": self._pack_columns(), **kernel, **drawn}, arrays

    _FILED: ClassVar[Record] = Record(
        width=WIDTH, kernel=TEXT, kernel_as_text=OrMissing(TRUTH), seed=SEED, n_components=OrMissing(whole(1))
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self._FILED)
        self._unpack_columns(facts["width"])
        self.kernel_, self._seed = kernels.get(facts["kernel"]), facts["seed"]
        if facts.get("kernel_as_text") is False:
            self.kernel = kernels.get(self.kernel)
        width, count = self.n_features_in_, facts.get("n_components") or self.n_components
        self.n_components_ = check_whole_number(count, "n_components")
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
            raise ValueError("places_ has columns beyond n_components")
