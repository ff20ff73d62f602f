"""Rows and targets as users pass them in: scikit-learn's checks, and what it does not look at."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import column_or_1d, validate_data

from onlearn.engine import csr, inputs
from onlearn.engine.labels import from_nullable

names_of_columns = inputs.names_of_columns


def is_csr(X: Any) -> bool:
    """Whether X is in sparse rows of ours, which are checked by the learner."""
    return isinstance(X, csr.CSR)


@inputs.huge_numbers_told
def check_rows(
    estimator: Any, X: Any, *, first: bool, names: Any, grow: bool | str, other_width: bool
) -> tuple[Any, list[str] | None]:
    """X as a float array or CSR matrix, and the names of its columns.

    ``first`` if nothing is known of the columns yet, else ``names`` are those that are known; ``other_width`` if there
    are more or fewer columns, for a learner that grows.
    """
    found = inputs.names_of_columns(X) if first or other_width else inputs.column_names(X)
    if found and not first:
        check_names(found, names, grow)
    X = inputs.plain_table(X)
    how: Any = {"accept_sparse": "csr", "dtype": inputs.number_types(X), "ensure_all_finite": False}
    if first or found or other_width:  # where scikit-learn would miss the names, or refuse the width
        X = check_array(X, input_name="X", estimator=estimator, **how)
    else:
        X = validate_data(estimator, X, reset=False, **how)
    return X, found


def check_names(names: list[str], known: Any, grow: bool | str) -> None:
    """Refuse a table with other columns than those learned from, or in another order.

    With grow there may be fewer, or more after those known.
    """
    if known is None:
        return
    count = min(len(names), len(known)) if grow else max(len(names), len(known))
    for n in range(count):
        given, wanted = (str(some[n]) if n < len(some) else None for some in (names, known))
        if given != wanted:
            raise ValueError(
                f"The feature names should match those that were passed during fit: column {n} is {given!r}, "
                f"but was {wanted!r}"
            )


def check_column(y: Any, what: str, who: str) -> np.ndarray:
    """Labels or numbers as a plain array, one a row."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    if type(y) is np.ndarray and y.ndim == 1:  # finding out takes longer than learning from a few rows
        return y
    return np.asarray(column_or_1d(from_nullable(y, what), warn=True))
