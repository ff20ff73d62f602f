"""What the transformers here share: rows checked, products in tiles, seeds, and their part of the model file."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from onlearn.engine import csr, inputs
from onlearn.engine.scoring import linear_scores
from onlearn.kernels.products import refuse_strings

TILE = 1 << 24  # bytes of a tile: small beside the whole, large enough for the BLAS and the threads


@inputs.huge_numbers_told
def checked_rows(transformer: Any, X: Any, reset: bool) -> Any:
    """X as a finite float array or CSR matrix of the right width, without copying one that is."""
    refuse_strings(X, type(transformer).__name__)
    names = inputs.column_names(X)
    X = inputs.plain_table(X)
    kinds = inputs.number_types(X)
    X = validate_data(transformer, X, reset=reset, accept_sparse="csr", dtype=kinds, ensure_all_finite=False)
    if names and reset:
        transformer.feature_names_in_ = np.array(names, dtype=object)
    csr.check_finite(X, getattr(transformer, "feature_names_in_", None))
    return X


def drawn_seed(random_state: Any) -> int:
    """A number that the same random_state gives again; kept, so that a stored transformer knows what it was."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def whole_number(value: Any, name: str, least: int = 1) -> int:
    """The value as an int; or a sentence that says what it should have been."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return int(value)


def tiles(rows: int, bytes_a_row: int) -> Iterator[slice]:
    """Ranges of rows of a few megabytes each."""
    size = max(1, TILE // max(1, bytes_a_row))
    for start in range(0, rows, size):
        yield slice(start, min(rows, start + size))


def multiply(X: Any, W: np.ndarray, out: np.ndarray) -> None:
    """out = X W for dense or sparse rows X, in their precision; out may be part of wider rows."""
    if sp.issparse(X):
        out[:] = linear_scores(X, W, np.zeros(W.shape[1]))[0]
    else:
        np.matmul(X, W, out=out)


def pack_width(transformer: Any) -> dict[str, Any]:
    """What it knows of the columns of its input, as JSON."""
    names = getattr(transformer, "feature_names_in_", None)
    return {
        "n_features_in": getattr(transformer, "n_features_in_", None),
        "feature_names_in": None if names is None else [str(name) for name in names],
    }


def unpack_width(transformer: Any, facts: dict[str, Any]) -> None:
    if facts["n_features_in"] is not None:
        transformer.n_features_in_ = int(facts["n_features_in"])
    if facts["feature_names_in"] is not None:
        transformer.feature_names_in_ = np.array(facts["feature_names_in"], dtype=object)


class Numeric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer of rows of numbers, dense or sparse, that keeps their precision and can be saved."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def save(self, path: Any) -> None:
        """Write what was fitted to a ``.onl`` file."""
        save(self, path)

    def __getstate__(self) -> Any:
        # what is made again when it is needed is not pickled
        return {key: value for key, value in super().__getstate__().items() if key != "_casts"}


def save(transformer: Any, path: Any) -> None:
    """Write a fitted transformer to a model file."""
    from onlearn import model_file

    check_is_fitted(transformer)
    model_file.save(transformer, path)


def cast(transformer: Any, name: str, dtype: Any, make: Any) -> Any:
    """An array made of what was fitted, in the precision of the data; kept, for every batch of a stream needs it."""
    kept = transformer.__dict__.setdefault("_casts", {})
    key = (name, np.dtype(dtype).name)
    if key not in kept:
        kept[key] = make()
    return kept[key]
