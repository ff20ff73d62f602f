"""What a model file says of a learner, held against what a learner can be: no damaged file may load, and then lie."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np


class Kind(NamedTuple):
    """What a fact of the header may be."""

    fits: Callable[[Any], bool]
    wanted: str


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    return is_whole(value) or isinstance(value, float)


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and {"seen", "loss"} <= value.keys() and all(map(is_number, value.values()))


def either(value: Any, kind: Kind) -> Kind:
    """That kind, or a single value."""
    return Kind(lambda given: given is value or kind.fits(given), f"{kind.wanted} or {value!r}")


def a_list(fits: Callable[[Any], bool], of: str) -> Kind:
    return Kind(lambda value: isinstance(value, list) and all(map(fits, value)), f"a list of {of}")


COUNT = Kind(lambda value: is_whole(value) and value >= 0, "a whole number of at least 0")
NUMBER = Kind(is_number, "a number")
TRUTH = Kind(lambda value: isinstance(value, bool), "true or false")
NAMES = a_list(lambda value: isinstance(value, str), "names")
PRECISION = Kind(lambda value: value in ("float64", "float32"), "'float64' or 'float32'")
SHARE = Kind(lambda value: is_number(value) and 0 < value < 1, "a number between 0 and 1")

TRAINING = {
    **dict.fromkeys(("features", "outputs", "capacity", "passes"), COUNT),
    **dict.fromkeys(("classifies", "even"), TRUTH),
    "bias": NUMBER,
    "by_pass": a_list(_is_entry, "passes, each with what was seen and lost"),
    "since": a_list(is_number, "numbers"),
}
ESTIMATOR = {
    "n_features_in": COUNT,
    "feature_names_in": either(None, NAMES),
    "seed": COUNT,
    "dtype": PRECISION,
}


def check_facts(facts: Mapping[str, Any], kinds: Mapping[str, Kind]) -> None:
    """Refuse a header in which something is of another kind than it can be."""
    for name, kind in kinds.items():
        if not kind.fits(facts[name]):
            raise ValueError(f"the header has {reprlib.repr(facts[name])} for {name}, which must be {kind.wanted}")


def check_array(name: str, array: np.ndarray, kinds: str, shape: tuple[int, ...], low: float = -np.inf,
                high: float = np.inf, whole: bool = False) -> None:  # fmt: skip
    """Refuse an array of other kinds of numbers, of another shape, or with values outside of a range."""
    if array.dtype.name not in kinds.split() or array.shape != shape:
        raise ValueError(f"{name} does not have the shape or type that this learner has")
    if (array < low).any() or (array > high).any() or (whole and (array != np.floor(array)).any()):
        raise ValueError(
            f"{name} holds what it cannot hold: values must be {'whole and ' * whole}from {low:g} to {high:g}"
        )


def check_labels_differ(labels: np.ndarray) -> None:
    """Refuse classes that are not a plain list of different labels, all words or all numbers."""
    known = labels.dtype.kind in "iufbU" or all(isinstance(label, (str, int, float)) for label in labels.ravel())
    if labels.ndim != 1 or not known or len({isinstance(label, str) for label in labels.tolist()}) > 1:
        raise ValueError("the classes are not a list of words or of numbers")
    if len(set(labels.tolist())) < len(labels):
        raise ValueError("the classes hold a label twice")
