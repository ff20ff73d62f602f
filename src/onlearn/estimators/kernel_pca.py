"""Kernel principal components: the directions in feature space in which examples differ most.

The kernel matrix K of the n fitted examples is centred, K' = (I - 1/n) K (I - 1/n): as if the mean of phi(x) were
subtracted from each phi(x). Of K' = U L U' the largest eigenvalues L are kept (Schölkopf, Smola and Müller 1998). The
component j of an example is its projection on the direction v_j = sum_i U_ij / sqrt(L_j) phi(x_i), of length 1:

    z_j(x) = sum_i (k(x, x_i) - mean over the fitted x' of k(x', x_i)) U_ij / sqrt(L_j)

The other two means that centre a kernel matrix are the same for all i, and the column j of U sums to 0.

K has n^2 numbers. Nystrom's method (see ``nystroem``) replaces phi(x) by features of m landmarks, phi(x) = W' k(x, .),
whose covariance matrix is m x m. With V its eigenvectors the components have the same form,

    z(x) = (k(x, landmarks) - mean of k(x', landmarks)) W V

so both methods keep the same: some examples, the means of their kernel values, and a matrix. They agree if the
landmarks span the fitted examples.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

# SciPy's, because they compute the largest eigenvalues alone.
import scipy.linalg
from scipy.sparse.linalg import ArpackError, eigsh
from sklearn.utils.validation import check_is_fitted

from onlearn import kernels
from onlearn.dual.examples import count, pick
from onlearn.estimators.nystroem import INDEFINITE, diagonal_of, rpcholesky, whiten
from onlearn.estimators.transformer import WIDTH, KernelTransformer, check_whole_number, draw_seed, in_precision, tiles
from onlearn.kernels.formula import copied
from onlearn.model_schema import (
    NESTED,
    SEED,
    TEXT,
    Arrays,
    OrMissing,
    Record,
    check_facts,
    finite,
    one_of,
    under,
    whole,
)

METHODS = ("auto", "exact", "nystroem")
MOST_EXACT = 4000  # examples up to which "auto" is exact
LANDMARKS = 500  # of Nystrom's method, and
PER_COMPONENT = 5  # at least so many for each component
AMONG = 20  # examples for each landmark, among which they are chosen
SMALL, FEW = 200, 0.1  # Lanczos' method is for matrices that are not small, and for a small part of their eigenvalues
ALIKE = 1e-6  # entries of an eigenvector that differ by less are equally large


class Components(NamedTuple):
    """What was learned: components of x are (k(x, base) - means) @ directions."""

    base: Any  # examples
    means: np.ndarray
    directions: np.ndarray
    eigenvalues: np.ndarray
    total: float  # the sum of all eigenvalues


class KernelPCA(KernelTransformer):
    """Transform examples (rows, strings, trees) to their principal components in the feature space of a kernel.

    ``kernel``: an object of ``onlearn.kernels``, or its text such as "0.5*gaussian(2) + polynomial(2)"; "precomputed"
    takes kernel matrices.
    ``n_components``: how many at most; None: all. There are no more than directions in which the examples differ, so
    there may be fewer (``n_components_``); if they do not differ at all, there is one, which is 0.
    ``method``: "exact"; "nystroem", by ``n_landmarks`` of the examples (by default 500, or 5 for each component if that
    is more), chosen by randomly pivoted Cholesky; "auto" is exact up to 4,000 examples.

    Fitted: ``eigenvalues_`` of the centred kernel matrix, the largest first; ``explained_variance_``, the variance of
    each component over the fitted examples, and ``explained_variance_ratio_``, its share of the variance of phi(x);
    ``method_``. The sign of a component is such that the example farthest from 0 is above it.

    >>> import numpy as np
    >>> angles = np.linspace(0, 6, 40)
    >>> circle = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> rings = np.vstack([circle, 3 * circle])  # which no line divides
    >>> first = KernelPCA("gaussian(1.5)", n_components=1).fit_transform(rings)[:, 0]
    >>> bool(first[:40].min() > first[40:].max() or first[:40].max() < first[40:].min())
    True
    """

    learned_: Components
    method_: str
    n_samples_: int

    def __init__(
        self,
        kernel: Any = "gaussian",
        n_components: int | None = None,
        *,
        method: str = "auto",
        n_landmarks: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._takes_matrices()
        return tags

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> KernelPCA:
        """Find the components of these examples."""
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Find the components of these examples, and transform them."""
        P, projected = self._fit(X)
        return self._project(P) if projected is None else projected

    def _fit(self, X: Any) -> tuple[Any, np.ndarray | None]:
        """Find the components; the examples, and their components where these are known."""
        kernel, seed = copied(self.kernel), draw_seed(self.random_state)
        most = None if self.n_components is None else check_whole_number(self.n_components, "n_components")
        landmarks = None if self.n_landmarks is None else check_whole_number(self.n_landmarks, "n_landmarks")
        if self.method not in METHODS:
            raise ValueError(f"method must be {', '.join(map(repr, METHODS))}, not {self.method!r}")
        X = self._check_examples(X, kernel, reset=True)
        P = kernel.points(X)
        given = kernel.data == "matrix"
        if given and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"{kernel}: X has {X.shape[0]} rows and {X.shape[1]} columns, but the matrix to fit must be square, "
                "with a column for each row's example"
            )
        exact = self.method == "exact" or (self.method == "auto" and (given or len(P) <= MOST_EXACT))
        if exact:
            found, projected = _exact(kernel, X, P, most)
        elif given:
            raise ValueError(f"{kernel}: a kernel matrix is there already, so method must be 'exact'")
        else:
            size = landmarks or max(LANDMARKS, PER_COMPONENT * (most or 0))
            found, projected = _by_landmarks(kernel, X, P, most, size, np.random.default_rng(seed)), None
        self.kernel_, self.learned_, self.n_samples_ = kernel, found, len(P)
        self.method_ = "exact" if exact else "nystroem"
        self._clear_casts()
        return P, None if projected is None else projected.astype(P.dtype)

    # ------------------------------------------------------------------ the components

    def transform(self, X: Any) -> np.ndarray:
        """The components of the examples."""
        check_is_fitted(self)
        return self._project(self.kernel_.points(self._check_examples(X, self.kernel_, reset=False)))

    def _project(self, P: Any) -> np.ndarray:
        dtype, found = P.dtype, self.learned_
        Q = self._cast("base", dtype, lambda: self.kernel_.points(in_precision(found.base, dtype)))
        directions = self._cast("directions", dtype, lambda: found.directions.astype(dtype))
        means = self._cast("means", dtype, lambda: found.means.astype(dtype))
        out = np.empty((len(P), self.n_components_), dtype)
        for tile in tiles(len(P), len(Q) * np.dtype(dtype).itemsize):
            np.matmul(self.kernel_.block(P.take(tile), Q) - means, directions, out=out[tile])
        return out

    @property
    def n_components_(self) -> int:
        """How many components there are."""
        return len(self._found.eigenvalues)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def eigenvalues_(self) -> np.ndarray:
        """Of the centred kernel matrix, the largest first."""
        return self._found.eigenvalues

    @property
    def explained_variance_(self) -> np.ndarray:
        """The variance of each component over the fitted examples."""
        return self._found.eigenvalues / max(1, self.n_samples_ - 1)

    @property
    def explained_variance_ratio_(self) -> np.ndarray:
        """Its share of the variance of phi(x)."""
        values, total = self._found.eigenvalues, self._found.total
        return values / total if total > 0 else np.zeros_like(values)

    @property
    def _found(self) -> Components:
        if "learned_" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has none before fit")
        return self.learned_

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        found, name = self.learned_, str(self.kernel_)
        kernel, arrays = kernels.pack(self.kernel_)
        arrays = {f"kernel.{key}": value for key, value in arrays.items()}
        facts: dict[str, Any] = {"kernel": kernel, "width": self._pack_columns()}
        if self.kernel_.data != "matrix":
            facts["base"], held = kernels.pack_data(found.base)
            arrays |= {f"base.{key}": value for key, value in held.items()}
        elif name != "precomputed":
            raise ValueError(
                f"{name} cannot be saved: it looks at the fitted matrix, and a model file holds no kernel values; "
                "compute the kernel first, and use 'precomputed'"
            )
        arrays |= {"means": found.means, "directions": found.directions, "eigenvalues": found.eigenvalues}
        facts["params"] = {
            "kernel": self.kernel if isinstance(self.kernel, str) else None,
            "n_components": None if self.n_components is None else int(self.n_components),
            "method": self.method,
            "n_landmarks": None if self.n_landmarks is None else int(self.n_landmarks),
            "random_state": int(self.random_state) if isinstance(self.random_state, Integral) else None,
        }
        facts["kernel_pca"] = {"total": found.total, "n_samples": self.n_samples_, "method": self.method_}
        return facts, arrays

    _FILED: ClassVar[Record] = Record(
        params=Record(
            kernel=OrMissing(TEXT),
            n_components=OrMissing(whole(1)),
            method=TEXT,
            n_landmarks=OrMissing(whole(1)),
            random_state=OrMissing(SEED),
        ),
        width=WIDTH,
        kernel=NESTED,
        base=OrMissing(NESTED),
        kernel_pca=Record(total=finite(low=0), n_samples=whole(1), method=one_of(*METHODS[1:])),
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self._FILED)
        mine = facts["kernel_pca"]
        self._unpack_columns(facts["width"])
        self.kernel_ = kernels.unpack(facts["kernel"], under("kernel.", arrays))
        means, directions, eigenvalues = (arrays[name] for name in ("means", "directions", "eigenvalues"))
        if self.kernel_.data == "matrix":
            base: Any = np.zeros((len(means), len(means)))  # of which nothing is looked at but how many there are
        else:
            base = kernels.unpack_data(facts.get("base"), under("base.", arrays))
            self._check_width(base)
        total, samples = float(mine["total"]), mine["n_samples"]
        shape = count(base), eigenvalues.size
        if means.shape != shape[:1] or directions.shape != shape or not eigenvalues.size:
            raise ValueError("the components do not have the shape that the examples and eigenvalues say")
        if any(array.dtype != np.float64 for array in (means, directions, eigenvalues)) or eigenvalues.ndim != 1:
            raise ValueError("the components are of another type of numbers than they can be")
        if not (eigenvalues >= 0).all():
            raise ValueError("the eigenvalues are none that components can have")
        self.learned_ = Components(base, means, directions, eigenvalues, total)
        self.n_samples_, self.method_ = samples, mine["method"]
        if facts["params"].get("kernel") is None:  # an object, not text
            self.kernel = copied(self.kernel_)


