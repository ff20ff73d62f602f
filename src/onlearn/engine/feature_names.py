"""The names of features: rows that are mappings from name to value become columns and numbers.

A number or a Boolean is the value of the feature of its name. A string is a category: the feature ``name=string`` has
the value 1. A learner that grows takes in names as they come, up to ``max_names``; the names beyond share further
columns by their hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from onlearn.engine.spec import did_you_mean

PLAIN = frozenset((float, int, bool))


class FeatureNames:
    """Names and their columns, in the order in which they came.

    >>> names = FeatureNames(["size"], limit=2)
    >>> names.add(["colour=red"]), names.columns
    (2, {'size': 0, 'colour=red': 1})
    >>> names.add(["colour=blue"])  # which has a hashed column, as all names from here on
    4
    >>> 2 <= names.column("colour=green") < 4
    True
    """

    def __init__(self, names: Iterable[str], limit: int, hashed: bool = False) -> None:
        self.columns: dict[str, int] = {name: k for k, name in enumerate(names)}
        self.limit = max(limit, len(self.columns))
        self.hashed = hashed  # whether names beyond the limit have come
        self._array: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def places(self) -> int:
        """The columns that names beyond the limit share: as many as there are names, as a power of two."""
        return 1 << (self.limit - 1).bit_length()

    @property
    def width(self) -> int:
        """The columns of a row."""
        return len(self.columns) + (self.places if self.hashed else 0)

    def array(self) -> np.ndarray:
        """The names by column; hashed columns are called ``hashed 0``, ``hashed 1`` and so on."""
        if self._array is None or len(self._array) != self.width:
            hashed = (f"hashed {k}" for k in range(self.width - len(self.columns)))
            self._array = np.array([*self.columns, *hashed], dtype=object)
        return self._array

    def column(self, name: str) -> int:
        """The column of a name; -1 if it is not known."""
        found = self.columns.get(name, -1)
        return self._hash(name) if found < 0 and self.hashed else found

    def _hash(self, name: str) -> int:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return self.limit + int.from_bytes(digest, "little") % self.places

    def add(self, names: Iterable[str]) -> int:
        """Take in names that are not known; returns the width with them."""
        for name in names:
            if len(self.columns) < self.limit:
                self.columns.setdefault(name, len(self.columns))
            elif name not in self.columns:
                self.hashed = True
        return self.width

    def remove(self, count: int, hashed: bool) -> None:
        """Undo ``add``: forget names that came last, so that so many remain."""
        while len(self.columns) > count:
            self.columns.popitem()
        self.hashed = hashed


def named_values(row: Mapping[str, Any]) -> dict[str, float]:
    """The features of a mapping by name; values of one name are summed."""
    made: dict[str, float] = {}
    for key, value in row.items():
        if type(key) is not str and not isinstance(key, str):
            raise TypeError(f"the names of features are strings, not {key!r} ({type(key).__name__})")
        if isinstance(value, str):
            name, number = f"{key}={value}", 1.0
        else:
            name, number = key, as_number(key, value)
        made[name] = made[name] + number if name in made else number
    return made


def as_number(name: str, value: Any) -> float:
    """The value of a feature, which must be a finite number."""
    if type(value) not in PLAIN and not isinstance(value, (Real, np.bool_, np.number)):
        hint = "leave it out where it is missing" if value is None else "give a number, a string or a Boolean"
        raise TypeError(f"the feature {name!r} is {value!r} ({type(value).__name__}): {hint}")
    try:
        number = float(value)
    except (OverflowError, TypeError):
        raise ValueError(f"the feature {name!r} holds a number that float64 cannot: scale it") from None
    if not math.isfinite(number):
        what = "NaN" if math.isnan(number) else "infinity"
        raise ValueError(f"the feature {name!r} is {what}: leave it out, or fill the value in")
    return number


def refuse_unknown(name: str, names: FeatureNames) -> None:
    """Refuse a name that is not known, for a learner that does not grow."""
    raise ValueError(
        f"the feature {name!r} is not among those learned from, and only a learner with grow=True or grow='features' "
        f"takes in new ones{did_you_mean(name, list(names.columns))}"
    )
