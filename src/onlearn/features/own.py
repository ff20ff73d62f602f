"""Functions of one's own as extractors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from onlearn.features.named import rows_of_names
from onlearn.features.spec import Groups
from onlearn.named import NamedRows

FUNCTIONS: dict[str, Own] = {}  # by name: where a model file looks for them


class Own:
    """A function from a row, as a dict, to names, or to names with values. Make one by ``@onlearn.feature``."""

    kind = "own"

    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self.function = function
        self.name = function.__name__
        # a pickle refers to it as to a function: by module and name
        self.__doc__, self.__module__, self.__qualname__ = function.__doc__, function.__module__, function.__qualname__

    def __reduce__(self) -> str:
        return self.__qualname__

    def __call__(self, row: dict[str, Any]) -> Any:
        return self.function(row)

    def __repr__(self) -> str:
        return self.name

    def spell(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}

    def groups(self) -> Groups:
        return Groups(self.name, (f"{self.name}:",))

    def read(self, table: Any) -> OwnRows:
        rows = (dict(row) for row in table.to_pylist())
        return OwnRows(rows_of_names((self._checked(n, row) for n, row in enumerate(rows)), f"{self.name}:"))

    def _checked(self, n: int, row: dict[str, Any]) -> Iterator[str | tuple[str, float]]:
        """What the function makes of a row; a single name will do for a list of one."""
        made = self.function(row)
        if isinstance(made, Mapping):
            made = made.items()
        alone = isinstance(made, str) or not hasattr(made, "__iter__")
        for item in [] if made is None else [made] if alone else made:
            if isinstance(item, str):
                yield item
                continue
            try:
                name, value = item
                pair = str(name), float(value)
            except (TypeError, ValueError):
                raise TypeError(
                    f"{self.name} must yield names or (name, value) pairs, but row {n} gave {item!r}"
                ) from None
            if pair[1] - pair[1] != 0.0:
                raise ValueError(f"{self.name} gave {pair[0]!r} the value {pair[1]} in row {n}: it must be finite")
            yield pair


class OwnRows:
    """All that a function made of a batch."""

    missing = None

    def __init__(self, made: NamedRows) -> None:
        self.made = made

    def rows(self, start: int, stop: int) -> NamedRows:
        return self.made.between(start, stop)

    def cost(self) -> Any:
        return self.made.indptr


def feature(function: Callable[[dict[str, Any]], Any]) -> Own:
    """Make an extractor of a function that takes a row as a dict and yields names or (name, value) pairs.

    It may return a dict of values by name as well. Names get the function's own as a prefix. A model file knows the
    function by its name only, so it must have been defined again before the model is loaded.

    >>> @feature
    ... def shape(row):
    ...     yield "long" if len(row["text"]) > 10 else "short"
    ...     yield "length", len(row["text"])
    >>> list(shape({"text": "so it is"}))
    ['short', ('length', 8)]
    """
    if not callable(function) or not hasattr(function, "__name__"):
        raise TypeError(f"@onlearn.feature takes a function that has a name, not {function!r}")
    made = Own(function)
    FUNCTIONS[made.name] = made
    return made
