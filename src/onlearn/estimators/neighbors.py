"""k nearest neighbours as estimators: a classifier and a regression."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from onlearn import kernels
from onlearn.engine.compositions import FAMILIES, Composition
from onlearn.engine.inputs import names_of_columns
from onlearn.estimators.base import KERNEL, IncrementalClassifier, IncrementalRegressor, LearnerEstimator, check_names
from onlearn.neighbors.categories import has_categories
from onlearn.neighbors.learner import COMPARED
from onlearn.neighbors.settings import KNN_CLASSIFIER, KNN_REGRESSOR


class NeighborEstimator(LearnerEstimator):
    """What the classifier and the regression share."""

    _families: ClassVar[dict[str, Any]] = {**FAMILIES, **KERNEL}
    k: Any
    kernel: Any
    metric: str

    def _check_rows(self, X: Any, first: bool) -> tuple[Any, list[str] | None]:
        """Rows of numbers checked; tables with categories, and examples of other kinds, the learner checks."""
        kernel = self.kernel if first else self._learner.kernel
        if kernel is not None and kernels.get(kernel).data not in ("vectors", "matrix"):
            return X, None
        if kernel is None and self.metric in COMPARED and has_categories(X):
            names = names_of_columns(X)
            if not first and names is not None:
                check_names(names, getattr(self, "feature_names_in_", None), self.grow)
            return X, names
        return super()._check_rows(X, first)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        with suppress(TypeError, ValueError):  # a wrong spelling is reported by fit
            of_texts = self.kernel is not None and kernels.get(self.kernel).data not in ("vectors", "matrix")
            tags.input_tags.string, tags.input_tags.two_d_array = of_texts, not of_texts
        return tags

    def kneighbors(self, X: Any = None, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Distances and numbers of the k nearest rows of each row of X, the nearest first.

        Rows at the same distance come by their number. Numbers count the rows learned from, from 0; after ``fit`` they
        are row numbers of its X. Without X, the neighbours of each row kept are found, itself left out.
        """
        if X is None:
            return self._begun().kneighbors(None, k)
        learner, X = self._fitted(X)
        return learner.kneighbors(X, k)

    @property
    def k_(self) -> int:
        """How many neighbours vote."""
        return int(self._known("k_"))

    @property
    def k_path_(self) -> list[tuple[int, float]]:
        """Of ``k="auto"``: every k and its error, when each row is left out in turn."""
        return list(self._known("k_path_"))

    @property
    def engine_(self) -> str:
        """How neighbours are searched: "exact", or by FAISS, and whether some may be missed."""
        return str(self._known("engine_"))


class KNNClassifier(NeighborEstimator, IncrementalClassifier):
    """Predicts the class that most of the k nearest rows have.

    Rows at the same distance are taken in the order in which they were learned; at equal votes the first class of
    ``classes_`` wins. ``predict_proba`` gives the shares of the votes.

    Parameters
    ----------
    k : int or "auto"
        How many neighbours vote. "auto" is the k with the fewest mistakes when each row is left out in turn, found from
        one search: ``k_`` and ``k_path_``. Where fewer rows are kept, all of them vote.
    weights : "uniform" or "distance"
        Whether all neighbours count alike, or by 1 / distance; those at distance 0 then outvote all others.
    metric : "mixed", "euclidean", "manhattan", "cosine" or "hamming"
        "mixed" is Euclidean for numbers, and counts the categories that differ.
    kernel : Kernel, its formula or None
        Instead of a metric: the distance in the feature space of the kernel, also for strings and trees.
    scale : bool
        Whether columns of numbers are brought to mean 0 and variance 1, as they are in the rows kept. Columns of
        nothing but 0 and 1 are Booleans, and stay; "hamming" and kernels take all columns as they are.
    categorical : list of names or numbers of columns, or None
        Columns of categories; those of a table that hold words are found.
    column_weights : list of one number a column, dict by names or numbers of columns, or None
        How much each column counts.
    k_max : int
        The largest k that "auto" tries.
    window : int or None
        How many of the latest rows are kept.
    engine : "exact", "faiss" or "auto"
        "faiss" searches with that package, which with very many rows may miss neighbours (``engine_`` says so); "auto"
        does so from a million rows on, if it is installed.
    grow : bool or "features"
        Whether ``partial_fit`` takes in classes and features it has not seen before; or features only.
    max_names : int
        With ``grow``, the names of features that ``learn_one`` takes in; names beyond share as many columns by hash.

    ``sample_weight`` multiplies the votes of a row; one without weight is no neighbour.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from onlearn import KNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KNNClassifier(k="auto").fit(X, y)
    >>> model.k_, round(min(error for k, error in model.k_path_), 3)
    (16, 0.027)
    >>> distances, numbers = model.kneighbors(X[:1], 3)
    >>> numbers.tolist()
    [[0, 17, 27]]
    """

    _composition: ClassVar[Composition] = KNN_CLASSIFIER

    def __init__(
        self,
        k: int | str = 5,
        weights: str = "uniform",
        metric: str = "mixed",
        kernel: Any = None,
        scale: bool = True,
        categorical: Any = None,
        column_weights: Any = None,
        k_max: int = 50,
        window: int | None = None,
        engine: str = "exact",
        grow: bool = False,
        max_names: int = 1 << 21,
    ) -> None:
        self.k = k
        self.weights = weights
        self.metric = metric
        self.kernel = kernel
        self.scale = scale
        self.categorical = categorical
        self.column_weights = column_weights
        self.k_max = k_max
        self.window = window
        self.engine = engine
        self.grow: bool = grow
        self.max_names = max_names


class KNNRegressor(NeighborEstimator, IncrementalRegressor):
    """Predicts the mean of the k nearest rows.

    The parameters are those of ``KNNClassifier``. With ``weights="distance"`` the mean is weighted by 1 / distance;
    ``k="auto"`` is the k of the least mean squared error when each row is left out in turn.

    >>> import numpy as np
    >>> from onlearn import KNNRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = KNNRegressor(k="auto").fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3), np.sin(1.5).round(3)
    (array([0.997]), np.float64(0.997))
    """

    _composition: ClassVar[Composition] = KNN_REGRESSOR

    def __init__(
        self,
        k: int | str = 5,
        weights: str = "uniform",
        metric: str = "mixed",
        kernel: Any = None,
        scale: bool = True,
        categorical: Any = None,
        column_weights: Any = None,
        k_max: int = 50,
        window: int | None = None,
        engine: str = "exact",
        grow: bool = False,
        max_names: int = 1 << 21,
    ) -> None:
        self.k = k
        self.weights = weights
        self.metric = metric
        self.kernel = kernel
        self.scale = scale
        self.categorical = categorical
        self.column_weights = column_weights
        self.k_max = k_max
        self.window = window
        self.engine = engine
        self.grow: bool = grow
        self.max_names = max_names
