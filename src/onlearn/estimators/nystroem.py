"""Nystrom's method: any kernel, by its values at a few landmarks (Williams and Seeger 2001).

phi(x) = L^(-1/2) U' [k(x, l_1), ..., k(x, l_m)], where U L U' is the kernel matrix of the landmarks. Between landmarks
<phi(x), phi(z)> = k(x, z). Elsewhere k(x, x) - |phi(x)|^2 >= 0 is the squared distance of x, in feature space, from the
span of the landmarks. The columns are in the order of the eigenvalues, the largest first, and scaled accordingly: a
learner that adapts its rate to each feature profits from that.

Landmarks are chosen by kernel values alone:

- ``uniform``: all examples with the same probability.
- ``kmeans_plus_plus``: with probability in proportion to the squared distance, in feature space, from the nearest
  landmark chosen so far (Arthur and Vassilvitskii 2007).
- ``rpcholesky``: randomly pivoted Cholesky: in proportion to the residual k(x, x) - |phi(x)|^2 of the landmarks chosen
  so far (Chen, Epperly, Tropp and Webber 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.examples import concatenate, count, pick
from onlearn.engine.inputs import number_types, plain_table
from onlearn.estimators.transformer import WIDTH, KernelTransformer, check_whole_number, draw_seed, in_precision, tiles
from onlearn.kernels.formula import copied
from onlearn.model_schema import COUNT, NESTED, NUMBER, SEED, TEXT, Arrays, OrMissing, Record, check_facts, under, whole

MOST_NUMBERS = 1 << 26  # in the factor of rpcholesky; beyond that it chooses among a sample of the examples
BLOCK = 128  # most candidates drawn at once
SAMPLE = 2000  # rows on which the error is estimated
INDEFINITE = 1e-6  # a negative eigenvalue of more than this share of the largest is not rounding (float64)

# The choice of landmarks
#
# The last two methods draw one landmark after another, which would be one thin matrix product each. But residuals only
# ever shrink. So a block of candidates is drawn at once by the present residuals, and each is accepted with probability
# (its residual at its turn) / (its residual when drawn). This is rejection sampling: the accepted ones are distributed
# exactly as if drawn one by one (Epperly, Tropp and Webber 2024), and their kernel columns are computed together.


def uniform(kernel: Any, P: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """Landmarks drawn uniformly."""
    return rng.choice(len(P), min(size, len(P)), replace=False)


def kmeans_plus_plus(kernel: Any, P: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """Landmarks that are spread out in feature space."""
    size, diagonal = min(size, len(P)), diagonal_of(kernel, P)
    chosen = [int(rng.integers(len(P)))]
    residual = np.full(len(P), np.inf)
    _update_distances(kernel, P, diagonal, np.array(chosen), residual)
    while len(chosen) < size and residual.sum() > _rounding(diagonal, P):
        drawn = _draw(residual, _block_size(size), rng)
        some = P.take(drawn)
        apart = diagonal[drawn][:, None] + diagonal[drawn] - 2.0 * kernel.block(some, some)
        now, accepted = residual[drawn].copy(), list[int]()
        for i, uniform_number in enumerate(rng.random(len(drawn))):
            if len(chosen) + len(accepted) < size and uniform_number * residual[drawn[i]] < now[i]:
                accepted.append(int(drawn[i]))
                now = np.minimum(now, apart[:, i])
                now[drawn == drawn[i]] = 0.0  # rounding must not make it a candidate again
        if accepted:
            _update_distances(kernel, P, diagonal, np.array(accepted), residual)
            chosen += accepted
    return np.array(chosen)


def _update_distances(kernel: Any, P: Any, diagonal: np.ndarray, new: np.ndarray, residual: np.ndarray) -> None:
    """Update the squared distances from the nearest landmark for new landmarks."""
    Q = P.take(new)
    for tile in tiles(len(P), len(new) * P.dtype.itemsize):
        nearest = (diagonal[new] - 2.0 * kernel.block(P.take(tile), Q)).min(axis=1)
        residual[tile] = np.clip(np.minimum(residual[tile], diagonal[tile] + nearest), 0.0, None)
    residual[new] = 0.0


def rpcholesky(kernel: Any, P: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """Landmarks drawn in proportion to their residuals."""
    size = min(size, len(P))
    among = np.arange(len(P))
    if size * len(P) > MOST_NUMBERS:
        among = np.sort(rng.choice(len(P), max(size, MOST_NUMBERS // size), replace=False))
        P = P.take(among)
    diagonal = diagonal_of(kernel, P)
    residual = np.clip(diagonal, 0.0, None)
    F, found, chosen = np.empty((size, len(P)), P.dtype), 0, np.empty(size, np.int64)
    while found < size and residual.sum() > _rounding(diagonal, P):
        drawn = _draw(residual, _block_size(size), rng)
        some = P.take(drawn)
        explained = F[:found, drawn].astype(np.float64)
        H = kernel.block(some, some) - explained.T @ explained
        accepted, columns = list[int](), list[np.ndarray]()
        floor = np.finfo(P.dtype).eps * diagonal[drawn]  # a smaller pivot is rounding
        for i, uniform_number in enumerate(rng.random(len(drawn))):
            if found + len(accepted) < size and H[i, i] > max(uniform_number * residual[drawn[i]], floor[i]):
                column = H[:, i] / np.sqrt(H[i, i])
                H = H - np.outer(column, column)
                H[:, drawn == drawn[i]] = H[drawn == drawn[i]] = 0.0  # rounding must not make it a candidate again
                accepted.append(i)
                columns.append(column)
        if not accepted:
            residual[drawn[np.diagonal(H) <= floor]] = 0.0
            continue
        new = drawn[accepted]
        L = np.array(columns)[:, accepted].T
        G = kernel.block(P.take(new), P)
        G -= F[:found, new].T @ F[:found]
        # Inverting a small triangle in double precision is accurate, and the product is faster than solving.
        more = np.matmul(np.linalg.inv(L).astype(P.dtype), G, out=F[found : found + len(new)])
        residual = np.clip(residual - np.einsum("ij,ij->j", more, more, dtype=np.float64), 0.0, None)
        residual[new] = 0.0
        chosen[found : found + len(new)] = new
        found += len(new)
    return among[chosen[:found]]


def diagonal_of(kernel: Any, P: Any) -> np.ndarray:
    """k(x, x) of all examples; an error if their sum overflows."""
    with np.errstate(over="ignore"):
        diagonal = np.asarray(kernel.diagonal(P))
        if not np.isfinite(diagonal.sum()):
            raise kernel.too_large(np.dtype(np.float64), f"row {int(np.argmax(diagonal))}")
    return diagonal


def _draw(residual: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Independent draws in proportion to the residuals."""
    edges = np.cumsum(residual)
    return np.minimum(np.searchsorted(edges, rng.random(size) * edges[-1], side="right"), len(residual) - 1)


