"""Random projection: fewer columns that preserve distances and inner products, within eps, with high probability.

x -> R x, with R Gaussian (Johnson and Lindenstrauss 1984; entries N(0, 1/D)), or sparse (Achlioptas 2003; Li, Hastie
and Church 2006: entries +-1/sqrt(s D) with probability s, the density, else 0).

scikit-learn draws the matrix, and SciPy multiplies it where it is sparse enough, in threads. Otherwise dense rows are
multiplied by the BLAS, zeros included, and sparse rows by the compiled loops of the linear learners, in threads: both
are faster.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.random_projection import (
    GaussianRandomProjection,
    SparseRandomProjection,
    johnson_lindenstrauss_min_dim,
)
from sklearn.utils.validation import check_is_fitted

from onlearn.engine.passes import warn_caller
from onlearn.estimators.transformer import WIDTH, NumericTransformer, check_whole_number, draw_seed, multiply, tiles
from onlearn.model_schema import SEED, Arrays, Record, check_facts, finite, whole
from onlearn.threads import cores, over_pieces

BLAS_GAIN = 4  # multiplications of the BLAS in the time of one of a sparse product, at least
ROWS = 512  # for each thread at least: a product walks through the whole matrix, however few rows there are
MOST_BYTES = 1 << 27  # that a sparse matrix may take as a dense one


class RandomProjection(NumericTransformer):
    """Project rows on ``n_components`` random directions.

    ``n_components="auto"``: as many as keep the distances of all pairs of fitted rows within a factor 1 +- ``eps``.
    Where there are fewer columns than that, the directions are the columns themselves, which keep them exactly.
    ``density=None``: a dense Gaussian matrix; a number in (0, 1], or "auto" for 1/sqrt(columns): a sparse matrix of
    +-1 with that share of non-zeros (1/3 is Achlioptas'). The projected rows are dense.

    >>> X = np.eye(3, 1000)
    >>> RandomProjection(200, random_state=0).fit_transform(X).shape
    (3, 200)
    """

    components_: Any
    n_components_: int
    density_: float

    def __init__(
        self, n_components: Any = "auto", *, eps: float = 0.1, density: Any = None, random_state: Any = None
    ) -> None:
        self.n_components = n_components
        self.eps = eps
        self.density = density
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RandomProjection:
        """Draw the directions; only the number and the width of the rows matter."""
        X = self._check_rows(X, reset=True)
        return self._draw(X.shape[0], X.shape[1])

    def partial_fit(self, X: Any, y: Any = None) -> RandomProjection:
        """Draw the directions at the first batch; only check later ones."""
        fresh = not hasattr(self, "components_")
        if fresh and isinstance(self.n_components, str):
            raise ValueError("n_components='auto' depends on the number of rows: give a number for partial_fit")
        X = self._check_rows(X, reset=fresh)
        return self._draw(X.shape[0], X.shape[1]) if fresh else self

    def _draw(self, rows: int, width: int) -> RandomProjection:
        count, density = self._count(rows, width), self._check_density(width)
        self._seed = draw_seed(self.random_state)
        self._clear_casts()
        if count is None:
            self.components_ = sp.csr_matrix(sp.identity(width))
            self.n_components_, self.density_ = width, 1.0 / width
            return self
        settings: dict[str, Any] = dict(n_components=count, random_state=self._seed)
        if density is None:
            maker = GaussianRandomProjection(**settings)
        else:
            maker = SparseRandomProjection(density=density, **settings)
        convert = np.asarray if density is None else sp.csr_matrix
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are more components than columns: the user asked for it
            maker.fit(sp.csr_matrix((1, width)))  # which uses only the width
        self.components_ = convert(maker.components_)
        self.n_components_, self.density_ = count, 1.0 if density is None else density
        return self

    def _count(self, rows: int, width: int) -> int | None:
        """How many directions to draw; None if the columns are fewer than would be needed."""
        if not isinstance(self.n_components, str):
            return check_whole_number(self.n_components, "n_components")
        if self.n_components != "auto":
            raise ValueError(f"n_components must be 'auto' or a whole number of at least 1, not {self.n_components!r}")
        if not isinstance(self.eps, (int, float, np.floating)) or not 0 < self.eps < 1:
            raise ValueError(f"eps must be a number above 0 and below 1, not {self.eps!r}")
        count = max(1, int(johnson_lindenstrauss_min_dim(n_samples=rows, eps=self.eps)))
        if count <= width:
            return count
        warn_caller(
            f"eps={self.eps:g} and {rows} rows need n_components={count}, which is more than the {width} features X "
            "has: they are left as they are; for fewer columns give a larger eps, or a number",
            UserWarning,
        )
        return None

    def _check_density(self, width: int) -> float | None:
        if self.density is None:
            return None
        if isinstance(self.density, str) and self.density == "auto":
            return 1.0 / np.sqrt(width)
        number = isinstance(self.density, (int, float, np.floating)) and not isinstance(self.density, bool)
        if not number or not 0 < self.density <= 1:
            raise ValueError(f"density must be None, 'auto' or a number above 0 and up to 1, not {self.density!r}")
        return float(self.density)

    def transform(self, X: Any) -> np.ndarray:
        """The projections of the rows."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        out = np.empty((X.shape[0], self.n_components_), X.dtype)
        if not sp.issparse(self.components_) or (not sp.issparse(X) and self._as_dense(X)):
            W = self._cast("dense", X.dtype, lambda: self._transposed(X.dtype))
            for tile in tiles(X.shape[0], out.shape[1] * out.itemsize):
                multiply(X[tile], W, out[tile])
            return out
        R = self._cast("sparse", X.dtype, lambda: sp.csr_matrix(self.components_.T.astype(X.dtype)))

        def project(start: int, stop: int) -> None:  # SciPy lets several threads multiply
            for tile in tiles(stop - start, 2 * out.shape[1] * out.itemsize):
                some = slice(start + tile.start, start + tile.stop)
                part = X[some] @ R
                if sp.issparse(part):
                    part.toarray(out=out[some])
                else:
                    out[some] = part

        rows = X.shape[0]
        pieces = max(1, min(cores(), rows // ROWS))
        over_pieces(lambda n: project(rows * n // pieces, rows * (n + 1) // pieces), pieces, pieces)
        return out

    def _as_dense(self, X: Any) -> bool:
        """Whether the BLAS multiplies dense rows faster by the dense form of a sparse matrix."""
        return self.density_ * BLAS_GAIN > 1 and self.n_components_ * X.shape[1] * X.itemsize <= MOST_BYTES

    def _transposed(self, dtype: Any) -> np.ndarray:
        """The transposed matrix, dense."""
        R = self.components_
        return np.ascontiguousarray((R.toarray() if sp.issparse(R) else R).T, dtype=dtype)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        R = self.components_
        mine = {"seed": self._seed, "density": float(self.density_), "n_components": self.n_components_}
        arrays = {"data": R.data, "indices": R.indices, "indptr": R.indptr} if sp.issparse(R) else {"components": R}
        return {"width": self._pack_columns(), "projection": mine}, arrays

    _FILED: ClassVar[Record] = Record(
        width=WIDTH, projection=Record(n_components=whole(1), seed=SEED, density=finite(0, 1))
    )

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        check_facts(facts, self._FILED)
        self._unpack_columns(facts["width"])
        mine = facts["projection"]
        shape = (mine["n_components"], self.n_features_in_)
        self._seed, self.density_, self.n_components_ = mine["seed"], float(mine["density"]), shape[0]
        if "components" in arrays:
            self.components_ = arrays["components"]
        else:
            self.components_ = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            self.components_.check_format(full_check=True)
        if self.components_.shape != shape:
            raise ValueError(f"the projection has shape {self.components_.shape}, not {shape}")