# ---------------------------------------------------------------------- the two methods


def _exact(kernel: Any, X: Any, P: Any, most: int | None) -> tuple[Components, np.ndarray]:
    """By the eigenvectors of the centred kernel matrix; and the components of the examples."""
    diagonal_of(kernel, P)  # refuses values too large to be added up
    K = np.asarray(kernel.block(P, P), dtype=np.float64)
    if not kernel.always_psd and not np.allclose(K, K.T, rtol=1e-5, atol=1e-8 * float(np.abs(K).max(initial=0.0))):
        raise ValueError(f"{kernel} is not symmetric on these examples, so it has no principal components")
    # Rounding of kernel values, and of their sums, makes eigenvalues up to this size.
    noise = np.finfo(P.dtype).eps * len(P) * float(np.abs(K).max(initial=0.0))
    means = K.mean(axis=0)
    K -= means
    K -= K.mean(axis=1)[:, None]
    K += K.T.copy()
    K /= 2
    total = float(max(0.0, np.trace(K)))
    values, vectors = _largest(K, most, total, kernel, noise)
    vectors = vectors * _signs(vectors)
    base, size = pick(X, np.arange(len(P))), np.sqrt(values)  # copied, because the user may change them
    return Components(base, means, vectors / np.where(size > 0, size, 1.0), values, total), vectors * size


