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
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.approx import frequencies, manners, tensorsketch
from onlearn.approx.waves import to_waves
from onlearn.kernels.owned import OwnsKernel, own


class RandomKitchenSinks(OwnsKernel, manners.Numeric):
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
        return self._draw(manners.checked_rows(self, X, reset=True))

    def partial_fit(self, X: Any, y: Any = None) -> RandomKitchenSinks:
        """The first batch draws the features; later ones are checked only."""
        fresh = not hasattr(self, "kernel_")
        X = manners.checked_rows(self, X, reset=fresh)
        return self._draw(X) if fresh else self

    def _draw(self, X: Any) -> RandomKitchenSinks:
        kernel: Any
        kernel, count, width = (
            own(kernels.get(self.kernel)),
            manners.whole_number(self.n_components, "n_components"),
            X.shape[1],
        )
        if kernel.name not in DRAWN:
            raise ValueError(
                f"there are no random features of {kernel}, only of {', '.join(DRAWN)} kernels: use Nystroem"
            )
        if self.orthogonal and kernel.name != "gaussian":
            raise ValueError(f"orthogonal=True is for a gaussian kernel; there is no orthogonal form of {kernel}")
        seed = manners.drawn_seed(self.random_state)
        rng = np.random.default_rng(seed)
        if kernel.name == "polynomial":
            made = dict(zip(("places_", "signs_"), tensorsketch.draw(width, count, kernel.degree, rng), strict=True))
        else:
            draw = frequencies.orthogonal if self.orthogonal else frequencies.FREQUENCIES[kernel.name]
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
        X = manners.checked_rows(self, X, reset=False)
        if self.kernel_.name == "polynomial":
            return self._sketch(X)
        W = manners.cast(self, "W", X.dtype, lambda: self.frequencies_.astype(X.dtype))
        self._check_size(X, W)
        count, size = self.n_components_, W.shape[1]
        out = np.empty((X.shape[0], count), X.dtype)
        for tile in manners.tiles(X.shape[0], 2 * size * out.itemsize):
            part = out[tile] if count == 2 * size else np.empty((tile.stop - tile.start, 2 * size), X.dtype)
            manners.multiply(X[tile], W, part[:, :size])
            if count < 2 * size:  # the last frequency has no room for its sine: a random phase makes up for that
                part[:, size - 1] += X.dtype.type(self.phase_[0])
            to_waves(part, np.sqrt(2 / count))
            if count < 2 * size:
                out[tile] = part[:, :count]
        return out

    def _sketch(self, X: Any) -> np.ndarray:
        k = self.kernel_
        with np.errstate(over="ignore", invalid="ignore"):
            out = tensorsketch.power(X, self.places_, self.signs_, k.gamma, k.coef0, self.n_components_)
        if not np.isfinite(out).all():
            row = int(np.argwhere(~np.isfinite(out))[0, 0])
            raise OverflowError(f"the features of row {row} are too large for {X.dtype}: scale the data")
        return out

    def _check_size(self, X: Any, W: np.ndarray) -> None:
        """Refuse rows so large that w.x could overflow: the cosine of infinity is no number."""
        values = X.data if sp.issparse(X) else X
        most = max(float(values.max(initial=0)), -float(values.min(initial=0)))
        largest = manners.cast(self, "most", W.dtype, lambda: np.abs(W).max(initial=0.0))
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
        return {"width": manners.pack_width(self), **kernel, **drawn}, arrays

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        manners.unpack_width(self, facts["width"])
        self.kernel_, self._seed = kernels.get(facts["kernel"]), int(facts["seed"])
        if not facts.get("kernel_as_text", True):
            self.kernel = kernels.get(self.kernel)
        width, count = self.n_features_in_, int(facts.get("n_components", self.n_components))
        self.n_components_ = manners.whole_number(count, "n_components")
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