def _block_size(size: int) -> int:
    return int(np.clip(size // 8, 8, BLOCK))


def _rounding(diagonal: np.ndarray, P: Any) -> float:
    """A sum of residuals that is rounding only."""
    return float(8 * np.finfo(P.dtype).eps * np.abs(diagonal).sum())


CHOOSE = {
    "uniform": uniform,
    "kmeans++": kmeans_plus_plus,
    "rpcholesky": rpcholesky,
}


def _is_uniform(nystroem: Any) -> bool:
    """Whether ``partial_fit`` is available."""
    if isinstance(nystroem.landmarks, str) and nystroem.landmarks == "uniform":
        return True
    raise AttributeError(
        "partial_fit keeps uniform landmarks of a stream; other methods need all examples: "
        "use landmarks='uniform', or fit a sample"
    )


class Nystroem(KernelTransformer):
    """Transform examples (rows, strings, trees) to at most ``n_components`` features that approximate a kernel.

    ``kernel``: an object of ``onlearn.kernels``, or its text such as "0.5*gaussian(2) + polynomial(2)".
    ``landmarks``: how they are chosen among the fitted examples, "uniform", "kmeans++" or "rpcholesky" (the best for a
    given number, and the slowest); or the landmarks themselves.

    Fitted: ``landmarks_``; ``n_components_``, the number of features, fewer than landmarks where some are redundant;
    ``error_``, the share of the kernel that the features miss, sum(k(x, x) - |phi(x)|^2) / sum(k(x, x)). It is an
    estimate for new examples, on the fitted examples or on 2,000 of them drawn at random; a landmark, which misses
    nothing of itself, is approximated by the other landmarks. If you give the landmarks, it is over the examples as
    they are.

    ``partial_fit`` keeps uniform landmarks of a stream. While they change, so do the features: train a learner when
    they change no more. The other methods need all examples: ``fit`` them to a sample.

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
        kernel, size, choose = self._check_settings()
        X = self._check_examples(X, kernel, reset=True)
        seed = draw_seed(self.random_state)
        P = kernel.points(X)
        if choose is None:
            return self._set_landmarks(kernel, seed, self._given_landmarks(kernel), len(P), P, None)
        rows = choose(kernel, P, size, np.random.default_rng(seed))
        return self._set_landmarks(kernel, seed, pick(X, rows), len(P), P, rows)

    @available_if(_is_uniform)
    def partial_fit(self, X: Any, y: Any = None) -> Nystroem:
        """Keep uniform landmarks of all examples so far, by a reservoir (Vitter 1985)."""
        kernel, size, _ = self._check_settings()
        fresh = not hasattr(self, "landmarks_")
        kernel = kernel if fresh else self.kernel_
        X = self._check_examples(X, kernel, reset=fresh)
        P = kernel.points(X)
        seed, seen = (draw_seed(self.random_state), 0) if fresh else (self._seed, self.n_seen_)
        held = 0 if fresh else count(self.landmarks_)
        source = np.arange(held)  # for each place of the reservoir: an old landmark, or held + a row of X
        rng = np.random.default_rng([seed, seen])
        for row, place in enumerate(rng.integers(np.arange(seen, seen + len(P)) + 1)):
            if len(source) < size:
                source = np.append(source, held + row)
            elif place < size:
                source[place] = held + row
        seen += len(P)
        if not fresh and len(source) == held and (source < held).all():
            self.n_seen_ = seen
            return self
        old = [] if fresh else [pick(self.landmarks_, source[source < held])]
        new = source[source >= held] - held
        return self._set_landmarks(kernel, seed, concatenate([*old, pick(X, new)]), seen, P, new)

    def _check_settings(self) -> tuple[Any, int, Callable[..., np.ndarray] | None]:
        """The kernel, the number of landmarks, and the function that chooses them, or None if they are given."""
        size = check_whole_number(self.n_components, "n_components")
        if self.landmarks not in CHOOSE if isinstance(self.landmarks, str) else not _may_be_examples(self.landmarks):
            known = ", ".join(map(repr, CHOOSE))
            raise ValueError(f"landmarks must be {known} or examples, not {self.landmarks!r}")
        kernel = copied(self.kernel)
        if kernel.data == "matrix":
            raise ValueError(f"Nystroem computes the kernel at its landmarks itself: give it that kernel, not {kernel}")
        return kernel, size, CHOOSE[self.landmarks] if isinstance(self.landmarks, str) else None

    def _given_landmarks(self, kernel: Any) -> Any:
        """The given landmarks, checked."""
        if kernel.data != "vectors":
            return self._check_examples(self.landmarks, kernel, reset=False)
        given = plain_table(self.landmarks)  # copied, because the user may change them
        rows = check_array(given, accept_sparse="csr", dtype=number_types(given), input_name="landmarks", copy=True)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"landmarks has {rows.shape[1]} features, but X has {self.n_features_in_} features")
        return rows

    def _set_landmarks(self, kernel: Any, seed: int, chosen: Any, seen: int, P: Any,
                       rows: np.ndarray | None) -> Nystroem:  # fmt: skip
        """Whiten the landmarks, and estimate the error on the examples P, of which these rows are landmarks."""
        Q = kernel.points(chosen)
        whitening, apart = whiten(kernel, Q)
        self.kernel_, self._seed, self.n_seen_ = kernel, seed, seen
        self.landmarks_, self.whitening_, self.n_components_ = chosen, whitening, whitening.shape[1]
        self._clear_casts()
        others = np.arange(len(P)) if rows is None else np.setdiff1d(np.arange(len(P)), rows)
        if len(others) > SAMPLE:
            others = np.sort(np.random.default_rng([seed, 1]).choice(others, SAMPLE, replace=False))
        P = P.take(others)
        total = float(diagonal_of(kernel, P).sum())
        missed = total - sum(float(np.einsum("ij,ij->", phi, phi, dtype=np.float64)) for phi in self._features(P))
        exact = len(P) and missed <= np.sqrt(np.finfo(P.dtype).eps) * total  # then the landmarks span all examples
        if rows is not None and not exact:
            each = max(0, seen - len(Q)) / max(1, len(P))  # examples that each of these represents
            total, missed = each * total + float(diagonal_of(kernel, Q).sum()), each * missed + float(apart.sum())
        self.error_ = max(0.0, missed / total) if total > 0 else 0.0
        return self

    # ------------------------------------------------------------------ the features

    def transform(self, X: Any) -> np.ndarray:
        """The features of the examples."""
        check_is_fitted(self)
        P = self.kernel_.points(self._check_examples(X, self.kernel_, reset=False))
        out = np.empty((len(P), self.n_components_), P.dtype)
        for _ in self._features(P, out):
            pass
        return out

    def _features(self, P: Any, out: np.ndarray | None = None) -> Iterator[np.ndarray]:
        """The features tile by tile, into ``out`` if given; kernel values take the memory of one tile only."""
        dtype = P.dtype
        Q = self._cast("landmarks", dtype, lambda: self.kernel_.points(in_precision(self.landmarks_, dtype)))
        W = self._cast("whitening", dtype, lambda: self.whitening_.astype(dtype))
        values = None
        for tile in tiles(len(P), len(Q) * np.dtype(dtype).itemsize):
            size = tile.stop - tile.start
            values = np.empty((size, len(Q)), dtype) if values is None else values[:size]
            self.kernel_.block(P.take(tile), Q, values)
            yield np.matmul(values, W, out=None if out is None else out[tile])

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
            "width": self._pack_columns(),
            "kernel": kernel,
            "landmarks": examples,
            "nystroem": {"seed": self._seed, "n_seen": int(self.n_seen_), "error": self.error_},
        }
        return facts, {**arrays, "whitening": self.whitening_}

    _FILED: ClassVar[Record] = Record(
        params=Record(
            kernel=OrMissing(TEXT), n_components=whole(1), landmarks=OrMissing(TEXT), random_state=OrMissing(SEED)
        ),
        width=WIDTH,
        kernel=NESTED,
        landmarks=NESTED,
        nystroem=Record(seed=SEED, n_seen=COUNT, error=NUMBER),
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self._FILED)
        self._unpack_columns(facts["width"])
        mine = facts["nystroem"]
        self.kernel_ = kernels.unpack(facts["kernel"], under("kernel.", arrays))
        self.landmarks_ = kernels.unpack_data(facts["landmarks"], under("landmarks.", arrays))
        self._check_width(self.landmarks_)
        self.whitening_ = arrays["whitening"]
        shape = (count(self.landmarks_), self.whitening_.shape[-1] if self.whitening_.ndim == 2 else 0)
        if self.whitening_.shape != shape or self.whitening_.dtype != np.float64:
            raise ValueError(
                f"the whitening has shape {self.whitening_.shape}, but there are {count(self.landmarks_)} landmarks"
            )
        self._seed, self.n_seen_, self.error_ = mine["seed"], mine["n_seen"], float(mine["error"])
        self.n_components_ = self.whitening_.shape[1]
        if facts["params"].get("kernel") is None:  # an object, not text
            self.kernel = copied(self.kernel_)
        if self.landmarks is None:
            self.landmarks = self.landmarks_


def whiten(kernel: Any, Q: Any) -> tuple[np.ndarray, np.ndarray]:
    """U L^(-1/2) of the landmarks' kernel matrix K, without directions that are rounding only; and squared distances.

    These are the distances of each landmark from the span of the others, 1 / (K^-1)_ii.
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
    if not len(kept):  # all kernel values are 0; so is the one feature
        return np.zeros((len(Q), 1)), np.zeros(len(Q))
    apart = 1.0 / (vectors**2 / np.maximum(values, largest * noise)).sum(axis=1)
    return vectors[:, kept] / np.sqrt(values[kept]), np.where(apart > len(Q) * largest * noise, apart, 0.0)


def _may_be_examples(X: Any) -> bool:
    """Whether X has examples, or is an iterator, which may have some."""
    return count(X) > 0 if hasattr(X, "shape") or hasattr(X, "__len__") else hasattr(X, "__iter__")