def _by_landmarks(kernel: Any, X: Any, P: Any, most: int | None, size: int, rng: np.random.Generator) -> Components:
    """By the covariance matrix of the features that landmarks give."""
    diagonal = diagonal_of(kernel, P)
    among = np.arange(len(P))
    if len(P) > AMONG * size:
        among = np.sort(rng.choice(len(P), AMONG * size, replace=False))
    rows = np.sort(among[rpcholesky(kernel, P.take(among), size, rng)])
    rows = rows if len(rows) else np.zeros(1, dtype=np.int64)  # all kernel values are 0
    base = pick(X, rows)
    Q = kernel.points(base)
    W, _ = whiten(kernel, Q)
    among = np.asarray(kernel.block(Q, Q), dtype=np.float64)
    shift = among.mean(axis=0)  # near the means, so that little is lost when they are subtracted from the squares
    means, cross = np.zeros(len(Q)), np.zeros((W.shape[1], W.shape[1]))
    for tile in tiles(len(P), len(Q) * 8):
        values = np.asarray(kernel.block(P.take(tile), Q), dtype=np.float64) - shift
        means += values.sum(axis=0)
        features = values @ W
        cross += features.T @ features
    means /= len(P)
    cross -= len(P) * np.outer(means @ W, means @ W)
    means += shift
    total = max(0.0, float(diagonal.sum() - len(P) * np.sum((means @ W) ** 2)))
    noise = np.finfo(P.dtype).eps * len(P) * float(np.abs(diagonal).max(initial=0.0))
    values, vectors = _largest(cross, most, total, kernel, noise)
    directions = W @ vectors
    return Components(
        base, means, directions * _signs((among - means) @ directions), values, max(total, float(values.sum()))
    )


