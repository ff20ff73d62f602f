"""What the approximations share: a base class of transformers of numeric rows, and functions for seeds and tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onlearn import kernels, model_file
from onlearn.dual.examples import count
from onlearn.engine import csr, inputs
from onlearn.engine.scoring import linear_scores
from onlearn.estimators.base import KERNEL, NestedEstimator
from onlearn.kernels.products import refuse_strings
from onlearn.model_schema import COUNT, NAMES, Record, either

TILE = 1 << 24  # bytes of a tile: small beside the whole, large enough for the BLAS and the threads


class NumericTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, NestedEstimator):
    """A transformer of rows of numbers, dense or sparse, that keeps their precision and can be saved."""

    n_features_in_: int
    feature_names_in_: np.ndarray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: Any) -> None:
        """Write the fitted transformer to a ``.onl`` file."""
        check_is_fitted(self)
        model_file.save(self, path)

    @inputs.huge_numbers_told
    def _check_rows(self, X: Any, reset: bool) -> Any:
        """X as a finite float array or CSR matrix of the right width; one that is so already is not copied."""
        refuse_strings(X, type(self).__name__)
        names = inputs.column_names(X)
        X = inputs.plain_table(X)
        types = inputs.number_types(X)
        X = validate_data(self, X, reset=reset, accept_sparse="csr", dtype=types, ensure_all_finite=False)
        if names and reset:
            self.feature_names_in_ = np.array(names, dtype=object)
        csr.check_finite(X, self.__dict__.get("feature_names_in_"))
        return X

    # ------------------------------------------------------------------ arrays in the precision of the data

    def _cast(self, name: str, dtype: Any, make: Callable[[], Any]) -> Any:
        """An array made of what was fitted, in the precision of the data; kept, because every batch needs it."""
        kept = self.__dict__.setdefault("_casts", {})  # which is not pickled
        key = (name, np.dtype(dtype).name)
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def _clear_casts(self) -> None:
        """Forget the arrays of an earlier fit."""
        self._casts: dict[Any, Any] = {}  # here, because ``transform`` must not add attributes

    def __getstate__(self) -> Any:
        return {key: value for key, value in super().__getstate__().items() if key != "_casts"}

    # ------------------------------------------------------------------ the model file

    def _pack_columns(self) -> dict[str, Any]:
        """The number and names of the input columns, as JSON."""
        names = self.__dict__.get("feature_names_in_")
        return {
            "n_features_in": self.__dict__.get("n_features_in_"),
            "feature_names_in": None if names is None else [str(name) for name in names],
        }

    def _unpack_columns(self, facts: dict[str, Any]) -> None:
        """What ``_pack_columns`` gave, which the ``_FILED`` of each transformer has as ``width``."""
        count, names = facts["n_features_in"], facts["feature_names_in"]
        if names is not None and len(names) != count:
            raise ValueError(f"{len(names)} names do not go with {count} columns")
        if count is not None:
            self.n_features_in_ = count
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)


WIDTH = Record(n_features_in=either(None, COUNT), feature_names_in=either(None, NAMES))


class KernelTransformer(NumericTransformer):
    """A transformer of whatever a kernel compares: rows of numbers, strings, trees."""

    _families: ClassVar[dict[str, Any]] = KERNEL
    kernel: Any

    def _check_width(self, examples: Any) -> None:
        """Refuse examples of a model file that are rows of another width than the file says."""
        width = self.__dict__.get("n_features_in_")
        if hasattr(examples, "shape") and examples.shape[1] != width:
            raise ValueError(f"the examples have {examples.shape[1]} columns, but the rows have {width}")

    def _check_examples(self, X: Any, kernel: Any, reset: bool) -> Any:
        """Examples of which some can be picked; the kernel checks the rest."""
        if kernel.data in ("vectors", "matrix"):
            refuse_strings(X, kernel)
            return self._check_rows(X, reset)
        if isinstance(X, (str, bytes)):
            raise TypeError("X must be a list of examples, not one text: put it in a list")
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        elif not csr.is_sparse(X) and not (isinstance(X, np.ndarray) and X.ndim == 2):
            X = list(X)
        if not count(X):
            raise ValueError("X has no examples: at least one is needed")
        return X

    def _takes_matrices(self) -> bool:
        """Whether examples are rows of a kernel matrix."""
        try:
            return bool(kernels.get(self.kernel).data == "matrix")
        except (TypeError, ValueError):  # a wrong spelling is reported by fit
            return False


def in_precision(X: Any, dtype: Any) -> Any:
    """Examples of numbers in a precision; others unchanged."""
    return X.astype(dtype, copy=False) if hasattr(X, "astype") and X.dtype.kind == "f" else X


def draw_seed(random_state: Any) -> int:
    """A seed that the same random_state gives again; stored, so that a loaded transformer can continue."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_whole_number(value: Any, name: str, least: int = 1) -> int:
    """The value as an int; an error if it is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def tiles(rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Ranges of rows of a few megabytes each."""
    size = max(1, TILE // max(1, bytes_per_row))
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def multiply(X: Any, W: np.ndarray, out: np.ndarray) -> None:
    """Set out to X W for dense or sparse rows X, in their precision; out may be part of wider rows."""
    if csr.is_sparse(X):
        out[:] = linear_scores(X, W, np.zeros(W.shape[1]))[0]
    else:
        np.matmul(X, W, out=out)
