"""``Features``: a ``FeatureMap`` as a scikit-learn transformer that gives SciPy matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError

from onlearn.engine.csr import CSR
from onlearn.features.feature_map import MATRIX, NOTHING_LEARNED, FeatureMap
from onlearn.features.roles import Role
from onlearn.features.vocabulary import Vocabulary
from onlearn.model_schema import Arrays, as_arrays


class Features(TransformerMixin, BaseEstimator):
    """Learns features from rows of a table, texts, dicts or named features, and turns rows into sparse matrices.

    ``extractors`` is a list of ``Text``, ``Category``, ``Number`` and ``Interaction``, of functions decorated by
    ``@onlearn.feature``, and of the word "auto", which stands for an extractor for every column that no other uses, as
    ``guess_roles`` chooses it from the first rows. A matrix is returned unchanged.

    The vocabulary, the scales and the document counts change in ``fit``, ``partial_fit`` and ``learn_transform`` only.

    >>> from onlearn.features import Category, Number
    >>> features = Features([Category("colour"), Number("size", scale="none")])
    >>> features.fit_transform([{"colour": "red", "size": 2}, {"colour": "blue"}]).toarray()
    array([[1., 2., 0.],
           [0., 0., 1.]], dtype=float32)
    >>> list(features.get_feature_names_out())
    ['colour=red', 'size', 'colour=blue']
    """

    _map: FeatureMap

    def __init__(
        self,
        extractors: Any = "auto",
        *,
        max_names: int = 1 << 21,
        bits: int = 22,
        dtype: Any = "float32",
    ) -> None:
        self.extractors: Any = extractors
        self.max_names: int = max_names
        self.bits: int = bits
        self.dtype: Any = dtype

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any = None) -> Features:
        """Learn from these rows only."""
        self.__dict__.pop("_map", None)
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Features:
        """Learn from more rows."""
        self._learning().learn(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **_: Any) -> sp.csr_matrix:
        """Learn from these rows only, and return their matrix."""
        self.__dict__.pop("_map", None)
        return self.learn_transform(X)

    def learn_transform(self, X: Any, ordered: bool = True) -> sp.csr_matrix:
        """Learn from more rows and return their matrix, with statistics that include these rows.

        If not ``ordered``, the features of a row stay in order of appearance, which takes less time.
        """
        return self._public(X, self._learning().learn_transform(X, ordered), ordered)

    def transform(self, X: Any) -> sp.csr_matrix:
        """The matrix of rows, without features that were not learned.

        A sparse matrix may have more or fewer columns than those learned from; a dense one may not.
        """
        if isinstance(X, np.ndarray) and X.ndim == 2 and self.kind_ == MATRIX and X.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {X.shape[1]} columns, but {self.n_features_in_} were learned from")
        return self._public(X, self._fitted.transform(X), True)

    def _learning(self) -> FeatureMap:
        """The map that learns, with the present parameters; it refuses changes that would have no effect."""
        parameters = self.get_params(deep=False)
        if "_map" not in self.__dict__:
            self._map = FeatureMap(**parameters)
        for name, value in parameters.items():
            setattr(self._map, name, value)
        return self._map

    def _public(self, X: Any, made: CSR, ordered: bool) -> sp.csr_matrix:
        """The result as a SciPy matrix; a matrix X that is unchanged is returned itself."""
        if sp.issparse(X) and X.shape == made.shape:
            return X.tocsr()
        matrix = made.to_scipy()
        if ordered and self.kind_ != MATRIX:
            matrix.has_sorted_indices = matrix.has_canonical_format = True
        return matrix

    # ------------------------------------------------------------------ what was learned

    @property
    def _fitted(self) -> FeatureMap:
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(NOTHING_LEARNED)
        return self._map

    @property
    def kind_(self) -> str:
        """The kind of rows: a matrix, named rows or a table."""
        return str(self._fitted.kind_)

    @property
    def extractors_(self) -> list[Any]:
        """The extractors in use."""
        return self._fitted.extractors_

    @property
    def roles_(self) -> dict[str, Role]:
        """The roles that "auto" has guessed, by column."""
        return self._fitted.roles_

    @property
    def n_seen_(self) -> int:
        """The number of rows learned from."""
        return self._fitted.n_seen_

    @property
    def vocabulary_(self) -> Vocabulary:
        """The names of the features."""
        return self._fitted.vocabulary_

    @property
    def n_features_out_(self) -> int:
        """The present number of features."""
        return self._fitted.n_features_out_

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the first table, or of the widest matrix."""
        if self.kind_ == MATRIX:
            return self._fitted.width_
        return len(self.feature_names_in_)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The columns of the first table."""
        if self._fitted.columns_ is None:
            raise AttributeError("these features were learned from rows without columns")
        return np.array(self._fitted.columns_, dtype=object)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features, by number."""
        return self._fitted.get_feature_names_out()

    def name_of(self, number: int) -> str:
        """The name of one feature."""
        return self._fitted.name_of(number)

    def keep(self, kept: np.ndarray, state: str | None = "drop") -> np.ndarray:
        """Drop all other features and renumber the rest; returns the remaining columns of a matrix or of weights.

        By default no new names are learned afterwards, because dropped ones would return.
        """
        return self._fitted.keep(kept, state)

    def __sklearn_is_fitted__(self) -> bool:
        return "_map" in self.__dict__ and self._map.kind_ is not None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.sparse = tags.input_tags.two_d_array = True
        tags.requires_fit, tags.no_validation = True, True
        return tags

    # ------------------------------------------------------------------ the model file

    def _pack(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return self._fitted.pack()

    def _unpack(self, facts: dict[str, Any], arrays: Arrays) -> None:
        self._map = FeatureMap.restore(facts, arrays)
        self.set_params(**{name: getattr(self._map, name) for name in self.get_params(deep=False)})

    @classmethod
    def _restore(cls, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> Features:
        """The features that were packed."""
        self = cls()
        self._unpack(facts, as_arrays(arrays))
        return self
