"""The names of features: rows that are mappings from name to value become columns and numbers.

A number or a Boolean is the value of the feature of its name. A string is a category: the feature ``name=string`` has
the value 1. A learner that grows takes in names as they come, up to ``max_names``; the names beyond share further
columns by their hash.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from onlearn.engine.spec import did_you_mean


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
        self.names: list[str] = list(names)
        self.columns: dict[str, int] = {}  # of a name that a table has twice, the first
        for column, name in enumerate(self.names):
            self.columns.setdefault(name, column)
        self.limit: int = max(limit, len(self.names))
        self.hashed: bool = hashed  # whether names beyond the limit have come
        self._array: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, column: int) -> str:
        return self.names[column] if column < len(self.names) else f"hashed {column - len(self.names)}"

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def places(self) -> int:
        """The columns that names beyond the limit share: as many as there are names, as a power of two."""
        return 1 << (self.limit - 1).bit_length()

    @property
    def width(self) -> int:
        """The columns of a row."""
        return len(self.names) + (self.places if self.hashed else 0)

    def array(self) -> np.ndarray:
        """The names by column; hashed columns are called ``hashed 0``, ``hashed 1`` and so on."""
        if self._array is None or len(self._array) != self.width:
            self._array = np.array([self[column] for column in range(self.width)], dtype=object)
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
            if name in self.columns:
                continue
            if len(self.names) < self.limit:
                self.columns[name] = len(self.names)
                self.names.append(name)
            else:
                self.hashed = True
        return self.width

    def remove(self, count: int, hashed: bool) -> None:
        """Undo ``add``: forget names that came last, so that so many remain."""
        for name in self.names[count:]:
            del self.columns[name]
        del self.names[count:]
        self.hashed = hashed


def named_values(row: Mapping[str, Any]) -> dict[str, float]:
    """The features of a mapping by name; values of one name are summed."""
    made: dict[str, float] = {}
    for key, value in row.items():
        if not isinstance(key, str):
            raise TypeError(f"the names of features are strings, not {key!r} ({type(key).__name__})")
        if isinstance(value, str):
            name, number = f"{key}={value}", 1.0
        else:
            name, number = key, as_number(key, value)
        made[name] = made[name] + number if name in made else number
    return made


def as_number(name: str, value: Any) -> float:
    """The value of a feature, which must be a finite number."""
    if not hasattr(value, "__float__") or isinstance(value, (np.complexfloating, np.timedelta64)):
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
