"""Checks of what users give to naive Bayes: kinds of columns, priors, and values that a kind cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlearn.bayes import kinds
from onlearn.engine import csr

IN_MIXED = ("multinomial", "bernoulli", "gaussian")  # likelihoods, which multiply; the complement's weights are none


def is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def listed(given: Any) -> list[Any] | None:
    """A parameter that is a list, in plain Python; None if there is none."""
    return None if given is None else np.asarray(given).tolist()


def check_kinds(given: Any) -> None:
    """Refuse kinds of columns that there are not."""
    if given is None:
        return
    sequence = isinstance(given, (Sequence, np.ndarray)) and not isinstance(given, str)
    if not sequence and not isinstance(given, Mapping):
        raise ValueError(f"kinds must be a list or a dict of kinds, or None, not {given!r}")
    for one in given.values() if isinstance(given, Mapping) else given:
        if one not in IN_MIXED:
            why = ", for its weights are no likelihood" if one == "complement" else ""
            raise ValueError(f"a column of kinds may be {', '.join(map(repr, IN_MIXED))}, not {one!r}{why}")


def column_kinds(given: Any, features: int, names: list[str] | None, usual: str) -> list[str]:
    """The kind of each column."""
    if not isinstance(given, Mapping):
        if len(given) != features:
            raise ValueError(f"kinds lists {len(given)} columns, but X has {features}")
        return [str(one) for one in given]
    made: list[str | None] = [None if usual not in IN_MIXED else usual] * features
    places = {} if names is None else {name: place for place, name in enumerate(names)}
    for column, kind in given.items():
        place = places.get(column) if isinstance(column, str) else column
        if place is None or isinstance(place, bool) or not 0 <= place < features:
            there = f"the {features} columns of X" if names is None else ", ".join(names[:12])
            raise ValueError(f"kinds names the column {column!r}, which is none of {there}")
        made[place] = kind
    if None in made:
        place = made.index(None)
        name = f"column {place}" if names is None else repr(names[place])
        raise ValueError(f"kinds says nothing of {name}, and kind={usual!r} is no kind of a column: name it in kinds")
    return [str(one) for one in made]


def check_columns(given: Any, sources: list[tuple[str, str]]) -> None:
    """Refuse kinds that do not go with rows from files, which ``sources`` says what they are made of."""
    if given is None:
        return
    if not isinstance(given, Mapping) or ("matrix", "") in sources:
        raise ValueError("from files kinds is a dict by the names of a table's columns: others have one kind")
    columns = sorted({name for source, name in sources if name and source not in ("named", "flag")})
    for name in given:
        if columns and name not in columns:
            raise ValueError(f"kinds names the column {name!r}, which is none of {', '.join(columns[:12])}")


def check_prior(given: Any, classes: int | None) -> None:
    """Refuse priors that are no probabilities, or not of so many classes."""
    if given is None:
        return
    prior = np.asarray(given)
    if prior.ndim != 1 or prior.dtype.kind not in "fiu" or not (prior >= 0).all() or abs(prior.sum() - 1.0) > 1e-8:
        raise ValueError(f"class_prior must be a list of probabilities that sum to 1, not {given!r}")
    if classes is not None and len(prior) != classes:
        raise ValueError(f"class_prior has {len(prior)} numbers, but there are {classes} classes: give one for each")


def refuse_values(X: Any, columns: np.ndarray | None, wrong: Any, why: str, check: Any = None) -> None:
    """Refuse values of some columns, saying where the first one is."""
    values = X.data if csr.is_sparse(X) else X
    if check is None:
        bad = bool(wrong(values).any()) if columns is None or csr.is_sparse(X) else bool(wrong(X[:, columns]).any())
    else:
        bad = check(values)
    if not bad:
        return
    mine = np.ones(X.shape[1], bool)
    if columns is not None:
        mine[:] = False
        mine[columns] = True
    if csr.is_sparse(X):
        found = np.flatnonzero(wrong(X.data) & mine[X.indices])
        if not len(found):
            return
        row = int(np.searchsorted(X.indptr, found[0], side="right")) - 1
        column, value = int(X.indices[found[0]]), X.data[found[0]]
    else:
        places = np.argwhere(wrong(X) & mine)
        if not len(places):
            return
        row, column = (int(one) for one in places[0])
        value = X[row, column]
    kind = "Negative values in data passed to NaiveBayes: " if value < 0 else ""
    raise ValueError(f"{kind}row {row}, column {column} holds {value:g}, but {why}")


def too_large(values: np.ndarray) -> bool:
    """Whether a value may be too large: its square shows in the sum."""
    if values.dtype == np.float32:
        return False
    if not (values.flags.c_contiguous or values.flags.f_contiguous):
        return bool(np.abs(values).max(initial=0.0) > kinds.LARGEST)
    flat = values.ravel(order="K")
    with np.errstate(over="ignore"):
        return not flat @ flat <= kinds.LARGEST**2
