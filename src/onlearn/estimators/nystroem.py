"""Nystrom's method: any kernel, by its values at a few landmarks (Williams and Seeger 2001).

phi(x) = L^(-1/2) U' [k(x, l_1), ..., k(x, l_m)], where U L U' is the kernel matrix of the landmarks. Between landmarks
<phi(x), phi(z)> = k(x, z); elsewhere it is the best that can be had from them, and k(x, x) - |phi(x)|^2 >= 0 is the
squared distance of x, in feature space, to their span. The columns are in the order of the eigenvalues, the
largest first, and have the sizes that go with them: a learner that adapts its rate to each feature likes that.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.learner import OwnsKernel, own
from onlearn.engine.inputs import number_types, plain_table
from onlearn.estimators import transformer
from onlearn.kernels.products import refuse_strings

# ----------------------------------------------------------------------------------------------------
# Which examples stand for all others: landmarks of a Nystrom approximation, chosen by their kernel values only.
#
# - ``uniform``: each example alike.
# - ``kmeans_plus_plus``: with probability in proportion to the squared distance, in feature space, to the closest one
#   chosen so far (Arthur and Vassilvitskii 2007).
# - ``rpcholesky``: randomly pivoted Cholesky: in proportion to k(x, x) - |phi(x)|^2, what those chosen so far leave
#   unexplained (Chen, Epperly, Tropp and Webber 2023).
#
# The last two draw one after another, which would be one thin matrix product each. But what is left only ever shrinks:
# so draw a block at once by what is left now, and keep each with probability (what is left when its turn comes) / (what
# was left when it was drawn). That is rejection sampling: those kept are distributed exactly as if drawn one by one
# (Epperly, Tropp and Webber 2024), and their kernel columns are computed together.


ROOM = 1 << 26  # numbers that the factor of rpcholesky may hold: beyond it chooses among a sample of the examples
BLOCK = 128  # most candidates drawn at once


def uniform(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(len(P), min(count, len(P)), replace=False)


def kmeans_plus_plus(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Spread out in feature space."""
    count, diagonal = min(count, len(P)), lengths(kernel, P)
    chosen = [int(rng.integers(len(P)))]
    left = np.full(len(P), np.inf)
    _come_closer(kernel, P, diagonal, np.array(chosen), left)
    while len(chosen) < count and left.sum() > _nothing(diagonal, P):
        drawn = _draw(left, _block(count), rng)
        some = P.take(drawn)
        apart = diagonal[drawn][:, None] + diagonal[drawn] - 2.0 * kernel.block(some, some)
        now, kept = left[drawn].copy(), list[int]()
        for i, luck in enumerate(rng.random(len(drawn))):
            if len(chosen) + len(kept) < count and luck * left[drawn[i]] < now[i]:
                kept.append(int(drawn[i]))
                now = np.minimum(now, apart[:, i])
                now[drawn == drawn[i]] = 0.0  # rounding must not bring one back
        if kept:
            _come_closer(kernel, P, diagonal, np.array(kept), left)
            chosen += kept
    return np.array(chosen)


def _come_closer(kernel: Any, P: Any, diagonal: np.ndarray, new: np.ndarray, left: np.ndarray) -> None:
    """Squared distances to the closest, now that there are new ones."""
    Q = P.take(new)
    for tile in transformer.tiles(len(P), len(new) * P.dtype.itemsize):
        nearest = (diagonal[new] - 2.0 * kernel.block(P.take(tile), Q)).min(axis=1)
        left[tile] = np.clip(np.minimum(left[tile], diagonal[tile] + nearest), 0.0, None)
    left[new] = 0.0


