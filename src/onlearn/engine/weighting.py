"""How much examples count: the weights users give to examples and classes, checked and multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlearn.engine.labels import balanced

HEAVIEST = 1e100  # times the longest step, and the sum of very many such weights, are finite


def check_weights(sample_weight: Any, rows: int, *, sees_all: bool) -> np.ndarray:
    """One weight a row, as floats; a stretch of a stream may be all zeros, a whole data set may not."""
    if sample_weight is None:
        return np.ones(rows)
    weight = _as_numbers(sample_weight, "sample_weight")
    if weight.ndim == 0:
        weight = np.full(rows, float(weight))
    if weight.shape != (rows,):
        raise ValueError(
            f"Sample weights must be 1D, one a row: sample_weight.shape == {weight.shape}, expected ({rows},)"
        )
    if not np.isfinite(weight).all():
        raise ValueError(f"sample_weight contains NaN or infinity in row {int(np.argmin(np.isfinite(weight)))}")
    if (weight < 0).any():
        raise ValueError(f"sample_weight must not be negative; row {int(np.argmin(weight))} has {weight.min():g}")
    check_heaviest(weight, "sample_weight")
    if sees_all and not weight.any():
        raise ValueError("every sample_weight is zero, so there is nothing to learn from")
    return weight


def check_heaviest(weight: np.ndarray, what: str) -> None:
    """Refuse weights that would make steps infinite, saying where the first one is."""
    if not weight.max(initial=0.0) <= HEAVIEST:
        row = int(np.argmin(weight <= HEAVIEST))
        raise ValueError(
            f"{what} is {weight[row]:g} in row {row}, but must be at most {HEAVIEST:g}: "
            "divide all weights by the same number"
        )


def class_weights(given: Any, classes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """A weight a class: those given by label, or what balances the counts."""
    if isinstance(given, str):
        return balanced(counts)
    for label, weight in given.items():
        if _as_numbers(weight, f"class_weight of {label!r}").ndim:
            raise ValueError(f"class_weight of {label!r} must be one number, not {weight!r}")
    weights = _by_label(given, classes)
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError(f"class weights must be numbers of at least 0, and not all 0: {given}")
    return weights


def _by_label(given: dict[Any, Any], classes: np.ndarray) -> np.ndarray:
    """The weight of each class; classes that are not given weigh 1, unless labels are given that are no classes."""
    weights, missing = np.ones(len(classes)), []
    for k, one in enumerate(classes):
        try:
            label: Any = int(one)
        except ValueError:  # a word
            label = str(one)
        if label in given:
            weights[k] = given[label]
        else:
            missing.append(label)
    if missing and given and len(classes) - len(missing) != len(given):
        raise ValueError(f"The classes, {missing}, are not in class_weight")
    return weights


def multiplied(weight: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Weights of examples times those of their classes."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.where(weight > 0, weight * factors, 0.0)
    check_heaviest(product, "sample_weight times the weight of the class")
    return product


def _as_numbers(given: Any, what: str) -> np.ndarray:
    """Anything that holds real numbers, as floats."""
    given = np.asarray(given)
    if given.dtype.kind in "iubf":
        return given.astype(np.float64, copy=False)
    try:
        if given.dtype.kind != "O":  # of text NumPy would make numbers where it can, of complex ones half
            raise TypeError
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must hold numbers, not {given.reshape(-1)[:1].tolist()}") from None