def _largest(K: np.ndarray, most: int | None, total: float, kernel: Any, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues above the noise, in descending order, and their eigenvectors; if there is none, one 0."""
    n = len(K)
    wanted = n if most is None else min(most, n)
    values = None
    if kernel.always_psd and n > SMALL and wanted <= FEW * n and total > noise:
        try:
            values, vectors = eigsh(K, wanted, which="LA", v0=np.random.default_rng(0).normal(size=n))
        except ArpackError:  # it may not converge where eigenvalues are alike
            values = None
    if values is None:
        # Others have to be looked at only where some may be negative.
        some = None if wanted == n or not kernel.always_psd else (n - wanted, n - 1)
        values, vectors = scipy.linalg.eigh(K, subset_by_index=some)
        if len(values) < wanted:  # where all eigenvalues are alike, LAPACK finds none of a part of them
            values, vectors = scipy.linalg.eigh(K)
        lowest, highest = float(values[0]), max(float(values[-1]), 0.0)
        if lowest < -max(INDEFINITE * max(highest, -lowest), 4 * noise):
            raise ValueError(
                f"{kernel} is not positive semi-definite on these examples (eigenvalues of the centred matrix from "
                f"{lowest:g} to {highest:g}), so it has no principal components: choose other parameters"
            )
    order = np.argsort(-values, kind="stable")[:wanted]
    order = order[values[order] > noise]
    if not len(order):
        return np.zeros(1), np.zeros((n, 1))
    return values[order], np.ascontiguousarray(vectors[:, order])  # as files give it back: BLAS rounds by the layout


def _signs(columns: np.ndarray) -> np.ndarray:
    """+1 or -1 for each column, which makes its largest entry positive: the first of those that are as large."""
    size = np.abs(columns)
    first = np.argmax(size >= (1.0 - ALIKE) * size.max(axis=0), axis=0)
    return np.where(columns[first, np.arange(columns.shape[1])] < 0, -1.0, 1.0)