def rpcholesky(kernel: Any, P: Any, count: int, rng: np.random.Generator) -> np.ndarray:
    """Those whose features explain the most, at random."""
    count = min(count, len(P))
    among = np.arange(len(P))
    if count * len(P) > ROOM:
        among = np.sort(rng.choice(len(P), max(count, ROOM // count), replace=False))
        P = P.take(among)
    diagonal = lengths(kernel, P)
    left = np.clip(diagonal, 0.0, None)
    F, size, chosen = np.empty((count, len(P)), P.dtype), 0, np.empty(count, np.int64)
    while size < count and left.sum() > _nothing(diagonal, P):
        drawn = _draw(left, _block(count), rng)
        some = P.take(drawn)
        explained = F[:size, drawn].astype(np.float64)
        H = kernel.block(some, some) - explained.T @ explained
        kept, columns = list[int](), list[np.ndarray]()
        floor = np.finfo(P.dtype).eps * diagonal[drawn]  # a smaller pivot is rounding
        for i, luck in enumerate(rng.random(len(drawn))):
            if size + len(kept) < count and H[i, i] > max(luck * left[drawn[i]], floor[i]):
                column = H[:, i] / np.sqrt(H[i, i])
                H = H - np.outer(column, column)
                H[:, drawn == drawn[i]] = H[drawn == drawn[i]] = 0.0  # rounding must not bring one back
                kept.append(i)
                columns.append(column)
        if not kept:
            left[drawn[np.diagonal(H) <= floor]] = 0.0
            continue
        new = drawn[kept]
        L = np.array(columns)[:, kept].T
        G = kernel.block(P.take(new), P)
        G -= F[:size, new].T @ F[:size]
        # The inverse of a small triangle in double precision is sound, and the product takes less time than solving.
        more = np.matmul(np.linalg.inv(L).astype(P.dtype), G, out=F[size : size + len(new)])
        left = np.clip(left - np.einsum("ij,ij->j", more, more, dtype=np.float64), 0.0, None)
        left[new] = 0.0
        chosen[size : size + len(new)] = new
        size += len(new)
    return among[chosen[:size]]


def lengths(kernel: Any, P: Any) -> np.ndarray:
    """k(x, x) of all examples, whose sum must be a number."""
    with np.errstate(over="ignore"):
        diagonal = np.asarray(kernel.diagonal(P))
        if not np.isfinite(diagonal.sum()):
            raise kernel.too_large(np.dtype(np.float64), f"row {int(np.argmax(diagonal))}")
    return diagonal


def _draw(left: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws in proportion to what is left."""
    edges = np.cumsum(left)
    return np.minimum(np.searchsorted(edges, rng.random(size) * edges[-1], side="right"), len(left) - 1)


def _block(count: int) -> int:
    return int(np.clip(count // 8, 8, BLOCK))


def _nothing(diagonal: np.ndarray, P: Any) -> float:
    """A sum that is nothing but rounding."""
    return float(8 * np.finfo(P.dtype).eps * np.abs(diagonal).sum())


CHOOSE = {
    "uniform": uniform,
    "kmeans++": kmeans_plus_plus,
    "rpcholesky": rpcholesky,
}
SAMPLE = 2000  # rows on which the error is estimated
INDEFINITE = 1e-6  # a negative eigenvalue of more than this part of the largest is not rounding (float64)


def _keeps_uniform(nystroem: Any) -> bool:
    if isinstance(nystroem.landmarks, str) and nystroem.landmarks == "uniform":
        return True
    raise AttributeError(
        "partial_fit keeps uniform landmarks of a stream; others need to see all examples: "
        "use landmarks='uniform', or fit a sample"
    )


class Nystroem(OwnsKernel, transformer.Numeric):
    """Turns examples (rows, strings, trees) into at most ``n_components`` features that approximate a kernel.

    ``kernel``: an object of ``onlearn.kernels``, or its text such as "0.5*gaussian(2) + polynomial(2)".
    ``landmarks``: how they are chosen among the fitted examples, "uniform", "kmeans++" or "rpcholesky" (the best for a
    given number, and the slowest); or the landmarks themselves.

    Fitted: ``landmarks_``; ``n_components_``, the number of features, fewer than landmarks where some say nothing new;
    ``error_``, the part of the kernel that new examples will miss, sum(k(x, x) - |phi(x)|^2) / sum(k(x, x)): estimated
    on the fitted examples, or on 2,000 of them drawn at random, with each landmark seen from the other landmarks (for
    of itself it misses nothing). If the landmarks are your own, it is over the examples as they are.

    ``partial_fit`` keeps uniform landmarks of a stream. As long as they change, so do the features: a learner should
    start when they are settled. The other ways to choose need to see all examples: ``fit`` them to a sample.

    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = Nystroem("gaussian(sigma=1)", 5, random_state=0).fit(X)
    >>> bool(phi.error_ < 1e-4)
    True
    """

    landmarks_: Any
    n_components_: int
    error_: float
    n_seen_: int

    def __init__(
        self, kernel: Any = "gaussian", n_components: int = 100, *, landmarks: Any = "uniform", random_state: Any = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose landmarks among these examples."""
        kernel, count, choose = self._settings()
        X = self._checked(X, kernel, reset=True)
        seed = transformer.drawn_seed(self.random_state)
        rng = np.random.default_rng(seed)
        P = kernel.points(X)
        if choose is None:
            return self._settle(kernel, seed, self._own(kernel), len(P), P, None)
        rows = choose(kernel, P, count, rng)
        return self._settle(kernel, seed, _take(X, rows), len(P), P, rows)

    @available_if(_keeps_uniform)
    def partial_fit(self, X: Any, y: Any = None) -> Nystroem:
        """Keep uniform landmarks of all examples so far, by a reservoir (Vitter 1985)."""
        kernel, count, _ = self._settings()
        fresh = not hasattr(self, "landmarks_")
        kernel = kernel if fresh else self.kernel_
        X = self._checked(X, kernel, reset=fresh)
        P = kernel.points(X)
        seed, seen = (transformer.drawn_seed(self.random_state), 0) if fresh else (self._seed, self.n_seen_)
        held = 0 if fresh else _count(self.landmarks_)
        source = np.arange(held)  # of each place of the reservoir: an old landmark, or held + a row of X
        rng = np.random.default_rng([seed, seen])
        for row, place in enumerate(rng.integers(np.arange(seen, seen + len(P)) + 1)):
            if len(source) < count:
                source = np.append(source, held + row)
            elif place < count:
                source[place] = held + row
        seen += len(P)
        if not fresh and len(source) == held and (source < held).all():
            self.n_seen_ = seen
            return self
        old = [] if fresh else [_take(self.landmarks_, source[source < held])]
        new = source[source >= held] - held
        return self._settle(kernel, seed, _join([*old, _take(X, new)]), seen, P, new)

    def _settings(self) -> tuple[Any, int, Any]:
        """The kernel, the number of landmarks and how to choose them, or None if they are given."""
        count = transformer.whole_number(self.n_components, "n_components")
        if self.landmarks not in CHOOSE if isinstance(self.landmarks, str) else not _holds_any(self.landmarks):
            known = ", ".join(map(repr, CHOOSE))
            raise ValueError(f"landmarks must be {known} or examples, not {self.landmarks!r}")
        kernel = own(kernels.get(self.kernel))
        if kernel.data == "matrix":
            raise ValueError(f"Nystroem computes the kernel at its landmarks itself: give it that kernel, not {kernel}")
        return kernel, count, CHOOSE[self.landmarks] if isinstance(self.landmarks, str) else None

    def _checked(self, X: Any, kernel: Any, reset: bool) -> Any:
        """Examples that rows can be taken of; what else they must be, the kernel checks."""
        if kernel.data == "vectors":
            refuse_strings(X, kernel)
            return transformer.checked_rows(self, X, reset)
        if isinstance(X, (str, bytes)):
            raise TypeError("X must be a list of examples, not one text: put it in a list")
        if not sp.issparse(X) and not (isinstance(X, np.ndarray) and X.ndim == 2):
            X = list(X)
        if not _count(X):
            raise ValueError("X has no examples: at least one is needed")
        return X.tocsr() if sp.issparse(X) else X

    def _own(self, kernel: Any) -> Any:
        """The given landmarks, checked."""
        if kernel.data != "vectors":
            return self._checked(self.landmarks, kernel, reset=False)
        given = plain_table(self.landmarks)  # copied, for somebody may change them
        rows = check_array(given, accept_sparse="csr", dtype=number_types(given), input_name="landmarks", copy=True)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"landmarks has {rows.shape[1]} features, but X has {self.n_features_in_} features")
        return rows

    def _settle(self, kernel: Any, seed: int, chosen: Any, seen: int, P: Any, rows: np.ndarray | None) -> Nystroem:
        """Whiten the landmarks, and estimate the error on the examples P, of which those rows are landmarks."""
        Q = kernel.points(chosen)
        whitening, apart = _whitening(kernel, Q)
        self.kernel_, self._seed, self.n_seen_ = kernel, seed, seen
        self.landmarks_, self.whitening_, self.n_components_ = chosen, whitening, whitening.shape[1]
        self._casts: dict[Any, Any] = {}
        others = np.arange(len(P)) if rows is None else np.setdiff1d(np.arange(len(P)), rows)
        if len(others) > SAMPLE:
            others = np.sort(np.random.default_rng([seed, 1]).choice(others, SAMPLE, replace=False))
        P = P.take(others)
        total = float(lengths(kernel, P).sum())
        missed = total - sum(float(np.einsum("ij,ij->", phi, phi, dtype=np.float64)) for phi in self._features(P))
        exact = len(P) and missed <= np.sqrt(np.finfo(P.dtype).eps) * total  # then the landmarks span all there is
        if rows is not None and not exact:
            each = max(0, seen - len(Q)) / max(1, len(P))  # so many examples each of these stands for
            total, missed = each * total + float(lengths(kernel, Q).sum()), each * missed + float(apart.sum())
        self.error_ = max(0.0, missed / total) if total > 0 else 0.0
        return self

    # ------------------------------------------------------------------ the features

    def transform(self, X: Any) -> np.ndarray:
        """The examples' features."""
        check_is_fitted(self)
        P = self.kernel_.points(self._checked(X, self.kernel_, reset=False))
        out = np.empty((len(P), self.n_components_), P.dtype)
        for _ in self._features(P, out):
            pass
        return out

    def _features(self, P: Any, out: np.ndarray | None = None) -> Any:
        """Tile by tile, into ``out`` if given: nothing of the size of the whole is made besides."""
        dtype = P.dtype
        Q = transformer.cast(self, "landmarks", dtype, lambda: self.kernel_.points(_as(self.landmarks_, dtype)))
        W = transformer.cast(self, "whitening", dtype, lambda: self.whitening_.astype(dtype))
        room = None
        for tile in transformer.tiles(len(P), len(Q) * np.dtype(dtype).itemsize):
            size = tile.stop - tile.start
            room = np.empty((size, len(Q)), dtype) if room is None else room[:size]
            self.kernel_.block(P.take(tile), Q, room)
            yield np.matmul(room, W, out=None if out is None else out[tile])

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        kernel, arrays = kernels.pack(self.kernel_)
        examples, held = kernels.pack_data(self.landmarks_)
        given = not isinstance(self.landmarks, str)
        arrays = {f"kernel.{key}": value for key, value in arrays.items()}
        arrays |= {f"landmarks.{key}": value for key, value in held.items()}
        params = {
            "kernel": self.kernel if isinstance(self.kernel, str) else None,
            "n_components": int(self.n_components),
            "landmarks": None if given else self.landmarks,
            "random_state": int(self.random_state) if isinstance(self.random_state, Integral) else None,
        }
        facts = {
            "params": params,
            "width": transformer.pack_width(self),
            "kernel": kernel,
            "landmarks": examples,
            "nystroem": {"seed": self._seed, "n_seen": int(self.n_seen_), "error": self.error_},
        }
        return facts, {**arrays, "whitening": self.whitening_}

    def _unpack(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        def inside(prefix: str) -> dict[str, np.ndarray]:
            return {key.removeprefix(prefix): a for key, a in arrays.items() if key.startswith(prefix)}

        transformer.unpack_width(self, facts["width"])
        mine = facts["nystroem"]
        self.kernel_ = kernels.unpack(facts["kernel"], inside("kernel."))
        self.landmarks_ = kernels.unpack_data(facts["landmarks"], inside("landmarks."))
        self.whitening_ = arrays["whitening"]
        if self.whitening_.ndim != 2 or len(self.whitening_) != _count(self.landmarks_):
            raise ValueError(
                f"the whitening has shape {self.whitening_.shape}, but there are {_count(self.landmarks_)} landmarks"
            )
        self._seed, self.n_seen_, self.error_ = int(mine["seed"]), int(mine["n_seen"]), float(mine["error"])
        self.n_components_ = self.whitening_.shape[1]
        if facts["params"].get("kernel") is None:  # an object, not a text
            self.kernel = own(self.kernel_)
        if self.landmarks is None:
            self.landmarks = self.landmarks_


def _whitening(kernel: Any, Q: Any) -> tuple[np.ndarray, np.ndarray]:
    """U L^(-1/2) of the landmarks' kernel matrix K, without the directions that are rounding only.

    And how far each landmark is from the span of the others, squared, which is 1 / (K^-1)_ii.
    """
    K = kernel.block(Q, Q).astype(np.float64)
    values, vectors = np.linalg.eigh(K / 2 + K.T / 2)
    largest, noise = max(float(values[-1]), 0.0), np.finfo(Q.dtype).eps * len(Q)
    if values[0] < -max(INDEFINITE, 4 * noise) * max(largest, -float(values[0])):
        raise ValueError(
            f"{kernel} is not positive semi-definite at these landmarks (eigenvalues from {values[0]:g} to "
            f"{values[-1]:g}), so it has no features: choose other parameters, or see kernels.check_kernel"
        )
    kept = np.flatnonzero(values > largest * noise)[::-1]
    if not len(kept):  # all kernel values are 0, and so is the one feature
        return np.zeros((len(Q), 1)), np.zeros(len(Q))
    apart = 1.0 / (vectors**2 / np.maximum(values, largest * noise)).sum(axis=1)
    return vectors[:, kept] / np.sqrt(values[kept]), np.where(apart > len(Q) * largest * noise, apart, 0.0)


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _holds_any(X: Any) -> bool:
    """Whether these can be examples: some, or an iterator, of which that is not known yet."""
    return _count(X) > 0 if hasattr(X, "shape") or hasattr(X, "__len__") else hasattr(X, "__iter__")


def _take(X: Any, rows: np.ndarray) -> Any:
    return X[rows] if hasattr(X, "shape") else [X[row] for row in rows]


def _join(parts: list[Any]) -> Any:
    if any(sp.issparse(part) for part in parts):
        return sp.vstack([sp.csr_matrix(part) for part in parts], format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [example for part in parts for example in part]


def _as(X: Any, dtype: Any) -> Any:
    return X.astype(dtype, copy=False) if hasattr(X, "astype") and X.dtype.kind == "f" else X
